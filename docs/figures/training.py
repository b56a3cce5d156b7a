"""Figures of training: learning rates (section 5.3) and label smoothing (section 5.4)."""

from pathlib import Path

import torch

from dragoman.lens.pictures import blank
from dragoman.train.config import TrainConfig
from dragoman.train.objective import reference_loss
from dragoman.train.optimizer import learning_rate
from figures.chinese import save

# ---------------------------------------------------------------- schedules

STEPS = range(50, 20_001, 50)
PEAK = 7e-4
NOAM = ((256, 4000), (512, 4000), (512, 8000))
OTHERS = (
    TrainConfig(
        max_steps=STEPS[-1], schedule="inverse-sqrt", learning_rate=PEAK, warmup_steps=4000
    ),
    TrainConfig(max_steps=STEPS[-1], schedule="cosine", learning_rate=PEAK, warmup_steps=1000),
    TrainConfig(max_steps=STEPS[-1], schedule="linear", learning_rate=PEAK, warmup_steps=1000),
    TrainConfig(max_steps=STEPS[-1], schedule="constant", learning_rate=PEAK, warmup_steps=1000),
)


def rates(config: TrainConfig, d_model: int = 512) -> list[float]:
    """The learning rate of every 50th step, up to 20,000, of a run that has so many."""
    return [learning_rate(config, step, step / STEPS[-1], d_model) for step in STEPS]


def plot_schedules(path: Path | str) -> Path:
    """Draw the learning rate over 20,000 steps: the paper's for three settings, and the others.

    Left, the paper's rate: it rises in a line for `warmup` steps and then falls with the root of
    the step. A longer warm-up has a lower peak, and so has a wider model. Right, the schedules
    whose peak is a setting by itself; cosine and linear end at 0 when the run does.
    """
    figure = blank(9.6, 3.8)
    left, right = figure.subplots(1, 2)
    for d_model, warmup in NOAM:
        config = TrainConfig(
            max_steps=STEPS[-1], schedule="noam", learning_rate=1.0, warmup_steps=warmup
        )
        left.plot(STEPS, rates(config, d_model), label=f"D = {d_model}, warm-up {warmup:,}")
    for config in OTHERS:
        name = f"{config.schedule}, warm-up {config.warmup_steps:,}"
        right.plot(STEPS, rates(config), label=name)
    left.set(title="noam: the paper's rate", ylabel="learning rate")
    right.set(title=f"schedules with a peak of {PEAK}")
    for axes in (left, right):
        axes.set(xlabel="step", xlim=(0, STEPS[-1]), ylim=(0, None))
        axes.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
        axes.grid(alpha=0.3)
        axes.legend(fontsize=9)
    return save(figure, path)


# ---------------------------------------------------------------- label smoothing

VOCABULARY = 1000
SMOOTHINGS = (0.0, 0.1, 0.3)


def smoothed_losses(probabilities: torch.Tensor, smoothing: float) -> torch.Tensor:
    """The loss of a token by the probability that the right one of 1,000 gets, shape as given.

    The rest of the probability is spread evenly over the other tokens.
    """
    others = ((1 - probabilities) / (VOCABULARY - 1)).log()
    logits_MV = others[:, None].repeat(1, VOCABULARY)
    logits_MV[:, 0] = probabilities.log()
    targets_M = torch.zeros(len(probabilities), dtype=torch.long)
    return reference_loss(logits_MV, targets_M, smoothing, reduction="none")


def plot_label_smoothing(path: Path | str) -> Path:
    """Draw the loss of a token by the probability of the right one, with and without smoothing.

    Without it, the loss falls as long as the probability rises: a model is paid for being sure.
    With it there is a lowest point, marked, at `1 - eps + eps / V`: surer than that costs more.
    """
    odds = torch.linspace(-4, 12, 400, dtype=torch.float64)
    probabilities = odds.sigmoid()
    figure = blank(8.0, 3.9)
    axes = figure.subplots()
    for smoothing in SMOOTHINGS:
        losses = smoothed_losses(probabilities, smoothing)
        (line,) = axes.plot(odds.numpy(), losses.numpy(), label=f"eps = {smoothing:g}")
        if smoothing:
            best = int(losses.argmin())
            axes.plot(odds[best], losses[best], "o", color=line.get_color())
    shown = (0.1, 0.5, 0.7, 0.9, 0.99, 0.999, 0.99999)
    axes.set_xticks(
        torch.tensor(shown, dtype=torch.float64).logit().tolist(), labels=[f"{p:g}" for p in shown]
    )
    axes.set(xlabel="probability of the right token", ylabel="loss", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9)
    return save(figure, path)
