"""Wrong input: exit code 2, one sentence that says what and where, no traceback."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from tests.system.cli.command import LINES, Done, Run, in_own_process, write
from tests.unit.tasks.readers import CLASSIFY, TAG, save_reader


def assert_refused(done: Done, *words: str) -> None:
    """Exit code 2, one sentence on standard error with these words in it, nothing else."""
    assert (done.code, done.out) == (2, ""), done.err
    sentence = done.err.removesuffix("\n")
    assert "\n" not in sentence
    assert sentence.startswith("dragoman: ")
    assert sentence.endswith((".", "?"))
    for word in words:
        assert word in sentence


def test_a_missing_model_is_told_with_the_nearest(run: Run, model: Path, tmp_path: Path) -> None:
    """Every verb that takes a model says so alike."""
    file = write(tmp_path / "in", LINES)
    wrong = model.parent / "en-hz"
    calls: list[list[str | Path]] = [
        ["translate", wrong, file],
        ["evaluate", wrong, "--src", file, "--ref", file],
        ["score", wrong, "--src", file, "--tgt", file],
        ["inspect", wrong],
    ]
    for arguments in calls:
        assert_refused(run(*arguments), "There is no model folder", "did you mean", "en-zh")
    assert_refused(run("inspect", file), "is a file")


def test_removed_pairs_do_not_replace_the_corpus(run: Run, tmp_path: Path) -> None:
    """Nothing is read or written before that is known."""
    corpus = write(tmp_path / "a.tsv", ["same here now\tsame here now"])
    before = corpus.read_bytes()
    done = run("data", "clean", "--tsv", corpus, "--out", tmp_path / "b", "--keep-removed", corpus)
    assert_refused(done, "is a file to read; give another --keep-removed")
    assert corpus.read_bytes() == before
    assert not (tmp_path / "b").exists()


def test_a_warning_is_one_line(model: Path, tmp_path: Path) -> None:
    """Weights of an older version have no hash; names of folders and files command no terminal."""
    older = shutil.copytree(model, tmp_path / "\x1b[2Jolder")
    (older / "\x1b]0;title\x07").touch()
    config = json.loads((older / "config.json").read_text(encoding="utf-8"))
    del config["weights_sha256"], config["model_sha256"]
    (older / "config.json").write_text(json.dumps(config | {"format": 1}), encoding="utf-8")
    done = in_own_process("inspect", older)
    assert (done.code, done.err.count("\n")) == (0, 1), done.err
    assert done.err.startswith(
        f"dragoman: {tmp_path}/\\x1b[2Jolder was written by an older dragoman"
    )
    assert "\x1b" not in done.err + done.out


def test_missing_files_and_directories_are_told(run: Run, model: Path, tmp_path: Path) -> None:
    """By their names, before the model is loaded."""
    there, missing = write(tmp_path / "in", LINES), tmp_path / "missing"
    assert_refused(run("translate", model, missing), "There is no file", "missing")
    assert_refused(run("translate", model, ""), "The text is empty")
    assert_refused(run("translate", model, tmp_path), "is a directory")
    assert_refused(run("evaluate", model, "--src", there, "--ref", missing), "There is no file")
    assert_refused(run("evaluate", model, "--src", tmp_path, "--ref", there), "is a directory")
    assert_refused(run("evaluate", missing, "--ref", there), "model folder or file of translations")
    against = run("evaluate", model, "--src", there, "--ref", there, "--against", missing)
    assert_refused(against, f"There is no model folder or file of translations {missing}.")
    assert_refused(run("score", model, "--src", missing, "--tgt", there), "There is no file")
    assert_refused(run("translate", model, there, "--output", tmp_path), "Cannot write")


def test_a_model_that_may_not_be_read_is_told(
    run: Run, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its path, once."""
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(model))  # noqa: ARG005
    assert_refused(run("inspect", model), f"dragoman: MODEL: path '{model}' is not readable")


@pytest.mark.parametrize("verb", ["classify", "tag"])
def test_the_model_of_another_task_is_told_first(
    run: Run, model: Path, tmp_path: Path, verb: str
) -> None:
    """Before the file, which may be missing, as `generate` and `evaluate` do; so is no model."""
    done = run(verb, model, tmp_path / "missing")
    assert_refused(done, "holds a model of the kind encoder-decoder, which translates")
    assert_refused(run(verb, tmp_path / "none", tmp_path / "missing"), "none")
    reader = save_reader(tmp_path / "reader", CLASSIFY if verb == "classify" else TAG)
    assert_refused(run(verb, reader, tmp_path / "missing"), "There is no file", "missing")
    assert_refused(run("translate", reader, tmp_path / "missing"), f"(dragoman {verb})")


def test_bytes_that_are_no_text_are_told_with_their_line(
    run: Run, model: Path, tmp_path: Path
) -> None:
    """In pairs each one; elsewhere where there is nothing else, in files and standard input."""
    bad, worse = tmp_path / "bad", tmp_path / "worse"
    bad.write_bytes(b"the cat\nthe \xff\n")
    worse.write_bytes(b"the \xff\n" * 2)
    good = write(tmp_path / "good", LINES[:2])
    assert_refused(run("translate", model, worse), "worse line 1 is not UTF-8")
    assert_refused(run("translate", model, good, "--prefixes", bad), "bad line 2 is not UTF-8")
    assert_refused(run("evaluate", model, "--src", good, "--ref", bad), "bad line 2 is not UTF-8")
    assert_refused(run("score", model, "--src", bad, "--tgt", good), "bad line 2 is not UTF-8")
    piped = run("translate", model, stdin=worse.read_bytes())
    assert_refused(piped, "standard input line 1 is not UTF-8")


def test_the_output_must_not_be_the_input(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its name, and by way of standard input; the lines are still there afterwards."""
    file, other = write(tmp_path / "in", LINES), tmp_path / "link"
    other.symlink_to(file)
    before = file.read_bytes()
    assert_refused(run("translate", model, file, "--output", other), "is the file to read")
    test = write(tmp_path / "src", LINES), write(tmp_path / "ref", LINES)
    for hyp in test:
        done = run("evaluate", model, "--src", test[0], "--ref", test[1], "--hyp", hyp)
        assert_refused(done, "is the file to read", "--hyp")
    with file.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert_refused(run("translate", model, "--output", file), "is the file to read")
    assert {path.read_bytes() for path in (file, *test)} == {before}


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_the_output_must_not_be_a_part_of_the_model(
    run: Run, model: Path, tmp_path: Path, name: str
) -> None:
    """Under whatever name; other files may stand beside them."""
    file, other = write(tmp_path / "in", LINES[:1]), tmp_path / "link"
    other.symlink_to(model / name)
    before = other.read_bytes()
    for output in (model / name, other):
        calls: tuple[tuple[str | Path, ...], ...] = (
            ("translate", model, file, "--output"),
            ("evaluate", model, "--src", file, "--ref", file, "--hyp"),
            ("inspect", model, "the cat", "--html"),
            ("inspect", model, "the cat", "--png"),
        )
        for call in calls:
            assert_refused(run(*call, output), "is a part of the model", str(call[-1]))
    assert other.read_bytes() == before
    beside = model / f"lines beside {name}"
    assert run("translate", model, file, "--output", beside).code == 0
    beside.unlink()


def test_an_output_that_cannot_be_written_is_told_at_once(
    run: Run, model: Path, tmp_path: Path
) -> None:
    """A missing folder before the work is done, a name of a compressed file instead of a lie."""
    file, nowhere = write(tmp_path / "in", LINES), tmp_path / "nowhere" / "out"
    for verb in ("translate", "classify", "tag"):  # before they look at the model
        assert_refused(run(verb, model, file, "--output", nowhere), "there is no folder")
    done = run("evaluate", model, "--src", file, "--ref", file, "--hyp", nowhere)
    assert_refused(done, "there is no folder", "--hyp")
    assert_refused(run("translate", model, file, "--output", tmp_path), "it is a folder")
    too_long = tmp_path / ("x" * 300)
    assert_refused(run("translate", model, file, "--output", too_long), "File name too long")
    compressed = tmp_path / "out.gz"
    assert_refused(run("translate", model, file, "--output", compressed), "without .gz")
    assert not compressed.exists()


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("film.srt", ["Any text."]),
        ("talk", ["1", "00:00:01,000 --> 00:00:02,000", "The cat."]),
        ("page.txt", ["<!DOCTYPE html>", "<p>The cat.</p>"]),
    ],
)
def test_a_document_is_no_lines(
    run: Run, model: Path, tmp_path: Path, name: str, lines: list[str]
) -> None:
    """By its name or its beginning, from a pipe too, before anything is printed; unless asked."""
    file = write(tmp_path / name, lines)
    assert_refused(run("translate", model, file), "add --plain")
    done = run("translate", model, file, "--plain")
    assert (done.code, len(done.lines)) == (0, len(lines))
    good = write(tmp_path / "good", LINES[:1] * len(lines))
    for src, ref in ((file, good), (good, file)):
        call: list[str | Path] = ["evaluate", model, "--src", src, "--ref", ref]
        assert_refused(run(*call), f"{file} is a", "add --plain")
        assert run(*call, "--plain").code == 0
    if "." not in name:
        piped = run("translate", model, stdin=file.read_bytes())
        assert_refused(piped, "standard input is a subtitle file")


def test_what_cannot_be_trained_is_told_before_any_advice(
    run: Run, model: Path, tmp_path: Path
) -> None:
    """A sentence about the folder, the texts or the device, and none about sizes and scores."""
    src, tgt = (write(tmp_path / name, ["a b", "b c", "c a"] * 10) for name in ("a.en", "a.de"))
    below = tmp_path / "a.en" / "run"
    pair: list[str | Path] = ["train", "--src", src, "--tgt"]
    device: list[str | Path] = ["--out", tmp_path / "run", "train.device=tpu"]
    assert_refused(run(*pair, tgt), "give --out")
    assert_refused(run(*pair, src, "--out", tmp_path / "run"), "the same file")
    assert_refused(run(*pair, tgt, "--out", src), "is not the folder of a training run")
    assert_refused(run(*pair, tgt, "--out", below), f"Cannot write to {below}")
    assert_refused(run(*pair, tgt, *device), 'not on "tpu"')
    assert_refused(run(*pair, tgt, "--from", model, "--out", model), f"{model} exists")
