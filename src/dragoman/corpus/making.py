"""Pairs that a model has made, of texts of one language.

Back-translation makes sources for texts of the target language by a model of the other direction
(Sennrich et al. 2016), best by sampling (Edunov et al. 2018), with a tag in front of each that was
made (Caswell et al. 2019). Distillation makes targets by a teacher, whose translations are easier
to learn than those of people (Kim and Rush 2016).
"""

from sacrebleu.metrics.chrf import CHRF

from dragoman.tasks.results import Translation


def nearest(result: Translation, reference: str | None) -> str:
    """Of the n best that with the greatest chrF against the reference; ties go to the better one.

    Without a reference the best.
    """
    texts = [result.text, *(each.text for each in result.alternatives)]
    if reference is None or len(texts) == 1:
        return result.text
    chrf = CHRF()
    return max(texts, key=lambda text: chrf.sentence_score(text, [reference]).score)
