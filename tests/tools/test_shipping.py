"""The pairs of the recipes `numbers` and `stories`: the package ships what `tools/` generates."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import pytest
from tools.numbers import numbers_corpus
from tools.shipping import SEED, SIZES
from tools.stories import stories_corpus, story_pairs

from dragoman.data.made import MadeConfig, Pair, write_made


def generated(name: str) -> Iterable[list[Pair]]:
    """Pairs for training and for validation."""
    if name == "numbers":
        return numbers_corpus(*SIZES, seed=SEED)
    return map(story_pairs, stories_corpus(*SIZES, seed=SEED))


@pytest.mark.parametrize("name", ["numbers", "stories"])
def test_the_package_ships_what_is_generated_here(
    name: Literal["numbers", "stories"], tmp_path: Path
) -> None:
    """All four files that a run gets, byte for byte; fewer pairs are the first ones."""
    train, valid = generated(name)
    written = write_made(MadeConfig(name=name), tmp_path / "all")
    for file, pairs in (("train", train), ("valid", valid)):
        for side in ("src", "tgt"):
            text = "".join(getattr(pair, side) + "\n" for pair in pairs)
            assert written[f"{file}.{side}"].read_text("utf-8") == text
    few = write_made(MadeConfig(name=name, train=3, valid=2), tmp_path / "few")
    lines = few["train.src"].read_text("utf-8").splitlines()
    assert lines == [pair.src for pair in train[:3]]
