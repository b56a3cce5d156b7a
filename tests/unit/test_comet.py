"""COMET, with a stand-in for its package."""

import logging
import os
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

from dragoman.comet import load_comet
from dragoman.errors import InputError

OURS = ("HF_HUB_OFFLINE", "TORCH_FORCE_WEIGHTS_ONLY_LOAD")


class Checkpoint:
    """Stands for a model of COMET: it gives the share of right translations."""

    def predict(
        self, samples: list[dict[str, str]], *, gpus: int, progress_bar: bool
    ) -> SimpleNamespace:
        """Score as COMET does, which is loud."""
        assert (gpus, progress_bar) == (0, False)
        chatter()
        right = sum(each["mt"] == each["ref"] and bool(each["src"]) for each in samples)
        return SimpleNamespace(system_score=right / len(samples))


def chatter() -> None:
    """What Lightning writes: what it found, what one may buy, what is deprecated."""
    logging.getLogger("lightning.pytorch").warning("GPU available: False")
    warnings.warn("LeafSpec is deprecated", FutureWarning, stacklevel=2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a model."""
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "model.ckpt").touch()
    (tmp_path / "hparams.yaml").touch()
    return tmp_path


def test_comet_scores_offline(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its own package loads the checkpoint, without a network, with tensors alone, in silence."""
    asked: list[tuple[str, bool, list[str | None]]] = []

    def load_from_checkpoint(path: str, *, local_files_only: bool) -> Checkpoint:
        asked.append((path, local_files_only, [os.environ.get(name) for name in OURS]))
        logging.basicConfig(level=logging.INFO, force=True)  # so COMET does when it is imported
        chatter()
        return Checkpoint()

    stub = SimpleNamespace(load_from_checkpoint=load_from_checkpoint)
    monkeypatch.setitem(sys.modules, "comet", stub)
    monkeypatch.setenv(OURS[0], "0")
    root = logging.root.level, [*logging.root.handlers]
    with warnings.catch_warnings(record=True, action="always") as warned:
        assert load_comet(folder)(["x", "y"], ["a", "b"], ["a", "c"]) == 0.5
        assert (warned, caplog.records) == ([], [])
        chatter()
        assert (len(warned), len(caplog.records)) == (1, 1), "what comes after is heard"
    assert asked == [(str(folder / "checkpoints" / "model.ckpt"), True, ["1", "1"])]
    assert [os.environ.get(name) for name in OURS] == ["0", None]
    assert (logging.root.level, logging.root.handlers) == root


def test_what_comet_cannot_load_is_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is raised below it: COMET and Transformers do not say what is missing."""

    def load_from_checkpoint(*_: object, **__: object) -> None:
        raise KeyError("foo_metric\nand so on" + 200 * " and on")

    stub = SimpleNamespace(load_from_checkpoint=load_from_checkpoint)
    monkeypatch.setitem(sys.modules, "comet", stub)
    with pytest.raises(InputError, match="KeyError") as caught:
        load_comet(folder)
    assert "the encoder that hparams.yaml names" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < len(str(folder)) + 350


def test_no_model_and_no_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is named; an installed package may lack what it needs."""
    monkeypatch.setitem(sys.modules, "comet", None)
    with pytest.raises(InputError, match=r"pip install unbabel-comet .*\(import of comet halted"):
        load_comet(folder)
    (folder / "hparams.yaml").unlink()
    with pytest.raises(InputError, match="is not the folder of a COMET model"):
        load_comet(folder)
