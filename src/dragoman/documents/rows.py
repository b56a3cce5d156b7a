"""Paragraphs and cells with several texts, separated by tabs, empty lines and list markers.

A line break may be in the middle of a sentence; a tab with words on both sides is not.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from dragoman.documents.document import Part, Segment
from dragoman.documents.paragraphs import Replacing, has_letters
from dragoman.text.marked import Marked, Pieces, Tag, merged, void
from dragoman.text.sentences import SPACED_ENDS, UNSPACED_ENDS

_TAB = re.compile(r"<(?:[\w.-]+:)?p?tab[\s/>]|\A *\t[ \t]*\Z")
"""A tab inside a line, not before it."""
_BREAK = re.compile(r"<(?:[\w.-]+:)?(?:br|cr|line-break)[\s/>]|\n")
_ENDS = re.compile(r'<(?:[\w.-]+:)?br\s[^>]*type="(?:page|column)"')
"""A break that ends a page or column."""
_INDENT = re.compile(r"(?:\n|\A)([ \t]*)\Z")
_ITEM = re.compile(r"\s*(?:[-*+•‣◦▪·–—]|(?P<number>\d{1,3}[.)]|[A-Za-z][.)]))\s")
"""The start of a list item; a number may also be part of a sentence, such as "3. Oktober"."""
_OPTION = re.compile(r"\s*--?\w")
"""The start of a command's option."""
_SENTENCE = re.compile(rf"[{SPACED_ENDS}{UNSPACED_ENDS}:;：；][\"'”’»)\]」』]*\s*\Z")
"""The end of a sentence."""


_DEEPEST = 4
"""Maximum depth of nested elements that are split, as each tab in them is written with them."""
_MOST_REPEATED = 1 << 16
"""Maximum characters of a segment's elements, and of its texts' properties, that are repeated."""


def in_rows(
    segment: Segment,
    splits: Callable[[Tag], bool],
    parts: tuple[str, Callable[[Marked], str], str] | None = None,
) -> Segment | Replacing:
    """Return the segment, or its texts separately if it has several.

    An element for which `splits` is true may be written as two, one on each side of a tab. If
    `segment.write` cannot write texts in a row, `parts` begins them, writes one, and ends them.
    """
    before, inner, after = _split(segment.source, splits).trimmed()
    rows = [*_rows(inner.pieces, _indent(before))]
    if len(rows) < 2:
        return segment
    begin, write, end = parts or ("", segment.write, "")
    first, last = (  # no tag has its partner here
        write(merged(void(p) if isinstance(p, Tag) else p for p in each))
        for each in (before, after)
    )
    written, texts = [begin + first], list[Segment]()
    place, most = len(written[0]), _MOST_REPEATED + 8 * len(segment.source.written())
    for pieces in rows:
        row = Marked(pieces)
        written.append(write(row))
        start, place = place, place + len(written[-1])
        if place > most:
            return segment
        if has_letters(row):
            texts.append(replace(segment, start=start, end=place, source=row, write=write))
    part = Part("".join([*written, last, end]), tuple(texts))
    return Replacing(segment.start, segment.end, part)


def _split(source: Marked, splits: Callable[[Tag], bool]) -> Marked:
    """Return the text with splittable elements ended before a tab and begun again after it."""
    partners = {first: last for _, first, last in source.elements}
    made, begun = list[str | Tag](), list[tuple[Tag, str | Tag]]()
    room, is_anew = _MOST_REPEATED, False  # whether open elements are empty since a tab
    for n, piece in enumerate(source.pieces):
        if isinstance(piece, Tag) and piece.kind == "open":
            begun.append((piece, source.pieces[partners[n]]))
        elif isinstance(piece, Tag) and piece.kind == "close":
            begun.pop()
            if is_anew:
                _end(made, piece)
                continue
        elif (
            room > 0
            and _is_tab(piece)
            and 0 < len(begun) <= _DEEPEST
            and all(splits(tag) for tag, _ in begun)
        ):
            opens, ends = [tag for tag, _ in begun], [end for _, end in reversed(begun)]
            room -= sum(len(tag.raw) for tag in opens)
            for each in ends:
                _end(made, each)
            made += (*opens, piece, *ends, *opens)
            is_anew = True
            continue
        made.append(piece)
        is_anew = False
    return Marked(tuple(made))


def _end(made: list[str | Tag], close: str | Tag) -> None:
    """End an element, or omit it if it is empty."""
    last = made[-1]
    if isinstance(last, Tag) and last.kind == "open":
        made.pop()
    else:
        made.append(close)


def _is_tab(piece: str | Tag) -> bool:
    return isinstance(piece, Tag) and piece.kind == "void" and bool(_TAB.search(piece.raw))


def _rows(pieces: Pieces, indent: int) -> Iterator[Pieces]:
    """Yield the texts and what separates them; concatenated, they are the pieces.

    `indent` is the indent of the first line.
    """
    items = [*_items(pieces)]
    numbers = sum(_is_numbered(_words(item)) for item in items)
    row, gap, begun = list[str | Tag](), list[str | Tag](), -1
    is_line = True  # whether the row begins a line
    for item, has_tab in zip(items, _tabs_ahead(items), strict=True):
        text = _words(item)
        if not text:
            gap += item
            continue
        is_numbered = _is_numbered(text) and (
            numbers > 1 or bool(_SENTENCE.search(_words(row[::-1])))
        )
        is_item = is_numbered or (not _is_numbered(text) and bool(_ITEM.match(text)))
        is_deeper = 0 <= begun < _indent(gap) and not _OPTION.match(text)
        if row and _parts(gap, is_item=is_item, is_deeper=is_deeper, has_tab=has_tab):
            yield tuple(row)
            yield tuple(gap)
            row, indent, is_line = [], _indent(gap), bool(_BREAK.search(_raw(gap)))
            gap = []
        if not row and is_line:
            begun = indent if _ITEM.match(text) or _OPTION.match(text) else -1
        row += (*gap, *item)
        gap = []
    yield (*row, *gap)


def _items(pieces: Pieces) -> Iterator[Pieces]:
    """Yield texts, void tags and whole elements."""
    depth, start = 0, 0
    for n, piece in enumerate(pieces):
        if isinstance(piece, Tag):
            depth += {"open": 1, "close": -1, "void": 0}[piece.kind]
        if not depth:
            yield pieces[start : n + 1]
            start = n + 1


def _tabs_ahead(items: Sequence[Pieces]) -> list[bool]:
    """Return whether there is a tab between each item and the end of its line."""
    found, is_there = list[bool](), False
    for item in reversed(items):
        for piece in reversed(item):
            is_break = isinstance(piece, Tag) and bool(_BREAK.search(piece.raw))
            is_there = _is_tab(piece) or (is_there and not is_break)
        found.append(is_there)
    return found[::-1]


def _words(item: Sequence[str | Tag]) -> str:
    """Return the first text that is not white space, or "" if there is none."""
    return next((piece for piece in item if isinstance(piece, str) and piece.strip()), "")


def _is_numbered(text: str) -> bool:
    """Return whether a text begins with a number, as an item may."""
    found = _ITEM.match(text)
    return found is not None and found["number"] is not None


def _raw(gap: Iterable[str | Tag]) -> str:
    return "".join(piece if isinstance(piece, str) else piece.raw for piece in gap)


def _indent(gap: Iterable[str | Tag]) -> int:
    """Return the indent of the text after a gap, in columns, if the gap begins a line."""
    found = _INDENT.search(_raw(gap))
    return len(found[1].expandtabs()) if found else 0


def _parts(gap: Sequence[str | Tag], *, is_item: bool, is_deeper: bool, has_tab: bool) -> bool:
    """Return whether a gap, which has no text itself, separates the texts around it.

    An indented line is a separate text, unless it `is_deeper` than the item that it continues.
    """
    raw = _raw(gap)
    breaks = len(_BREAK.findall(raw))
    is_begun = is_item or has_tab or (_indent(gap) > 0 and not is_deeper) or _ENDS.search(raw)
    return any(map(_is_tab, gap)) or breaks > 1 or (breaks == 1 and bool(is_begun))
