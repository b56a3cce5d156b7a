"""A document: text to be translated, in bytes that stay as they are.

A format finds the places of text (`Segment`), as characters of a part of the document; the
translations are put in these places, and every other byte is left alone. A file of one part is its
whole content; an archive has a part for each of its members that has text.
"""

import marshal
import re
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
from dragoman.errors import InputError
from dragoman.languages import LangCodes, base_of, tag
from dragoman.text.marked import Marked, Tag

MOST = 1 << 18
"""Most segments of a document."""
NAMED = 20
"""Places that are named of what is left alone for one reason."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Text of a document that is translated by itself: a paragraph, a cell, a message."""

    start: int
    """Where it begins in its part, in characters."""
    end: int
    """Where it ends."""
    source: Marked
    """What is translated."""
    write: Callable[[Marked], str]
    """How a translation is written there, with the escapes of the format."""
    where: str
    """What a reader finds it by, such as "line 3"."""
    fault: Callable[[str, Marked, Marked], str] = lambda *_: ""
    """Why a translation cannot be written there, given what is there, `source` and it; "" if it
    can."""
    beside: bool = False
    """Whether a translation stands beside the source, not in its place."""


class Left:
    """What a document has that is not translated: why, and in which places."""

    def __init__(self) -> None:
        self._places, self._counts = dict[str, list[str]](), Counter[str]()

    def add(self, why: str, where: str) -> None:
        """Add what is at a place."""
        self._counts[why] += 1
        if self._counts[why] <= NAMED:
            self._places.setdefault(why, []).append(where)

    def __iter__(self) -> Iterator[str]:
        """A sentence for each reason."""
        for why, places in self._places.items():
            rest = self._counts[why] - len(places)
            yield f"{why}: {'; '.join([*places, *[f'{rest:,} more'] * (rest > 0)])}"


class PackedValues:
    """Values of built-in types in one row of bytes: as objects they take many times more."""

    def __init__(self) -> None:
        self._bytes, self._places = bytearray(), array("I")

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, number: int) -> Any:  # noqa: ANN401 -- what was appended
        return marshal.loads(memoryview(self._bytes)[self._places[number] :])  # noqa: S302 -- ours

    def append(self, value: Any) -> None:  # noqa: ANN401 -- what `marshal` takes
        """Add one."""
        self._places.append(len(self._bytes))
        self._bytes += marshal.dumps(value)


class Segments:
    """The segments of a text in little memory: one is made anew whenever it is asked for."""

    def __init__(self, name: str, segments: Iterable[Segment] = ()) -> None:
        """`name` is that of the document, for messages."""
        self._name, self._packed = name, PackedValues()
        self._starts, self._ends = array("I"), array("I")
        self._functions = list[Callable[..., str]]()
        self._numbers = dict[object, int]()  # of the functions
        for segment in segments:
            self.append(segment)

    def append(self, segment: Segment) -> None:
        """Add one. Raises InputError for more than `MOST`."""
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
        """Change all places."""
        self._starts = array("I", map(moved, self._starts))
        self._ends = array("I", map(moved, self._ends))

    def _number(self, function: Callable[..., str]) -> int:
        """The number of a function; equal partial ones have the same."""
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
    """A text of a document with its segments, in order and apart."""

    text: str
    segments: Segments | tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """A part with what is written in the places of its segments."""

    part: Part
    texts: Callable[[int], str | None]
    """Of each segment of the document, by its number; None leaves one as it is."""
    first: int = 0
    """The number of the part's first one."""

    def at(self, number: int) -> str:
        """What stands in the place of a segment."""
        text, segment = self.texts(self.first + number), self.part.segments[number]
        return self.part.text[segment.start : segment.end] if text is None else text

    @property
    def is_changed(self) -> bool:
        """Whether anything is written."""
        numbers = range(self.first, self.first + len(self.part.segments))
        return any(self.texts(number) is not None for number in numbers)

    def __iter__(self) -> Iterator[str]:
        """The pieces that the text consists of."""
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
    """What is at a place of a text, with marks where something is cut out: start, end, mark.

    And where places in the text are in it.
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
    """What a format has read of a file."""

    parts: tuple[Part, ...]
    assemble: Callable[[Sequence[WrittenPart]], bytes]
    """The file, given how each part is written."""
    left: tuple[str, ...] = ()
    """What is not translated, and why, as sentences."""

    @property
    def segments(self) -> Iterator[Segment]:
        """Those of all parts, in order."""
        return (segment for part in self.parts for segment in part.segments)

    @property
    def firsts(self) -> list[int]:
        """The number of the first segment of each part, and that of all segments."""
        return [*accumulate((len(part.segments) for part in self.parts), initial=0)]

    def written(self, texts: Callable[[int], str | None]) -> bytes:
        """The file with what its segments have `write` made, by numbers; None leaves one."""
        parts = zip(self.parts, self.firsts, strict=False)
        return self.assemble([WrittenPart(part, texts, first) for part, first in parts])


def one_part(
    text: str,
    encode: Encode,
    segments: Iterable[Segment],
    name: str,
    left: Iterable[str] = (),
) -> Document:
    """A document that is one text, written by `encode`; `left` is read after the segments."""
    part = Part(text, Segments(name, segments))
    return Document((part,), lambda parts: encode(parts[0]), tuple(left))


MARKS = [*map(chr, range(0xFDD0, 0xFDF0))]
"""Characters that Unicode keeps for such uses; no translation has them."""


def unused(text: str) -> str:
    """A character for marks that a text does not have."""
    used = {*text}
    private = map(chr, range(0xE000, 0x110000))  # for a file that has all marks
    return next(c for c in chain(MARKS, private) if c not in used)


class Asides:
    """Texts that stand in tags, such as the description of a picture: each is set aside.

    Where one was, the text has its number between two marks, so that it goes with its tag to
    wherever that is put.
    """

    def __init__(self, text: str, name: str) -> None:
        """`name` is that of the document, for messages."""
        self._mark = unused(text)
        self._text, self._starts, self._ends = text, array("I"), array("I")
        self._raw, self._segments = StringIO(), Segments(name)

    def put(self, raw: str, segment: Segment) -> str:
        """Take a text, which is written so, and return what stands in its place.

        Where the segment begins and ends is not looked at.
        """
        start = self._raw.tell()
        self._raw.write(raw)
        self._segments.append(replace(segment, start=start, end=self._raw.tell()))
        return self._marked(len(self._segments) - 1)

    def _marked(self, number: int) -> str:
        return f"{self._mark}{number}{self._mark}"

    def cut(self, segment: Segment) -> str:
        """The same for what is at its place of the text, one after the other."""
        self._starts.append(segment.start)
        self._ends.append(segment.end)
        return self.put(self._text[segment.start : segment.end], segment)

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def part(self) -> Part:
        """All that is set aside."""
        return Part(self._raw.getvalue(), self._segments)

    def filled(self, pieces: Iterable[str], written: WrittenPart) -> Iterator[str]:
        """Pieces of the text with what is set aside at its places."""
        mark = re.compile(f"{self._mark}([0-9]+){self._mark}")
        return (mark.sub(lambda found: written.at(int(found[1])), piece) for piece in pieces)

    def document(self, segments: Segments, encode: Encode, left: Iterable[str]) -> Document:
        """The whole, of which these are the other segments; `left` is what is not translated."""
        marks = map(self._marked, range(len(self._starts)))
        cuts = zip(self._starts, self._ends, marks, strict=True)
        self._text, moved = cut_out(self._text, (0, len(self._text)), cuts)
        segments.move(moved)
        parts = Part(self._text, segments), self.part
        return Document(parts, lambda each: encode(self.filled(*each)), tuple(left))


def in_language(document: Document, place: re.Pattern[bytes], languages: LangCodes) -> Document:
    """The document, which names the second language where it named the first, if a text changes.

    The first match of `place` that has a group is where it does: `<html lang="en">`.
    """
    source, into = languages

    def named(found: re.Match[bytes]) -> bytes:
        if found[1] is None:
            return found[0]
        before, code = found[1], found[2].decode()
        new = tag(into or "").replace("-", "_" if b"@" in before else "-")
        is_other = source is not None and base_of(code) != base_of(source)
        return found[0] if is_other else before + new.encode()

    def assemble(parts: Sequence[WrittenPart]) -> bytes:
        made = document.assemble(parts)
        found = next((each for each in place.finditer(made) if each[1]), None)
        if found is None or not any(part.is_changed for part in parts):
            return made
        return made[: found.start()] + _CODE.sub(named, found[1]) + made[found.end() :]

    return replace(document, assemble=assemble) if into else document


_CODE = re.compile(
    rb"((?:(?<![\w.:-])(?:xml:)?lang\s*=|@@locale\"\s*:)\s*[\"']?)"
    rb"([a-z]{2,3}(?:[-_][a-z\d]+)*)(?![\w-])"
    rb"|=\s*(?:\"[^\"]*\"?|'[^']*'?|[^\s>]*)",
    re.IGNORECASE,
)
"""The code of a language in a tag, or in ARB, where its parts are joined by `_`; or another value,
whatever is written in it.
"""


def reject_more(count: int, name: str) -> None:
    """Raise InputError for a document with more segments than `MOST`."""
    if count > MOST:
        raise InputError(f"{name} has more than {MOST:,} texts to translate; cut it into parts.")
