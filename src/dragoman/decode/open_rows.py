"""The rows of a search that a step computes, where model and frontier can leave others out."""

import torch
from torch import Tensor

from dragoman.decode.protocol import Closing, Prefixes, State, Uneven


def places_among(open_N: Tensor, count: int) -> Tensor:
    """Where each row is among `count` that a step computes, all or the open; of others, any."""
    computed_N = torch.ones_like(open_N) if count == len(open_N) else open_N
    return (computed_N.cumsum(0) - 1).clamp_(min=0)


class OpenRows:
    """The rows that a step computes: all, or M of them that are open, where model and frontier can.

    Slots of a beam close as their hypotheses end, and only one is open at first.
    """

    def __init__(self, frontier: object, state: State, open_N: Tensor) -> None:
        self._state = state
        uneven = isinstance(state, Uneven) and state.uneven
        self._closing = frontier if uneven and isinstance(frontier, Closing) else None
        self.slots_M = self.places_N = torch.arange(len(open_N), device=open_N.device)
        """The rows that the step computes, and the place of each row among them; of others, any."""
        if self._closing is not None:
            self.select(self.slots_M)

    def of(self, x_NX: Tensor) -> Tensor:
        """Take these rows of all."""
        return x_NX if len(x_NX) == len(self.slots_M) else x_NX[self.slots_M]

    def prefixes(self, every: Prefixes) -> Prefixes:
        """Take the prefixes of these rows."""
        return Prefixes(self.of(every.ids_NL), self.of(every.sentence_N))

    def select(self, parents_N: Tensor | None) -> None:
        """Make row `n` the continuation of row `parents_N[n]` of those before."""
        if parents_N is None:
            return
        before_N, every_N = self.places_N, torch.arange(len(parents_N), device=parents_N.device)
        self.slots_M = self.places_N = every_N
        if self._closing is not None:
            self.slots_M = self._closing.open_N.nonzero().flatten()
            self.places_N = torch.zeros_like(every_N)
            self.places_N[self.slots_M] = every_N[: len(self.slots_M)]
        self._state.select(before_N[self.of(parents_N)])
