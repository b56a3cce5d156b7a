"""What a validation found, and which of two is better."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What one validation found."""

    loss: float
    """Mean over the targets in nats, without label smoothing: ln of the perplexity."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """What the task is judged by, such as `bleu` or `accuracy`: more is better."""
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    """More figures, which are written down and judge nothing."""
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

    Of equal scores the smaller loss is better: BLEU is 0 for a while, and the model learns.
    """
    if old is None:
        return True
    if metric != "loss" and new[metric] != old[metric]:
        return new[metric] > old[metric]
    return new["loss"] < old["loss"]


@contextmanager
def evaluating(model: nn.Module) -> Iterator[torch.device]:
    """Evaluate a model without gradients, then put it back to training; gives its device."""
    model.eval()
    with torch.inference_mode():
        yield next(model.parameters()).device
    model.train()
