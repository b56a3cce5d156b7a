"""Evaluation of translations, of a model or from a file, alone or compared with others."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.comet import load_comet
from dragoman.data.checks import (
    AS_NFC,
    SAMPLE,
    corpus_warnings,
    overlap_warnings,
    script_of,
    share_apart,
)
from dragoman.data.corpus import CorpusConfig, read_pairs
from dragoman.errors import InputError, escaped
from dragoman.evaluate import SIGNIFICANT, Comparison, Scores, compare, evaluate
from dragoman.files.reading import read_lines
from dragoman.folder.opening import ModelFolder, open_folder
from dragoman.languages import LangCodes
from dragoman.tasks.evaluation import EvaluationData, Item, Report, holds_lines
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.tasks.translate.translator import Translator
from dragoman.train.runfolder import RunFolder
from dragoman.wording import counted

OTHER_FORM = 0.1
"""Difference in the share of lines not in Unicode form NFC above which a warning is given."""
UNLIKE = 1.0
"""chrF2 below which texts are unrelated; texts of one language score higher."""

MOST_COMPARED = 1_000_000
"""Maximum number of training pairs searched for those of a test."""

FEWEST = 6
"""Minimum number of differing lines: five coins fall alike in more than 5 % of all throws."""

LANGUAGE_OF = {
    "CJK": "zh",
    "HIRAGANA": "ja",
    "THAI": "th",
    "LAO": "lo",
    "KHMER": "km",
    "MYANMAR": "my",
}
"""The language assumed for a script without spaces between words."""

SHOWN = 5
"""Number of lines shown of those that two systems translate differently."""


System = ModelFolder | Path
"""A model, or a file of finished translations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """A system's translations of a test set."""

    name: str
    texts: list[str]
    scores: Scores
    comet: Mapping[str, float]
    """The COMET score, if requested."""
    speed: Mapping[str, float]
    """The speed of a model."""

    @property
    def figures(self) -> dict[str, Any]:
        """All measured figures."""
        return {**self.scores.to_dict(), **self.comet, **self.speed}


def evaluate_translator(system: System, test: EvaluationData) -> Report:
    """Score translations by BLEU and chrF, and compare them with those of `test.against`.

    Raises InputError if the files do not match, or for an unknown BLEU tokenizer.
    """
    systems: list[Sequence[System]] = [(system, *map(open_folder, test.ensemble))]
    if test.against is not None:
        systems.append([test.against if holds_lines(test.against) else open_folder(test.against)])
    models = [each for each in chain(*systems) if isinstance(each, ModelFolder)]
    sources, references = _read(test, needs_sources=bool(models or test.comet))
    known = [(each.config.src_lang, each.config.tgt_lang) for each in models[:1]]
    src_lang, tgt_lang = known[0] if known else (None, None)
    asked = test.src_lang or src_lang, test.tgt_lang or tgt_lang
    guess = None if test.tokenize or asked[1] else _unspaced(references[0])
    by = {"tokenize": test.tokenize, "tgt_lang": asked[1] or guess}
    evaluate(references[0][:1], references[0][:1], **by)  # fails before translating
    comet = None if test.comet is None else load_comet(test.comet)
    found = []
    for each in systems:
        texts, speed = _translations(each, sources, test, len(references[0]))
        of_comet = {} if comet is None else {"comet": comet(sources, texts, references[0])}
        scores = evaluate(texts, *references, **by)
        name = " + ".join(map(str, each))
        found.append(Translated(name=name, texts=texts, scores=scores, comet=of_comet, speed=speed))
    warnings = list(dict.fromkeys(_doubts(test, sources, references[0], models, asked)))
    if guess:
        warnings.append(
            f"The references look like {guess}, so BLEU takes the tokenizer of that; give "
            "--tgt-lang or --tokenize."
        )
    warnings += _of_two_forms(found, references)
    warnings += _of_empty(found, references[0], sources)
    others = [] if asked[0] and asked[0] == asked[1] else sources
    if any(_are_unlike(each, others, references) for each in found):
        way = f" (the model translates {asked[0]} to {asked[1]})" if all(asked) else ""
        warnings.append(
            "The translations have less in common with the references than with the sources, or "
            f"next to nothing: check whether --src and --ref are swapped{way}, or whether the "
            "model has learned anything yet."
        )
    return _report(found, sources, references, by, warnings)


def _read(test: EvaluationData, *, needs_sources: bool) -> tuple[list[str], list[list[str]]]:
    """Return the sources, if any, and the lines of each file of references."""
    if needs_sources and test.src is None:
        raise InputError("The test set is incomplete; give --src.")
    first, *others = test.ref
    if test.src is None:
        sources, references = [], [list(read_lines(first))]
    else:
        pairs = read_pairs(CorpusConfig(src=str(test.src), tgt=str(first)))
        sources, lines = map(list, zip(*pairs, strict=True))
        references = [lines]
    references += [_lines_of(path, len(references[0]), first) for path in others]
    return sources, references


def _unspaced(references: Sequence[str]) -> str | None:
    """Guess the language of references by the script of most lines, if it needs a tokenizer."""
    scripts = Counter(filter(None, map(script_of, references[:SAMPLE])))
    return LANGUAGE_OF.get(scripts.most_common(1)[0][0]) if scripts else None


def _lines_of(path: Path, count: int, beside: Path | str) -> list[str]:
    lines = list(read_lines(path))
    if len(lines) != count:
        raise InputError(
            f"{path} has {counted(len(lines), 'line')} but {beside} has {count:,}; line n of both "
            "must belong together."
        )
    return lines


def _translations(
    joined: Sequence[System], sources: Sequence[str], test: EvaluationData, count: int
) -> tuple[list[str], dict[str, float]]:
    """Return the translations of a file, of a model or of an ensemble, and the speed of models."""
    if isinstance(joined[0], Path):
        return _lines_of(joined[0], count, test.ref[0]), {}
    load = partial(Translator.load, device=test.device, precision=test.precision)
    first, *others = map(load, joined)
    translator = first.ensemble(*others).between(test.src_lang, test.tgt_lang)
    results = translator.stream(sources, test.decoding)
    translations, seconds = test.read(results, "line", len(sources))
    num_tokens = sum(len(translation.tokens) for translation in translations)
    return [translation.text for translation in translations], {
        "sentences": len(sources),
        "tokens": num_tokens,
        "seconds": seconds,
        "sentences_per_second": len(sources) / seconds,
        "tokens_per_second": num_tokens / seconds,
    }


def _are_unlike(
    found: Translated, sources: Sequence[str], references: Sequence[Sequence[str]]
) -> bool:
    """Return whether translations resemble the sources more than the references, or neither."""
    if found.scores.chrf < UNLIKE or not sources:
        return found.scores.chrf < UNLIKE
    texts, others = found.texts[:SAMPLE], (each[:SAMPLE] for each in references)
    return evaluate(texts, sources[:SAMPLE]).chrf > evaluate(texts, *others).chrf


def _of_empty(
    found: Sequence[Translated], references: Sequence[str], sources: Sequence[str]
) -> Iterator[str]:
    """Yield a sentence for each side with empty lines where the other side has text."""

    def missed(lines: Sequence[str], others: Sequence[str]) -> int:
        pairs = zip(lines, others, strict=True)
        return sum(bool(line.strip()) and not other.strip() for line, other in pairs)

    for each in found:
        if count := missed(references, each.texts):
            yield (
                f"{each.name} has nothing for {counted(count, 'line')} of the references; they "
                "count as wrong."
            )
    if count := missed(sources or found[0].texts, references):
        yield (
            f"{counted(count, 'reference is', 'references are')} empty where there is a "
            "translation; complete or remove these lines."
        )


def _of_two_forms(
    found: Sequence[Translated], references: Sequence[Sequence[str]]
) -> Iterator[str]:
    """Yield a sentence if translations and references are in different Unicode forms."""
    wanted = max(map(share_apart, references))
    for each in found:
        if abs((share := share_apart(each.texts)) - wanted) > OTHER_FORM:
            yield (
                f"{share:.0%} of the lines of {each.name} and {wanted:.0%} of the references are "
                f"not in Unicode's form NFC; write both in it ({AS_NFC}), since the scores take "
                "the same letter in two forms for two."
            )


def _doubts(
    test: EvaluationData,
    sources: Sequence[str],
    references: Sequence[str],
    models: Sequence[ModelFolder],
    languages: LangCodes,
) -> Iterator[str]:
    if sources:
        name, pairs = str(test.ref[0]), list(zip(sources, references, strict=True))
        lengths = np.array([[len(text) for text in side] for side in (sources, references)])
        yield from corpus_warnings(name, lengths, pairs.__getitem__, languages)
        for model in models:
            yield from overlap_warnings(name, pairs, _seen_in_training(model.path, pairs))


def _seen_in_training(model: Path, pairs: Sequence[tuple[str, str]]) -> list[bool]:
    """Return which pairs are in a model's training texts, as far as these files exist."""
    wanted, seen = set(pairs), set[tuple[str, str]]()
    with suppress(InputError, OSError):
        run = RunFolder(model).begun(TranslateRecipe())
        corpora = [each for each in run.data.training if all(path.is_file() for path in each.paths)]
        read = chain.from_iterable(map(read_pairs, corpora))
        either_way = chain.from_iterable((pair, pair[::-1]) for pair in islice(read, MOST_COMPARED))
        seen = {pair for pair in either_way if pair in wanted}
    return [pair in seen for pair in pairs]


# ---------------------------------------------------------------- report


def _report(
    found: Sequence[Translated],
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    by: Mapping[str, str | None],
    warnings: Sequence[str],
) -> Report:
    one, *others = found
    figures, lines = one.figures, list[Item](_scores(one))
    for two in others:
        comparison = compare(one.texts, two.texts, *references, **by)
        against = {"name": two.name, **two.figures}
        figures |= {"against": against, "comparison": comparison.to_dict()}
        lines = [
            *_table(one, two, comparison),
            *_differing(one, two, comparison, sources, references),
        ]
    seconds = sum(each.speed.get("seconds", 0.0) for each in found)
    count = counted(len(one.texts), "sentence")
    return Report(
        figures=figures,
        lines=lines,
        remarks=(
            *([f"{count} in {seconds:.1f} s"] if seconds else []),
            f"What this BLEU means, as a rough guide: {one.scores.reading}.",
        ),
        warnings=warnings,
        answers=one.texts,
    )


def _scores(found: Translated) -> list[str]:
    scores, speed = found.scores, found.speed
    lines = [
        f"BLEU   {scores.bleu:.2f}  {scores.bleu_signature}",
        f"chrF2  {scores.chrf:.2f}  {scores.chrf_signature}",
        f"exact  {scores.exact:.2f}  percent of the lines",
    ]
    lines += [f"COMET  {score:.4f}" for score in found.comet.values()]
    if speed:
        lines.append(
            f"speed  {speed['sentences_per_second']:,.1f} sentences/s, "
            f"{speed['tokens_per_second']:,.0f} tokens/s"
        )
    return lines


def _table(one: Translated, two: Translated, comparison: Comparison) -> Iterator[Item]:
    """Yield the scores of both, the significance of their difference, and the signatures."""
    p, q = comparison.bleu, comparison.chrf
    scores = {
        "BLEU": (one.scores.bleu, two.scores.bleu, p.p_bootstrap, p.p_randomisation),
        "chrF2": (one.scores.chrf, two.scores.chrf, q.p_bootstrap, q.p_randomisation),
        "exact": (one.scores.exact, two.scores.exact),
    }
    rows = [[name, *_compared(*values)] for name, values in scores.items()]
    rows += [["COMET", *_compared(one.comet[k], two.comet[k], digits=4)] for k in one.comet]
    yield [["", one.name, two.name, "difference", "p (bootstrap)", "p (randomisation)"], *rows]
    size, count = abs(p.difference), len(comparison.lines)
    if not count:
        yield "Both are the same, line by line."
    elif count < FEWEST:
        yield f"Too few lines differ, {count} of {len(one.texts):,}, to tell which is better."
    elif p.significant:
        better = one.name if p.difference > 0 else two.name
        yield f"{better} is better by {size:.2f} BLEU, hardly by chance (p < {SIGNIFICANT})."
    else:
        yield f"The difference of {size:.2f} BLEU may be chance; a larger test set would tell."
    for each in (p, q):
        yield from (each.bootstrap_signature, each.randomisation_signature)


def _compared(one: float, two: float, *p: float, digits: int = 2) -> list[str]:
    values = [f"{one:.{digits}f}", f"{two:.{digits}f}", f"{one - two:+.{digits}f}"]
    return [*values, *(f"{each:.4f}" for each in p), *[""] * (2 - len(p))]


def _differing(
    one: Translated,
    two: Translated,
    comparison: Comparison,
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
) -> Iterator[str]:
    count = counted(len(comparison.lines), "line")
    yield f"{count} of {len(one.texts):,} differ" + (", most:" if comparison.lines else ".")
    for each in comparison.lines[:SHOWN]:
        texts = [("source", line) for line in sources[each.line - 1 : each.line]]
        texts += [("reference", lines[each.line - 1]) for lines in references]
        texts += [(one.name, each.text), (two.name, each.other_text)]
        width = max(len(name) for name, _ in texts)
        yield f"line {each.line:,}: chrF2 {each.chrf:.1f} and {each.other_chrf:.1f}"
        yield from (f"  {name:<{width}}  {escaped(text)}" for name, text in texts)
