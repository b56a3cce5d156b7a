"""Dataclasses as plain data: the dicts, lists, strings, numbers and None that JSON can hold."""

import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from typing import Any, ClassVar

from dragoman.ranges import UNSET

AXES = re.compile("_[A-Z]+$")
"""The end of a tensor's name, such as `weights_TS`, which is not part of its key."""


class Plain:
    """A base of dataclasses that adds `to_dict`, which `--json` prints."""

    __slots__ = ()

    json_keys: ClassVar[tuple[str, ...]] = ()
    """Fields and properties to include, in this order; all fields if there are none."""
    json_digits: ClassVar[int | None] = None
    """Digits after the decimal point of the dataclass's own numbers; all if None."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        names = self.json_keys or _names(self)
        plain = {name: _plain(getattr(self, name), self.json_digits) for name in names}
        return {AXES.sub("", name): without_nan(value) for name, value in plain.items()}


def without_nan(value: Any) -> Any:  # noqa: ANN401 -- any JSON value
    """Return plain data with None in place of NaN and infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_plain(value: object) -> dict[str, Any]:
    """Return all set fields of a dataclass as plain data.

    For settings, `parse_settings(type(s), to_plain(s), origin) == s`.
    """
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"to_plain takes a dataclass instance, not {value!r}")
    found = {name: getattr(value, name) for name in _names(value)}
    return {name: _plain(each) for name, each in found.items() if each is not UNSET}


def _plain(value: Any, digits: int | None = None) -> Any:  # noqa: ANN401 -- any JSON value
    if isinstance(value, Plain):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: _plain(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, digits) for item in value]
    if is_dataclass(value):
        return to_plain(value)
    if digits is not None and isinstance(value, float):
        return round(float(value), digits) + 0.0  # avoids -0.0
    if hasattr(value, "tolist"):  # an array
        value = (value if digits is None else value.astype(float).round(digits) + 0.0).tolist()
    return str(value) if isinstance(value, PurePath) else value


def _names(value: Any) -> tuple[str, ...]:  # noqa: ANN401 -- a dataclass
    return tuple(field.name for field in fields(value))
