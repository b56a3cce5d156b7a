"""From a model folder to the object of its task."""

from pathlib import Path
from typing import Any

from dragoman.decoding import Precision
from dragoman.errors import InputError
from dragoman.folder.opening import ModelFolder
from dragoman.nn.cpu.products import cpu_by_default
from dragoman.tasks.embedder import Embedder
from dragoman.tasks.folders import arithmetic_of, read_folder
from dragoman.tasks.task import does, task_of


@cpu_by_default()
def load(
    path: str | Path | ModelFolder,
    *,
    device: str = "auto",
    precision: Precision = "float32",
    as_published: bool = False,
) -> Any:  # noqa: ANN401 -- the folder decides
    """Read a model folder and return its Translator, Generator, Classifier, Tagger or Embedder.

    The folder decides which, so a type checker cannot know; `Translator.load` and the others return
    their own type. `device` is "cpu", "cuda" or "auto" (an accelerator if there is one);
    `precision` is that of the products, "float32", "bfloat16", "int8" or "auto" (the fastest that
    is safe on this machine). `as_published` makes a translator of Hugging Face return the texts of
    its class: lines are not split into sentences, and degenerate translations are not searched
    again. Raises InputError with the reason if there is no such folder or it cannot be used.
    """
    arithmetic = arithmetic_of(precision, device)
    folder = read_folder(path, device=device, as_published=as_published)
    task = task_of(folder.config)
    if task is None:  # an encoder without a head
        return Embedder.of(folder, arithmetic)
    if task.load is None:
        raise InputError(f"{folder.path} holds a model that {does(folder.config)}.")
    return task.load(folder, arithmetic)
