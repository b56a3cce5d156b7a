"""COMET (Rei et al. 2020): the quality of translations, as a trained model judges their meaning."""

import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten

from dragoman.errors import InputError

Comet = Callable[[Sequence[str], Sequence[str], Sequence[str]], float]
"""From sources, hypotheses and references to the score of all together."""


def load_comet(folder: Path) -> Comet:
    """Load a COMET model from its folder, with COMET's own package.

    Nothing is downloaded, and only tensors and plain values are read from the checkpoint. Raises
    InputError if the package or a file is missing.
    """
    checkpoints = sorted(folder.glob("checkpoints/*.ckpt"))
    if not checkpoints or not (folder / "hparams.yaml").is_file():
        raise InputError(
            f"{folder} is not the folder of a COMET model: it needs hparams.yaml and "
            "checkpoints/model.ckpt, as they are in its repository"
        )
    try:
        with _alone():
            from comet import load_from_checkpoint
    except ImportError as error:
        raise InputError(
            f"--comet needs COMET: pip install unbabel-comet 'setuptools<81' ({error})"
        ) from error
    try:
        with _alone():
            model = load_from_checkpoint(str(checkpoints[0]), local_files_only=True)
    except Exception as error:
        reason = shorten(f"{type(error).__name__}: {error}", 150, placeholder=" ...")
        raise InputError(
            f"{folder} cannot be loaded as a COMET model ({reason}); check that its files are "
            "whole, and that the encoder that hparams.yaml names is in the cache of Hugging Face"
        ) from error

    def score(sources: Sequence[str], texts: Sequence[str], references: Sequence[str]) -> float:
        rows = zip(sources, texts, references, strict=True)
        samples = [dict(zip(("src", "mt", "ref"), row, strict=True)) for row in rows]
        with _alone():
            return float(model.predict(samples, gpus=0, progress_bar=False).system_score)

    return score


@contextmanager
def _alone() -> Iterator[None]:
    """Keep libraries offline and silent, and let them unpickle only tensors and plain values."""
    ours = {"HF_HUB_OFFLINE": "1", "TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1"}
    before = {name: os.environ[name] for name in ours if name in os.environ}
    root = logging.root
    disabled, level, handlers = root.manager.disable, root.level, [*root.handlers]
    os.environ.update(ours)
    logging.disable()
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(disabled)
        root.setLevel(level)  # importing COMET turns on everyone's progress logs
        root.handlers[:] = handlers
        for name in ours:
            os.environ.pop(name, None)
        os.environ.update(before)
