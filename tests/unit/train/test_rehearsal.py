"""The largest batches run before all others: what has no memory is told at once, no bit changes."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.unit.train.runs import bits, change, figures, interrupt, run, saved
from torch import Tensor

from dragoman.errors import DragomanError
from dragoman.tasks.translate.batches import PairBatch
from dragoman.tasks.translate.job import TranslateJob
from dragoman.tasks.translate.recipe import TranslateRecipe


@pytest.mark.parametrize("cut", [False, True])
def test_no_bit_changes(recipe: TranslateRecipe, *, cut: bool) -> None:
    """A run is the one that would have begun without; one that goes on also."""
    settings = replace(recipe.train, optimizer="adamw", weight_decay=0.1)
    recipe = replace(recipe, train=settings)
    plain, bleu = replace(recipe, out=recipe.out + "-plain"), [10, 30, 20, 31]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dragoman.train.trainer.rehearse", lambda *_: None)
        run(plain, *bleu)
    if cut:
        assert interrupt(recipe, 3, bleu).interrupted
        run(recipe, *bleu[1:])
    else:
        run(recipe, *bleu)
    assert bits(recipe) == bits(plain)
    assert figures(recipe) == figures(plain)


@pytest.mark.parametrize("accumulate", [1, 3])
def test_what_has_no_memory_is_told_at_once(recipe: TranslateRecipe, accumulate: int) -> None:
    """With the size of the largest batch, before a step is taken or anything is written."""
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
    assert len(seen) == 2  # the second batch, or the first again where gradients pile up
    assert seen[0] > 80
    assert not saved(recipe)
    assert not (Path(recipe.out) / "training" / "metrics.jsonl").exists()
