"""The recipe of learning to say what kind of text something is."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from dragoman.data.labelled import LabelledLayout
from dragoman.errors import InputError
from dragoman.models import EncoderOnlyConfig
from dragoman.models.heads import ClassificationHead
from dragoman.tasks.encoders import NoisyBatchConfig
from dragoman.train.recipe import RunRecipe, TrainingFiles, check_places


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledFiles(TrainingFiles):
    """Texts with a label each."""

    layout: LabelledLayout = field(default_factory=LabelledLayout)
    """Where the files have what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifyRecipe(RunRecipe):
    """From a text to one of several labels, by an encoder."""

    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)

    task: Literal["classify"] = "classify"
    """Learning to say the label of each text."""
    data: LabelledFiles = field(default_factory=LabelledFiles)
    """The texts."""
    batch: NoisyBatchConfig = field(default_factory=NoisyBatchConfig)
    """How texts become batches."""
    model: EncoderOnlyConfig = field(
        default_factory=lambda: EncoderOnlyConfig(head=ClassificationHead())
    )
    """The architecture."""

    @property
    def head(self) -> ClassificationHead:
        """What the model ends in."""
        if not isinstance(self.model.head, ClassificationHead):
            raise InputError(
                f'task = "classify" contradicts model.head.kind = "{self.model.head.kind}"; leave '
                'the head out, or make it "classify"'
            )
        return self.model.head

    def check(self) -> None:
        """Refuse another head, and texts that the model has no positions for."""
        _ = self.head
        length = self.batch.max_length
        check_places(self.model.positions, length + 2, f"batch.max_length = {length}")
