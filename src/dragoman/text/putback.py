"""Putting the tags of a text into its translation.

    put_back(source, "casa roja", links)  # of <b>red</b> house: casa <b>roja</b>

Links say which source characters each token of the translation stands for. An element encloses the
words that stand for its own, as one span. If these are apart, it encloses the run with the most of
them and the fewest others; if there are none, it is empty. A copied element encloses its copy, and
a word that touches the copy, if the translation has one, whatever else is linked to it. Elements
are placed from the outside in and never overlap. A void tag is placed so that as many words stand
for what was before it as in the source. So no tag is lost or doubled, all are nested, and no word
is cut. The time is that of sorting.

The idea of transferring tags token by token is from bergamot (`src/translator/html.cpp`).
"""

import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby

from dragoman.text.marked import Marked, Tag, merged
from dragoman.text.spans import Span, clings

Link = tuple[int, int, int, int]
"""Source start and end, text start and end, in characters."""

_APART = (  # ASCII and Latin signs, general punctuation, scripts without spaces
    "!-&(-/:-@\\[-^`{-~\xa1-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u2000-\u200b\u200e-\u2018\u201a-\u206f\u2190-\u2bff\u3000-\ua4cf\uf900-\ufaff\ufe10-\uffef"
    "\U0001f000-\U0003ffff"
)
_WORD = re.compile(rf"\d+(?:[.,:]\d+)+|[^\s{_APART}]+")
"""A number, or a word of a script with spaces."""
_UNIT = re.compile(rf"{_WORD.pattern}|[🇦-🇿]{{2}}|\S")
"""A unit that is never cut, with the characters that cling to it: a number, word, flag or sign."""
_SPACE = re.compile(r"\s")
_STEPS = 8
"""Maximum number of words by which a void tag may move, to have fewer on its wrong side."""


@dataclass(slots=True, eq=False)
class _Element:
    """An open tag, its close tag and their content; a void tag if there is no close tag."""

    open: Tag
    start: int
    """Start in the source's text."""
    first: int
    """Index of its first piece in the source's pieces."""
    end: int = 0
    last: int = 0
    close: Tag | None = None
    inner: list["_Element"] = field(default_factory=list)

    @property
    def copied(self) -> bool:
        """Whether its text is copied from the source."""
        return self.open.kept and self.start < self.end


@dataclass(frozen=True, slots=True)
class _Unit:
    start: int
    end: int
    at: int
    """The source character that it stands for; -1 if unknown."""


UnitSpan = tuple[int, int, int]
"""The first unit of the translation, the one after the last, and the element's number."""


def put_back(
    source: Marked, text: str, links: Sequence[Link], whole: Iterable[Span] = ()
) -> Marked:
    """Return the translation with its source's tags; the source itself if the text is unchanged.

    Copied elements are taken from the source, whatever the translation has in their place. No tag
    cuts a `whole` span; these are disjoint spans of the translation.
    """
    if text == source.text:
        return source
    return _Putting(source, text, links, whole).result() if any(source.tags) else merged([text])


class _Putting:
    """The state of putting the tags of one text into its translation."""

    def __init__(
        self, source: Marked, text: str, links: Sequence[Link], whole: Iterable[Span]
    ) -> None:
        self._source, self._source_text, self._text = source, source.text, text
        self._root, copied = _tree(source)
        self._words = [start for start, _ in _whole_in(self._source_text)]
        tokens = list[tuple[int, int, int]]()
        for start, end, source_start, source_end in sorted(
            (*link[2:], *link[:2]) for link in links
        ):
            at = _middle(self._source_text, source_start, source_end)
            if at is not None and start < end and (not tokens or tokens[-1][1] <= start):
                tokens.append((start, end, at))
        places = self._copies(copied, tokens)
        self._units = [*_joined(_units(text, tokens, places), sorted(whole), places)]
        self._unlink(copied, places)
        self._loose = {at: place for place, at in places.items()}
        self._made: list[str | Tag | range] = []  # a range is text that no copied element covers

    def result(self) -> Marked:
        """Return the translation with its tags."""
        self._write(self._root, 0, len(self._units), 0, len(self._text))
        loose = sorted(self._loose.values())
        return merged(
            self._without(loose, part) if isinstance(part, range) else part for part in self._made
        )

    def _copies(
        self, copied: list[_Element], tokens: list[tuple[int, int, int]]
    ) -> dict[tuple[int, int], int]:
        """Return the spans of copies in the translation, each with its source position."""
        by_source = sorted((at, start, end) for start, end, at in tokens)
        found, used = dict[tuple[int, int], int](), bytearray(len(self._text))
        anywhere = {text: _places(self._text, text) for text in {*map(self._text_of, copied)}}
        for element in sorted(copied, key=lambda each: each.start - each.end):
            wanted = self._text_of(element)
            i = bisect_left(by_source, (element.start,))
            size = len(wanted)
            linked = [(a, b) for at, a, b in by_source[i : i + _STEPS] if at < element.end]
            spans = [(a, a + size) for a, _ in linked]
            spans += [(a - size, b + size) for a, b in linked]
            whole = (_places(self._text, wanted, *span) for span in spans)
            parts = (_places(self._text, wanted, *span, whole=False) for span in spans)
            for place in chain(*whole, *parts, anywhere[wanted]):
                end = place + size
                if not any(used[place:end]):
                    found[place, end] = element.start
                    used[place:end] = b"\1" * len(wanted)
                    break
        return found

    def _unlink(self, copied: list[_Element], places: dict[tuple[int, int], int]) -> None:
        """Unlink what is linked to a copied element, except its copy and a word touching that.

        Such a word is unlinked too if a word also touches the element in the source.
        """
        found, units = {*places.values()}, self._units
        held = [(each.start, each.end) for each in copied if each.start in found]
        by_start = {start: at for (start, _), at in places.items()}
        by_end = {end: at for (_, end), at in places.items()}
        for n, unit in enumerate(units):
            i = bisect_right(held, (unit.at, len(self._source_text))) - 1
            if i < 0 or unit.at >= held[i][1] or unit.start in by_start:
                continue
            touched, (first, last) = (by_end.get(unit.start), by_start.get(unit.end)), held[i]
            beside = self._source_text[first - 1 : first] + self._source_text[last : last + 1]
            is_own = first not in touched or any(map(str.isalnum, beside))
            if is_own or not _WORD.match(self._text, unit.start):
                units[n] = replace(unit, at=-1)

    def _text_of(self, element: _Element) -> str:
        return self._source_text[element.start : element.end]

    # ------------------------------------------------------------ placing

    def _spans(self, element: _Element, a: int, b: int) -> list[UnitSpan]:
        """Return the units of each inner element; the element itself has units `a` to `b - 1`."""
        inner = element.inner
        own = self._units_of(inner, a, b)
        first, taken = list[int](), dict[int, UnitSpan]()
        for number in sorted(own, key=lambda n: (not inner[n].copied, len(own[n]), n)):
            if (run := _run(own[number], first, taken)) is not None:
                insort(first, run[0])
                taken[run[0]] = (*run, number)
        placed = {number for _, _, number in taken.values()}
        in_order = [taken[start] for start in first]
        aligned = [n for n in range(a, b) if self._units[n].at >= 0]
        by_source = sorted((self._units[n].at, n) for n in aligned)
        spans = in_order.copy()
        for number, each in enumerate(inner):
            if number not in placed:
                place = self._place(each, element, (a, b), aligned, by_source)
                i = bisect_left(first, place) - 1
                if i >= 0 and place < in_order[i][1]:  # inside another element
                    place = in_order[i][inner[in_order[i][2]].start <= each.start]
                spans.append((place, place, number))
        return sorted(spans)

    def _units_of(self, inner: list[_Element], a: int, b: int) -> dict[int, list[int]]:
        """Return the units that stand for the text of each element, by its number."""
        starts, own = [each.start for each in inner], dict[int, list[int]]()
        for n in range(a, b):
            at = self._units[n].at
            number = bisect_right(starts, at) - 1
            if number >= 0 and at < inner[number].end and inner[number].close:
                own.setdefault(number, []).append(n)
        return own

    def _place(
        self,
        each: _Element,
        around: _Element,
        units: tuple[int, int],
        aligned: list[int],
        by_source: list[tuple[int, int]],
    ) -> int:
        """Return the unit before which to place a tag that encloses no units."""
        (a, b), at, text = units, each.start, self._source_text
        before = bisect_left(by_source, (at,))
        if at <= around.start or not aligned:
            return a
        if at >= around.end:
            return b
        sticks = not each.open.shown and not text[at - 1].isspace()
        if sticks and not text[at : at + 1].isalnum() and before:
            source_at, unit = by_source[before - 1]
            if source_at >= self._words[bisect_right(self._words, at - 1) - 1]:
                return unit + 1
        place = aligned[before - 1] + 1 if before else a
        right = left = place
        while right < min(b, place + _STEPS) and 0 <= self._units[right].at < at:
            right += 1
        while left > max(a, place - _STEPS) and at <= self._units[left - 1].at < around.end:
            left -= 1
        return right if right > place else left

    # ------------------------------------------------------------ writing

    def _write(self, element: _Element, a: int, b: int, start: int, end: int) -> None:
        """Write the text from `start` to `end`, which has these units, with its inner elements."""
        place = start
        for first, last, number in self._spans(element, a, b):
            each = element.inner[number]
            if first < last:
                begin, stop = self._units[first].start, self._units[last - 1].end
            else:
                left = max(place, self._units[first - 1].end if first > a else start)
                right = max(place, self._units[first].start if first < b else end)
                begin, stop = self._gap(each, left, right)
            self._made.append(range(place, begin))
            self._write_element(each, first, last, begin, stop)
            place = stop
        self._made.append(range(place, end))

    def _write_element(self, each: _Element, a: int, b: int, start: int, end: int) -> None:
        if each.close is None:
            self._made.append(replace(each.open, shown=self._text[start:end]))
        elif each.copied:
            if start <= self._loose.get(each.start, (-1,))[0] < end:
                del self._loose[each.start]
            inner = self._source.pieces[each.first : each.last + 1]
            self._made += inner if a < b else self._spaced(inner, start)
        else:
            self._made.append(each.open)
            self._write(each, a, b, start, end)
            self._made.append(each.close)

    def _without(self, loose: list[tuple[int, int]], part: range) -> str:
        """Return text without the copies that no element covers, and the space before each."""
        texts, place, i = list[str](), part.start, bisect_left(loose, (part.start,))
        while i < len(loose) and loose[i][0] < part.stop:
            start, after = loose[i]
            spaced = place < start and self._text[start - 1].isspace()
            texts.append(self._text[place : start - spaced])
            place, i = after, i + 1
        return "".join([*texts, self._text[place : part.stop]])

    def _gap(self, each: _Element, left: int, right: int) -> tuple[int, int]:
        """Return a tag's span between two units: the white space it is or shows, or one side."""
        sticks = each.start and not self._source_text[each.start - 1].isspace()
        shown = each.open.shown or each.open.raw * bool(sticks)
        space = _SPACE.search(self._text, left, right) if shown.isspace() else None
        if space is not None:
            return space.span()
        return (left, left) if sticks else (right, right)

    def _spaced(self, pieces: Sequence[str | Tag], place: int) -> Iterator[str | Tag]:
        """Yield untranslated pieces, with a space on each side where letters would meet."""
        if self._text[place - 1 : place].isalnum() and place:
            yield " "
        yield from pieces
        if self._text[place : place + 1].isalnum():
            yield " "


def _tree(source: Marked) -> tuple[_Element, list[_Element]]:
    """Return the tree of elements and void tags of a text, and a list of the copied ones."""
    root, place, copied = _Element(Tag("", "open"), 0, 0), 0, list[_Element]()
    path = [root]
    for number, piece in enumerate(source.pieces):
        if isinstance(piece, str):
            place += len(piece)
        elif piece.kind == "close":
            element = path.pop()
            element.close, element.end, element.last = piece, place, number
            if element.copied and not any(each.open.kept for each in path):
                copied.append(element)
        else:
            element = _Element(piece, place, number)
            path[-1].inner.append(element)
            place += len(piece.shown) if piece.kind == "void" else 0
            element.end = place
            if piece.kind == "open":
                path.append(element)
    root.end = place
    return root, copied


def _middle(text: str, start: int, end: int) -> int | None:
    """Return the middle character of a source token; None if it is only white space."""
    token = text[start:end]
    start, end = start + len(token) - len(token.lstrip()), start + len(token.rstrip())
    return (start + end - 1) // 2 if start < end else None


def _whole_in(text: str, start: int = 0, end: int | None = None) -> Iterator[Span]:
    """Yield the spans of the words and signs that no tag may cut."""
    begun: Span | None = None
    for match in _UNIT.finditer(text, start, len(text) if end is None else end):
        first, last = match.span()
        if begun and begun[1] == first and clings(text, first):
            first, begun = begun[0], None
        if begun:
            yield begun
        begun = first, last
    if begun:
        yield begun


def _units(
    text: str, tokens: list[tuple[int, int, int]], copies: dict[tuple[int, int], int]
) -> Iterator[_Unit]:
    """Yield the units of a translation: each copy is one, and each word between them."""
    place, token = 0, 0
    for start, end in (*sorted(copies), (len(text), len(text))):
        for first, last in _whole_in(text, place, start):
            while token < len(tokens) and tokens[token][1] <= first:
                token += 1
            shares, i = list[tuple[int, int, int]](), token
            while i < len(tokens) and tokens[i][0] < last:
                begin, stop, at = tokens[i]
                shares.append((min(stop, last) - max(begin, first), -i, at))
                i += 1
            yield _Unit(first, last, max(shares)[2] if shares else -1)
        if start < end:
            yield _Unit(start, end, copies[start, end])
        place = end


def _joined(
    units: Iterator[_Unit], whole: Sequence[Span], copies: Container[Span]
) -> Iterator[_Unit]:
    """Yield the units, with those of each whole span joined; copies stay separate."""

    def key(unit: _Unit) -> tuple[int, int]:
        i = bisect_left(whole, (unit.end,)) - 1
        inside = i >= 0 and unit.start < whole[i][1] and (unit.start, unit.end) not in copies
        return (i, -1) if inside else (-1, unit.start)

    for _, group in groupby(units, key):
        same = [*group]
        best = max(same, key=lambda unit: (unit.at >= 0, unit.end - unit.start))
        yield replace(best, start=same[0].start, end=same[-1].end)


def _run(units: list[int], first: list[int], taken: dict[int, UnitSpan]) -> tuple[int, int] | None:
    """Return the run of free units with the most of these, minus the others in between."""
    best, score, start, last = (0, 0, 0), 0, 0, -1
    for unit in units:
        i = bisect_right(first, unit)
        if i and unit < taken[first[i - 1]][1]:
            continue
        gap = unit - last - 1
        if not score or score < gap or bisect_left(first, last) < i:  # another one begins
            score, start, gap = 0, unit, 0
        score, last = score + 1 - gap, unit
        if score > best[0] or (score == best[0] and start == best[1]):
            best = (score, start, unit + 1)
    return best[1:] if best[0] else None


def _places(
    text: str, wanted: str, start: int = 0, end: int | None = None, *, whole: bool = True
) -> Iterator[int]:
    """Yield where a text occurs without cutting a letter or, if `whole`, a longer word."""

    def cut(i: int) -> bool:
        met = whole and text[i - 1 : i].isalnum() and text[i : i + 1].isalnum()
        return met or (0 < i < len(text) and clings(text, i))

    place = text.find(wanted, max(0, start), end)
    while place >= 0:
        if not (cut(place) or cut(place + len(wanted))):
            yield place
        place = text.find(wanted, place + 1, end)
