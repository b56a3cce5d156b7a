"""A document: text to be translated, in bytes that stay as they are.

A format finds the places of text (`Segment`), as characters of a part of the document; the
translations are put in these places, and every other byte is left alone. A file of one part is its
whole content; an archive has a part for each of its members that has text.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from dragoman.errors import InputError
from dragoman.text.marked import Marked


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
    fault: Callable[[Marked], str] = lambda _: ""
    """Why a translation cannot be written there; "" if it can."""
    beside: bool = False
    """Whether a translation stands beside the source, not in its place."""


@dataclass(frozen=True, slots=True)
class Part:
    """A text of a document with its segments, in order and apart."""

    text: str
    segments: tuple[Segment, ...]

    def written(self, texts: Sequence[str | None]) -> str:
        """The text with others in the places of the segments, where there is one."""
        pieces, end = list[str](), 0
        for segment, text in zip(self.segments, texts, strict=True):
            if text is not None:
                pieces += self.text[end : segment.start], text
                end = segment.end
        return "".join([*pieces, self.text[end:]])


def cut_out(
    text: str,
    place: tuple[int, int],
    cuts: Iterable[tuple[int, int, str]],
    segments: Iterable[Segment],
) -> Part:
    """The part at a place of a text, with marks where something is cut out: start, end, mark.

    Its segments, whose places are those in the text, move along.
    """
    done, end = place
    pieces, starts, shifts = list[str](), list[int](), [-done]
    for first, last, mark in cuts:
        pieces += text[done:first], mark
        done = last
        starts.append(first)
        shifts.append(shifts[-1] + len(mark) - (last - first))

    def moved(place: int) -> int:
        return place + shifts[bisect_left(starts, place)]

    moving = (replace(each, start=moved(each.start), end=moved(each.end)) for each in segments)
    return Part("".join([*pieces, text[done:end]]), tuple(moving))


@dataclass(frozen=True, slots=True)
class Document:
    """What a format has read of a file."""

    parts: tuple[Part, ...]
    assemble: Callable[[Sequence[str]], bytes]
    """The file, given the text of each part."""
    left: tuple[str, ...] = ()
    """What is not translated, and why, as sentences."""

    @property
    def segments(self) -> Iterator[Segment]:
        """Those of all parts, in order."""
        return (segment for part in self.parts for segment in part.segments)

    def written(self, texts: Sequence[str | None]) -> bytes:
        """The file with what its segments have `write` made; None leaves one as it is."""
        rest = iter(texts)
        return self.assemble(
            [part.written([*islice(rest, len(part.segments))]) for part in self.parts]
        )


def one_part(
    text: str,
    encode: Callable[[str], bytes],
    segments: Iterable[Segment],
    name: str,
    left: tuple[str, ...] = (),
) -> Document:
    """A document that is one text, written by `encode`."""
    part = Part(text, limited(segments, name))
    return Document((part,), lambda texts: encode(texts[0]), left)


MOST = 1 << 18
"""Most segments of a document."""


def limited(segments: Iterable[Segment], name: str) -> tuple[Segment, ...]:
    """The segments of a document. Raises InputError for more than `MOST`."""
    taken = tuple(islice(segments, MOST + 1))
    if len(taken) > MOST:
        raise InputError(f"{name} has more than {MOST:,} texts to translate; cut it into parts.")
    return taken
