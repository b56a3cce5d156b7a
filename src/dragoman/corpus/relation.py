"""Whether the sides of a pair have to do with each other, as far as the corpus itself tells it.

A word of one side is explained by the other as far as IBM model 1 gives it more than its share of
all words,

    evidence(t) = log((0.9 mean over s of t(t | s) + 0.1 p(t)) / p(t)),

where the counts leave out the pair that is looked at: else a word that is there once would be
explained by whatever stands beside it. Shuffled pairs have about no evidence, translations much.

How long a translation is follows from its source (Gale and Church 1993, section 3.1): lengths
differ from the usual ratio by about s sqrt(length), whatever the language. A translation that was
cut short explains little of its source and is far too short, neither of which is sure by itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dragoman.corpus.rules import tokens
from dragoman.data.lexical import MOST_LINKS, LinkCounts, count_links

OWN, MOST = 0.1, 3.0
"""Share of p(t) that is mixed in; most evidence of a word, so that rare words do not decide."""
FREQUENT = 3
"""Times that a word must be there to count."""
DOUBT, USUAL = 4, 1.5
"""Words that are added to a side, with the evidence of translations: a few words prove nothing."""
Numbers = npt.NDArray[np.float32]


class Relation:
    """What the words of some pairs become, in both directions."""

    def __init__(self, pairs: Iterable[tuple[str, str]], step: int = 1) -> None:
        """Learn from pairs, every `step`-th of the corpus."""
        self._vocabularies: tuple[dict[str, int], dict[str, int]] = {}, {}
        ids = [self._known(*pair) for pair in pairs]
        sizes = [len(each) for each in self._vocabularies]
        self._step = step * max(1, -(-sum(len(s) * len(t) for s, t in ids) // MOST_LINKS))
        taken = ids[:: self._step // step]
        self._into_tgt = _Direction.learn(taken, sizes[0], sizes[1])
        self._into_src = _Direction.learn([(t, s) for s, t in taken], sizes[1], sizes[0])

    def _known(self, src: str, tgt: str) -> tuple[list[int], list[int]]:
        first, second = (
            [known.setdefault(word, len(known)) for word in tokens(text)]
            for known, text in zip(self._vocabularies, (src, tgt), strict=True)
        )
        return first, second

    def evidence(self, src: str, tgt: str, number: int) -> tuple[float, float]:
        """The mean evidence of the target's words and of the source's; `number` is the pair's."""
        ids = [
            np.array([known[word] for word in tokens(text) if word in known], np.int64)
            for known, text in zip(self._vocabularies, (src, tgt), strict=True)
        ]
        learnt = number % self._step == 0
        return (
            self._into_tgt.evidence(ids[0], ids[1], learnt=learnt),
            self._into_src.evidence(ids[1], ids[0], learnt=learnt),
        )


@dataclass(frozen=True, slots=True)
class _Direction:
    """What words are written for those of the other side."""

    links: LinkCounts
    seen_V: np.ndarray
    """How often each target word is there."""

    @classmethod
    def learn(
        cls, pairs: Sequence[tuple[list[int], list[int]]], src_size: int, tgt_size: int
    ) -> "_Direction":
        written = np.concatenate([np.array(tgt, np.int64) for _, tgt in pairs])
        seen_V = np.bincount(written, minlength=tgt_size)
        return cls(count_links(pairs, src_size, tgt_size), seen_V)

    def evidence(self, src: np.ndarray, tgt: np.ndarray, *, learnt: bool) -> float:
        """The mean evidence of the frequent words of a target; much where there are none."""
        tgt = tgt[self.seen_V[tgt] >= FREQUENT]
        if not len(tgt) or not len(src):
            return MOST
        keys_TS = tgt[:, None] + src * self.links.tgt_size
        known_K = self.links.keys_K
        at_TS = np.minimum(np.searchsorted(known_K, keys_TS), len(known_K) - 1)
        counts_TS = np.where(known_K[at_TS] == keys_TS, self.links.counts_K[at_TS], 0.0)
        totals_S = self.links.totals_V[src]
        if learnt:
            probs_TS = counts_TS / np.maximum(totals_S, 1e-9)
            own_TS = probs_TS / np.maximum(probs_TS.sum(1, keepdims=True), 1e-12)
            counts_TS = np.maximum(counts_TS - own_TS, 0.0)
            totals_S = totals_S - own_TS.sum(0)
        written_T = (counts_TS / np.maximum(totals_S, 1e-9)).mean(1)
        usual_T = self.seen_V[tgt] / self.seen_V.sum()
        ratio_T = ((1 - OWN) * written_T + OWN * usual_T) / usual_T
        evidence = np.minimum(np.log(ratio_T), MOST).sum() + DOUBT * USUAL
        return float(evidence / (len(tgt) + DOUBT))


def unevenness(lengths_P2: Numbers) -> Numbers:
    """By how many standard deviations each target is shorter or longer than is usual.

    `(t - c s) / sqrt(m v)`, where c is the usual ratio, m the mean of c s and t, and v the usual
    square; both are medians, which a fifth of bad pairs hardly changes.
    """
    src_P, tgt_P = lengths_P2.T + np.float32(1)
    ratio = np.median(tgt_P / src_P)
    return _in_deviations((tgt_P - ratio * src_P) / np.sqrt((tgt_P + ratio * src_P) / 2), 1e-6)


def surprise(scores_P: Numbers) -> Numbers:
    """By how many standard deviations, of 0.1 nats or more, each score is above the median."""
    return _in_deviations(scores_P - np.median(scores_P), 0.1)


def _in_deviations(away_P: Numbers, least: float) -> Numbers:
    deviation = np.median(np.abs(away_P)) / 0.6745  # of a normal distribution
    return np.asarray(away_P / max(float(deviation), least), np.float32)


def relatedness(evidence_P2: Numbers, lengths_P2: Numbers) -> Numbers:
    """How much the sides of pairs have to do with each other: about 1.5 for translations.

    `min(both, mean - 0.3) - 0.4 max(0, |unevenness| - 1.5)`: of numbers that were tried, those that
    found most of the shuffled and cut pairs of Multi30k for 1 % of the others.
    """
    least_P = np.minimum(evidence_P2.min(1), evidence_P2.mean(1) - LESS)
    beyond_P = np.maximum(np.abs(unevenness(lengths_P2)) - SLACK, 0)
    return np.asarray(least_P - WEIGHT * beyond_P, np.float32)


LESS, SLACK, WEIGHT = 0.3, 1.5, 0.4
