"""Markdown: paragraphs, headings, items, terms, cells and titles, with emphasis and links as tags.

Code, most front matter, formulas, link targets, and directives of other tools are left alone, and
of HTML blocks all but text. A paragraph whose text changes is written as one line, or as many as
it has hard breaks.
"""

import re
import sys
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import PurePath
from typing import Any, NamedTuple

from dragoman.documents import frontmatter
from dragoman.documents.characters import (
    SURROGATE,
    characters_before,
    decoded,
    unescaped,
    without_damage,
)
from dragoman.documents.dialects import (
    ATTRIBUTES,
    DIRECTIVE,
    ENDS,
    LINE_END,
    NO_DEFINITION,
    ONE_CELL,
    TITLE_OF_NOTE,
    with_kept,
    with_plain_code,
    with_plain_targets,
)
from dragoman.documents.document import Asides, Document, Left, Segment, Segments
from dragoman.documents.fragments import read_block
from dragoman.documents.frontmatter import read_matter
from dragoman.documents.html import RULES
from dragoman.documents.markup import is_left, tokens_of, with_marks
from dragoman.documents.signs import (
    TEXTS,
    events_of,
    fault_of,
    fault_of_title,
    written,
    written_alt,
    written_title,
)
from dragoman.documents.templates import as_written, pieces_of, settled
from dragoman.errors import InputError
from dragoman.text.marked import Marked, Tag, paired

LARGEST = 1 << 22
"""Maximum size in bytes: the parser's events take many times as much."""
_SPANS = {"Emphasis": "*", "Strong": "**", "Strikethrough": "~~", "Link": "[", "Image": "!["}
"""Elements that enclose text inside a paragraph, and their opening marks."""
_LEAVES = {*TEXTS, "SoftBreak", "HardBreak", "InlineHtml", "FootnoteReference"}
"""Events inside a paragraph."""
_NOTE = (" ", "^")
"""The sign before the bracket of a note."""
_LEFT = {"CodeBlock": "code", "HtmlBlock": "HTML", "MetadataBlock": frontmatter.LEFT}
_SEEN = {*_LEAVES, *_LEFT, "Html", "Image", ""}
"""Events that are not definitions; the end of the file has no name."""
_DEFINITION = re.compile(
    r"^[ \t>]*\[(?!\^)(?:[^][\\\r\n]|\\.)+\]:[ \t]*(?:<[^<>\r\n]*>|[^\s<]\S*)"
    rf"(?:[ \t]+|[ \t]*\r?\n[ \t>]*)[\"'(]([^\r\n]*)[\"')]{ENDS}",
    re.MULTILINE,
)
"""A link definition with a title."""
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_EMPTY_LINE = re.compile(r"(?:\r?\n|\r)[ \t>]*[\r\n]")
_TABLE_ROW = re.compile(r"\r?\n\|")
"""The start of a following table row."""
_TITLE = re.compile(r"\]\(\s*+(?:<(?:[^<>\\]|\\.)*+>|[^\s<]\S*+)\s++[\"'(]([^\r\n]*)[\"')]\s*+\)")
"""The end of a link with its title, if that is on one line."""


def read(data: bytes, name: str) -> Document:
    """Read the text of a Markdown file, which pyromark parses."""
    if len(data) > LARGEST:
        raise InputError(f"{name} has more than {LARGEST:,} bytes; cut it into parts.")
    text, encode = decoded(data, name)
    reader = _Paragraphs(text, name)
    segments = Segments(name, reader.segments())
    return reader.asides.document(segments, encode, reader.left)


class _Span(NamedTuple):
    """An open element that encloses text."""

    more: Any
    """What the parser reports about it."""
    mark: str
    """The opening mark."""
    start: int
    """Where its text begins."""
    number: int
    """The number of its piece."""


class _Bracket(NamedTuple):
    """An open bracket in a text."""

    number: int
    """The number of its piece."""
    start: int
    """Where the text in it begins."""
    asides: int
    """How many texts had been set aside before it."""


class _Paragraphs:
    """The places of text, from the parser's events."""

    def __init__(self, text: str, name: str) -> None:
        self._text, self.left, self.asides = text, Left(), Asides(text, name)
        self._is_mdx = PurePath(name).suffix.lower() == ".mdx"
        self._write = partial(written, is_mdx=True) if self._is_mdx else written
        self._line_ends = array("I", (found.start() for found in re.finditer("\n", text)))
        self._titles = list[re.Match[str]]()  # of notes
        self._plain = DIRECTIVE.sub(self._without_directive, without_damage(text))
        self._plain = ONE_CELL.sub(lambda row: re.sub("[:|-]", " ", row[0]), self._plain)
        self._plain = with_plain_targets(self._plain)
        self._pieces: list[tuple[str, str | Tag]] = []
        self._start = self._end = 0  # of the pieces
        self._opened: list[_Span] = []
        self._depth = 0  # of the outermost open picture
        self._brackets: list[_Bracket] = []

    def _line(self, place: int) -> int:
        return bisect_left(self._line_ends, place) + 1

    def _where(self, place: int) -> str:
        return f"line {self._line(place)}"

    def _without_directive(self, found: re.Match[str]) -> str:
        """Replace a directive with as much white space: a note with a list item, so that its
        indented text is not code; one between rows of a table with rows.
        """
        text, start = found.string, found.start()
        last = text[text.rfind("\n", 0, max(0, start - 1)) + 1 : start]
        begins = last.strip(" \t>\r\n") in {"", "---", "+++"}
        if found["code"] and not begins:  # words of a sentence
            return found[0]
        if title := TITLE_OF_NOTE.match(text, start):
            self._titles.append(title)
        else:
            self.left.add("directives of other tools", self._where(start))
        blank = re.sub(r"[^\r\n]", " ", found[0])
        if last.startswith("|") and _TABLE_ROW.match(text, found.end()):
            blank = re.sub(r"^ | (?=\r?$)", "|", blank, flags=re.MULTILINE)
        mark = (found["start"] or "") + ("*" if found["note"] and begins else "")
        longer = f"{mark} [\ufdef]:x"  # an empty item would end at an empty line
        if found["note"] and len(longer) <= len(blank) and _EMPTY_LINE.match(text, found.end()):
            mark = longer if begins else mark
        return mark + blank[len(mark) :]

    def _events(self) -> Iterator[tuple[str, str, Any, int, int]]:
        """Yield the parser's events: kind, name, data, and start and end in characters."""
        plain = with_plain_code(NO_DEFINITION.sub(r"\1;", self._plain), is_mdx=self._is_mdx)
        before = characters_before(plain.encode())
        for kind, name, more, start, end in events_of(plain):
            yield kind, name, more, before(start), before(end)

    def segments(self) -> Iterator[Segment]:
        """Yield the texts, in order."""
        skipped, is_term = "", False
        titles = [*self._titles, *_DEFINITION.finditer(self._plain)]
        definitions = deque(sorted(titles, key=re.Match.start))
        last = ("End", "", None, len(self._text), sys.maxsize)
        for kind, name, more, start, end in chain(self._events(), [last]):
            while definitions and name in _SEEN and definitions[0].start() < end:
                if (found := definitions.popleft()).end() <= start:
                    self._set_title_aside(found)
            if skipped:
                skipped = "" if (kind, name) == ("End", skipped) else skipped
            elif self._depth or (_is_inline(name, more) and not (is_term and name == "SoftBreak")):
                if not self._pieces:
                    self._start = start - (self._text[start - 1 : start] == "\\")
                skipped = self._add(kind, name, more, start, end)
            else:
                yield from self._paragraph(is_heading=name == "Heading")
                self._pieces, self._brackets = [], []
                is_term = name == "SoftBreak" or (kind, name) == ("Start", "DefinitionListTitle")
                if kind == "Start" and name in _LEFT:
                    yield from self._block(name, start, end)
                    skipped = name

    def _block(self, name: str, start: int, end: int) -> list[Segment]:
        """Return the texts of a block of HTML, or those shown of front matter; the rest is left."""
        found, told, line = list[Segment](), self.left.total, self._line(start)
        if name == "HtmlBlock" and not self._is_mdx:
            found = read_block(self._text, self._plain, (start, end), line, self.left)
        elif name == "MetadataBlock":
            found = read_matter(self._text, self._plain, (start, end), line)
        if name == "MetadataBlock" or (not found and self.left.total == told):
            self.left.add(_LEFT[name], self._where(start))
        return found

    def _paragraph(self, *, is_heading: bool) -> Iterator[Segment]:
        """Yield the text that was added, if there is any besides code."""
        if not any(name in (" ", "\\") for name, _ in self._pieces):
            return
        where, source = self._where(self._start), self._marked(self._pieces)
        if SURROGATE.search(self._text, self._start, self._end):
            source = Marked((self._text[self._start : self._end],))
        write = self._write
        if is_heading and not self._is_mdx:
            write = partial(written, is_heading=True)
        if not source.kept or any(map(str.isalpha, "".join(source.around))):
            yield Segment(self._start, self._end, source, write, where, fault_of)

    def _marked(self, pieces: Iterable[tuple[str, str | Tag]]) -> Marked:
        return paired(with_kept(pieces, is_mdx=self._is_mdx))

    def _add(self, kind: str, name: str, more: Any, start: int, end: int) -> str:  # noqa: ANN401
        """Add an event; return the name of a span that is added as a whole, up to its end."""
        raw, before, self._end = self._text[start:end], self._end, end
        if kind == "Start" and name == "Link" and more["link_type"] in ("Autolink", "Email"):
            self._pieces += as_written(raw)
            return name
        if kind == "Start":
            self._open(name, more, start, "~" if raw[:1] == "~" != raw[1:2] else _SPANS[name])
        elif kind == "End":
            self._close(name, before, end)
        elif name == "Text" and raw[:1] == "&" and not more.strip(" \t\r\n\f"):
            # It would begin a line, or indent one.
            self._pieces.append(("", Tag(raw, shown=" ")))
        elif name in ("Text", "SoftBreak"):
            self._add_text(raw, more, start, end)
        elif name in ("Code", "InlineMath", "DisplayMath"):
            self._pieces += as_written(LINE_END.sub(" ", raw))
        elif name == "InlineHtml":
            token = next(tokens_of(raw, RULES))
            kept = token.kind == "open" and (token.name in RULES.copied or is_left(raw))
            is_whole = token.raw == raw  # not so in JSX: a={b > c}
            if (
                is_whole
                and token.kind != "close"
                and token.name
                and not (self._depth or is_left(raw))
            ):
                raw = with_marks(token, RULES, self.asides, start, self._where(start))
            shown = " " if token.name in RULES.breaks else ""
            self._pieces.append((token.name, replace(token.tag, raw=raw, kept=kept, shown=shown)))
        else:
            breaks = name == "HardBreak"
            prefix = re.compile(r"[ \t>]*").match(self._text, end) if breaks else None
            raw += prefix[0] if prefix else ""
            self._end = start + len(raw)
            self._pieces.append(("", Tag(raw, shown=" " if breaks else "")))
        return ""

    def _open(self, name: str, more: Any, start: int, mark: str) -> None:  # noqa: ANN401
        self._end = start + len(mark)
        self._opened.append(_Span(more, mark, self._end, len(self._pieces)))
        self._pieces.append((name, Tag(mark, "open")))
        if name == "Image" and not self._depth:
            self._depth = len(self._opened)

    def _close(self, name: str, before: int, end: int) -> None:
        """End a span, whose last text ended at `before`; a picture is one tag."""
        more, mark, start, number = self._opened.pop()
        kind = more["link_type"] if name in ("Link", "Image") else ""
        label = self._text[start:before] if kind in ("Shortcut", "Collapsed") else ""
        self._end += 2 if kind == "Collapsed" and self._text[end : end + 2] == "[]" else 0
        is_picture = len(self._opened) < self._depth
        if is_picture:
            self._depth = 0
            last = self._end - 1 if label else before
            mark += self._taken_out(number, start, last, "alt text", label)
        raw = self._text[before:end] if kind else mark
        if kind == "Inline" and (title := _TITLE.fullmatch(self._plain, before, end)):
            first, last = title.span(1)
            text = _ESCAPED.sub(r"\1", unescaped(self._plain[first:last]))
            cut = self._set_aside(first, last, text)
            raw = f"{self._text[before:first]}{cut}{self._text[last:end]}"
        if label:  # the text is also the label
            raw = "]" if is_picture else f"][{label}]"
        self._pieces.append(("", Tag(mark + raw)) if is_picture else (name, Tag(raw, "close")))

    def _add_text(self, raw: str, more: str | None, start: int, end: int) -> None:
        """Add words or a line break."""
        escaped = "\\" if self._text[start - 1 : start] == "\\" else " "
        # An entity is longer than its text; everything else equals the raw text.
        text = "\n" if more is None else raw if len(raw) == len(more) else more
        if self._start == start and raw.startswith((": ", ":\t")):  # a caption of Pandoc
            self._pieces.append(("", Tag(":")))
            text = text[1:]
        self._pieces.append((escaped, text if escaped == " " else text[:1]))
        if escaped != " " and text[1:]:
            self._pieces.append((" ", text[1:]))
        if raw in ("[", "![", "]") and escaped == " ":
            self._add_bracket(start, end)

    def _add_bracket(self, start: int, end: int) -> None:
        """Begin or end bracketed text of Pandoc: a note, `^[words]`, or `[words]{.name}`.

        A note is a separate text, unless it contains another one or is in a picture.
        """
        if self._text[start] != "]":
            name, before = self._pieces[-2] if len(self._pieces) > 1 else ("", "")
            if name in (" ", "\\") and str(before)[-1:] == "^" and (name, before) != ("\\", "^"):
                self._pieces[-2:] = (name, str(before)[:-1]), _NOTE, self._pieces[-1]
            self._brackets.append(_Bracket(len(self._pieces) - 1, end, len(self.asides)))
            return
        if not self._brackets:
            return
        number, first, asides = self._brackets.pop()
        is_note = number > 0 and self._pieces[number - 1] is _NOTE
        if is_note and not self._depth and asides == len(self.asides):
            del self._pieces[-1]
            raw = f"^[{self._taken_out(number, first, start, 'note')}]"
            self._pieces[-1] = "", Tag(raw)
        elif is_note or ATTRIBUTES.match(self._text, end):
            opening = str(self._pieces[number][1])
            if is_note:
                opening, self._pieces[number - 1] = "^[", ("", Tag("", shown=" "))
            self._pieces[number] = "[", Tag(opening, "open")
            self._pieces[-1] = "[", Tag("]", "close")

    def _taken_out(self, number: int, first: int, last: int, what: str, label: str = "") -> str:
        """Delete the pieces from `number` on; return what replaces the text from `first` to `last`.

        That is a mark for a separate text, or the text itself if there is nothing to translate in
        it.
        """
        inner, raw = self._pieces[number + 1 :], self._text[first:last]
        del self._pieces[number:]
        while self._brackets and self._brackets[-1].number >= number:
            self._brackets.pop()
        if not any(name in (" ", "\\") for name, _ in inner):
            return raw
        source = Marked((raw,)) if SURROGATE.search(raw) else self._marked(inner)
        write = partial(written_alt, label=label) if label else self._write
        fault = partial(fault_of, end="][") if label else fault_of
        where = f"{self._where(first)}, {what}"
        return self.asides.cut(Segment(first, last, source, write, where, fault))

    def _set_title_aside(self, found: re.Match[str]) -> None:
        """Set aside the title of a link definition or of a note."""
        (first, last), raw = found.span(found.lastindex or 0), found[found.lastindex or 0]
        if found.re is not TITLE_OF_NOTE:
            self._set_aside(first, last, _ESCAPED.sub(r"\1", unescaped(raw)))
        elif raw == self._text[first:last]:
            where, source = f"{self._where(first)}, title", Marked((raw,))
            self.asides.cut(Segment(first, last, source, Marked.written, where, fault_of_title))

    def _set_aside(self, first: int, last: int, title: str) -> str:
        """Return what replaces a title, up to the sign that ends it.

        Return the title itself in a picture, and if it contains text that was replaced for the
        parser, such as damaged bytes.
        """
        if (raw := self._text[first:last]) != self._plain[first:last] or self._depth:
            return raw
        write = partial(written_title, end=self._text[last])
        where = f"{self._where(first)}, title"
        source = paired(settled(pieces_of(title)))
        return self.asides.cut(Segment(first, last, source, write, where))


def _is_inline(name: str, raw: Any) -> bool:  # noqa: ANN401 -- as `_only` has it
    """Return whether this is inside a paragraph, and not an HTML tag that would begin a block."""
    tag = next(tokens_of(raw, RULES)).name if name == "InlineHtml" else ""
    is_block = tag != "" and (RULES.block(tag) or tag in RULES.raw)
    return (name in _SPANS or name in _LEAVES) and not is_block
