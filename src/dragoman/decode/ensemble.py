"""Ensembles: several models that share a vocabulary decode as one.

The probability of a token is the mean of its probabilities under the models,

    log p(v | y_<t, x) = log (1 / M) sum_m p_m(v | y_<t, x)

computed from log-probabilities without underflow. It is a distribution again, and no single
model can exclude a token, as it can if log-probabilities are averaged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.decode.protocol import Attending, Model, State


def mean_log_probs(logits: Sequence[Tensor]) -> Tensor:
    """Return the log of the mean of the distributions (..., V) of the logits, in float32.

    `log sum_m exp(log p_m) - log M`; rows are not mixed, so neighbours do not change a row.
    """
    log_probs = torch.stack([F.log_softmax(each, -1, dtype=torch.float32) for each in logits])
    return log_probs.logsumexp(0) - math.log(len(logits))


@dataclass(frozen=True, slots=True)
class EnsembleState:
    """The state of each model."""

    states: tuple[State, ...]

    def watch(self, layer: int, head: int | None) -> None:
        """Keep the weights of a head of the first model, if its state can."""
        first = self.states[0]
        if isinstance(first, Attending):
            first.watch(layer, head)

    def attended(self) -> Tensor | None:
        """Return the first model's weights of the last step."""
        first = self.states[0]
        return first.attended() if isinstance(first, Attending) else None

    def select(self, rows_N: Tensor) -> None:
        """Replace row n with the old row `rows_N[n]`, for every model."""
        for state in self.states:
            state.select(rows_N)


class Ensemble:
    """Several models as one, for any strategy; their states may be of different kinds."""

    def __init__(self, models: Sequence[Model[Any]]) -> None:
        self._models = tuple(models)

    def start(self, src_BS: Tensor, beam_size: int) -> EnsembleState:
        """Let every model read the sources."""
        return EnsembleState(tuple(model.start(src_BS, beam_size) for model in self._models))

    def step(self, ids_N: Tensor, state: EnsembleState) -> Tensor:
        """Append a token to each row; return the log-probabilities (N, V) of the next."""
        pairs = zip(self._models, state.states, strict=True)
        return mean_log_probs([model.step(ids_N, each) for model, each in pairs])
