r"""Minimum Bayes risk: the translation that is most like all that the model might have said.

Of N candidates (Kumar and Byrne 2004; by sampling Eikema and Aziz 2020) the best has the greatest
expected utility,

.. math:: \hat{y} = \arg\max_h \frac{1}{N} \sum_r u(h, r)

where every candidate counts once, so that a text that was sampled twice counts twice; those of a
beam, which are no samples, count alike too. The utility is the chrF of h against the reference r
(Popovic 2015), as sacreBLEU computes it for a sentence.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.helpers import extract_all_char_ngrams


def least_risk(texts: Sequence[str]) -> list[int]:
    """Indices of the texts, each different one once, greatest mean chrF against all texts first.

    Among equals the earlier is first, and it stands for its copies.
    """
    times = Counter(texts)
    sums = (chrf_pairs(list(times)) * np.array(list(times.values()))).sum(1)
    first = [texts.index(text) for text in times]
    return [first[n] for n in np.argsort(-sums, stable=True)]


def chrf_pairs(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    r"""The chrF, 0 to 100, of each of U texts (rows) against each as the reference (columns).

    .. math:: \mathrm{chrF} = (1 + \beta^2) \frac{P R}{\beta^2 P + R}

    with the means P of the precisions and R of the recalls of the orders that both texts have
    n-grams of. The n-grams of a text are counted once.
    """
    ngrams_of = [
        extract_all_char_ngrams(text, CHRF.CHAR_ORDER, include_whitespace=False) for text in texts
    ]
    precision, orders = np.zeros((2, len(texts), len(texts)))
    for counters in zip(*ngrams_of, strict=True):
        matches = _matches(counters)
        lengths = matches.diagonal()
        precision += matches / np.maximum(lengths, 1)[:, None]
        orders += np.outer(lengths, lengths) > 0
    precision /= np.maximum(orders, 1)
    recall, factor = precision.T, CHRF.BETA**2
    both = factor * precision + recall
    f_scores = (1 + factor) * precision * recall / np.where(both > 0, both, 1)
    return 100 * f_scores


def _matches(counters: Sequence[Counter[str]]) -> npt.NDArray[np.float64]:
    """How many n-grams each two texts share: `sum_g min(c_i(g), c_j(g))`.

    An n-gram that comes c times is c things that a text has or has not.
    """
    columns: dict[tuple[str, int], int] = {}
    rows = [
        [
            columns.setdefault((ngram, n), len(columns))
            for ngram, count in counter.items()
            for n in range(count)
        ]
        for counter in counters
    ]
    has = np.zeros((len(rows), len(columns)), dtype=np.float32)
    for row, places in zip(has, rows, strict=True):
        row[places] = 1
    return (has @ has.T).astype(np.float64)
