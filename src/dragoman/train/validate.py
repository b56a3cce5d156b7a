"""What a validation found, and which of two is better."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import nn

TELLING = 1.0
"""The least score that says more than the loss; scores go from 0 to 100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What one validation found."""

    loss: float
    """Mean over the targets in nats, without label smoothing: ln of the perplexity."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """What the task is judged by, such as `bleu` or `accuracy`: more is better."""
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    """More figures, which are written down and judge nothing."""
    signature: str = ""
    """How the scores were computed, where there are several ways."""
    examples: tuple[tuple[str, str], ...] = ()
    """Some answers, each beside the right one."""
    warnings: tuple[str, ...] = ()
    """What is wrong with a model that finds such figures when its warm-up is long over."""

    def to_dict(self) -> dict[str, float]:
        """Return the figures by name, fit for JSON."""
        return {"loss": self.loss, **self.diagnostics, **self.scores}

    def __str__(self) -> str:
        scores = "".join(f", {name} {value:.2f}" for name, value in self.scores.items())
        return f"loss {self.loss:.3f}{scores}"


def is_better(new: Mapping[str, float], old: Mapping[str, float] | None, metric: str) -> bool:
    """Compare two validations by the loss (less is better) or by a score (more is better).

    Of equal scores the smaller loss is better, and scores below 1 (of 100) count as equal: a BLEU
    of 0.3 is chance while the loss already tells which model is better. NaN, or a score that
    is missing, is worse than any number.
    """
    return old is None or _rank(new, metric) > _rank(old, metric)


def _rank(found: Mapping[str, float], metric: str) -> tuple[float, ...]:
    """A key that grows with the worth of a model."""
    score = 0.0 if metric == "loss" else found.get(metric, math.nan)
    if score < TELLING:
        score = 0.0
    values = (score, -found.get("loss", math.nan))
    return tuple(-math.inf if math.isnan(value) else value for value in values)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[torch.device]:
    """Evaluate a model without gradients, then put it back to training; gives its device."""
    model.eval()
    with torch.inference_mode():
        yield next(model.parameters()).device
    model.train()
