"""Running out of memory is reported at once: the largest batches are tried first."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.unit.train.runs import Scorer, change, run, saved, train_scored
from torch import Tensor

from dragoman.errors import DragomanError
from dragoman.tasks.translate.batches import PairBatch
from dragoman.tasks.translate.job import TranslateJob
from dragoman.tasks.translate.recipe import TranslateRecipe


@pytest.mark.parametrize("accumulate", [1, 3])
def test_what_has_no_memory_is_told_at_once(recipe: TranslateRecipe, accumulate: int) -> None:
    """The error has the size of the largest batch, before any step or output file."""
    seen: list[int] = []
    loss = TranslateJob.loss

    def limited(job: TranslateJob, batch: PairBatch) -> Tensor:
        seen.append(batch.src_BS.numel() + batch.tgt_in_BT.numel())
        if torch.is_grad_enabled() and len(seen) > 1:
            raise torch.OutOfMemoryError
        return loss(job, batch)

    recipe = change(recipe, accumulate=accumulate)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TranslateJob, "loss", limited)
        with pytest.raises(DragomanError, match=r"out of memory in a batch of \d+ examples and"):
            run(recipe, 1)
    assert len(seen) == 2  # the second batch, or the first one again if gradients accumulate
    assert seen[0] > 80
    assert not saved(recipe)
    assert not (Path(recipe.out) / "training" / "metrics.jsonl").exists()


def use_up_memory() -> None:
    """Request more memory than any processor can address."""
    torch.empty(1 << 55)


def test_a_step_without_memory(recipe: TranslateRecipe) -> None:
    """The error has the batch and the settings to change, and changing one works."""
    loss = TranslateJob.loss

    def too_large(job: TranslateJob, batch: PairBatch) -> Tensor:
        if saved(recipe):
            use_up_memory()
        return loss(job, batch)

    spared = replace(recipe, train=replace(recipe.train, activation_checkpointing=True))
    size = (
        r"out of memory in a batch of \d+ examples and \d+ tokens: lower batch\.max_tokens \(100\) "
        r"in the same command \(train\.accumulate makes up for it\), or add train\.activation_check"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TranslateJob, "loss", too_large)
        with pytest.raises(DragomanError, match=size) as raised:
            run(recipe, 1)
        with pytest.raises(DragomanError, match=r"makes up for it\)$"):
            run(spared)
    assert raised.value.exit_code == 1
    result, said = run(spared, 2, 3, 4)
    assert "Resuming from step 2." in said
    assert result.progress.step == 6


def test_a_validation_without_memory(recipe: TranslateRecipe) -> None:
    """Validation has its own sentence; other errors are not reported as lack of memory."""
    with pytest.raises(DragomanError, match="out of memory during validation"):
        train_scored(recipe, Scorer(iter([]), before=use_up_memory))

    def wrong() -> None:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="shapes"):
        train_scored(recipe, Scorer(iter([]), before=wrong))


def test_memory_that_a_model_lacks(recipe: TranslateRecipe) -> None:
    """Any failed allocation ends the run with a one-sentence error."""
    with pytest.raises(DragomanError, match="out of memory: give a smaller model") as raised:
        train_scored(recipe, Scorer(iter([])), check=lambda *_: use_up_memory())
    assert raised.value.exit_code == 1
