"""`dragoman data back-translate` and `distill`, with a fake model."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests.system.cli.command import Done, Run, write
from tests.system.cli.test_wrong_input import assert_refused
from tests.unit.tasks.tiny import save_several, save_translator
from tests.word_translator import WordTranslator

from dragoman.cli import making
from dragoman.corpus.config import EVERY
from dragoman.corpus.making import nearest
from dragoman.decoding import TRANSLATING, Decoding
from dragoman.tasks.results import Translation

LINES = ["Ein Haus am See.", "Ein Hund.", "Zu\tzweit im Regen.", "", "Noch ein Haus, rot."]
SKIP = ("--skip", "language", "--skip", "copy")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model from English to Chinese."""
    return save_translator(tmp_path_factory.mktemp("made") / "model")


def made(run: Run, verb: str, *options: str | Path, most: int | None = None) -> Done:
    """Run the command with a model that writes capitals and fails after `most` texts."""
    with pytest.MonkeyPatch.context() as patch:
        model = WordTranslator(str.upper, most=most)
        patch.setattr(making, "load_translator", lambda *_: (model, TRANSLATING))
        return run("data", verb, *options)


def test_lines_get_sources_with_a_tag(run: Run, folder: Path, tmp_path: Path) -> None:
    """Pairs that break a rule are not written; the rules do not see the tag."""
    file, output = write(tmp_path / "mono", LINES), tmp_path / "bt.tsv"
    call = ("back-translate", folder, file, "--tag", "<BT>", "--output", output, *SKIP)
    done = made(run, *call).succeeded()
    assert output.read_text().splitlines() == [
        "<BT> EIN HAUS AM SEE.\tEin Haus am See.",
        "<BT> EIN HUND.\tEin Hund.",
        "<BT> ZU ZWEIT IM REGEN.\tZu zweit im Regen.",
        "<BT> NOCH EIN HAUS, ROT.\tNoch ein Haus, rot.",
    ]
    assert "5 pairs" in done.out
    assert "wrote 4 pairs" in done.err
    assert not [*tmp_path.glob("*.partial*")]


@pytest.mark.parametrize("verb", ["back-translate", "distill"])
def test_what_was_interrupted_ends_with_the_same_bytes(
    verb: str, run: Run, folder: Path, tmp_path: Path
) -> None:
    """Resuming after any number of lines gives the same bytes."""
    file = write(tmp_path / "mono", LINES)
    call: list[str | Path] = [folder, *(["--src"] if verb == "distill" else []), file, *SKIP]
    whole = tmp_path / "whole.tsv"
    assert made(run, verb, *call, "--output", whole).code == 0
    for most in range(len(LINES)):
        output = tmp_path / f"{most}.tsv"
        done = made(run, verb, *call, "--output", output, most=most)
        assert (done.code, output.exists()) == (130, False)
        assert ("add --resume" in done.err) == (most > 0)
        made(run, verb, *call, "--output", output, "--resume").succeeded()
        assert output.read_bytes() == whole.read_bytes()


class _Several(WordTranslator):
    """A model with three translations per line."""

    def stream(
        self, lines: Iterable[str], options: Decoding | None = None, **_: object
    ) -> Iterator[Translation]:
        """Yield translations whose last alternative is closest to the reference."""
        del options
        for line in lines:
            others = (Translation(text="something else"), Translation(text=f"{line} in rot"))
            yield Translation(text="no", alternatives=others)


def test_the_nearest_to_the_reference_is_taken(run: Run, folder: Path, tmp_path: Path) -> None:
    """References may come from any layout; without them --n-best is refused."""
    file, output = tmp_path / "a.jsonl", tmp_path / "easy.tsv"
    write(file, ['{"src": "Ein Haus", "n": 1, "tgt": "Das Haus in Rot"}'])
    call: list[str | Path] = ["data", "distill", folder, "--n-best", "3", "--output", output, *SKIP]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(making, "load_translator", lambda *_: (_Several(), TRANSLATING))
        assert run(*call, "--jsonl", file).code == 0
    assert output.read_text() == "Ein Haus\tEin Haus in rot\n"
    assert_refused(run(*call, "--src", file), "--n-best chooses by references; name them with")
    assert nearest(Translation(text="a", alternatives=(Translation(text="b"),)), None) == "a"


def test_what_cannot_be_made(run: Run, folder: Path, tmp_path: Path) -> None:
    """Impossible requests are refused before anything is translated."""
    file = write(tmp_path / "mono", LINES)
    for options, sentence in (
        ([], "Name the file to write with --output"),
        (["--output", file], "is the file to read; give another --output"),
        (["--output", "/dev/stdout"], "Name the file to write with --output"),
        (["--output", tmp_path / "a.csv"], "a.csv would contain a TSV despite its name"),
        (["--output", tmp_path / "a.tsv", "--seed", "1"], "--seed requires sampling"),
    ):
        assert_refused(run("data", "back-translate", folder, file, *options), sentence)


def test_another_layout_does_not_continue(run: Run, folder: Path, tmp_path: Path) -> None:
    """Another layout means other texts, even in the same file."""
    file = write(tmp_path / "a.tsv", ["src\ttgt\tother", *["Ein Haus.\tA house.\tEin Hund."] * 3])
    call: list[str | Path] = [folder, "--output", tmp_path / "easy.tsv"]
    assert made(run, "distill", *call, "--tsv", file, most=2).code == 130
    for option, *key in (("--tm",), ("--tsv", "--src-key", "other")):
        done = made(run, "distill", *call, option, file, *key, "--resume")
        assert_refused(done, "was written with another layout; give the same")
    assert made(run, "distill", *call, "--tsv", file, "--resume", *SKIP).code == 0


def test_bytes_that_are_not_utf_8_are_kept(run: Run, folder: Path, tmp_path: Path) -> None:
    """Invalid UTF-8 is kept if its rule is skipped."""
    file, output = tmp_path / "a.en", tmp_path / "easy.tsv"
    file.write_bytes(b"A dog.\n" * 9 + b"A man\xff walks.\n")
    call: list[str | Path] = [folder, "--src", file, "--output", output, *SKIP]
    made(run, "distill", *call, "--skip", "encoding").succeeded()
    assert b"\nA man\xff walks.\tA MAN" in output.read_bytes()


def test_what_breaks_rules_alone_stays_to_continue(run: Run, folder: Path, tmp_path: Path) -> None:
    """If rules remove everything, the command fails; other rules can reuse the translations."""
    file, output = write(tmp_path / "mono", ["EIN HAUS AM SEE."]), tmp_path / "bt.tsv"
    call: list[str | Path] = [folder, file, "--output", output]
    done = made(run, "back-translate", *call)
    assert (done.code, output.exists()) == (1, False)
    assert "No pair is left to write: rules removed all, copy 1; --skip" in done.err
    assert "add --resume and --skip RULE to the same command" in done.err
    skipped = [part for rule in EVERY for part in ("--skip", rule)]
    assert made(run, "back-translate", *call, "--resume", *skipped).code == 0
    assert output.read_text() == "EIN HAUS AM SEE.\tEIN HAUS AM SEE.\n"
    done = made(run, "back-translate", folder, write(tmp_path / "none", []), *call[2:])
    assert done.code == 2


CHINESE = ["房子在湖边，门是红色的。", "狗在花园里睡觉，猫在看它。"]
ENGLISH = "A man with a red hat is walking along the river this morning."


@pytest.mark.parametrize("verb", ["back-translate", "distill"])
def test_texts_in_the_language_that_is_written_are_refused(
    verb: str, run: Run, folder: Path, tmp_path: Path
) -> None:
    """More than half in the target language is refused up front, unless the rule is skipped."""

    def done(lines: list[str], *options: str) -> Done:
        (to := tmp_path / str(len(lines))).mkdir()
        file = write(to / "mono", lines)
        named = ["--src", file] if verb == "distill" else [file]
        return made(run, verb, folder, *named, "--output", to / "bt.tsv", *options)

    wrong = done([*CHINESE * 2, "", *[ENGLISH] * 3])
    assert_refused(wrong, f"mono looks like zh, but {folder} reads en; use a model of the other")
    assert not [*tmp_path.glob("*/bt*")]
    assert "looks like" not in done([*CHINESE * 2, *[ENGLISH] * 5]).err
    assert "looks like" not in done(["Ein Mann mit rotem Hut geht am Fluss spazieren."]).err
    done(CHINESE, *SKIP).succeeded()


def test_languages_that_were_named_the_wrong_way_round(run: Run, tmp_path: Path) -> None:
    """The language options describe the pairs, not the model's direction, and may be swapped."""
    pytest.importorskip("py3langid", reason="the extra 'data' is not installed")
    model, file = save_several(tmp_path / "many", "en", "zh"), write(tmp_path / "mono", CHINESE)
    call: list[str | Path] = [model, file, "--output", tmp_path / "bt.tsv"]
    wrong = made(run, "back-translate", *call, "--src-lang", "zh", "--tgt-lang", "en")
    assert_refused(wrong, "to read en; swap --src-lang and --tgt-lang, the languages of the pairs")
