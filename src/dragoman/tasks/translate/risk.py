r"""Minimum Bayes risk: the translation most similar to everything the model might have written.

Of N candidates (Eikema and Aziz 2020; Freitag et al. 2022 compare utilities) the best has the
greatest expected utility,

.. math:: \hat{y} = \arg\max_h \frac{1}{N} \sum_r \mathrm{chrF}(h, r)

where all candidates have the same weight: a text that was sampled twice counts twice, and the
hypotheses of a beam, which are not samples, count once each.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.helpers import extract_all_char_ngrams


def least_risk(texts: Sequence[str]) -> list[int]:
    """Return the indices of distinct texts, greatest mean chrF against all texts first.

    Ties go to the earlier text; the first of equal texts represents its copies.
    """
    times = Counter(texts)
    sums = (chrf_pairs(list(times)) * np.array(list(times.values()))).sum(1)
    first = [texts.index(text) for text in times]
    return [first[n] for n in np.argsort(-sums, stable=True)]


def chrf_pairs(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    r"""Return the chrF, 0 to 100, of each of U texts (rows) against each as reference (columns).

    .. math:: \mathrm{chrF} = (1 + \beta^2) \frac{P R}{\beta^2 P + R}

    with the means P of the precisions and R of the recalls over the orders of which both texts have
    n-grams. The n-grams of each text are counted once.
    """
    ngrams_of = [extract_all_char_ngrams(text, CHRF.CHAR_ORDER) for text in texts]
    precision, orders = np.zeros((2, len(texts), len(texts)))
    for counters in zip(*ngrams_of, strict=True):
        # An n-gram that occurs c times is c things that a text has or lacks.
        things = [[(gram, n) for gram, c in each.items() for n in range(c)] for each in counters]
        columns = {thing: n for n, thing in enumerate(set(chain(*things)))}
        has = np.zeros((len(texts), len(columns)), dtype=np.float32)
        for row, own in zip(has, things, strict=True):
            row[[columns[thing] for thing in own]] = 1
        matches = (has @ has.T).astype(np.float64)
        lengths = matches.diagonal()
        precision += matches / np.maximum(lengths, 1)[:, None]
        orders += np.outer(lengths, lengths) > 0
    precision /= np.maximum(orders, 1)
    recall, factor = precision.T, CHRF.BETA**2
    both = factor * precision + recall
    return 100 * (1 + factor) * precision * recall / np.where(both > 0, both, 1)
