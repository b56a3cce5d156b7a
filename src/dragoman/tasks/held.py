"""A generating model as its task keeps it: frozen for decoding, and whole for other uses."""

from collections.abc import Callable
from contextlib import AbstractContextManager
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
from dragoman.nn.cpu.products import computing
from dragoman.process import give_memory_back
from dragoman.tasks.task import model_of
from dragoman.train.device import choose_device

MOST_LANES = 4
"""Most batches side by side: Python holds its lock for 20 to 25 % of a small model's step."""
GLIBC_LARGEST = (32 << 20) - (64 << 10)
"""Bytes of a block just below glibc's `DEFAULT_MMAP_THRESHOLD_MAX`."""
CONFIGS = {EncoderDecoder: EncoderDecoderConfig, DecoderOnly: DecoderOnlyConfig}
WriterT = TypeVar("WriterT", EncoderDecoder, DecoderOnly)


@dataclass(frozen=True, slots=True)
class Held(Generic[WriterT]):
    """A model in evaluation mode."""

    frozen: Model[Any]
    """Decodes, in some arithmetic."""
    shape: WriterT
    """The model, perhaps without memory: its structure and sizes."""
    whole: Callable[[], WriterT]
    """Returns the model, which is read now if it was released after it had been frozen; raises
    FolderFault if the folder contains another one by then, or a damaged one."""
    arithmetic: Arithmetic = "fp32"
    """That of `frozen` and of `inference`."""

    @property
    def device(self) -> torch.device:
        """Where it decodes: on the CPU, or on the device of a model that decodes by itself."""
        if self.frozen is self.shape:
            return self.shape.output.weight.device
        return torch.device("cpu")

    def inference(self) -> AbstractContextManager[None]:
        """Return the context in which the model computes."""
        return computing(self.device, self.arithmetic)

    def lanes(self) -> int:
        """Return how many batches run side by side: if frozen, one per core, if Python keeps up."""
        return 1 if self.frozen is self.shape else min(MOST_LANES, torch.get_num_threads())

    @classmethod
    def of(cls, model: WriterT, arithmetic: Arithmetic) -> Self:
        """Hold an existing model; it keeps its own mode and hooks."""
        view = evaluation_view(model)
        return cls(freeze(view, arithmetic), view, lambda: view, arithmetic)

    @classmethod
    def read(cls, folder: ModelFolder, kind: type[WriterT], arithmetic: Arithmetic) -> Self:
        """Read the model of a folder, keeping only what decoding needs if possible.

        Raises InputError for a folder with a model of another kind.
        """
        there = "model" in vars(folder)  # it was read already
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

        return cls(frozen, shape, whole, arithmetic)


def held_bytes(folder: ModelFolder, arithmetic: Arithmetic, device: str) -> int:
    """Count the bytes of the weights that are kept when a folder is loaded to answer.

    Weights that are not frozen are in float32 in any arithmetic. Raises InputError for an unknown
    device.
    """
    model = build_on_meta(folder.config.model)
    whole = sum(each.nbytes for each in model.parameters())
    if not isinstance(model, EncoderDecoder | DecoderOnly) or choose_device(device).type != "cpu":
        return whole
    if not can_freeze(model, arithmetic):
        return whole
    return frozen_bytes(model, arithmetic) + (0 if folder.lends else whole)


def _give_back() -> None:
    """Return freed memory to the system, and let later blocks come from memory that is kept.

    glibc would keep the freed memory (84 MiB after OPUS-MT's shape), but map and unmap blocks as
    large as the results of products, each time with a page fault for every 4 KiB, until a block of
    its greatest threshold has been freed once.
    """
    give_memory_back()
    torch.empty(GLIBC_LARGEST, dtype=torch.uint8)
