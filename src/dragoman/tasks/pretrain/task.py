"""Learning what was hidden of a text: texts of any kind, an encoder, judged by the loss."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from dragoman.data.dataset import TextDataset, format_held_out, hold_out_rows
from dragoman.data.documents import DocumentTexts, Split, prepare_documents
from dragoman.data.labelled import LabelledLayout, load_labelled, read_labelled
from dragoman.data.padding import NO_TARGET
from dragoman.data.shape import Shape, random_ids, some_targets
from dragoman.data.tagged import TaggedLayout, load_tagged, read_tagged
from dragoman.errors import InputError
from dragoman.models import EncoderOnly, EncoderOnlyConfig
from dragoman.models.heads import MaskedLanguageHead
from dragoman.tasks.embedder import Embedder
from dragoman.tasks.encoders import EncoderJob, EncoderRecipe
from dragoman.tasks.pretrain.batches import (
    MaskConfig,
    MaskedBatch,
    MaskedBatches,
    Vocabulary,
)
from dragoman.tasks.task import Task
from dragoman.text.tokenizer import MASK, Tokenizer
from dragoman.text.train import TokenizerConfig
from dragoman.train.job import Check, Say, Validation, evaluating, unchecked
from dragoman.train.objective import masked_guesses, masked_loss
from dragoman.train.recipe import DataFiles, Work, check_held_out
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import begin_tokenizer
from dragoman.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlabelledFiles(DataFiles):
    """Texts of any kind: of labelled and of tagged ones, only the text is read."""

    texts: tuple[str, ...] = ()
    """Files of text; .gz, .bz2, .xz and .zst are decompressed."""
    split: Split = "line"
    """What counts as a text in these files: a "line", the lines up to the next "blank-line", or the
    "file"."""
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
        """The files of each kind. Raises InputError unless every file is there."""
        kinds = {"texts": self.texts, "labelled": self.labelled, "tagged": self.tagged}
        if not any(kinds.values()):
            raise InputError(
                "there is nothing to learn from: set data.texts, data.labelled or data.tagged"
            )
        return {kind: [self.find(name) for name in names] for kind, names in kinds.items()}

    def check(self) -> None:
        """Raise InputError unless every file is there."""
        _ = self.paths

    @property
    def summary(self) -> tuple[str, ...]:
        """What the model card says about them, one line each."""
        names = (*self.texts, *self.labelled, *self.tagged)
        held_out = f"validation: up to {counted(self.hold_out, 'text')} held out"
        return (*(f"`{name}`" for name in names), held_out)

    def read(self) -> Iterator[str]:
        """Yield all texts as the tokenizer sees them, tagged words one by one."""
        paths = self.paths
        yield from DocumentTexts(paths["texts"], self.split)
        for path in paths["labelled"]:
            yield from (text for _, _, text in read_labelled(path, self.labelled_layout))
        for path in paths["tagged"]:
            yield from chain.from_iterable(s.words for s in read_tagged(path, self.tagged_layout))

    def load(self, tokenizer: Tokenizer) -> TextDataset:
        """Return all texts as ids."""
        paths, parts = self.paths, list[TextDataset]()
        if texts := paths["texts"]:
            parts.append(prepare_documents(texts, self.split, tokenizer, self.cache_folder)[0])
        for path in paths["labelled"]:
            parts.append(load_labelled(path, self.labelled_layout, tokenizer).as_texts())
        for path in paths["tagged"]:
            parts.append(load_tagged(path, self.tagged_layout, tokenizer).as_texts())
        return TextDataset.joined(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedRecipe(EncoderRecipe):
    """The hidden tokens of a text, by an encoder, which other recipes then start from."""

    head_type = MaskedLanguageHead
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)

    task: Literal["pretrain"] = "pretrain"
    """Learn to predict masked tokens."""
    data: UnlabelledFiles = field(default_factory=UnlabelledFiles)
    """The texts."""
    tokenizer: TokenizerConfig = field(default_factory=lambda: TokenizerConfig(specials=(MASK,)))
    """How text becomes pieces."""
    masking: MaskConfig = field(default_factory=MaskConfig)
    """What is hidden, and how."""
    model: EncoderOnlyConfig = field(
        default_factory=lambda: EncoderOnlyConfig(head=MaskedLanguageHead())
    )
    """The architecture."""

    @property
    def metric(self) -> str:
        """The metric that chooses the best model."""
        return self.train.metric or "loss"

    def check(self) -> None:
        """Raise InputError for another head, too few positions or a missing mask token."""
        EncoderRecipe.check(self)
        if self.start.model is None and MASK not in self.tokenizer.specials:
            raise InputError(
                f'task = "pretrain" needs tokenizer.specials = ["{MASK}"], the token that replaces '
                "hidden ones"
            )

    def work(self, length: int | None = None) -> Work:
        """Return what reading texts and predicting the hidden tokens takes."""
        work = EncoderRecipe.work(self, length)
        targets = round(self.masking.share * work.shape.tokens)
        size = self.model.vocab_size or self.tokenizer.vocab_size
        return replace(work, shape=replace(work.shape, targets=targets), vocab_size=size)

    @staticmethod
    def loss(model: EncoderOnly, batch: MaskedBatch, smoothing: float) -> Tensor:
        """Sum the cross-entropy of the hidden tokens; the output layer runs only there."""
        if not torch.is_grad_enabled():  # a validation, which also counts the right guesses
            return masked_guesses(model, batch.ids_BL, batch.targets_BL)[0]
        return masked_loss(model, batch.ids_BL, batch.targets_BL, smoothing)

    @staticmethod
    def sample(config: EncoderOnlyConfig, shape: Shape, rng: np.random.Generator) -> MaskedBatch:
        """Return a batch of random ids."""
        ids_BL = random_ids((shape.rows, shape.length), config.vocab_size, config.pad_id, rng)
        return MaskedBatch(
            ids_BL=ids_BL,
            targets_BL=some_targets(ids_BL, shape.targets, NO_TARGET),
            num_tokens=ids_BL.numel(),
            num_targets=ids_BL.numel() if shape.targets is None else shape.targets,
            indices=np.arange(shape.rows),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedJob(EncoderJob[MaskedRecipe, TextDataset, MaskedBatch]):
    """An encoder and texts."""

    title = "Masked language model"
    judged = (
        "The loss is in nats per hidden token, the accuracy is the share, in percent, of hidden "
        "tokens that are guessed."
    )
    use = "dragoman train RECIPE --from THIS_FOLDER --out DIR"

    def measure(self) -> Validation:
        """Measure the loss and the share of hidden tokens that are guessed."""
        loss, correct = 0.0, 0
        with evaluating(self.model) as device:
            for batch in (batch.to(device) for batch in self.validation):
                summed, guessed = masked_guesses(self.model, batch.ids_BL, batch.targets_BL)
                loss += summed.item()
                correct += int(guessed)
        total = sum(batch.num_targets for batch in self.validation)
        return Validation(loss=loss / total, scores={"accuracy": 100 * correct / total})


def assemble(
    recipe: MaskedRecipe, folder: RunFolder, say: Say, check: Check = unchecked
) -> MaskedJob:
    """Read the texts, train or load the tokenizer, and build model and batches."""
    data = recipe.data
    tokenizer = begin_tokenizer(recipe, data.read(), folder, say)
    texts = data.load(tokenizer)
    rest, held = hold_out_rows(texts.texts, data.hold_out, recipe.train.seed)
    say(f"{counted(len(texts), 'text')}, {counted(len(texts.texts.ids), 'token')}.")
    say(format_held_out(texts.name, len(held), len(texts) - len(rest) - len(held), "text"))
    training, validation = (replace(texts, texts=texts.texts.take(rows)) for rows in (rest, held))
    vocabulary = Vocabulary.of(tokenizer)

    return MaskedJob.of(
        recipe,
        tokenizer,
        (training, validation),
        lambda texts, config, splits: MaskedBatches(
            texts, config, vocabulary, recipe.masking, splits
        ),
        check,
    )


TASK = Task(
    recipe=MaskedRecipe,
    assemble=assemble,
    kind="masked-language",
    does="guesses hidden words, to start from (dragoman train --from) or to embed texts "
    "with (dragoman embed)",
    use="dragoman train RECIPE --from {folder}",
    load=Embedder.of,
)
