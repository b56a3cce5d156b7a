"""What `dragoman shortlist` prints, writes and refuses, and what translating makes of it."""

import shutil
from pathlib import Path

import pytest
from tests.system.cli.command import Run, write
from tests.system.cli.test_wrong_input import assert_refused
from tests.unit.tasks.tiny import random_lines, save_translator
from tests.unit.tasks.tiny_generator import save_generator


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model folder of its own, which a test may write to."""
    return save_translator(tmp_path / "model")


def test_it_is_learnt_and_used(run: Run, model: Path, tmp_path: Path) -> None:
    """The folder has one file more, and a translation only listed tokens."""
    lines = random_lines(30)
    src, tgt = write(tmp_path / "src", lines), write(tmp_path / "tgt", lines[::-1])
    file = write(tmp_path / "in", lines[:4])
    assert_refused(run("translate", model, file, "--shortlist"), "has no shortlist", "--src FILE")
    learnt = run("shortlist", model, "--src", src, "--tgt", tgt, "--size", "2")
    assert (learnt.code, learnt.out) == (0, "")
    assert "shortlist.safetensors is written: a sentence of these texts has" in learnt.err
    plain, listed = (run("translate", model, file, *more) for more in ((), ("--shortlist",)))
    assert plain.code == listed.code == 0
    assert len(listed.out.splitlines()) == 4
    assert run("convert", model, tmp_path / "small", "--to", "int8").code == 0
    assert (tmp_path / "small" / "shortlist.safetensors").exists()


def test_what_cannot_be_learnt_from_is_refused(run: Run, model: Path, tmp_path: Path) -> None:
    """Each with one sentence, and nothing is written."""
    src = write(tmp_path / "src", random_lines(3))
    short, empty = write(tmp_path / "short", ["a"]), write(tmp_path / "empty", ["", "", ""])
    assert_refused(run("shortlist", model, "--src", src, "--tgt", short), "3 lines", "has 1")
    assert_refused(run("shortlist", model, "--src", src, "--tgt", empty), "no pair has text")
    options = ("--src", src, "--tgt", src)
    assert_refused(
        run("shortlist", model, *options, "--size", "0"), "--size is 0; it must be at least 1"
    )
    other = save_generator(tmp_path / "generator")
    assert_refused(run("shortlist", other, *options), "decoder-only, which continues texts")
    shutil.rmtree(other)
    assert_refused(run("shortlist", other, *options), "no model folder")
    assert not (model / "shortlist.safetensors").exists()
