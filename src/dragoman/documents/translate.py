"""A document translated: text by text, with the tags put back, and a report of the rest.

    data, report = translate_document(read_document(data, "page.html"), translator)

Equal texts are translated once. A `Draft` is the same in steps, for whoever shows how far it is, or
keeps what was translated before an interruption.
"""

import json
import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from dragoman.decoding import Decoding
from dragoman.documents.asides import MARKS
from dragoman.documents.characters import SURROGATE
from dragoman.documents.document import Document
from dragoman.plain import Plain
from dragoman.tasks.results import Translation
from dragoman.text.glossary import Glossary
from dragoman.text.marked import Marked, Pieces, Tag, merged
from dragoman.text.putback import Link, put_back

Places = tuple[tuple[int, int], ...]
"""Where in a text something is copied: starts and ends."""


class Translates(Protocol):
    """What translates lines: a `Translator`."""

    def stream(
        self,
        lines: Iterable[str],
        options: Decoding | None = None,
        *,
        kept: Iterable[Places] | None = None,
        glossary: Glossary | None = None,
        window: int = 4096,
    ) -> Iterator[Translation]:
        """The translation of each line; `kept` has what is copied of each."""


@dataclass(frozen=True, slots=True)
class Remark(Plain):
    """What is to be said of a text of a document."""

    where: str
    text: str
    """How it begins."""
    what: tuple[str, ...]
    """The flags of its translation, or why it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentReport(Plain):
    """What was done with a document."""

    segments: int
    """Its texts."""
    translated: int
    left: tuple[str, ...]
    """What the format leaves alone, and why."""
    untranslated: tuple[Remark, ...]
    """The other texts, and why; without those that have no letter."""
    flagged: tuple[Remark, ...]
    """The translations that somebody should look at."""


def translate_document(
    document: Document,
    translator: Translates,
    options: Decoding | None = None,
    *,
    glossary: Glossary | None = None,
) -> tuple[bytes, DocumentReport]:
    """The translated file, and what was done."""
    draft = Draft(document)
    for _ in draft.stream(translator, options, glossary=glossary):
        pass
    return draft.written(), draft.report()


class Draft:
    """A document, and what of it is translated so far."""

    def __init__(self, document: Document) -> None:
        self._document, self._segments = document, [*document.segments]
        self._found: list[str | None] = [None] * len(self._segments)
        self._equal = defaultdict[int, list[int]](list)  # to one before, by its number
        self._untranslated = dict[int, tuple[str, ...]]()
        self.flagged = dict[int, tuple[str, ...]]()
        """The flags of segments that somebody should look at, by their numbers."""
        numbers = dict[tuple[str, Places], int]()
        for number, segment in enumerate(self._segments):
            _, source, _ = segment.source.trimmed()
            if (why := _why_not(source)) is not None:
                self._untranslated[number] = (why,)
            elif (first := numbers.setdefault((source.text, source.kept), number)) != number:
                self._equal[first].append(number)
        self._numbers = array("l", numbers.values())  # without the texts, which segments have

    @property
    def total(self) -> int:
        """Number of texts to translate; equal ones are one."""
        return len(self._numbers)

    @property
    def texts(self) -> list[tuple[str, Places]]:
        """The texts to translate, and what is copied of each."""
        return [*map(self._text, self._numbers)]

    @property
    def places(self) -> list[list[int]]:
        """Of each of `texts` the numbers of the segments that have it."""
        return [*map(self._places, self._numbers)]

    def _text(self, number: int) -> tuple[str, Places]:
        _, source, _ = self._segments[number].source.trimmed()
        return source.text, source.kept

    def _places(self, number: int) -> list[int]:
        return [number, *self._equal.get(number, ())]

    def put(self, results: Iterable[tuple[str, Sequence[Link], Sequence[str]] | None]) -> None:
        """Take text, links and flags of the translation of each of `texts`; None has failed."""
        for number, result in zip(self._numbers, results, strict=True):
            self._take(number, *(result or ("", (), ("failed",))))

    def stream(
        self,
        translator: Translates,
        options: Decoding | None = None,
        *,
        glossary: Glossary | None = None,
        before: Iterable[str] = (),
    ) -> Iterator[str]:
        """Translate text by text. Yields each result as a line; `before` has those of earlier."""
        numbers = iter(self._numbers)
        for line, number in zip(before, numbers, strict=False):
            self._take(number, *json.loads(line))
        rest = array("l", numbers)
        lines, places = (self._text(n)[0] for n in rest), (self._text(n)[1] for n in rest)
        results = translator.stream(lines, options, kept=places, glossary=glossary)
        for number, result in zip(rest, results, strict=True):
            tagged = any(any(self._segments[n].source.tags) for n in self._places(number))
            links = result.text_links if tagged else ()  # which the model may have to compute
            self._take(number, result.text, links, result.flags)
            yield json.dumps([result.text, links, result.flags])

    def _take(self, first: int, text: str, links: Sequence[Link], flags: Sequence[str]) -> None:
        whole, _ = self._text(first)
        dropped = _dropped(text, whole)
        cleaned = text.translate(dropped)
        for number in self._places(first):
            if not cleaned.strip():
                self._untranslated[number] = ("the model wrote nothing", *flags)
                continue
            segment, raised = self._segments[number], [*flags]
            if cleaned == whole and segment.beside:
                self._untranslated[number] = ("its translation is the same",)
            elif cleaned != whole:
                before, source, after = segment.source.trimmed()
                pieces = put_back(source, text, links).pieces  # by links, which count all
                kept = merged(p.translate(dropped) if isinstance(p, str) else p for p in pieces)
                made = merged([*before, *_without_white_edges(kept.pieces), *after])
                if fault := segment.fault(made):
                    self._untranslated[number] = (fault,)
                    continue
                if made != segment.source:
                    self._found[number] = segment.write(made)
                if made.hollow - segment.source.hollow:
                    raised.append("empty_tag")
            if flagged := tuple(f for f in raised if f not in _USUAL):
                self.flagged[number] = flagged

    def written(self) -> bytes:
        """The file with the translations that there are."""
        return self._document.written(self._found)

    def report(self) -> DocumentReport:
        """What was done so far."""
        untranslated = {n: why for n, why in self._untranslated.items() if why != (_NO_LETTER,)}
        return DocumentReport(
            segments=len(self._segments),
            translated=len(self._segments) - len(self._untranslated),
            left=self._document.left,
            untranslated=self._remarks(untranslated),
            flagged=self._remarks(self.flagged),
        )

    def _remarks(self, said: dict[int, tuple[str, ...]]) -> tuple[Remark, ...]:
        return tuple(
            Remark(self._segments[n].where, self._segments[n].source.text.strip()[:60], what)
            for n, what in sorted(said.items())
        )


_USUAL = {"empty", "memory", "retried", "split"}
"""Flags that nobody need look at."""
_NO_LETTER = "it has no letter"
_CODE = re.compile(
    r"(?:https?|ftp|file|data|mailto):[!-~]+|www\.[!-~]+|[!-~]+@[!-~]+\.[a-z]+|\.{0,2}/[!-~]+"
    r"|[!-~]+/[!-~]+/[!-~]*|[!-~]*[\\#=_<>{}$][!-~]*|[A-Za-z0-9.+:-]*\d[A-Za-z0-9.+:-]*"
    r"|[\w-]+\.[a-z]{2,4}",
    re.ASCII,
)
"""One word that is an address, the name of a file or of a thing, or a number with its unit."""
_LONGEST_WORD = 256


_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffe\uffff]"
)


def _dropped(text: str, source: str) -> dict[int, str]:
    """What no format is to be given: marks, and control characters that the source lacks; spaces
    for ends. An unchanged text is not written.
    """
    found = {*_CONTROL.findall(text)} - ({*source} if text == source else {*source} - {*MARKS})
    return {ord(char): " " if char.isspace() else "" for char in found}


def _without_white_edges(pieces: Pieces) -> Iterator[str | Tag]:
    """The pieces of a translation without white space around them: the source has its own."""
    for number, piece in enumerate(pieces):
        text = piece
        if isinstance(text, str) and number == 0:
            text = text.lstrip()
        if isinstance(text, str) and number == len(pieces) - 1:
            text = text.rstrip()
        yield text


def _why_not(source: Marked) -> str | None:
    """Why a text is not translated, if it is not."""
    whole, parts, end = source.text, list[str](), 0
    for start, after in (*source.kept, (len(whole),) * 2):
        parts.append(whole[end:start])
        end = after
    text = "".join(parts)
    if not any(char.isalpha() for char in text):
        return "it is marked as not to be translated" if source.kept else _NO_LETTER
    if len(text) <= _LONGEST_WORD and _CODE.fullmatch(text.strip()):
        return "it looks like an address or a name"
    if not text.isprintable() and SURROGATE.search(text):
        return "it has bytes that are not UTF-8"
    return None
