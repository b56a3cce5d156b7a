"""From a TOML file and ``key=value`` overrides to frozen dataclasses, strictly.

    settings = load_settings(TrainingRecipe, Path("recipe.toml"), ["train.max_steps=1000"])

Nothing is guessed and nothing is ignored. A key that no dataclass has, a value of another type and
a conflict that a ``__post_init__`` finds (a ``ValueError`` or an ``InputError``) each become one
:class:`~dragoman.errors.InputError`: a sentence that names the key, the nearest known key, and the
file and line or the override it came from.

A field's type may be anything that msgspec validates, ``Path``, a dataclass (a section of the
file), a union of these, or a tuple, list or string-keyed dict of them. In a union of dataclasses
the field ``kind`` chooses. A section that names only some of its keys keeps the rest of the
*field's* default, which may differ from the section class's own defaults.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path, PurePath
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from dragoman.errors import InputError, nearest

__all__ = ["load_settings", "override_settings", "parse_settings", "to_plain"]

T = TypeVar("T")
KeyPath = tuple[str | int, ...]


# ---------------------------------------------------------------- the three public functions


def load_settings(cls: type[T], path: Path, overrides: Sequence[str] = ()) -> T:
    """Read the TOML file ``path``, lay ``overrides`` over it and build ``cls``.

    An override is ``dotted.path=value``. Its right-hand side is read as a TOML value (``45``,
    ``true``, ``[1, 2]``, ``"text"``) and, when it is none, taken as text (``data.src=a.en``). A
    number in the path counts the elements of a list from 0. A later override wins.

    Raises InputError with one sentence for whatever is wrong.
    """
    text = _read_text(path)
    data = _parse_toml(text, path)
    laid = tuple(_lay_over(data, override) for override in overrides)
    return _section(cls, data, _Place(_Source(str(path), text, laid)), None)


def parse_settings(cls: type[T], data: Mapping[str, Any], origin: str) -> T:
    """Build ``cls`` from plain values, such as parsed JSON; errors name ``origin``."""
    return _section(cls, data, _Place(_Source(origin)), None)


def override_settings(settings: T, overrides: Sequence[str]) -> T:
    """Lay ``dotted.path=value`` overrides over settings that were built otherwise."""
    data = to_plain(settings)
    laid = tuple(_lay_over(data, override) for override in overrides)
    return _section(type(settings), data, _Place(_Source("the settings", "", laid)), None)


def to_plain(settings: object) -> dict[str, Any]:
    """The dataclass as dicts, lists, strings, numbers and None: what JSON can hold.

    ``parse_settings(type(s), to_plain(s), origin) == s`` for all settings ``s``.
    """
    if not is_dataclass(settings) or isinstance(settings, type):
        raise TypeError(f"to_plain takes a dataclass instance, not {settings!r}")
    return {field.name: _plain(getattr(settings, field.name)) for field in _keys(settings).values()}


def _plain(value: object) -> Any:  # noqa: ANN401 -- any JSON value
    if is_dataclass(value):
        return to_plain(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    return msgspec.to_builtins(value)


# ---------------------------------------------------------------- where a value came from


@dataclass(frozen=True, slots=True)
class _Override:
    """One ``key=value`` of the command line."""

    path: KeyPath
    text: str

    @property
    def right(self) -> str:
        return self.text.partition("=")[2]


@dataclass(frozen=True, slots=True)
class _Source:
    """The file (or other origin) and the overrides that were laid over it."""

    name: str
    text: str | None = None
    overrides: tuple[_Override, ...] = ()


@dataclass(frozen=True, slots=True)
class _Place:
    """A key in its source."""

    source: _Source
    path: KeyPath = ()

    @property
    def key(self) -> str:
        return ".".join(str(part) for part in self.path)

    def child(self, part: str | int) -> "_Place":
        return _Place(self.source, (*self.path, part))

    def error(self, sentence: str) -> InputError:
        return InputError(f"{self._describe()}: {sentence}")

    def override(self) -> _Override | None:
        """The last override that gave this key, or a section around it, its value."""
        found = [o for o in self.source.overrides if o.path == self.path[: len(o.path)]]
        return found[-1] if found else None

    def _describe(self) -> str:
        if given := self.override():
            return f"override {given.text}"
        line = _line_of(self.source.text, self.path) if self.source.text is not None else None
        where = self.source.name if line is None else f"{self.source.name}, line {line}"
        below = [o.text for o in self.source.overrides if o.path[: len(self.path)] == self.path]
        return f"{where} with override {' '.join(below)}" if below else where


def _line_of(text: str, path: KeyPath) -> int | None:
    """The line where ``path`` begins: TOML parsers tell values, not places.

    The shortest run of whole lines that parses and holds the path ends with its statement; the
    statement begins after the run before it that parses. Quadratic, and only run for an error.
    """
    if not path:
        return None
    lines = text.split("\n")
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


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8; save it as UTF-8") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def _parse_toml(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).rpartition(" (at ")
        found = re.match(r"line (\d+)", place)
        line = int(found[1]) if found else text.count("\n") + 1
        raise InputError(f"{path}, line {line}: not valid TOML ({message.lower()})") from error


def _lay_over(data: dict[str, Any], text: str) -> _Override:
    """Set one override in ``data``, making the sections on its way."""
    key, equals, right = text.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not equals or not all(parts):
        raise InputError(f"override {text}: write it as key=value, such as train.max_steps=1000")
    path: KeyPath = ()
    inner: Any = data
    for step, part in enumerate(parts):
        index = _index(inner, part)
        if index is None:
            inside = ".".join(parts[:step])
            raise InputError(f"override {text}: {inside} is no section that holds {part!r}")
        path = (*path, index)
        if step == len(parts) - 1:
            inner[index] = _toml_value(right)
        elif isinstance(inner, dict):
            inner = inner.setdefault(part, {})
        else:
            inner = inner[index]
    return _Override(path, text)


def _index(container: object, part: str) -> str | int | None:
    if isinstance(container, dict):
        return part
    if isinstance(container, list) and part.isdecimal() and int(part) < len(container):
        return int(part)
    return None


def _toml_value(text: str) -> object:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if len(parsed) == 1 else text


# ---------------------------------------------------------------- values to fields


def _section(cls: type[T], value: object, at: _Place, base: object) -> T:
    """Build the dataclass ``cls``; keys that ``value`` lacks come from ``base`` if it is one."""
    if not isinstance(value, Mapping):
        raise at.error(f"{at.key or 'all of it'} must be a section, not {_show(value)}")
    types = get_type_hints(cls, include_extras=True)
    known = _keys(cls)
    for name in value:
        if name not in known:
            raise at.child(name).error(_unknown(at.child(name), known))
    given: dict[str, object] = {}
    for name, field in known.items():
        default = getattr(base, name) if isinstance(base, cls) else _default(field)
        if name in value:
            given[name] = _convert(types[name], value[name], at.child(name), default)
        elif isinstance(base, cls):
            given[name] = default
        elif default is MISSING:
            raise at.error(f"the key {at.child(name).key} is missing; it has no default")
    try:
        return cls(**given)
    except (ValueError, InputError) as error:
        within = f"section {at.key}: " if at.path else ""
        raise at.error(f"{within}{error}") from error


def _unknown(at: _Place, known: Mapping[str, object]) -> str:
    close = nearest(str(at.path[-1]), known)
    if close:
        return (
            f"unknown key {at.key}; did you mean {_Place(at.source, (*at.path[:-1], close)).key}?"
        )
    return f"unknown key {at.key}; known here: {', '.join(sorted(known))}"


def _convert(expected: Any, value: object, at: _Place, base: object) -> object:  # noqa: ANN401
    """Turn ``value`` into what the type expression ``expected`` says."""
    if is_dataclass(expected) and isinstance(expected, type):
        return _section(expected, value, at, base)
    origin, arguments = get_origin(expected), get_args(expected)
    if origin in {Union, UnionType}:
        return _union(arguments, value, at, base)
    if origin is list or (origin is tuple and arguments[1:] == (...,)):
        if not isinstance(value, list | tuple):
            raise at.error(f"{at.key} must be a list, not {_show(value)}")
        items = (_convert(arguments[0], v, at.child(i), MISSING) for i, v in enumerate(value))
        return origin(items)
    if origin in {dict, Mapping} and arguments[0] is str and isinstance(value, Mapping):
        return {k: _convert(arguments[1], v, at.child(k), MISSING) for k, v in value.items()}
    return _leaf(expected, value, at)


def _union(arms: tuple[Any, ...], value: object, at: _Place, base: object) -> object:
    if value is None and NoneType in arms:
        return None
    arms = tuple(arm for arm in arms if arm is not NoneType)
    if len(arms) == 1:
        return _convert(arms[0], value, at, base)
    sections = [arm for arm in arms if is_dataclass(arm)]
    if sections and isinstance(value, Mapping):
        return _section(_choose(sections, value, at, base), value, at, base)
    for arm in sorted(arms, key=lambda arm: arm in _TEXTUAL):  # text last: it takes any override
        try:
            return _convert(arm, value, at, base)
        except InputError:
            continue
    wanted = " or ".join(_wanted(arm) for arm in arms)
    raise at.error(f"{at.key} must be {wanted}, not {_show(value)}")


def _choose(sections: list[Any], value: Mapping[str, Any], at: _Place, base: object) -> Any:  # noqa: ANN401
    """The dataclass that ``kind`` names; without one that of the default, or the best fit."""
    if "kind" in value:
        by_kind = {kind: section for section in sections for kind in _kinds(section)}
        if value["kind"] in by_kind:
            return by_kind[value["kind"]]
        raise at.child("kind").error(_not_among(at.child("kind"), tuple(by_kind), value["kind"]))
    if type(base) in sections:
        return type(base)
    return min(sections, key=lambda section: len(set(value) - set(_keys(section))))


def _kinds(section: type) -> tuple[object, ...]:
    return get_args(get_type_hints(section).get("kind"))


def _leaf(expected: Any, value: object, at: _Place) -> object:  # noqa: ANN401
    given = at.override()
    if given and given.path == at.path and expected in _TEXTUAL:
        value = value if isinstance(value, str | list | dict) else given.right  # out=2024: a name
    try:
        return msgspec.convert(value, expected, strict=True, dec_hook=_to_path)
    except msgspec.ValidationError as error:
        if get_origin(expected) is Literal:
            sentence = _not_among(at, get_args(expected), value)
        elif expected in _NAMES:
            sentence = f"{at.key} must be {_wanted(expected)}, not {_show(value)}"
        else:
            detail = str(error)
            sentence = f"{at.key}: {detail[:1].lower()}{detail[1:]}"
        raise at.error(sentence) from error


def _to_path(expected: type, value: object) -> object:
    if issubclass(expected, PurePath) and isinstance(value, str):
        return expected(value)
    raise TypeError(f"expected {expected.__name__}, got {type(value).__name__}")


# ---------------------------------------------------------------- fields and words


def _keys(cls: Any) -> dict[str, Field[Any]]:  # noqa: ANN401 -- a dataclass or an instance
    return {field.name: field for field in fields(cls) if field.init}


def _default(field: Field[Any]) -> object:
    if field.default is not MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not MISSING else MISSING


_TEXTUAL = frozenset[Any]({str, Path})
_NAMES: Mapping[Any, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    Path: "a path (a string)",
}


def _wanted(expected: Any) -> str:  # noqa: ANN401
    if get_origin(expected) is Literal:
        return " or ".join(_show(choice) for choice in get_args(expected))
    if get_origin(expected) in {tuple, list}:
        return "a list"
    if is_dataclass(expected):
        return "a section"
    return _NAMES.get(expected, str(expected))


def _not_among(at: _Place, choices: tuple[object, ...], value: object) -> str:
    close = (
        nearest(value, [c for c in choices if isinstance(c, str)])
        if isinstance(value, str)
        else None
    )
    hint = f"; did you mean {_show(close)}?" if close else ""
    return f"{at.key} must be one of {', '.join(map(_show, choices))}, not {_show(value)}{hint}"


def _show(value: object) -> str:
    """The value as TOML would write it, shortened."""
    if isinstance(value, Mapping):
        return "a section"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
