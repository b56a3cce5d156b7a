"""Words of both sides of a pair replaced by the same placeholder, new ones in each epoch.

This teaches a model to copy placeholders to where they belong (Post et al. 2019, "An Exploration of
Placeholding in Neural Machine Translation"). The words are translations of each other: words that
are the same on both sides are too rare (in 3 % of the lines of Multi30k). Axes: P pairs, N tokens,
V vocabulary, X candidate words, C chosen words.
"""

from dataclasses import replace
from unicodedata import category

import numpy as np
import numpy.typing as npt

from dragoman.data.aligner import NONE
from dragoman.data.dataset import PairDataset, Ragged
from dragoman.text.glossary import is_spaced
from dragoman.text.placeholders import placeholder_ids
from dragoman.text.tokenizer import Tokenizer

MOST = 3
"""Maximum number of words replaced in a pair; the number is uniform from 1 to this."""

Places = npt.NDArray[np.int64]


class _Pieces:
    """The role of each piece of a vocabulary in words."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        pieces = tokenizer.tokens(range(tokenizer.vocab_size))
        special = {*tokenizer.specials.values(), *tokenizer.byte_ids}
        rest = [piece.removeprefix(" ") for piece in pieces]
        self.placeholders = np.array(placeholder_ids(tokenizer))
        (self.space_id,) = tokenizer.encode_rest([" "])[0]
        self.spaced_V = np.array([piece[:1] == " " for piece in pieces])
        goes_on = [is_spaced(p) and _is_letter(p[:1]) for p in pieces]
        self.goes_on_V = np.array(goes_on)
        self.goes_on_V[[*tokenizer.byte_ids]] = True
        word = [p[:1].isalnum() and all(map(_is_letter, p)) for p in rest]
        self.word_V = np.array([is_word and n not in special for n, is_word in enumerate(word)])

    def whole_words(self, side: Ragged) -> npt.NDArray[np.bool_]:
        """Return which tokens are whole words: they begin one, and so does the next token."""
        goes_on_N = self.goes_on_V[side.ids]
        followed_N = np.append(goes_on_N[1:], False)
        followed_N[side.offsets[1:] - 1] = False
        whole_N: npt.NDArray[np.bool_] = self.word_V[side.ids] & ~goes_on_N & ~followed_N
        return whole_N

    def put(self, side: Ragged, places_C: Places, which_C: Places) -> tuple[Ragged, Places]:
        """Replace tokens with placeholders; a token that begins with a space leaves the space.

        Return also the positions of the tokens that follow these spaces.
        """
        ids_N = np.array(side.ids)
        spaces = np.sort(places_C[self.spaced_V[ids_N[places_C]]])
        ids_N[places_C] = self.placeholders[which_C]
        return _inserted(Ragged(ids_N, side.offsets), spaces, self.space_id), spaces


class Placeholders:
    """Inserts placeholders into a share of the pairs."""

    def __init__(
        self, share: float, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer, max_length: int
    ) -> None:
        """`max_length` is that of a batch; pairs that could grow beyond it are unchanged."""
        self.share, self.max_length = share, max_length
        self._src, self._tgt = _Pieces(src_tokenizer), _Pieces(tgt_tokenizer)

    def placed(self, dataset: PairDataset, rng: np.random.Generator) -> PairDataset:
        """Return the pairs, whose links must be known, with placeholders and adjusted links."""
        if dataset.links is None:
            raise ValueError("placeholders need links")
        sides = (dataset.src, dataset.tgt, dataset.links)
        count_V = np.zeros(len(self._src.word_V), np.int64)
        for part in dataset.src.chunks():
            count_V += np.bincount(part.ids, minlength=len(count_V))
        chunks = zip(sides[0].chunks(), sides[1].chunks(), sides[2].chunks(), strict=True)
        placed = [self._placed(*chunk, count_V, rng) for chunk in chunks] or [sides]
        src, tgt, links = map(Ragged.concatenate, zip(*placed, strict=True))
        return replace(dataset, src=src, tgt=tgt, links=links)

    def _placed(
        self, src: Ragged, tgt: Ragged, links: Ragged, count_V: Places, rng: np.random.Generator
    ) -> tuple[Ragged, Ragged, Ragged]:
        """Insert placeholders into a chunk of the pairs, and keep its types."""
        src_C, tgt_C, which_C = self._chosen(src, tgt, links, count_V, rng)
        new_src, src_spaces = self._src.put(src, src_C, which_C)
        new_tgt, tgt_spaces = self._tgt.put(tgt, tgt_C, which_C)
        begin_N = np.repeat(src.offsets[:-1], tgt.lengths)
        before_N = np.searchsorted(src_spaces, begin_N)
        moved_N = links.ids + np.searchsorted(src_spaces, begin_N + links.ids, "right") - before_N
        moved_N = np.where(links.ids == NONE, NONE, moved_N).astype(links.ids.dtype)
        return new_src, new_tgt, _inserted(Ragged(moved_N, links.offsets), tgt_spaces, NONE)

    def _chosen(
        self, src: Ragged, tgt: Ragged, links: Ragged, count_V: Places, rng: np.random.Generator
    ) -> tuple[Places, Places, Places]:
        """Choose words linked only to each other, preferably rare ones, and their placeholders."""
        drawn_P = rng.random(len(tgt)) < self.share
        drawn_P &= np.maximum(src.lengths, tgt.lengths) + MOST <= self.max_length
        wanted_P = rng.integers(1, MOST, len(tgt), endpoint=True)
        first_P = rng.integers(len(self._src.placeholders), size=len(tgt))
        pair_N = np.repeat(np.arange(len(tgt)), tgt.lengths)
        (tgt_X,) = np.nonzero(links.ids != NONE)
        src_X = src.offsets[pair_N[tgt_X]] + links.ids[tgt_X]
        usable_X = np.bincount(src_X)[src_X] == 1
        usable_X &= self._src.whole_words(src)[src_X] & self._tgt.whole_words(tgt)[tgt_X]
        usable_X &= drawn_P[pair_N[tgt_X]]
        src_X, tgt_X, pair_X = src_X[usable_X], tgt_X[usable_X], pair_N[tgt_X[usable_X]]
        frequent_X = count_V[src.ids[src_X]]
        order_X = np.lexsort((rng.random(len(pair_X)) * frequent_X, pair_X))
        src_X, tgt_X, pair_X = src_X[order_X], tgt_X[order_X], pair_X[order_X]
        rank_X = np.arange(len(pair_X)) - np.searchsorted(pair_X, pair_X)
        chosen_X = rank_X < wanted_P[pair_X]
        which_X = (first_P[pair_X] + rank_X) % len(self._src.placeholders)
        return src_X[chosen_X], tgt_X[chosen_X], which_X[chosen_X]


def _inserted(side: Ragged, places: Places, value: int) -> Ragged:
    """Return the sequences with `value` before the tokens at `places` (ascending)."""
    ids = np.insert(side.ids, places, value)
    return Ragged(ids, side.offsets + np.searchsorted(places, side.offsets))


def _is_letter(char: str) -> bool:
    return category(char or " ")[0] in "LMN"
