"""Greedy and beam search in compiled code, bit-identical to `SingleFrontier` and `BeamFrontier`.

They take about thirty operators, each with a pass over memory or a few microseconds of Python, for
what `advance` of `native.c` does in one call: log-softmax, the k best of each row, and the choice
among them. Log-probabilities are never written.

If the model's steps are compiled code too, and only `Forbid` processes their logits, one call takes
several steps, up to one that has news: Python would take half of a small model's step.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import Tensor

from dragoman.decode.beam import Beam
from dragoman.decode.greedy import Greedy
from dragoman.decode.open_rows import OpenRows
from dragoman.decode.processors import Forbid, Processor
from dragoman.decode.protocol import Advance, Earlier, Frontier, Limits, Strategy
from dragoman.decode.score import length_penalty
from dragoman.errors import InputError
from dragoman.nn.cpu.native import Ahead, Functions, address, fields, native
from dragoman.nn.cpu.ranking import IMPOSSIBLE

BROKEN = (
    "The model gives NaN or infinite logits, so its weights are broken; use another checkpoint."
)
_CALLS, _NUMBERS = ctypes.c_long(0), count(1)


class _Beams(ctypes.Structure):
    """`struct Beams` of `native.c`."""

    _fields_ = fields("log_probs best_scores greatest_penalty slots most", "width best eos")


class _Chosen(ctypes.Structure):
    """`struct Chosen` of `native.c`."""

    _fields_ = fields("tokens parents values log_probs scores ended open")


class _Written(ctypes.Structure):
    """`struct Written` of `native.c`."""

    _fields_ = fields(
        "reads slot_of row_of origins tokens chosen_tokens chosen_parents values chosen_values"
        " forbidden",
        "num_forbidden",
    )


def call_back() -> None:
    """Make every search that is in compiled code return after its current step."""
    _CALLS.value = next(_NUMBERS)


class CompiledFrontier:
    """The open hypotheses of every sentence, as in `BeamFrontier`; greedy is a beam of 1."""

    def __init__(self, functions: Functions, strategy: Beam | Greedy, limits: Limits) -> None:
        count, width = len(limits.max_B), strategy.beam_size
        self._functions, self._width, self._eos_id = functions, width, limits.eos_id
        self._alpha, self._length = strategy.length_penalty, 0
        self._max_B = limits.max_B.to(torch.int64, copy=True)
        # All by `new_`, with explicit dtypes: compiled code gets addresses, and the caller may have
        # changed PyTorch's default dtype and device.
        self._numbers = self._max_B.new_empty(0, dtype=torch.float32)
        self._log_probs_BW = self._numbers.new_full((count, width), IMPOSSIBLE)
        self._log_probs_BW[:, 0] = 0.0
        self._best_Bn = self._numbers.new_full((count, strategy.n_best), IMPOSSIBLE)
        penalties = [length_penalty(length, self._alpha) for length in self._max_B.tolist()]
        self._greatest_penalty_B = self._numbers.new_tensor(penalties)
        self._slots_B = torch.full_like(self._max_B, width)
        self._lay_out()

    def _lay_out(self) -> None:
        """Allocate the memory of a step for the remaining sentences."""
        count = len(self._max_B)
        parts = self._log_probs_BW, self._best_Bn, self._greatest_penalty_B
        self._beams = _Beams(
            *(part.data_ptr() for part in (*parts, self._slots_B, self._max_B)),
            *(self._width, self._best_Bn.shape[1], self._eos_id),
        )
        rows = count * self._width
        chosen = (
            *self._max_B.new_empty(2, rows),
            *self._numbers.new_empty(3, rows),
            *self._max_B.new_empty(2, rows, dtype=torch.bool),
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
        self._values_Nk = self._numbers

    @property
    def open_N(self) -> Tensor:
        """True where a slot has a hypothesis."""
        return (self._log_probs_BW > IMPOSSIBLE).flatten()

    def advance(self, logits_MV: Tensor) -> Advance | None:
        """Fill the open slots, given the logits of all rows or of the open ones alone.

        Returns None if an open row has no probabilities. The next step overwrites the result.
        """
        self._length += 1
        logits_MV = logits_MV.float().contiguous()
        rows, columns = logits_MV.shape
        count, k = self._log_probs_BW.numel(), self._candidates(columns)
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

    def _candidates(self, columns: int) -> int:
        """Return how many tokens of a row are ranked; allocate their memory if needed."""
        shape = self._log_probs_BW.numel(), min(self._width, columns)
        if self._values_Nk.shape != shape:
            self._values_Nk = self._numbers.new_empty(shape)
            self._tokens_Nk = self._max_B.new_empty(shape)
        return shape[1]

    def write_ahead(
        self, ahead: Ahead, last_M: Tensor, open_rows: OpenRows, forbidden_F: Tensor, calls: int
    ) -> Advance:
        """Advance by as many steps as compiled code can take by itself, one or more.

        The open rows read `last_M` first. `calls` identifies the last `call_back` that was seen;
        after another one, no further step is taken. Raises InputError if the model gives NaN.
        """
        rows, most, k = self._log_probs_BW.numel(), ahead.most, self._candidates(ahead.columns)
        last_M, slots_M, places_N = last_M.clone(), open_rows.slots_M, open_rows.places_N
        forbidden_F = forbidden_F[(forbidden_F >= 0) & (forbidden_F < ahead.columns)]
        tokens_NS, parents_N = self._max_B.new_empty(rows, most), self._max_B.new_empty(rows)
        values_NS, chosen_values_SN = self._numbers.new_empty(2, most * rows)
        chosen_SN = self._max_B.new_empty(2, most, rows)
        written = _Written(
            *(part.data_ptr() for part in (last_M, slots_M, places_N, parents_N, tokens_NS)),
            *(part.data_ptr() for part in (*chosen_SN, values_NS, chosen_values_SN, forbidden_F)),
            len(forbidden_F),
        )
        lengths = range(self._length + 1, self._length + 1 + most)
        penalties = (length_penalty(length, self._alpha) for length in lengths)
        steps = self._functions.write_ahead(
            *(ctypes.byref(part) for part in (ahead, written, self._beams, self._chosen)),
            *(self._values_Nk.data_ptr(), self._tokens_Nk.data_ptr(), k, len(self._max_B)),
            *(lengths.start, (ctypes.c_float * most)(*penalties), ctypes.byref(_CALLS)),
            calls,
        )
        if not steps:
            raise InputError(BROKEN)
        self._length += abs(steps)
        earlier = Earlier(
            tokens_NS=tokens_NS[:, : abs(steps) - 1],
            parents_N=parents_N if self._width > 1 else None,
            token_log_probs_NS=values_NS.view(rows, most)[:, : abs(steps) - 1],
        )
        return replace(self._advance if steps < 0 else self._quiet, earlier=earlier)

    def keep(self, sentences_K: Tensor) -> None:
        """Keep only these of the current sentences."""
        self._log_probs_BW = self._log_probs_BW[sentences_K]
        self._best_Bn = self._best_Bn[sentences_K]
        self._greatest_penalty_B = self._greatest_penalty_B[sentences_K]
        self._slots_B, self._max_B = self._slots_B[sentences_K], self._max_B[sentences_K]
        self._lay_out()


@runtime_checkable
class Foreseeable(Protocol):
    """A model whose steps compiled code can take."""

    def ahead(self, state: Any) -> Ahead | None:  # noqa: ANN401 -- each has its own kind
        """Return what the next steps need; None unless it can take two or more by itself."""


class StepsAhead:
    """The next steps of a search in one call, as many as compiled code can take by itself."""

    def __init__(self, model: object, frontier: object, processors: Sequence[Processor]) -> None:
        """Take none if the model, the frontier or a processor is of an unknown kind."""
        forbids = [each for each in processors if type(each) is Forbid]
        plain = len(forbids) == len(processors)
        self._model = model if plain and isinstance(model, Foreseeable) else None
        self._frontier = frontier if isinstance(frontier, CompiledFrontier) else None
        forbidden = [token for forbid in forbids for token in forbid.ids]
        self._forbidden_F = torch.tensor(forbidden, dtype=torch.int64, device="cpu")
        self._calls = _CALLS.value

    def advance(self, state: object, open_rows: OpenRows, last_N: Tensor) -> Advance | None:
        """Take the steps; return None if the next step must be taken alone.

        A `call_back` counts from the start of the previous step on, because `withdrawn` may have
        been asked before it came.
        """
        calls, self._calls = self._calls, _CALLS.value
        if self._model is None or self._frontier is None:
            return None
        ahead = self._model.ahead(state)
        if ahead is None:
            return None
        last_M = open_rows.of(last_N)
        return self._frontier.write_ahead(ahead, last_M, open_rows, self._forbidden_F, calls)


def begin(strategy: Strategy, limits: Limits) -> CompiledFrontier | Frontier:
    """Start a search; greedy search and beams use compiled code if it is available."""
    functions = native() if limits.max_B.device.type == "cpu" else None
    if functions is not None and type(strategy) in {Beam, Greedy}:
        return CompiledFrontier(functions, cast("Beam | Greedy", strategy), limits)
    return strategy.begin(limits.max_B, limits.eos_id)
