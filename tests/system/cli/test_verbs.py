"""What each verb that takes a model prints, and where."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.system.cli.command import LINES, Run, in_own_process, write
from tests.system.cli.test_wrong_input import assert_refused
from tests.unit.tasks.tiny import random_lines, save_translator
from tests.unit.tasks.tiny_generator import save_generator

import dragoman
from dragoman.engine.products import can_pack
from dragoman.evaluate import evaluate


def test_lines_in_are_lines_out(run: Run, model: Path, tmp_path: Path) -> None:
    """Line for line, in order, blank ones blank; the talk goes elsewhere."""
    done = run("translate", model, write(tmp_path / "in", LINES))
    expected = dragoman.load(model, device="cpu").translate(LINES)
    assert done.code == 0
    assert done.lines == [translation.text for translation in expected]
    assert [i for i, line in enumerate(LINES) if not line.strip()] == [3, 4]
    assert done.lines[3:5] == ["", ""]
    assert f"{len(LINES)} lines in" in done.err
    assert "2 empty" in done.err


def test_a_folder_may_sample(run: Run, tmp_path: Path) -> None:
    """Several translations of a line are then samples, and a seed says which."""
    model = save_translator(tmp_path / "model", beam_size=1, temperature=0.8)
    file = write(tmp_path / "in", LINES[:2])
    options = dragoman.Decoding(n_best=3, seed=4)
    expected = dragoman.load(model, device="cpu").translate(LINES[:2], options=options)
    done = run("translate", model, file, "--n-best", "3", "--seed", "4", "--json").succeeded()
    assert [json.loads(line)["text"] for line in done.lines] == [each.text for each in expected]


@pytest.mark.parametrize("words", ["--n-best 5", "--mbr 7", "--beam-groups 3 --n-best 2"])
def test_a_beam_has_room_for_candidates_and_groups(run: Run, tmp_path: Path, words: str) -> None:
    """Where it is not given; groups that are not given are those of the folder."""
    model = save_translator(tmp_path / "model", beam_size=4, beam_groups=2)
    done = run("translate", model, write(tmp_path / "in", LINES[:1]), *words.split())
    assert done.code == 0, done.err


@pytest.mark.skipif(not can_pack("bf16"), reason="no bfloat16 on this CPU")
def test_the_arithmetic_can_be_chosen(run: Run, model: Path, tmp_path: Path) -> None:
    """bfloat16 is the precision bf16 of Python; auto says what it takes."""
    file = write(tmp_path / "in", LINES)
    translator = dragoman.load(model, device="cpu", precision="bf16")
    expected = [translation.score for translation in translator.translate(LINES)]
    done = run("translate", model, file, "--compute", "bfloat16", "--json")
    assert [json.loads(line)["score"] for line in done.lines] == expected
    assert expected != [each.score for each in dragoman.load(model, device="cpu").translate(LINES)]
    assert "computing in" in run("translate", model, file, "--compute", "auto").err


def test_standard_input_is_translated_too(model: Path) -> None:
    """In UTF-8 whatever the locale; a last line without an end is a line."""
    done = in_own_process(
        "translate", model, "--beam-size", "1", stdin="the cat\r\n\n😀\n我喜欢".encode()
    )
    expected = dragoman.load(model, device="cpu").translate(
        ["the cat", "", "😀", "我喜欢"], beam_size=1
    )
    assert (done.code, done.lines) == (0, [translation.text for translation in expected])
    assert "Type a line" not in done.err


@pytest.mark.parametrize(
    "text", ["the red cat", "And/or?", "我喜欢。", "the cat.\na dog ", "one two.\n", "a " * 400]
)
def test_a_text_may_stand_in_the_place_of_a_file(run: Run, model: Path, text: str) -> None:
    """What ends as a sentence, or has spaces and looks like no path; a text may have lines."""
    done = run("translate", model, text, "--beam-size", "1")
    lines = text.removesuffix("\n").split("\n")  # as `$(...)` in quotes ends
    expected = dragoman.load(model, device="cpu").translate(lines, beam_size=1)
    assert (done.code, done.lines) == (0, [translation.text for translation in expected])


def test_a_file_is_read_whatever_its_name(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even one that could be a text."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "the red cat.", LINES)
    assert len(run("translate", model, "the red cat.").lines) == len(LINES)


def test_nothing_in_is_nothing_out(run: Run, model: Path, tmp_path: Path) -> None:
    """An empty input has no lines: no output, no error."""
    assert run("translate", model, stdin=b"").out == ""
    done = run("translate", model, write(tmp_path / "empty", []))
    assert (done.code, done.out) == (0, "")


def test_translations_can_be_sampled(run: Run, model: Path, tmp_path: Path) -> None:
    """The seed decides them, also when only the end is still to do; what conflicts is refused."""
    file, out = write(tmp_path / "in", LINES), tmp_path / "out"
    call = ("translate", model, file, "--temperature", "1.5", "--n-best", "3")
    first = run(*call, "--seed", "1")
    assert (first.code, len(first.lines)) == (0, 3 * 4 + 3), first.err  # nothing to read in three
    assert run(*call, "--seed", "2").out != first.out
    kept = "\n".join(first.lines[:5])
    (tmp_path / "out.partial").write_text(f"{kept}\n", encoding="utf-8")
    assert run(*call, "--seed", "1", "--output", out, "--resume").code == 0
    assert out.read_text(encoding="utf-8") == first.out
    assert_refused(run("translate", model, file, "--seed", "1"), "--seed", "--temperature")


def test_terms_are_those_of_a_glossary(run: Run, model: Path) -> None:
    """A way to apply terms is refused without them, or is no option."""
    call = ("translate", model, "the cat.", "--terms", "replace")
    assert_refused(run(*call), "--terms applies a glossary; give --glossary")
    for verb in ("back-translate", "distill"):
        assert_refused(run("data", verb, model, "--terms", "replace"), "has no option --terms")


def test_translations_begin_as_told(run: Run, model: Path, tmp_path: Path) -> None:
    """One prefix for each line; another number of them, or none, is refused."""
    lines = LINES[:3]
    file, begun = write(tmp_path / "in", lines), write(tmp_path / "begun", ["the dog", "", "a"])
    found = run("translate", model, file, "--prefixes", begun)
    free = run("translate", model, file)
    assert [line[:7] for line in found.lines[:1]] == ["the dog"]
    assert found.lines[1] == free.lines[1]
    assert found.lines[2].startswith("a")
    done = run("translate", model, file, "--prefixes", write(tmp_path / "few", ["a"]))
    assert_refused(done, "fewer prefixes than lines")
    assert_refused(run("translate", model, file, "--prefixes", tmp_path / "no"), "There is no file")
    same = ("--prefixes", begun, "--output", begun)
    assert_refused(run("translate", model, file, *same), "is the file to read")


def test_n_best_gives_numbered_lines(run: Run, model: Path, tmp_path: Path) -> None:
    """Line number, score, text, the best first."""
    done = run("translate", model, write(tmp_path / "in", LINES[:2]), "--n-best", "3")
    expected = dragoman.load(model, device="cpu").translate(LINES[:2], n_best=3)
    assert done.lines == [
        f"{number}\t{one.score:.6f}\t{one.text}"
        for number, best in enumerate(expected, start=1)
        for one in (best, *best.alternatives)
    ]
    assert len(done.lines) == 6


def test_json_tells_everything(run: Run, model: Path, tmp_path: Path) -> None:
    """An object a line; alignment pairs point into the two lists of pieces."""
    done = run("translate", model, write(tmp_path / "in", LINES), "--json", "--n-best", "2")
    objects = [json.loads(line) for line in done.lines]
    assert len(objects) == len(LINES)
    assert objects[3] | {"flags": ["empty"], "text": "", "alignment": []} == objects[3]
    for found in objects:
        assert found["log_prob"] == pytest.approx(sum(found["token_log_probs"]), abs=1e-4)
        for s, t in found["alignment"]:
            assert found["src_tokens"][s]
            assert found["tokens"][t]
    assert len(objects[0]["alternatives"]) == 1


def test_a_reader_that_goes_away_is_no_drama(model: Path, tmp_path: Path) -> None:
    """`| head -1`: no traceback, no message of Python's."""
    file = write(tmp_path / "in", ["the cat"] * 200)
    command = f"{sys.executable} -m dragoman translate {model} {file} --beam-size 1 | head -1"
    done = subprocess.run(  # noqa: S602 -- the pipe is what is tested
        command, shell=True, capture_output=True, text=True, check=False, timeout=120
    )
    assert len(done.stdout.splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_one_sentence(run: Run, model: Path, tmp_path: Path) -> None:
    """Exit code 1: the input was right; scores that took long are told all the same."""
    file = write(tmp_path / "in", LINES[:2])
    told = "dragoman: writing the output /dev/full failed: No space left on device.\n"
    done = run("translate", model, file, "--output", "/dev/full")
    assert (done.code, done.out, done.err) == (1, "", told)
    done = run("evaluate", model, "--src", file, "--ref", file, "--hyp", "/dev/full")
    assert (done.code, done.lines[0][:4]) == (1, "BLEU")
    assert done.err.endswith(told)


def test_evaluate_scores_what_it_translates(run: Run, model: Path, tmp_path: Path) -> None:
    """The kept file holds the translations; the figures are those of the file."""
    lines = random_lines(6)
    src, ref = write(tmp_path / "src", lines), write(tmp_path / "ref", lines[::-1])
    done = run("evaluate", model, "--src", src, "--ref", ref, "--hyp", tmp_path / "hyp")
    hypotheses = (tmp_path / "hyp").read_text(encoding="utf-8").split("\n")[:-1]
    scores = evaluate(hypotheses, lines[::-1], tokenize="zh")  # the folder's target language
    assert hypotheses == run("translate", model, src).lines
    assert done.lines[0] == f"BLEU   {scores.bleu:.2f}  {scores.bleu_signature}"
    assert done.lines[1] == f"chrF2  {scores.chrf:.2f}  {scores.chrf_signature}"
    assert done.lines[2] == f"exact  {scores.exact:.2f}  percent of the lines"
    assert f"rough guide: {scores.reading}." in done.err
    assert "sentences/s" in done.lines[3]
    assert "tokens/s" in done.lines[3]


def test_evaluate_replaces_no_file_unasked(run: Run, model: Path, tmp_path: Path) -> None:
    """As `--output` of other verbs: what is there stays, unless told otherwise."""
    file, hyp = write(tmp_path / "in", LINES[:2]), write(tmp_path / "hyp", ["mine"])
    command = ("evaluate", model, "--src", file, "--ref", file, "--hyp", hyp)
    told = f"{hyp} exists already; add --overwrite to replace it, or give another --hyp"
    assert_refused(run(*command), told)
    assert hyp.read_text(encoding="utf-8") == "mine\n"
    assert run(*command, "--overwrite").code == 0
    assert hyp.read_text(encoding="utf-8").count("\n") == 2


def test_evaluate_asks_whether_source_and_reference_are_swapped(
    run: Run, model: Path, tmp_path: Path
) -> None:
    """Where nothing is alike, with the languages of the model; bad translations are no reason."""
    lines = random_lines(4)
    src = write(tmp_path / "src", lines)
    done = run("evaluate", model, "--src", src, "--ref", write(tmp_path / "ref", ["Ωκεανός"] * 4))
    assert (done.code, len(done.lines)) == (0, 4)
    assert "--ref are swapped (the model translates en to zh)" in done.err
    bad = run("evaluate", model, "--src", src, "--ref", write(tmp_path / "ref", lines[::-1]))
    assert "--ref are swapped" not in bad.err


def test_evaluate_gives_its_figures_as_json(run: Run, model: Path, tmp_path: Path) -> None:
    """In full, with the tokenizer that was asked for."""
    lines = random_lines(4)
    file = write(tmp_path / "src", lines)
    done = run("evaluate", model, "--src", file, "--ref", file, "--tokenize", "char", "--json")
    assert "rough guide" not in done.err
    found = json.loads(done.out)
    hypotheses = [t.text for t in dragoman.load(model, device="cpu").translate(lines)]
    expected = evaluate(hypotheses, lines, tokenize="char").to_dict()
    assert {name: found[name] for name in expected} == expected
    assert found["sentences"] == len(lines)
    assert found["tokens_per_second"] > found["sentences_per_second"] > 0


def test_score_prints_sum_and_mean(run: Run, model: Path, tmp_path: Path) -> None:
    """One line a pair; with --json the value of each token."""
    src, tgt = write(tmp_path / "src", LINES), write(tmp_path / "tgt", LINES[::-1])
    expected = dragoman.load(model, device="cpu").score(zip(LINES, LINES[::-1], strict=True))
    plain = run("score", model, "--src", src, "--tgt", tgt)
    assert plain.lines == [
        f"{one.log_prob:.6f}\t{one.log_prob / len(one.tokens):.6f}" for one in expected
    ]
    assert "perplexity" in plain.err
    objects = [
        json.loads(line) for line in run("score", model, "--src", src, "--tgt", tgt, "--json").lines
    ]
    assert objects == [json.loads(json.dumps(one.to_dict())) for one in expected]


@pytest.mark.parametrize("save", [save_translator, save_generator])
def test_inspect_tells_what_the_folder_holds(
    run: Run, tmp_path: Path, save: Callable[[Path], Path]
) -> None:
    """The table adds up; JSON holds the config, the parts and the shape of every weight."""
    model = save(tmp_path / "model")
    found = json.loads(run("inspect", model, "--json").out)
    parts = dict(found["parameters"])
    total = parts.pop("total")
    assert total == sum(parts.values())
    sizes = dict.fromkeys(found["weights"], 1)
    for name, shape in found["weights"].items():
        for size in shape:
            sizes[name] *= size
    assert sum(sizes.values()) == total
    assert found["model"]["d_model"] == 32
    table = run("inspect", model)
    assert (table.code, table.err) == (0, "")
    assert f"{total:,}" in table.out
    assert found["model"]["kind"] in table.out
    assert "tokenizer.json" in table.out


def test_a_model_is_converted(run: Run, model: Path, tmp_path: Path) -> None:
    """Nothing goes to standard output; a second run does not write over the first."""
    probe = write(tmp_path / "probe", ["a cat sees the dog", "", "我喜欢学习"])
    call = ("convert", model, tmp_path / "out", "--to", "huggingface", "--probe", probe)
    done = run(*call)
    assert (done.code, done.out) == (0, "")
    assert "2 sentences of the probe answered alike" in done.err
    assert (tmp_path / "out" / "generation_config.json").is_file()
    assert_refused(run(*call), "it exists")


def test_a_model_is_written_in_8_bits(run: Run, model: Path, tmp_path: Path) -> None:
    """Every other command takes it; what changed is told on standard error."""
    probe, references = write(tmp_path / "probe", LINES), write(tmp_path / "references", LINES)
    small = tmp_path / "small"
    call: list[str | Path] = ["convert", model, small, "--to", "int8", "--probe", probe]
    done = run(*call, "--references", references)
    assert (done.code, done.out) == (0, "")
    assert f"{small} holds the model in 8 bits: " in done.err
    before, after = (run("translate", folder, probe).lines for folder in (model, small))
    pairs = enumerate(zip(before, after, strict=True), start=1)
    changed = [number for number, (one, other) in pairs if one != other]
    assert f" {len(changed)} of {len(LINES)} translations changed, BLEU " in done.err
    most = "The translation that changed most is that of line "
    told = sum(f"{most}{number}:\n" in done.err for number in changed)
    assert done.err.count(most) == told == min(len(changed), 1)
    assert run("translate", small, probe, "--compute", "auto").code == 0
    assert "(format 3, " in run("inspect", small).out
    assert run("cost", small).code == 0
    quiet = run("convert", model, tmp_path / "again", "--to", "int8")
    assert quiet.err == f"{tmp_path / 'again'} holds the model in 8 bits.\n"
    call[2] = new = tmp_path / "new"
    misplaced: list[list[str | Path]] = [["int8"], ["huggingface"], ["huggingface", *call[5:]]]
    for options in misplaced:
        refused = run(*call[:4], *options, "--references", references)
        assert_refused(refused, "--references requires --to int8 and --probe")
    assert_refused(run(*call[:-1], write(tmp_path / "none", [])), "is empty")
    assert not new.exists()
