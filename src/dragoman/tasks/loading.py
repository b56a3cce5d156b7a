"""From a model folder to the object that does what its model can do."""

from pathlib import Path
from typing import Any

from dragoman.errors import InputError
from dragoman.models import DecoderOnly, EncoderDecoder
from dragoman.nn import Precision
from dragoman.tasks.folders import read_folder
from dragoman.tasks.generation import Generator
from dragoman.tasks.translation import Translator

__all__ = ["load"]


def load(path: str | Path, *, device: str = "auto", precision: Precision = "fp32") -> Any:  # noqa: ANN401 -- the folder decides
    """Read a model folder and return what it holds: a Translator or a Generator.

    The folder decides which, so that a type checker cannot know; ``Translator.load`` and
    ``Generator.load`` promise theirs. ``device`` is "cpu", "cuda" or "auto" (an accelerator where
    there is one). Raises InputError when there is no such folder or it cannot be used, and says
    why.
    """
    folder = read_folder(path, device=device)
    match folder.model:
        case EncoderDecoder():
            return Translator.of(folder, precision)
        case DecoderOnly():
            return Generator.of(folder, precision)
    raise InputError(f"{path} holds an encoder, which is not loaded so.")
