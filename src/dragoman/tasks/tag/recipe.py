"""The recipe for learning to tag words."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from dragoman.data.tagged import TaggedLayout
from dragoman.models import EncoderOnlyConfig
from dragoman.models.heads import TaggingHead
from dragoman.tasks.encoders import LabelRecipe, NoisyBatchConfig
from dragoman.train.recipe import TrainingFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedFiles(TrainingFiles):
    """Sentences with a tag for each word."""

    layout: TaggedLayout = field(default_factory=TaggedLayout)
    """Columns or keys of the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TagRecipe(LabelRecipe):
    """From words to a tag for each, by an encoder."""

    head_type = TaggingHead
    metrics: ClassVar[tuple[str, ...]] = ("f1", "precision", "recall", "accuracy")

    task: Literal["tag"] = "tag"
    """Learn the tag of each word."""
    data: TaggedFiles = field(default_factory=TaggedFiles)
    """The sentences."""
    batch: NoisyBatchConfig = field(default_factory=NoisyBatchConfig)
    """How sentences become batches."""
    model: EncoderOnlyConfig = field(default_factory=lambda: EncoderOnlyConfig(head=TaggingHead()))
    """The architecture."""
