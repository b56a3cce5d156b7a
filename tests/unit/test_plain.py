"""Dataclasses as plain data."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from dragoman.cli.output import to_json
from dragoman.plain import Plain, to_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf(Plain):
    """A record whose numbers are rounded."""

    json_digits = 2

    weight: float = 1 / 3
    count: int = 7
    by_name: Mapping[str, float] = field(default_factory=lambda: {"a": -0.001})
    path: Path = Path("a/b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree(Plain):
    """A record that chooses its keys, a property among them, and holds another."""

    json_keys = ("total", "leaves")

    leaves: tuple[Leaf, ...] = (Leaf(),)
    hidden: float = 1 / 3

    @property
    def total(self) -> float:
        """Not rounded: the digits are those of the leaves."""
        return self.hidden


def test_keys_stand_in_their_order_and_numbers_are_rounded() -> None:
    """Each record rounds its own numbers, and never to -0.0."""
    assert json.dumps(Tree().to_dict()) == (
        '{"total": 0.3333333333333333, "leaves": '
        '[{"weight": 0.33, "count": 7, "by_name": {"a": 0.0}, "path": "a/b"}]}'
    )


def test_an_array_is_rounded_and_its_key_has_no_axes() -> None:
    """Each number as a number would be."""

    @dataclass(frozen=True, slots=True, eq=False)
    class Grid(Plain):
        json_digits = 1

        weights_TS: np.ndarray

    weights_TS = np.array([[0.04, -0.04], [0.25, 1]], dtype=np.float32)
    assert json.dumps(Grid(weights_TS).to_dict()) == '{"weights": [[0.0, 0.0], [0.2, 1.0]]}'


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_json_has_no_nan(value: float) -> None:
    """What is no number is null, wherever it stands; settings keep an infinity."""
    leaf = Leaf(weight=value, by_name={"a": value})
    plain = Tree(leaves=(leaf,), hidden=value).to_dict()
    json.dumps(plain, allow_nan=False)
    assert plain["total"] is plain["leaves"][0]["weight"] is None
    assert plain["leaves"][0]["by_name"] == {"a": None}
    assert json.loads(to_json({"a": [value, 1.0]})) == {"a": [None, 1.0]}


def test_to_plain_has_all_fields_of_a_dataclass() -> None:
    """Whatever a record inside it chooses for itself; what is no dataclass is a bug."""

    @dataclass
    class Settings:
        trees: list[Tree]
        rate: float = 1 / 3

    assert to_plain(Settings([Tree()])) == {"trees": [Tree().to_dict()], "rate": 1 / 3}
    with pytest.raises(TypeError, match="dataclass instance"):
        to_plain(Settings)
