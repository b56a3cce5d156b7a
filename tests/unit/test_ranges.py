"""Ranges of settings, declared beside the field."""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Annotated, Any, get_args

import numpy as np
import pytest

import dragoman
from dragoman.data.batches import BatchConfig
from dragoman.data.corpus import CorpusConfig
from dragoman.errors import InputError
from dragoman.ranges import Count, Positive, Range, check_ranges, ranges_of
from dragoman.settings import read_settings
from dragoman.tasks.generate.batches import PackConfig
from dragoman.text.train import TokenizerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Oven:
    """Settings with ranges."""

    loaves: Count = 1
    minutes: Positive | None = None
    share: Annotated[float, Range(above=0, most=1, why="it is a share")] = 0.5

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bakery:
    """A section with ranges, and a list of numbers with one."""

    oven: Oven = Oven()
    weights: tuple[Positive, ...] = ()


@pytest.mark.parametrize(
    "setting", [(BatchConfig, "max_tokens"), (PackConfig, "rows"), (TokenizerConfig, "vocab_size")]
)
def test_no_size_that_would_only_take_all_time_or_memory(setting: tuple[type, str]) -> None:
    """A dry run of such batches takes minutes; a tokenizer of that size aborts the process."""
    kind, name = setting
    assert getattr(kind(**{name: 10_000_000}), name) == 10_000_000
    with pytest.raises(InputError, match="at most 10,000,000"):
        kind(**{name: 10_000_001})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("loaves", 0, "loaves is 0; it must be at least 1"),
        ("loaves", 1.5, "loaves is 1.5; it must be a whole number"),
        ("loaves", None, "loaves is None; it must be a number"),
        ("loaves", "3", "loaves is '3'; it must be a number"),
        ("loaves", True, "loaves is True; it must be a number"),
        ("loaves", 1 << 63, "it must be less than 2^63"),
        ("loaves", 1 << 10_000, "loaves is an integer of 10,001 bits; it must be less than 2^63"),
        ("loaves", -1 << 10_000, "loaves is an integer of 10,001 bits; it must be at least 1"),
        ("loaves", np.int64(0), "loaves is 0; it must be at least 1"),
        ("minutes", 0.0, "minutes is 0.0; it must be above 0"),
        ("minutes", math.inf, "minutes is inf; it must be above 0 and finite"),
        ("minutes", math.nan, "minutes is nan; it must be above 0"),
        ("share", 1.01, "share is 1.01; it must be above 0 and at most 1: it is a share"),
    ],
)
def test_a_value_out_of_range_is_rejected(name: str, value: object, message: str) -> None:
    """The message has the name, the value, what is allowed and why."""
    with pytest.raises(InputError) as caught:
        Oven(**{name: value})  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_the_bounds_are_accepted() -> None:
    """Also a field that is not set, and an integer where a number is expected."""
    assert Oven(loaves=(1 << 63) - 1, minutes=None, share=1).share == 1


def test_a_number_of_numpy_becomes_one_of_python() -> None:
    """Which native functions and JSON take."""
    oven = Oven(loaves=np.int64(3), minutes=np.float32(0.5))  # type: ignore[arg-type]
    assert (type(oven.loaves), type(oven.minutes)) == (int, float)
    assert oven == Oven(loaves=3, minutes=0.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[oven]\nshare = 1\nloaves = 0", "line 3: oven.loaves is 0; it must be at least 1"),
        ("[oven]\nloaves = 1.5", "line 2: oven.loaves must be an integer, not 1.5"),
        ("weights = [1.0, -1.0]", "line 1: weights.1 is -1.0; it must be above 0"),
    ],
)
def test_an_error_names_the_line_of_the_key(tmp_path: Path, text: str, message: str) -> None:
    """Not only that of its section; and a wrong type is an error before its range is."""
    (tmp_path / "bakery.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_settings(tmp_path / "bakery.toml").build(Bakery)
    assert str(caught.value).endswith(message)


def test_an_override_out_of_range_is_named(tmp_path: Path) -> None:
    """By what was typed."""
    (tmp_path / "bakery.toml").write_text("")
    with pytest.raises(InputError, match=r"override oven.loaves=0: oven.loaves is 0; it must be"):
        read_settings(tmp_path / "bakery.toml", ["oven.loaves=0"]).build(Bakery)


def every_class_with_ranges() -> Iterator[Any]:
    """The settings of all rooms."""
    for found in walk_packages(dragoman.__path__, "dragoman."):
        with suppress(ImportError):  # of an extra that is not installed
            module = vars(import_module(found.name))
            classes = [x for x in module.values() if isinstance(x, type) and is_dataclass(x)]
            if "check_ranges" in module:
                yield from (each for each in classes if each.__module__ == found.name)


def test_no_number_is_taken_out_of_its_range() -> None:
    """Neither beyond its bounds, whichever field of whichever class it is, nor NaN or infinity."""
    names = set[str]()
    for settings in every_class_with_ranges():
        given = [each for each in fields(settings) if each.default is each.default_factory]
        needed: dict[str, object] = dict.fromkeys((each.name for each in given), 2)
        if settings is CorpusConfig:
            needed = {"tsv": "a"}
        for name, (kind, _) in ranges_of(settings).items():
            names.add(f"{settings.__name__}.{name}")
            for value in beyond(*get_args(kind)[1:]):
                with pytest.raises(InputError, match=rf"\b{name} is {value}; it must be"):
                    settings(**needed | {name: value})
    assert len(names) > 150
    assert {"TrainConfig.max_steps", "Sample.top_p", "Rotary.base"} <= names


def beyond(*ranges: Range) -> list[float]:
    """Numbers that are in none of them."""
    bounds = [
        bound
        for each in ranges
        for bound in ((each.least, -1), (each.most, 1), (each.above, 0), (each.below, 0))
    ]
    return [math.nan, math.inf, -math.inf, *(x + step for x, step in bounds if x is not None)]
