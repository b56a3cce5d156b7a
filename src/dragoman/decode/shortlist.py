"""A separate vocabulary for each sentence: the few target tokens that its source can become.

Most of a vocabulary is out of the question for a given source, yet a step computes a logit for all
of it. A lexical shortlist (Jean et al. 2015, section 3.3) lists for each source token the target
tokens that it may become. The search of a sentence sees only those of its own tokens, renumbered: 0
is the end of the sentence, 1 its beginning, and the rest follow by id. Strategies and processors
use these numbers like any vocabulary. A token that is not in the list has probability 0.

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
and next to longer lists; so are the outputs of a narrowed model."""


@dataclass(frozen=True, slots=True)
class Shortlist:
    """The target tokens that each source token may become, and those that are always allowed."""

    starts_V: np.ndarray
    """Where those of each source token start in `ids_X`, plus one entry for the end."""
    ids_X: np.ndarray
    """Target tokens."""
    always_A: np.ndarray
    """Target tokens in every list."""

    def of(self, src: Sequence[int], more: Sequence[int] = ()) -> np.ndarray:
        """Return the target tokens for a source, in ascending order, including `more`."""
        ranges = [slice(*self.starts_V[token : token + 2]) for token in set(src)]
        found = [self.ids_X[each] for each in ranges]
        return np.unique(np.concatenate([self.always_A, np.array(more, dtype=np.int64), *found]))


class Lists:
    """The lists of B sentences as one rectangle, each with the specials before its tokens."""

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
        """Return the places of tokens in the list of a sentence, which must contain them."""
        place_of = {token: place for place, token in enumerate(self.ids_BW[sentence].tolist())}
        return [place_of[token] for token in ids]

    def tokens(self, sentence: int, hypothesis: Hypothesis) -> tuple[int, ...]:
        """Return the tokens of a hypothesis of a sentence."""
        return tuple(self.ids_BW[sentence, list(hypothesis.ids)].tolist())


@runtime_checkable
class Narrows(Protocol):
    """A model that can compute only some of its outputs."""

    def narrow(self, ids_U: Tensor, state: Any) -> None:  # noqa: ANN401 -- each has its own kind
        """Make later steps with this state return only the logits `(N, U)` of these tokens."""


@dataclass(slots=True)
class ShortlistedState:
    """The model's own state and the list of each row's sentence."""

    inner: State
    sentence_N: Tensor
    """The sentence of each row."""
    ids_NW: Tensor
    """The token at each place."""
    columns_NW: Tensor
    """Its column in the model's logits."""
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
        """Return the weights of the last step."""
        return self.inner.attended() if isinstance(self.inner, Attending) else None

    def select(self, rows_N: Tensor) -> None:
        """Replace row n with the old row `rows_N[n]`."""
        self.inner.select(rows_N)
        sentence_N = self.sentence_N[rows_N]
        if not torch.equal(sentence_N, self.sentence_N):
            self.sentence_N = sentence_N
            self.ids_NW = self.ids_NW[rows_N]
            self.columns_NW = self.columns_NW[rows_N]
            self.closed_NW = self.closed_NW[rows_N]


class Shortlisted:
    """A model whose vocabulary for each sentence is that of its list."""

    def __init__(self, model: Model[Any], lists: Lists) -> None:
        self._model = model
        self._lists = lists

    def start(self, src_BS: Tensor, beam_size: int) -> ShortlistedState:
        """Let the model read the sources, and narrow it to the lists' tokens if it can."""
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
        """Append the token at a place to every row; return the logits `(N, W)` of the next."""
        tokens_N = state.ids_NW.gather(1, ids_N[:, None])[:, 0]
        logits_NU = self._model.step(tokens_N, state.inner)
        return logits_NU.gather(1, state.columns_NW).masked_fill_(state.closed_NW, IMPOSSIBLE)
