"""Synthetic pairs that a model makes from monolingual texts.

Back-translation makes sources for texts of the target language with a model of the other direction
(Sennrich et al. 2016), best by sampling (Edunov et al. 2018), with a tag before each synthetic
source (Caswell et al. 2019). Distillation makes targets with a teacher, whose translations are
easier to learn than human ones (Kim and Rush 2016).
"""

from collections.abc import Iterable
from itertools import islice

from sacrebleu.metrics.chrf import CHRF

from dragoman.corpus.checking import SAMPLE
from dragoman.corpus.rules import is_in_another
from dragoman.languages import LangCodes
from dragoman.tasks.results import Translation


def are_written(texts: Iterable[str], languages: LangCodes, sure: float) -> bool:
    """Return whether most of the first texts are in the language that a model writes.

    `languages` are those that it reads and writes: such a text is not in the first, by the rule
    "language" with `sure` as its `min_language`, and may be in the second.
    """
    src, tgt = languages
    if src is None or tgt is None:
        return False
    first = [text for text in islice(texts, SAMPLE) if text.strip()]
    written = (is_in_another(t, src, sure) and not is_in_another(t, tgt, sure) for t in first)
    return 2 * sum(written) > len(first)


def nearest(result: Translation, reference: str | None) -> str:
    """Return the n-best translation closest to the reference by chrF; ties go to the better one.

    Without a reference, return the best.
    """
    texts = [result.text, *(each.text for each in result.alternatives)]
    if reference is None or len(texts) == 1:
        return result.text
    chrf = CHRF()
    return max(texts, key=lambda text: chrf.sentence_score(text, [reference]).score)
