"""The recipe for learning to label texts."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from dragoman.data.labelled import LabelledLayout
from dragoman.models import EncoderOnlyConfig
from dragoman.models.heads import ClassificationHead
from dragoman.tasks.encoders import LabelRecipe, NoisyBatchConfig
from dragoman.train.recipe import TrainingFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledFiles(TrainingFiles):
    """Texts with a label each."""

    layout: LabelledLayout = field(default_factory=LabelledLayout)
    """Columns or keys of the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifyRecipe(LabelRecipe):
    """From a text to one of several labels, by an encoder."""

    head_type = ClassificationHead
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)

    task: Literal["classify"] = "classify"
    """Learn the label of each text."""
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
        """Raise InputError for another head, and for texts longer than the positions."""
        _ = self.head
        length = self.batch.max_length
        check_places(self.model.positions, length + 2, f"batch.max_length = {length}")
