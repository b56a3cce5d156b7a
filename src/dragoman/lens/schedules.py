"""How the learning rate goes over a run (paper, section 5.3)."""

from __future__ import annotations

from pathlib import Path

from dragoman.lens.picture import blank, save
from dragoman.train.config import TrainConfig
from dragoman.train.optimizer import learning_rate

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
