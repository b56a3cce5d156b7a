"""From a TOML file and ``key=value`` overrides to frozen dataclasses, strictly.

    settings = load_settings(TrainingRecipe, Path("recipe.toml"), ["train.max_steps=1000"])

Nothing is guessed and nothing is ignored. A key that no dataclass has, a value of another type and
a conflict that a ``__post_init__`` finds (a ``ValueError`` or an ``InputError``) each become one
:class:`~dragoman.errors.InputError`: a sentence that names the key, the nearest known key, and the
file and line or the override it came from.

A field's type may be anything that msgspec validates, ``Path``, a dataclass (a section of the
file), a union of these, or a tuple, list or string-keyed dict of them. In a union of dataclasses
the field ``kind`` chooses, and its value alone, as in ``positions = "rotary"``, is a section that
gives no other key. A section that names only some of its keys keeps the rest of the
*field's* default, which may differ from the section class's own defaults.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dragoman.errors import InputError
from dragoman.plain import to_plain
from dragoman.settings.fields import must_be, not_among, section
from dragoman.settings.source import Place, Source, lay_over, parse_toml, read_text

__all__ = [
    "Given",
    "load_settings",
    "override_settings",
    "parse_settings",
    "read_settings",
]

C = TypeVar("C")
T = TypeVar("T")


def load_settings(cls: type[T], path: Path, overrides: Sequence[str] = ()) -> T:
    """Read the TOML file ``path``, lay ``overrides`` over it and build ``cls``.

    An override is ``dotted.path=value``. Its right-hand side is read as a TOML value (``45``,
    ``true``, ``[1, 2]``, ``"text"``) and, when it is none, taken as text (``data.src=a.en``). A
    number in the path counts the elements of a list from 0. A later override wins.

    Raises InputError with one sentence for whatever is wrong.
    """
    return read_settings(path, overrides).build(cls)


def read_settings(path: Path, overrides: Sequence[str] = ()) -> "Given":
    """Read the same without building anything: for whoever must look before choosing a class."""
    text = read_text(path)
    data = parse_toml(text, path)
    laid = tuple(lay_over(data, override) for override in overrides)
    return Given(data, Source(str(path), text, laid))


@dataclass(frozen=True, slots=True)
class Given:
    """What a file and its overrides say: values whose keys nobody has checked yet."""

    data: Mapping[str, Any]
    source: Source

    def get(self, key: str) -> object:
        """The value of a dotted key, or None where it is not given."""
        value: object = self.data
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    def choose(self, key: str, choices: Mapping[str, C], default: str) -> C:
        """The choice that a key of the top level names; InputError where it names none."""
        name = self.data.get(key, default)
        if not isinstance(name, str) or name not in choices:
            at = Place(self.source, (key,))
            raise at.error(not_among(at, tuple(choices), name))
        return choices[name]

    def must_be(self, wanted: str, path: tuple[str, ...], value: object) -> InputError:
        """The error about the value of a path that is not what is wanted."""
        return must_be(Place(self.source, path), wanted, value)

    def build(self, cls: type[T], base: T | None = None) -> T:
        """Build ``cls``; keys that are not given come from ``base``, where there is one."""
        return section(cls, self.data, Place(self.source), base)


def parse_settings(cls: type[T], data: Mapping[str, Any], origin: str) -> T:
    """Build ``cls`` from plain values, such as parsed JSON; errors name ``origin``."""
    return section(cls, data, Place(Source(origin)), None)


def override_settings(settings: T, overrides: Sequence[str]) -> T:
    """Lay ``dotted.path=value`` overrides over settings that were built otherwise."""
    data = to_plain(settings)
    laid = tuple(lay_over(data, override) for override in overrides)
    return section(type(settings), data, Place(Source("the settings", "", laid)), None)
