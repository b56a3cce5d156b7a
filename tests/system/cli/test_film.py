"""`dragoman inspect --film`: the alignment of a translation at the checkpoints of a run."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.system.cli.command import Run
from tests.system.cli.test_wrong_input import assert_refused
from tests.unit.tasks.tiny import save_translator
from tests.unit.tasks.tiny_generator import save_generator
from tests.unit.train.test_checkpoint import make_state

pytest.importorskip("matplotlib", reason="pictures need the extra dragoman[plot]")

from matplotlib.image import imread

from dragoman.lens.choices import Choices
from dragoman.lens.film import MOST, frames_of, spread
from dragoman.lens.inspecting import inspect_folder
from dragoman.models import EncoderDecoder
from dragoman.tasks.folders import read_folder
from dragoman.tasks.task import model_of
from dragoman.train.checkpoint import save_checkpoint

TEXT = "the cat sees a dog 我喜欢。"


def kept(folder: Path, step: int, share: float) -> None:
    """Keep a checkpoint of a share of the model's weights; with 0.0 no head looks anywhere."""
    names = dict(model_of(read_folder(folder, device="cpu"), EncoderDecoder).named_parameters())
    saved = load_file(folder / "model.safetensors")
    weights = {name: saved[name] * share for name in names}
    checkpoints = folder / "training" / "checkpoints"
    save_checkpoint(checkpoints, make_state(step), {"weights": weights}, keep=9, every=10)


def test_frames_are_the_attention_of_each_checkpoint(run: Run, tmp_path: Path) -> None:
    """In the order of their steps: uniform without weights, the inspection's own with the model's;
    and they are drawn side by side.
    """
    folder, png = save_translator(tmp_path / "run"), tmp_path / "new" / "film.png"
    for step, share in ((10, 0.0), (20, 1.0)):
        kept(folder, step, share)
    inspection = inspect_folder(read_folder(folder, device="cpu"), TEXT, Choices())
    (first, uniform_TS), (last, weights_TS) = frames_of(inspection)
    assert (first, last) == (10, 20)
    np.testing.assert_allclose(uniform_TS, 1 / len(inspection.src.tokens), rtol=1e-6)
    assert inspection.alignment is not None
    np.testing.assert_array_equal(weights_TS, inspection.alignment.weights_TS)
    done = run("inspect", folder, TEXT, "--film", png)
    assert (done.code, done.err) == (0, f"wrote {png}\n")
    height, width, _ = imread(png).shape
    assert width > height > 300


def test_a_long_run_has_a_short_film() -> None:
    """Every checkpoint of a short run, and more of the beginning of a long one than of its end."""
    assert [spread(count) for count in (1, 2, 5)] == [[0], [0, 1], [0, 1, 2, 3, 4]]
    places = spread(1000)
    assert (len(places), places[0], places[-1]) == (MOST, 0, 999)
    assert sorted(np.diff(places)) == list(np.diff(places))


def test_what_has_no_film_is_told(run: Run, model: Path, tmp_path: Path) -> None:
    """A model without a run, one that writes no translation, and weights of something else."""
    film = ("--film", tmp_path / "film.png")
    assert_refused(run("inspect", model, TEXT, *film), "has no training/checkpoints")
    generator = save_generator(tmp_path / "generator")
    assert_refused(run("inspect", generator, TEXT, *film), "does not translate")
    adapted = save_translator(tmp_path / "adapted")
    weights = {"lora": torch.zeros(2)}
    folder = adapted / "training" / "checkpoints"
    save_checkpoint(folder, make_state(10), {"weights": weights}, keep=9, every=10)
    assert_refused(run("inspect", adapted, TEXT, *film), "or adapters, and --film needs all")
    assert not (tmp_path / "film.png").exists()
