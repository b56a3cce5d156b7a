"""A stand-in for a model: it translates word by word, and links each word to its source."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import AnyStr

from dragoman.decoding import Decoding
from dragoman.documents.formats import read_document
from dragoman.documents.translate import DocumentReport, translate_document
from dragoman.languages import LangCodes
from dragoman.tasks.results import Translation

WORD = re.compile(r"\w+|[^\w\s]")
Places = tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True)
class Linked(Translation):
    """A translation with links."""

    text_links: tuple[tuple[int, int, int, int], ...] = ()


class WordTranslator:
    """Applies a function to each word that is not copied; `order` permutes the words."""

    def __init__(
        self,
        change: Callable[[str], str] = str,
        order: Callable[[list[int]], list[int]] = list,
        *,
        most: int | None = None,
    ) -> None:
        """Create a translator that fails after `most` lines."""
        self._change, self._order, self._most = change, order, most
        self.lines: list[str] = []
        self.kept: list[Places] = []
        self.memory: dict[str, str] = {}

    def stream(
        self,
        lines: Iterable[str],
        options: Decoding | None = None,
        *,
        kept: Iterable[Places] | None = None,
        glossary: object = None,
        window: int = 4096,
    ) -> Iterator[Translation]:
        """Translate lines like `Translator.stream`."""
        del options, glossary, window
        for line, places in zip(lines, iter(lambda: (), 0) if kept is None else kept, strict=False):
            if self._most is not None and len(self.lines) == self._most:
                raise KeyboardInterrupt
            self.lines.append(line)
            self.kept.append(places)
            yield self._translate(line, places)

    def _translate(self, line: str, kept: Places) -> Linked:
        words = [*self._words(line, kept)]
        spaces = [
            line[a[1] : b[0]]
            for a, b in zip([(0, 0), *words], [*words, (len(line),) * 2], strict=True)
        ]
        text, links, copied = spaces[0], [], {*kept}
        for number, space in zip(self._order([*range(len(words))]), spaces[1:], strict=True):
            start, end = words[number]
            word = line[start:end] if (start, end) in copied else self._change(line[start:end])
            links.append((start, end, len(text), len(text) + len(word)))
            text += word + space
        return Linked(text=text, text_links=tuple(links))

    @staticmethod
    def _words(line: str, kept: Places) -> Iterator[tuple[int, int]]:
        place = 0
        for start, end in (*kept, (len(line), len(line))):
            yield from (match.span() for match in WORD.finditer(line, place, start))
            if start < end:
                yield start, end
            place = end


def backwards(numbers: list[int]) -> list[int]:
    """Reverse the words."""
    return numbers[::-1]


def translated(
    source: AnyStr,
    name: str,
    translator: WordTranslator | None = None,
    languages: LangCodes = ("en", "de"),
) -> tuple[AnyStr, list[str], DocumentReport]:
    """Return a document in capitals, the texts that the model was given, and the report."""
    if isinstance(source, str):
        made, lines, report = translated(source.encode(), name, translator, languages)
        return made.decode(), lines, report
    translator = translator or WordTranslator(str.upper)
    made, report = translate_document(read_document(source, name, languages=languages), translator)
    return made, translator.lines, report


def in_capitals(source: str) -> tuple[str, str]:
    """Return a document without its guillemets, and with the quoted texts in capitals."""
    upper = re.sub("(?s)«(.*?)»", lambda text: text[1].upper(), source)
    return re.sub("[«»]", "", source), upper
