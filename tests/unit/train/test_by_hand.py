"""Training equals a loop that is written out here, for each task and all its settings.

The loops are plain torch. From the package they use the model classes and the batches of each
task's files (`hand.py`); from `train` they use only the recipes, which say what to do.
"""

import copy
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tests.unit.train.hand import R_DROP, RATES, SEED, STEPS, TASKS, Hand
from tests.unit.train.made import trained
from torch import Tensor, nn

from dragoman.train.config import PrecisionSetting


@dataclass(frozen=True, slots=True)
class Learnt:
    """The result of a hand-written loop."""

    start: nn.Module
    model: nn.Module
    average: nn.Module
    losses: list[float]
    norms: list[float]


def learn(hand: Hand, rates: Sequence[float], *, bf16: bool) -> Learnt:
    """Take a step at each of these rates, with two batches and the settings of `TRAIN`."""
    torch.manual_seed(SEED)
    model = hand.build().train()
    learned = Learnt(copy.deepcopy(model), model, copy.deepcopy(model), [], [])
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": 0.4}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.7, 0.9), eps=1e-2, foreach=False)
    for number, rate in enumerate(rates, start=1):
        summed, count = torch.zeros(()), 0
        for part in (next(hand.batches), next(hand.batches)):
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                logits_MV, targets_M = hand.read(model, part)
            loss = cross_entropy(logits_MV, targets_M, smoothing=0.3)
            if hand.passes == 2:
                loss = loss / 2 + R_DROP / 4 * apart(*logits_MV.float().chunk(2))
            summed = summed + loss
            count += len(targets_M) // hand.passes
        optimizer.zero_grad()
        (summed / count).backward()
        learned.losses.append(summed.item() / count)
        learned.norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.1).item())
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        keep = min(0.9, (number - 1) / (number + 8))
        for average, weight in zip(learned.average.parameters(), model.parameters(), strict=True):
            average.data = keep * average.data + (1 - keep) * weight.data
    return learned


def cross_entropy(logits_MV: Tensor, targets_M: Tensor, smoothing: float = 0.0) -> Tensor:
    """Sum the loss over the targets."""
    return F.cross_entropy(logits_MV.float(), targets_M, label_smoothing=smoothing, reduction="sum")


def apart(logits_MV: Tensor, others_MV: Tensor) -> Tensor:
    """Sum KL(p || q) + KL(q || p)."""
    p_MV, q_MV = logits_MV.softmax(-1), others_MV.softmax(-1)
    return ((p_MV - q_MV) * (p_MV / q_MV).log()).sum()


@torch.no_grad()
def validate(hand: Hand, saved: Mapping[str, Tensor], *, bf16: bool) -> tuple[nn.Module, float]:
    """Return the model with saved weights and its mean validation loss, without smoothing."""
    model = hand.build().eval()
    parameters = dict(model.named_parameters())
    assert set(parameters) == set(saved)
    for name, parameter in parameters.items():
        parameter.copy_(saved[name])
    loss, count = 0.0, 0
    for part in hand.validation:
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            logits_MV, targets_M = hand.read(model, part)
        loss += cross_entropy(logits_MV, targets_M).item()
        count += len(targets_M)
    return model, loss / count


def distance(one: nn.Module, two: nn.Module) -> float:
    """Return the norm of the difference of all weights."""
    pairs = zip(one.parameters(), two.parameters(), strict=True)
    return math.sqrt(sum((p - q).square().sum().item() for p, q in pairs))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("task", TASKS)
def test_a_run_is_the_loop(task: str, precision: PrecisionSetting, tmp_path: Path) -> None:
    """Weights, figures and folder match the recipe.

    The fused loss rounds at other places than autograd's, in bf16 to three digits: there a run must
    be closer to the loop in bf16 than to the one in fp32. The loss of a validation is the same in
    either, so it shows in which precision it was computed.
    """
    case, bf16 = TASKS[task](tmp_path), precision == "bf16"
    recipe = replace(case.recipe, train=replace(case.recipe.train, precision=precision))
    rates = [RATES[recipe.train.schedule](step) for step in range(1, STEPS + 1)]
    trained(recipe)
    folder = Path(recipe.out)
    text = (folder / "training" / "metrics.jsonl").read_text("utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    steps = [line for line in lines if "learning_rate" in line]
    valid = {line["step"]: line["valid"]["loss"] for line in lines if "valid" in line}
    assert [line["step"] for line in steps] == [1, 2, 3, 4]
    assert [line["learning_rate"] for line in steps] == pytest.approx(rates, rel=1e-12)
    assert list(valid) == [3, 4]

    hand = case.open()
    alike, other = learn(hand, rates, bf16=bf16), learn(case.open(), rates, bf16=not bf16)
    checkpoint = folder / "training" / "checkpoints" / "step-00000004"
    last, loss = validate(hand, load_file(checkpoint / "weights.safetensors"), bf16=bf16)
    moved, off = distance(alike.model, alike.start), distance(last, alike.model)
    assert distance(last, other.model) > 1e-3 * moved
    assert off < (0.75 * distance(last, other.model) if bf16 else 1e-5 * moved)
    rel = 0.1 if bf16 else 1e-5
    assert [line["loss"] for line in steps] == pytest.approx(alike.losses, rel=rel)
    assert [line["grad_norm"] for line in steps] == pytest.approx(alike.norms, rel=rel)
    assert min(alike.norms) > 0.2  # twice the clipping threshold

    assert valid[4] == pytest.approx(loss, rel=5e-7)
    state = load_file(checkpoint / "optimizer.safetensors").items()
    averages = {name.removesuffix("/ema"): each for name, each in state if "/ema" in name}
    average, averaged = validate(hand, averages, bf16=bf16)
    off = distance(average, alike.average)
    assert off < (0.75 * distance(average, other.average) if bf16 else 1e-5 * moved)
    _, best = validate(hand, load_file(folder / "model.safetensors"), bf16=bf16)
    assert min(averaged, *valid.values()) == pytest.approx(best, rel=5e-7)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    assert {key: config[key] for key in case.written} == case.written


def test_nothing_is_as_it_would_be_anyway(tmp_path: Path) -> None:
    """No setting above has its default value, so each new setting must be added and followed.

    Each task has its own schedule. A tracker changes no numbers, and needs its library.
    """
    recipes = [make(tmp_path).recipe for make in TASKS.values()]
    assert {recipe.train.schedule for recipe in recipes} == set(RATES)
    for recipe in recipes:
        untold = {"tracker", "schedule"} | ({"r_drop"} if not recipe.reads_twice else set())
        for config in (recipe.train, recipe.batch):  # type: ignore[attr-defined]
            for field in fields(config):
                if field.name not in untold:
                    assert getattr(config, field.name) != field.default, field.name
