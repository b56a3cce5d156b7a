"""Strategies that follow one hypothesis per sentence; the simplest is greedy search."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from dragoman.decode.protocol import Advance
from dragoman.decode.score import length_penalty
from dragoman.nn.cpu.ranking import top_tokens
from dragoman.ranges import NonNegative, check_ranges


class Chooser(Protocol):
    """How a row's next token is picked."""

    def choose(self, log_probs_NV: Tensor) -> Tensor:
        """Pick a token (N) for every row."""

    def keep(self, sentences_K: Tensor) -> None:
        """Keep only these of the current sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Greedy:
    """`y_t = argmax_v log p(v | y_<t, x)`; ties go to the lower id. Equal to a beam of 1."""

    length_penalty: NonNegative = 0.6
    """The exponent alpha of the score; it cannot change what is chosen."""

    beam_size = 1
    n_best = 1

    def __post_init__(self) -> None:
        check_ranges(self)

    def begin(self, max_B: Tensor, eos_id: int) -> "SingleFrontier":
        """Start a search of B sentences of at most `max_B` tokens each."""
        return SingleFrontier(max_B, eos_id, self.length_penalty, _MostProbable())


class _MostProbable:
    """Chooses the maximum."""

    def choose(self, log_probs_NV: Tensor) -> Tensor:
        """Pick the first of the maxima of each row."""
        return top_tokens(log_probs_NV, 1)[1][:, 0]

    def keep(self, sentences_K: Tensor) -> None:
        """No per-sentence state."""


class SingleFrontier:
    """One open hypothesis for each sentence."""

    def __init__(self, max_B: Tensor, eos_id: int, alpha: float, chooser: Chooser) -> None:
        self._max_B = max_B
        self._eos_id = eos_id
        self._chooser = chooser
        self._alpha = alpha
        self._log_probs_B = torch.zeros_like(max_B, dtype=torch.float32)
        self._length = 0

    def advance(self, log_probs_NV: Tensor) -> Advance:
        """Append the chosen token to every row."""
        self._length += 1
        tokens_N = self._chooser.choose(log_probs_NV)
        values_N = log_probs_NV.gather(1, tokens_N[:, None])[:, 0]
        self._log_probs_B = self._log_probs_B + values_N
        ended_N = (tokens_N == self._eos_id) | (self._max_B <= self._length)
        return Advance(
            tokens_N=tokens_N,
            parents_N=None,
            token_log_probs_N=values_N,
            log_probs_N=self._log_probs_B,
            scores_N=self._log_probs_B / length_penalty(self._length, self._alpha),
            ended_N=ended_N,
            open_N=~ended_N,
        )

    def keep(self, sentences_K: Tensor) -> None:
        """Keep only these of the current sentences."""
        self._max_B = self._max_B[sentences_K]
        self._log_probs_B = self._log_probs_B[sentences_K]
        self._chooser.keep(sentences_K)
