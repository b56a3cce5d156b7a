"""Pairs that a model has made, of texts of one language.

Back-translation makes sources for texts of the target language by a model of the other direction
(Sennrich et al. 2016), best by sampling (Edunov et al. 2018), with a tag in front of each that was
made (Caswell et al. 2019). Distillation makes targets by a teacher, whose translations are easier
to learn than those of people (Kim and Rush 2016).
"""

from collections.abc import Iterable
from itertools import islice

from sacrebleu.metrics.chrf import CHRF

from dragoman.corpus.checking import SAMPLE
from dragoman.corpus.rules import is_in_another
from dragoman.languages import LangCodes
from dragoman.tasks.results import Translation


def are_written(texts: Iterable[str], languages: LangCodes, sure: float) -> bool:
    """Whether most of the first texts are in the language that a model writes.

    `languages` are those that it reads and writes: such a text is not in the one, by the rule
    "language" with that `min_language`, and may be in the other.
    """
    src, tgt = languages
    if src is None or tgt is None:
        return False
    first = [text for text in islice(texts, SAMPLE) if text.strip()]
    written = (is_in_another(t, src, sure) and not is_in_another(t, tgt, sure) for t in first)
    return 2 * sum(written) > len(first)


def nearest(result: Translation, reference: str | None) -> str:
    """Of the n best that with the greatest chrF against the reference; ties go to the better one.

    Without a reference the best.
    """
    texts = [result.text, *(each.text for each in result.alternatives)]
    if reference is None or len(texts) == 1:
        return result.text
    chrf = CHRF()
    return max(texts, key=lambda text: chrf.sentence_score(text, [reference]).score)
