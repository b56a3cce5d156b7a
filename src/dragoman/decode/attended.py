"""What hypotheses attend to during the search.

A step has one row of weights for each computed row. The weights stay in order of arrival; when
beams are reordered, only the indices of each hypothesis's rows are.
"""

from dataclasses import dataclass
from typing import Generic, Self, cast

import torch
from torch import Tensor

from dragoman.decode.protocol import Attending, Head, Looking, Model, StateT


class AttendedRows:
    """The weights of all steps (R, S), and the indices of those of each of the N rows (N, L)."""

    def __init__(self, state: Attending, frontier: object, like_N: Tensor) -> None:
        self._state = state
        self._looking = frontier if isinstance(frontier, Looking) else None
        self._weights_RS = torch.empty(0)
        self._count = 0
        self._places_NL = like_N.new_empty((len(like_N), 0))

    @classmethod
    def of(cls, state: object, frontier: object, like_N: Tensor) -> Self | None:
        """Return an empty store, also shown to the frontier; None if the state is not watched."""
        watched = isinstance(state, Attending) and state.attended() is not None
        return cls(cast("Attending", state), frontier, like_N) if watched else None

    def add(self, place_N: Tensor) -> None:
        """Store the weights (M, S) of a step; row `n` has those at `place_N[n]`."""
        weights_MS = cast("Tensor", self._state.attended())
        if self._looking is not None:
            self._looking.look(weights_MS)
        first, self._count = self._count, self._count + len(weights_MS)
        if self._count > len(self._weights_RS):
            more_RS = weights_MS.new_empty(
                max(self._count, 32 * len(weights_MS)), weights_MS.shape[1]
            )
            self._weights_RS = torch.cat([self._weights_RS[:first], more_RS])
        self._weights_RS[first : self._count] = weights_MS
        self._places_NL = torch.cat([self._places_NL, (place_N + first)[:, None]], dim=1)

    def select(self, rows_N: Tensor) -> None:
        """Replace row `n` with the old row `rows_N[n]`."""
        self._places_NL = self._places_NL.index_select(0, rows_N)

    def weights(self, rows_E: Tensor) -> Tensor:
        """Return the weights (E, L, S) of some rows, one for each step."""
        return self._weights_RS[self._places_NL[rows_E]]


@dataclass(frozen=True, slots=True)
class Attentive(Generic[StateT]):
    """A model whose states are watched, if they can be."""

    model: Model[StateT]
    head: Head

    def start(self, src_BS: Tensor, beam_size: int) -> StateT:
        """Start the model and watch its state."""
        state = self.model.start(src_BS, beam_size)
        attending: object = state
        if isinstance(attending, Attending):
            attending.watch(self.head.layer, self.head.head)
        return state

    def step(self, ids_N: Tensor, state: StateT) -> Tensor:
        """Append a token to each row, and return the logits of the next."""
        return self.model.step(ids_N, state)
