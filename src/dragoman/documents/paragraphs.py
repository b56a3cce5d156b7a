"""Paragraphs of XML, and paragraphs inside them: footnotes, comments, text boxes.

A segment is a paragraph. An element in it with its own paragraphs is a separate part, for which the
paragraph contains a mark that XML cannot contain: NUL, number, NUL.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dragoman.documents.characters import Encode, decoded
from dragoman.documents.document import (
    Asides,
    Document,
    Part,
    Segment,
    WrittenPart,
    cut_out,
    reject_more,
)
from dragoman.documents.lines import goes_on, widest_of
from dragoman.errors import InputError
from dragoman.files.xml import Element, Text, declared_encoding, escape_xml, find_elements
from dragoman.text.marked import Marked, Tag, merged

MOST_BEGUN = 64
"""Maximum number of halves whose partners are searched for at a time."""

_NOT_DECODED = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Replacing:
    """A part that replaces a place if one of its texts is translated; if none is, it stays."""

    start: int
    end: int
    part: Part


Raw = Callable[[Element], str]
"""Returns an element as it is written in a tag."""
ReadParagraph = Callable[[Element, str, Raw], Segment | Replacing | None]
"""Reads a paragraph of a text; returns None if there is nothing to translate in it."""
SetAside = Callable[[str, Asides, str], str]
"""Returns a text without what it sets aside; the last argument is the prefix of its locations."""


@dataclass(frozen=True, slots=True)
class Half:
    """A tag that begins or ends something by a key, such as a field; void without its partner."""

    raw: str
    key: str
    opens: bool
    kept: bool = False


def decode_xml(data: bytes, name: str) -> tuple[str, Encode]:
    """Return the text of a file, and a function that writes text in its encoding.

    Raises InputError if the file is not in the encoding that it declares.
    """
    text, encode = decoded(data, name, declared_encoding(data) or "utf-8")
    if _NOT_DECODED.search(text):
        raise InputError(f"{name} is not in the encoding that it declares; save it as UTF-8.")
    return text, encode


def read_xml(
    data: bytes,
    name: str,
    names: Collection[str],
    read: ReadParagraph,
    *set_aside: SetAside,
    place: str = "",
) -> Document:
    """Read an XML document whose paragraphs are the elements with these local names.

    What is `set_aside` comes after them; `place` is the prefix of its locations. Raises InputError
    as `decode_xml` and `find_elements` do.
    """
    text, encode = decode_xml(data, name)
    asides = Asides(text, name)
    for each in set_aside:
        text = each(text, asides, place)

    def assemble(parts: Sequence[WrittenPart]) -> bytes:
        *others, aside = parts
        texts = [
            "".join(each) if each.is_changed or n not in found.replaced else found.replaced[n]
            for n, each in enumerate(others)
        ]
        return encode(asides.filled([_joined(texts, 0)], aside))

    found = _Parts(text, read)
    found.fill(found.reserve(), (0, len(text)), find_elements(text, names, name))
    left = ("Texts in the properties of others.",) * found.has_left
    document = Document((*found.parts, asides.part), assemble, left)
    reject_more(document.firsts[-1], name)
    return document


def _joined(texts: Sequence[str], number: int) -> str:
    """Return a part's text with those of the parts inside it."""
    return re.sub("\0([0-9]+)\0", lambda mark: _joined(texts, int(mark[1])), texts[number])


class _Parts:
    """The parts of a text: the first one surrounds all others."""

    def __init__(self, text: str, read: ReadParagraph) -> None:
        self.parts: list[Part] = []
        self.has_left = False
        """Whether a paragraph is in no part, because another one is written with it."""
        self.replaced = dict[int, str]()
        """The text in the place of a part, by its number, if nothing in it is translated."""
        self._text, self._read = text, read

    def reserve(self) -> int:
        """Return the number of a part that is filled later."""
        self.parts.append(Part("", ()))
        return len(self.parts) - 1

    def fill(self, number: int, place: tuple[int, int], paragraphs: Iterable[Element]) -> None:
        """Make a part from a place of the text, and parts from what is inside its paragraphs."""
        segments, cuts = list[Segment](), list[_Cut]()
        for paragraph in paragraphs:
            self._add(paragraph, segments, cuts)
        cuts.sort()
        marks = [(start, end, f"\0{inner}\0") for start, end, inner, _ in cuts]
        segments.sort(key=lambda segment: segment.start)
        text, moved = cut_out(self._text, place, marks)
        moving = (replace(s, start=moved(s.start), end=moved(s.end)) for s in segments)
        self.parts[number] = Part(text, tuple(moving))
        for start, end, inner, element in cuts:
            if element is not None:
                self.fill(inner, (start, end), element.inside)

    def _add(self, paragraph: Element, segments: list[Segment], cuts: list["_Cut"]) -> None:
        """Add the segments of a paragraph and of those inside it that are in no other part."""
        before, cut_before = len(self.parts), len(cuts)

        def raw(element: Element) -> str:
            if not element.holds:
                return self._text[element.start : element.end]
            cuts.append((element.start, element.end, self.reserve(), element))
            return f"\0{cuts[-1][2]}\0"

        segment = self._read(paragraph, self._text, raw)
        if segment is None:
            del self.parts[before:], cuts[cut_before:]
        elif isinstance(segment, Replacing):
            number, place = self.reserve(), (segment.start, segment.end)
            self.parts[number], self.replaced[number] = segment.part, self._text[slice(*place)]
            cuts.append((*place, number, None))
        else:
            segments.append(segment)
        taken = sorted(cut[:2] for cut in cuts[cut_before:] if cut[3] is not None)
        for inner in paragraph.inside:
            around = bisect_left(taken, (inner.start + 1,)) - 1
            is_cut = around >= 0 and inner.start < taken[around][1]
            is_written = segment is not None and segment.start <= inner.start < segment.end
            if not (is_cut or is_written):
                self._add(inner, segments, cuts)
            self.has_left |= is_written and not is_cut


_Cut = tuple[int, int, int, Element | None]
"""A place that is cut out for another part: start, end, number of the part, and the element whose
paragraphs are read into it."""


def mixed(
    element: Element, text: str, role: Callable[[Element], str | Tag | Half], raw: Raw
) -> list[str | Tag]:
    """Return the pieces of an element with text and elements; `role` returns a tag without its
    markup, or a text to replace it. Neighbours with equal start tags are merged.
    """
    items = list[str | Tag | Half]()
    before = ""
    for child in element.children:
        if isinstance(child, Text):
            items.append(child.value)
            continue
        as_tag = role(child)
        if isinstance(as_tag, Tag) and as_tag.kind == "open" and child.content_end < child.end:
            start = text[child.start : child.content_start]
            last = items[-1] if items else ""
            if isinstance(last, Tag) and last.kind == "close" and start == before:
                items.pop()
            else:
                items.append(replace(as_tag, raw=start))
            items += mixed(child, text, role, raw)
            items.append(Tag(text[child.content_end : child.end], "close"))
            before = start
        elif isinstance(as_tag, str):
            items.append(as_tag)
        elif isinstance(as_tag, Tag):
            items.append(replace(as_tag, raw=raw(child), kind="void", kept=False))
        else:
            items.append(replace(as_tag, raw=raw(child)))
    return paired(items)


def paired(items: Iterable[str | Tag | Half]) -> list[str | Tag]:
    """Return text and tags, with halves in one element as nested pairs, or void.

    Of those that begin side by side, the one that ends first is the innermost: tools may write them
    in any order. What is copied and has no text is void, too.
    """
    pieces, begun = list[str | Tag](), list[tuple[int, Half]]()
    around = list[list[tuple[int, Half]]]()  # open halves of the elements around
    for item in items:
        if not isinstance(item, Half):
            pieces.append(item)
            if isinstance(item, Tag) and item.kind == "open":
                around.append(begun)
                begun = []
            elif isinstance(item, Tag) and item.kind == "close" and around:
                begun = around.pop()
            continue
        partners = [n for n, (_, half) in enumerate(begun) if half.key == item.key]
        if item.opens:
            begun = [*begun[-MOST_BEGUN:], (len(pieces), item)]
            pieces.append(Tag(item.raw))
        elif partners:
            place, half = begun.pop(partners[-1])
            inner = begun[partners[-1] :]
            del begun[partners[-1] :]
            if [n for n, _ in inner] == [*range(place + 1, place + 1 + len(inner))]:
                pieces.insert(place + len(inner), pieces.pop(place))
                begun += ((n - 1, each) for n, each in inner)
                place += len(inner)
            has_text = any(isinstance(pieces[n], str) for n in range(place, len(pieces)))
            if has_text or not half.kept:
                pieces[place] = Tag(half.raw, "open", half.kept)
                pieces.append(Tag(item.raw, "close"))
            else:
                pieces.append(Tag(item.raw))
        else:
            pieces.append(Tag(item.raw))
    return pieces


def read_plain(places: Iterator[str], paragraph: Element) -> Segment | None:
    """Read a paragraph without elements; return None if it has some."""
    marked = merged(lines("" if any(paragraph.elements) else paragraph.text))
    if not has_letters(marked):
        return None
    write = partial(Marked.written, escape=escape_xml)
    return Segment(paragraph.content_start, paragraph.content_end, marked, write, next(places))


def has_letters(marked: Marked) -> bool:
    """Return whether there is anything to translate."""
    return any(isinstance(p, str) and any(map(str.isalpha, p)) for p in marked.pieces)


def without_breaks(pieces: Iterable[str | Tag]) -> Marked:
    """Return pieces with each run of white space, which only lays out the file, as one space."""
    return merged(re.sub(r"\s+", " ", p) if isinstance(p, str) else p for p in pieces)


def lines(text: str) -> Iterator[str | Tag]:
    """Yield a text with line breaks and tabs, and the spaces around them, as tags."""
    rows = _BREAK.split(text)
    widest = widest_of(rows[::2])
    for n, piece in enumerate(rows):
        joins = n % 2 and "\n" in piece and goes_on(rows[n - 1], rows[n + 1], widest)
        yield Tag(piece, shown="" if joins else " ") if n % 2 else piece


_BREAK = re.compile(r"((?<![ \t])[ \t]*\n[ \t\n]*|(?<! ) *\t[ \t]*)")
