"""The range of a setting, declared next to its field.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class TrainConfig:
        max_steps: Count | None = None
        dropout: Annotated[float, Range(least=0, below=1)] = 0.1

        def __post_init__(self) -> None:
            check_ranges(self)

Values from a recipe are checked when they are read, so that the error names the line of the key;
values from Python code are checked by `check_ranges`.
"""

from dataclasses import dataclass
from enum import Enum
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from dragoman.errors import InputError


class _Unset(Enum):
    UNSET = "unset"


UNSET: Any = _Unset.UNSET
"""The value of a field that nobody set, in a dataclass whose fields may be unset."""

LARGEST = (1 << 63) - 1
"""The largest integer that both torch and NumPy support."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Finite numbers between two bounds; an integer must also fit 64 bits."""

    least: float | None = None
    """The smallest value."""
    above: float | None = None
    """All values are greater than this."""
    most: float | None = None
    """The largest value."""
    below: float | None = None
    """All values are less than this."""
    why: str = ""
    """The reason for the bounds, for the message."""

    def __str__(self) -> str:
        bounds = {"at least": self.least, "above": self.above}
        bounds |= {"at most": self.most, "below": self.below}
        return " and ".join(f"{word} {n:,}" for word, n in bounds.items() if n is not None)

    def __contains__(self, value: float) -> bool:
        return (
            float("-inf") < value < float("inf")
            and (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
            and (self.below is None or value < self.below)
        )


Count = Annotated[int, Range(least=1)]
Millions = Annotated[int, Range(least=1, most=10_000_000)]
"""A count that decides how much memory is reserved, or how long planning takes."""
Index = Annotated[int, Range(least=0)]
Positive = Annotated[float, Range(above=0)]
NonNegative = Annotated[float, Range(least=0)]
Probability = Annotated[float, Range(least=0, most=1)]
BelowOne = Annotated[float, Range(least=0, below=1)]


def check_ranges(settings: object) -> None:
    """Raise InputError for a field of the dataclass whose value is out of its declared range.

    A number of NumPy becomes the one of Python, which JSON and native functions take.
    """
    for name, (expected, optional) in ranges_of(type(settings)).items():  # type: ignore[arg-type] # it is hashable
        value = getattr(settings, name)
        if value is not UNSET and (value is not None or not optional):
            check_range(name, value, expected)
            if type(value) not in (int, float):
                number = int if isinstance(value, Integral) else float
                object.__setattr__(settings, name, number(value))


def check_words(settings: object) -> None:
    """Raise InputError for a field whose value is not one of its declared words or truth values."""
    for name, words in words_of(type(settings)).items():  # type: ignore[arg-type] # it is hashable
        if (value := getattr(settings, name)) is not UNSET and value not in words:
            raise InputError(f"{name} is {value!r}; it must be one of {', '.join(map(str, words))}")


def check_range(name: str, value: Any, expected: Any) -> None:  # noqa: ANN401 -- what was given is checked
    """Raise InputError unless the value is a number in the range of an `Annotated` type."""
    number, *notes = get_args(expected)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name} is {value!r}; it must be a number")
    if isinstance(value, Integral) and int(value) > LARGEST:
        raise InputError(f"{name} is {shown(value)}; it must be less than 2^63")
    for limits in notes:
        if value not in limits:
            why = f": {limits.why}" if limits.why else ""
            finite = " and finite" if value == float("inf") else ""
            raise InputError(f"{name} is {shown(value)}; it must be {limits}{finite}{why}")
    if number is int and not isinstance(value, Integral):
        raise InputError(f"{name} is {value}; it must be a whole number")


def shown(value: object) -> str:
    """Return a value for a message; for an integer with hundreds of digits, only its length.

    Python refuses to write one with some thousand digits.
    """
    if isinstance(value, int) and value.bit_length() > 512:
        return f"an integer of {value.bit_length():,} bits"
    return str(value)


@cache
def words_of(cls: type) -> dict[str, tuple[Any, ...]]:
    """Return the allowed values of each field that takes words or a truth value."""
    found = {}
    for name, hint in get_type_hints(cls).items():
        arms = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
        words = [word for arm in arms if get_origin(arm) is Literal for word in get_args(arm)]
        words += [False, True] * (bool in arms) + [None] * (type(None) in arms)
        if words != [None] and words:
            found[name] = tuple(words)
    return found


@cache
def ranges_of(cls: type) -> dict[str, tuple[Any, bool]]:
    """Return the fields with a range: `Count` for `Count | None`, and whether None is allowed."""
    hints = get_type_hints(cls, include_extras=True)
    arms = ((name, hint, arm) for name, hint in hints.items() for arm in (hint, *get_args(hint)))
    return {
        name: (arm, type(None) in get_args(hint))
        for name, hint, arm in arms
        if get_origin(arm) is Annotated
    }
