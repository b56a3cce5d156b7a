"""The two seams of decoding: what a model must be able to do, and what a strategy must.

The loop in ``search`` stands between them and knows nothing else of either. An encoder-decoder, a
decoder-only model, an ensemble and a table in a test are all a ``Model``; greedy search, beam
search and sampling are all a ``Strategy``.

A sentence has ``beam_size`` rows that lie side by side: sentence b owns the rows
``b * beam_size`` to ``(b + 1) * beam_size - 1``. So N = B * beam_size.
"""

from dataclasses import dataclass
from typing import Protocol, TypeVar

from torch import Tensor

__all__ = ["Advance", "Frontier", "Model", "State", "StateT", "Strategy"]


class State(Protocol):
    """What a model remembers of the prefixes that it has read: its caches, for N rows."""

    def select(self, rows_N: Tensor) -> None:
        """Make row i the continuation of the present row ``rows_N[i]``.

        Every group of ``beam_size`` entries names rows of one sentence only. Whole sentences may be
        left out, in which case fewer rows remain; sentences never change their order.
        """


StateT = TypeVar("StateT", bound=State)


class Model(Protocol[StateT]):
    """A model that continues prefixes by one token at a time; its state is of its own kind."""

    def start(self, src_BS: Tensor, beam_size: int) -> StateT:
        """Read the sources (padded ids) and prepare ``beam_size`` empty prefixes for each."""

    def step(self, ids_N: Tensor, state: StateT) -> Tensor:
        """Append one token to every row and return the logits of the next, ``logits_NV``.

        The first call gets the begin-of-sentence id. The caller may write into the result.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """A strategy's decision for one step, one entry for each of the N new rows."""

    tokens_N: Tensor
    """The token that each row takes."""
    parents_N: Tensor | None
    """The row whose prefix it takes; None when every row goes on from itself."""
    token_log_probs_N: Tensor
    """The log-probability of that token."""
    log_probs_N: Tensor
    """The sum over the row's tokens, this one included."""
    scores_N: Tensor
    """That sum, normalised for length."""
    ended_N: Tensor
    """True where the hypothesis is complete with this token: hand it out, the row is free."""
    open_N: Tensor
    """True where the hypothesis goes on. A sentence without such a row is decided."""


class Frontier(Protocol):
    """The open hypotheses of one running search."""

    def advance(self, log_probs_NV: Tensor) -> Advance:
        """Choose the next token of every row from its log-probabilities (float32).

        They lie in memory that the next step overwrites: keep what was chosen, not a view.
        """

    def keep(self, sentences_K: Tensor) -> None:
        """Go on with these of the present sentences only (indices, ascending)."""


class Strategy(Protocol):
    """How to choose among continuations. A value: the state of a search is its frontier."""

    @property
    def beam_size(self) -> int:
        """Rows that each sentence needs."""

    @property
    def n_best(self) -> int:
        """Hypotheses to return for each sentence (fewer where fewer exist)."""

    def begin(self, max_B: Tensor, eos_id: int) -> Frontier:
        """Start a search of B sentences of at most ``max_B`` tokens each."""
