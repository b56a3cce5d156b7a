"""Document translation: text by text, with the tags put back, and a report on the rest.

    data, report = translate_document(read_document(data, "page.html"), translator)

Equal texts are translated once. A `Draft` does the same in steps, for callers that show progress or
keep what was translated before an interruption.
"""

import json
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, tee
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.decoding import Decoding
from dragoman.documents.characters import SURROGATE
from dragoman.documents.document import MARKS, Document, PackedValues, Part, Segment
from dragoman.documents.names import is_name
from dragoman.plain import Plain
from dragoman.tasks.results import Translation
from dragoman.tasks.translate.preserved import protected
from dragoman.text.glossary import Glossary
from dragoman.text.items import Item, in_lists, numbered
from dragoman.text.judging import exact
from dragoman.text.marked import Marked, Pieces, merged, with_tags_of
from dragoman.text.putback import Link, put_back
from dragoman.text.spans import Span

Places = tuple[tuple[int, int], ...]
"""Start and end offsets of what is copied in a text."""


class Translates(Protocol):
    """An object that translates lines, such as a `Translator`."""

    @property
    def memory(self) -> Mapping[str, str]:
        """Translations that it reuses, by source with one space between words."""

    def stream(
        self,
        lines: Iterable[str],
        options: Decoding | None = None,
        *,
        kept: Iterable[Places] | None = None,
        glossary: Glossary | Mapping[str, str] | None = None,
        window: int = 4096,
    ) -> Iterator[Translation]:
        """Yield the translation of each line; `kept` is what is copied in each."""


@dataclass(frozen=True, slots=True)
class Remark(Plain):
    """A remark on a text of a document."""

    where: str
    text: str
    """The beginning of the text."""
    what: tuple[str, ...]
    """The flags of its translation, or why it has none."""
    missed: tuple[str, ...] = ()
    """The terms that its translation lacks: source → target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentReport(Plain):
    """A summary of a document's translation."""

    segments: int
    """Number of texts."""
    translated: int
    remembered: int
    """Number of `translated` texts that come from a memory."""
    left: tuple[str, ...]
    """What the format leaves alone, and why."""
    untranslated: tuple[Remark, ...]
    """The other texts, and why; those without letters are omitted."""
    flagged: tuple[Remark, ...]
    """Translations that need review."""


def translate_document(
    document: Document,
    translator: Translates,
    options: Decoding | None = None,
    *,
    glossary: Glossary | Mapping[str, str] | None = None,
) -> tuple[bytes, DocumentReport]:
    """Return the translated file and a summary."""
    draft = Draft(document, translator.memory)
    for _ in draft.stream(translator, options, glossary=glossary):
        pass
    return draft.written(), draft.report()


class Draft:
    """A document and its translation so far."""

    def __init__(self, document: Document, memory: Mapping[str, str] | None = None) -> None:
        """Texts with tags are translated from the memory if it has them with the same tags."""
        self._document, self._firsts = document, document.firsts
        self._last: tuple[int, tuple[Part, Segment]] | None = None  # often requested again
        self._found = PackedValues()
        self._found_at = array("q", [-1]) * self._firsts[-1]
        self._letterless, self._untranslated = 0, dict[int, tuple[str, ...]]()
        self._remembered, self._missed = set[int](), dict[int, tuple[str, ...]]()
        self.flagged = dict[int, tuple[str, ...]]()
        """Flags of segments that need review, by segment number."""
        numbers, hashes = array("q"), array("q")
        self._signs, begun = dict[int, Span](), list[tuple[int, Item]]()
        for number, segment in enumerate(document.segments):
            _, source, _ = segment.source.trimmed()
            why = _why_not(source)
            if why is None and (made := _recalled(segment, memory or {})) is not None:
                self._remembered.add(number)
                self._keep(number, made)
            elif why is None:
                item = numbered(source.text)
                if item and not any(start < item.span[1] for start, _ in source.kept[:1]):
                    begun.append((len(numbers), item))
                numbers.append(number)
                hashes.append(hash((source.text, source.kept)))
            elif why == _NO_LETTER:
                self._letterless += 1
            else:
                self._untranslated[number] = (why,)
        for place, span in in_lists(begun):
            self._signs[numbers[place]] = span
            hashes[place] = hash(self._text(numbers[place]))
        self._sort(np.asarray(numbers), np.asarray(hashes))

    def _sort(self, numbers: NDArray[np.int64], hashes: NDArray[np.int64]) -> None:
        """Sort the numbers so that equal texts are adjacent, in the order of their first ones."""
        _, first, equal = np.unique(hashes, return_index=True, return_inverse=True)
        firsts = first[equal]
        for place in np.flatnonzero(firsts != np.arange(len(firsts))):
            if self._text(numbers[place]) != self._text(numbers[firsts[place]]):
                firsts[place] = place  # only the hash is equal
        order = np.argsort(firsts, kind="stable")
        begins = np.flatnonzero(np.diff(firsts[order], prepend=-1))
        self._numbers, self._begins = numbers[order], np.append(begins, len(order))

    @property
    def total(self) -> int:
        """Number of texts to translate; equal ones count once."""
        return len(self._begins) - 1

    @property
    def texts(self) -> list[tuple[str, Places]]:
        """The texts to translate, and what is copied in each."""
        return [self._text(places[0]) for places in self.places]

    @property
    def places(self) -> Iterator[list[int]]:
        """For each of `texts`, the numbers of its segments."""
        for first, end in pairwise(self._begins):
            yield list(map(int, self._numbers[first:end]))

    def _at(self, number: int) -> tuple[Part, Segment]:
        """Return a segment by its number, with the part that contains it."""
        if self._last is None or self._last[0] != number:
            place = bisect_right(self._firsts, number) - 1
            part = self._document.parts[place]
            self._last = number, (part, part.segments[number - self._firsts[place]])
        return self._last[1]

    def _text(self, number: int) -> tuple[str, Places]:
        _, source, _ = self._at(number)[1].source.trimmed()
        sign = self._signs.get(number)
        return source.text, source.kept if sign is None else (sign, *source.kept)

    def put(self, results: Iterable[tuple[str, Sequence[Link], Sequence[str]] | None]) -> None:
        """Store text, links and flags of the translation of each of `texts`; None if it failed."""
        for places, result in zip(self.places, results, strict=True):
            self._take(places, *(result or ("", (), ("failed",))))

    def stream(
        self,
        translator: Translates,
        options: Decoding | None = None,
        *,
        glossary: Glossary | Mapping[str, str] | None = None,
        before: Iterable[str] = (),
    ) -> Iterator[str]:
        """Translate text by text. Yields each result as a line; `before` has the earlier ones."""
        done = 0
        for line, places in zip(before, self.places, strict=False):
            self._take(places, *json.loads(line))
            done += 1
        firsts = self._numbers[self._begins[done:-1]]
        some, same = tee(map(self._text, firsts))  # both are read at the same pace
        lines, kept = (text for text, _ in some), (places for _, places in same)
        results = translator.stream(lines, options, kept=kept, glossary=glossary)
        for places, result in zip(islice(self.places, done, None), results, strict=True):
            tagged = any(any(self._at(number)[1].source.tags) for number in places)
            links = result.text_links if tagged else ()  # the model may have to compute them
            missed = [f"{t.source} → {t.target}" for t in result.terms if t.outcome == "missed"]
            self._take(places, result.text, links, result.flags, missed)
            yield json.dumps([result.text, links, result.flags, missed])

    def _take(
        self,
        places: Sequence[int],
        text: str,
        links: Sequence[Link],
        flags: Sequence[str],
        missed: Sequence[str] = (),
    ) -> None:
        whole, _ = self._text(places[0])
        dropped = _dropped(text, whole)
        cleaned = text.translate(dropped)
        for number in places:
            if not cleaned.strip():
                self._untranslated[number] = ("the model wrote nothing", *flags)
                continue
            (_, segment), raised = self._at(number), [*flags]
            self._remembered.update({number} if "memory" in flags else ())
            self._missed.update({number: tuple(missed)} if missed else {})
            if cleaned == whole and segment.beside:
                self._untranslated[number] = ("its translation is the same",)
            elif cleaned != whole:
                before, source, after = segment.source.trimmed()
                uncut = protected(text) if any(source.tags) else ()
                made = put_back(source, text, links, uncut)  # links count all characters
                if "memory" in flags and _SWALLOWED * source.share(str.isalnum) < 1:
                    is_whole = made.share(str.isalnum) == 1
                    made = put_back(source, text, (), uncut) if is_whole else made
                pieces = (p.translate(dropped) if isinstance(p, str) else p for p in made.pieces)
                kept = merged(pieces)
                made = merged([*before, *_without_white_edges(kept), *after])
                if not self._keep(number, made):
                    continue
                if any(made.hollow(each) - segment.source.hollow(each) for each in _COUNTED):
                    raised.append("empty_tag")
                raised += _faults(source, kept, is_searched_again="retried" in flags)
            if flagged := tuple(f for f in dict.fromkeys(raised) if f not in _USUAL):
                self.flagged[number] = flagged

    def _keep(self, number: int, made: Marked) -> bool:
        """Store the translation of a segment; return False if it cannot be written there."""
        part, segment = self._at(number)
        if fault := segment.fault(part.text[segment.start : segment.end], segment.source, made):
            self._untranslated[number] = (fault,)
        elif made != segment.source:
            self._found_at[number] = len(self._found)
            self._found.append(segment.write(made))
        return not fault

    def written(self) -> bytes:
        """Return the file with the translations so far."""
        return self._document.written(self._text_at)

    def _text_at(self, number: int) -> str | None:
        place = self._found_at[number]
        return None if place < 0 else str(self._found[place])

    def report(self) -> DocumentReport:
        """Return a summary of the translation so far."""
        total = len(self._found_at)
        return DocumentReport(
            segments=total,
            translated=total - self._letterless - len(self._untranslated),
            remembered=len(self._remembered - self._untranslated.keys()),
            left=self._document.left,
            untranslated=self._remarks(self._untranslated),
            flagged=self._remarks(self.flagged),
        )

    def _remarks(self, said: dict[int, tuple[str, ...]]) -> tuple[Remark, ...]:
        found = ((self._at(number)[1], number) for number in sorted(said))
        return tuple(
            Remark(s.where, s.source.text.strip()[:60], said[n], self._missed.get(n, ()))
            for s, n in found
        )


_COUNTED = str.isalnum, lambda char: not char.isspace()
"""What a tag must not lose: its words, and its signs."""
_SWALLOWED = 3
"""If an element with less than one part in this many of its source has all words of a translation
from a memory, that is a mistake of the model, which did not write it; in Chinese "the dog" is one
word."""
_USUAL = {"empty", "memory", "retried", "split"}
"""Flags that need no review."""
_SIGNS = re.compile(r"\||(?<=[^\W\d_])&(?=[a-z])")
"""Bars, and the `&` of E&xit, but not of AT&T."""
_NO_LETTER = "it has no letter"
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffe\uffff]"
)


def _dropped(text: str, source: str) -> dict[int, str]:
    """Return what replaces characters that no format may get: marks, and control characters that
    the source lacks; spaces for line ends. An unchanged text is not written.
    """
    found = {*_CONTROL.findall(text)} - ({*source} if text == source else {*source} - {*MARKS})
    return {ord(char): " " if char.isspace() else "" for char in found}


def _faults(source: Marked, made: Marked, *, is_searched_again: bool) -> Iterator[str]:
    """Yield the flags of a translation with its tags, by the text around what is copied.

    A number that the first search did not copy may also be a word there. Bars between forms, and
    the sign of a menu key inside a word, are placeholders.
    """
    if sorted(_SIGNS.findall(source.text)) != sorted(_SIGNS.findall(made.text)):
        yield "placeholders"
    if not source.kept:
        return
    if not any(char.isalnum() for part in made.around for char in part):
        yield "no_output"
    whole = source.text
    for text in {whole[start:end].strip() for start, end in source.kept}:
        if not text or text.isalpha():  # it may also be an ordinary word
            continue
        often, before = (
            sum(1 for part in m.around for _ in exact(part, text)) for m in (made, source)
        )
        if often > before or (is_searched_again and text.isdecimal()):
            yield "kept"
            return


def _without_white_edges(marked: Marked) -> Pieces:
    """Return the pieces of a translation without outer white space: the source has its own."""
    pieces = [*marked.pieces]
    if pieces and isinstance(pieces[0], str):
        pieces[0] = pieces[0].lstrip()
    if pieces and isinstance(pieces[-1], str):
        pieces[-1] = pieces[-1].rstrip()
    return tuple(pieces)


def _recalled(segment: Segment, memory: Mapping[str, str]) -> Marked | None:
    """Return a memory's translation of a text with tags, or of what is inside its outer tags."""
    if not memory:
        return None
    before, inner, after = segment.source.trimmed()
    whole = segment.source.written()
    first, last = whole[: len(whole) - len(whole.lstrip())], whole[len(whole.rstrip()) :]
    for begin, source, end in (((first,), segment.source, (last,)), (before, inner, after)):
        written = source.written().strip()
        is_tagged = any(tag.raw.strip() for tag in source.tags)
        if is_tagged and not (segment.beside and "\n" in written):
            found = memory.get(" ".join(written.split()))
            made = None if found is None else with_tags_of(source, found)
            if made is not None:
                return merged([*begin, *made.pieces, *end])
    return None


def _why_not(source: Marked) -> str | None:
    text = "".join(source.around)
    if not any(char.isalpha() for char in text):
        return "it is marked as not to be translated" if source.kept else _NO_LETTER
    if is_name(text):
        return "it looks like an address or a name"
    if not text.isprintable() and (found := SURROGATE.search(text)):
        is_byte = "\udc80" <= found[0] <= "\udcff"
        return "it has bytes that are not UTF-8" if is_byte else "it has half of a character"
    return None
