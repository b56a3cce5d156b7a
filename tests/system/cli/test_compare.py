"""Two systems on one test set: models, or their translations in files."""

import json
from pathlib import Path

import pytest
from tests.system.cli.command import Run, write
from tests.system.cli.test_wrong_input import assert_refused
from tests.unit.tasks.tiny import random_lines, save_another, save_translator

from dragoman.evaluate import evaluate

LINES = random_lines(6)


@pytest.fixture
def src(tmp_path: Path) -> Path:
    """Sources."""
    return write(tmp_path / "src", LINES)


@pytest.fixture
def ref(tmp_path: Path) -> Path:
    """Their references."""
    return write(tmp_path / "ref", LINES[::-1])


def test_a_model_is_compared_with_translations_of_another(
    run: Run, model: Path, src: Path, ref: Path, tmp_path: Path
) -> None:
    """A table, a verdict and the lines that differ most; the same figures as alone."""
    hyp, other = tmp_path / "hyp", write(tmp_path / "other", LINES[::-1])
    options = ("--src", src, "--ref", ref, "--hyp", hyp, "--against", other)
    done = run("evaluate", model, *options).succeeded()
    found = evaluate(hyp.read_text(encoding="utf-8").splitlines(), LINES[::-1], tgt_lang="zh")
    head, bleu, *_ = (line.split("\t") for line in done.lines)
    assert head[1:4] == [str(model), str(other), "difference"]
    assert bleu[:4] == ["BLEU", f"{found.bleu:.2f}", "100.00", f"{found.bleu - 100:+.2f}"]
    assert f"{other} is better by {100 - found.bleu:.2f} BLEU" in done.out
    assert "nrefs:1|bs:1000|seed:12345|" in done.out
    assert "nrefs:1|ar:10000|seed:12345|" in done.out
    assert "6 lines of 6 differ, most:" in done.out
    assert "  source " in done.out


def test_an_ensemble_is_compared_with_its_first_model(
    run: Run, model: Path, src: Path, ref: Path, tmp_path: Path
) -> None:
    """Its translations are those of `translate`; other models decode alone."""
    hyp, other = tmp_path / "hyp", save_translator(tmp_path / "another")
    save_another(other)
    alone, joined = (
        run("translate", model, src, *options).lines for options in ((), ("--ensemble", other))
    )
    assert alone != joined
    options = ("--ensemble", other, "--against", model, "--src", src, "--ref", ref)
    done = run("evaluate", model, *options, "--hyp", hyp).succeeded()
    assert hyp.read_text(encoding="utf-8").splitlines() == joined
    assert done.lines[0].split("\t")[1:3] == [f"{model} + {other}", str(model)]
    chrf = evaluate(alone, LINES[::-1], tgt_lang="zh").chrf
    assert f"{chrf:.2f}" == done.lines[2].split("\t")[2]
    assert_refused(run("evaluate", hyp, *options), "on --ref; leave out --ensemble.")


def test_finished_translations_need_no_source(run: Run, ref: Path, tmp_path: Path) -> None:
    """Two files, by two references; as JSON the same figures, and both texts of each line."""
    one, two = LINES[::-1], [*LINES[:0:-1], "nothing"]
    files = write(tmp_path / "one", one), write(tmp_path / "two", two)
    options = ("--ref", ref, "--ref", write(tmp_path / "second", LINES), "--tgt-lang", "zh")
    done = run("evaluate", files[0], "--against", files[1], *options, "--json")
    found = json.loads(done.out)
    expected = evaluate(one, LINES[::-1], LINES, tgt_lang="zh").to_dict()
    assert {name: found[name] for name in expected} == expected
    assert found["against"]["name"] == str(files[1])
    assert found["against"]["bleu"] == evaluate(two, LINES[::-1], LINES, tgt_lang="zh").bleu
    difference = found["comparison"]["bleu"]["difference"]
    assert difference == pytest.approx(found["bleu"] - found["against"]["bleu"])
    (line,) = found["comparison"]["lines"]
    assert (line["line"], line["text"], line["other_text"]) == (6, one[-1], "nothing")
    told = run("evaluate", files[0], "--against", files[1], *options).out
    assert "Too few lines differ, 1 of 6, to tell which is better." in told
    told = run("evaluate", files[0], "--against", files[0], *options).out
    assert "Both are the same, line by line." in told
    alone = run("evaluate", files[0], *options)
    assert alone.lines[0] == f"BLEU   100.00  {expected['bleu_signature']}"


def test_what_cannot_be_compared_is_refused(
    run: Run, model: Path, src: Path, ref: Path, tmp_path: Path
) -> None:
    """Another number of lines, a missing source or reference, a folder without a model."""
    short = write(tmp_path / "short", LINES[:2])
    command = ("evaluate", model, "--src", src, "--ref", ref)
    assert_refused(run(*command, "--against", short), f"{short} has 2 lines but {ref} has 6")
    assert_refused(run(*command, "--ref", short), f"{short} has 2 lines but {ref} has 6")
    assert_refused(run(*command, "--against", tmp_path), "not a model folder")
    assert_refused(run(*command, "--comet", tmp_path), "not the folder of a COMET model")
    assert_refused(run("evaluate", ref, "--ref", ref, "--against", model), "give --src.")
    assert_refused(run("evaluate", ref, "--src", src), "is measured on --ref; give --ref too.")
    for option, value in {"--beam-size": "7", "--device": "cuda", "--compute": "int8"}.items():
        done = run("evaluate", ref, "--ref", ref, option, value)
        assert_refused(done, f"is a file of translations; leave out {option}.")
