"""Translations fitted to their script: spaces around copied text, wide digits, and capitals.

The search writes a space before copied text by the script of that text, not by the script of the
adjacent words. Lines in capitals, which models have rarely seen, are read in sentence case.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dragoman.tasks.results import Translation
from dragoman.tasks.translate.line import Line
from dragoman.tasks.translate.preserved import of_kind, protected
from dragoman.tasks.translate.removed import is_ideograph, is_wide_mark, is_wide_text, is_word
from dragoman.tasks.translate.rewriting import Edit, Edited, rewritten
from dragoman.text.glossary import UNSPACED, fold, is_boundary, is_spaced
from dragoman.text.judging import exact
from dragoman.text.sentences import sentences_of
from dragoman.text.spans import Span, places_in

_WIDE = re.compile("[０-９\u3000]")
"""Full-width digits and the ideographic space."""
_UNSPACED = re.compile(f"[０-９\u3000{UNSPACED}]")
"""These, and letters of scripts without spaces."""


def fitted(translation: Translation, line: Line, forced: Sequence[Span]) -> Translation:
    """Return the translation of a line with the spaces around copied text that its script needs.

    Full-width digits and spaces stay only in a text of full-width letters, or if they are kept or
    part of a term.
    """
    text = translation.text
    if not _UNSPACED.search(text):
        return translation  # as for most lines
    own = {form for term in line.terms for form in term.forms}.union(line.texts_of(line.kept))
    found = {*line.texts_of(forced)}
    if not (own or found or _WIDE.search(line.text)):
        return translation
    fixed = {span for each in own - {""} for span in exact(text, each)}
    copied = fixed.union(*(exact(text, each) for each in found - {""}))
    inside, unchanged = places_in(copied), places_in(fixed)
    letters = "".join(c for n, c in enumerate(text) if n not in inside and c.isalpha())
    edits = {*_spaces(text, copied, letters)}
    if _WIDE.search(text) and letters and not is_wide_text(letters):
        for char in _WIDE.finditer(text):
            if char.start() not in unchanged:
                edits.add(Edit(*char.span(), unicodedata.normalize("NFKC", char[0])))
    return rewritten(translation, Edited(text, sorted(edits))) if edits else translation


def _spaces(text: str, copied: Iterable[Span], letters: str) -> Iterator[Edit]:
    """Yield the spaces to add or remove around copied text, by the script of the other `letters`.

    Words of a script with spaces have one on both sides. In Chinese and Japanese there is no space
    next to full-width punctuation, nor on only one side of text between two letters.
    """
    has_spaces = bool(letters) and not _UNSPACED.search(letters)
    for start, end in copied:
        if has_spaces:
            if is_word(text[start - 1 : start] or " ") and not is_spaced(text[start]):
                yield Edit(start, start, " ")
            if is_word(text[end : end + 1] or " ") and not is_spaced(text[end - 1]):
                yield Edit(end, end, " ")
        elif is_wide_text(letters):
            before, after = text[max(0, start - 2) : start], text[end : end + 2]
            if before[1:] == " " and _is_closed(before[0], after[:1]):
                yield Edit(start - 1, start, "")
            if after[:1] == " " and _is_closed(after[1:], before[-1:]):
                yield Edit(end, end + 1, "")


def _is_closed(behind: str, opposite: str) -> bool:
    """Return whether no space belongs before `behind`, given the character `opposite`."""
    beside = is_ideograph(behind or " ") and is_ideograph(opposite or " ")
    return is_wide_mark(behind) or beside


def is_in_capitals(line: Line) -> bool:
    """Return whether a line, apart from copied text, is written in capitals.

    A single word may be a name or an abbreviation; a placeholder counts as another word.
    """
    words = (
        [word for word in line.rest.split() if word[1:].isupper()] if line.rest.isupper() else []
    )
    return bool(words) and len(words) + len(of_kind("placeholders", line.text)) > 1


def in_small_letters(line: Line) -> str:
    """Return the line in sentence case, with each character in its place."""
    small = "".join(each[:1] + fold(each[1:]) for each in sentences_of(line.text))
    return _copied(line.text, line.copied, small)


def in_capitals(translation: Translation, kept: Iterable[str]) -> Translation:
    """Return the translation in capitals, character by character, with `kept` unchanged."""
    text = translation.text
    large = "".join("ẞ" if c == "ß" else c.upper() if len(c.upper()) == 1 else c for c in text)
    whole = [
        match.span()
        for each in kept
        for match in re.finditer(re.escape(each), text)
        if all(is_boundary(text, place) for place in match.span())
    ]
    written = _copied(text, [*protected(text), *whole], large)
    return replace(translation, text=written).aligned_as(translation)


def _copied(text: str, spans: Iterable[Span], into: str) -> str:
    """Return `into` with the characters of `text` at these spans."""
    chars = [*into]
    for start, end in spans:
        chars[start:end] = text[start:end]
    return "".join(chars)
