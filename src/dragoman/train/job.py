"""What a run needs to know of a task: what is learned, from what, and how it is validated.

`train.run` runs any `Job`; each task assembles one from its recipe.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from dragoman.data.batches import Batch, Stream
from dragoman.folder.format import FolderConfig, Saves
from dragoman.models import ModelConfig

TELLING = 1.0
"""The least score that says more than the loss; scores go from 0 to 100."""

Say = Callable[[str], None]
"""Where a run says what it decides."""


BatchT = TypeVar("BatchT", bound=Batch)

Check = Callable[[ModelConfig, Stream[Any], Iterable[Any]], None]
"""Takes a model's config, its batches and those of its validation before the weights are drawn.

Raises InputError to reject them.
"""


def unchecked(config: ModelConfig, batches: Stream[Any], validation: Iterable[Any]) -> None:
    """Accept everything."""


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
    alignment: tuple[int, ...] | None = None
    """Of a translator: what aligns words, as its folder says."""

    def to_dict(self) -> dict[str, float]:
        """Return the figures by name, fit for JSON."""
        return {"loss": self.loss, **self.diagnostics, **self.scores}

    def __str__(self) -> str:
        scores = "".join(f", {name} {value:.2f}" for name, value in self.scores.items())
        judge = next(iter(self.scores), "")
        found = ((name.partition("."), value) for name, value in self.diagnostics.items())
        each = ", ".join(f"{part} {value:.2f}" for (of, _, part), value in found if of == judge)
        return f"loss {self.loss:.3f}{scores}" + (f" ({judge}: {each})" if each else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPart:
    """What a task says of its model on the model card."""

    title: str
    """What it is."""
    data: tuple[str, ...]
    """What it was trained and validated on, a line each."""
    architecture: str
    """Kind, layers and widths, as the rest of a sentence after the number of parameters."""
    judged: str
    """How the figures of the validation came about, in a sentence."""
    use: str
    """A command that uses it."""


class Job(Protocol[BatchT]):
    """A model and its task."""

    @property
    def model(self) -> nn.Module:
        """What learns: on the CPU when the job is assembled, then moved by the run."""

    @property
    def config(self) -> FolderConfig:
        """What the model folder says of it."""

    @property
    def tokenizers(self) -> tuple[Saves, Saves]:
        """Those of source and target, the same object twice where there is one."""

    @property
    def batches(self) -> Stream[BatchT]:
        """What it learns from."""

    def loss(self, batch: BatchT) -> Tensor:
        """Sum the loss over the batch's targets."""

    def measure(self) -> Validation:
        """Judge the model as it is now, in evaluation mode, and leave it in training mode."""

    def card(self, validation: Validation) -> CardPart:
        """What the model card says of the task and of how the validation judged."""


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
