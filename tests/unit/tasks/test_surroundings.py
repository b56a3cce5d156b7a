"""What the program around a model sets in torch changes no answer."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.tasks.readers import CLASSIFY, MASKED, TAG, save_reader
from tests.unit.tasks.tiny import random_lines, save_translator
from tests.unit.tasks.tiny_generator import save_generator

import dragoman
from dragoman.folder.opening import open_folder
from dragoman.lens.choices import Choices
from dragoman.lens.inspecting import inspect_folder
from dragoman.nn.cpu.cross_entropy import cross_entropy
from dragoman.nn.position.bias import ALiBiBias
from dragoman.tasks.translate.translator import Translator

LINES = random_lines(3, longest=6)
PAIRS = [*zip(LINES, reversed(LINES), strict=True)]


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Set torch's default dtype inside the block."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


Surrounding = Callable[[], AbstractContextManager[object]]
DTYPES = [partial(default_dtype, torch.bfloat16), partial(default_dtype, torch.float64)]
SURROUNDINGS = [*DTYPES, partial(torch.device, "meta"), torch.inference_mode]
of_dtypes = pytest.mark.parametrize("surrounding", DTYPES)


def translated(translator: Translator) -> object:
    """Return translations, what they align, and scores."""
    found = translator.aligning().translate(LINES) + translator.translate(LINES)
    return [(each, each.alignment().links) for each in found], translator.score(PAIRS)


@pytest.mark.parametrize("surrounding", SURROUNDINGS)
@pytest.mark.parametrize(
    ("save", "ask"),
    [
        (save_translator, translated),
        (save_generator, lambda model: (model.generate(LINES, seed=1), model.score(PAIRS))),
        (partial(save_reader, head=CLASSIFY), lambda model: model.classify(LINES)),
        (partial(save_reader, head=TAG), lambda model: model.tag(LINES)),
        (partial(save_reader, head=MASKED), lambda model: model.embed(LINES).tolist()),
    ],
    ids=["translate", "generate", "classify", "tag", "embed"],
)
def test_answers_are_those_without_it(
    tmp_path: Path,
    save: Callable[[Path], Path],
    ask: Callable[[Any], object],
    surrounding: Surrounding,
) -> None:
    """Neither a default dtype or device, nor inference mode, at loading or at a call."""
    folder = save(tmp_path / "model")
    expected = ask(dragoman.load(folder, device="cpu"))
    with surrounding():
        assert ask(dragoman.load(folder, device="cpu")) == expected


@of_dtypes
def test_inspection_is_that_without_it(tmp_path: Path, surrounding: Surrounding) -> None:
    """Probabilities to the last digit."""
    folder = save_translator(tmp_path / "model")
    expected = inspect_folder(open_folder(folder), LINES[0], Choices()).to_dict()
    with surrounding():
        assert inspect_folder(open_folder(folder), LINES[0], Choices()).to_dict() == expected


@of_dtypes
def test_losses_and_biases_are_those_without_it(surrounding: Surrounding) -> None:
    """Compiled code writes float32; slopes of ALiBi that are no powers of two are not rounded."""
    logits_MV, targets_M, bias = torch.randn(4, 10), torch.arange(4), ALiBiBias(12)
    expected = cross_entropy(logits_MV, targets_M, 0.1), bias(torch.arange(3)[None])
    with surrounding():
        found = cross_entropy(logits_MV, targets_M, 0.1), bias(torch.arange(3)[None])
    assert found[0].dtype is torch.float32
    assert all(map(torch.equal, found, expected))
