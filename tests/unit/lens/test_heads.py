"""The picture of every head."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from tests.unit.lens.inspections import MADE, chosen, translation

from dragoman.lens.pictures import figure_of, plot_heads


@pytest.mark.parametrize("name", MADE)
def test_every_head_has_its_place_and_its_word(name: str) -> None:
    """One large grid with the tokens, then each layer and head with its number and its kind."""
    found = MADE[name]()
    main, *others = figure_of(found).axes
    tokens = [label.get_text() for label in main.get_xticklabels()]
    assert tokens[0].strip() == found.src.tokens[0]
    assert len(tokens) == len(found.attention[-1].key_tokens)
    expected = [
        (f"{layer}.{head} {each.summaries[row][column].kind}", each.weights_LHTS[row, column])
        for each in found.attention
        for row, layer in enumerate(each.layers)
        for column, head in enumerate(each.heads)
    ]
    for axes, (title, weights_TS) in zip(others, expected, strict=True):
        assert axes.get_title() == title
        drawn = axes.images[0].get_array()
        assert drawn is not None
        np.testing.assert_array_equal(np.asarray(drawn), weights_TS)


def test_the_large_grid_of_a_translation_is_its_alignment() -> None:
    """Rows are the tokens that were written, columns those that were read."""
    found = translation()
    assert found.alignment is not None
    assert found.tgt is not None
    main = figure_of(found).axes[0]
    drawn = main.images[0].get_array()
    assert drawn is not None
    np.testing.assert_array_equal(np.asarray(drawn), found.alignment.weights_TS)
    assert tuple(label.get_text() for label in main.get_yticklabels()) == found.tgt.tokens


def test_a_part_is_drawn_by_its_own_numbers() -> None:
    """Layers and heads have the numbers of the model; the large grid says whose mean it is."""
    found = chosen()
    figure = figure_of(found)
    main, *others = figure.axes
    assert [axes.get_title().split()[0] for axes in others] == ["1.0", "1.3"]
    assert [str(block.get_suptitle()) for block in figure.subfigs] == [
        "layer 1, mean of heads 0, 3",
        "decoder: layer.head, counted from 0",
    ]
    drawn = main.images[0].get_array()
    assert drawn is not None
    mean_TS = found.attention[0].weights_LHTS[0].mean(0)
    np.testing.assert_array_equal(np.asarray(drawn), mean_TS)


def test_a_picture_is_written_and_has_a_limit(tmp_path: Path) -> None:
    """A PNG; a hundred layers make it no longer than can be printed."""
    found = translation()
    path = plot_heads(found, tmp_path / "new" / "heads.png")
    assert path == tmp_path / "new" / "heads.png"
    assert min(imread(path).shape[:2]) > 300
    [first, *_] = found.attention
    deep = replace(
        first,
        num_layers=60,
        num_heads=1,
        layers=tuple(range(60)),
        heads=(0,),
        weights_LHTS=np.repeat(first.weights_LHTS[:1, :1], 60, axis=0),
        summaries=(first.summaries[0][:1],) * 60,
    )
    assert figure_of(replace(found, attention=(deep,))).get_figheight() <= 40


def test_a_long_text_leaves_room_for_the_heads() -> None:
    """The large grid stops growing, and the small ones keep their size below it."""
    found = translation()
    assert found.alignment is not None
    assert found.tgt is not None
    weights_TS = np.repeat(found.alignment.weights_TS, 20, axis=0)
    long = replace(
        found,
        tgt=replace(found.tgt, tokens=found.tgt.tokens * 20),
        alignment=replace(found.alignment, weights_TS=weights_TS),
    )
    below = figure_of(found).get_figheight() - (1.8 + 0.36 * len(found.tgt.tokens))
    assert figure_of(long).get_figheight() == pytest.approx(16 + below)
