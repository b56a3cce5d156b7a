"""ICU messages that choose a form: `{n, plural, one {# file} other {# files}}`.

The text of each branch is translated by itself; `#`, arguments and what is quoted are copied, and
all else stays. (https://unicode-org.github.io/icu/userguide/format_parse/messages/)
"""

import re
from itertools import accumulate

from dragoman.documents.fragments import with_elements
from dragoman.documents.paragraphs import lines
from dragoman.text.marked import Marked, Tag, merged, verbatim

CHOICE = re.compile(
    r"\{\s*[^\s{},]+\s*,\s*(?:plural|select|selectordinal|choice)\s*,\s*(?:offset:\d+\s)?"
)
"""How a message begins to choose a form; the forms of `choice` have no brackets, and are left."""
LEFT = "plural or select messages that are malformed, or not one quoted line of branches"
"""Why a message is left alone that `branches` does not read."""
_BRANCH = re.compile(r"\s*(?:=\d+|\w+)\s*\{")
_END = re.compile(r"\s*\}")
_TEXT = re.compile(r"(?:[^{}'#]|''|'(?![{}#]))+")
_COPIED = re.compile(r"#|'[{}#](?:[^']|'')*+'|\{[^{}',]+(?:,[^{}']*)?\}")
_SIGNS = re.compile(r"('*[{}#][{}#']*)|''+|'+\Z")
"""What is quoted in a text, and apostrophes that are doubled."""
_DEEPEST = 8
"""Most choices inside each other."""
_LONGEST = 1 << 16
"""Most characters of a message."""
_UNITS = {
    '"': re.compile(r"(?s)\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|[^\\]"),
    "'": re.compile("''|[^']"),
}
"""How one character is written in quotes."""

Branch = tuple[int, int, Marked]
"""Where the text of a branch begins and ends, and what is translated of it."""


def branches(raw: str, message: str, quote: str) -> list[Branch] | None:
    """The branches of a message that is written so in quotes.

    None of one that is malformed, too long, or written otherwise, and of one with text around a
    choice, which is no sentence by itself.
    """
    if len(message) > _LONGEST:
        return None
    units, found = _UNITS[quote].findall(raw), list[Branch]()
    pairs = zip(units, message, strict=False)
    if len(units) != len(message) or any(unit != char for unit, char in pairs if len(unit) == 1):
        return None
    try:
        end = _read_message(message, 0, found, 0)
    except ValueError:
        return None
    places = [0, *accumulate(map(len, units))]
    whole = end == len(message) and places[-1] == len(raw)
    return [(places[a], places[b], marked) for a, b, marked in found] if whole else None


def _read_message(text: str, start: int, found: list[Branch], depth: int) -> int:
    """Read up to the bracket that ends a message."""
    pieces, place, chooses, has_text = list[str | Tag](), start, False, False
    while place < len(text) and text[place] != "}":
        if choice := CHOICE.match(text, place):
            place, chooses = _read_branches(text, choice.end(), found, depth + 1), True
        elif copied := _COPIED.match(text, place):
            pieces += verbatim(copied[0])
            place = copied.end()
        elif plain := _TEXT.match(text, place):
            pieces += lines(plain[0].replace("''", "'"))
            has_text |= any(map(str.isalpha, plain[0]))
            place = plain.end()
        else:
            raise ValueError
    if has_text and chooses:
        raise ValueError
    if has_text:
        with_tags = merged if "'" in text else with_elements  # whose tags would need more of them
        found.append((start, place, with_tags(pieces)))
    return place


def _read_branches(text: str, place: int, found: list[Branch], depth: int) -> int:
    """Read up to behind the bracket that ends a choice."""
    while depth <= _DEEPEST and (branch := _BRANCH.match(text, place)):
        place = _read_message(text, branch.end(), found, depth) + 1
    if not (end := _END.match(text, place)):
        raise ValueError
    return end.end()


def written(marked: Marked) -> str:
    """A branch, in which signs of messages that the model has written are quoted.

    Apostrophes that are text are doubled beside signs and at the end of a piece, so that an odd
    number of them there ends a quote. A quote right behind another goes on in it.
    """
    made, copied = "", False
    for piece in marked.pieces:
        if isinstance(piece, Tag):
            made, copied = made + piece.raw, piece.kept
            continue
        text = piece if copied else _SIGNS.sub(_quoted, piece)
        rest = text.lstrip("'")
        if (len(made) - len(made.rstrip("'"))) % 2 and (len(text) - len(rest)) % 2:
            made, text = (made[:-1], text[1:]) if rest[:1] in "{}#" else (made, f"'{text}")
        made += text
    return made


def _quoted(match: re.Match[str]) -> str:
    text = match[0].replace("'", "''")
    return f"'{text}'" if match[1] else text
