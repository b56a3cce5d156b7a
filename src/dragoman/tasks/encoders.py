"""What the tasks of an encoder share: recipe, data, job, words on the model card, answering."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from torch import Tensor

from dragoman.data.batches import Batch, BatchConfig, BatchSource, Stream
from dragoman.data.dataset import Ragged, Splits, TextDataset, format_held_out, hold_out_rows
from dragoman.data.labelled import LabelledDataset
from dragoman.data.padding import framed
from dragoman.data.prepare import special_ids
from dragoman.data.shape import Shape
from dragoman.data.tagged import TaggedDataset
from dragoman.decode import Items, Scheduler
from dragoman.decode.requests import Withdrawn
from dragoman.decoding import READING
from dragoman.errors import InputError
from dragoman.folder.format import FolderConfig, ReadingDefaults
from dragoman.folder.opening import ModelFolder
from dragoman.models import EncoderOnly, EncoderOnlyConfig
from dragoman.models.heads import ClassificationHead, MaskedLanguageHead, NoHead, TaggingHead
from dragoman.nn import Arithmetic, evaluation_view, inference
from dragoman.ranges import Count, check_range
from dragoman.tasks.answering import Answering, in_windows
from dragoman.tasks.folders import check_vocabulary
from dragoman.tasks.hiding import NoisyBatchConfig, hide_tokens
from dragoman.tasks.lines import as_texts
from dragoman.tasks.task import described, does, model_of
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.job import CardPart, Check, Say, Validation
from dragoman.train.recipe import RunRecipe, TrainingFiles, Work, check_places, sentence_length
from dragoman.train.start import begin_model, check_tokens, with_labels

RecipeT = TypeVar("RecipeT", bound="EncoderRecipe")
BatchT = TypeVar("BatchT", bound="TextBatch")
BatchT_co = TypeVar("BatchT_co", bound="TextBatch", covariant=True)
DataT = TypeVar("DataT", bound=LabelledDataset | TaggedDataset | TextDataset)
LabelledT = TypeVar("LabelledT", LabelledDataset, TaggedDataset)
Answer = TypeVar("Answer")
Found = TypeVar("Found")
TOKENS: int = READING.max_batch_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBatch(Batch):
    """Padded texts; each task adds its targets. In the names of tensors: B texts, L positions."""

    ids_BL: Tensor
    """bos, piece ids, eos, padding."""

    def reading(self, ids_BL: Tensor) -> Self:
        """Return the batch with other ids, some of them hidden."""
        return replace(self, ids_BL=ids_BL)

    @property
    def shape(self) -> Shape:
        """The size of the batch."""
        rows, length = self.ids_BL.shape
        return Shape(rows=rows, length=length, targets=self.num_targets)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderRecipe(RunRecipe):
    """A recipe whose model is an encoder with the head of the task."""

    head_type: ClassVar[type[ClassificationHead | TaggingHead | MaskedLanguageHead]]

    batch: BatchConfig = field(default_factory=BatchConfig)
    """How texts become batches."""
    model: EncoderOnlyConfig
    """The architecture."""

    def check(self) -> None:
        """Raise InputError for another head, or texts longer than the model's positions."""
        if not isinstance(self.model.head, self.head_type):
            raise InputError(
                f'task = "{self.task}" contradicts model.head.kind = "{self.model.head.kind}"; '
                f'leave the head out, or make it "{self.head_type().kind}"'
            )
        length = self.batch.max_length
        check_places(self.model.positions, length + 2, f"batch.max_length = {length}")

    def work(self, length: int | None = None) -> Work:
        """Return what reading texts and predicting a label for each text or word takes."""
        batch = self.batch
        tokens = sentence_length(length, "batch.max_length", batch.max_length)
        size = self.model.vocab_size or self.num_pieces
        return Work(
            recipe=self,
            config=with_labels(replace(self.model, vocab_size=size)),
            length=tokens,
            shape=Shape(rows=max(1, batch.max_tokens // tokens), length=tokens),
            longest=batch.max_length,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRecipe(EncoderRecipe):
    """A recipe whose model predicts labels; if its head names none, the data decides."""

    data: TrainingFiles
    """The examples."""
    batch: NoisyBatchConfig = field(default_factory=NoisyBatchConfig)
    """How texts become batches."""

    @property
    def head(self) -> ClassificationHead | TaggingHead:
        """The head of the model."""
        head = self.model.head
        assert isinstance(head, ClassificationHead | TaggingHead)  # noqa: S101 (it was checked)
        return head

    def with_labels(self, labels: tuple[str, ...]) -> Self:
        """Return the recipe with the labels of its data."""
        return replace(self, model=replace(self.model, head=replace(self.head, labels=labels)))


class EncoderBatches(BatchSource[BatchT_co], Protocol[BatchT_co]):
    """Batches for training and, of held-out texts, for validation."""

    def fixed(self) -> Iterator[BatchT_co]:
        """Yield all texts, each once, always in the same batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderJob(Generic[RecipeT, DataT, BatchT]):
    """An encoder and texts; each task defines its validation."""

    title: ClassVar[str]
    """What the model card calls the model."""
    judged: ClassVar[str]
    """What its figures mean, in a sentence."""
    use: ClassVar[str]
    """A command that uses it."""

    recipe: RecipeT
    config: FolderConfig
    model: EncoderOnly
    tokenizer: Tokenizer
    batches: Stream[BatchT]
    held: DataT
    """The texts for validation."""
    validation: tuple[BatchT, ...]
    """The same in batches."""

    @classmethod
    def of(
        cls,
        recipe: RecipeT,
        tokenizer: Tokenizer,
        texts: tuple[DataT, DataT],
        source: Callable[[DataT, BatchConfig, Splits | None], EncoderBatches[BatchT]],
        check: Check,
        reading: ReadingDefaults | None = None,
    ) -> Self:
        """Build model and batches from the texts for training and those for validation.

        `source` puts texts into batches and samples subwords by the splits; `check` may reject the
        batches before the weights are drawn.
        """
        training, held, config = *texts, recipe.batch
        size = recipe.model.vocab_size or tokenizer.vocab_size
        model = replace(recipe.model, vocab_size=size)
        splits = tokenizer.splits() if config.subword_sampling else None
        seed, judges = recipe.train.seed, held.content_hash
        batches = Stream(source(training, config, splits), seed=seed, validation=judges)
        check_tokens(model, tokenizer)
        validation = tuple(source(held, config, None).fixed())
        check(model, batches, validation)
        return cls(
            recipe=recipe,
            config=FolderConfig(model=model, reading=reading),
            model=begin_model(EncoderOnly, model, recipe),
            tokenizer=tokenizer,
            batches=batches,
            held=held,
            validation=validation,
        )

    @property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """The one tokenizer, for both sides."""
        return self.tokenizer, self.tokenizer

    def loss(self, batch: BatchT) -> Tensor:
        """Sum the loss over the batch's targets; some tokens may be hidden."""
        recipe = self.recipe
        if isinstance(recipe.batch, NoisyBatchConfig):
            hidden = recipe.batch.token_dropout
            batch = batch.reading(hide_tokens(batch.ids_BL, hidden, self.tokenizer))
        return recipe.loss(self.model, batch, recipe.train.label_smoothing)

    def card(self, validation: Validation) -> CardPart:  # noqa: ARG002 (the form of all tasks)
        """Return what the model card says about the texts, the model and its figures."""
        return CardPart(
            title=self.title,
            data=self.recipe.data.summary,
            architecture=described("an encoder", self.recipe.model),
            judged=self.judged,
            use=self.use,
        )


def read_labels(
    recipe: LabelRecipe, load: Callable[[Path, Sequence[str]], LabelledT], what: str, say: Say
) -> tuple[LabelledT, LabelledT]:
    """Read examples for training and for validation: a separate file, or a held-out part.

    `load` reads a file given the known labels; `what` is the name of an example.
    """
    data = recipe.data
    training = load(data.training, recipe.head.labels)
    for sentence in training.report(recipe.batch.max_length):
        say(sentence)
    if data.validation is not None:
        return training, load(data.validation, training.labels)
    rest, held = hold_out_rows(training.as_texts().texts, data.hold_out, recipe.train.seed)
    left_out = len(training) - len(rest) - len(held)
    say(format_held_out(training.name, len(held), left_out, what))
    return training.take(rest), training.take(held)


@dataclass(frozen=True, slots=True)
class Row:
    """What an encoder reads at once: ids without bos and eos."""

    ids: list[int]
    words: list[int] = field(default_factory=list)
    """Where words begin in `ids`, if the answer depends on them."""
    features: list[tuple[int, ...]] = field(default_factory=list)
    """The features of each of these words."""


class EncoderReader(Answering[int, Answer], Generic[Answer, Found]):
    """An encoder with a label head, and its tokenizer; each task interprets the labels.

    `reading` says what a word was in training, and above which length texts are read in parts. The
    only option of an answer is the budget of a batch in tokens, which affects only memory and
    speed.
    """

    head: ClassVar[type[ClassificationHead | TaggingHead]]
    """The head of the task's models."""

    def __init__(
        self,
        model: EncoderOnly,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        reading: ReadingDefaults | None = None,
        *,
        precision: Arithmetic = "fp32",
    ) -> None:
        check_vocabulary("model's", tokenizer, model.embedding.weight)
        self.tokenizer = tokenizer
        self.labels = tuple(labels)
        self.reading = reading or ReadingDefaults()
        self._model = evaluation_view(model)
        self._precision: Arithmetic = precision
        self.scheduler = Scheduler(self._run)

    @classmethod
    def of(cls, folder: ModelFolder, precision: Arithmetic = "fp32") -> Self:
        """Create one from an open folder. Raises InputError unless its model does the task."""
        model = model_of(folder, EncoderOnly)
        config = folder.config.model
        head = config.head if isinstance(config, EncoderOnlyConfig) else NoHead()
        if not isinstance(head, cls.head):
            raise InputError(f"{folder.path} holds a model that {does(folder.config)}.")
        return cls(
            model, folder.src_tokenizer, head.labels, folder.config.reading, precision=precision
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        memo[id(self)] = other = copy(self)
        vars(other).update(deepcopy(vars(self), memo))
        return other

    def answers(self, text: str | Iterable[str], budget: int) -> Answer | list[Answer]:
        """Return the answer to a text, or the answers to any number of them, in the same order."""
        found = [*self.submit(as_texts(text), budget).in_order()]
        return found[0] if isinstance(text, str) else found

    def _chosen(self, options: int | None) -> int:
        budget = TOKENS if options is None else options
        check_range("max_batch_tokens", budget, Count)
        return budget

    def stream(
        self, lines: Iterable[str], *, max_batch_tokens: int = TOKENS, window: int = 4096
    ) -> Iterator[Answer]:
        """Answer an endless stream: lines are taken in windows, so memory is bounded."""
        yield from in_windows(lines, lambda taken: self.submit(taken, max_batch_tokens), window)

    @abstractmethod
    def _found(self, ids_BL: Tensor, rows: Sequence[Row]) -> Iterable[Found]:
        """Return what a course is sent for each of these rows, given bos, ids, eos and padding."""

    def _run(self, _how: None, rows: list[Row], _withdrawn: Withdrawn) -> list[Found]:
        with inference(self._model, self._precision) as device:
            ids_BL = framed(Ragged.of([row.ids for row in rows]), special_ids(self.tokenizer))
            return [*self._found(ids_BL.to(device), rows)]


def read(rows: Sequence[Row], budget: int) -> Items[Row]:
    """Return what a course yields to have rows read, in batches of at most `budget` tokens."""
    return Items(values=rows, costs=[len(row.ids) + 2 for row in rows], budget=budget)
