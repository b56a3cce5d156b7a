"""What users may rely on by name, and what importing it costs."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dragoman

PACKAGE = Path(dragoman.__file__).parent

ROOMS_WITH_TORCH = {"decode", "engine", "lens", "models", "nn", "train"}
"""Rooms whose front door may import PyTorch; every other door, and every verb, opens at once."""


def light_modules() -> list[str]:
    """The package, its single files, the doors of the light rooms, and every verb."""
    files = [
        *PACKAGE.glob("*.py"),
        *(d for d in PACKAGE.glob("*/__init__.py") if d.parent.name not in ROOMS_WITH_TORCH),
        *PACKAGE.glob("cli/*.py"),
    ]
    names = {
        ".".join(("dragoman", *file.relative_to(PACKAGE).with_suffix("").parts)) for file in files
    }
    names = {name.removesuffix(".__init__") for name in names}
    return sorted(names - {"dragoman.__main__", "dragoman.evaluate"})


def test_the_public_names_are_these() -> None:
    """A name that appears or goes is a decision: change this list and the changelog with it."""
    assert dragoman.__all__ == [
        "Alignment",
        "Classification",
        "Classifier",
        "Decoding",
        "DragomanError",
        "Embedder",
        "Embedding",
        "Generation",
        "Generator",
        "Glossary",
        "InputError",
        "Scored",
        "TaggedSpan",
        "TaggedWord",
        "Tagger",
        "Tagging",
        "Translation",
        "Translator",
        "__version__",
        "load",
        "prepare_process",
        "train_model",
    ]
    assert set(dragoman.__all__) <= set(dir(dragoman))


@pytest.mark.parametrize("name", dragoman.__all__)
def test_every_public_name_is_there(name: str) -> None:
    """Also those that are fetched from their room when first used."""
    assert getattr(dragoman, name) is not None


def test_an_unknown_name_is_the_usual_error() -> None:
    """The lazy names do not hide a typing mistake."""
    with pytest.raises(AttributeError, match="module 'dragoman' has no attribute 'laod'"):
        dragoman.laod  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", sorted(d.parent.name for d in PACKAGE.glob("*/__init__.py")))
def test_what_a_room_offers_is_there(name: str) -> None:
    """Every name in a room's __all__ can be fetched from the room."""
    room = import_module(f"dragoman.{name}")
    offered = getattr(room, "__all__", [])
    assert [public for public in offered if not hasattr(room, public)] == []


EACH_ALONE = """
import importlib, os, sys

failed = 0
for name in sys.argv[1:]:
    if os.fork() == 0:
        importlib.import_module(name)
        loaded = {"torch", "matplotlib", "sacrebleu", "tokenizers"} & set(sys.modules)
        sys.exit(f"{name} loads {loaded}" if loaded else 0)
    failed |= os.wait()[1]
sys.exit(failed != 0)
"""


def test_importing_a_light_module_loads_no_engine() -> None:
    """`import dragoman` and `dragoman --help` answer at once: PyTorch and friends stay asleep."""
    command = [sys.executable, "-c", EACH_ALONE, *light_modules()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
