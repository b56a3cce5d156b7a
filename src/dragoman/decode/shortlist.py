"""A vocabulary of its own for each sentence: the few target tokens that its source can become.

Most of a vocabulary is out of question for a given source, and yet a step computes a logit for all
of it. A lexical shortlist (Jean et al. 2015, section 3.3) knows for each source token which target
tokens it may become, and the search of a sentence sees those of its tokens alone, under numbers of
their own: 0 is the end of the sentence, 1 its beginning, and the rest follow by id. Strategies and
processors work on these numbers as on any vocabulary. What is not in the list has probability 0.

Axes as in the package; W are the places of a list, U the outputs that a narrowed model computes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from dragoman.decode.protocol import Attending, Hypothesis, Model, State, Uneven
from dragoman.nn.cpu.ranking import IMPOSSIBLE

EOS, BOS = 0, 1
"""The places of the end and the beginning of a sentence in every list."""
ALIGNED = 64
"""Lists are padded to a multiple of this many entries, so that their sums have the same bits alone
and beside longer lists; and so are the outputs of a narrowed model."""


@dataclass(frozen=True, slots=True)
class Shortlist:
    """For each source token the target tokens that it may become, and those that always may be."""

    starts_V: np.ndarray
    """Where in `ids_X` those of each source token begin; one more for the end."""
    ids_X: np.ndarray
    """Target tokens."""
    always_A: np.ndarray
    """Target tokens that every list has."""

    def of(self, src: Sequence[int], more: Sequence[int] = ()) -> np.ndarray:
        """Return the target tokens for a source, in ascending order; `more` are among them."""
        ranges = [slice(*self.starts_V[token : token + 2]) for token in set(src)]
        found = [self.ids_X[each] for each in ranges]
        return np.unique(np.concatenate([self.always_A, np.array(more, dtype=np.int64), *found]))


class Lists:
    """The lists of B sentences, each with the specials before its tokens, as one rectangle."""

    def __init__(self, tokens: Sequence[np.ndarray], *, bos_id: int, eos_id: int) -> None:
        whole = [np.concatenate([[eos_id, bos_id], each]).astype(np.int64) for each in tokens]
        width = -(-max(len(each) for each in whole) // ALIGNED) * ALIGNED
        self.ids_BW = np.full((len(whole), width), bos_id)
        self.closed_BW = np.ones((len(whole), width), dtype=bool)
        """True for the beginning of a sentence and for padding, which are never written."""
        for row_W, closed_W, ids in zip(self.ids_BW, self.closed_BW, whole, strict=True):
            row_W[: len(ids)] = ids
            closed_W[: len(ids)] = False
        self.closed_BW[:, BOS] = True

    def places(self, sentence: int, ids: Iterable[int]) -> list[int]:
        """Return the places of tokens in the list of a sentence, which must have them."""
        place_of = {token: place for place, token in enumerate(self.ids_BW[sentence].tolist())}
        return [place_of[token] for token in ids]

    def tokens(self, sentence: int, hypothesis: Hypothesis) -> tuple[int, ...]:
        """Return the tokens of what was found for a sentence."""
        return tuple(self.ids_BW[sentence, list(hypothesis.ids)].tolist())


@runtime_checkable
class Narrows(Protocol):
    """A model that can leave out outputs."""

    def narrow(self, ids_U: Tensor, state: Any) -> None:  # noqa: ANN401 -- each has its own kind
        """From now on let a step with this state return the logits `(N, U)` of these tokens."""


@dataclass(slots=True)
class ShortlistedState:
    """The model's own state and the list of each row's sentence."""

    inner: State
    sentence_N: Tensor
    """The sentence of each row."""
    ids_NW: Tensor
    """The token at each place."""
    columns_NW: Tensor
    """Where the model's logits have it."""
    closed_NW: Tensor
    """True for the places that are never written."""

    @property
    def uneven(self) -> bool:
        """Whether single rows can be left out, as the model's own state says."""
        return isinstance(self.inner, Uneven) and self.inner.uneven

    def watch(self, layer: int, head: int | None) -> None:
        """Keep the weights of a head, if the model's own state can."""
        if isinstance(self.inner, Attending):
            self.inner.watch(layer, head)

    def attended(self) -> Tensor | None:
        """The weights of the last step."""
        return self.inner.attended() if isinstance(self.inner, Attending) else None

    def select(self, rows_N: Tensor) -> None:
        """Let row n become what row `rows_N[n]` was."""
        self.inner.select(rows_N)
        sentence_N = self.sentence_N[rows_N]
        if not torch.equal(sentence_N, self.sentence_N):
            self.sentence_N = sentence_N
            self.ids_NW = self.ids_NW[rows_N]
            self.columns_NW = self.columns_NW[rows_N]
            self.closed_NW = self.closed_NW[rows_N]


class Shortlisted:
    """A model whose vocabulary is, for each sentence, that of its list."""

    def __init__(self, model: Model[Any], lists: Lists) -> None:
        self._model = model
        self._lists = lists

    def start(self, src_BS: Tensor, beam_size: int) -> ShortlistedState:
        """Let the model read the sources, and leave out what no list has if it can."""
        inner = self._model.start(src_BS, beam_size)
        ids_BW = self._lists.ids_BW
        columns_BW = ids_BW
        if isinstance(self._model, Narrows):
            ids_U = np.unique(ids_BW)
            columns_BW = np.searchsorted(ids_U, ids_BW)
            padded_U = np.pad(ids_U, (0, -len(ids_U) % ALIGNED), mode="edge")
            self._model.narrow(torch.from_numpy(padded_U), inner)
        tables = ids_BW, columns_BW, self._lists.closed_BW
        ids_NW, columns_NW, closed_NW = (
            torch.from_numpy(table).to(src_BS.device).repeat_interleave(beam_size, 0)
            for table in tables
        )
        sentence_N = torch.arange(len(src_BS), device=src_BS.device).repeat_interleave(beam_size)
        return ShortlistedState(inner, sentence_N, ids_NW, columns_NW, closed_NW)

    def step(self, ids_N: Tensor, state: ShortlistedState) -> Tensor:
        """Append the token at a place to every row; the logits `(N, W)` of the next places."""
        tokens_N = state.ids_NW.gather(1, ids_N[:, None])[:, 0]
        logits_NU = self._model.step(tokens_N, state.inner)
        return logits_NU.gather(1, state.columns_NW).masked_fill_(state.closed_NW, IMPOSSIBLE)
