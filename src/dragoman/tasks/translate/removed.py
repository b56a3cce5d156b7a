"""Text that a model cannot read or write: taken out of a line, and put back where it stood.

Emoji and rare characters that a vocabulary lacks, with the word or placeholder they are in. Where
such text belongs in the translation is told by the attention on what stands before it.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from operator import itemgetter

from dragoman.tasks.results import Translation
from dragoman.tasks.translate.preserved import of_kind
from dragoman.tasks.translate.rewriting import Edit, Edited, rewritten
from dragoman.text.glossary import is_boundary, is_spaced
from dragoman.text.items import in_digits
from dragoman.text.spans import Span, as_one, places_in

JOINERS = "\u200c\u200d"
_ENDS = dict.fromkeys("\u202a\u202b\u202d\u202e", "\u202c")
_ENDS |= dict.fromkeys("\u2066\u2067\u2068", "\u2069")
"""What ends each character that sets the direction of the text after it (UAX 9)."""
_UNSEEN = re.compile("[\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069]+")
"""Soft hyphens, and what sets a direction, or allows or forbids a break: no part of a word."""
Copied = tuple[int, int, int, int]
"""Where something stands in the line and in the text: `Translation.copied`."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Where something was taken out."""

    start: int
    """Of the line."""
    place: int
    """In what is left of the line."""
    text: str
    """What it was."""
    kept: str
    """What of it is put back."""
    beside: tuple[str, str]
    """The character before it, and that after it; none at an end of the line."""

    @property
    def begins_word(self) -> bool:
        """Whether it stood behind a space and before none, as an opening bracket does."""
        before, after = self.beside
        return before == " " and bool(after) and not after.isspace()


class Shortened:
    """What is left of a line."""

    def __init__(self, line: str, spans: Iterable[Span]) -> None:
        """Leave out these characters, and one of the spaces around each of them.

        Spans may overlap.
        """
        self.gaps, edits, end, place = list[Gap](), list[Edit](), 0, 0
        around = places_in(directions(line))
        for start, stop in as_one(spans, partial(_touch, line)):
            place += start - end
            kept = text = line[start:stop]
            if _UNSEEN.fullmatch(text):
                kept = "".join(c for place, c in enumerate(text, start) if place in around)
            before, after = line[max(0, start - 1) : start], line[stop : stop + 1]
            end = stop + (after.isspace() and (before.isspace() or not place))
            edits.append(Edit(start, end, ""))
            self.gaps.append(Gap(start, place, text, kept, (before, after)))
        self._left = Edited(line, edits)
        self.text = self._left.text

    def moved(self, spans: Iterable[Span]) -> list[Span]:
        """Where the spans of the line are in what is left, without those that are gone."""
        gone = places_in(edit[:2] for edit in self._left.edits)
        return [self._left.moved(span) for span in spans if gone.isdisjoint(range(*span))]

    def restored(self, translation: Translation) -> Translation:
        """The translation of what is left, with what was taken out."""
        text, place_of = translation.text, self._place_in(translation)
        put = list[tuple[int, str, Gap]]()
        for gap in self.gaps if is_wide_text(text) else map(_with_digits, self.gaps):
            place = place_of(gap.place)
            place += gap.begins_word and text[place : place + 1] == " "
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
        """Where in the translation something belongs that stands at a place of what is left.

        Behind what comes from the nearest text before it; marks that come from words, as their
        attention has it, do not count.
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


def words_copied(text: str, src: int, tgt: int) -> list[Copied]:
    """The words of a text that was put in as it is, from a place in the line to one in the text.

    Each on its own: tags around one of them are not around the others.
    """
    words = (each.span() for each in re.finditer(r"\S+", text))
    return [(src + a, src + b, tgt + a, tgt + b) for a, b in words]


def _apart(gap: Gap, before: str, after: str) -> str:
    """What is put back, with the spaces that it needs between these two characters.

    Where it stood beside a space; beside a bracket or a quote that the translation lacks; or beside
    a letter of a script without spaces, if now beside a word of one with spaces. Between two
    letters without spaces there are two or none; but Korean has particles behind what is put back.
    None is behind a mark that is as wide as a letter, nor between marks and Chinese characters.
    Characters that do not show need none.
    """
    if _UNSEEN.fullmatch(gap.text):
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
        first, last = first and not _is_wide(before), last and not _is_wide(after)
    spaces = first and bool(before) and not before.isspace() and not is_wide_mark(before)
    return " " * spaces + gap.kept + " " * (last and not gap.kept[-1:].isspace())


def _with_digits(gap: Gap) -> Gap:
    return replace(gap, kept=in_digits(gap.kept))


def _is_unspaced(char: str) -> bool:
    """Whether it is of a script without spaces, a letter or a mark that is as wide as one."""
    return bool(char) and (not is_spaced(char) or is_wide_mark(char))


def is_word(char: str) -> bool:
    """Whether it is a letter or a digit, of a script with spaces."""
    return char.isalnum() and is_spaced(char)


def _is_word_before(char: str) -> bool:
    """The same, or a mark behind a word, after which there is a space."""
    return is_word(char) or (bool(char) and char in ".,;:!?)]")


def is_ideograph(char: str) -> bool:
    """Whether it is a letter of a script without spaces, but not of Korean, which has particles."""
    return char.isalnum() and not is_spaced(char) and "HANGUL" not in unicodedata.name(char, "")


def _closes(text: str) -> bool:
    """Whether it begins with a mark that closes, before which there is no space; `%s` does not."""
    if unicodedata.category(text[:1] or " ") in {"Pe", "Pf"}:
        return True
    return all(map(_is_mark, text)) or is_wide_mark(text[0])


def _opens(text: str) -> bool:
    """Whether it ends with a mark that opens, after which there is no space."""
    return unicodedata.category(text[-1:] or " ") in {"Ps", "Pi"}


def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] == "P"


def _is_wide(char: str) -> bool:
    """Whether it is of Chinese or Japanese; hangul, as wide, has spaces."""
    wide = bool(char) and unicodedata.east_asian_width(char) in {"W", "F"}
    return wide and "HANGUL" not in unicodedata.name(char, "")


def is_wide_text(text: str) -> bool:
    """Whether it is of Chinese or Japanese, in which a word has a fourth of the letters."""
    letters = [*filter(str.isalpha, text)]
    return 4 * sum(map(_is_wide, letters)) > len(letters)


def is_wide_mark(char: str) -> bool:
    """Whether it is a mark as wide as a letter."""
    return _is_wide(char) and _is_mark(char)


def _touch(line: str, first: Span, second: Span) -> bool:
    """Whether there is no more than white space between them.

    But characters that do not show need no space.
    """
    if first[1] >= second[0]:
        return True
    shows = not any(_UNSEEN.fullmatch(line, *span) for span in (first, second))
    return shows and not line[first[1] : second[0]].strip()


def whole_words(line: str, spans: Iterable[Span]) -> Iterator[Span]:
    """The spans in order, each with the rest of the words that it begins or ends inside of.

    Those of the same words are one.
    """
    end = 0
    for start, stop in sorted(spans):
        if stop <= end:
            continue
        before = (n for n in range(start, -1, -1) if is_boundary(line, n))
        end = next(n for n in range(stop, len(line) + 1) if is_boundary(line, n))
        yield next(before), end


def unseen(line: str) -> Iterator[Span]:
    """Where a line has characters that do not show, which a model would read as parts of words."""
    return (match.span() for match in _UNSEEN.finditer(line))


def directions(line: str) -> Iterator[Span]:
    """Where the characters are that set, and end, the direction of the whole line."""
    start, end = len(line) - len(line.lstrip()), len(line.rstrip())
    if line[start : start + 1] not in _ENDS:
        return  # as of most lines
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
    """What a vocabulary writes byte by byte from its first letter to its last.

    A model has not learned such a word, which is of a script that its training lacked, nor such an
    emoji. One letter among others, as of a name, it may have.
    """
    places = places_in(spelt)
    spelt_only = "".join(_in_word(c) if n in places else "\n" for n, c in enumerate(line))
    words = (each.span() for each in re.finditer(r"\w{2,}", spelt_only))
    whole = (word for word in words if all(is_boundary(line, place) for place in word))
    yield from (span for span in whole if any(map(str.isalpha, line[slice(*span)])))
    yield from (span for span in of_kind("symbols", line) if places.intersection(range(*span)))


def _in_word(char: str) -> str:
    """A character as a pattern of words takes it: marks and joiners, which it lacks, as `_`."""
    return "_" if unicodedata.category(char)[0] == "M" or char in JOINERS else char
