"""What a run needs from a task: the model, the data and the validation.

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
"""The lowest score that is more informative than the loss; scores range from 0 to 100."""

Say = Callable[[str], None]
"""Prints what a run decides."""


BatchT = TypeVar("BatchT", bound=Batch)

Check = Callable[[ModelConfig, Stream[Any], Iterable[Any]], None]
"""Inspects a model's config, its batches and its validation batches before the weights are drawn.

Raises InputError to reject them.
"""


def unchecked(config: ModelConfig, batches: Stream[Any], validation: Iterable[Any]) -> None:
    """Accept everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The result of one validation."""

    loss: float
    """Mean over the targets in nats, without label smoothing: ln of the perplexity."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Scores that the task is judged by, such as `bleu` or `accuracy`: more is better."""
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    """Further figures, which are logged but do not judge the model."""
    signature: str = ""
    """How the scores were computed, if there are several ways."""
    examples: tuple[tuple[str, str], ...] = ()
    """Some answers, each with its reference."""
    warnings: tuple[str, ...] = ()
    """What is wrong with a model that has such figures long after its warm-up."""
    alignment: tuple[int, ...] | None = None
    """For a translator: what aligns words, as its folder config says."""

    def to_dict(self) -> dict[str, float]:
        """Return the figures by name, ready for JSON."""
        return {"loss": self.loss, **self.diagnostics, **self.scores}

    def __str__(self) -> str:
        scores = "".join(f", {name} {value:.2f}" for name, value in self.scores.items())
        judge = next(iter(self.scores), "")
        found = ((name.partition("."), value) for name, value in self.diagnostics.items())
        each = ", ".join(f"{part} {value:.2f}" for (of, _, part), value in found if of == judge)
        return f"loss {self.loss:.3f}{scores}" + (f" ({judge}: {each})" if each else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPart:
    """A task's part of the model card."""

    title: str
    """What the model is."""
    data: tuple[str, ...]
    """The training and validation data, one line each."""
    architecture: str
    """Kind, layers and widths: the rest of a sentence that begins with the number of parameters."""
    judged: str
    """How the validation figures were computed, in one sentence."""
    use: str
    """A command that uses the model."""


class Job(Protocol[BatchT]):
    """A model and its task."""

    @property
    def model(self) -> nn.Module:
        """The model to train: on the CPU when the job is assembled, then moved by the run."""

    @property
    def config(self) -> FolderConfig:
        """The config of the model folder."""

    @property
    def tokenizers(self) -> tuple[Saves, Saves]:
        """The tokenizers of source and target, the same object twice if there is only one."""

    @property
    def batches(self) -> Stream[BatchT]:
        """The training batches."""

    def loss(self, batch: BatchT) -> Tensor:
        """Sum the loss over the batch's targets."""

    def measure(self) -> Validation:
        """Validate the model in evaluation mode, and leave it in training mode."""

    def card(self, validation: Validation) -> CardPart:
        """Return the task's part of the model card, including how the validation judged."""


def is_better(new: Mapping[str, float], old: Mapping[str, float] | None, metric: str) -> bool:
    """Compare two validations by the loss (less is better) or by a score (more is better).

    Ties in the score go to the smaller loss, and scores below 1 (of 100) count as equal: a BLEU of
    0.3 is chance, while the loss already tells which model is better. NaN, or a missing score, is
    worse than any number, and so are all figures of a model without a finite loss: no folder could
    hold it.
    """
    return old is None or _rank(new, metric) > _rank(old, metric)


def _rank(found: Mapping[str, float], metric: str) -> tuple[float, ...]:
    """Return a sort key that is larger for better models."""
    score = 0.0 if metric == "loss" else found.get(metric, math.nan)
    if score < TELLING:
        score = 0.0
    if not math.isfinite(found.get("loss", 0.0)):
        score = math.nan
    values = (score, -found.get("loss", math.nan))
    return tuple(-math.inf if math.isnan(value) else value for value in values)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[torch.device]:
    """Evaluate a model without gradients, then put it back into training mode; yield its device."""
    model.eval()
    with torch.inference_mode():
        yield next(model.parameters()).device
    model.train()
