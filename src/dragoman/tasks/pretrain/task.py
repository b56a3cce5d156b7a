"""Learning what was hidden of a text: texts of any kind, an encoder, judged by the loss.

Devlin et al. (2019, section 3.1): of each text 15 % of the tokens are chosen, at least one; of the
chosen 80 % are replaced by the mask token, 10 % by a random piece, and 10 % are unchanged, since no
mask will be seen later. The choice is drawn anew each epoch (RoBERTa, Liu et al. 2019, section
4.1). Texts longer than the limit are split.
"""

from collections.abc import Iterator
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.data.batches import BatchConfig, Epoch, Examples, SequenceBatches
from dragoman.data.dataset import (
    Ragged,
    SpecialIds,
    Splits,
    TextDataset,
    fingerprint_of,
    format_held_out,
    gather,
    hold_out_rows,
    windows_over,
)
from dragoman.data.documents import DocumentTexts, Split, prepare_documents
from dragoman.data.labelled import LabelledLayout, load_labelled, read_labelled
from dragoman.data.padding import NO_TARGET, framed
from dragoman.data.shape import Shape, random_ids, some_targets
from dragoman.data.tagged import TaggedLayout, load_tagged, read_tagged
from dragoman.errors import InputError
from dragoman.models import EncoderOnly, EncoderOnlyConfig
from dragoman.models.heads import MaskedLanguageHead
from dragoman.ranges import Probability, Range, check_ranges
from dragoman.tasks.embedder import Embedder
from dragoman.tasks.encoders import EncoderJob, EncoderRecipe, TextBatch
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
class MaskConfig:
    """What is hidden, and how."""

    share: Annotated[float, Range(above=0, most=1)] = 0.15
    """Fraction of the tokens to predict."""
    masked: Probability = 0.8
    """Fraction of these that are replaced by the mask token."""
    random: Probability = 0.1
    """Fraction of these that are replaced by a random piece; the rest stay unchanged."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.masked + self.random > 1.0:
            raise InputError(
                f"masked ({self.masked}) and random ({self.random}) are more than 1 together"
            )


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The ids that hide what is to be predicted."""

    mask_id: int
    pieces: tuple[int, int]
    """The smallest id of a piece, and the number of all ids: the range of random pieces."""

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "Vocabulary":
        """Return the vocabulary of a tokenizer. Raises InputError if it has no mask token."""
        return cls(tokenizer.special_id(MASK), (tokenizer.first_piece, tokenizer.vocab_size))


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedBatch(TextBatch):
    """Padded texts, some of whose tokens are hidden.

    A text that was split may be in `indices` several times.
    """

    targets_BL: Tensor
    """The original ids at the chosen positions, `NO_TARGET` elsewhere."""


@dataclass(frozen=True, slots=True)
class MaskedBatches:
    """Batches of partly hidden texts, grouped by similar length."""

    dataset: TextDataset
    config: BatchConfig
    vocabulary: Vocabulary
    masking: MaskConfig
    splits: Splits | None = None
    """Needed for subword sampling only."""

    @property
    def fingerprint(self) -> str:
        """A hash of the texts and the settings."""
        settings = [astuple(part) for part in (self.config, self.vocabulary, self.masking)]
        return fingerprint_of(self.dataset.content_hash, settings)

    @property
    def _parts(self) -> "SequenceBatches[_Parts]":
        """The parts of texts, nothing hidden."""
        return SequenceBatches(
            sequences=self.dataset.texts,
            examples=partial(_in_parts, self.dataset.special, self.config.max_length),
            content_hash=self.dataset.content_hash,
            config=self.config,
            splits=self.splits,
        )

    def draw(self, rng: np.random.Generator) -> Epoch[MaskedBatch]:
        """Sample the pieces, plan the batches, shuffle them, and draw what hides their tokens."""
        if not len(self.dataset.texts.ids):
            raise InputError(f"There is nothing to learn from: {self.dataset.name} holds no text.")
        planned: Epoch[Any] = self._parts.draw(rng)
        key = int(rng.integers(1 << 62))
        return replace(planned, make=lambda number: self._hide(planned.make(number), key, number))

    def fixed(self) -> Iterator[MaskedBatch]:
        """Yield all texts, each once, always in the same batches with the same tokens hidden."""
        return (self._hide(parts, 0, number) for number, parts in enumerate(self._parts.fixed()))

    def _hide(self, parts: "_Parts", *seed: int) -> MaskedBatch:
        """Draw what is hidden, with a separate generator for each batch."""
        (texts, indices), rng = parts, np.random.default_rng(seed)
        original_BL = framed(texts, self.dataset.special).numpy()
        chosen_BL = _chosen(texts.lengths, self.masking.share, rng)
        hidden_BL = _hidden(original_BL, self.vocabulary, self.masking, rng)
        return MaskedBatch(
            ids_BL=torch.from_numpy(np.where(chosen_BL, hidden_BL, original_BL)),
            targets_BL=torch.from_numpy(np.where(chosen_BL, original_BL, NO_TARGET)),
            num_tokens=len(texts.ids) + 2 * len(texts),
            num_targets=int(chosen_BL.sum()),
            indices=indices,
        )


def _in_parts(special: SpecialIds, limit: int, texts: Ragged) -> "Examples[_Parts]":
    """Return texts without bos and eos, those over the limit split."""
    filled = np.nonzero(texts.lengths)[0]
    starts, stops = texts.offsets[filled], texts.offsets[filled + 1]
    starts = starts + (texts.ids[starts] == special.bos_id)
    lengths = np.maximum(0, stops - (texts.ids[stops - 1] == special.eos_id) - starts)
    of, before, after = windows_over(lengths, limit, limit)
    starts, counts = starts[of] + before, after - before  # of each part

    def collate(rows: npt.NDArray[np.int64]) -> _Parts:
        return gather(texts.ids, starts[rows], counts[rows]), filled[of[rows]]

    return Examples(counts + 2, collate)


_Parts = tuple[Ragged, npt.NDArray[np.int64]]
"""The ids of parts, and the numbers of their texts."""


def _chosen(
    lengths: npt.NDArray[np.int64], share: float, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Draw the share of each text's positions, at least one; shape (B, L) with bos and eos."""
    place = np.arange(lengths.max(initial=0) + 2)
    is_text = (place > 0) & (place <= lengths[:, None])
    lots = np.where(is_text, rng.random(is_text.shape), 2.0)
    ranks = lots.argsort(axis=1).argsort(axis=1)
    counts = np.maximum(1, np.rint(share * lengths))
    chosen: npt.NDArray[np.bool_] = is_text & (ranks < counts[:, None])
    return chosen


def _hidden(
    original_BL: npt.NDArray[np.int64],
    vocabulary: Vocabulary,
    config: MaskConfig,
    rng: np.random.Generator,
) -> npt.NDArray[np.int64]:
    """Return what replaces each position if it is chosen: mask, random piece or the same."""
    lots_BL = rng.random(original_BL.shape)
    pieces_BL = rng.integers(*vocabulary.pieces, original_BL.shape)
    replaced_BL = np.where(lots_BL < config.masked + config.random, pieces_BL, original_BL)
    return np.where(lots_BL < config.masked, vocabulary.mask_id, replaced_BL)


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
        size = self.model.vocab_size or self.num_pieces
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
