"""Statistics of a corpus: pairs, words, lengths, letters, and the growth of its vocabulary."""

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dragoman.corpus.checking import SAMPLE, Progress, Read, key_of
from dragoman.corpus.rules import likely_side, tokens, words
from dragoman.data.checks import script_of
from dragoman.languages import LangCodes
from dragoman.plain import Plain
from dragoman.wording import counted

QUANTILES = {
    0.0: "minimum",
    0.25: "25th percentile",
    0.5: "median",
    0.75: "75th percentile",
    0.95: "95th percentile",
    0.99: "99th percentile",
    1.0: "maximum",
}
"""Quantiles of sentence lengths, and their names."""
FEWEST = 1000
"""Number of pairs after which the vocabulary is counted, and again after each tenfold."""
HELD = 1 << 18
"""Number of different words kept as text; the others are kept as 8-byte hashes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideStats(Plain):
    """The statistics of one side."""

    language: str | None
    """As given, else as most of the first lines show, else as the column is named."""
    words: float
    characters: int
    lengths: tuple[float, ...]
    """Words per sentence, by `QUANTILES`."""
    vocabulary: tuple[tuple[int, int], ...]
    """Number of pairs, and of different words in them; characters in scripts without spaces."""
    scripts: Mapping[str, int]
    """Number of sentences in each script; "none" for those without a letter."""

    def rows(self, ratios: Sequence[float] = ()) -> Iterator[tuple[str, str]]:
        """Yield the rows of a table: what is counted, and the number."""
        yield "words", f"{self.words:,.0f}"
        yield "characters", f"{self.characters:,}"
        for name, length in zip(QUANTILES.values(), self.lengths, strict=True):
            yield f"words per sentence, {name}", f"{length:g}"
        for name, ratio in zip(QUANTILES.values(), ratios, strict=False):
            yield f"words per source word, {name}", f"{ratio:g}"
        for pairs, different in self.vocabulary:
            yield f"different words in {counted(pairs, 'pair')}", f"{different:,}"
        for script, sentences in self.scripts.items():
            yield f"sentences, script {script}", f"{sentences:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusStats(Plain):
    """The statistics of a corpus."""

    pairs: int
    src: SideStats
    tgt: SideStats
    ratios: tuple[float, ...]
    """Target words per source word, by `QUANTILES`."""


class _Side:
    def __init__(self) -> None:
        self.lengths, self.characters = array("f"), 0
        self.scripts, self.vocabulary = Counter[str](), list[tuple[int, int]]()
        self._first, self._fresh = list[str](), set[str]()  # texts, and words since `_known`
        self._known = np.empty(0, np.uint64)

    def add(self, text: str) -> None:
        self.characters += len(text)
        self.lengths.append(words(text))
        self.scripts[script_of(text) or "none"] += 1
        if len(self._first) < SAMPLE:
            self._first.append(text)
        self._fresh.update(tokens(text))
        count = len(self.lengths)
        if count >= FEWEST and count == FEWEST * 10 ** (len(str(count // FEWEST)) - 1):
            self.vocabulary.append((count, self._different()))
        elif len(self._fresh) > HELD:
            self._different()

    def _different(self) -> int:
        """Return the number of different words so far."""
        keys = np.fromiter(map(key_of, self._fresh), np.uint64, len(self._fresh))
        self._known = np.union1d(self._known, keys)
        self._fresh.clear()
        return len(self._known)

    def stats(self, language: str | None, named: str | None) -> SideStats:
        lengths, count = np.array(self.lengths), len(self.lengths)
        if not self.vocabulary or self.vocabulary[-1][0] < count:
            self.vocabulary.append((count, self._different()))
        return SideStats(
            language=language or likely_side(self._first) or named,
            words=round(float(lengths.sum(dtype=np.float64)), 1),
            characters=self.characters,
            lengths=_quantiles(lengths),
            vocabulary=tuple(self.vocabulary),
            scripts=dict(self.scripts.most_common()),
        )


def count(
    read: Read,
    languages: LangCodes = (None, None),
    *,
    named: LangCodes = (None, None),
    progress: Progress = iter,
) -> CorpusStats:
    """Count what a corpus contains in one pass; a pair takes 8 bytes of memory.

    `named` are the languages to report if they are neither given nor identified by the lines.
    """
    src, tgt = _Side(), _Side()
    for one, other in progress(read()):
        src.add(one)
        tgt.add(other)
    shorter = np.maximum(np.array(src.lengths), 1)
    return CorpusStats(
        pairs=len(src.lengths),
        src=src.stats(languages[0], named[0]),
        tgt=tgt.stats(languages[1], named[1]),
        ratios=_quantiles(np.array(tgt.lengths) / shorter),
    )


def _quantiles(values: npt.NDArray[np.floating]) -> tuple[float, ...]:
    some = values.astype(np.float64) if len(values) else np.zeros(1)
    return tuple(np.quantile(some, [*QUANTILES], method="lower").round(2).tolist())
