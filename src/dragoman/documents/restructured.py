"""Inline markup of reStructuredText, in messages that Sphinx has extracted."""

import re
import unicodedata
from collections.abc import Iterator

from dragoman.text.marked import Marked, Tag, verbatim

_SPHINX = re.compile(r"^#: [^\n]*\.rst:\d|^(?:msgid )?\"[^\n]*:[a-z.+-]++:`", re.MULTILINE)
_ROLE = r"(?:(?::[\w.+-]{1,50}){1,4}:)?"
_MARKUP = re.compile(
    rf"(?P<open>(?<![\w`]){_ROLE}`)(?P<title>[^\s`<>]++(?:\s++[^\s`<>]++)*+)"
    r"(?P<close>\s*+<[^`<>]+>`_{0,2})"
    r"|(?P<mark>(?<![\w*\\])\*\*?)(?P<words>[^\s*`](?:[^*`]*[^\s*`\\])?)(?P=mark)(?![\w*])"
    rf"|(?P<null>\\ )|(?<![\w`])(?:`{{2}}[^\s`](?:(?!`{{2}}).)*+`{{2}}|{_ROLE}`[^`]+`_{{0,2}})"
    r"|(?<![\w|])\|[^\s|](?:[^|]*[^\s|])?\|_{0,2}|\[[\w#*.-]+\]_"
    r"|(?<![\w.\\-])[A-Za-z](?:[\w.-]*[A-Za-z0-9])?__?(?!\w)"
)
"""A link or a role with a title of its own; emphasis; an escaped space, which is none; or code, a
role, a substitution or a reference, which are copied."""
_BEFORE, _AFTER = "-:/'\"<([{", "'\")]}>-/\\:.,;!?"
"""What may be beside markup, besides spaces and the punctuation of Unicode."""
_SIGNS = {"", "*", "`", ":"}
_PUNCTUATION = {"Pd", "Po", "Pi", "Pf"}


def is_of_sphinx(text: str) -> bool:
    """Return whether a catalogue has messages in reStructuredText."""
    return _SPHINX.search(text) is not None


def pieces_of(text: str) -> Iterator[str | Tag]:
    """Yield the pieces of a message, with markup as tags, and what names something copied."""
    place = 0
    for found in _MARKUP.finditer(text):
        start, end = found.span()
        begins = _may_be_beside(text[max(0, start - 1) : start], _BEFORE)
        if not (found["null"] or (begins and _may_be_beside(text[end : end + 1], _AFTER))):
            continue
        yield text[place:start]
        words = found["title"] or found["words"]
        if words:
            yield from (Tag(found["open"] or found["mark"], "open"), words)
            yield Tag(found["close"] or found["mark"], "close")
        else:
            yield from (Tag(found[0]),) if found["null"] else verbatim(found[0])
        place = end
    yield text[place:]


def written(marked: Marked) -> str:
    r"""Write a message, with `\ ` where markup would be a part of the word beside it."""
    made, has_ended, opened = "", False, list[bool]()
    for piece in marked.pieces:
        raw = piece if isinstance(piece, str) else piece.raw
        begins = isinstance(piece, Tag) and piece.kind == "open" and raw[:1] in _SIGNS
        apart = begins and (has_ended or (made and not _may_be_beside(made[-1], _BEFORE)))
        if apart or (has_ended and raw and not _may_be_beside(raw[0], _AFTER)):
            made += "\\ "
        made, has_ended = made + raw, has_ended and not (raw or begins)
        if isinstance(piece, Tag) and piece.kind == "open":
            opened.append(begins)
        elif isinstance(piece, Tag) and piece.kind == "close":
            has_ended = opened.pop()
    return made


def _may_be_beside(char: str, signs: str) -> bool:
    return (
        char.isspace()
        or char in signs
        or (not char.isascii() and unicodedata.category(char) in _PUNCTUATION)
    )
