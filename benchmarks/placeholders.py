r"""What becomes of text that is copied: whether it is there, where it is, and time.

    python -m benchmarks placeholders runs/en-de

In a line of Multi30k's test set one content word or two, and the words of the reference that IBM
model 1 links them to, become the same placeholder: `one`, `two`, `glued` with marks around it, and
`kept`, which are names that the caller names. `first` is the translation without, `all` with what
is done where something is missing. Shares of the placeholders: `once` are there as often as in the
source; `placed` are, and no word that the translation and its reference share (difflib) is on the
other side. `retried` is a share of the lines.
"""

import argparse
import os
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from statistics import median
from time import process_time

from benchmarks.paired import Figures, environment
from benchmarks.terms import Links
from dragoman.data.corpus import CorpusConfig, read_pairs
from dragoman.decoding import Decoding
from dragoman.evaluate import evaluate
from dragoman.tasks.results import Translation
from dragoman.tasks.translate.translator import Translator

PLAIN = (
    *("{name}", "%s", "{{x}}", "${user}", "%(count)d", "{0}", "%1$s"),
    *("https://example.org/a?b=1", "info@example.org"),
)
SETS = {
    "one": ("", PLAIN, ("",), 1),
    "two": ("", PLAIN, ("",), 2),
    "glued": ("", ("{name}", "%s", "{0}"), ('"', "()", "[]", "/"), 1),
    "kept": ("kept", ("Vrolok", "Zyx-77", "Foobar Pro", "qux_id", "Brzk"), ("",), 1),
}
"""Whether the caller names them, what they are, the marks around them, and how many a line has."""
TOKEN = re.compile(r"\0\d+\0|\w+|[^\w\s\0]")


@dataclass(frozen=True)
class Line:
    """A line to translate and its reference, both with the same texts, each once."""

    source: str
    reference: str
    texts: tuple[str, ...]

    @property
    def kept(self) -> list[tuple[int, int]]:
        """Where the texts are in the source."""
        starts = ((self.source.index(text), text) for text in self.texts)
        return sorted((start, start + len(text)) for start, text in starts)

    def placed(self, translation: str) -> int:
        """How many texts are where the reference has them."""
        found, right = self._tokens(translation), self._tokens(self.reference)
        shared = SequenceMatcher(None, found, right, autojunk=False).get_matching_blocks()
        pairs = [(block.a + n, block.b + n) for block in shared for n in range(block.size)]
        words = [(a, b) for a, b in pairs if found[a][0] != "\0"]
        marks = [f"\0{n}\0" for n in range(len(self.texts)) if found.count(f"\0{n}\0") == 1]
        places = [(found.index(mark), right.index(mark)) for mark in marks]
        return sum(all((a < p) == (b < q) for a, b in words) for p, q in places)

    def _tokens(self, text: str) -> list[str]:
        for n, own in enumerate(self.texts):
            text = text.replace(own, f" \0{n}\0 ")
        return TOKEN.findall(text)


def draw(pairs: Sequence[tuple[str, str]], links: Links, name: str, most: int) -> list[Line]:
    """Lines in which words and their translations have become placeholders."""
    _, kinds, around, words = SETS[name]
    rng, lines = random.Random(1), list[Line]()
    for source, reference in pairs:
        terms = links.proper(source, reference)
        terms = [(s, t) for s, t in terms if source.count(s) == 1 == reference.count(t)]
        if len(terms) < words:
            continue
        texts, src, tgt = rng.sample(kinds, words), source, reference
        for text, (s, t) in zip(texts, rng.sample(terms, words), strict=True):
            marks = rng.choice(around)
            src, tgt = src.replace(s, marks[:1] + text + marks[-1:]), tgt.replace(t, text)
        if all(src.count(text) == 1 == tgt.count(text) for text in texts):
            lines.append(Line(src, tgt, tuple(texts)))
    rng.shuffle(lines)
    return lines[:most]


def measured(lines: Sequence[Line], found: Sequence[Translation]) -> Figures:
    """How many texts are there, and the scores."""
    texts = [each.text for each in found]
    total = sum(len(line.texts) for line in lines)
    once = sum(
        text.count(own) == 1 for line, text in zip(lines, texts, strict=True) for own in line.texts
    )
    placed = sum(line.placed(text) for line, text in zip(lines, texts, strict=True))
    scores = evaluate(texts, [line.reference for line in lines], tgt_lang="de")
    return {
        "once": 100 * once / total,
        "placed": 100 * placed / total,
        "bleu": scores.bleu,
        "retried": 100 * sum("retried" in each.flags for each in found) / len(found),
    }


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Draw, translate, print and return the figures."""
    parser = argparse.ArgumentParser(
        prog="benchmarks placeholders",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="a folder of a model, en-de")
    parser.add_argument("--lines", type=int, default=300, help="most lines of each kind")
    parser.add_argument("--beam", type=int, default=5, help="beam size")
    parser.add_argument("--rounds", type=int, default=3, help="times that each is measured")
    chosen = parser.parse_args(arguments)
    data = Path(os.environ["DRAGOMAN_DATA"]) / "multi30k"
    train, test = (
        [*read_pairs(CorpusConfig(src=str(data / src), tgt=str(data / tgt)))]
        for src, tgt in (
            ("train.en.xz", "train.de.xz"),
            ("test_2016_flickr.en", "test_2016_flickr.de"),
        )
    )
    links, translator = Links(train), Translator.load(chosen.model)
    results: dict[str, Figures] = {}
    for name in SETS:
        lines = draw(test, links, name, chosen.lines)
        if not lines:
            print(f"{name}: no line has words that translate each other")
            continue
        kept = [line.kept for line in lines] if SETS[name][0] else None
        for which, retry in (("first", False), ("all", True)):
            options, seconds = Decoding(beam_size=chosen.beam, retry=retry), list[float]()
            for _ in range(chosen.rounds):
                start = process_time()
                found = translator.translate([x.source for x in lines], options=options, kept=kept)
                seconds.append(process_time() - start)
            figures = measured(lines, found) | {"seconds": median(seconds)}
            results[f"{name}, {which}"] = figures | {"lines": len(lines)}
            shown = "  ".join(f"{key} {value:.1f}" for key, value in figures.items())
            print(f"{name:<6}{which:<6}{len(lines)} lines  {shown}")
    return {"placeholders": {"environment": environment(), "results": results}}
