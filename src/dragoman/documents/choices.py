"""ICU messages that choose a form: `{n, plural, one {# file} other {# files}}`.

The text of each branch is translated separately; `#`, arguments and quoted text are copied, and
everything else is preserved. `#` is read as a number that takes the form of the branch.
(https://unicode-org.github.io/icu/userguide/format_parse/messages/)
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from dragoman.documents.document import Part, Segment
from dragoman.documents.fragments import with_elements
from dragoman.documents.paragraphs import lines
from dragoman.text.marked import Marked, Tag, merged, verbatim

CHOICE = re.compile(
    r"\{\s*[^\s{},]+\s*,\s*(plural|select|selectordinal|choice)\s*,\s*(?:offset:\d+\s)?"
)
"""The start of a choice; forms of `choice` have no brackets, so it is left alone."""
LEFT = "plural or select messages that are malformed, have text around them, or are not one line"
"""Why a message that `branches` cannot read is left alone."""
_BRANCH = re.compile(r"\s*(?:=(\d+)|(\w+))\s*\{")
_NUMBERS = {"zero": "0", "one": "1", "two": "2", "few": "3"}
_NUMBER = "5"
"""The numbers read for `#`, by the name of the branch, and the one for other branches."""
_END = re.compile(r"\s*\}")
_TEXT = re.compile(r"(?:[^{}'#]|''|'(?![{}#]))+")
_COPIED = re.compile(r"#|'[{}#](?:[^']|'')*+'|\{[^{}',]+(?:,[^{}']*)?\}")
_SIGNS = re.compile(r"('*[{}#][{}#']*)|''+|'+\Z")
"""Text that is quoted, and apostrophes that are doubled."""
_DEEPEST = 8
"""Maximum nesting depth of choices."""
_LONGEST = 1 << 16
"""Maximum length of a message, in characters."""
_HASH = "#"
"""The placeholder for the number in a branch."""
_TAG = "\ufdd0"
"""The placeholder for a tag in a message."""
Branch = tuple[int, int, Marked]
"""Start and end of a branch's text, and the text to translate."""
_Found = tuple[int, int, list[str | Tag]]
"""Start and end of a branch's text, and its pieces."""


def branches(message: str) -> list[Branch] | None:
    """Return the branches of a message.

    Return None if it is malformed or too long, or if there is text around a choice, which is not a
    sentence by itself.
    """
    found, mark = _found(message), _marker(message, str)
    return None if found is None else [(start, end, mark(inner)) for start, end, inner in found]


def part_of(
    pieces: Sequence[str | Tag],
    where: str,
    write: Callable[[str], str] = str,
    around: tuple[str, str] = ("", ""),
) -> Part | None:
    """Return a message with tags as a part whose segments are its branches, between two texts.

    Return None as `branches` does. `write` gives HTML elements the form that the document has.
    """
    message = "".join(_TAG if isinstance(piece, Tag) else piece for piece in pieces)
    tags = [piece for piece in pieces if isinstance(piece, Tag)]
    found = _found(message) if message.count(_TAG) == len(tags) else None
    if found is None:
        return None
    rest, mark = iter(tags), _marker(message, write)
    made, segments, place = around[0], list[Segment](), 0

    def raw(text: str) -> str:
        between = _with_tags([text], rest)
        return "".join(each.raw if isinstance(each, Tag) else write(each) for each in between)

    for start, end, inner in found:
        made += raw(message[place:start])
        branch, place = mark(_with_tags(inner, rest)), end
        there = written(branch, write)
        span = len(made), len(made) + len(there)
        segments.append(Segment(*span, branch, partial(written, escape=write), where))
        made += there
    return Part(made + raw(message[place:]) + around[1], tuple(segments))


def _with_tags(pieces: Iterable[str | Tag], tags: Iterator[Tag]) -> Iterator[str | Tag]:
    """Yield the pieces with the placeholders replaced by the next tags."""
    for piece in pieces:
        if isinstance(piece, Tag):
            yield piece
            continue
        for part in re.split(f"({_TAG})", piece):
            yield next(tags) if part == _TAG else part


def _marker(message: str, write: Callable[[str], str]) -> Callable[[Iterable[str | Tag]], Marked]:
    """Return what makes a branch's text from its pieces: with HTML elements as tags, unless the
    message contains an apostrophe, because elements would need more of them.
    """
    return merged if "'" in message else partial(with_elements, write=write)


def _found(message: str) -> list[_Found] | None:
    """Return the branches of a message; None if it is malformed or too long."""
    found = list[_Found]()
    try:
        whole = len(message) <= _LONGEST and _read_message(message, 0, found) == len(message)
    except ValueError:
        return None
    return found if whole else None


def _read_message(
    text: str, start: int, found: list[_Found], depth: int = 0, number: str = ""
) -> int:
    """Read up to the bracket that ends a message; `#` is read as `number`, if there is one."""
    pieces, place, chooses, has_text = list[str | Tag](), start, False, False
    while place < len(text) and text[place] != "}":
        if choice := CHOICE.match(text, place):
            place, chooses = _read_branches(text, choice, found, depth + 1, number), True
        elif copied := _COPIED.match(text, place):
            is_number = number and copied[0] == _HASH
            tag = Tag(_HASH, "open", kept=True)
            pieces += (tag, number, Tag("", "close")) if is_number else verbatim(copied[0])
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
        found.append((start, place, pieces))
    return place


def _read_branches(
    text: str, choice: re.Match[str], found: list[_Found], depth: int, number: str
) -> int:
    """Read past the bracket that ends a choice."""
    place = choice.end()
    while depth <= _DEEPEST and (branch := _BRANCH.match(text, place)):
        if choice[1] != "select":
            number = branch[1] or _NUMBERS.get(branch[2], _NUMBER)
        place = _read_message(text, branch.end(), found, depth, number) + 1
    if not (end := _END.match(text, place)):
        raise ValueError
    return end.end()


def written(marked: Marked, escape: Callable[[str], str] = str) -> str:
    """Write a branch, quoting syntax characters that the model has written.

    Literal apostrophes are doubled next to these characters and at the end of a piece, so that an
    odd number of them there ends a quote. A quote directly after another continues it.
    """
    made, copied, is_number = "", False, False
    for piece in marked.pieces:
        if isinstance(piece, Tag):
            made, copied = made + piece.raw, piece.kept
            is_number = copied and piece.raw == _HASH
            continue
        if is_number:
            continue
        text = piece if copied else _SIGNS.sub(_quoted, piece)
        rest = text.lstrip("'")
        if (len(made) - len(made.rstrip("'"))) % 2 and (len(text) - len(rest)) % 2:
            made, text = (made[:-1], text[1:]) if rest[:1] in "{}#" else (made, f"'{text}")
        made += escape(text)
    return made


def _quoted(match: re.Match[str]) -> str:
    text = match[0].replace("'", "''")
    return f"'{text}'" if match[1] else text
