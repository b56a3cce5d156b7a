"""JSON lines: one object a line, and the value at a dotted key of it."""

import json
from collections.abc import Iterator
from pathlib import Path

from dragoman.data.files import read_lines
from dragoman.errors import InputError

__all__ = ["read_records", "text_at", "value_at"]


def read_records(path: Path) -> Iterator[tuple[str, object]]:
    """Each line's place, as messages call it, and what it holds."""
    for number, line in enumerate(read_lines(path), start=1):
        place = f"{path} line {number}"
        try:
            yield place, json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{place} is not JSON: {error.msg} at column {error.colno}.") from None


def value_at(record: object, key: str, place: str, settings: str) -> object:
    """The value at a dotted key; ``settings`` are those that choose the key."""
    value = record
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            known = ", ".join(map(repr, value)) if isinstance(value, dict) else "no object"
            raise InputError(f"{place} has no key {key!r} (there is {known}); set {settings}.")
        value = value[part]
    return value


def text_at(record: object, key: str, place: str, settings: str) -> str:
    """The text at a dotted key."""
    value = value_at(record, key, place, settings)
    if not isinstance(value, str):
        raise InputError(f"{place}: the value of {key!r} is not a text.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{place}: {key!r} holds half of a surrogate pair; mend it.") from None
    return value
