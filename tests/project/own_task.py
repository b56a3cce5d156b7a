"""A task from outside the package: say whether a line holds an odd number of words.

`test_own_task.py` copies this file into a package of its own, `mine`, and a recipe names it by
`task = "mine.own_task"`. CONTRIBUTING follows it step by step.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.data.batches import BatchConfig, Examples, SequenceBatches, Stream
from dragoman.data.dataset import Ragged
from dragoman.data.padding import framed
from dragoman.data.prepare import encode_all, special_ids
from dragoman.data.shape import Shape, random_ids
from dragoman.files.reading import read_lines
from dragoman.folder.format import FolderConfig
from dragoman.folder.opening import ModelFolder
from dragoman.models import EncoderOnly, EncoderOnlyConfig
from dragoman.models.heads import ClassificationHead
from dragoman.nn import Arithmetic
from dragoman.tasks.encoders import EncoderRecipe, TextBatch
from dragoman.tasks.folders import read_folder
from dragoman.tasks.task import EvaluationData, Report, Task, model_of
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.job import CardPart, Check, Say, Validation, evaluating
from dragoman.train.recipe import TrainingFiles
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import begin_model, begin_tokenizer, check_tokens

HEAD = ClassificationHead(labels=("even", "odd"))


@dataclass(frozen=True, slots=True, kw_only=True)
class OddRecipe(EncoderRecipe):
    """What can be set; every key has a default."""

    head_type = ClassificationHead
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)

    task: Literal["mine.own_task"] = "mine.own_task"
    data: TrainingFiles = field(default_factory=TrainingFiles)
    batch: BatchConfig = field(default_factory=BatchConfig)
    model: EncoderOnlyConfig = field(default_factory=lambda: EncoderOnlyConfig(head=HEAD))

    @staticmethod
    def loss(model: EncoderOnly, batch: "OddBatch", smoothing: float) -> Tensor:
        """A sum over `num_targets`, never a mean."""
        logits_BC = model(batch.ids_BL)
        return F.cross_entropy(logits_BC, batch.odd_B, label_smoothing=smoothing, reduction="sum")

    @staticmethod
    def sample(config: EncoderOnlyConfig, shape: Shape, rng: np.random.Generator) -> "OddBatch":
        """A batch of random ids."""
        ids_BL = random_ids((shape.rows, shape.length), config.vocab_size, config.pad_id, rng)
        return OddBatch(
            ids_BL=ids_BL,
            odd_B=torch.zeros(shape.rows, dtype=torch.long),
            num_targets=shape.rows,
            num_tokens=ids_BL.numel(),
            indices=np.arange(shape.rows),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OddBatch(TextBatch):
    """Padded lines, and for each 1 where it has an odd number of words."""

    odd_B: Tensor


def read_batches(
    path: Path, tokenizer: Tokenizer, config: BatchConfig
) -> SequenceBatches[OddBatch]:
    """The batches of a file."""
    lines = list(read_lines(path))
    odd, special = np.array([len(line.split()) % 2 for line in lines]), special_ids(tokenizer)

    def examples(ids: Ragged) -> Examples[OddBatch]:
        """Tokens of each line in a batch, which is what batches are planned by, and how some of
        them, by their numbers, become tensors.
        """
        lengths = ids.lengths + 2

        def collate(rows: npt.NDArray[np.int64]) -> OddBatch:
            return OddBatch(
                ids_BL=framed(ids.take(rows), special),
                odd_B=torch.from_numpy(odd[rows]),
                num_targets=len(rows),
                num_tokens=int(lengths[rows].sum()),
                indices=rows,
            )

        return Examples(lengths, collate)

    return SequenceBatches(
        sequences=encode_all(lines, tokenizer),
        examples=examples,
        content_hash=str(lines),
        config=config,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OddJob:
    """What `train.run` asks for: see `train.job.Job`."""

    config: FolderConfig
    model: EncoderOnly
    tokenizer: Tokenizer
    batches: Stream[OddBatch]
    validation: tuple[OddBatch, ...]

    @property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """One for all."""
        return self.tokenizer, self.tokenizer

    def loss(self, batch: OddBatch) -> Tensor:
        """Without label smoothing."""
        return OddRecipe.loss(self.model, batch, 0.0)

    def measure(self) -> Validation:
        """Loss and accuracy."""
        loss, right, total = 0.0, 0, 0
        with evaluating(self.model) as device:
            for batch in (batch.to(device) for batch in self.validation):
                loss += self.loss(batch).item()
                right += int((self.model(batch.ids_BL).argmax(-1) == batch.odd_B).sum())
                total += batch.num_targets
        return Validation(loss=loss / total, scores={"accuracy": 100 * right / total})

    def card(self, validation: Validation) -> CardPart:
        """What the model card says."""
        return CardPart(
            title="Odd or even",
            data=("training: lines",),
            architecture="an encoder",
            judged=f"The share of lines that are right: {validation}.",
            use="odd THIS_FOLDER",
        )


def assemble(recipe: OddRecipe, folder: RunFolder, say: Say, check: Check) -> OddJob:
    """From the recipe to the job; `check` is asked before the weights are drawn."""
    train, valid = recipe.data.training, recipe.data.validation or recipe.data.training
    tokenizer = begin_tokenizer(recipe, read_lines(train), folder, say)
    architecture = replace(recipe.model, vocab_size=tokenizer.vocab_size)
    source = read_batches(train, tokenizer, recipe.batch)
    batches = Stream(source, seed=recipe.train.seed)
    validation = tuple(read_batches(valid, tokenizer, recipe.batch).fixed())
    check_tokens(architecture, tokenizer)
    check(architecture, batches, validation)
    return OddJob(
        config=FolderConfig(model=architecture),
        model=begin_model(EncoderOnly, architecture, recipe),
        tokenizer=tokenizer,
        batches=batches,
        validation=validation,
    )


class Oddness:
    """What `dragoman.load` returns for a folder of this task."""

    def __init__(self, folder: ModelFolder, precision: Arithmetic = "fp32") -> None:
        self.precision = precision
        self._folder = folder
        self._model = model_of(folder, EncoderOnly)

    def is_odd(self, lines: Iterable[str]) -> list[bool]:
        """What the model says of each line."""
        ids = Ragged.of(self._folder.src_tokenizer.encode_batch(list(lines)))
        with torch.inference_mode():
            logits_BC = self._model(framed(ids, special_ids(self._folder.src_tokenizer)))
        return [bool(number) for number in logits_BC.argmax(-1)]


def evaluate(folder: ModelFolder, given: EvaluationData) -> Report:
    """`dragoman evaluate FOLDER --data FILE`."""
    assert given.data is not None
    lines = list(read_lines(given.data))
    found = Oddness(read_folder(folder, device=given.device)).is_odd(lines)
    right = sum(odd == len(line.split()) % 2 for odd, line in zip(found, lines, strict=True))
    figures = {"accuracy": 100 * right / len(lines)}
    return Report(figures=figures, lines=[f"accuracy  {figures['accuracy']:.2f}"])


TASK = Task(
    recipe=OddRecipe,
    assemble=assemble,
    kind="classify",
    does="says whether lines are odd (odd)",
    use="odd {folder}",
    load=Oddness,
    evaluate=evaluate,
    measured_on=("data",),
)
