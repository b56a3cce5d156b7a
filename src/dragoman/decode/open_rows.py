"""The rows of a search that a step computes, if model and frontier can leave others out."""

import torch
from torch import Tensor

from dragoman.decode.protocol import Closing, Prefixes, State, Uneven


def places_among(open_N: Tensor, count: int) -> Tensor:
    """Return each row's index among the `count` computed rows, all or the open; else any."""
    computed_N = torch.ones_like(open_N) if count == len(open_N) else open_N
    return (computed_N.cumsum(0) - 1).clamp_(min=0)


class OpenRows:
    """The rows that a step computes: the M open ones if model and frontier can, otherwise all.

    Slots of a beam close as their hypotheses end; at first only one is open.
    """

    def __init__(self, frontier: object, state: State, open_N: Tensor) -> None:
        self._state = state
        uneven = isinstance(state, Uneven) and state.uneven
        self._closing = frontier if uneven and isinstance(frontier, Closing) else None
        self.slots_M = self.places_N = torch.arange(len(open_N), device=open_N.device)
        """The rows that the step computes, and each row's index among them (any for other rows)."""
        if self._closing is not None:
            self.select(self.slots_M)

    def of(self, x_NX: Tensor) -> Tensor:
        """Select the computed rows."""
        return x_NX if len(x_NX) == len(self.slots_M) else x_NX[self.slots_M]

    def prefixes(self, every: Prefixes) -> Prefixes:
        """Select the prefixes of the computed rows."""
        return Prefixes(self.of(every.ids_NL), self.of(every.sentence_N))

    def select(self, parents_N: Tensor | None) -> None:
        """Make row `n` the continuation of the previous row `parents_N[n]`."""
        if parents_N is None:
            return
        before_N, every_N = self.places_N, torch.arange(len(parents_N), device=parents_N.device)
        self.slots_M = self.places_N = every_N
        if self._closing is not None:
            self.slots_M = self._closing.open_N.nonzero().flatten()
            self.places_N = torch.zeros_like(every_N)
            self.places_N[self.slots_M] = every_N[: len(self.slots_M)]
        self._state.select(before_N[self.of(parents_N)])
