"""Tiny models of every format, written once by an earlier version, answer what they did then."""

import json
from pathlib import Path

import pytest

import dragoman
from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.translate.translator import Translator

HERE = Path(__file__).parent
MODELS, ANSWERS = HERE / "models", HERE / "answers.json"
LINES = [
    "mup lor taken bivo seli.", "lor mup, bivo!", "ran seli taken mupi lorun?", "bivo bivo bivo",
    "taki ranu selo mup lor.", "seli ran taken", "mupi lorun bivon ran", "", "selo, taki; lor!",
    "ranu mupi", "lor lor taken taken seli ran bivo mup taki selo", "taken.",
]  # fmt: skip
"""Words that mean nothing."""
NAMES = sorted(path.name for path in MODELS.iterdir()) if MODELS.exists() else []


def answers(folder: Path) -> list[str]:
    """What a model answers each line: a translation, a continuation, or what each label gets."""
    model = dragoman.load(folder, device="cpu")
    if isinstance(model, Translator):
        return [found.text for found in model.translate(LINES)]
    if isinstance(model, Generator):
        return [found.text for found in model.generate([*filter(None, LINES)])]
    return [
        " ".join(f"{label} {part:.3f}" for label, part in found.probabilities.items())
        for found in model.classify(LINES)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_an_earlier_version_answers_the_same(name: str) -> None:
    """Text by text; the answers to different lines differ, so that something is compared."""
    expected = json.loads(ANSWERS.read_text(encoding="utf-8"))[name]
    assert answers(MODELS / name) == expected
    assert len(set(expected)) > 2


def test_every_format_is_here() -> None:
    """Both forms of our tokenizers, 8 bits, other libraries' folders, and one taken over."""
    configs = [json.loads((MODELS / name / "config.json").read_bytes()) for name in NAMES]
    assert {config.get("format") for config in configs} == {None, 2, 3, 4}
    assert {config.get("model_type") for config in configs} == {None, "marian", "llama", "bert"}
    assert sum(path.stat().st_size for path in MODELS.rglob("*")) < 300_000
