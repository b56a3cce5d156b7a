"""Going on for ever with a bounded context.

A model that has learnt from L tokens at a time is at its best within L, and one with learned
positions knows no place beyond. ``Rolling`` lets any model go on: when its context is full it
forgets the earlier half and reads the later half anew, from the first position on. So a token costs
at most one more pass over tokens that are read side by side, and memory stays the same.
"""

from dataclasses import dataclass
from typing import Generic

import torch
from torch import Tensor

from dragoman.decode.protocol import Model, StateT
from dragoman.wording import counted

__all__ = ["Rolling", "RollingState"]


@dataclass(slots=True)
class RollingState(Generic[StateT]):
    """The model's own state and the tokens that it stands for."""

    inner: StateT
    """What the model remembers."""
    ids_NL: Tensor
    """The tokens of the context that the model has read."""

    def select(self, rows_N: Tensor) -> None:
        """Let row n become what row ``rows_N[n]`` was."""
        self.inner.select(rows_N)
        self.ids_NL = self.ids_NL[rows_N]


class Rolling(Generic[StateT]):
    """A model that continues prompts, and never sees more than ``context`` tokens at once."""

    def __init__(self, model: Model[StateT], context: int) -> None:
        if context < 2:
            raise ValueError(f"a context of {counted(context, 'token')} cannot be halved")
        self._model = model
        self._context = context

    def start(self, src_BS: Tensor, beam_size: int) -> RollingState[StateT]:
        """Read the prompts, all but their last token, from the left no more than fits."""
        prompt_BS = src_BS[:, -self._context :]
        ids_NL = prompt_BS[:, :-1].repeat_interleave(beam_size, dim=0)
        return RollingState(self._model.start(prompt_BS, beam_size), ids_NL)

    def step(self, ids_N: Tensor, state: RollingState[StateT]) -> Tensor:
        """Append a token to each row and return the logits (N, V) of the next."""
        if state.ids_NL.shape[1] == self._context:
            state.ids_NL = state.ids_NL[:, -(self._context // 2) :]
            prompt_NL = torch.cat([state.ids_NL, ids_N[:, None]], dim=1)
            state.inner = self._model.start(prompt_NL, 1)
        state.ids_NL = torch.cat([state.ids_NL, ids_N[:, None]], dim=1)
        return self._model.step(ids_N, state.inner)
