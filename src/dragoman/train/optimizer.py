"""The learning-rate schedules; Adam and AdamW, and their state as named tensors."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from dragoman.train.config import TrainConfig


def learning_rate(config: TrainConfig, step: float, done: float, d_model: int) -> float:
    """Return the rate of step `step` (the first is 1), `done` of the run being over (0 to 1).

    ============ ================================================================
    noam         `factor * D^-1/2 * min(step^-1/2, step * warmup^-3/2)` (paper, 5.3)
    inverse-sqrt `peak * min(step / warmup, sqrt(warmup / step))`
    cosine       `peak * min(1, step / warmup) * (1 + cos(pi * done)) / 2`
    linear       `peak * min(1, step / warmup) * (1 - done)`
    constant     `peak * min(1, step / warmup)`
    ============ ================================================================

    `noam` and `inverse-sqrt` are one curve: they differ in how the peak is named.
    """
    peak, warmup = config.learning_rate, max(1, config.warmup_steps)
    if config.schedule == "noam":
        return peak / math.sqrt(d_model) * min(1 / math.sqrt(step), step * math.pow(warmup, -1.5))
    if config.schedule == "inverse-sqrt":
        return peak * min(step / warmup, math.sqrt(warmup / step))
    rise = peak * min(1.0, step / warmup)
    if config.schedule == "cosine":
        return rise * (1 + math.cos(math.pi * done)) / 2
    if config.schedule == "linear":
        return rise * (1 - done)
    return rise


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Build Adam (Kingma and Ba, 2015) or AdamW (Loshchilov and Hutter, 2019), fused by torch.

    Frozen parameters get no gradient, so the optimizer skips them: no moments, no decay.
    """
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind(
        [
            {"params": matrices, "weight_decay": config.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ],
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        eps=config.eps,
        fused=True,
    )


AVERAGE = "ema"
"""Key of a parameter's moving average in the optimizer state."""


@torch.no_grad()
def update_averages(optimizer: torch.optim.Optimizer, decay: float, step: int) -> None:
    """Update the moving average of each weight after step `step`, counted from 1.

    `e = d e + (1 - d) w` with `d = min(decay, (step - 1) / (step + 8))`: it starts at the weights
    of the first step, and early in a run it covers about the last ninth of the steps. The averages
    are part of the optimizer's state, so they are saved and resumed with it. A weight that has had
    no gradient yet has no state; it is its own average.
    """
    averages, weights = [], []
    for weight, state in optimizer.state.items():
        if AVERAGE not in state:
            state[AVERAGE] = weight.detach().clone()
        averages.append(state[AVERAGE])
        weights.append(weight)
    torch._foreach_lerp_(averages, weights, 1 - min(decay, (step - 1) / (step + 8)))


@torch.no_grad()
def gradient_sizes(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, float]:
    """Return the root mean square of the latest gradients of each weight, by its name.

    It comes from Adam's second moment, a mean over about `1 / (1 - beta2)` steps after clipping, so
    training computes nothing extra for it.
    """
    states = {
        name: optimizer.state[parameter]["exp_avg_sq"]
        for name, parameter in model.named_parameters()
        if "exp_avg_sq" in optimizer.state.get(parameter, {})
    }
    means = [moment.mean() for moment in states.values()]  # read once: this synchronizes a GPU
    sizes = torch.stack(means).sqrt().tolist() if means else []
    return dict(zip(states, sizes, strict=True))


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Return the state as `name of the parameter / name of the moment`, ready for safetensors."""
    return {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def load_optimizer_tensors(
    optimizer: torch.optim.Optimizer, model: nn.Module, tensors: Mapping[str, Tensor]
) -> None:
    """Restore the tensors of `optimizer_tensors`; a fused optimizer counts steps on its device."""
    parameters = dict(model.named_parameters())
    for full_name, value in tensors.items():
        name, key = full_name.rsplit("/", 1)
        optimizer.state[parameters[name]][key] = value.to(parameters[name].device)
