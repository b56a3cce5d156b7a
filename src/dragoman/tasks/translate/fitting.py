"""Copied text fitted into a translation of another script: the spaces around it, and wide digits.

The search writes a space before it by its own script, not by that of the words beside it.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dragoman.tasks.results import Translation
from dragoman.tasks.translate.line import Line
from dragoman.tasks.translate.removed import is_ideograph, is_wide_mark, is_wide_text, is_word
from dragoman.tasks.translate.rewriting import Edit, rewritten
from dragoman.text.glossary import is_spaced
from dragoman.text.judging import exact
from dragoman.text.spans import Span

_WIDE = re.compile("[０-９\u3000]")
"""Digits, and a space, as wide as a Chinese letter."""


def fitted(translation: Translation, line: Line, forced: Sequence[Span]) -> Translation:
    """The translation of a line with the spaces around what is copied that its script has.

    Digits are wide only beside wide letters, but for those that are kept or of a term; so are
    spaces.
    """
    text = translation.text
    own = {line.text[slice(*span)].strip() for span in line.kept}
    own |= {form for term in line.terms for form in term.forms}
    found = {line.text[slice(*span)].strip() for span in forced}
    if not (own or found or _WIDE.search(line.text)):
        return translation  # as of most lines
    fixed = {span for each in own - {""} for span in exact(text, each)}
    copied = fixed.union(*(exact(text, each) for each in found - {""}))
    inside, unchanged = ({n for span in some for n in range(*span)} for some in (copied, fixed))
    letters = "".join(c for n, c in enumerate(text) if n not in inside and c.isalpha())
    edits = {*_spaces(text, copied, letters)}
    for n, char in enumerate(text) if letters and not is_wide_text(letters) else ():
        if n not in unchanged and _WIDE.match(char):
            edits.add(Edit(n, n + 1, unicodedata.normalize("NFKC", char)))
    others = tuple(fitted(other, line, forced) for other in translation.alternatives)
    translation = replace(translation, alternatives=others).aligned_as(translation)
    return rewritten(translation, sorted(edits))[0] if edits else translation


def _spaces(text: str, copied: Iterable[Span], letters: str) -> Iterator[Edit]:
    """The spaces that come or go beside what is copied, by the script of the other `letters`.

    Words of a script with spaces have one on both sides. In Chinese and Japanese there is none
    beside wide marks, nor on one side alone of what stands between two letters.
    """
    has_spaces = bool(letters) and all(map(is_spaced, letters))
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
    """Whether there is no space, given the character behind it and that on the other side."""
    beside = is_ideograph(behind or " ") and is_ideograph(opposite or " ")
    return is_wide_mark(behind) or beside
