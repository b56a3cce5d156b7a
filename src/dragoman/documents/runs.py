"""Paragraphs of Microsoft Office: sequences of runs, each with its own properties.

The properties of most of the text are those of the paragraph; a run with others is an element in
it, and equal neighbours are merged. Text and tags can then be written in any order: a run ends
before a tag that belongs between runs, and the next text begins another.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from dragoman.documents.paragraphs import Half, Raw, lines, paired
from dragoman.files.xml import Element, escape_xml
from dragoman.text.marked import Marked, Tag, is_raised, with_notes, with_one_space

_AROUND = {
    *("hyperlink", "ins", "moveTo", "fldSimple", "sdt", "sdtContent"),
    *("smartTag", "customXml", "bdo", "dir"),
}
"""Elements that contain runs."""
_DROPPED = {"proofErr", "lastRenderedPageBreak", "rPh", "phoneticPr"}
"""Elements that are dropped from a changed paragraph."""
_BREAKS = {"br", "cr", "tab", "ptab"}
_LONG = 1 << 9
"""Length in characters from which properties are not extended to a space that lacks them."""
_NEUTRAL = re.compile(
    r"<(?:\w+:)?(?:lang|noProof)\b[^<>]*/>"
    r"|\s(?:lang|altLang|dirty|err|smtClean)=(?:\"[^\"]*\"|'[^']*')"
)
"""Properties that do not distinguish runs: those of the spelling checker."""
_EMPTY = re.compile(r"<(?:\w+:)?rPr\s*(?:/>|>\s*</(?:\w+:)?rPr\s*>)")
_ESCAPED_BREAK = re.compile(r"(?<!_x005F)(?:_x000D_(?:\n|_x000A_)?|_x000A_)", re.IGNORECASE)
_HALF = re.compile(r'fldCharType="(?:(begin)|end)"')
"""The beginning or end of a field."""


def has_text(element: Element) -> bool:
    """Return whether a child of a paragraph has text to translate."""
    if element.local == "t":
        return bool(element.text)
    if element.local == "r":
        return any(map(_spoken, element.elements))
    return element.local in _AROUND and any(map(has_text, element.elements))


def _spoken(child: Element) -> str:
    """Return the text of a child of a run; for a phonetic guide, its base text."""
    if child.local == "noBreakHyphen":
        return "\u2011"
    if child.local == "ruby":
        base = child.child("rubyBase")
        return base.text if base is not None else ""
    return with_breaks(child.text) if child.local == "t" else ""


def with_breaks(text: str) -> str:
    """Decode the line breaks of Excel: CR, which XML lacks, is escaped, and both are in names."""
    return _ESCAPED_BREAK.sub("\n", text)


def with_text_and_fields(children: Sequence[Element], text: str) -> Sequence[Element]:
    """Return the children of a paragraph from the first to the last with text, and all of each
    field that begins, ends or contains some of them.
    """
    starts = [child.start for child in children]
    with_text = [n for n, child in enumerate(children) if has_text(child)]
    first, last = (with_text[0], with_text[-1]) if with_text else (0, -1)
    begun = list[int]()
    for half in _HALF.finditer(text, children[0].start, children[-1].end) if with_text else ():
        place = bisect_right(starts, half.start()) - 1
        if half[1]:
            begun.append(place)
        elif begun and (begin := begun.pop()) <= last and place >= first:
            first, last = min(first, begin), max(last, place)
    return children[first : last + 1]


@dataclass(frozen=True, slots=True)
class _Run:
    """The text of a run, and the tags in it."""

    properties: str
    pieces: tuple[str | Tag | Half, ...]


@dataclass(frozen=True, slots=True)
class RunWriter:
    """Writes marked text as runs."""

    usual: str
    """The properties of text outside any element."""
    run: tuple[str, str]
    """The tags of a run; empty for the text of a cell without runs."""
    text: tuple[str, str]
    """The tags of text in a run."""
    switches: Set[str]
    """Tags that begin other properties: that of a run, and the properties."""
    inside: Set[str]
    """The tags inside a run."""

    def splits(self, tag: Tag) -> bool:
        """Return whether a tag begins other properties, which several runs may have."""
        return tag.raw in self.switches

    @property
    def parts(self) -> tuple[str, Callable[[Marked], str], str]:
        """What begins consecutive texts, what writes one, and what ends them: a cell without runs
        has a single element for all.
        """
        if self.run[0]:
            return "", self.write, ""
        return self.text[0], replace(self, text=("", "")).write, self.text[1]

    def write(self, marked: Marked) -> str:
        """Write the text as runs."""
        written, properties, level = list[str](), [self.usual], 0

        def move(to: int) -> None:
            """Move between runs (0), into a run (1) or into its text (2)."""
            nonlocal level
            begins, ends = (self.run[0] + properties[-1], self.text[0]), (self.run[1], self.text[1])
            written.extend(ends[n] for n in reversed(range(to, level)))
            written.extend(begins[n] for n in range(level, to))
            level = to

        for before, piece in pairwise(("", *marked.pieces)):
            if isinstance(piece, str):
                move(2)
                written.append(escape_xml(piece))
            elif piece.raw in self.switches:
                move(0)
                properties.append(piece.raw.removeprefix(self.run[0]))
            elif piece.raw == self.run[1]:
                is_empty = isinstance(before, Tag) and before.raw in self.switches
                move(2 * (is_empty and "hlink" in properties[-1]))  # a link without words is kept
                move(0)
                properties.pop()
            else:
                move(2 if piece.raw.isspace() else int(piece.raw in self.inside))
                written.append(piece.raw)
        move(0)
        return "".join(written)


def read_runs(children: Sequence[Element], text: str, raw: Raw) -> tuple[Marked, RunWriter]:
    """Return the marked text of a paragraph's children, of which some have text, and its writer."""
    runs = _ParagraphRuns(children, text, raw)
    pieces = runs.pieces(children)
    first = next(_with_text(children))
    space = first.inherited(f"xmlns:{first.prefix}".rstrip(":")) or ""
    kept = "" if "drawingml" in space else ' xml:space="preserve"'
    tags = f"<{first.prefix}t{kept}>", f"</{first.prefix}t>"
    inside, switches = frozenset(runs.inside), frozenset(runs.switches)
    writer = _writer(runs.usual, runs.tags, tags, switches, inside)
    return with_one_space(with_notes(pieces, writer.write)), writer


_writer = lru_cache(256)(RunWriter)  # most paragraphs share one


class _ParagraphRuns:
    def __init__(self, children: Sequence[Element], text: str, raw: Raw) -> None:
        self._text, self._raw = text, raw
        self.inside, self.switches = set[str](), set[str]()
        lengths, first = Counter[str](), next(_with_text(children))
        for run in _with_text(children):
            lengths[self._properties(run)] += len(run.text)
        self.usual = max(lengths, key=lambda of: (not is_raised(of), lengths[of]))
        bare = first.local == "t"
        self.tags = ("", "") if bare else (f"<{first.prefix}r>", f"</{first.prefix}r>")

    def _properties(self, run: Element) -> str:
        """Return the properties of a run, without those of the spelling checker, as raw text: they
        may be written several times, and a separate part in them would be too.
        """
        element = run.child("rPr")
        written = self._text[element.start : element.end] if element is not None else ""
        kept = _NEUTRAL.sub("", written)
        return "" if _EMPTY.fullmatch(kept) else kept

    def pieces(self, elements: Iterable[Element]) -> list[str | Tag]:
        """Return the pieces of one level of elements; runs with other properties are tag pairs."""
        pieces, properties = list[str | Tag | Half](), self.usual

        def switch(to: str) -> None:
            nonlocal properties
            if properties != self.usual:
                end = len(pieces)
                while self._is_between(pieces[end - 1]):
                    end -= 1
                pieces.insert(end, Tag(self.tags[1], "close"))
            if to != self.usual:
                pieces.append(Tag(self.tags[0] + to, "open"))
                self.switches.add(self.tags[0] + to)
            properties = to

        for item in self._items(elements):
            if isinstance(item, _Run):
                is_space = item.pieces == (" ",) and len(properties) < _LONG
                if item.properties != properties and not is_space:
                    switch(item.properties)
                pieces += item.pieces
            elif isinstance(item, Tag):
                pieces.append(item)
            else:
                switch(self.usual)
                pieces += [item] if isinstance(item, Half) else item
        switch(self.usual)
        return paired(pieces)

    def _is_between(self, piece: str | Tag | Half) -> bool:
        """Return whether a piece is a void tag between runs."""
        return (
            isinstance(piece, Tag)
            and piece.kind == "void"
            and not (piece.raw.isspace() or piece.raw in self.inside)
        )

    def _items(self, elements: Iterable[Element]) -> Iterator[_Run | Tag | Half | list[str | Tag]]:
        """Yield the runs of one level, the tags between them, and other elements' pieces."""
        between = list[Tag]()
        for element in elements:
            if element.local in _DROPPED or element.local.endswith("Pr"):
                continue
            if not has_text(element):
                between.append(_void(self._raw(element), _shown(element)))
                continue
            yield from _fields(between)
            between = []
            if element.local == "t":
                yield _Run("", tuple(lines(_spoken(element))))
            elif element.local == "r":
                yield self._read_run(element)
            else:
                start, pieces, end = self._around(element)
                kept = element.local == "fldSimple" and "HYPERLINK" not in start
                yield [Tag(start, "open", kept), *pieces, Tag(end, "close")]
        yield from _fields(between)

    def _around(self, element: Element) -> tuple[str, list[str | Tag], str]:
        """Return the tags of an element around runs, such as a link, and its pieces."""
        properties = [child for child in element.elements if child.local.endswith("Pr")]
        inner = [child for child in element.elements if child not in properties]
        start = self._text[element.start : element.content_start]
        start += "".join(map(self._raw, properties))
        end = self._text[element.content_end : element.end]
        if len(inner) == 1 and inner[0].local in _AROUND - {"fldSimple"}:  # as in a control
            inner_start, pieces, inner_end = self._around(inner[0])
            return start + inner_start, pieces, inner_end + end
        return start, self.pieces(inner), end

    def _read_run(self, run: Element) -> _Run:
        pieces = list[str | Tag | Half]()
        for child in run.elements:
            if child.local in {"t", "ruby", "noBreakHyphen"}:
                pieces += lines(_spoken(child))
            elif child.local not in {"rPr", "softHyphen", *_DROPPED}:
                tag = _void(self._raw(child), _shown(child))
                self.inside.add(tag.raw)
                begun = _begun(tag.raw) if child.local == "fldChar" else 0
                whole = self._text[run.start : run.end]
                pieces.append(_half(tag.raw, begun, whole) if begun else tag)
        return _Run(self._properties(run), tuple(pieces))


@lru_cache(256)  # many are equal, such as breaks
def _void(raw: str, shown: str) -> Tag:
    return Tag(raw, shown=shown)


def _with_text(elements: Iterable[Element]) -> Iterator[Element]:
    """Yield the runs with text at all levels."""
    for element in filter(has_text, elements):
        if element.local in _AROUND:
            yield from _with_text(element.elements)
        else:
            yield element


def _shown(element: Element) -> str:
    """Return what is read in place of an element without text."""
    if element.local == "r":
        inner = {child.local for child in element.elements} - {"rPr", *_DROPPED}
        return " " if inner and inner <= _BREAKS else ""
    return " " if element.local in _BREAKS else ""


def _fields(tags: Iterable[Tag]) -> Iterator[Tag | Half]:
    """Merge consecutive tags, in which fields begin, end, or do both.

    The result of a field, such as a page number, is copied; the text of a link is not.
    """
    rows = list[tuple[list[str], int, str]]()
    for tag in tags:
        raws, before, shown = rows[-1] if rows else ([], 0, " ")
        begun = _begun(tag.raw)
        if shown or tag.shown or before < 0 or before + begun not in {0, 1}:
            rows.append(([tag.raw], begun, tag.shown))
        else:
            raws.append(tag.raw)
            rows[-1] = raws, before + begun, ""
    for raws, begun, shown in rows:
        raw = "".join(raws)
        yield _half(raw, begun, raw) if begun else Tag(raw, shown=shown)


def _half(raw: str, begun: int, around: str) -> Half:
    """Return the beginning or end of a field; `around` tells its kind."""
    return Half(raw, "field", begun > 0, kept="HYPERLINK" not in around)


def _begun(raw: str) -> int:
    """Return how many more fields begin than end."""
    return raw.count('fldCharType="begin"') - raw.count('fldCharType="end"')
