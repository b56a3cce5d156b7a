"""From a model folder to the object that does what its model can do."""

from pathlib import Path
from typing import Any

from dragoman.models import DecoderOnlyConfig, EncoderDecoderConfig, EncoderOnlyConfig
from dragoman.models.heads import TaggingHead
from dragoman.nn import Precision
from dragoman.tasks.classification import Classifier
from dragoman.tasks.folders import read_folder
from dragoman.tasks.generation import Generator
from dragoman.tasks.tagging import Tagger
from dragoman.tasks.translation import Translator

__all__ = ["load"]


def load(path: str | Path, *, device: str = "auto", precision: Precision = "fp32") -> Any:  # noqa: ANN401 -- the folder decides
    """Read a model folder and return its Translator, Generator, Classifier or Tagger.

    The folder decides which, so that a type checker cannot know; ``Translator.load`` and the others
    promise theirs. ``device`` is "cpu", "cuda" or "auto" (an accelerator where there is one).
    Raises InputError when there is no such folder or it cannot be used, and says why.
    """
    folder = read_folder(path, device=device)
    match folder.config.model:
        case EncoderDecoderConfig():
            return Translator.of(folder, precision)
        case DecoderOnlyConfig():
            return Generator.of(folder, precision)
        case EncoderOnlyConfig(head=TaggingHead()):
            return Tagger.of(folder, precision)
        case EncoderOnlyConfig():
            return Classifier.of(folder, precision)
