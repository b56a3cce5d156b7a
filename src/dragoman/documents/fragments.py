"""HTML in strings of other formats: elements in a sentence, and page fragments.

A string with blocks, such as `<p>One</p><p>Two</p>`, can be read as a page if each block has its
own place to be written in; otherwise its blocks are elements of one text, with spaces between.
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
_BLOCK_RULES = replace(_RULES, lines=False)
_COMPONENT = re.compile(r"</?(?:[A-Z]\w*[a-z]|\w+[-.])|=\{|<[^<>]*\smarkdown\b")
"""A tag or an attribute of a component, and a tag that says that Markdown is in its element."""
_MARKDOWN = re.compile(
    r"\][(\[]|`|\$\$|\*\*|~~~|^[ \t]*+(?:[|#]|(?:[-*+]|\d+[.)])\s|\[[^]\n]++\]:)", re.MULTILINE
)
"""A sign of Markdown in an HTML block."""
_MARKUP = re.compile(
    r"<!--(?:(?!<!--|-->).)*+-->|<(script|style)\b(?:[^<]|<(?![/s]))*+</\1\s*+>"
    r"|<(?P<close>/?)(?P<name>[A-Za-z][\w:.-]*|\d+)"
    r"(?:[\s=](?:[^<>\"']|\"[^\"]*\"|'[^']*')*+)?/?>",
    re.ASCII | re.DOTALL | re.IGNORECASE,
)
"""Comments, elements without text, and tags; also numbered tags, which stand for components, and
Unity's: `<size=20>`."""
_CHARACTERS = "|".join(name for name in html5 if not name.endswith(";"))
"""Names of characters that may be written without a semicolon, such as `&copy`."""
_KEY = re.compile(
    rf"\(&[A-Za-z0-9]\)"
    rf"|(?P<sign>(?<!\S)(?:&&?(?!(?:{_CHARACTERS})(?![^\W\d_])|\w+;)|_(?=[A-Z])))"
    rf"(?P<word>[^\W\d_]\w*)"
)
"""What makes a letter a menu key: `&Open`, `_Open`, and `(&O)` after other scripts."""
_NO_LABEL = re.compile(r"(?!\W*_)(?:\W*[a-z]|.*?\s[a-z]\w{4})", re.DOTALL)
"""The start of a text that is not a label: a small letter, or a long word that begins with one."""
_BAR = re.compile(r"\{[^{}]*+\}+|<[^<>]*+>|\|\|+|(\|)")
"""A bar between forms of a message, as in vue-i18n and Laravel; or text that may contain a bar."""
_RANGE = re.compile(r"\s*+(\{\d+\}|[\[\]](?:-?\d+|-Inf),\s?(?:-?\d+|\*|Inf)[\[\]])?\s*+")
"""The numbers for which Laravel and Symfony use a form."""
_EMPTY, _COPIED = {"br", "hr", "img", "wbr"}, {"code", "kbd", "samp", "script", "style", "var"}


def is_page(text: str) -> bool:
    """Return whether a text has an HTML block, such as a paragraph, and no tag that HTML lacks."""
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
    """Yield the sentences of a page fragment, block by block and line by line.

    `at` maps an offset in the text to the document, and `write` writes there.
    """
    page = Page(text, _RULES, where, f"{where}, ", left)
    for each in page.segments:
        yield replace(each, start=at(each.start), end=at(each.end), write=write)


def read_block(
    text: str, plain: str, place: tuple[int, int], line: int, left: Left
) -> list[Segment]:
    """Return the texts of an HTML block of Markdown, as far as they are in `plain` unchanged.

    Return none of a block in a quotation, whose signs are in it, and none of one that contains
    Markdown, or that begins with an inline element or contains components, in which some tools read
    Markdown. `line` is the number of its first line.
    """
    start, raw = place[0], plain[slice(*place)]
    name = next(markup.tokens_of(raw.lstrip(), _BLOCK_RULES)).name
    is_quoted = ">" in text[text.rfind("\n", 0, start) + 1 : start]
    if not name or is_quoted or not _BLOCK_RULES.block(name):
        return []
    if _COMPONENT.search(raw) or _MARKDOWN.search(text, *place):
        return []
    page = Page(raw, _BLOCK_RULES, f"line {line}", left=left, line=line)
    found = list[Segment]()
    for each in page.segments:
        begin, end = start + each.start, start + each.end
        if text[begin:end] == plain[begin:end]:
            found.append(replace(each, start=begin, end=end))
    return found


def forms(
    text: str, start: int, end: int, read: Callable[[str], str]
) -> list[tuple[int, int, Marked]]:
    """Return the forms that bars separate, each without its number range: start, end and text.

    Return the whole, unless it is certainly a message with several forms: two have number ranges,
    or there are spaces around all bars, or in all forms. A pattern, a list of names and a sentence
    with a bar in brackets or in quotes are not. `read` decodes a string as it is written.
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
    """Return whether a text has a letter and no half of an element or pair, and is not a name."""
    is_whole = text.count("<") == 2 * text.count("</")
    is_whole &= all(text.count(a) == text.count(b) for a, b in ("()", "[]", "{}"))
    is_whole &= not any(text.count(quote) % 2 for quote in '"`')
    has_letter = any(map(str.isalpha, _BAR.sub("", text)))
    return is_whole and has_letter and not is_name("".join(with_elements((text,)).around))


def places(raw: str, escape: re.Pattern[str], start: int) -> Callable[[int], int]:
    """Return what maps offsets in a text to the document, where `raw` begins at `start`."""
    escapes, shifts = array("q"), array("q", [start])
    for found in escape.finditer(raw):
        escapes.append(found.start() + start - shifts[-1])
        shifts.append(shifts[-1] + len(found[0]) - 1)
    return lambda place: place + shifts[bisect_left(escapes, place)]


def written(marked: Marked) -> str:
    """Write text with its tags as in a page fragment."""
    return marked.written(lambda text: text.replace("&", "&amp;").replace("<", "&lt;"))


def with_elements(pieces: Iterable[str | Tag], write: Callable[[str], str] = str) -> Marked:
    """Return the marked text of pieces, with HTML elements in their texts as tags.

    A tag without a partner is one only if it is void, as `<br/>` is; else it is text: `<name>`. The
    words of blocks have a space between them. `write` gives each tag its form in the document.
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
        return merged(given)  # tags that are too deep would lose their partners
    return paired(_apart(items))


def _with_keys(
    items: Sequence[tuple[str, str | Tag]], write: Callable[[str], str]
) -> Iterator[tuple[str, str | Tag]]:
    """Yield the items with a menu key as a tag around its word; a text with two signs has none.

    A text with `_` inside it is a title, such as Save _As.
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
    """Yield the items, with a tag shown as a space where a block begins or ends between words."""
    shown = [piece if isinstance(piece, str) else piece.shown for _, piece in items]
    follows = [False]  # whether a word follows, from the last item on
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
