"""Convert plain values to the fields of dataclasses, strictly."""

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path, PurePath
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from dragoman.errors import InputError, did_you_mean, nearest
from dragoman.ranges import UNSET, check_range, shown
from dragoman.settings.source import Origin

T = TypeVar("T")


def section(cls: type[T], value: object, at: Origin, base: object) -> T:
    """Build the dataclass `cls`; keys that `value` lacks come from `base` if it is one.

    If the class has `implied`, as `Decoding` does, it says what given keys mean for the base's.
    """
    if not isinstance(value, Mapping):
        raise must_be(at, "a section", value)
    at = at if at.path else replace(at, whole=cls)
    types = get_type_hints(cls, include_extras=True)
    known = keys_of(cls)
    for name in value:
        if name not in known:
            raise at.child(name).error(_unknown(at.child(name), cls))
    below, given = dict[str, object](), dict[str, object]()
    for name, field in known.items():
        default = getattr(base, name) if isinstance(base, cls) else _default(field)
        if name in value:
            given[name] = _convert(types[name], value[name], at.child(name), default)
        elif default is MISSING:
            raise at.error(f"the key {at.child(name).key} is missing; it has no default")
        if default is not UNSET:
            below[name] = default
    implied = getattr(cls, "implied", lambda given, _: given)
    try:
        return cls(**{**below, **implied(given, below)})
    except (ValueError, InputError) as error:
        within = f"section {at.key}: " if at.path else ""
        raise at.error(f"{within}{error}") from error


def _unknown(at: Origin, cls: type) -> str:
    """Return the sentence about an unknown key, with the key that is probably meant.

    That is a key in this section or inside it, else the same word anywhere, or a similar one here.
    """
    word, known = str(at.path[-1]), keys_of(cls)
    everywhere = paths_by_name(at.whole) if at.whole else {}
    meant: tuple[str | int, ...]
    if path := key_for(word, cls):
        meant = (*at.path[:-1], *path)
    elif close := nearest(word, everywhere, cutoff=0.8):
        meant = everywhere[close]
    elif close := nearest(word, known):
        meant = (*at.path[:-1], close)
    else:
        return f"unknown key {at.key}; known here: {', '.join(sorted(known))}"
    return f"unknown key {at.key}; did you mean {'.'.join(map(str, meant))}?"


def key_for(word: str, cls: type, *, cutoff: float = 0.8) -> tuple[str, ...] | None:
    """Return the shortest path to a key of about this name, or to one that it is a part of.

    A part may be an abbreviation: `lr` or `learning` for `train.learning_rate`. `cutoff` is that of
    `nearest`.
    """
    inner = paths_by_name(cls)
    abbreviated = (
        name
        for name in inner
        if word in {*name.split("_"), "".join(part[:1] for part in name.split("_"))}
    )
    names = filter(None, (nearest(word, inner, cutoff=cutoff), next(abbreviated, None)))
    return min((inner[name] for name in names), key=len, default=None)


def paths_by_name(cls: type) -> dict[str, tuple[str, ...]]:
    """Return the path to each key of a section and its subsections; for each name, the shortest.

    If the class has `also_called`, as `TrainConfig` does, it lists what other programs call its
    keys.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name, path in sorted(_paths(cls), key=lambda named: len(named[1])):
        found.setdefault(name, path)
    return found


def _paths(cls: type) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name and the path of each key of a section and its subsections."""
    types = get_type_hints(cls)
    for other, name in getattr(cls, "also_called", {}).items():
        yield other, (name,)
    for name in keys_of(cls):
        expected = types[name]
        yield name, (name,)
        union = get_origin(expected) in {Union, UnionType}
        for arm in get_args(expected) if union else (expected,):
            if is_dataclass(arm) and isinstance(arm, type):
                yield from ((key, (name, *path)) for key, path in _paths(arm))


def _convert(expected: Any, value: object, at: Origin, base: object) -> object:  # noqa: ANN401
    """Convert `value` to the type expression `expected`."""
    if is_dataclass(expected) and isinstance(expected, type):
        return section(expected, value, at, base)
    origin, arguments = get_origin(expected), get_args(expected)
    if origin is Annotated:
        value = _convert(arguments[0], value, at, base)
        try:
            check_range(at.key, value, expected)
        except InputError as error:
            raise at.error(str(error)) from error
        return value
    if origin in {Union, UnionType}:
        return _union(arguments, value, at, base)
    if origin is list or (origin is tuple and arguments[1:] == (...,)):
        if not isinstance(value, list | tuple):
            raise must_be(at, "a list", value)
        items = (_convert(arguments[0], v, at.child(i), MISSING) for i, v in enumerate(value))
        return origin(items)
    if origin in {dict, Mapping} and arguments[0] is str:
        if not isinstance(value, Mapping):
            raise must_be(at, "a section", value)
        return {k: _convert(arguments[1], v, at.child(k), MISSING) for k, v in value.items()}
    return _leaf(expected, value, at)


def _union(arms: tuple[Any, ...], value: object, at: Origin, base: object) -> object:
    given = at.override()
    is_unset = given is not None and given.path == at.path and not given.right.strip()
    if NoneType in arms and (value is None or is_unset):
        return None
    arms = tuple(arm for arm in arms if arm is not NoneType)
    sections: list[Any] = [arm for arm in arms if is_dataclass(arm)]
    if isinstance(value, str) and sections and all(map(_kinds, sections)):
        value = {"kind": value}
    if len(arms) == 1:
        return _convert(arms[0], value, at, base)
    if sections and isinstance(value, Mapping):
        return section(_choose(sections, value, at, base), value, at, base)
    for arm in sorted(arms, key=lambda arm: arm in _TEXTUAL):  # text last: it accepts any override
        try:
            return _convert(arm, value, at, base)
        except InputError:
            continue
    raise must_be(at, " or ".join(dict.fromkeys(map(_wanted, arms))), value)


def _choose(sections: list[Any], value: Mapping[str, Any], at: Origin, base: object) -> Any:  # noqa: ANN401
    """Return the dataclass that `kind` names; without `kind`, the default's or the best fit.

    A class that an imported module derives from one of them, or from one of their bases, is found
    by its own `kind`. Nothing is imported here, since that would let a file run code.
    """
    bases = (base for section in sections for base in section.__mro__)
    family: tuple[type, ...] = tuple(filter(is_dataclass, bases))
    if "kind" in value:
        extending = (cls for base in family for cls in _subclasses(base))
        by_kind = {kind: cls for cls in (*sections, *extending, *sections) for kind in _kinds(cls)}
        if isinstance(value["kind"], str) and value["kind"] in by_kind:
            return by_kind[value["kind"]]
        own = ""
        if {*family} != {*sections}:
            own = " (the kind of a class of your own is known once its module is imported)"
        raise at.child("kind").error(
            not_among(at.child("kind"), tuple(by_kind), value["kind"], own)
        )
    if isinstance(base, family):
        return type(base)
    return min(sections, key=lambda section: len(set(value) - set(keys_of(section))))


def _subclasses(cls: type[object]) -> Iterator[type[object]]:
    for extending in cls.__subclasses__():
        yield extending
        yield from _subclasses(extending)


def _kinds(section: type) -> tuple[object, ...]:
    kind = inspect.get_annotations(section).get("kind")
    if isinstance(kind, str):  # evaluating all hints takes most time of a config
        kind = get_type_hints(section)["kind"]
    return get_args(kind)


def _leaf(expected: Any, value: object, at: Origin) -> object:  # noqa: ANN401
    given = at.override()
    if given and given.path == at.path and expected in _TEXTUAL:
        value = value if isinstance(value, str | list | dict) else given.right  # out=2024: a name
    try:
        return msgspec.convert(value, expected, strict=True, dec_hook=_to_path)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        if get_origin(expected) is Literal:
            raise at.error(not_among(at, get_args(expected), value)) from error
        if expected in _NAMES:
            raise must_be(at, _wanted(expected), value) from error
        detail = str(error)
        raise at.error(f"{at.key}: {detail[:1].lower()}{detail[1:]}") from error


def _to_path(expected: type, value: object) -> object:
    if issubclass(expected, PurePath) and isinstance(value, str):
        return expected(value)
    raise TypeError(f"expected {expected.__name__}, got {type(value).__name__}")


# ---------------------------------------------------------------- fields and words


def keys_of(cls: Any) -> dict[str, Field[Any]]:  # noqa: ANN401 -- a dataclass or an instance
    """Return the fields that a file may set, by name: those with plain values."""
    return {
        field.name: field
        for field in fields(cls)
        if field.init and not field.metadata.get("python")
    }


@cache
def sentences(cls: type) -> Mapping[str, str]:
    """Return the docstring under each field of a dataclass and of the classes that it extends.

    They are read from the source, so a program shipped without source has none.
    """
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if is_dataclass(base):
            try:
                source = inspect.getsource(base)
            except OSError:
                continue
            body = ast.parse(textwrap.dedent(source)).body[0].body  # type: ignore[attr-defined] # a class
            for field, text in pairwise(body):
                match field, text:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                        value=ast.Constant(value=str(said))
                    ):
                        found[name] = said
    return found


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
    if get_origin(expected) is Annotated:
        return _wanted(get_args(expected)[0])
    if get_origin(expected) is Literal:
        return " or ".join(_show(choice) for choice in get_args(expected))
    if get_origin(expected) in {tuple, list}:
        return "a list"
    if is_dataclass(expected) or get_origin(expected) in {dict, Mapping}:
        return "a section"
    return _NAMES.get(expected, str(expected))


def must_be(at: Origin, wanted: str, value: object) -> InputError:
    """Return the error for a value of the wrong type."""
    return at.error(f"{at.key or 'the whole file'} must be {wanted}, not {_show(value)}")


def not_among(at: Origin, choices: tuple[object, ...], value: object, more: str = "") -> str:
    """Return the sentence about a value that is not one of the choices, with the nearest choice."""
    given, known = _show(value), list(map(_show, choices))
    hint = did_you_mean(given, known) if isinstance(value, str) else ""
    return f"{at.key} must be one of {', '.join(known)}{more}, not {given}{hint}"


def _show(value: object) -> str:
    """Return the value as TOML would write it, shortened."""
    if isinstance(value, Mapping):
        return "a section"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else shown(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
