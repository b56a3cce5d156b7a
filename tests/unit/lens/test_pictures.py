"""The picture of the position schemes."""

from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="pictures need the extra dragoman[plot]")

from matplotlib.image import imread

from dragoman.lens.positions import plot_positions


def test_four_schemes_in_one_picture(tmp_path: Path) -> None:
    """One PNG, wide enough to be read, in which something is drawn, and nothing beside it."""
    plot_positions(tmp_path / "positions.png")
    picture = imread(tmp_path / "positions.png")
    assert picture.shape[1] > 900
    assert picture[..., :3].std() > 0.1
    assert [path.name for path in tmp_path.iterdir()] == ["positions.png"]
