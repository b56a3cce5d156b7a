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
