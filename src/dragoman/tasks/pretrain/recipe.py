"""The recipe for learning from unlabelled texts: a masked language model."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import ClassVar, Literal

from dragoman.data.batches import BatchConfig
from dragoman.data.documents import DocumentTexts, Split
from dragoman.data.labelled import LabelledLayout, read_labelled
from dragoman.data.tagged import TaggedLayout, read_tagged
from dragoman.errors import InputError
from dragoman.models import EncoderOnlyConfig
from dragoman.models.heads import MaskedLanguageHead
from dragoman.tasks.encoders import EncoderRecipe
from dragoman.tasks.pretrain.batches import MaskConfig
from dragoman.text.tokenizer import MASK
from dragoman.text.train import TokenizerConfig
from dragoman.train.recipe import DataFiles, check_held_out


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlabelledFiles(DataFiles):
    """Texts of any kind: of labelled and of tagged ones, only the text is read."""

    texts: tuple[str, ...] = ()
    """Files of text; .gz, .xz and .zst are decompressed."""
    split: Split = "line"
    """What a text is in these: a "line", the lines up to the next "blank-line", or the "file"."""
    labelled: tuple[str, ...] = ()
    """Files of labelled texts."""
    labelled_layout: LabelledLayout = field(default_factory=LabelledLayout)
    """Columns or keys of those files."""
    tagged: tuple[str, ...] = ()
    """Files of tagged words."""
    tagged_layout: TaggedLayout = field(default_factory=TaggedLayout)
    """Columns or keys of those files."""
    hold_out: int = 1000
    """Number of texts held out for validation; at most a tenth."""

    def __post_init__(self) -> None:
        """Raise InputError if there would be nothing to validate on."""
        check_held_out(self.hold_out)

    @property
    def paths(self) -> dict[str, list[Path]]:
        """The files of each kind. Raises InputError unless every one is there."""
        kinds = {"texts": self.texts, "labelled": self.labelled, "tagged": self.tagged}
        if not any(kinds.values()):
            raise InputError(
                "there is nothing to learn from: set data.texts, data.labelled or data.tagged"
            )
        return {kind: [self.find(name) for name in names] for kind, names in kinds.items()}

    def check(self) -> None:
        """Raise InputError unless every file is there."""
        _ = self.paths

    def read(self) -> Iterator[str]:
        """All texts as the tokenizer sees them, tagged words one by one."""
        paths = self.paths
        yield from DocumentTexts(paths["texts"], self.split)
        for path in paths["labelled"]:
            yield from (text for _, _, text in read_labelled(path, self.labelled_layout))
        for path in paths["tagged"]:
            yield from chain.from_iterable(s.words for s in read_tagged(path, self.tagged_layout))


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedRecipe(EncoderRecipe):
    """The hidden tokens of a text, by an encoder, which other recipes then start from."""

    head_type = MaskedLanguageHead
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)

    task: Literal["pretrain"] = "pretrain"
    """Learn to predict hidden tokens."""
    data: UnlabelledFiles = field(default_factory=UnlabelledFiles)
    """The texts."""
    tokenizer: TokenizerConfig = field(default_factory=lambda: TokenizerConfig(specials=(MASK,)))
    """How text becomes pieces."""
    masking: MaskConfig = field(default_factory=MaskConfig)
    """What is hidden, and how."""
    batch: BatchConfig = field(default_factory=BatchConfig)
    """How texts become batches."""
    model: EncoderOnlyConfig = field(
        default_factory=lambda: EncoderOnlyConfig(head=MaskedLanguageHead())
    )
    """The architecture."""

    @property
    def metric(self) -> str:
        """What the best model is chosen by."""
        return self.train.metric or "loss"

    def check(self) -> None:
        """Raise InputError for another head, too few positions or a missing mask token."""
        EncoderRecipe.check(self)
        if self.start.model is None and MASK not in self.tokenizer.specials:
            raise InputError(
                f'task = "pretrain" needs tokenizer.specials = ["{MASK}"], which stands for what '
                "is hidden"
            )
