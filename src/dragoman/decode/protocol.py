"""The interfaces of models and strategies in decoding, and the values that they exchange.

The loop in `search` connects the two and knows nothing else about either. An encoder-decoder, a
decoder-only model, an ensemble and a table in a test are all a `Model`; greedy search, beam
search and sampling are all a `Strategy`.

A sentence has `beam_size` adjacent rows: sentence b owns the rows
`b * beam_size` to `(b + 1) * beam_size - 1`. So N = B * beam_size. If a state is `Uneven` and a
frontier is `Closing`, the model computes only the M open rows of these.
"""

from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from dragoman.wording import counted


class State(Protocol):
    """A model's memory of the prefixes that it has read: its caches, for N rows."""

    def select(self, rows_N: Tensor) -> None:
        """Make row i the continuation of the current row `rows_N[i]`.

        Each group of `beam_size` entries names rows of one sentence only. Whole sentences may be
        left out, so that fewer rows remain; sentences never change their order.
        """


@runtime_checkable
class Uneven(Protocol):
    """A state that can also keep some rows of a sentence and leave out others."""

    @property
    def uneven(self) -> bool:
        """Whether `select` can do so; a step then computes the remaining rows."""


class Head(NamedTuple):
    """The attention to the source that aligns words."""

    layer: int = -1
    """A layer of the decoder, counted from its end if negative."""
    head: int | None = None
    """One of its heads; None for the mean over all."""
    later: int = 0
    """1 if the weights of a token are those of the step that reads it; 0 if that writes it."""

    def of_tokens(self, weights_LS: Tensor) -> Tensor:
        """Return the weights of L tokens, given those of the steps that wrote them.

        No step reads the last token, an end; it keeps the weights of the step that wrote it.
        """
        return torch.cat([weights_LS[1:], weights_LS[-1:]]) if self.later else weights_LS


@runtime_checkable
class Attending(Protocol):
    """A state that can report what its rows attend to in their sources."""

    def watch(self, layer: int, head: int | None) -> None:
        """Keep the weights of a head, or their mean, in each later step, if possible."""

    def attended(self) -> Tensor | None:
        """Return the weights (N, S) of the last step, valid until the next; None if not kept.

        Each row is a distribution over the padded source, zero after its end.
        """


StateT = TypeVar("StateT", bound=State)


class Model(Protocol[StateT]):
    """A model that continues prefixes one token at a time, with its own type of state."""

    def start(self, src_BS: Tensor, beam_size: int) -> StateT:
        """Read the sources (padded ids) and prepare `beam_size` empty prefixes for each."""

    def step(self, ids_N: Tensor, state: StateT) -> Tensor:
        """Append one token to every row and return the logits of the next, `logits_NV`.

        The first call receives the begin-of-sentence id. The caller may write into the
        result, which is valid until the next call with this state.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """The steps that one call took before its last."""

    tokens_NS: Tensor
    """The tokens that each of the N rows took."""
    parents_N: Tensor | None
    """The row whose prefix each row had before; None if every row kept its own."""
    token_log_probs_NS: Tensor
    """The log-probabilities of the tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """A strategy's decision for one step, one entry for each of the N new rows."""

    tokens_N: Tensor
    """The token that each row takes."""
    parents_N: Tensor | None
    """The row whose prefix each row takes; None if every row keeps its own."""
    token_log_probs_N: Tensor
    """The log-probability of that token."""
    log_probs_N: Tensor
    """The sum over the row's tokens, this one included."""
    scores_N: Tensor
    """That sum, normalised for length."""
    ended_N: Tensor
    """True where this token completes the hypothesis: it is returned and its row is free."""
    open_N: Tensor
    """True where the hypothesis continues. A sentence without such a row is decided."""
    quiet: bool = False
    """Whether it is known that no hypothesis ended and no sentence is decided."""
    earlier: Earlier | None = None
    """The quiet steps before this one, if the call took several."""


class Frontier(Protocol):
    """The open hypotheses of one running search."""

    def advance(self, log_probs_NV: Tensor) -> Advance:
        """Choose the next token of every row from its log-probabilities (float32).

        The next step overwrites their memory: copy what was chosen, do not keep a view.
        """

    def keep(self, sentences_K: Tensor) -> None:
        """Keep only these of the current sentences (indices, ascending)."""


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
    """A frontier that uses what its rows attend to."""

    def look(self, weights_MS: Tensor) -> None:
        """Receive the weights of the step whose log-probabilities come next, in the same rows.

        It is not called if there are none.
        """


class Strategy(Protocol):
    """How to choose among continuations, as a value: the state of a search is its frontier."""

    @property
    def beam_size(self) -> int:
        """Number of rows that each sentence needs."""

    @property
    def n_best(self) -> int:
        """Number of hypotheses to return for each sentence (fewer if fewer exist)."""

    def begin(self, max_B: Tensor, eos_id: int) -> Frontier:
        """Start a search of B sentences of at most `max_B` tokens each."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """What the rows have generated so far."""

    ids_NL: Tensor
    """The L tokens chosen so far, without bos. Closed rows contain leftovers."""
    sentence_N: Tensor
    """The sentence of each row, as its index in the batch that the search received."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where hypotheses begin and end."""

    bos_id: int
    """The token that the model reads first; not part of a result."""
    eos_id: int
    """The token that completes a hypothesis; not part of a result's ids, but of its score."""
    max_B: Tensor
    """Maximum number of tokens for each sentence, eos included; 1 or more."""
    first_B: Tensor | None = None
    """The token that the model reads first for each sentence, instead of bos: the last one of each
    prompt if the source is a prompt that the output continues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """One output sequence."""

    ids: tuple[int, ...]
    """The tokens, without bos and eos."""
    score: float
    """`log_prob` normalised for length, which orders the n best."""
    log_prob: float
    """The sum of `token_log_probs`."""
    token_log_probs: tuple[float, ...]
    """One for each token, plus one for eos if it was generated."""
    stopped: Literal["eos", "length"]
    """Whether it ended with eos or reached the length limit."""
    attention_LS: Tensor | None = field(default=None, compare=False, repr=False)
    """What the step that wrote each token, eos included, attended to; None if not requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStep:
    """What `search_steps` yields after each step."""

    prefixes: Prefixes
    """The prefixes after this step."""
    open_N: Tensor
    """True for the rows that continue."""
    finished: dict[int, list[Hypothesis]]
    """The sentences that this step decides, each with its n best."""


@dataclass(slots=True)
class RollingState(Generic[StateT]):
    """The model's own state and the tokens that it represents."""

    inner: StateT
    """The model's own state."""
    ids_NL: Tensor
    """The tokens of the context that the model has read."""

    def select(self, rows_N: Tensor) -> None:
        """Replace row n with the old row `rows_N[n]`."""
        self.inner.select(rows_N)
        self.ids_NL = self.ids_NL[rows_N]


class Rolling(Generic[StateT]):
    """A model that continues prompts without end and sees at most `context` tokens at a time.

    A model trained on L tokens at a time works best within L, and one with learned positions has
    none beyond it. When the context is full, the earlier half is dropped and the later half is read
    again from the first position: a token costs at most one more pass over tokens that are read in
    parallel, and memory does not grow.

    A model whose positions are others in a text of more than `changes_at` tokens (LongRoPE) reads
    all of it again at that point.
    """

    def __init__(
        self, model: Model[StateT], context: int | None, changes_at: int | None = None
    ) -> None:
        if context is not None and context < 2:
            raise ValueError(f"a context of {counted(context, 'token')} cannot be halved")
        self._model = model
        self._context = context
        self._changes_at = changes_at

    def start(self, src_BS: Tensor, beam_size: int) -> RollingState[StateT]:
        """Read the last `context` tokens of the prompts, without the final one."""
        prompt_BS = src_BS[:, -(self._context or 0) :]
        ids_NL = prompt_BS[:, :-1].repeat_interleave(beam_size, dim=0)
        return RollingState(self._model.start(prompt_BS, beam_size), ids_NL)

    def step(self, ids_N: Tensor, state: RollingState[StateT]) -> Tensor:
        """Append a token to each row and return the logits (N, V) of the next."""
        length = state.ids_NL.shape[1]
        if length == self._context:
            state.ids_NL = state.ids_NL[:, -(length // 2) :]
        prompt_NL = torch.cat([state.ids_NL, ids_N[:, None]], dim=1)
        if length in (self._context, self._changes_at):
            state.inner = self._model.start(prompt_NL, 1)
        state.ids_NL = prompt_NL
        return self._model.step(ids_N, state.inner)
