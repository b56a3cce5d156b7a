"""The parts of a recipe that all tasks share."""

import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from torch import Tensor

from dragoman.data.shape import Shape
from dragoman.errors import InputError, did_you_mean
from dragoman.files.reading import reject_pipe
from dragoman.files.writing import user_folder
from dragoman.folder.format import FolderConfig
from dragoman.folder.opening import Tokenizers, kept_tokenizers, load_tokenizers
from dragoman.models import ModelConfig, count_parameters
from dragoman.models.lora import LoraConfig
from dragoman.nn import PositionScheme
from dragoman.ranges import Range, check_range
from dragoman.text.train import TokenizerConfig, is_trained
from dragoman.train.config import TrainConfig

DATA_VARIABLE = "DRAGOMAN_DATA"
MOST_STEPS = 100_000
"""Limit of a run whose recipe sets no `max_steps`."""
LENGTH = 30
"""Default number of tokens of a sentence, on each side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFiles:
    """Where a run's files are looked for; each task's data extends it by the files' names."""

    root: str | None = None
    """Folder that relative paths start from; by default the current folder, then $DRAGOMAN_DATA."""
    source: str = ""
    """Where to get the data; shown in the error if it is not found."""
    cache: str | None = None
    """Folder for tokenized corpora; the user's cache folder by default."""

    def check(self) -> None:
        """Raise InputError unless every file exists; each task knows which."""
        raise NotImplementedError

    @property
    def summary(self) -> tuple[str, ...]:
        """Lines about the files for the model card."""
        raise NotImplementedError

    def find(self, name: str) -> Path:
        """Return the path of a file that the recipe names, or report where it was looked for.

        Raises InputError for a pipe too: whether a run reads a file again depends on its task, the
        cache and whether it resumes an earlier run.
        """
        if self.root is not None:
            folders = [Path(self.root)]
        else:
            variable = os.environ.get(DATA_VARIABLE)
            folders = [Path(), *([Path(variable)] if variable else [])]
        for folder in folders:
            path = folder / name
            if path.exists():
                reject_pipe(path)
                return path
        looked = ", ".join(str(folder) for folder in folders)
        where = f" The data: {self.source}." if self.source else ""
        raise InputError(
            f"There is no file {name} (looked in: {looked}); set data.root or the environment "
            f"variable {DATA_VARIABLE} to the folder that holds it.{where}"
        )

    @property
    def cache_folder(self) -> Path:
        """Folder of the tokenized corpora."""
        if self.cache is not None:
            return Path(self.cache)
        return user_folder("XDG_CACHE_HOME", ".cache") / "corpora"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartConfig:
    """What a run starts from instead of random weights: fine-tuning."""

    model: str | None = None
    """Model folder whose weights, architecture and tokenizers the run starts from."""
    freeze: tuple[str, ...] = ()
    """Prefixes of the names of parameters that are not trained, such as "encoder"."""
    lora: LoraConfig = field(default_factory=LoraConfig)
    """Adapters that are trained instead of the weights."""

    def __post_init__(self) -> None:
        if self.lora.rank is not None and (self.model is None or self.freeze):
            raise InputError(
                "lora.rank needs a model to adapt: give the folder to start from"
                if self.model is None
                else "freeze contradicts lora.rank, which freezes all weights; leave one out"
            )
        if self.freeze and self.model is None:
            raise InputError(
                f'freeze = ["{self.freeze[0]}", ...] without model would keep random weights; '
                "give the model folder to start from"
            )


def given_tokenizers(path: str) -> Tokenizers:
    """Read the tokenizers of `tokenizer.path`: those of a model folder, or both from one file.

    Raises InputError unless dragoman trained them.
    """
    given, why = Path(path), ""
    try:
        found = kept_tokenizers(given) if given.is_dir() else load_tokenizers(given, given)
    except InputError as error:
        found, why = None, f" ({str(error).removesuffix('.')})"
    if found is None or not all(map(is_trained, found)):
        raise InputError(
            f"tokenizer.path = {path} is neither a tokenizer.json that dragoman trained nor a "
            f"model folder with one{why}; to train with another library's tokenizer, start from a "
            "model of that library, with random weights if need be (--from)"
        )
    return found


def check_held_out(count: int) -> None:
    """Raise InputError unless at least one text is held out for validation."""
    why = "validation needs texts that training never sees"
    check_range("hold_out", count, Annotated[int, Range(least=1, why=why)])


def check_places(positions: PositionScheme, length: int, limit: str) -> None:
    """Raise InputError for more tokens than learned positions, bos and eos included."""
    known = positions.num_positions
    if known is not None and length > known:
        raise InputError(
            f"{limit}, so up to {length} tokens, contradicts model.positions.max_length = "
            f"{known}: the model has no positions beyond that"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecipe:
    """What `dragoman train` runs; each task extends it by its data, its model and its batches."""

    metrics: ClassVar[tuple[str, ...]] = ()
    """What the task measures besides the loss; the best model is chosen by the first."""
    reads_twice: ClassVar[bool] = False
    """Whether its task can learn by R-Drop."""

    task: str
    """The task: translate, generate, pretrain, classify or tag, or the module of your own."""
    description: str = ""
    """What the recipe trains, in one sentence."""
    expect: str = ""
    """The score to expect, and under which conditions."""
    out: str = ""
    """Folder of the run, which becomes the model folder."""
    data: DataFiles
    """The texts."""
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    """How text becomes pieces."""
    model: ModelConfig
    """The architecture."""
    train: TrainConfig = field(default_factory=lambda: TrainConfig(max_steps=MOST_STEPS))
    """How it learns."""
    start: StartConfig = field(default_factory=StartConfig)
    """What it starts from."""

    def __post_init__(self) -> None:
        known = (*self.metrics, "loss")
        if self.metric not in known:
            raise InputError(
                f'train.metric = "{self.metric}" is not measured by task = "{self.task}"; choose '
                f"from {', '.join(known)}{did_you_mean(self.metric, known)}"
            )
        if self.train.r_drop and not self.reads_twice:
            raise InputError(
                f"train.r_drop = {self.train.r_drop} is for translation; leave it out with "
                f'task = "{self.task}"'
            )
        self.check()

    @property
    def metric(self) -> str:
        """The metric that selects the best model; for all but the loss, more is better."""
        return self.train.metric or (*self.metrics, "loss")[0]

    @property
    def planned_steps(self) -> int | None:
        """Number of steps of the whole schedule; None if the recipe sets no `max_steps`."""
        return None if self.train.max_steps == MOST_STEPS else self.train.max_steps

    @property
    def num_pieces(self) -> int:
        """Size of the vocabulary; of one that training will build, the size that is asked for."""
        path = self.tokenizer.path
        if path is None or not Path(path).exists():  # a begun run has a copy
            return self.tokenizer.vocab_size
        return max(each.vocab_size for each in given_tokenizers(path))

    @property
    def own_task(self) -> str | None:
        """Module of a task from outside the package, which its model folder must name."""
        return self.task if "." in self.task else None

    def use(
        self,
        directions: Sequence[tuple[str, str]] = (),  # noqa: ARG002 (for those who extend it)
    ) -> str | None:
        """Return the command that uses the model in `{folder}`; None for the default of the task.

        `directions` are those of a multilingual model.
        """
        return None

    def check(self) -> None:
        """Raise InputError for settings that contradict each other in this task."""

    def taking_over(self, folder: FolderConfig) -> Self:  # noqa: ARG002 (for those who extend it)
        """Return the recipe with the model folder's settings other than the architecture."""
        return self

    def changed(self, settings: Mapping[str, object]) -> Self:
        """Return a copy with other settings, without checking that they fit the rest."""
        found = copy(self)
        for name, value in settings.items():
            object.__setattr__(found, name, value)
        return found

    @staticmethod
    def loss(model: Any, batch: Any, smoothing: float) -> Tensor:  # noqa: ANN401 (of the task's)
        """Return the loss of a model on a batch, summed over its targets."""
        raise NotImplementedError

    @staticmethod
    def sample(config: Any, shape: Shape, rng: np.random.Generator) -> Any:  # noqa: ANN401
        """Return a batch of this shape with random ids, for estimates."""
        raise NotImplementedError

    def work(self, length: int | None = None) -> "Work":
        """Return what the recipe requires of a device.

        Sentences have `length` tokens on each side, `LENGTH` by default. A vocabulary that training
        will build counts with the size that the recipe asks for. Raises InputError for a length
        beyond the recipe's own limit: no batch would contain such a sentence.
        """
        raise NotImplementedError

    def smaller_batch(self, shape: Shape, share: float) -> str:
        """Return in words the setting that gives batches about this share of a shape."""
        return f"batch.max_tokens to about {int(share * shape.tokens):,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a recipe requires of a device."""

    recipe: RunRecipe
    config: ModelConfig
    """The model, with its vocabulary sizes."""
    length: int
    """Number of tokens of a sentence, on each side."""
    shape: Shape
    """A full batch."""
    longest: int
    """Maximum number of tokens of a row, on each side."""
    answer: int = 0
    """Number of tokens that the model generates for each input; 0 for an encoder."""
    beam_size: int = 1
    """Number of hypotheses in decoding."""
    vocab_size: int = 0
    """Number of tokens that the model chooses from; 0 if it predicts labels."""

    @property
    def kind(self) -> Any:  # noqa: ANN401 (to mypy a class of dataclasses has no hash)
        """The recipe class, which together with config and shape decides the cost of a batch."""
        return type(self.recipe)

    @property
    def parameters(self) -> int:
        """Number of weights."""
        return sum(count_parameters(self.config).values())

    @property
    def src_length(self) -> int:
        """Number of source tokens; 0 if there is no source."""
        return self.length if self.shape.src_length else 0

    @property
    def prompt(self) -> int:
        """Number of prompt tokens that the answer continues; 0 if it answers a source."""
        return self.length - self.src_length

    def texts(self, rows: int) -> Shape:
        """Return a batch of this many sentences; without a source, they are the input."""
        return Shape(rows=rows, src_length=self.src_length, length=self.length)

    @property
    def step_tokens(self) -> int:
        """Number of tokens per optimizer step."""
        return self.recipe.train.accumulate * self.shape.tokens


def sentence_length(length: int | None, key: str, most: int) -> int:
    """Return the given length, or the default. Raises InputError if the recipe allows less."""
    if length is not None and length > most:
        raise InputError(
            f"length = {length} is over the recipe's {key} = {most}: ask for {most} or less, or "
            f"add {key}={length} to the recipe's settings"
        )
    return min(LENGTH, most) if length is None else length


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFiles(DataFiles):
    """A file of training examples, and one for validation."""

    train: str | None = None
    """File of training examples; .gz, .bz2, .xz and .zst are decompressed."""
    valid: str | None = None
    """File of validation examples."""
    hold_out: int = 1000
    """Number of examples of `train` held out if no validation file is given; at most a tenth."""

    def __post_init__(self) -> None:
        if self.valid is None:
            check_held_out(self.hold_out)

    @property
    def training(self) -> Path:
        """The file of training examples."""
        if self.train is None:
            raise InputError("there is nothing to learn from: set data.train")
        return self.find(self.train)

    @property
    def validation(self) -> Path | None:
        """The file for validation, if one is given."""
        return None if self.valid is None else self.find(self.valid)

    @property
    def files(self) -> list[Path]:
        """The training file and, if one is given, the validation file."""
        return [self.training, *filter(None, [self.validation])]

    def check(self) -> None:
        """Raise InputError unless every file exists."""
        _ = self.files

    @property
    def summary(self) -> tuple[str, ...]:
        """Lines about the files for the model card."""
        held_out = f"up to {self.hold_out} examples held out from the training data"
        return (
            f"training: `{self.train}`",
            f"validation: {held_out if self.valid is None else f'`{self.valid}`'}",
        )
