"""What a run needs to know of a task: what is learned, from what, and how it is validated.

`train.run` runs any `Job`; each task assembles one from its recipe.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from torch import Tensor, nn

from dragoman.data.batches import Batch, Stream
from dragoman.models import ModelConfig
from dragoman.models.folder import FolderConfig, Saves
from dragoman.train.validate import Validation

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
