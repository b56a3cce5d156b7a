"""A model that writes, as its task holds it: frozen to decode, and whole for what reads it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, Self, TypeVar

import torch

from dragoman.decode import Model
from dragoman.engine import can_freeze, freeze, frozen_bytes
from dragoman.engine.products import Lend, can_pack
from dragoman.folder.opening import ModelFolder
from dragoman.folder.rereading import reread, weights_of
from dragoman.models import DecoderOnly, DecoderOnlyConfig, EncoderDecoder, EncoderDecoderConfig
from dragoman.models.build import build_on_meta
from dragoman.nn import Arithmetic, evaluation_view
from dragoman.process import give_memory_back
from dragoman.tasks.task import model_of
from dragoman.train.device import choose_device

MOST_LANES = 4
"""Python holds its lock for a fifth to a quarter of a small model's step."""
GLIBC_LARGEST = (32 << 20) - (64 << 10)
"""Bytes of a block just below glibc's `DEFAULT_MMAP_THRESHOLD_MAX`."""
CONFIGS = {EncoderDecoder: EncoderDecoderConfig, DecoderOnly: DecoderOnlyConfig}
WriterT = TypeVar("WriterT", EncoderDecoder, DecoderOnly)


@dataclass(frozen=True, slots=True)
class Held(Generic[WriterT]):
    """A model in evaluation mode."""

    frozen: Model[Any]
    """What decodes, in some arithmetic."""
    shape: WriterT
    """The model, perhaps without memory: what it has, and how large."""
    whole: Callable[[], WriterT]
    """Returns the model, which is read now if it was let go of after it had been frozen; raises
    FolderFault where the folder has another one by then, or a damaged one."""

    @property
    def device(self) -> torch.device:
        """Where it decodes: on the CPU, or where the model is that decodes itself."""
        if self.frozen is self.shape:
            return self.shape.output.weight.device
        return torch.device("cpu")

    def lanes(self) -> int:
        """How many batches run side by side: frozen, one for each core, if Python keeps up."""
        return 1 if self.frozen is self.shape else min(MOST_LANES, torch.get_num_threads())

    @classmethod
    def of(cls, model: WriterT, arithmetic: Arithmetic) -> Self:
        """Hold a model that is there; it keeps its own mode and hooks."""
        view = evaluation_view(model)
        return cls(freeze(view, arithmetic), view, lambda: view)

    @classmethod
    def read(cls, folder: ModelFolder, kind: type[WriterT], arithmetic: Arithmetic) -> Self:
        """Read the model of a folder, of which no more is kept than decoding needs, if it can be.

        Raises InputError for a folder with a model of another kind.
        """
        there = "model" in vars(folder)  # was read already
        lends = isinstance(folder.config.model, CONFIGS[kind]) and folder.lends
        if there or not lends or folder.device.type != "cpu" or not can_pack(arithmetic):
            return cls.of(model_of(folder, kind), arithmetic)

        def make(model: Any, lend: Lend) -> tuple[WriterT, Model[Any]] | None:  # noqa: ANN401 -- of `kind`
            frozen = freeze(model, arithmetic, lend)
            return None if frozen is model else (model, frozen)

        if (made := folder.lend_to(make)) is None:
            return cls.of(model_of(folder, kind), arithmetic)
        _give_back()
        (shape, frozen), weights = made, weights_of(folder)

        @cache
        def whole() -> WriterT:
            with reread(folder, weights):
                return evaluation_view(model_of(folder, kind))

        return cls(frozen, shape, whole)


def held_bytes(folder: ModelFolder, arithmetic: Arithmetic, device: str) -> int:
    """Count the bytes of the weights that are kept of a folder when it is loaded to answer.

    What is not frozen has them in float32 in any arithmetic. Raises InputError for no such device.
    """
    model = build_on_meta(folder.config.model)
    whole = sum(each.nbytes for each in model.parameters())
    if not isinstance(model, EncoderDecoder | DecoderOnly) or choose_device(device).type != "cpu":
        return whole
    if not can_freeze(model, arithmetic):
        return whole
    return frozen_bytes(model, arithmetic) + (0 if folder.lends else whole)


def _give_back() -> None:
    """Return to the system what was freed, and let later blocks come from memory that is kept.

    glibc would keep the first (84 MiB after OPUS-MT's shape), but map and unmap what is as large as
    the results of products, each time with a page fault for every 4 KiB, until a block of its
    greatest threshold has been freed once.
    """
    give_memory_back()
    torch.empty(GLIBC_LARGEST, dtype=torch.uint8)
