"""Where a setting comes from: the TOML file, the overrides applied to it, the line of a key."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.errors import InputError

KeyPath = tuple[str | int, ...]
MOST_WORK = 50_000_000
"""Limit of lines times characters of a file searched for the line of a key: some seconds."""


@dataclass(frozen=True, slots=True)
class Override:
    """One `key=value` of the command line."""

    path: KeyPath
    text: str

    @property
    def right(self) -> str:
        """The value as it was typed."""
        return self.text.partition("=")[2]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a setting comes from: a key in a file, and the overrides applied to the file."""

    name: str
    """The file, or whatever else the settings come from."""
    text: str | None = None
    """The content of the file, if it is one."""
    overrides: tuple[Override, ...] = ()
    path: KeyPath = ()
    whole: type | None = None
    """The dataclass of all settings."""

    @property
    def key(self) -> str:
        """The dotted path."""
        return ".".join(str(part) for part in self.path)

    def child(self, *parts: str | int) -> "Origin":
        """Return the origin of a key or an element of this section or list."""
        return replace(self, path=(*self.path, *parts))

    def error(self, sentence: str) -> InputError:
        """Return the error, which names file and line, or the override."""
        return InputError(f"{self._describe()}: {sentence}")

    def override(self) -> Override | None:
        """Return the last override that set this key or a section around it."""
        found = [o for o in self.overrides if o.path == self.path[: len(o.path)]]
        return found[-1] if found else None

    def _describe(self) -> str:
        if given := self.override():
            return f"override {given.text}"
        line = _line_of(self.text, self.path) if self.text is not None else None
        where = self.name if line is None else f"{self.name}, line {line}"
        below = [o.text for o in self.overrides if o.path[: len(self.path)] == self.path]
        return f"{where} with override {' '.join(below)}" if below else where


def _line_of(text: str, path: KeyPath) -> int | None:
    """Return the line where `path` begins, since tomllib reports values without their lines.

    The statement ends with the shortest run of whole lines that parses and contains the path; it
    begins after the longest shorter run that parses. Quadratic, but only run for an error; None for
    a text that is too long for it.
    """
    lines = text.split("\n")
    if not path or len(lines) * len(text) > MOST_WORK:
        return None
    complete = 0
    for end in range(1, len(lines) + 1):
        try:
            data = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
        if _holds(data, path):
            return complete + 1
        complete = end
    return None


def _holds(data: object, path: KeyPath) -> bool:
    for part in path:
        inner = dict(enumerate(data)) if isinstance(data, list) else data
        if not isinstance(inner, Mapping) or part not in inner:
            return False
        data = inner[part]
    return True


# ---------------------------------------------------------------- reading TOML and overrides


def read_text(path: Path) -> str:
    """Return the text of a file, its lines ended by a newline alone."""
    try:
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8; save it as UTF-8") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """Return the values of a TOML text; an error names the line."""
    try:
        return tomllib.loads(text)
    except ValueError as error:  # also for a number with thousands of digits
        message, at, place = str(error).rpartition(" (at ")
        if not at:
            raise InputError(f"{path}: not valid TOML ({place})") from error
        found = re.match(r"line (\d+)", place)
        line = int(found[1]) if found else text.count("\n") + 1
        raise InputError(f"{path}, line {line}: not valid TOML ({message.lower()})") from error


def parse_json(text: str, path: Path) -> dict[str, Any]:
    """Return the values of a JSON object, the form in which a run writes its recipe."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON ({error})") from error
    if not isinstance(data, dict):
        raise InputError(f"{path}: not a JSON object, so no recipe")
    return data


def lay_over(data: dict[str, Any], text: str) -> Override:
    """Set one override in `data`, creating missing sections. Raises InputError for a wrong one."""
    key, equals, right = text.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not equals or not all(parts):
        raise InputError(f"override {text}: write it as key=value, such as train.max_steps=1000")
    if text.encode(errors="ignore").decode() != text:  # lone surrogates are bytes of an argument
        raise InputError(
            f"override {text}: it is not UTF-8, which the recipe is written in; rename that file "
            "or folder"
        )
    path: KeyPath = ()
    inner: Any = data
    for step, part in enumerate(parts):
        index = _index(inner, part)
        if index is None:
            inside = ".".join(parts[:step])
            raise InputError(f"override {text}: {inside} has no key {part!r}")
        path = (*path, index)
        if step == len(parts) - 1:
            inner[index] = _toml_value(right)
        elif isinstance(inner, dict):
            inner = inner.setdefault(part, {})
        else:
            inner = inner[index]
    return Override(path, text)


def _index(container: object, part: str) -> str | int | None:
    if isinstance(container, dict):
        return part
    if isinstance(container, list) and part.isdecimal() and int(part) < len(container):
        return int(part)
    return None


def _toml_value(text: str) -> object:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except ValueError:  # also for a number with thousands of digits
        return text
    return parsed["value"] if len(parsed) == 1 else text
