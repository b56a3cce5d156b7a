"""Read a TOML file and `key=value` overrides into frozen dataclasses, strictly.

    settings = read_settings(Path("recipe.toml"), ["train.max_steps=1000"]).build(TrainingRecipe)

Unknown keys, values of the wrong type or out of range, and conflicts that `__post_init__` finds (a
`ValueError` or an `InputError`) each raise one `InputError`: a sentence that names the key, the
nearest known key, and the file and line or the override it came from.

A field's type may be anything that msgspec validates, `Path`, a dataclass (a section of the file),
a union of these, or a tuple, list or string-keyed dict of them. In a union of dataclasses, the
field `kind` selects one. Its value alone, as in `positions = "rotary"`, stands for a section
without other keys. A section that sets only some of its keys takes the rest from the *field's*
default, which may differ from the section class's own defaults.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dragoman.errors import InputError
from dragoman.plain import to_plain
from dragoman.settings.fields import must_be, not_among, section
from dragoman.settings.source import Origin, lay_over, parse_json, parse_toml, read_text

__all__ = ["Given", "flatten", "override_settings", "parse_settings", "read_settings"]

C = TypeVar("C")
T = TypeVar("T")


def read_settings(path: Path, overrides: Sequence[str] = ()) -> "Given":
    """Read the TOML file `path`, or a JSON file of the same keys, and apply `overrides`.

    An override is `dotted.path=value`. Its right-hand side is parsed as a TOML value (`45`, `true`,
    `[1, 2]`, `"text"`) or, if it is not one, taken as text (`data.src=a.en`). A number in the path
    is a list index, from 0. A later override wins.

    Raises InputError, with one sentence, for any mistake; so does `Given.build`.
    """
    text = read_text(path)
    data = (parse_json if path.suffix == ".json" else parse_toml)(text, path)
    laid = tuple(lay_over(data, override) for override in overrides)
    return Given(data, Origin(str(path), text, laid))


@dataclass(frozen=True, slots=True)
class Given:
    """The values of a file and its overrides, not yet validated."""

    data: Mapping[str, Any]
    origin: Origin

    def get(self, key: str) -> object:
        """Return the value of a dotted key, or None if it is not set."""
        value: object = self.data
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    def choose(self, key: str, choices: Mapping[str, C], default: str) -> C:
        """Return the choice that a top-level key names. Raises InputError if there is none."""
        name = self.data.get(key, default)
        if not isinstance(name, str) or name not in choices:
            at = self.origin.child(key)
            raise at.error(not_among(at, tuple(choices), name))
        return choices[name]

    def must_be(self, wanted: str, path: tuple[str, ...], value: object) -> InputError:
        """Return the error for a value of the wrong type."""
        return must_be(self.origin.child(*path), wanted, value)

    def build(self, cls: type[T], base: T | None = None) -> T:
        """Build `cls`; keys that are not given come from `base`, if there is one."""
        return section(cls, self.data, self.origin, base)


def parse_settings(cls: type[T], data: Mapping[str, Any], origin: str) -> T:
    """Build `cls` from plain values, such as parsed JSON; errors name `origin`."""
    return section(cls, data, Origin(origin), None)


def flatten(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the value of each setting by its dotted key."""
    flat: dict[str, Any] = {}
    for key, value in data.items():
        inner = isinstance(value, Mapping)
        flat |= flatten(value, f"{prefix}{key}.") if inner else {prefix + key: value}
    return flat


def override_settings(settings: T, overrides: Sequence[str]) -> T:
    """Apply `dotted.path=value` overrides to settings that have been built."""
    data = to_plain(settings)
    laid = tuple(lay_over(data, override) for override in overrides)
    return section(type(settings), data, Origin("the settings", "", laid), None)
