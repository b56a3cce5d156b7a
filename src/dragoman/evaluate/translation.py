"""Scores of written texts: BLEU and chrF, by sacreBLEU (Post 2018), and how many are exact.

The figures are those of sacreBLEU's own command on the same files, to the last digit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from dragoman.errors import InputError, did_you_mean
from dragoman.plain import Plain
from dragoman.wording import counted

__all__ = ["Scores", "bleu_tokenizer", "evaluate"]

READINGS = {
    10: "not usable yet",
    20: "the gist is hard to get",
    30: "the gist is clear, with many grammatical errors",
    40: "understandable to good",
    50: "good",
    60: "very good, accurate and fluent",
}
"""What a BLEU below each bound means, after the table of Google's Cloud Translation
(https://cloud.google.com/translate/docs/advanced/automl-evaluate)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores(Plain):
    """What a set of translations is worth. Scores without signatures cannot be compared."""

    bleu: float
    """BLEU (Papineni et al. 2002), 0 to 100."""
    chrf: float
    """chrF2 (Popovic 2015), 0 to 100."""
    exact: float
    """Percent of the texts that are the reference to the letter."""
    bleu_signature: str
    """How BLEU was computed."""
    chrf_signature: str
    """How chrF was computed."""

    @property
    def reading(self) -> str:
        """What the BLEU means, as a rough guide: `"understandable to good"`."""
        readings = (reading for bound, reading in READINGS.items() if self.bleu < bound)
        return next(readings, "nearly the references themselves")


def evaluate(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    tokenize: str | None = None,
    tgt_lang: str | None = None,
) -> Scores:
    """Compare each hypothesis with its reference; white space at their ends does not count.

    `tokenize` is the tokenizer of BLEU, unless given that of the target language; chrF needs
    none. Raises InputError when the two differ in length or there is nothing to compare.
    """
    tokenize = tokenize or bleu_tokenizer(tgt_lang)
    if len(hypotheses) != len(references):
        raise InputError(
            f"Given are {counted(len(hypotheses), 'translation')} and "
            f"{counted(len(references), 'reference')}; line n of one must belong to line n of the "
            "other."
        )
    if not hypotheses:
        raise InputError("There is nothing to evaluate: no line in the input.")
    if tokenize not in BLEU.TOKENIZERS:
        hint = did_you_mean(tokenize, BLEU.TOKENIZERS)
        known = ", ".join(sorted(BLEU.TOKENIZERS))
        raise InputError(f"sacreBLEU has no tokenizer {tokenize!r}, only {known}{hint}")
    bleu, chrf = BLEU(tokenize=tokenize), CHRF()
    hypotheses = [line.rstrip() for line in hypotheses]
    references = [line.rstrip() for line in references]
    bleu_score = bleu.corpus_score(hypotheses, [references])
    chrf_score = chrf.corpus_score(hypotheses, [references])
    return Scores(
        bleu=bleu_score.score,
        chrf=chrf_score.score,
        exact=100 * sum(map(str.__eq__, hypotheses, references)) / len(references),
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )


def bleu_tokenizer(tgt_lang: str | None) -> str:
    """The tokenizer of BLEU that fits a target language (`zh`, `zh-CN`, `de` ...).

    Chinese has its own; languages that write no spaces between words are compared by characters
    (sacreBLEU's Japanese and Korean ones need further packages); all others by 13a.
    """
    language = (tgt_lang or "").lower().replace("_", "-").split("-")[0]
    return {"zh": "zh", "ja": "char", "th": "char", "km": "char", "lo": "char", "my": "char"}.get(
        language, "13a"
    )
