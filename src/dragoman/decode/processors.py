"""Processors: changes to the logits before they become probabilities.

A processor is any callable ``(logits_NV, prefixes) -> logits_NV``; it may write into the logits it
gets. Those here are small frozen values. An option at its neutral setting adds none to the list.
What a processor forbids has probability 0, and the rest shares the whole: log-probabilities of a
search are those of the processed distribution.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.decode.ranking import IMPOSSIBLE

__all__ = ["Forbid", "MinimumLength", "Prefixes", "Processor", "relative_lengths"]


@dataclass(frozen=True, slots=True)
class Prefixes:
    """What the rows have generated so far."""

    ids_NL: Tensor
    """The L tokens chosen so far, without bos. Rows that are closed hold leftovers."""
    sentence_N: Tensor
    """The sentence that each row belongs to, counted in the batch that was given to the search."""


Processor = Callable[[Tensor, Prefixes], Tensor]


@dataclass(frozen=True, slots=True)
class Forbid:
    """These tokens are never generated: padding, bos and the unknown token as a rule."""

    ids: tuple[int, ...]
    """The ids to forbid."""

    def __call__(self, logits_NV: Tensor, prefixes: Prefixes) -> Tensor:  # noqa: ARG002 -- the seam's
        """Set the columns to minus infinity."""
        for token in self.ids:  # a column each: an index tensor would have to move to the device
            logits_NV[:, token] = IMPOSSIBLE
        return logits_NV


class MinimumLength:
    """No end of sentence before sentence b has ``min_B[b]`` tokens (eos not counted)."""

    def __init__(self, min_B: Tensor, eos_id: int) -> None:
        self._min_B = min_B
        self._eos_id = eos_id
        self._longest = int(min_B.max()) if len(min_B) else 0

    def __call__(self, logits_NV: Tensor, prefixes: Prefixes) -> Tensor:
        """Forbid eos in the rows that are too short."""
        length = prefixes.ids_NL.shape[1]
        if length < self._longest:
            short_N = self._min_B[prefixes.sentence_N] > length
            logits_NV[:, self._eos_id].masked_fill_(short_N, IMPOSSIBLE)
        return logits_NV


def relative_lengths(src_lengths_B: Tensor, *, factor: float, constant: int) -> Tensor:
    """``floor(factor * src_length) + constant``, at least 0: a limit of each sentence's own.

    Serves minimum and maximum lengths; ``factor = 0`` makes an absolute one.
    """
    scaled_B = (src_lengths_B.double() * factor).floor().long()
    return torch.clamp(scaled_B + constant, min=0)
