"""How unlikely our models find the pairs of a corpus: dual conditional cross-entropy.

    |H(t | s) - H(s | t)| + (H(t | s) + H(s | t)) / 2

in nats per token, with one model per direction (Junczys-Dowmunt 2018). Both find a translation
likely, and about equally so. A truncated text is likely enough by itself, but its source is not:
the first term detects that. A single model gives only H(t | s).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import tee

from dragoman.data.checks import Pair
from dragoman.tasks.results import Scored, Scorer, stream_scores


def cross_entropies(scorers: Sequence[Scorer], pairs: Iterable[Pair]) -> Iterator[float]:
    """Return the cross-entropy of each pair.

    The first model reads its source; a second one, if any, reads its target.
    """
    one, other = tee(pairs)
    there = map(_per_token, stream_scores(scorers[0], one))
    if len(scorers) == 1:
        return there
    turned = ((tgt, src) for src, tgt in other)
    back = map(_per_token, stream_scores(scorers[1], turned))
    return (abs(a - b) + (a + b) / 2 for a, b in zip(there, back, strict=True))


def _per_token(scored: Scored) -> float:
    """Return the mean over the tokens that the model can produce; 0 if there are none."""
    known = [each for each in scored.token_log_probs if each > -math.inf]
    return -math.fsum(known) / max(1, len(known))
