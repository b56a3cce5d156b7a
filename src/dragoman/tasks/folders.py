"""From a model folder to the object of its task: the model on its device, and its tokenizers."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypeVar, cast, get_args

from torch import Tensor

from dragoman.decoding import Precision
from dragoman.engine import fastest
from dragoman.errors import InputError, did_you_mean
from dragoman.models.adapters import base_of, merge_adapter
from dragoman.models.build import Model
from dragoman.models.folder import FolderConfig, load_model
from dragoman.nn import Arithmetic
from dragoman.tasks.task import task_of
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.device import choose_device
from dragoman.train.tokenizers import tokenizers_of

ModelT = TypeVar("ModelT", bound=Model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A model folder that was read: the model in evaluation mode, and its tokenizers.

    `src_tokenizer` is of what the model reads, `tgt_tokenizer` of what it writes: the same object
    where there is one.
    """

    path: Path
    model: Model
    config: FolderConfig
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    as_published: bool = False
    """Whether to answer only as the publisher's class does: a line is one text, searched once."""

    @property
    def does(self) -> str:
        """What its model does, after "a model that"."""
        task = task_of(self.config)
        return "embeds texts (dragoman embed)" if task is None else task.does

    def model_of(self, variant: type[ModelT]) -> ModelT:
        """Return the model if it is of a variant. Raises InputError for another one."""
        if not isinstance(self.model, variant):
            kind = self.config.model.kind
            raise InputError(f"{self.path} holds a model of the kind {kind}, which {self.does}.")
        return self.model


def read_folder(path: str | Path, *, device: str, as_published: bool = False) -> Folder:
    """Read a model folder and bring the model to "cpu", "cuda" or, with "auto", the best there is.

    Raises InputError when there is no such folder or device, the folder cannot be used, or it has
    no publisher for `as_published`; TypeError for what is not a path.
    """
    if not isinstance(path, str | PathLike):
        raise TypeError(f"The model folder is {path!r:.40}; give a str or a Path.")
    base = base_of(Path(path))
    folder = base or Path(path)
    model, config = load_model(folder)
    if as_published and config.published is None:
        raise InputError(
            f"{path} is not a model of Hugging Face, so nothing is as published; leave out "
            "--as-published."
        )
    if base is not None:
        merge_adapter(Path(path), model, config)
    src_tokenizer, tgt_tokenizer = tokenizers_of(folder, config)
    return Folder(
        path=folder,
        model=model.to(choose_device(device)),
        config=config,
        src_tokenizer=src_tokenizer,
        tgt_tokenizer=tgt_tokenizer,
        as_published=as_published,
    )


class Loadable(ABC):
    """An object that answers by the model of a folder."""

    @classmethod
    @abstractmethod
    def of(cls, folder: Folder, precision: Arithmetic = "fp32") -> Self:
        """Make one of a folder that was read. Raises InputError for a model of another task."""

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        device: str = "auto",
        precision: Precision = "float32",
        as_published: bool = False,
    ) -> Self:
        """Read a model folder, as `dragoman.load`. Raises InputError for another task's model."""
        arithmetic = arithmetic_of(precision, device)
        folder = read_folder(path, device=device, as_published=as_published)
        if folder.config.task is not None:
            raise InputError(
                f'{path} holds a model of the task "{folder.config.task}"; load it by '
                "dragoman.load, after importing that module"
            )
        return cls.of(folder, arithmetic)


def check_vocabulary(side: str, tokenizer: Tokenizer, matrix: Tensor) -> None:
    """Raise InputError when a tokenizer has pieces that the model has no row for."""
    if len(matrix) < tokenizer.vocab_size:
        raise InputError(
            f"The {side} tokenizer has {tokenizer.vocab_size} pieces and the model knows "
            f"{len(matrix)}; they do not belong together: take both from one folder."
        )


def arithmetic_of(precision: str, device: str) -> Arithmetic:
    """The arithmetic of a name in `Precision` on a device. Raises InputError for another name."""
    if precision not in get_args(Precision):
        raise InputError(
            f"precision is {precision!r}; it must be one of {', '.join(get_args(Precision))}"
            f"{did_you_mean(precision, get_args(Precision))}"
        )
    if precision == "auto":
        return fastest(device)
    names: dict[str, Arithmetic] = {"float32": "fp32", "bfloat16": "bf16", "int8": "int8"}
    return names.get(precision) or cast("Arithmetic", precision)


def load(
    path: str | Path,
    *,
    device: str = "auto",
    precision: Precision = "float32",
    as_published: bool = False,
) -> Any:  # noqa: ANN401 -- the folder decides
    """Read a model folder and return its Translator, Generator, Classifier, Tagger or Embedder.

    The folder decides which, so that a type checker cannot know; `Translator.load` and the others
    promise theirs. `device` is "cpu", "cuda" or "auto" (an accelerator where there is one);
    `precision` is that of the products, "float32", "bfloat16", "int8" or "auto" (the fastest that
    is safe on this machine). `as_published` has a translator of Hugging Face return the texts of
    its class: lines are not split into sentences, and degenerate translations not searched again.
    Raises InputError when there is no such folder or it cannot be used, and says why.
    """
    arithmetic = arithmetic_of(precision, device)
    folder = read_folder(path, device=device, as_published=as_published)
    task = task_of(folder.config)
    if task is None:  # an encoder without a head
        from dragoman.tasks.embedder import Embedder

        return Embedder.of(folder, arithmetic)
    if task.load is None:
        raise InputError(f"{folder.path} holds a model that {folder.does}.")
    return task.load(folder, arithmetic)
