"""From a model folder to the object that does what its model can do."""

from pathlib import Path
from typing import Any

from dragoman.errors import InputError
from dragoman.nn import Precision
from dragoman.tasks.folders import read_folder
from dragoman.tasks.reading import ENDS
from dragoman.tasks.task import model_kind, task_of

__all__ = ["load"]


def load(path: str | Path, *, device: str = "auto", precision: Precision = "fp32") -> Any:  # noqa: ANN401 -- the folder decides
    """Read a model folder and return its Translator, Generator, Classifier or Tagger.

    The folder decides which, so that a type checker cannot know; ``Translator.load`` and the others
    promise theirs. ``device`` is "cpu", "cuda" or "auto" (an accelerator where there is one).
    Raises InputError when there is no such folder or it cannot be used, and says why.
    """
    folder = read_folder(path, device=device)
    task = task_of(folder.config.model)
    if task is None or task.load is None:
        end = ENDS[model_kind(folder.config.model)]
        raise InputError(f"{folder.path} holds an encoder that {end}.")
    return task.load(folder, precision)
