"""`dragoman data`: messages and output files."""

import json
import sys
from pathlib import Path
from shutil import copytree

import pytest
from tests.system.cli.command import Run, write
from tests.system.cli.test_wrong_input import assert_refused
from tests.unit.tasks.tiny import make_translator, save_translator

from dragoman.corpus.merging import LAYOUTS
from dragoman.corpus.scoring import cross_entropies
from dragoman.tasks.translate.translator import Translator

PAIRS = [f"Source number {n} is here.\tZiel Nummer {n} ist hier." for n in range(5)]


def test_corpora_are_merged_and_counted(run: Run, tmp_path: Path) -> None:
    """The output has the layout of the first corpus; pairs it has already are reported."""
    file = write(tmp_path / "a.tsv", ["src\tid\ttgt", *(p.replace("\t", "\tx\t") for p in PAIRS)])
    other = write(tmp_path / "b.tsv", [*PAIRS[:1], "Another one.\tNoch eine."])
    weights = ("--weight", "1", "--weight", "2")
    done = run("data", "merge", file, other, *weights, "--out", tmp_path).succeeded()
    assert f"9 pairs in {tmp_path}/merged.tsv" in done.err
    said = "Weights aside, 1 pair was there before: taken all the same; --unique leaves them out."
    assert said in done.err
    lines = (tmp_path / "merged.tsv").read_text().splitlines()
    assert lines[:6] == file.read_text().splitlines()
    assert lines[6:8] == [PAIRS[0].replace("\t", "\t\t"), "Another one.\t\tNoch eine."]
    done = run("data", "stats", "--tsv", tmp_path / "merged.tsv")
    assert done.lines[0].startswith("9 pairs, languages ")
    assert "sentences, script LATIN\t9\t9" in done.lines
    as_json = run("data", "stats", "--tsv", tmp_path / "merged.tsv", "--json")
    assert json.loads(as_json.out)["src"]["words"] == 39


def test_scripts_are_counted_last(run: Run, tmp_path: Path) -> None:
    """Those of either side, below what both sides have."""
    done = run("data", "stats", "--tsv", write(tmp_path / "a.tsv", ["a cat\t一只猫"]))
    assert [*map(str.strip, done.lines[-2:])] == [
        "sentences, script CJK\t\t1",
        "sentences, script LATIN\t1",
    ]


def test_corpora_of_other_keys_are_merged(run: Run, tmp_path: Path) -> None:
    """Each corpus is read by its own keys and written with those of the first."""
    first = write(tmp_path / "a.jsonl", ['{"src": "a house", "tgt": "ein Haus", "id": 1}'])
    second = write(tmp_path / "b.jsonl", ['{"tgt": "a cat", "src": {"de": "eine Katze"}}'])
    third = write(tmp_path / "c.tsv", ["de\ten", "ein Hund\ta dog"])
    of_their_own = f"{second},tgt,src.de", f"{third},en,de"
    run("data", "merge", first, *of_their_own, "--out", tmp_path).succeeded()
    assert (tmp_path / "merged.jsonl").read_text().splitlines() == [
        '{"src": "a house", "tgt": "ein Haus", "id": 1}',
        '{"src": "a cat", "tgt": "eine Katze"}',
        '{"src": "a dog", "tgt": "ein Hund"}',
    ]
    assert_refused(run("data", "merge", first, f"{third},en,fr", "--out", tmp_path / "out"), "fr")


def test_what_an_example_shows_is_escaped_once(run: Run, tmp_path: Path) -> None:
    """Control characters of a corpus are escaped exactly once in examples."""
    file = write(tmp_path / "a.tsv", ["x\x0by\tx\x0by"])
    done = run("data", "check", "--tsv", file)
    assert r"'x\x0by' with 'x\x0by'" in done.out


def test_a_catalogue_is_cleaned(run: Run, tmp_path: Path) -> None:
    """A cleaned catalogue stays one; a message with a bad pair is removed whole and reported."""
    text = 'msgid "%d old cat"\nmsgid_plural "cats"\nmsgstr[0] "%d alte Katze"\nmsgstr[1] "cats"\n'
    po, page = tmp_path / "a.po", tmp_path / "a.html"
    po.write_text(f'{text}\nmsgid "One house"\nmsgstr "Ein Haus"\n')
    done = run("data", "clean", "--tm", po, "--out", tmp_path / "out").succeeded()
    assert (tmp_path / "out" / "a.po").read_text() == '\n\nmsgid "One house"\nmsgstr "Ein Haus"\n'
    assert "line 1 is the same on both sides" in done.out
    assert "a.po without 1 pair of pieces that have a bad one too" in done.err
    checked = run("data", "check", "--tm", po, "--report", page).succeeded()
    assert checked.err == f"wrote {page}\n"
    assert "2 are good, 1 is not" in page.read_text()
    for path, held_out, sentence in (
        (po, page, "is the file to read"),
        (page, page, "is the file to read"),
        (page, po, "a.html exists already"),
    ):
        done = run("data", "check", "--tm", po, "--held-out", held_out, "--report", path)
        assert_refused(done, f"{sentence}; give another --report")


def test_units_that_are_no_pairs_are_told(run: Run, tmp_path: Path) -> None:
    """Each verb reports unusable units once; if none is usable, the error lists the languages."""
    path, text = tmp_path / "a.po", 'msgid "One house"\nmsgstr "Ein Haus"\n\nmsgid "b"\nmsgstr ""\n'
    path.write_text(f"\ufeff{text}", "utf-8")
    for verb in ("check", "stats", "clean"):
        to: list[str | Path] = ["--out", tmp_path / "out"] if verb == "clean" else []
        done = run("data", verb, "--tm", path, *to)
        assert done.err.count(f"{path}: 1 unit is no pair: not finished.") == 1
    assert (tmp_path / "out" / "a.po").read_text("utf-8").startswith("\ufeffmsgid")
    assert "1 unit is no" in run("data", "merge", path, "--out", tmp_path).err
    path.write_text('msgid "b"\nmsgstr ""\n')
    assert "has no pair: not finished; give another file." in run("data", "stats", "--tm", path).err
    tmx = write(tmp_path / "a.tmx", ['<tmx><tu><tuv xml:lang="en"><seg>a</seg></tuv></tu></tmx>'])
    done = run("data", "stats", "--tm", tmx, "--src-lang", "fr", "--tgt-lang", "de")
    assert done.code == 2
    assert "it has en, so choose from them with --src-lang and --tgt-lang." in done.err


def test_what_a_piece_has_in_two_sets_is_told(run: Run, tmp_path: Path) -> None:
    """A message whose pairs are in two sets is left out; nothing left to write is a failure."""
    forms = 'msgid "%d {n}"\nmsgid_plural "{n}s"\nmsgstr[0] "%d {n}e"\nmsgstr[1] "{n}en"\n'
    po = write(tmp_path / "a.po", [forms.format(n=n) for n in ("cat", "dog", "cow")])
    out = tmp_path / "out"
    done = run("data", "sample", "--tm", po, "--size", "1", "--out", out)
    assert (done.code, out.exists() and [*out.iterdir()]) == (1, [])
    assert "No pair is left to write: others of its piece" in done.err
    done = run("data", "sample", "--tm", po, "--size", "5", "--out", out).succeeded()
    assert "4 pairs of 6 in" in done.err
    assert "1 pair left out: others of the same piece" in done.err


def test_what_has_no_pair_left_is_a_failure(run: Run, tmp_path: Path) -> None:
    """The error names the rules that removed all pairs, and no file is written."""
    file, out = write(tmp_path / "a.tsv", ["same\tsame", "same\tsame"]), tmp_path / "out"
    done = run("data", "clean", "--tsv", file, "--out", out)
    assert (done.code, out.exists()) == (1, False)
    assert "No pair is left to write: rules removed all, copy 2; --skip" in done.err
    done = run("data", "merge", file, "--weight", "0.1", "--out", out)
    assert (done.code, out.exists()) == (2, False)
    assert "No pair would be taken of these corpora; give greater weights." in done.err


@pytest.mark.skipif(sys.platform != "linux", reason="names there are UTF-8")
def test_a_page_names_a_corpus_that_is_not_utf_8(run: Run, tmp_path: Path) -> None:
    """The page escapes the name."""
    file, page = write(tmp_path / "n\udcff.tsv", PAIRS), tmp_path / "a.html"
    assert run("data", "check", "--tsv", file, "--report", page).code == 0
    assert "n\\udcff.tsv</h1>" in page.read_text()


def test_models_score_what_is_good(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is one model per direction; the most surprising pairs go, and none in a second pass."""
    file, model = write(tmp_path / "a.tsv", PAIRS), save_translator(tmp_path / "model")
    pairs = [(src, tgt) for src, _, tgt in (line.partition("\t") for line in PAIRS)]
    scores = [*cross_entropies([Translator.load(model)] * 2, pairs)]
    other = Path(copytree(model, tmp_path / "other"))
    config = json.loads((other / "config.json").read_text())
    turned = config | {"src_lang": config["tgt_lang"], "tgt_lang": config["src_lang"]}
    (other / "config.json").write_text(json.dumps(turned))
    by = ("--score-by", model, "--score-by", other, "--max-surprise", "0.5")
    done = run("data", "clean", "--tsv", file, *by, "--out", tmp_path / "out").succeeded()
    left = (tmp_path / "out" / "a.tsv").read_text().splitlines()
    assert 0 < len(left) < len(PAIRS)
    limit = max(score for score, line in zip(scores, PAIRS, strict=True) if line in left)
    assert left == [line for score, line in zip(scores, PAIRS, strict=True) if score <= limit]
    assert f"unlikely\t{len(PAIRS) - len(left)}\t{len(PAIRS) - len(left)}" in done.lines
    again = run("data", "check", "--tsv", tmp_path / "out" / "a.tsv", *by)
    assert f"{len(left)} are good, 0 are not" in again.lines[0]
    check = ("data", "check", "--tsv", file)
    third = run(*check, *by, "--score-by", model)
    assert_refused(third, "--score-by takes one model, or one of each direction.")
    assert_refused(run(*check, "--max-words", "0"), "--max-words is 0.0; it must be above 0.")
    assert_refused(run(*check, "--max-surprise", "2"), "--max-surprise needs --score-by.")
    same = run(*check, "--score-by", model, "--score-by", model)
    assert_refused(same, "en to zh, and here a model is needed that translates zh to en.")
    several = make_translator(several=True)
    monkeypatch.setattr("dragoman.cli.score.load_scorer", lambda *_: several)
    said = f"{model} has several languages; say by --src-lang and --tgt-lang which"
    assert_refused(run(*check, *by), said)
    languages = ("--src-lang=en", "--tgt-lang=zh", "--skip=language", "--max-surprise=0.1")
    assert "unlikely\t" in run(*check, *by[:4], *languages).out


def test_a_model_of_another_direction_scores_nothing(run: Run, tmp_path: Path) -> None:
    """Without options the languages are detected from the texts."""
    pytest.importorskip("py3langid", reason="the extra 'data' is not installed")
    line = "Der alte Mann geht um {0} Uhr langsam mit seinem Hund über die Straße.\tThe old man "
    line += "walks slowly across the street with his dog at {0} o'clock."
    file = write(tmp_path / "de.tsv", [line.format(hour) for hour in range(1, 9)])
    done = run("data", "check", "--tsv", file, "--score-by", save_translator(tmp_path / "model"))
    assert_refused(done, "en to zh, and here a model is needed that translates de to en.")


NAMED = "<xliff><file source-language='en' target-language='de'><trans-unit><source>a</source>"


@pytest.mark.parametrize(
    ("name", "text", "options", "languages"),
    [
        ("a.csv", "English,German\na,b\n", [], "en, de"),
        (
            "a.tsv",
            "id\tGerman\tEnglish\n1\ta\tb\n",
            ["--src-key=German", "--tgt-key=English"],
            "de, en",
        ),
        ("a.tsv", "src\ttgt\na\tb\n", [], "not known, not known"),
        ("a.tsv", "a\tb\n", [], "not known, not known"),
        (
            "a.jsonl",
            '{"t": {"en": "a", "de": "b"}}\n',
            ["--src-key=t.en", "--tgt-key=t.de"],
            "en, de",
        ),
        ("a.jsonl", '{"src": "a", "tgt": "b"}\n', [], "not known, not known"),
        ("a.xlf", f"{NAMED}<target>b</target></trans-unit></file></xliff>", [], "en, de"),
        ("a.po", 'msgid "a"\nmsgstr "b"\n', [], "not known, not known"),
        ("a.csv", "en,de\na,b\n", ["--tgt-lang=fr"], "en, fr"),
    ],
)
def test_names_tell_languages_that_lines_do_not(
    run: Run, tmp_path: Path, name: str, text: str, options: list[str], languages: str
) -> None:
    """Names of columns and keys and the header of XLIFF tell the languages; options go first."""
    file = tmp_path / name
    file.write_text(text)
    layout = f"--{LAYOUTS[file.suffix]}"
    done = run("data", "stats", layout, file, *options).succeeded()
    assert done.lines[0] == f"1 pair, languages {languages}."


def test_the_names_of_two_files_tell_languages(run: Run, tmp_path: Path) -> None:
    """File extensions name the languages if both are language codes."""
    for name, line in (("a.en", "a"), ("a.de", "b")):
        write(tmp_path / name, [line])
    for tgt, languages in (("a.de", "en, de"), ("a.en", "not known, not known")):
        done = run("data", "stats", "--src", tmp_path / "a.en", "--tgt", tmp_path / tgt)
        assert done.lines[0] == f"1 pair, languages {languages}."


def test_each_pass_over_a_corpus_tells_its_number(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pass has its number and, after the first, the total number of pairs."""
    monkeypatch.setattr("dragoman.cli.progress.INTERVAL", 0.0)
    told = run("data", "check", "--tsv", write(tmp_path / "a.tsv", PAIRS)).err
    assert "\n5 pairs, " in told
    assert "\n5 of 5 pairs in pass 2, " in told
