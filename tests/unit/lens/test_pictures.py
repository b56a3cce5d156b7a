"""The pictures of attention: what is written, with which glyphs, and what is rejected."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.unit.lens.inspections import MADE, chosen, translation

pytest.importorskip("matplotlib", reason="pictures need the extra dragoman[plot]")

from matplotlib.axes import Axes
from matplotlib.font_manager import fontManager
from matplotlib.ft2font import FT2Font
from matplotlib.image import imread

from dragoman.lens.pictures import (
    blank,
    figure_of,
    heat_map,
    label,
    plot_alignment,
    plot_heads,
    save,
)

SRC, TGT = ["I", "like", "tea", "."], ["我", "喜欢", "茶", "。"]
WEIGHTS = np.eye(4)


def drawn_in(axes: Axes) -> np.ndarray:
    """The weights of a grid."""
    drawn = axes.images[0].get_array()
    assert drawn is not None
    return np.asarray(drawn)


def test_picture_is_a_png_without_warning(tmp_path: Path) -> None:
    """Chinese, signs that matplotlib reads as formulas, and line ends do no harm."""
    path = tmp_path / "new" / "attention.png"
    src = ["$x_1$", "$", "$\\frac{$", "\n"]
    assert plot_alignment(WEIGHTS, src, TGT, path, title="我喜欢茶 $5^") == path
    assert [file.name for file in path.parent.iterdir()] == ["attention.png"]
    height, width, _ = imread(path).shape
    assert min(height, width) > 300


def test_rows_are_targets_and_source_stands_on_top() -> None:
    """Row t, column s is how much target token t took from source token s."""
    weights_TS = np.array([[0.0, 1.0, 0.0], [0.25, 0.25, 0.5]])
    axes = heat_map(weights_TS, ["a", "b", "c"], ["x", "y"], "").axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "b", "c"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["x", "y"]
    assert axes.xaxis.get_ticks_position() == "top"
    np.testing.assert_array_equal(drawn_in(axes), weights_TS)


def test_each_label_has_a_font_with_its_characters() -> None:
    """Or is spelt in code points; text that needs no other font keeps matplotlib's."""
    for text in ("tea", "我喜欢茶", "T恤", "ｘ𓀀", ""):
        shown, font = label(text)
        glyphs = FT2Font(str(font.get_file())).get_charmap()
        assert all(ord(char) in glyphs for char in shown), text
        assert shown == text or "U+" in shown
    assert label("attention")[1].get_file() == fontManager.findfont("DejaVu Sans")


def test_long_sentences_keep_to_a_printable_size() -> None:
    """A picture grows with its tokens, up to a limit."""
    few, many = (heat_map(np.eye(n), ["a"] * n, ["b"] * n, "") for n in (3, 120))
    assert few.get_figwidth() < many.get_figwidth() <= 40


def test_global_state_of_pyplot_is_left_alone(tmp_path: Path) -> None:
    """Drawing opens no figure: pyplot is not even imported."""
    code = (
        "import sys, pathlib, numpy; from dragoman.lens.pictures import plot_alignment as plot;"
        "plot(numpy.eye(2), ['a', 'b'], ['我', '的'], pathlib.Path(sys.argv[1]));"
        "assert 'matplotlib.pyplot' not in sys.modules and 'torch' not in sys.modules"
    )
    path = tmp_path / "a.png"
    _python(code, str(path))
    assert path.exists()


def test_missing_matplotlib_is_said_with_its_cure(tmp_path: Path) -> None:
    """Without matplotlib the error names the command that installs it."""
    code = (
        "import sys, numpy; sys.modules['matplotlib'] = None;"
        "from dragoman.errors import InputError;"
        "import dragoman.lens\n"
        "try: dragoman.lens.plot_alignment(numpy.eye(1), ['a'], ['b'], sys.argv[1])\n"
        "except InputError as error: sys.stdout.write(str(error))"
    )
    assert "pip install '.[plot]'" in _python(code, str(tmp_path / "a.png"))
    assert list(tmp_path.iterdir()) == []


def test_shapes_are_checked_at_the_door(tmp_path: Path) -> None:
    """The error shows both shapes."""
    with pytest.raises(ValueError, match=r"\(4, 4\).*\(T, S\) = \(1, 4\)"):
        plot_alignment(WEIGHTS, SRC, ["我"], tmp_path / "a.png")
    with pytest.raises(ValueError, match="shape"):
        plot_alignment(np.zeros((0, 4)), SRC, [], tmp_path / "a.png")


def _python(code: str, argument: str) -> str:
    """Runs the code in a fresh interpreter, warnings as errors, and returns what it prints."""
    path = {"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-W", "error", "-c", code, argument]
    return subprocess.run(command, env=path, capture_output=True, check=True, text=True).stdout


def test_the_same_figure_has_the_same_bytes(tmp_path: Path) -> None:
    """Neither a clock nor matplotlib's version gets into the file."""
    figure = blank(2.0, 1.0)
    figure.text(0.5, 0.5, "text")
    first, second = (save(figure, tmp_path / name) for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    assert b"Software" not in first.read_bytes()


@pytest.mark.parametrize("name", ["translation", "chosen", "filling"])
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
        np.testing.assert_array_equal(drawn_in(axes), weights_TS)


def test_the_large_grid_of_a_translation_is_its_alignment() -> None:
    """Rows are the tokens that were written, columns those that were read."""
    found = translation()
    assert found.alignment is not None
    assert found.tgt is not None
    main = figure_of(found).axes[0]
    np.testing.assert_array_equal(drawn_in(main), found.alignment.weights_TS)
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
    mean_TS = found.attention[0].weights_LHTS[0].mean(0)
    np.testing.assert_array_equal(drawn_in(main), mean_TS)


def test_a_picture_is_written_and_has_a_limit(tmp_path: Path) -> None:
    """A PNG; sixty layers make it no longer than can be printed."""
    path = tmp_path / "new" / "heads.png"
    assert plot_heads(chosen(), path) == path
    assert min(imread(path).shape[:2]) > 300
    found = translation()
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
    weights_TS = np.repeat(found.alignment.weights_TS, 6, axis=0)
    long = replace(
        found,
        tgt=replace(found.tgt, tokens=found.tgt.tokens * 6),
        alignment=replace(found.alignment, weights_TS=weights_TS),
    )
    below = figure_of(found).get_figheight() - (1.8 + 0.36 * len(found.tgt.tokens))
    assert figure_of(long).get_figheight() == pytest.approx(16 + below)
