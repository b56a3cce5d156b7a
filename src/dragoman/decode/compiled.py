"""Greedy and beam search in compiled code: `BeamFrontier` and `SingleFrontier`, with the same bits.

What they take some thirty operators for, each with a pass over memory or a few microseconds of
Python, `advance` of `native.c` does in one call: log-softmax, the k best of each row, and the
choice among them. Log-probabilities are never written.
"""

import ctypes
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from dragoman.decode.beam import Beam
from dragoman.decode.greedy import Greedy
from dragoman.decode.protocol import Advance, Frontier, Limits, Strategy
from dragoman.decode.score import length_penalty
from dragoman.nn.cpu.native import Functions, address, native
from dragoman.nn.cpu.ranking import IMPOSSIBLE


class _Beams(ctypes.Structure):
    """`struct Beams` of `native.c`."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("log_probs", "best_scores", "greatest_penalty")),
        *((name, ctypes.c_void_p) for name in ("slots", "most")),
        *((name, ctypes.c_long) for name in ("width", "best", "eos")),
    )


class _Chosen(ctypes.Structure):
    """`struct Chosen` of `native.c`."""

    _fields_ = tuple(
        (name, ctypes.c_void_p)
        for name in ("tokens", "parents", "values", "log_probs", "scores", "ended", "open")
    )


class CompiledFrontier:
    """The open hypotheses of every sentence, as `BeamFrontier` has them; greedy is a beam of 1."""

    def __init__(self, functions: Functions, strategy: Beam | Greedy, limits: Limits) -> None:
        count, width = len(limits.max_B), strategy.beam_size
        self._functions, self._width, self._eos_id = functions, width, limits.eos_id
        self._alpha, self._length = strategy.length_penalty, 0
        self._log_probs_BW = torch.full((count, width), IMPOSSIBLE)
        self._log_probs_BW[:, 0] = 0.0
        self._best_Bn = torch.full((count, strategy.n_best), IMPOSSIBLE)
        penalties = [length_penalty(length, self._alpha) for length in limits.max_B.tolist()]
        self._greatest_penalty_B = torch.tensor(penalties)
        self._slots_B = torch.full((count,), width)
        self._max_B = limits.max_B.clone()
        self._lay_out()

    def _lay_out(self) -> None:
        """Make the memory of a step for the sentences that are left."""
        count = len(self._max_B)
        parts = self._log_probs_BW, self._best_Bn, self._greatest_penalty_B
        self._beams = _Beams(
            *(part.data_ptr() for part in (*parts, self._slots_B, self._max_B)),
            *(self._width, self._best_Bn.shape[1], self._eos_id),
        )
        rows = count * self._width
        chosen = (
            *torch.empty(2, rows, dtype=torch.int64),
            *torch.empty(3, rows),
            *torch.empty(2, rows, dtype=torch.bool),
        )
        self._chosen = _Chosen(*(part.data_ptr() for part in chosen))
        tokens_N, parents_N, values_N, log_probs_N, scores_N, ended_N, open_N = chosen
        self._advance = Advance(
            tokens_N=tokens_N,
            parents_N=parents_N if self._width > 1 else None,
            token_log_probs_N=values_N,
            log_probs_N=log_probs_N,
            scores_N=scores_N,
            ended_N=ended_N,
            open_N=open_N,
        )
        self._quiet = replace(self._advance, quiet=True)
        self._values_Nk = torch.empty(0)

    @property
    def open_N(self) -> Tensor:
        """True where a slot has a hypothesis."""
        return (self._log_probs_BW > IMPOSSIBLE).flatten()

    def advance(self, logits_MV: Tensor) -> Advance | None:
        """Fill the open slots, given the logits of all rows or of the open ones alone.

        None where a row that is open has no probabilities. The next step overwrites the result.
        """
        self._length += 1
        logits_MV = logits_MV.float().contiguous()
        rows, columns = logits_MV.shape
        count, k = self._log_probs_BW.numel(), min(self._width, columns)
        if self._values_Nk.shape != (count, k):
            self._values_Nk = torch.empty(count, k)
            self._tokens_Nk = torch.empty(count, k, dtype=torch.int64)
        if rows != count and rows != int(self.open_N.sum()):
            raise ValueError(f"logits of {rows} rows, where {count} or those that are open exist")
        news = self._functions.advance(
            *(ctypes.byref(self._beams), ctypes.byref(self._chosen)),
            *(address(logits_MV, torch.float32, rows, columns), rows < count),
            *(self._values_Nk.data_ptr(), self._tokens_Nk.data_ptr(), k, len(self._max_B)),
            *(columns, self._length, length_penalty(self._length, self._alpha)),
        )
        if news < 0:
            return None
        return self._advance if news else self._quiet

    def keep(self, sentences_K: Tensor) -> None:
        """Keep only these of the present sentences."""
        self._log_probs_BW = self._log_probs_BW[sentences_K]
        self._best_Bn = self._best_Bn[sentences_K]
        self._greatest_penalty_B = self._greatest_penalty_B[sentences_K]
        self._slots_B, self._max_B = self._slots_B[sentences_K], self._max_B[sentences_K]
        self._lay_out()


def begin(strategy: Strategy, limits: Limits) -> CompiledFrontier | Frontier:
    """Start a search: greedy search and beams in compiled code, where there is some."""
    functions = native() if limits.max_B.device.type == "cpu" else None
    known = isinstance(strategy, Beam | Greedy) and type(strategy) in {Beam, Greedy}
    if functions is not None and known:
        return CompiledFrontier(functions, cast("Beam | Greedy", strategy), limits)
    return strategy.begin(limits.max_B, limits.eos_id)
