r"""Evaluation metrics: BLEU and chrF of texts, accuracy and F1 of labels and of tagged spans.

Texts are scored by sacreBLEU (Post 2018): the figures equal those of its own command on the same
files, to the last digit. For labels, with :math:`tp` texts that have a label and get it,
:math:`fp` that get it without having it, and :math:`fn` that have it without getting it,

.. math:: P = \frac{tp}{tp + fp} \quad R = \frac{tp}{tp + fn} \quad F_1 = \frac{2 P R}{P + R}

and 0 for 0 / 0. Spans, counted by nervaluate, are scored in the same way: a span is right if its
first word, its last word and its type are, which is the rule of the CoNLL shared tasks (Tjong Kim
Sang and De Meulder, 2003, section 2.2), and what nervaluate calls strict.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from nervaluate.entities import EvaluationResult
from nervaluate.evaluator import Evaluator
from sacrebleu.metrics.base import Signature
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from dragoman.data.tagged import detect_scheme
from dragoman.errors import InputError, did_you_mean
from dragoman.plain import Plain
from dragoman.wording import counted

READINGS = {
    10: "not usable yet",
    20: "the gist is hard to get",
    30: "the gist is clear, with many grammatical errors",
    40: "understandable to good",
    50: "good",
    60: "very good, accurate and fluent",
}
"""Meaning of a BLEU score below each bound, after the table of Google's Cloud Translation
(https://cloud.google.com/translate/docs/advanced/automl-evaluate)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores(Plain):
    """Scores of a set of translations. Without signatures they cannot be compared."""

    bleu: float
    """BLEU (Papineni et al. 2002), 0 to 100."""
    chrf: float
    """chrF2 (Popovic 2015), 0 to 100."""
    exact: float
    """Percentage of texts that are identical to a reference."""
    bleu_signature: str
    chrf_signature: str

    @property
    def reading(self) -> str:
        """A rough interpretation of the BLEU score, such as `"understandable to good"`."""
        readings = (reading for bound, reading in READINGS.items() if self.bleu < bound)
        return next(readings, "nearly the references themselves")


def evaluate(
    hypotheses: Iterable[str],
    *references: Iterable[str],
    tokenize: str | None = None,
    tgt_lang: str | None = None,
) -> Scores:
    """Compare each hypothesis with its references, one from each list.

    White space at the end of lines is ignored. `tokenize` is the tokenizer of BLEU, by default that
    of the target language; chrF needs none. Raises InputError if the lists differ in length or
    there is nothing to compare.
    """
    bleu, chrf = _metrics(tokenize or bleu_tokenizer(tgt_lang))
    given = [_texts(lines) for lines in (hypotheses, *references)]
    hypotheses, *stripped = _stripped(given[0], given[1:])
    bleu_score = bleu.corpus_score(hypotheses, stripped)
    chrf_score = chrf.corpus_score(hypotheses, stripped)
    right = sum(line in each for line, *each in zip(hypotheses, *stripped, strict=True))
    return Scores(
        bleu=bleu_score.score,
        chrf=chrf_score.score,
        exact=100 * right / len(hypotheses),
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )


def _metrics(tokenize: str) -> tuple[BLEU, CHRF]:
    if tokenize not in BLEU.TOKENIZERS:
        hint = did_you_mean(tokenize, BLEU.TOKENIZERS)
        known = ", ".join(sorted(BLEU.TOKENIZERS))
        raise InputError(f"sacreBLEU has no tokenizer {tokenize!r}, only {known}{hint}")
    return BLEU(tokenize=tokenize), CHRF()


def _texts(lines: Iterable[str]) -> list[str]:
    texts = [*lines]
    for number, text in enumerate(texts, start=1):
        if isinstance(lines, str) or not isinstance(text, str):
            raise TypeError(f"Line {number} is {text!r:.40}; give a list of texts, each a str.")
    return texts


def _stripped(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the hypotheses and all references, without white space at the end of lines."""
    for each in references or [[]]:
        _check_same_length(each, hypotheses, "reference")
    return [[line.rstrip() for line in lines] for lines in (hypotheses, *references)]


UNSPACED = {"ja", "jpn", "th", "tha", "km", "khm", "lo", "lao", "my", "mya"}
UNSPACED |= {"bo", "bod", "dz", "dzo"}  # in Tibetan script a space ends a clause


def bleu_tokenizer(tgt_lang: str | None) -> str:
    """Return BLEU's tokenizer for a target language (`zh`, `zh-CN`, `zho_Hans`, `de` ...).

    Chinese has its own; languages without spaces between words are compared by characters
    (sacreBLEU's tokenizers for Japanese and Korean need further packages); all others use 13a.
    """
    language = (tgt_lang or "").lower().replace("_", "-").split("-")[0]
    if language in ("zh", "zho", "cmn", "yue"):
        return "zh"
    return "char" if language in UNSPACED else "13a"


# ---------------------------------------------------------------- two systems


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDifference(Plain):
    """How much better the first of two systems is, and whether that may be chance."""

    difference: float
    """Its score minus that of the other system."""
    p_bootstrap: float
    """p-value of the paired bootstrap: the test set is resampled (Koehn 2004)."""
    p_randomisation: float
    """p-value of randomization: translations are swapped at random (Riezler and Maxwell 2005)."""
    bootstrap_signature: str
    randomisation_signature: str

    @property
    def significant(self) -> bool:
        """Whether both p-values are below 5 %."""
        return max(self.p_bootstrap, self.p_randomisation) < SIGNIFICANT


@dataclass(frozen=True, slots=True, kw_only=True)
class LineDifference(Plain):
    """A line that two systems translate differently."""

    line: int
    """The number of the line, from 1."""
    text: str
    other_text: str
    chrf: float
    """The chrF2 of this line in the first system's translation."""
    other_chrf: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Plain):
    """A comparison of two systems on one test set."""

    bleu: MetricDifference
    chrf: MetricDifference
    lines: tuple[LineDifference, ...]
    """The lines that differ, the largest difference of chrF2 first."""


SIGNIFICANT = 0.05


def compare(
    hypotheses: Sequence[str],
    others: Sequence[str],
    *references: Sequence[str],
    tokenize: str | None = None,
    tgt_lang: str | None = None,
) -> Comparison:
    """Compare two systems, scoring each as `evaluate` does, by sacreBLEU's own paired tests.

    They use 1,000 resampled test sets and 10,000 random swaps, with a fixed seed. If k lines
    differ, two of the 2^k swaps give the full difference (sacreBLEU counts only larger ones), so
    the p-value of swaps is at least 2^(1 - k). If the systems write the same lines, both p-values
    are 1.
    """
    hypotheses, *stripped = _stripped(hypotheses, references)
    others = _stripped(others, references)[0]

    def paired(test: str) -> tuple[Mapping[str, Signature], Mapping[str, Any]]:
        named: list[tuple[str, Sequence[str]]] = [("other", others), ("first", hypotheses)]
        bleu, chrf = _metrics(tokenize or bleu_tokenizer(tgt_lang))
        return PairedTest(named, {"bleu": bleu, "chrf": chrf}, stripped, test)()

    (bs_signatures, bs), (ar_signatures, ar) = paired("bs"), paired("ar")

    def difference(name: str) -> MetricDifference:
        (old, new), (_, swapped) = bs[name], ar[name]
        return MetricDifference(
            difference=new.score - old.score,
            p_bootstrap=new.p_value if lines else 1.0,
            p_randomisation=max(swapped.p_value, 2.0 ** (1 - len(lines))) if lines else 1.0,
            bootstrap_signature=str(bs_signatures[name]),
            randomisation_signature=str(ar_signatures[name]),
        )

    score = CHRF().sentence_score
    lines = [
        LineDifference(
            line=line,
            text=one,
            other_text=two,
            chrf=score(one, each).score,
            other_chrf=score(two, each).score,
        )
        for line, (one, two, *each) in enumerate(zip(hypotheses, others, *stripped, strict=True), 1)
        if one != two
    ]
    lines.sort(key=lambda each: -abs(each.chrf - each.other_chrf))
    return Comparison(bleu=difference("BLEU"), chrf=difference("chrF2"), lines=tuple(lines))


# ---------------------------------------------------------------- labels and tags


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Scores of one label or type of span, in percent."""

    precision: float
    recall: float
    f1: float
    count: int
    """Number of texts that have the label, or of spans."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelScores(Plain):
    """Scores of a classifier on a test set."""

    accuracy: float
    """Percentage of texts that get the right label."""
    macro_f1: float
    """The mean F1 of the labels, however rare they are."""
    majority: float
    """The accuracy of giving every text the most frequent label of the test set."""
    labels: Mapping[str, Measures]
    """Each label, in alphabetical order."""


def label_scores(right: Sequence[str], predicted: Sequence[str]) -> LabelScores:
    """Compare the label of each text with the predicted one.

    Raises InputError if the two differ in length or there is nothing to compare.
    """
    _check_same_length(right, predicted, "text")
    there, found = Counter(right), Counter(predicted)
    correct = Counter(a for a, b in zip(right, predicted, strict=True) if a == b)
    labels = {
        label: _measures(correct[label], found[label], there[label])
        for label in sorted(there | found)
    }
    return LabelScores(
        accuracy=100 * correct.total() / len(right),
        macro_f1=sum(each.f1 for each in labels.values()) / len(labels),
        majority=100 * max(there.values()) / len(right),
        labels=labels,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TagScores(Plain):
    """Scores of a tagger on a test set."""

    accuracy: float
    """Percentage of words that get the right tag."""
    spans: Measures | None
    """All spans together; None if tags are of single words."""
    types: Mapping[str, Measures]
    """Each type of span, in alphabetical order."""

    @property
    def figures(self) -> dict[str, float]:
        """The overall figures by name, which validation in training uses."""
        figures = {"accuracy": self.accuracy}
        if self.spans is not None:
            spans = self.spans
            figures |= {"f1": spans.f1, "precision": spans.precision, "recall": spans.recall}
        return figures


def tag_scores(right: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> TagScores:
    """Compare the tags of each sentence, BIO spans or one tag per word, with the predicted ones.

    Raises InputError if the two differ in their number of sentences or in the length of a sentence,
    or if there is nothing to compare.
    """
    _check_same_length(right, predicted, "sentence")
    for number, (one, two) in enumerate(zip(right, predicted, strict=True), start=1):
        if len(one) != len(two):
            raise InputError(
                f"Sentence {number} has {counted(len(one), 'tag')} and gets {len(two)}."
            )
    pairs = list(zip(chain.from_iterable(right), chain.from_iterable(predicted), strict=True))
    if not pairs:
        raise InputError("There is nothing to evaluate: no word in the input.")
    plain = detect_scheme(right) == "plain"
    spans, types = (None, {}) if plain else _compare_spans(right, predicted)
    return TagScores(
        accuracy=100 * sum(one == two for one, two in pairs) / len(pairs), spans=spans, types=types
    )


def _compare_spans(
    right: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> tuple[Measures, dict[str, Measures]]:
    tags = set(chain.from_iterable((*right, *predicted))) - {"O"}
    types = sorted({tag[2:] for tag in tags})
    evaluator = Evaluator(list(map(list, right)), list(map(list, predicted)), types, loader="list")
    found = evaluator.evaluate()

    def strict(results: Mapping[str, EvaluationResult]) -> Measures:
        counts = results["strict"]
        return _measures(counts.correct, counts.actual, counts.possible)

    return strict(found["overall"]), {type_: strict(found["entities"][type_]) for type_ in types}


def _measures(correct: int, found: int, there: int) -> Measures:
    return Measures(
        precision=100 * correct / max(1, found),
        recall=100 * correct / max(1, there),
        f1=100 * 2 * correct / max(1, found + there),
        count=there,
    )


def _check_same_length(right: Sequence[object], predicted: Sequence[object], what: str) -> None:
    if len(right) != len(predicted):
        raise InputError(
            f"There are {len(predicted)} answers for {counted(len(right), what)}; answer n must "
            f"belong to {what} n."
        )
    if not right:
        raise InputError(f"There is nothing to evaluate: no {what} in the input.")
