"""A document: text to translate, in bytes that are preserved.

A format locates the text (`Segment`), as characters of a part of the document; the translations are
written there, and every other byte is unchanged. A simple file has one part, its whole content; an
archive has one part for each member that contains text.
"""

import marshal
import re
import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any

from dragoman.documents.characters import Encode
from dragoman.errors import InputError, did_you_mean
from dragoman.languages import LangCodes, base_of, is_right_to_left, tag
from dragoman.text.marked import Marked, Tag

MOST = 1 << 18
"""Maximum number of segments in a document."""
NAMED = 20
"""Maximum number of places listed for each reason why text is left alone."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Text that is translated as a unit: a paragraph, a cell, a message."""

    start: int
    """Start offset in its part, in characters."""
    end: int
    """End offset in its part."""
    source: Marked
    """Text to translate."""
    write: Callable[[Marked], str]
    """Formats a translation for this place, with the escapes of the format."""
    where: str
    """Location shown to the user, such as "line 3"."""
    fault: Callable[[str, Marked, Marked], str] = lambda *_: ""
    """Returns why a translation cannot be written there, from the current text, `source` and the
    translation; "" if it can."""
    beside: bool = False
    """Whether a translation is written next to the source instead of replacing it."""


class Left:
    """Untranslated content of a document, by reason, with its places."""

    def __init__(self) -> None:
        self._places, self._counts = dict[str, list[str]](), Counter[str]()

    def add(self, why: str, where: str) -> None:
        """Add a place that is left alone for this reason."""
        self._counts[why] += 1
        if self._counts[why] <= NAMED:
            self._places.setdefault(why, []).append(where)

    @property
    def total(self) -> int:
        """The number of places."""
        return self._counts.total()

    def __iter__(self) -> Iterator[str]:
        """Yield a sentence for each reason."""
        for why, places in self._places.items():
            rest = self._counts[why] - len(places)
            yield f"{why}: {'; '.join([*places, *[f'{rest:,} more'] * (rest > 0)])}"


class Keys:
    """The values that are translated: those under requested keys, or all if none is requested.

    `depth` is the number of collections around a key or a value.
    """

    def __init__(self, asked: Iterable[str]) -> None:
        self._asked, self._seen = {*asked}, set[str]()
        self._chosen = sys.maxsize if self._asked else 0  # depth of the innermost requested key

    def enter(self, key: str, depth: int) -> None:
        """Read a key."""
        if self._asked:
            self._seen.add(key)
            if depth <= self._chosen:
                self._chosen = depth if key in self._asked else sys.maxsize

    def leave(self, depth: int) -> None:
        """Leave a collection for the one around it."""
        if depth < self._chosen:
            self._chosen = sys.maxsize

    def hold(self, depth: int) -> bool:
        """Return whether a value is translated."""
        return self._chosen <= depth

    def reject_missing(self, name: str) -> None:
        """Raise InputError for a requested key that the document does not have."""
        for key in sorted(self._asked - self._seen):
            near = did_you_mean(key, self._seen) or "; correct it."
            raise InputError(f"{name} has no key {key}{near}")


class PackedValues:
    """Values of built-in types in one byte buffer; as objects they take many times more memory."""

    def __init__(self) -> None:
        self._bytes, self._places = bytearray(), array("I")

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, number: int) -> Any:  # noqa: ANN401 -- what was appended
        return marshal.loads(memoryview(self._bytes)[self._places[number] :])  # noqa: S302 -- ours

    def append(self, value: Any) -> None:  # noqa: ANN401 -- what `marshal` takes
        """Add a value."""
        self._places.append(len(self._bytes))
        self._bytes += marshal.dumps(value)


class Segments:
    """The segments of a text, stored compactly; each access creates a new `Segment`."""

    def __init__(self, name: str, segments: Iterable[Segment] = ()) -> None:
        """`name` is the document's name, for messages."""
        self._name, self._packed = name, PackedValues()
        self._starts, self._ends = array("I"), array("I")
        self._functions = list[Callable[..., str]]()
        self._numbers = dict[object, int]()  # of the functions
        for segment in segments:
            self.append(segment)

    def append(self, segment: Segment) -> None:
        """Add a segment. Raises InputError for more than `MOST`."""
        reject_more(len(self) + 1, self._name)
        self._starts.append(segment.start)
        self._ends.append(segment.end)
        pieces = tuple(p if isinstance(p, str) else _FIELDS(p) for p in segment.source.pieces)
        functions = self._number(segment.write), self._number(segment.fault)
        self._packed.append((pieces, *functions, segment.where, segment.beside))

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, number: int) -> Segment:
        pieces, write, fault, where, beside = self._packed[number]
        source = Marked(tuple(p if isinstance(p, str) else Tag(*p) for p in pieces))
        functions = self._functions[write], self._functions[fault]
        place = self._starts[number], self._ends[number]
        return Segment(*place, source, functions[0], where, functions[1], beside)

    def __iter__(self) -> Iterator[Segment]:
        return map(self.__getitem__, range(len(self)))

    def move(self, moved: Callable[[int], int]) -> None:
        """Map all start and end offsets."""
        self._starts = array("I", map(moved, self._starts))
        self._ends = array("I", map(moved, self._ends))

    def _number(self, function: Callable[..., str]) -> int:
        """Return the number of a function; equal partials have the same number."""
        key: object = function
        if isinstance(function, partial):
            key = function.func, function.args, *function.keywords.items()
        number = self._numbers.setdefault(key, len(self._functions))
        if number == len(self._functions):
            self._functions.append(function)
        return number


_FIELDS = attrgetter("raw", "kind", "kept", "shown")


@dataclass(frozen=True, slots=True)
class Part:
    """A text of a document with its segments, in order and without overlap."""

    text: str
    segments: Segments | tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """A part with the new texts of its segments."""

    part: Part
    texts: Callable[[int], str | None]
    """Returns a segment's new text, by its number in the document; None leaves it unchanged."""
    first: int = 0
    """Number of the part's first segment."""

    def at(self, number: int) -> str:
        """Return the text written in the place of a segment of the part."""
        text, segment = self.texts(self.first + number), self.part.segments[number]
        return self.part.text[segment.start : segment.end] if text is None else text

    @property
    def is_changed(self) -> bool:
        """Whether any segment has a new text."""
        numbers = range(self.first, self.first + len(self.part.segments))
        return any(self.texts(number) is not None for number in numbers)

    def __iter__(self) -> Iterator[str]:
        """Yield the pieces of the new text."""
        end = 0
        for number, segment in enumerate(self.part.segments, self.first):
            if (text := self.texts(number)) is not None:
                yield self.part.text[end : segment.start]
                yield text
                end = segment.end
        yield self.part.text[end:]


def cut_out(
    text: str, place: tuple[int, int], cuts: Iterable[tuple[int, int, str]]
) -> tuple[str, Callable[[int], int]]:
    """Return the text at a place, with each cut (start, end, mark) replaced by its mark.

    Also return a function that maps offsets in `text` to offsets in the result.
    """
    done, end = place
    made, starts, shifts = StringIO(), array("q"), array("q", [-done])
    for first, last, mark in cuts:
        made.write(text[done:first])
        made.write(mark)
        done = last
        starts.append(first)
        shifts.append(shifts[-1] + len(mark) - (last - first))
    made.write(text[done:end])
    return made.getvalue(), lambda place: place + shifts[bisect_left(starts, place)]


@dataclass(frozen=True, slots=True)
class Document:
    """A file as its format has read it."""

    parts: tuple[Part, ...]
    assemble: Callable[[Sequence[WrittenPart]], bytes]
    """Builds the file from its written parts."""
    left: tuple[str, ...] = ()
    """What is not translated, and why, as sentences."""

    @property
    def segments(self) -> Iterator[Segment]:
        """The segments of all parts, in order."""
        return (segment for part in self.parts for segment in part.segments)

    @property
    def firsts(self) -> list[int]:
        """The number of each part's first segment, then the total number of segments."""
        return [*accumulate((len(part.segments) for part in self.parts), initial=0)]

    def written(self, texts: Callable[[int], str | None]) -> bytes:
        """Return the file with new texts of segments, by number; None leaves one unchanged."""
        parts = zip(self.parts, self.firsts, strict=False)
        return self.assemble([WrittenPart(part, texts, first) for part, first in parts])


def one_part(
    text: str,
    encode: Encode,
    segments: Iterable[Segment],
    name: str,
    left: Iterable[str] = (),
) -> Document:
    """Return a document with one part, written by `encode`; `left` is read after the segments."""
    part = Part(text, Segments(name, segments))
    return Document((part,), lambda parts: encode(parts[0]), tuple(left))


MARKS = [*map(chr, range(0xFDD0, 0xFDF0))]
"""Characters that Unicode reserves for internal use; no translation contains them."""


class Asides:
    """Texts inside tags, such as image descriptions, that are set aside.

    Each is replaced by its number between two marks, which moves with its tag.
    """

    def __init__(self, text: str, name: str) -> None:
        """`name` is the document's name, for messages."""
        used, private = {*text}, map(chr, range(0xE000, 0x110000))
        self._mark = next(c for c in chain(MARKS, private) if c not in used)
        self._text, self._starts, self._ends = text, array("I"), array("I")
        self._raw, self._segments = StringIO(), Segments(name)

    def put(self, raw: str, segment: Segment) -> str:
        """Store a text, written as `raw`, and return what replaces it.

        The segment's start and end are ignored.
        """
        start = self._raw.tell()
        self._raw.write(raw)
        self._segments.append(replace(segment, start=start, end=self._raw.tell()))
        return self._marked(len(self._segments) - 1)

    def _marked(self, number: int) -> str:
        return f"{self._mark}{number}{self._mark}"

    def cut(self, segment: Segment) -> str:
        """Do the same for the text at the segment's place; segments must come in order."""
        self._starts.append(segment.start)
        self._ends.append(segment.end)
        return self.put(self._text[segment.start : segment.end], segment)

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def part(self) -> Part:
        """The part that contains all texts set aside."""
        return Part(self._raw.getvalue(), self._segments)

    def filled(self, pieces: Iterable[str], written: WrittenPart) -> Iterator[str]:
        """Return pieces of the text with the texts set aside back in their places."""
        mark = re.compile(f"{self._mark}([0-9]+){self._mark}")
        return (mark.sub(lambda found: written.at(int(found[1])), piece) for piece in pieces)

    def document(self, segments: Segments, encode: Encode, left: Iterable[str]) -> Document:
        """Return the whole document, with its other segments; `left` is what is not translated."""
        marks = map(self._marked, range(len(self._starts)))
        cuts = zip(self._starts, self._ends, marks, strict=True)
        self._text, moved = cut_out(self._text, (0, len(self._text)), cuts)
        segments.move(moved)
        parts = Part(self._text, segments), self.part
        return Document(parts, lambda each: encode(self.filled(*each)), tuple(left))


def in_language(document: Document, place: re.Pattern[bytes], languages: LangCodes) -> Document:
    """Return a document that declares the second language instead of the first if a text changes.

    The first match of `place` with a group contains the declaration: `<html lang="en">`. HTML also
    declares the direction. Nothing changes if it declares another language.
    """
    source, into = languages
    direction = b"rtl" if is_right_to_left(into or "") else b"ltr"

    def named(found: re.Match[bytes]) -> bytes:
        if found[1] is None:
            return found[0]
        new = tag(into or "").replace("-", "_" if b"@" in found[1] else "-").encode()
        return found[1] + (direction if _directs(found) else new)

    def assemble(parts: Sequence[WrittenPart]) -> bytes:
        made = document.assemble(parts)
        found = next((each for each in place.finditer(made) if each[1]), None)
        if found is None or not any(part.is_changed for part in parts):
            return made
        codes = [each[2].decode() for each in _CODE.finditer(found[1]) if not _directs(each)]
        if source is not None and any(base_of(code) != base_of(source) for code in codes):
            return made
        declared = _CODE.sub(named, found[1])
        if direction == b"rtl" and declared[:1] == b"<" and not _DIRECTION.search(declared):
            declared = _NAME.sub(rb'\g<0> dir="rtl"', declared)
        return made[: found.start()] + declared + made[found.end() :]

    return replace(document, assemble=assemble) if into else document


_CODE = re.compile(
    rb"((?:(?<![\w.:-])(?:(?:xml:)?lang|dir)\s*=|@@locale\"\s*:)\s*[\"']?)"
    rb"([a-z]{2,3}(?:[-_][a-z\d]+)*)(?![\w-])"
    rb"|=\s*(?:\"[^\"]*\"?|'[^']*'?|[^\s>]*)",
    re.IGNORECASE,
)
"""A language code or a direction in a tag, or a code in ARB, where `_` joins its parts; or another
value, whatever it contains."""
_DIRECTION, _NAME = re.compile(rb"(?i)[\s\"']dir\b"), re.compile(rb"^<\w+")


def _directs(found: re.Match[bytes]) -> bool:
    """Return whether a match of `_CODE` is a direction, or another value."""
    return found[1] is None or b"dir" in found[1].lower()


def reject_more(count: int, name: str) -> None:
    """Raise InputError if a document has more than `MOST` segments."""
    if count > MOST:
        raise InputError(f"{name} has more than {MOST:,} texts to translate; cut it into parts.")
