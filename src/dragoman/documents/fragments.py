"""HTML in the strings of other formats: elements in a sentence, and pieces of a page.

A string with blocks, such as `<p>One</p><p>Two</p>`, can be read as a page where each block has a
place of its own to be written in; else its blocks are elements of one text, with spaces between.
"""

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from html.entities import html5
from itertools import pairwise

from dragoman.documents import html, markup
from dragoman.documents.document import Left, Segment
from dragoman.documents.markup import Page
from dragoman.documents.names import is_name
from dragoman.text.marked import DEEPEST, Marked, Tag, merged, paired

_BLOCKS = html.RULES.ended_by["p"] | {"body", "caption", "center", "colgroup", "html", "legend"}
_KNOWN = _BLOCKS | html.INLINE | html.RULES.opaque.keys() | html.RULES.empty
_RULES = replace(html.RULES, attributes=frozenset(), lines=True)
_MARKUP = re.compile(
    r"<!--(?:(?!<!--|-->).)*+-->|<(script|style)\b(?:[^<]|<(?![/s]))*+</\1\s*+>"
    r"|<(?P<close>/?)(?P<name>[A-Za-z][\w:.-]*|\d+)"
    r"(?:[\s=](?:[^<>\"']|\"[^\"]*\"|'[^']*')*+)?/?>",
    re.ASCII | re.DOTALL | re.IGNORECASE,
)
"""Comments, what has no text, and tags; also those of numbers, which stand for components, and of
Unity: `<size=20>`.
"""
_CHARACTERS = "|".join(name for name in html5 if not name.endswith(";"))
"""Names of characters that pages may write without a semicolon, such as `&copy`."""
_KEY = re.compile(
    rf"\(&[A-Za-z0-9]\)"
    rf"|(?P<sign>(?<!\S)(?:&&?(?!(?:{_CHARACTERS})(?![^\W\d_])|\w+;)|_(?=[A-Z])))"
    rf"(?P<word>[^\W\d_]\w*)"
)
"""What makes a letter of a menu a key: `&Open`, `_Open`, and `(&O)` behind other scripts."""
_NO_LABEL = re.compile(r"(?!\W*_)(?:\W*[a-z]|.*?\s[a-z]\w{4})", re.DOTALL)
"""How what is not the title of something begins: with a small letter, or a long word that does."""
_BAR = re.compile(r"\{[^{}]*+\}+|<[^<>]*+>|\|\|+|(\|)")
"""What parts the forms of a message, as vue-i18n and Laravel have them; or what may have a bar."""
_RANGE = re.compile(r"\s*+(\{\d+\}|[\[\]](?:-?\d+|-Inf),\s?(?:-?\d+|\*|Inf)[\[\]])?\s*+")
"""For which numbers Laravel and Symfony take a form."""
_EMPTY, _COPIED = {"br", "hr", "img", "wbr"}, {"code", "kbd", "samp", "script", "style", "var"}


def is_page(text: str) -> bool:
    """Whether it has a block of HTML, such as a paragraph, and no tag that HTML lacks."""
    if "</" not in text:
        return False
    opened, closed = set[str](), set[str]()
    for tag in _MARKUP.finditer(text):
        if name := (tag["name"] or "").lower():
            (closed if tag["close"] else opened).add(name)
    unknown = opened.union(closed) - _KNOWN
    return bool(opened & closed & _BLOCKS) and all(":" in name for name in unknown)


def read_page(
    text: str,
    at: Callable[[int], int],
    write: Callable[[Marked], str],
    where: str,
    left: Left,
) -> Iterator[Segment]:
    """The sentences of a piece of a page, block by block and line by line.

    `at` says where a place of the text is in the document, and `write` writes there.
    """
    page = Page(text, _RULES, where, f"{where}, ", left)
    for each in page.document(lambda _: b"").parts[0].segments:
        yield replace(each, start=at(each.start), end=at(each.end), write=write)


def forms(
    text: str, start: int, end: int, read: Callable[[str], str]
) -> list[tuple[int, int, Marked]]:
    """What bars part there, each without the numbers that it is for: its places, and what it says.

    The whole, unless it is surely a message in several forms: two have numbers, or there are spaces
    around all bars, or in all forms. A pattern, a list of names and a sentence with a bar in
    brackets or in quotes are none. `read` makes a string of how it is written.
    """
    bars = [found.start() for found in _BAR.finditer(text, start, end) if found[1]]
    whole, found, ranges = with_elements((read(text[start:end]),)), list[tuple[int, int]](), 0
    for first, last in pairwise([start - 1, *bars, end]) if bars else ():
        begin = _RANGE.match(text, first + 1, last)
        place = begin.end() if begin else first + 1
        ranges += begin is not None and begin[1] is not None
        found.append((place, place + len(text[place:last].rstrip())))
    parts = [read(text[slice(*each)]) for each in found]
    sure = ranges > 1 or all(text[n - 1 : n + 2 : 2].isspace() for n in bars)
    sure = sure or all(len(part.split()) > 1 for part in parts)
    if not (bars and sure and all(map(_is_form, parts))) or is_name("".join(whole.around)):
        return [(start, end, whole)]
    return [(*place, with_elements((part,))) for place, part in zip(found, parts, strict=True)]


def _is_form(text: str) -> bool:
    """Whether it is more than a name, and has a letter, and no half of an element or a pair."""
    is_whole = text.count("<") == 2 * text.count("</")
    is_whole &= all(text.count(a) == text.count(b) for a, b in ("()", "[]", "{}"))
    is_whole &= not any(text.count(quote) % 2 for quote in '"`')
    has_letter = any(map(str.isalpha, _BAR.sub("", text)))
    return is_whole and has_letter and not is_name("".join(with_elements((text,)).around))


def places(raw: str, escape: re.Pattern[str], start: int) -> Callable[[int], int]:
    """Where a place of a text is in the document, in which it is written so from `start` on."""
    escapes, shifts = array("q"), array("q", [start])
    for found in escape.finditer(raw):
        escapes.append(found.start() + start - shifts[-1])
        shifts.append(shifts[-1] + len(found[0]) - 1)
    return lambda place: place + shifts[bisect_left(escapes, place)]


def written(marked: Marked) -> str:
    """Text with its tags as it stands in a piece of a page."""
    return marked.written(lambda text: text.replace("&", "&amp;").replace("<", "&lt;"))


def with_elements(pieces: Iterable[str | Tag], write: Callable[[str], str] = str) -> Marked:
    """Marked text of pieces whose texts may have elements of HTML, which become tags.

    A tag without a partner is one if it says so itself, as `<br/>` does; else it is text: `<name>`.
    The words of blocks have a space between them. The document has each tag as `write` makes it.
    """
    items, opened, given = list[tuple[str, str | Tag]](), dict[str, list[int]](), [*pieces]
    for piece in given:
        place, whole = 0, piece if isinstance(piece, str) else ""
        for found in _MARKUP.finditer(whole) if ">" in whole else ():
            raw, name = found[0], (found["name"] or "").lower()
            items += (" ", whole[place : found.start()]), ("", raw)
            place = found.end()
            if not name or name in _EMPTY or raw.endswith("/>"):
                items[-1] = "", Tag(write(raw), shown=" " if name in {"br", "hr"} else "")
            elif not found["close"]:
                opened.setdefault(name, []).append(len(items) - 1)
            elif opened.get(name):
                begin = opened[name].pop()
                start = str(items[begin][1])
                kept = name in _COPIED or markup.is_left(start)
                items[begin] = name, Tag(write(start), "open", kept)
                items[-1] = name, Tag(write(raw), "close")
        items.append((" ", whole[place:] if isinstance(piece, str) else piece))
    items = [*_with_keys(items, write)]
    if sum(isinstance(piece, Tag) and piece.kind == "open" for _, piece in items) > DEEPEST:
        return merged(given)  # or those that are too deep would not keep their partners
    return paired(_apart(items))


def _with_keys(
    items: Sequence[tuple[str, str | Tag]], write: Callable[[str], str]
) -> Iterator[tuple[str, str | Tag]]:
    """The items with the key of a menu as a tag around its word; a text with two signs has none.

    One with `_` inside it is a title, such as Save _As.
    """
    text = "".join(piece for _, piece in items if isinstance(piece, str))
    is_title = text.count("_") == 1 and not _NO_LABEL.match(text)
    has_key = {"&": len(text.replace("&&", "&").split("&")) == 2, "_": is_title}
    for name, piece in items:
        place, whole = 0, piece if isinstance(piece, str) else ""
        for found in _KEY.finditer(whole) if "&" in whole or is_title else ():
            sign = found["sign"]
            if sign and not has_key[sign[0]]:
                continue
            yield name, whole[place : found.start()]
            place = found.end()
            if sign:
                yield "&", Tag(write(sign), "open")
                yield name, found["word"]
                yield "&", Tag("", "close")
            else:
                yield "", Tag(write(found[0]))
        yield name, whole[place:] if isinstance(piece, str) else piece


def _apart(items: Sequence[tuple[str, str | Tag]]) -> Iterator[tuple[str, str | Tag]]:
    """The items with a tag that shows a space where a block begins or ends between two words."""
    shown = [piece if isinstance(piece, str) else piece.shown for _, piece in items]
    follows = [False]  # whether a word does, from the last item on
    for each in reversed(shown):
        follows.append(not each[0].isspace() if each else follows[-1])
    space, at_word = ("", Tag("", shown=" ")), False
    for n, (name, piece) in enumerate(items):
        is_edge = at_word and follows[-n - 2] and name in _BLOCKS
        kind = piece.kind if is_edge and isinstance(piece, Tag) else "void"
        yield from (space,) * (kind == "open")
        yield name, piece
        yield from (space,) * (kind == "close")
        at_word = not shown[n][-1].isspace() if shown[n] else at_word and kind == "void"
