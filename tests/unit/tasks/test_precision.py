"""One vocabulary of arithmetics, in Python and on the command line."""

from pathlib import Path
from typing import get_args

import pytest
from tests.unit.tasks.tiny import save_translator

import dragoman
from dragoman.decoding import Precision
from dragoman.engine import fastest
from dragoman.tasks.folders import arithmetic_of


@pytest.mark.parametrize("name", get_args(Precision))
def test_each_name_is_an_arithmetic(name: str) -> None:
    """Short and long names are the same; auto is one of them."""
    short = {"float32": "fp32", "bfloat16": "bf16", "auto": fastest("cpu")}
    assert arithmetic_of(name, "cpu") == short.get(name, name)


def test_a_misspelt_precision_is_one_sentence(tmp_path: Path) -> None:
    """It names those that there are before anything is read."""
    with pytest.raises(dragoman.InputError, match=r"'float23'; it must be one of .*float32\?"):
        dragoman.load(tmp_path, precision="float23")  # type: ignore[arg-type]


def test_auto_is_a_precision_of_load(tmp_path: Path) -> None:
    """A translator of the fastest arithmetic answers as one that names it does."""
    folder = save_translator(tmp_path / "model")
    auto, named = (
        dragoman.load(folder, device="cpu", precision=name).translate("the cat sees a dog")
        for name in ("auto", fastest("cpu"))
    )
    assert auto == named
