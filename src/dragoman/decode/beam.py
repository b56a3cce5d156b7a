"""Beam search (Graves 2012; Sutskever et al. 2014, section 3.2), with exact early stopping.

Each sentence has W slots for hypotheses. A step ranks every continuation of every open hypothesis
by log-probability and takes one for each open slot. A continuation that is complete (it took
the end-of-sentence token, or reached the sentence's length limit) leaves the beam with its score,
normalised for length, and its slot closes. So W = 1 is greedy search, and a beam as wide as the
number of leaves of the tree finds every sequence: exhaustive search.

A sentence is decided as soon as no open hypothesis can still enter its n best. Log-probabilities
only fall, and the length penalty is greatest at the length limit, so an open hypothesis of
log-probability l can never score more than `l / lp(max)`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from dragoman.decode.open_rows import places_among
from dragoman.decode.protocol import Advance
from dragoman.decode.score import length_penalty
from dragoman.errors import InputError
from dragoman.nn.cpu.ranking import IMPOSSIBLE, top_tokens
from dragoman.ranges import Count, NonNegative, check_ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Beam:
    """The `beam_size` best prefixes at each step, the `n_best` best sequences at the end."""

    beam_size: Count = 5
    """Slots for hypotheses of each sentence, W."""
    length_penalty: NonNegative = 0.6
    """The exponent alpha of the score: 0 compares sums, greater values favour longer outputs."""
    n_best: Count = 1
    """Hypotheses to return for each sentence, best first."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.n_best > self.beam_size:
            raise InputError(
                f"n_best is {self.n_best} with beam_size {self.beam_size}; "
                "it must be at most beam_size"
            )

    def begin(self, max_B: Tensor, eos_id: int) -> "BeamFrontier":
        """Start a search of B sentences of at most `max_B` tokens each."""
        return BeamFrontier(self, max_B, eos_id)


class BeamFrontier:
    """The open hypotheses of every sentence, and the scores of its best complete ones."""

    def __init__(self, beam: Beam, max_B: Tensor, eos_id: int) -> None:
        num_sentences, width = max_B.shape[0], beam.beam_size
        self._num_candidates = width
        self._eos_id = eos_id
        self._max_B = max_B
        self._penalty: Callable[[int], float] = partial(length_penalty, alpha=beam.length_penalty)
        self._length = 0
        # A closed slot has log-probability minus infinity. At first only the empty prefix is open.
        shape_BW = num_sentences, width
        self._log_probs_BW = max_B.new_full(shape_BW, IMPOSSIBLE, dtype=torch.float32)
        self._log_probs_BW[:, 0] = 0.0
        self._greatest_penalty_B = self._log_probs_BW.new_tensor(
            [self._penalty(length) for length in max_B.tolist()]
        )
        self._slots_B = torch.full_like(max_B, width)
        self._best_Bn = self._log_probs_BW.new_full((num_sentences, beam.n_best), IMPOSSIBLE)
        self._ranks_W = torch.arange(width, device=max_B.device)
        self._first_rows_B = torch.arange(num_sentences, device=max_B.device) * width
        # For subclasses: what hypotheses have besides their score, and the most they can have.
        self._worth_BW = self._most_worth_B = self._log_probs_BW.new_zeros(1)

    def advance(self, log_probs_MV: Tensor) -> Advance:
        """Rank the continuations of all open hypotheses (M rows or more); fill the open slots."""
        self._length += 1
        log_probs_BW, values_BW, tokens_BW, parents_BW = self._rank(log_probs_MV)
        tokens_BW, open_BW, ended_BW = self._choose(log_probs_BW > IMPOSSIBLE, tokens_BW)
        scores_BW = log_probs_BW / self._penalty(self._length)

        self._log_probs_BW = log_probs_BW.masked_fill(~open_BW, IMPOSSIBLE)
        new_BW = (scores_BW + self._worth_BW).masked_fill(~ended_BW, IMPOSSIBLE)
        self._best_Bn = torch.cat([self._best_Bn, new_BW], 1).topk(self._best_Bn.shape[1]).values
        return Advance(
            tokens_N=tokens_BW.flatten(),
            parents_N=parents_BW.flatten(),
            token_log_probs_N=values_BW.flatten(),
            log_probs_N=log_probs_BW.flatten(),
            scores_N=scores_BW.flatten(),
            ended_N=ended_BW.flatten(),
            open_N=(open_BW & self._undecided_B()[:, None]).flatten(),
        )

    @property
    def open_N(self) -> Tensor:
        """True where a slot has a hypothesis."""
        return (self._log_probs_BW > IMPOSSIBLE).flatten()

    def _choose(self, possible_BW: Tensor, tokens_BW: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the tokens, which of them get a slot, and which are complete and close theirs."""
        chosen_BW = possible_BW & (self._ranks_W < self._slots_B[:, None])
        complete_BW = (tokens_BW == self._eos_id) | (self._max_B <= self._length)[:, None]
        ended_BW = chosen_BW & complete_BW
        self._slots_B = self._slots_B - ended_BW.sum(1)
        return tokens_BW, chosen_BW & ~complete_BW, ended_BW

    def _undecided_B(self) -> Tensor:
        """Return whether an open hypothesis can still enter the n best of a sentence."""
        reachable_B = self._log_probs_BW.amax(1) / self._greatest_penalty_B + self._most_worth_B
        return reachable_B > self._best_Bn[:, -1]

    def _rank(self, log_probs_MV: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return each sentence's W best continuations: sums, last log-probs, tokens, parent rows.

        The W best of a sentence are among the W best of each of its rows.
        """
        num_sentences, width = self._log_probs_BW.shape
        vocab_size = log_probs_MV.shape[1]
        count = min(self._num_candidates, vocab_size)
        place_N = places_among(self.open_N, len(log_probs_MV))
        values_Nk, tokens_Nk = (x_Mk[place_N] for x_Mk in top_tokens(log_probs_MV, count))
        sums_BWk = self._log_probs_BW[:, :, None] + values_Nk.view(num_sentences, width, -1)
        # A closed row has no continuation, whatever its logits are, even NaN.
        sums_BWk.masked_fill_((self._log_probs_BW == IMPOSSIBLE)[:, :, None], IMPOSSIBLE)
        sums_BM, tokens_BM = sums_BWk.flatten(1), tokens_Nk.view(num_sentences, -1)
        order_BW = self._order(sums_BM, tokens_BM, vocab_size)
        return (
            sums_BM.gather(1, order_BW),
            values_Nk.view(num_sentences, -1).gather(1, order_BW),
            tokens_BM.gather(1, order_BW),
            self._first_rows_B[:, None] + order_BW // values_Nk.shape[1],
        )

    def _order(self, sums_BM: Tensor, tokens_BM: Tensor, vocab_size: int) -> Tensor:  # noqa: ARG002 -- for subclasses
        """Return the places (B, W) of the W best of each sentence's M continuations."""
        return top_tokens(sums_BM, len(self._ranks_W))[1]

    def keep(self, sentences_K: Tensor) -> None:
        """Keep only these of the current sentences."""
        self._max_B = self._max_B[sentences_K]
        self._greatest_penalty_B = self._greatest_penalty_B[sentences_K]
        self._first_rows_B = self._first_rows_B[: len(sentences_K)]
        self._log_probs_BW = self._log_probs_BW[sentences_K]
        self._slots_B = self._slots_B[sentences_K]
        self._best_Bn = self._best_Bn[sentences_K]
