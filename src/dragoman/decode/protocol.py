"""What decoding asks of a model and of a strategy, and the values that pass between them.

The loop in `search` connects them and knows nothing else of either. An encoder-decoder, a
decoder-only model, an ensemble and a table in a test are all a `Model`; greedy search, beam
search and sampling are all a `Strategy`.

A sentence has `beam_size` adjacent rows: sentence b owns the rows
`b * beam_size` to `(b + 1) * beam_size - 1`. So N = B * beam_size. Where a state is `Uneven` and a
frontier is `Closing`, the model steps the M open rows of these alone.
"""

from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from dragoman.wording import counted


class State(Protocol):
    """What a model remembers of the prefixes that it has read: its caches, for N rows."""

    def select(self, rows_N: Tensor) -> None:
        """Make row i the continuation of the present row `rows_N[i]`.

        Every group of `beam_size` entries names rows of one sentence only. Whole sentences may be
        left out, in which case fewer rows remain; sentences never change their order.
        """


@runtime_checkable
class Uneven(Protocol):
    """A state that may also be asked to keep some rows of a sentence and leave out others."""

    @property
    def uneven(self) -> bool:
        """Whether `select` can do so: then a step is of the rows that are left."""


class Head(NamedTuple):
    """Whose attention to the source aligns words."""

    layer: int = -1
    """A layer of the decoder, counted from its end where it is negative."""
    head: int | None = None
    """One of its heads; None for the mean over all."""
    later: int = 0
    """1 where the weights of a token are those of the step that reads it; 0: that writes it."""

    def of_tokens(self, weights_LS: Tensor) -> Tensor:
        """The weights of L tokens, of those of the steps that wrote them.

        No step reads the last token, an end, which keeps the weights of the step that wrote it.
        """
        return torch.cat([weights_LS[1:], weights_LS[-1:]]) if self.later else weights_LS


@runtime_checkable
class Attending(Protocol):
    """A state that can say what its rows attend to in their sources."""

    def watch(self, layer: int, head: int | None) -> None:
        """From now on keep the weights of a head, or their mean, in each step, if that can be."""

    def attended(self) -> Tensor | None:
        """The weights of the last step, (N, S), which last until the next; None if none are kept.

        Row by row a distribution over the source as it was padded, zero behind its end.
        """


StateT = TypeVar("StateT", bound=State)


class Model(Protocol[StateT]):
    """A model that continues prefixes by one token at a time; its state is of its own kind."""

    def start(self, src_BS: Tensor, beam_size: int) -> StateT:
        """Read the sources (padded ids) and prepare `beam_size` empty prefixes for each."""

    def step(self, ids_N: Tensor, state: StateT) -> Tensor:
        """Append one token to every row and return the logits of the next, `logits_NV`.

        The first call gets the begin-of-sentence id. The caller may write into the
        result, which lasts until the next call with this state.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """Steps that were taken before another, in one call."""

    tokens_NS: Tensor
    """The tokens that each of the N rows took."""
    parents_N: Tensor | None
    """The row whose prefix it had before; None when every row kept its own."""
    token_log_probs_NS: Tensor
    """The log-probabilities of the tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """A strategy's decision for one step, one entry for each of the N new rows."""

    tokens_N: Tensor
    """The token that each row takes."""
    parents_N: Tensor | None
    """The row whose prefix it takes; None when every row keeps its own."""
    token_log_probs_N: Tensor
    """The log-probability of that token."""
    log_probs_N: Tensor
    """The sum over the row's tokens, this one included."""
    scores_N: Tensor
    """That sum, normalised for length."""
    ended_N: Tensor
    """True where the hypothesis is complete with this token: hand it out, the row is free."""
    open_N: Tensor
    """True where the hypothesis continues. A sentence without such a row is decided."""
    quiet: bool = False
    """Whether it is known that no hypothesis ended and no sentence is decided."""
    earlier: Earlier | None = None
    """The quiet steps before this one, if it was not the only one."""


class Frontier(Protocol):
    """The open hypotheses of one running search."""

    def advance(self, log_probs_NV: Tensor) -> Advance:
        """Choose the next token of every row from its log-probabilities (float32).

        The next step overwrites their memory: keep what was chosen, not a view.
        """

    def keep(self, sentences_K: Tensor) -> None:
        """Keep only these of the present sentences (indices, ascending)."""


@runtime_checkable
class Closing(Protocol):
    """A frontier that closes rows one by one."""

    @property
    def open_N(self) -> Tensor:
        """True where a row has a prefix that can be continued.

        `advance` may be given the log-probabilities of these rows alone, in their order.
        """


@runtime_checkable
class Looking(Protocol):
    """A frontier that wants to know what its rows attend to."""

    def look(self, weights_MS: Tensor) -> None:
        """Take the weights of the step whose log-probabilities come next, in the same rows.

        It is not called where they are not to be had.
        """


class Strategy(Protocol):
    """How to choose among continuations. A value: the state of a search is its frontier."""

    @property
    def beam_size(self) -> int:
        """Rows that each sentence needs."""

    @property
    def n_best(self) -> int:
        """Hypotheses to return for each sentence (fewer where fewer exist)."""

    def begin(self, max_B: Tensor, eos_id: int) -> Frontier:
        """Start a search of B sentences of at most `max_B` tokens each."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """What the rows have generated so far."""

    ids_NL: Tensor
    """The L tokens chosen so far, without bos. Rows that are closed hold leftovers."""
    sentence_N: Tensor
    """The sentence that each row belongs to, counted in the batch that was given to the search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where hypotheses begin and end."""

    bos_id: int
    """The token that the model reads first; not part of a result."""
    eos_id: int
    """The token that completes a hypothesis; not part of a result's ids, but of its score."""
    max_B: Tensor
    """Most tokens to generate for each sentence, eos counted; 1 or more."""
    first_B: Tensor | None = None
    """The token that the model reads first for each sentence, instead of bos: the last one of each
    prompt where the source is a prompt that the output continues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """One output sequence."""

    ids: tuple[int, ...]
    """Its tokens, without bos and eos."""
    score: float
    """`log_prob` normalised for length: what the n best are ordered by."""
    log_prob: float
    """The sum of `token_log_probs`."""
    token_log_probs: tuple[float, ...]
    """One for each token, and one more for eos where it was generated."""
    stopped: Literal["eos", "length"]
    """Whether it ended or reached the limit."""
    attention_LS: Tensor | None = field(default=None, compare=False, repr=False)
    """What it attended to when it wrote each token, eos too, if that was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStep:
    """What `search_steps` yields after each step."""

    prefixes: Prefixes
    """The prefixes after this step."""
    open_N: Tensor
    """True for the rows that continue."""
    finished: dict[int, list[Hypothesis]]
    """The sentences that are decided with this step, each with its n best."""


@dataclass(slots=True)
class RollingState(Generic[StateT]):
    """The model's own state and the tokens that it represents."""

    inner: StateT
    """What the model remembers."""
    ids_NL: Tensor
    """The tokens of the context that the model has read."""

    def select(self, rows_N: Tensor) -> None:
        """Let row n become what row `rows_N[n]` was."""
        self.inner.select(rows_N)
        self.ids_NL = self.ids_NL[rows_N]


class Rolling(Generic[StateT]):
    """A model that continues prompts for ever and never sees more than `context` tokens at once.

    A model that was trained on L tokens at a time is at its best within L, and one with learned
    positions has none beyond it. When the context is full, the earlier half is dropped and the
    later half is read anew, from the first position on: a token costs at most one more pass over
    tokens that are read side by side, and memory stays the same.
    """

    def __init__(self, model: Model[StateT], context: int) -> None:
        if context < 2:
            raise ValueError(f"a context of {counted(context, 'token')} cannot be halved")
        self._model = model
        self._context = context

    def start(self, src_BS: Tensor, beam_size: int) -> RollingState[StateT]:
        """Read the prompts, all but their last token, from the left as many as fit."""
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
