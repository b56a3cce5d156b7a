r"""What a glossary does: terms obeyed, quality, and time, beside the same lines without one.

    python -m benchmarks terms runs/en-de

Terms are drawn from the references, up to two a line, where IBM model 1, learnt from the training
pairs, links a word of the source and one of the reference. Proper terms: both are content words,
and each is the other's best link. Random terms are the control: any word of the reference, with
the word of the source that it links to best. `marked` are the terms that people marked, in
`markup-tags`. `search` and `replace` are the ways of the option `terms`. `exact` is the share of
terms whose target stands in the translation as a whole word, `stem` the share that does so in this
form or another.
"""

import argparse
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

from benchmarks.paired import Figures, environment
from dragoman.data.corpus import CorpusConfig, read_pairs
from dragoman.data.lexical import count_links
from dragoman.decoding import Decoding, Terms, merged
from dragoman.evaluate import evaluate
from dragoman.tasks.results import Translation
from dragoman.tasks.translate.translator import Translator
from dragoman.text.glossary import Glossary
from dragoman.text.judging import judge

WORD = re.compile(r"\w+(?:-\w+)*")
MARKED = re.compile(r'<g id="(\d+)">(.*?)</g>')
WAYS: Mapping[str, Terms] = {"without": "search", "search": "search", "replace": "replace"}
"""Without a glossary, and with one in each of the ways to write its terms."""
MOST_TERMS = 2
"""Terms drawn of a line."""
CONTENT = 4
"""Letters of a content word, at least."""
FUNCTION = 100
"""Most frequent words of either side, which are none."""


@dataclass(frozen=True)
class Line:
    """A line to translate, its reference, and terms of both."""

    source: str
    reference: str
    terms: tuple[tuple[str, str], ...]

    @cached_property
    def glossary(self) -> Glossary:
        """The terms as a glossary of this line alone."""
        return Glossary(dict(self.terms))


class Links:
    """Which words are each other's translations, learnt from pairs."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        sides = [[WORD.findall(pair[side]) for pair in pairs] for side in (0, 1)]
        counts = [Counter(word for words in side for word in words) for side in sides]
        self._ids = [{word: n for n, word in enumerate(count)} for count in counts]
        self._frequent = [{word for word, _ in c.most_common(FUNCTION)} for c in counts]
        coded = [
            [[ids[word] for word in words] for words in side]
            for ids, side in zip(self._ids, sides, strict=True)
        ]
        both = [*zip(*coded, strict=True)]
        self._size = len(self._ids[1])
        learnt = count_links(both, len(self._ids[0]), self._size)
        self._keys, self._probs = learnt.keys_K, learnt.probs_K

    def probability(self, src: str, tgt: str) -> float:
        """What model 1 gives to a target word, given a source word; 0 where they never met."""
        try:
            key = self._ids[0][src] * self._size + self._ids[1][tgt]
        except KeyError:
            return 0.0
        place = np.searchsorted(self._keys, key)
        there = place < len(self._keys) and self._keys[place] == key
        return float(self._probs[place]) if there else 0.0

    def is_content(self, word: str, side: int) -> bool:
        """Whether a word is long, and not among the most frequent."""
        return len(word) >= CONTENT and word not in self._frequent[side]

    def proper(self, source: str, reference: str) -> list[tuple[str, str]]:
        """Content words that are each other's best link."""
        src, tgt = _once(source), _once(reference)
        found = []
        for word in src:
            best = max(tgt, key=lambda t: self.probability(word, t), default="")
            if not best or self.probability(word, best) < 0.1:
                continue
            back = max(src, key=lambda s: self.probability(s, best))
            if back == word and self.is_content(word, 0) and self.is_content(best, 1):
                found.append((word, best))
        return found

    def random(self, source: str, reference: str) -> list[tuple[str, str]]:
        """Each word of the reference that is no name of a link already, with its best link."""
        src, tgt = _once(source), _once(reference)
        linked = [(max(src, key=lambda s: self.probability(s, t), default=""), t) for t in tgt]
        return [(s, t) for s, t in linked if s]


def _once(text: str) -> list[str]:
    """The words that a text has once, whatever their case."""
    words = WORD.findall(text)
    counts = Counter(word.lower() for word in words)
    return [word for word in words if counts[word.lower()] == 1]


def draw(
    pairs: Iterable[tuple[str, str]], choose: Callable[[str, str], list[tuple[str, str]]], seed: int
) -> list[Line]:
    """Lines that have terms, with up to `MOST_TERMS` of them."""
    rng = random.Random(seed)
    lines = []
    for source, reference in pairs:
        terms = choose(source, reference)
        rng.shuffle(terms)
        unique = {s.lower(): (s, t) for s, t in terms}
        if chosen := tuple([*unique.values()][:MOST_TERMS]):
            lines.append(Line(source, reference, chosen))
    return lines


def marked(folder: Path, languages: tuple[str, str]) -> list[Line]:
    """The lines with terms that people marked."""
    files = (str(folder / f"dev-glossary.{language}") for language in languages)
    lines = []
    for pair in read_pairs(CorpusConfig(**dict(zip(("src", "tgt"), files, strict=True)))):
        found = [dict(MARKED.findall(side)) for side in pair]
        source, reference = (MARKED.sub(r"\2", side).strip() for side in pair)
        terms = {found[0][n].strip(): found[1][n].strip() for n in found[0] if n in found[1]}
        folded = {source.lower(): (source, target) for source, target in terms.items()}
        lines.append(Line(source, reference, tuple(folded.values())))
    return [line for line in lines if line.terms]


def translated(
    translator: Translator, lines: Sequence[Line], options: Decoding, *, terms: bool
) -> tuple[list[Translation], float]:
    """The translations, with or without the terms of each line, and their processor time."""
    start = process_time()
    chosen = merged(options, translator.options)
    courses = [
        course
        for line in lines
        for course in translator.courses(
            [line.source], chosen, glossary=line.glossary if terms else None
        )
    ]
    found = [*translator.scheduler.submit(courses).in_order()]
    return found, process_time() - start


def measured(lines: Sequence[Line], found: Sequence[Translation], tgt_lang: str | None) -> Figures:
    """How many terms were obeyed, and the scores."""
    pairs = zip(lines, found, strict=True)
    outcomes = [
        outcome
        for line, each in pairs
        for outcome in judge(line.glossary.find(line.source), each.text)
    ]
    scores = evaluate(
        [each.text for each in found], [line.reference for line in lines], tgt_lang=tgt_lang
    )
    share = 100 / max(1, len(outcomes))
    return {
        "exact": share * outcomes.count("applied"),
        "stem": share * sum(outcome != "missed" for outcome in outcomes),
        "bleu": scores.bleu,
        "chrf": scores.chrf,
    }


def compared(
    translator: Translator,
    lines: Sequence[Line],
    options: Decoding,
    tgt_lang: str | None,
    rounds: int,
) -> Figures:
    """The figures of each of `WAYS`, and the ratios of their times, which take turns."""
    figures: Figures = {"lines": len(lines), "terms": sum(len(line.terms) for line in lines)}
    seconds = dict[str, list[float]]()
    for _ in range(rounds):
        for way, terms in WAYS.items():
            chosen = replace(options, terms=terms)
            found, taken = translated(translator, lines, chosen, terms=way != "without")
            seconds.setdefault(way, []).append(taken)
            figures[way] = measured(lines, found, tgt_lang)
    for way, taken_each in seconds.items():
        ratios = [a / b for a, b in zip(taken_each, seconds["without"], strict=True)]
        figures[way] |= {"time": median(ratios), "seconds": median(taken_each)}
    return figures


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Draw, translate, print and return the figures."""
    parser = argparse.ArgumentParser(
        prog="benchmarks terms",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="a folder of a model, en-de")
    parser.add_argument("--lines", type=int, default=1000, help="lines of the test set")
    parser.add_argument("--beams", type=int, nargs="+", default=[5, 1], help="beam sizes")
    parser.add_argument("--rounds", type=int, default=3, help="times that each is measured")
    chosen = parser.parse_args(arguments)
    data = Path(os.environ["DRAGOMAN_DATA"])
    train, test = (
        [
            *read_pairs(
                CorpusConfig(
                    src=str(data / f"{name}.en{ending}"), tgt=str(data / f"{name}.de{ending}")
                )
            )
        ]
        for name, ending in (("multi30k/train", ".xz"), ("multi30k/test_2016_flickr", ""))
    )
    links, test = Links(train), test[: chosen.lines]
    sets = {
        "proper": draw(test, links.proper, seed=1),
        "random": draw(test, links.random, seed=1),
        "marked": marked(data / "markup-tags", ("en", "de")),
    }
    translator = Translator.load(chosen.model)
    results: dict[str, Figures] = {}
    for beam in chosen.beams:
        options = Decoding(beam_size=beam)
        for name, lines in ((name, lines) for name, lines in sets.items() if lines):
            found = compared(translator, lines, options, "de", chosen.rounds)
            results[f"{name}, beam {beam}"] = found
            print(f"{name}, beam {beam}: {found['lines']} lines, {found['terms']} terms")
            for way in WAYS:
                shown = "  ".join(f"{key} {value:.2f}" for key, value in found[way].items())
                print(f"  {way:<8} {shown}")
    return {"terms": {"environment": environment(), "results": results}}
