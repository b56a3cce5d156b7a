"""Steps with a non-finite loss or gradient are skipped, explained and without effect."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.unit.train.made import make_batch, make_model, no_autocast, random_pairs
from tests.unit.train.runs import (
    assert_goes_on_the_same,
    assert_same_runs,
    change,
    figures,
    run,
    same,
    saved,
)
from torch import Tensor

from dragoman.data.batches import Stream
from dragoman.errors import DragomanError
from dragoman.tasks.translate.batches import PairBatch
from dragoman.tasks.translate.job import TranslateJob
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.train.diagnosis import find_not_finite
from dragoman.train.progress import Progress
from dragoman.train.report import MetricsFile
from dragoman.train.step import Skipped


@pytest.fixture
def recipe(recipe: TranslateRecipe) -> TranslateRecipe:
    """The recipe with enough batches in the first epoch."""
    return replace(recipe, batch=replace(recipe.batch, max_tokens=50))


BAD = (2, 3, 5)
"""The draws with a non-finite loss, counted from 0."""


@contextmanager
def broken(*draws: int, factor: float = math.nan) -> Iterator[None]:
    """Make the losses of these draws non-finite."""
    loss, draw = TranslateJob.loss, Stream.__next__

    def drawn(stream: Stream[PairBatch]) -> PairBatch:
        batch = draw(stream)
        bad = stream.epoch == 0 and stream.position - 1 in draws
        return replace(batch, num_tokens=-batch.num_tokens) if bad else batch

    def lost(job: TranslateJob, batch: PairBatch) -> Tensor:
        return loss(job, batch) * (factor if batch.num_tokens < 0 else 1.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stream, "__next__", drawn)
        patch.setattr(TranslateJob, "loss", lost)
        yield


def skips(recipe: TranslateRecipe) -> list[dict[str, Any]]:
    """Return the entries about skipped steps in metrics.jsonl."""
    text = (Path(recipe.out) / "training" / "metrics.jsonl").read_text(encoding="utf-8")
    return [line for line in map(json.loads, text.splitlines()) if "skipped" in line]


def test_a_skipped_step_leaves_no_trace(recipe: TranslateRecipe) -> None:
    """Steps, rates, weights and moments are as if the stream lacked the faulty batches.

    There is no dropout, whose masks would differ.
    """
    recipe = replace(recipe, model=replace(recipe.model, dropout=0.0))
    other = replace(recipe, out=recipe.out + "-without")
    with broken(*BAD):
        result, said = run(recipe, 1, 2, 3, 4)
    assert (result.progress.step, result.progress.skipped) == (6, 3)
    assert said.count("was skipped: the loss is nan, in a batch of the examples [") == 3
    draw = Stream.__next__

    def without(stream: Stream[Any]) -> object:
        while True:
            batch = draw(stream)
            if count.pop(0) not in BAD:
                return batch

    count = list(range(100))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stream, "__next__", without)
        run(other, 1, 2, 3, 4)
    for ours, theirs in zip(saved(recipe), saved(other), strict=True):
        for name in ("weights", "optimizer"):
            path = f"{name}.safetensors"
            assert (ours / path).exists() == (theirs / path).exists()
            if (ours / path).exists():
                assert same(load_file(ours / path), load_file(theirs / path))
    assert [line for line in figures(recipe) if line[1] is not None or line[3] != "None"] == (
        figures(other)
    )


def test_interrupted_after_a_skip(recipe: TranslateRecipe) -> None:
    """An interruption around skipped steps changes neither the bits nor the log."""
    with broken(*BAD):
        result, _ = assert_goes_on_the_same(recipe, 3, [10, 30, 20, 31])
    assert result.progress.skipped == 3
    whole = replace(recipe, out=recipe.out + "-whole")
    assert [line["skipped"] for line in skips(recipe)] == [line["skipped"] for line in skips(whole)]
    assert [line["skipped"]["total"] for line in skips(recipe)] == [1, 2, 3]
    assert [line["step"] for line in skips(recipe)] == [2, 2, 3]


def test_a_killed_run_skips_again(recipe: TranslateRecipe) -> None:
    """Steps that are skipped again after a kill are logged once."""
    whole, write = replace(recipe, out=recipe.out + "-whole"), MetricsFile.skipped

    def written_and_killed(file: MetricsFile, progress: Progress, skipped: Skipped) -> None:
        write(file, progress, skipped)
        raise ZeroDivisionError

    with broken(*BAD):
        run(whole, 1, 2, 3, 4)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(MetricsFile, "skipped", written_and_killed)
            with pytest.raises(ZeroDivisionError):
                run(recipe, 1, 2, 3, 4)
        assert [line["step"] for line in skips(recipe)] == [2]
        run(recipe, 2, 3, 4)
    assert_same_runs(recipe, whole)


@pytest.mark.parametrize(("limit", "more"), [(1, ""), (2, ", the last of 2 steps in a row")])
def test_too_many_in_a_row(recipe: TranslateRecipe, limit: int, more: str) -> None:
    """They end the run in one sentence; the same number with a good step in between does not."""
    with broken(0, 2, 4):
        run(change(replace(recipe, out=recipe.out + "-spread"), max_skipped=2), 1, 2, 3, 4)
    with (
        broken(*BAD, factor=math.inf),
        pytest.raises(DragomanError, match=r"the loss is inf, in a batch of the examples \[") as e,
    ):
        run(change(recipe, max_skipped=limit), 1, 2, 3, 4)
    assert f"], first in the loss{more}" in str(e.value)
    assert "the weights are as they were before it" in str(e.value)
    assert [path.name[-1] for path in saved(recipe)] == ["2"]
    assert skips(recipe)[-1]["skipped"]["total"] == limit


class MadeJob:
    """A model with a made-up loss."""

    def __init__(self) -> None:
        self.model = make_model()

    def loss(self, batch: PairBatch) -> Tensor:
        """Sum the logits."""
        logits_BTV: Tensor = self.model(batch.src_BS, batch.tgt_in_BT)
        return logits_BTV.sum()


def test_the_first_place_is_named() -> None:
    """Forward comes before backward, the innermost module first; the faulty batch is found."""
    fine, other = make_batch(random_pairs(3)), make_batch([([7], [8])], first=9)

    def find(job: MadeJob) -> tuple[tuple[int, ...], str] | None:
        hooks = hooks_of(job)
        found = find_not_finite(job, [fine, other], no_autocast)  # type: ignore[arg-type]
        assert all(weight.grad is None for weight in job.model.parameters())
        assert hooks_of(job) == hooks
        return found

    assert find(MadeJob()) is None
    name = "decoder.layers.0.ffn.down"
    job = MadeJob()
    with torch.no_grad():
        job.model.get_parameter(f"{name}.weight")[0, 0] = torch.inf
    assert find(job) == ((1, 2, 3), f"in what {name} returns")
    job = MadeJob()
    job.model.get_parameter(f"{name}.weight").register_hook(lambda gradient: gradient * torch.nan)
    assert find(job) == ((1, 2, 3), f"in the gradient of {name}.weight")
    job = MadeJob()

    def spoil(_: object, __: object, output: Tensor) -> None:
        if len(output) == 1:
            output.register_hook(lambda gradient: gradient * torch.inf)

    job.model.get_submodule(name).register_forward_hook(spoil)
    assert find(job) == ((10,), f"in the gradient of what {name} returns")


def hooks_of(job: MadeJob) -> list[int]:
    """Return the number of hooks of each module."""
    return [len(module._forward_hooks) for module in job.model.modules()]
