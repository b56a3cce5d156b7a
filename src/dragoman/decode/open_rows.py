"""The rows of a search that a step computes, where model and frontier can leave others out."""

import torch
from torch import Tensor

from dragoman.decode.protocol import Closing, Prefixes, State, Uneven
from dragoman.nn.cpu.ranking import top_tokens


def top_of_open(log_probs_MV: Tensor, k: int, open_N: Tensor) -> tuple[Tensor, Tensor]:
    """The k best of each of the N rows, as `top_tokens`, from all of them or the open ones alone.

    The rows that are left out are zero.
    """
    values_Mk, tokens_Mk = top_tokens(log_probs_MV, k)
    if len(log_probs_MV) == len(open_N):
        return values_Mk, tokens_Mk
    places_M, shape = open_N.nonzero().flatten(), (len(open_N), values_Mk.shape[1])
    values_Nk = values_Mk.new_zeros(shape).index_copy_(0, places_M, values_Mk)
    return values_Nk, tokens_Mk.new_zeros(shape).index_copy_(0, places_M, tokens_Mk)


class OpenRows:
    """The rows that a step computes: all, or M of them that are open, where model and frontier can.

    Slots of a beam close as their hypotheses end, and only one is open at first.
    """

    def __init__(self, frontier: object, state: State, open_N: Tensor) -> None:
        self._state = state
        uneven = isinstance(state, Uneven) and state.uneven
        self._closing = frontier if uneven and isinstance(frontier, Closing) else None
        self._rows_M: Tensor | None = None
        self._count, self._device = len(open_N), open_N.device
        if self._closing is not None:
            self.select(torch.arange(self._count, device=open_N.device))

    @property
    def places_N(self) -> Tensor:
        """The place of each row among those that the step computes; of others, any."""
        if self._rows_M is None:
            return torch.arange(self._count, device=self._device)
        places_N = self._rows_M.new_zeros(self._count)
        places_N[self._rows_M] = torch.arange(len(self._rows_M), device=self._device)
        return places_N

    @property
    def slots_M(self) -> Tensor:
        """The rows that the step computes."""
        return self.of(torch.arange(self._count, device=self._device))

    def of(self, x_NX: Tensor) -> Tensor:
        """Take these rows of all."""
        return x_NX if self._rows_M is None else x_NX[self._rows_M]

    def prefixes(self, every: Prefixes) -> Prefixes:
        """Take the prefixes of these rows."""
        return Prefixes(self.of(every.ids_NL), self.of(every.sentence_N))

    def select(self, parents_N: Tensor | None) -> None:
        """Make row `n` the continuation of row `parents_N[n]` of those before."""
        if parents_N is None:
            return
        places_N = None if self._rows_M is None else self.places_N
        self._rows_M, self._count = None, len(parents_N)
        if self._closing is not None:
            open_N = self._closing.open_N
            self._rows_M = None if bool(open_N.all()) else open_N.nonzero().flatten()
        parents_M = self.of(parents_N)
        if places_N is not None:
            parents_M = places_N[parents_M]
        self._state.select(parents_M)
