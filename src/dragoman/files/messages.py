"""Gettext catalogues (PO): the messages, and where each of their texts is in the file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from dragoman.errors import InputError

_FIELD = re.compile(r"[ \t]*(msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)[ \t]*(?=\")")
_QUOTED = re.compile(r"[ \t]*\"((?:[^\"\\\r\n]|\\.)*)\"[ \t]*(?:\r?\n|$)")
_LINE = re.compile(r"[ \t]*(#[~,|]?|)([^\n]*)(?:\n|$)")
_BY_NAME = dict(zip('ntrabfv"\\', '\n\t\r\a\b\f\v"\\', strict=True))
_ESCAPES = str.maketrans({char: f"\\{name}" for name, char in _BY_NAME.items()})


@dataclass(frozen=True, slots=True)
class MessageText:
    """A text of a message."""

    value: str
    start: int
    """Start of its keyword, in characters of the file."""
    end: int
    """End of its last line, without the line end."""


@dataclass(slots=True)
class Message:
    """A message, with its texts by keyword."""

    line: int
    flags_start: int | None = None
    """Start of the comments that say that it is fuzzy, and what it was."""
    is_fuzzy: bool = False
    texts: dict[str, MessageText] = field(default_factory=dict)


def escape_message(text: str) -> str:
    """Return a text as written between quotes."""
    return text.translate(_ESCAPES)


def read_messages(text: str, name: str) -> Iterator[Message]:
    """Yield the messages of a catalogue, with the header, without the obsolete ones (`#~`).

    Raises InputError, with the line, for what is neither a message nor a comment, and for a
    duplicate keyword in a message.
    """
    message, place, line = Message(1), 0, 1
    while place < len(text):
        begin, found, row = place, _FIELD.match(text, place), _LINE.match(text, place)
        assert row is not None  # noqa: S101 -- it matches any line
        is_next = found is None or found[1] in {"msgctxt", "msgid"}
        if is_next and any(keyword.startswith("msgstr") for keyword in message.texts):
            yield message
            message = Message(line)
        place = row.end()
        if found is not None:
            if found[1] in message.texts:
                raise InputError(f"{name} line {line} has a second {found[1]} for one message.")
            message.line = message.line if message.texts else line
            message.texts[found[1]], place = _read_text(text, found)
        elif row[1] in {"#,", "#|"}:
            message.flags_start = begin if message.flags_start is None else message.flags_start
            message.is_fuzzy |= row[1] == "#," and "fuzzy" in row[2]
        if place == begin or (found is None and not row[1] and row[2].strip()):
            raise InputError(f"{name} line {line} is not a line of a message catalogue.")
        line += text.count("\n", begin, place)
    if message.texts:
        yield message


def _read_text(text: str, keyword: re.Match[str]) -> tuple[MessageText, int]:
    """Return a quoted text, on any number of lines, and the start of the next line."""
    place, end = keyword.start(), keyword.end()
    rows = list[str]()
    while row := _QUOTED.match(text, place if rows else end):
        rows.append(row[1])
        place, end = row.end(), row.end(1) + 1
    value = re.sub(r"\\(.)", lambda found: _BY_NAME.get(found[1], found[0]), "".join(rows))
    return MessageText(value, keyword.start(), end), place
