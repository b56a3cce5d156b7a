"""Training in fp16: loss scaling, overflows, and resuming the scale."""

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from tests.unit.train.made import CONFIG, TINY, make_batch, make_model, make_stepper, random_pairs
from tests.unit.train.runs import assert_goes_on_the_same, saved
from torch import nn

from dragoman.errors import InputError
from dragoman.nn.cpu.products import autocast
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.train.checkpoint import read_state
from dragoman.train.config import TrainConfig
from dragoman.train.memory import rehearse
from dragoman.train.shard import chooses_shards
from dragoman.train.step import Skipped, Stepper, StepResult

CPU = torch.device("cpu")


def half(scale: float, model: nn.Module | None = None) -> Stepper:  # type: ignore[type-arg]
    """Return a stepper in fp16 with this initial loss scale."""
    stepper = make_stepper(model or make_model(dtype=torch.float32))  # type: ignore[arg-type]
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    return replace(stepper, precision=partial(autocast, "fp16", CPU), scaler=scaler)


def test_scaling_changes_no_step() -> None:
    """Weights and norm equal those of fp32 up to rounding; the products run in fp16."""
    model = make_model(dtype=torch.float32)
    before = nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    batch, dtypes = make_batch(random_pairs(9)), set()
    twin = make_model(dtype=torch.float32)
    twin.load_state_dict(model.state_dict())
    model.get_submodule("decoder.layers.0.ffn.down").register_forward_hook(
        lambda *given: dtypes.add(given[2].dtype)
    )
    config = replace(CONFIG, clip_norm=0.01, eps=1e-3)
    one, two = half(2.0**12, model), make_stepper(twin, config)
    one = replace(one, optimizer=make_stepper(model, config).optimizer, clip_norm=0.01)
    ours, theirs = one([batch], 1e-2), two([batch], 1e-2)
    assert isinstance(ours, StepResult)
    assert dtypes == {torch.float16}
    assert ours.grad_norm == pytest.approx(theirs.grad_norm, rel=1e-2)
    moved = [nn.utils.parameters_to_vector(m.parameters()) - before for m in (model, twin)]
    assert (moved[0] - moved[1]).norm() < 0.05 * moved[1].norm()


def test_an_overflow_is_expected() -> None:
    """The scale is halved until the gradient is finite; at a scale of 1 an overflow is an error."""
    stepper = half(2.0**40)
    batch, results = make_batch(random_pairs(3)), list[StepResult | Skipped]()
    while not results or isinstance(results[-1], Skipped):
        results.append(stepper([batch], 1e-2))
    assert 10 < len(results) < 40
    assert all(result.expected for result in results[:-1])  # type: ignore[union-attr]
    assert stepper.scaler is not None
    assert stepper.scaler.get_scale() == 2.0 ** (41 - len(results))
    stepper.model.get_parameter("decoder.layers.0.ffn.up.weight").register_hook(
        lambda gradient: gradient * math.nan
    )
    for scale in (2.0, 1.0):
        stepper.scaler.update(scale)
        skipped = stepper([batch], 1e-2)
        assert isinstance(skipped, Skipped)
        assert skipped.expected == (scale > 1)


def test_the_rehearsal_leaves_the_scale(recipe: TranslateRecipe) -> None:
    """Rehearsal steps run at a scale of 1 and leave no optimizer state."""
    stepper, seen = half(2.0**40), []
    stepper.optimizer.register_step_post_hook(
        lambda *_: seen.append(stepper.scaler.get_scale())  # type: ignore[union-attr]
    )
    before = stepper.scaler.state_dict()  # type: ignore[union-attr]
    rehearse(stepper, [make_batch(random_pairs(3))], recipe)
    assert seen == [1.0]
    assert stepper.scaler.state_dict() == before  # type: ignore[union-attr]
    assert not stepper.optimizer.state


def test_interrupted(recipe: TranslateRecipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted and resumed fp16 run has the same bits and scale as another."""
    made = partial(torch.amp.GradScaler, init_scale=2.0**30, growth_interval=2)
    monkeypatch.setattr(torch.amp, "GradScaler", made)
    recipe = replace(recipe, train=replace(recipe.train, precision="fp16"))
    result, said = assert_goes_on_the_same(recipe, 3, [10, 30, 20, 31])
    assert "cpu in fp16" in said
    assert (result.progress.step, result.progress.skipped) == (6, 0)
    whole = replace(recipe, out=recipe.out + "-whole")
    ours, theirs = ([read_state(p).scaler for p in saved(each)] for each in (recipe, whole))
    assert ours == theirs
    assert 1 < ours[0]["scale"] < 2.0**30


def test_what_is_not_sharded(monkeypatch: pytest.MonkeyPatch) -> None:
    """In fp16 each shard would have its own scale; ranks with layer drop differ in their layers.

    If requested, sharding is refused; otherwise it is not chosen, unlike for similar models.
    """
    model, gpu = make_model(), torch.device("cuda", 0)
    dropping = make_model(replace(TINY, layer_drop=0.1))
    tiny = SimpleNamespace(total_memory=1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _device: tiny)
    config = TrainConfig(max_steps=1)
    assert [chooses_shards(config, model, gpu, p) for p in ("fp16", "bf16")] == [False, True]
    assert not chooses_shards(config, dropping, gpu, "bf16")
    with pytest.raises(InputError, match=r"model\.layer_drop drops different layers on each"):
        chooses_shards(replace(config, shard="on"), dropping, gpu, "bf16")
    with pytest.raises(InputError, match="in fp16 each process would find a scale of its own"):
        chooses_shards(replace(config, shard="on"), model, gpu, "fp16")
