"""Paragraphs and cells of several texts: what tabs, empty lines and signs of lists part.

A break in a line may stand in the middle of a sentence; a tab with words on both sides does not.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from dragoman.documents.document import Part, Segment
from dragoman.documents.paragraphs import Replacing, has_letters
from dragoman.text.marked import Marked, Pieces, Tag, merged, void

_TAB = re.compile(r"<(?:[\w.-]+:)?p?tab[\s/>]|\t")
_BREAK = re.compile(r"<(?:[\w.-]+:)?(?:br|cr|line-break)[\s/>]|\n")
_ENDS = re.compile(r'\n[ \t]+\Z|<(?:[\w.-]+:)?br\s[^>]*type="(?:page|column)"')
"""A line that is indented, or a break that ends a page."""
_ITEM = re.compile(r"\s*(?:[-*+•‣◦▪·–—]|\d{1,3}[.)]|[A-Za-z][.)])\s")
"""What begins an item of a list."""


_DEEPEST = 4
"""Elements in one another that are split at most, as each tab in them is written with them."""


def in_rows(
    segment: Segment,
    splits: Callable[[Tag], bool],
    parts: tuple[str, Callable[[Marked], str], str] | None = None,
) -> Segment | Replacing:
    """The segment, or its texts by themselves if it has several.

    An element that `splits` may be written as two, one on each side of a tab. Where `segment.write`
    cannot write one behind the other, `parts` are what begins them, writes one, and ends them.
    """
    before, inner, after = _split(segment.source, splits).trimmed()
    rows = [*_rows(inner.pieces)]
    if len(rows) < 2:
        return segment
    begin, write, end = parts or ("", segment.write, "")
    first, last = (write(merged(map(_alone, each))) for each in (before, after))
    written, texts = [begin + first], list[Segment]()
    place = len(written[0])
    for pieces in rows:
        row = Marked(pieces)
        written.append(write(row))
        start, place = place, place + len(written[-1])
        if has_letters(row):
            texts.append(replace(segment, start=start, end=place, source=row, write=write))
    part = Part("".join([*written, last, end]), tuple(texts))
    return Replacing(segment.start, segment.end, part)


def _alone(piece: str | Tag) -> str | Tag:
    """A piece whose partner stands elsewhere."""
    return void(piece) if isinstance(piece, Tag) else piece


def _split(source: Marked, splits: Callable[[Tag], bool]) -> Marked:
    """The text, where elements that may be split end before a tab and begin anew after it."""
    closes, made = _closes(source.pieces), list[str | Tag]()
    begun, is_anew = list[tuple[Tag, Tag]](), False  # whether they have nothing in them since a tab
    for n, piece in enumerate(source.pieces):
        if isinstance(piece, Tag) and piece.kind == "open":
            begun.append((piece, closes[n]))
        elif isinstance(piece, Tag) and piece.kind == "close":
            begun.pop()
            if is_anew:
                _end(made, piece)
                continue
        elif _is_tab(piece) and 0 < len(begun) <= _DEEPEST and all(splits(tag) for tag, _ in begun):
            opens, ends = [tag for tag, _ in begun], [end for _, end in reversed(begun)]
            for each in ends:
                _end(made, each)
            made += (*opens, piece, *ends, *opens)
            is_anew = True
            continue
        made.append(piece)
        is_anew = False
    return Marked(tuple(made))


def _closes(pieces: Pieces) -> dict[int, Tag]:
    """The close tags of the open ones, by the places of these."""
    found, opened = dict[int, Tag](), list[int]()
    for n, piece in enumerate(pieces):
        if isinstance(piece, Tag) and piece.kind == "open":
            opened.append(n)
        elif isinstance(piece, Tag) and piece.kind == "close":
            found[opened.pop()] = piece
    return found


def _end(made: list[str | Tag], close: Tag) -> None:
    """End an element, or leave it out if it has nothing in it."""
    last = made[-1]
    if isinstance(last, Tag) and last.kind == "open":
        made.pop()
    else:
        made.append(close)


def _is_tab(piece: str | Tag) -> bool:
    return isinstance(piece, Tag) and piece.kind == "void" and bool(_TAB.search(piece.raw))


def _rows(pieces: Pieces) -> Iterator[Pieces]:
    """The texts, and what parts them: one behind the other, they are the pieces."""
    has_tabs = any(map(_is_tab, pieces))
    row, gap = list[str | Tag](), list[str | Tag]()
    for item in _items(pieces):
        if not _is_read(item):
            gap += item
            continue
        if row and _parts(gap, item, has_tabs=has_tabs):
            yield tuple(row)
            yield tuple(gap)
            row = [*item]
        else:
            row += (*gap, *item)
        gap = []
    yield (*row, *gap)


def _items(pieces: Pieces) -> Iterator[Pieces]:
    """Texts, void tags and whole elements."""
    depth, start = 0, 0
    for n, piece in enumerate(pieces):
        if isinstance(piece, Tag):
            depth += {"open": 1, "close": -1, "void": 0}[piece.kind]
        if not depth:
            yield pieces[start : n + 1]
            start = n + 1


def _is_read(item: Pieces) -> bool:
    return any(isinstance(piece, str) and piece.strip() for piece in item)


def _parts(gap: Pieces | list[str | Tag], after: Pieces, *, has_tabs: bool) -> bool:
    """Whether what stands between two texts, without text itself, parts them."""
    raw = "".join(piece if isinstance(piece, str) else piece.raw for piece in gap)
    text = next(piece for piece in after if isinstance(piece, str) and piece.strip())
    breaks = len(_BREAK.findall(raw))
    is_end = breaks == 1 and (has_tabs or _ENDS.search(raw) or _ITEM.match(text))
    return any(map(_is_tab, gap)) or breaks > 1 or bool(is_end)
