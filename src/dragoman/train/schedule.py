"""The learning rate over a run."""

import math

from dragoman.train.config import TrainConfig


def learning_rate(config: TrainConfig, step: int, done: float, d_model: int) -> float:
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
        return rise * (1 + math.cos(math.pi * min(1.0, done))) / 2
    if config.schedule == "linear":
        return rise * max(0.0, 1 - done)
    return rise
