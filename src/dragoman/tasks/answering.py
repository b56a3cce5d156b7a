"""What `dragoman.load` returns, whatever its task: texts in, answers out, by one scheduler."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, NoReturn, Self, TypeVar

from dragoman.decode import Course, Request, Scheduler
from dragoman.decoding import Precision
from dragoman.errors import InputError
from dragoman.folder.opening import ModelFolder
from dragoman.nn import Arithmetic
from dragoman.nn.cpu.products import cpu_by_default
from dragoman.tasks.folders import arithmetic_of, read_folder
from dragoman.tasks.lines import as_texts, check_texts, several, windows

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Options = TypeVar("Options")


class Answering(ABC, Generic[Options, Answer]):
    """An object that answers texts.

    Threads may share it: requests made at the same time are computed in the same batches, and an
    answer does not depend on the other texts (in fp32, bit for bit, if `rows_are_independent`; a
    sample depends on the text's place). The model stays on its device and may be in training, also
    in another thread: its mode never changes. A subclass sets `scheduler`.
    """

    scheduler: Scheduler[Any, Any]
    """Computes the answers of all callers."""

    @classmethod
    @abstractmethod
    def of(cls, folder: ModelFolder, precision: Arithmetic = "fp32") -> Self:
        """Create one from an open folder. Raises InputError for a model of another task."""

    @classmethod
    @cpu_by_default()
    def load(
        cls,
        path: str | Path | ModelFolder,
        *,
        device: str = "auto",
        precision: Precision = "float32",
        as_published: bool = False,
    ) -> Self:
        """Read a model folder, like `dragoman.load`. Raises InputError for other tasks' models."""
        arithmetic = arithmetic_of(precision, device)
        folder = read_folder(path, device=device, as_published=as_published)
        if folder.config.task is not None:
            raise InputError(
                f'{path} holds a model of the task "{folder.config.task}"; load it by '
                "dragoman.load, after importing that module"
            )
        return cls.of(folder, arithmetic)

    def __copy__(self) -> Self:
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"A {type(self).__name__} belongs to its process and can be neither pickled nor copied "
            "deeply; load its folder in each process, and let threads share one."
        )

    @abstractmethod
    def courses(self, texts: Sequence[str], options: Options) -> Sequence[Course[Any, Any, Answer]]:
        """Return how each text is answered. Raises InputError for options that do not fit."""

    @abstractmethod
    def _chosen(self, options: Options | None) -> Options:
        """Return all options of a call, given those that it sets."""

    def submit(self, texts: Iterable[str], options: Options | None = None) -> Request[Answer]:
        """Request the answers to texts: they arrive as they are finished, and can be withdrawn."""
        chosen = self._chosen(options)
        return self.scheduler.submit(self.courses(as_texts(several(texts)), chosen))


def in_windows(
    items: Iterable[Item],
    submit: Callable[[list[Item]], Request[Answer]],
    window: int,
    check: Callable[[list[Item], int], None] = check_texts,
) -> Iterator[Answer]:
    """Yield the answers to an endless stream of items, in order; windows bound the memory.

    `check` raises an error for an invalid item, given the number of items before the window.
    """
    before = 0
    for taken in windows(items, window):
        check(taken, before)
        before += len(taken)
        yield from submit(taken).in_order()
