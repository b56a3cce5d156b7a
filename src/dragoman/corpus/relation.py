"""Whether the sides of a pair are related, as far as the corpus itself shows.

A word of one side is explained by the other as far as IBM model 1 makes it more likely than its
overall frequency,

    evidence(t) = log((0.9 mean over s of t(t | s) + 0.1 p(t)) / p(t)),

where the counts exclude the pair itself: otherwise a word that occurs once would be explained by
whatever is next to it. Shuffled pairs have about no evidence, translations much.

The length of a translation follows from its source (Gale and Church 1993, section 3.1): lengths
differ from the usual ratio by about s sqrt(length), whatever the language. A truncated translation
explains little of its source and is far too short, neither of which is conclusive by itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from dragoman.corpus.rules import tokens
from dragoman.data.dataset import Ragged, meetings
from dragoman.data.lexical import MOST_LINKS, count_links

OWN, MOST = 0.1, 3.0
"""Share of p(t) that is mixed in; maximum evidence of a word, so that rare words do not decide."""
FREQUENT = 3
"""Minimum number of occurrences for a word to count."""
DOUBT, USUAL = 4, 1.5
"""Pseudo-words added to a side, with the evidence of translations: a few words prove nothing."""
LESS, SLACK, WEIGHT = 0.3, 1.5, 0.4
AT_ONCE = 100_000
"""Number of links looked up together."""
Numbers = npt.NDArray[np.float32]
Ids = tuple[list[int], list[int]]
"""The word ids of a source and of its target."""


class Relation:
    """Lexical translations in both directions and usual lengths, learnt from some pairs."""

    def __init__(self, pairs: Iterable[tuple[str, str]], lengths_P2: Numbers) -> None:
        """Learn from pairs, or from every n-th if they have more than `MOST_LINKS` links."""
        src_P, tgt_P = lengths_P2.T + np.float32(1)
        self._ratio = np.float32(np.median(tgt_P / src_P))
        self._deviation = _deviation(self._away(lengths_P2), 1e-6)
        self._vocabularies: tuple[dict[str, int], dict[str, int]] = {}, {}
        ids = [self._ids(*pair, learn=True) for pair in pairs]
        self._step = max(1, -(-sum(len(src) * len(tgt) for src, tgt in ids) // MOST_LINKS))
        taken, (src_size, tgt_size) = ids[:: self._step], map(len, self._vocabularies)
        links = count_links(taken, src_size, tgt_size)
        back = count_links([(tgt, src) for src, tgt in taken], tgt_size, src_size)
        src_K, tgt_K = np.divmod(links.keys_K, tgt_size)
        back_K = np.empty_like(back.counts_K)  # in the order of links.keys_K
        back_K[np.lexsort((src_K, tgt_K))] = back.counts_K
        src_N, tgt_N = (np.fromiter(chain.from_iterable(x), int) for x in zip(*taken, strict=True))
        self._tgt_size, self._keys_K = tgt_size, links.keys_K
        self._into_tgt = _Direction(
            links.counts_K, links.totals_V, np.bincount(tgt_N, None, tgt_size)
        )
        self._into_src = _Direction(back_K, back.totals_V, np.bincount(src_N, None, src_size))

    def _ids(self, src: str, tgt: str, *, learn: bool = False) -> Ids:
        """Return the ids of the known words; with `learn`, add the unknown ones."""
        first, second = (
            [known.setdefault(word, len(known)) for word in tokens(text) if learn or word in known]
            for known, text in zip(self._vocabularies, (src, tgt), strict=True)
        )
        return first, second

    def of(
        self, pairs: Iterable[tuple[str, str]], lengths_P2: Numbers, *, learnt: bool = False
    ) -> Numbers:
        """Return how related the sides of pairs are: about 1.5 for translations.

        `min(both, mean - 0.3) - 0.4 max(0, |unevenness| - 1.5)`: of the constants that were tried,
        these found most of the shuffled and cut pairs of Multi30k for 1 % of the others. `learnt`
        says that these are the pairs that were learnt from.
        """
        related_P = np.empty(len(lengths_P2), np.float32)
        for first, block in self._blocks(pairs):
            some = slice(first, first + len(block))
            into_tgt, into_src = self._evidence(block, first, learnt=learnt)
            least = np.minimum(np.minimum(into_tgt, into_src), (into_tgt + into_src) / 2 - LESS)
            uneven = self._away(lengths_P2[some]) / self._deviation
            related_P[some] = least - WEIGHT * np.maximum(np.abs(uneven) - SLACK, 0)
        return related_P

    def _away(self, lengths_P2: Numbers) -> Numbers:
        """Return `(t - c s) / sqrt(m)`, how much longer each target is than usual.

        c is the usual ratio, m the mean of c s and t. The ratio and the usual size of the result
        are medians, which a fifth of bad pairs hardly changes.
        """
        src_P, tgt_P = lengths_P2.T + np.float32(1)
        usual_P = self._ratio * src_P
        return np.asarray((tgt_P - usual_P) / np.sqrt((tgt_P + usual_P) / 2), np.float32)

    def _blocks(self, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[int, list[Ids]]]:
        """Yield blocks of pairs, of about `AT_ONCE` links each, with the index of their first."""
        first, links, block = 0, 0, list[Ids]()
        for number, pair in enumerate(pairs, start=1):
            src, tgt = self._ids(*pair)
            block.append((src, tgt))
            links += len(src) * len(tgt)
            if links > AT_ONCE:
                yield first, block
                first, links, block = number, 0, []
        if block:
            yield first, block

    def _evidence(
        self, block: Sequence[Ids], first: int, *, learnt: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean evidence of the words of the targets and of the sources."""
        src, tgt = (Ragged.of(texts) for texts in zip(*block, strict=True))
        src_C, tgt_C = meetings(src, tgt)
        keys_C = src.ids[src_C] * self._tgt_size + tgt.ids[tgt_C]
        at_C = np.minimum(np.searchsorted(self._keys_K, keys_C), len(self._keys_K) - 1)
        at_C[self._keys_K[at_C] != keys_C] = -1
        own_P = learnt & ((first + np.arange(len(block))) % self._step == 0)
        into_tgt = self._into_tgt.evidence(at_C, (tgt, tgt_C), (src, src_C), own_P)
        into_src = self._into_src.evidence(at_C, (src, src_C), (tgt, tgt_C), own_P)
        return into_tgt, into_src


@dataclass(frozen=True, slots=True)
class _Direction:
    """Lexical translation from one side to the other."""

    counts_K: np.ndarray
    totals_V: np.ndarray
    """Total count of each source word."""
    seen_V: np.ndarray
    """Number of occurrences of each target word."""

    def evidence(
        self,
        at_C: np.ndarray,
        target: tuple[Ragged, np.ndarray],
        source: tuple[Ragged, np.ndarray],
        own_P: npt.NDArray[np.bool_],
    ) -> np.ndarray:
        """Return the mean evidence of each target's frequent words (P); `MOST` if it has none.

        Links C are given by their index among K, -1 if unknown, and by their words on both sides;
        `own_P` marks the pairs that were learnt from.
        """
        (tgt, tgt_C), (src, src_C) = target, source
        pair_N = tgt.rows
        frequent_N = self.seen_V[tgt.ids] >= FREQUENT
        counts_C = np.where(at_C < 0, 0.0, self.counts_K[at_C])
        totals_N = self.totals_V[src.ids]
        probs_C = counts_C / np.maximum(totals_N, 1e-9)[src_C]
        probs_N = np.bincount(tgt_C, probs_C, len(tgt.ids))
        own_C = probs_C / np.maximum(probs_N, 1e-12)[tgt_C] * (own_P[pair_N] & frequent_N)[tgt_C]
        totals_N = totals_N - np.bincount(src_C, own_C, len(src.ids))
        written_C = np.maximum(counts_C - own_C, 0.0) / np.maximum(totals_N, 1e-9)[src_C]
        written_N = np.bincount(tgt_C, written_C, len(tgt.ids)) / np.maximum(src.lengths, 1)[pair_N]
        usual_N = np.maximum(self.seen_V[tgt.ids], 1) / self.seen_V.sum()
        ratio_N = ((1 - OWN) * written_N + OWN * usual_N) / usual_N
        evidence_N = np.minimum(np.log(ratio_N), MOST) * frequent_N
        sum_P, count_P = (
            np.bincount(pair_N, each_N, len(own_P)) for each_N in (evidence_N, frequent_N)
        )
        nothing_P = (count_P == 0) | (src.lengths == 0)
        return np.where(nothing_P, MOST, (sum_P + DOUBT * USUAL) / (count_P + DOUBT))


def surprise(scores_P: Numbers) -> Numbers:
    """Return how many standard deviations, of at least 0.1 nats, each score is above the median."""
    away_P = scores_P - np.median(scores_P)
    return np.asarray(away_P / _deviation(away_P, 0.1), np.float32)


def _deviation(away_P: Numbers, least: float) -> float:
    return max(float(np.median(np.abs(away_P))) / 0.6745, least)  # for a normal distribution
