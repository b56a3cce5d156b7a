"""What a search saw, written down from outside.

``Observed`` is a strategy that asks another one and keeps notes. The loop of decoding does not know
of it, the one that is asked is not changed, so the result is that of the search without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from dragoman.decode import Advance, Beam, Frontier, Greedy, Sample
from dragoman.decode.ranking import top_tokens

__all__ = ["Expansion", "Observed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """One step: what each of the N rows could go on with, and what was chosen."""

    top_log_probs_Nk: Tensor
    """The log-probabilities of the most probable next tokens of each row, best first."""
    top_tokens_Nk: Tensor
    """Those tokens."""
    entropies: tuple[float, ...]
    """Of each row's whole distribution, in nats."""
    tokens: tuple[int, ...]
    """The token that each new row took."""
    parents: tuple[int, ...]
    """The row that it goes on from."""
    log_probs_N: Tensor
    """The sum over each new row's tokens."""
    scores: tuple[float, ...]
    """That sum, normalised for length."""
    ended: tuple[bool, ...]
    """Whether the new row is complete."""
    open: tuple[bool, ...]
    """Whether the search goes on with it."""


@dataclass(slots=True, kw_only=True)
class Observed:
    """A strategy that does what another one does, for a single sentence, and keeps notes."""

    strategy: Beam | Greedy | Sample
    """Who decides."""
    alternatives: int = 5
    """How many of the most probable tokens of each row are noted, at least."""
    eos_id: int = -1
    """The token that completes a hypothesis; known when the search begins."""
    max_length: int = 0
    """Most tokens; known when the search begins."""
    expansions: list[Expansion] = field(default_factory=list)
    """The steps so far."""

    @property
    def beam_size(self) -> int:
        """Rows of the sentence."""
        return self.strategy.beam_size

    @property
    def length_penalty(self) -> float:
        """The exponent of the scores."""
        return self.strategy.length_penalty

    @property
    def n_best(self) -> int:
        """Hypotheses to return."""
        return self.strategy.n_best

    def begin(self, max_B: Tensor, eos_id: int) -> "_ObservedFrontier":
        """Start the search of one sentence."""
        if len(max_B) != 1:
            raise ValueError(f"one search is observed at a time, not {len(max_B)}")
        self.eos_id, self.max_length = eos_id, int(max_B)
        self.expansions.clear()
        return _ObservedFrontier(self.strategy.begin(max_B, eos_id), self)

    def rows_of(self, tokens: Sequence[int]) -> list[int]:
        """The row in which each token of a complete hypothesis was chosen, step by step.

        ``tokens`` are all that were generated, eos among them.
        """
        rows: list[int] = []
        row = 0  # that of the empty prefix; none is continued twice by the same token
        for token, expansion in zip(tokens, self.expansions, strict=False):
            row = list(zip(expansion.parents, expansion.tokens, strict=True)).index((row, token))
            rows.append(row)
        return rows


class _ObservedFrontier:
    """A frontier that is asked, and whose answers are noted."""

    def __init__(self, frontier: Frontier, notes: Observed) -> None:
        self._frontier = frontier
        self._notes = notes

    def advance(self, log_probs_NV: Tensor) -> Advance:
        """Let the other one choose, and note what there was to choose from."""
        wanted = max(self._notes.alternatives, self._notes.beam_size)
        values_Nk, tokens_Nk = top_tokens(log_probs_NV, min(wanted, log_probs_NV.shape[1]))
        entropies_N = torch.special.entr(log_probs_NV.exp()).sum(1)
        advance = self._frontier.advance(log_probs_NV)
        rows = range(len(log_probs_NV))
        parents = rows if advance.parents_N is None else advance.parents_N.tolist()
        self._notes.expansions.append(
            Expansion(
                top_log_probs_Nk=values_Nk.cpu(),
                top_tokens_Nk=tokens_Nk.cpu(),
                entropies=tuple(entropies_N.tolist()),
                tokens=tuple(advance.tokens_N.tolist()),
                parents=tuple(parents),
                log_probs_N=advance.log_probs_N.cpu(),
                scores=tuple(advance.scores_N.tolist()),
                ended=tuple(advance.ended_N.tolist()),
                open=tuple(advance.open_N.tolist()),
            )
        )
        return advance

    def keep(self, sentences_K: Tensor) -> None:
        """Pass it on."""
        self._frontier.keep(sentences_K)
