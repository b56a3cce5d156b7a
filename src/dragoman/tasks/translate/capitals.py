"""Lines in capitals, which models have rarely read: read in small letters, and written in capitals.

But for what is copied, such as `{name}`: it stays as it is.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from dragoman.tasks.results import Translation
from dragoman.tasks.translate.preserved import placeholders, protected
from dragoman.text.glossary import fold, is_boundary
from dragoman.text.sentences import sentences_of
from dragoman.text.spans import Span


def is_in_capitals(line: str, rest: str) -> bool:
    """Whether `rest`, what a line has beside text that is copied, is written in capitals.

    A single word may be a name or an abbreviation; a placeholder counts as another one.
    """
    words = [word for word in rest.split() if word[1:].isupper()] if rest.isupper() else []
    return bool(words) and len(words) + len(placeholders(line)) > 1


def in_small_letters(line: str, kept: Iterable[Span]) -> str:
    """The line as sentences, each character where it was."""
    small = "".join(each[:1] + fold(each[1:]) for each in sentences_of(line))
    return _copied(line, [*protected(line), *kept], small)


def in_capitals(translation: Translation, kept: set[str]) -> Translation:
    """The translation in capitals, each character where it was, with `kept` texts as they are."""
    text = translation.text
    large = "".join("ẞ" if c == "ß" else c.upper() if len(c.upper()) == 1 else c for c in text)
    whole = [
        match.span()
        for each in kept
        for match in re.finditer(re.escape(each), text)
        if all(is_boundary(text, place) for place in match.span())
    ]
    others = tuple(in_capitals(other, kept) for other in translation.alternatives)
    found = replace(
        translation, text=_copied(text, [*protected(text), *whole], large), alternatives=others
    )
    return found.aligned_as(translation)


def _copied(text: str, spans: Iterable[Span], into: str) -> str:
    """What `into` has, but for these places, where it is the text."""
    chars = [*into]
    for start, end in spans:
        chars[start:end] = text[start:end]
    return "".join(chars)
