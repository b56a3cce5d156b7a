"""Text that a model cannot read or write: removed from a line, and reinserted afterwards.

This applies to emoji and rare characters that a vocabulary lacks, with the word or placeholder that
contains them. The attention on the text before it determines its place in the translation.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from operator import itemgetter

from dragoman.tasks.lines import is_wide
from dragoman.tasks.results import Translation
from dragoman.tasks.translate.preserved import of_kind
from dragoman.tasks.translate.rewriting import Edit, Edited, rewritten, words_copied
from dragoman.text.glossary import UNSEEN, is_boundary, is_spaced
from dragoman.text.items import in_digits
from dragoman.text.spans import Span, as_one, places_in

JOINERS = "\u200c\u200d"
_ENDS = dict.fromkeys("\u202a\u202b\u202d\u202e", "\u202c")
_ENDS |= dict.fromkeys("\u2066\u2067\u2068", "\u2069")
"""The character that ends each one that sets the direction of the text after it (UAX 9)."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A place from which text was removed."""

    start: int
    """Its position in the line."""
    place: int
    """Its position in the rest of the line."""
    text: str
    """The removed text."""
    kept: str
    """The part of it that is reinserted."""
    beside: tuple[str, str]
    """The characters before and after it; empty at an end of the line."""


class Shortened:
    """A line from which text was removed."""

    def __init__(self, line: str, spans: Iterable[Span]) -> None:
        """Remove these spans, and one of the spaces around each of them.

        Spans may overlap.
        """
        self.gaps, edits, end, place = list[Gap](), list[Edit](), 0, 0
        around = places_in(directions(line))
        for start, stop in as_one(spans, partial(_touch, line)):
            place += start - end
            kept = text = line[start:stop]
            if UNSEEN.fullmatch(text):
                kept = "".join(c for place, c in enumerate(text, start) if place in around)
            before, after = line[max(0, start - 1) : start], line[stop : stop + 1]
            end = stop + (after.isspace() and (before.isspace() or not place))
            edits.append(Edit(start, end, ""))
            self.gaps.append(Gap(start, place, text, kept, (before, after)))
        self._left = Edited(line, edits)
        self.text = self._left.text

    def moved(self, spans: Iterable[Span]) -> list[Span]:
        """Return the spans of the line in the rest of it, without those that were removed."""
        gone = places_in(edit[:2] for edit in self._left.edits)
        return [self._left.moved(span) for span in spans if gone.isdisjoint(range(*span))]

    def restored(self, translation: Translation) -> Translation:
        """Return the translation of the rest with the removed text in its place."""
        text, place_of = translation.text, self._place_in(translation)
        put = list[tuple[int, str, Gap]]()
        gaps = self.gaps
        if not is_wide_text(text):
            gaps = [replace(gap, kept=in_digits(gap.kept)) for gap in gaps]
        for gap in gaps:
            place = place_of(gap.place)
            first, last = gap.beside
            if first == " " and last and not last.isspace():  # like an opening bracket
                place += text[place : place + 1] == " "
            before, after = text[max(0, place - 1) : place], text[place : place + 1]
            put.append((place, _apart(gap, before, after), gap))
        put.sort(key=itemgetter(0))
        for n, (one, other) in enumerate(pairwise(put), start=1):
            if one[0] == other[0] and one[1].endswith(" "):
                put[n] = other[0], other[1].removeprefix(" "), other[2]
        edited = Edited(text, [Edit(place, place, letters) for place, letters, _ in put])
        found = rewritten(translation, edited, self._left.undone)
        copied = list(found.copied)
        for (_, letters, gap), (start, _) in zip(put, edited.written, strict=True):
            end = gap.start + len(gap.text.rstrip())
            words = words_copied(gap.kept, gap.start, start + letters.index(gap.kept))
            copied += ((a, min(b, end), c, d) for a, b, c, d in words)
        return replace(
            found,
            flags=tuple(flag for flag in found.flags if flag != "empty"),
            copied=tuple(copied),
        ).aligned_as(found)

    def _place_in(self, translation: Translation) -> Callable[[int], int]:
        """Return a function from a position in the rest of the line to one in the translation.

        That is after what comes from the nearest text before it; punctuation that comes from words,
        according to the attention, does not count.
        """
        text, links, left = translation.text, translation.text_links, len(self.text.rstrip())

        def is_word(piece: str) -> bool:
            return any(map(str.isalnum, piece))

        ends = [(0, 0)]
        for a, b, c, d in links:
            if is_word(text[c:d]) or not is_word(self.text[a:b]):
                ends.append((b, d))
        ends.sort()
        inside = {n for link in links for n in range(link[2] + 1, link[3])}

        def place_of(place: int) -> int:
            if place >= left:
                return len(text)
            _, end = ends[bisect_right(ends, (place, len(text))) - 1]
            places = range(end, len(text) + 1)
            return next(n for n in places if n not in inside and is_boundary(text, n))

        return place_of


def _apart(gap: Gap, before: str, after: str) -> str:
    """Return what is reinserted, with the spaces that it needs between these two characters.

    It needs a space on a side that had one; that had a bracket or a quote that the translation
    lacks; or that had a letter of a script without spaces and now has a word of one with spaces.
    Between two letters without spaces there are two spaces or none, except in Korean, which adds
    particles after it. There is no space after full-width punctuation, nor between punctuation and
    Chinese characters. Invisible characters need none.
    """
    if UNSEEN.fullmatch(gap.text):
        return gap.kept

    def is_glued(was: str, char: str) -> bool:
        return was.isspace() or (bool(was) and not was.isalnum() and is_spaced(char))

    first = is_glued(gap.beside[0], before) and (before.isalnum() or gap.beside[0].isspace())
    first |= _is_unspaced(gap.beside[0]) and _is_word_before(before) and not _closes(gap.kept)
    last = is_glued(gap.beside[1], after) and after.isalnum()
    last |= _is_unspaced(gap.beside[1]) and is_word(after) and not _opens(gap.kept)
    if is_ideograph(before) and is_ideograph(after):
        first = last = first or last
    if all(map(_is_mark, gap.kept)) and not after.isspace():
        first, last = first and not is_wide(before), last and not is_wide(after)
    spaces = first and bool(before) and not before.isspace() and not is_wide_mark(before)
    return " " * spaces + gap.kept + " " * (last and not gap.kept[-1:].isspace())


def _is_unspaced(char: str) -> bool:
    """Return whether a character is full-width punctuation or of a script without spaces."""
    return bool(char) and (not is_spaced(char) or is_wide_mark(char))


def is_word(char: str) -> bool:
    """Return whether a character is a letter or a digit of a script with spaces."""
    return char.isalnum() and is_spaced(char)


def _is_word_before(char: str) -> bool:
    """Return whether a character is of a word, or punctuation that a space follows."""
    return is_word(char) or (bool(char) and char in ".,;:!?)]")


def is_ideograph(char: str) -> bool:
    """Return whether a character is a letter of a script without spaces.

    Korean, which has particles, is excluded.
    """
    return char.isalnum() and not is_spaced(char) and "HANGUL" not in unicodedata.name(char, "")


def _closes(text: str) -> bool:
    """Return whether a text begins with closing punctuation, which no space precedes.

    `%s` does not.
    """
    if unicodedata.category(text[:1] or " ") in {"Pe", "Pf"}:
        return True
    return all(map(_is_mark, text)) or is_wide_mark(text[0])


def _opens(text: str) -> bool:
    """Return whether a text ends with opening punctuation, which no space follows."""
    return unicodedata.category(text[-1:] or " ") in {"Ps", "Pi"}


def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] == "P"


def is_wide_text(text: str) -> bool:
    """Return whether a text is Chinese or Japanese, whose words have a quarter of the letters."""
    letters = [*filter(str.isalpha, text)]
    return 4 * sum(map(is_wide, letters)) > len(letters)


def is_wide_mark(char: str) -> bool:
    """Return whether a character is full-width punctuation."""
    return is_wide(char) and _is_mark(char)


def _touch(line: str, first: Span, second: Span) -> bool:
    """Return whether at most white space separates two spans.

    Invisible characters do not need a space, so they must be adjacent.
    """
    if first[1] >= second[0]:
        return True
    shows = not any(UNSEEN.fullmatch(line, *span) for span in (first, second))
    return shows and not line[first[1] : second[0]].strip()


def whole_words(line: str, spans: Iterable[Span]) -> Iterator[Span]:
    """Yield the spans in order, each extended to whole words.

    Spans in the same words are merged.
    """
    end = 0
    for start, stop in sorted(spans):
        if stop <= end:
            continue
        before = (n for n in range(start, -1, -1) if is_boundary(line, n))
        end = next(n for n in range(stop, len(line) + 1) if is_boundary(line, n))
        yield next(before), end


def unseen(line: str) -> Iterator[Span]:
    """Return the spans of invisible characters, which a model would read as parts of words."""
    return (match.span() for match in UNSEEN.finditer(line))


def directions(line: str) -> Iterator[Span]:
    """Yield the spans of the characters that set, and end, the direction of the whole line."""
    start, end = len(line) - len(line.lstrip()), len(line.rstrip())
    if line[start : start + 1] not in _ENDS:
        return  # as for most lines
    begun, ends = {mark: list[int]() for mark in _ENDS.values()}, dict[int, int]()
    for place, char in enumerate(line):
        if char in _ENDS:
            begun[_ENDS[char]].append(place)
        elif begun.get(char):
            ends[begun[char].pop()] = place
    while ends.get(start) == end - 1:
        yield from ((start, start + 1), (end - 1, end))
        start, end = start + 1, end - 1


def unlearned(line: str, spelt: Iterable[Span]) -> Iterator[Span]:
    """Yield the spans that a vocabulary writes byte by byte from first letter to last.

    A model has not learned such a word, which is in a script that its training lacked, nor such an
    emoji. It may have learned one letter among others, as in a name.
    """
    places = places_in(spelt)
    spelt_only = "".join(_in_word(c) if n in places else "\n" for n, c in enumerate(line))
    words = (each.span() for each in re.finditer(r"\w{2,}", spelt_only))
    whole = (word for word in words if all(is_boundary(line, place) for place in word))
    yield from (span for span in whole if any(map(str.isalpha, line[slice(*span)])))
    yield from (span for span in of_kind("symbols", line) if places.intersection(range(*span)))


def _in_word(char: str) -> str:
    """Return a character for the pattern of words: marks and joiners become `_`."""
    return "_" if unicodedata.category(char)[0] == "M" or char in JOINERS else char
