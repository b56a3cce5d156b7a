"""A run knows no task: a made-up one, that dragoman does not have, is learned like any other."""

import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.unit.models.saved import Words
from tests.unit.train.made import make_console
from torch import Tensor

from dragoman.data.batches import Batch, Epoch, Stream
from dragoman.errors import DragomanError, InputError
from dragoman.folder.format import FolderConfig
from dragoman.folder.opening import open_folder
from dragoman.models import EncoderOnly, EncoderOnlyConfig
from dragoman.models.heads import ClassificationHead
from dragoman.train.config import TrainConfig
from dragoman.train.job import CardPart, Validation, evaluating
from dragoman.train.recipe import DataFiles, RunRecipe
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import begin_model
from dragoman.train.trainer import Trainer, TrainResult

V = 12
MODEL = EncoderOnlyConfig(
    vocab_size=V,
    d_model=16,
    num_heads=2,
    d_ff=24,
    num_layers=1,
    norm_position="pre",
    head=ClassificationHead(labels=("even", "odd")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityRecipe(RunRecipe):
    """Say whether the first id is odd."""

    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)

    task: Literal["parity"] = "parity"
    data: DataFiles = field(default_factory=DataFiles)
    model: EncoderOnlyConfig = MODEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows(Batch):
    """Rows of ids and their labels."""

    ids_BL: Tensor
    labels_B: Tensor


def rows_of(ids_NBL: Tensor, number: int) -> Rows:
    """One of these batches, each of eight rows."""
    ids_BL = ids_NBL[number]
    return Rows(
        ids_BL=ids_BL,
        labels_B=ids_BL[:, 0] % 2,
        num_targets=len(ids_BL),
        num_tokens=ids_BL.numel(),
        indices=np.arange(8) + 8 * number,
    )


class Drawn:
    """Rows of random ids."""

    fingerprint = "always the same"

    def draw(self, rng: np.random.Generator) -> Epoch[Rows]:
        """A new epoch of twenty batches."""
        ids_NBL = torch.from_numpy(rng.integers(1, V, (20, 8, 4)))
        make = partial(rows_of, ids_NBL)
        return Epoch(count=20, examples=160, padding=0.0, largest=(0,), make=make)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityJob:
    """An encoder that learns parity."""

    config: FolderConfig
    model: EncoderOnly
    batches: Stream[Rows]
    tokenizers: tuple[Words, Words]

    def loss(self, batch: Rows) -> Tensor:
        """The sum over the rows."""
        return F.cross_entropy(self.model(batch.ids_BL), batch.labels_B, reduction="sum")

    def measure(self) -> Validation:
        """Loss and accuracy on rows of its own."""
        batch = rows_of(torch.arange(1, 9).view(1, 8, 1).expand(1, 8, 4).contiguous(), 0)
        with evaluating(self.model) as device:
            logits_BC = self.model(batch.to(device).ids_BL)
            loss = F.cross_entropy(logits_BC, batch.labels_B)
            right = (logits_BC.argmax(-1) == batch.labels_B).float().mean()
        return Validation(loss=loss.item(), scores={"accuracy": 100 * right.item()})

    def card(self, validation: Validation) -> CardPart:  # noqa: ARG002 (a protocol)
        """A few words."""
        return CardPart(
            title="Parity",
            data=("training: dice",),
            architecture="an encoder",
            judged="Counted.",
            use="dragoman parity THIS_FOLDER",
        )


def go(recipe: ParityRecipe, kind: type[ParityJob] = ParityJob) -> tuple[TrainResult, str]:
    """Run the job of a recipe."""
    console, file = make_console(terminal=False)
    with RunFolder.of(recipe).open(recipe) as folder:
        words = Words()
        job = kind(
            config=FolderConfig(model=recipe.model),
            model=begin_model(EncoderOnly, recipe.model, recipe),
            batches=Stream(Drawn(), seed=recipe.train.seed),
            tokenizers=(words, words),
        )
        result = Trainer(job, recipe, folder, console).run(time.monotonic())
    return result, file.getvalue()


@pytest.fixture
def parity(tmp_path: Path) -> ParityRecipe:
    """Sixty steps."""
    train = TrainConfig(
        max_steps=60,
        warmup_steps=5,
        learning_rate=1e-2,
        validate_every=20,
        save_every=20,
        device="cpu",
        precision="fp32",
    )
    return ParityRecipe(out=str(tmp_path / "run"), train=train)


def test_another_task_is_learned(parity: ParityRecipe) -> None:
    """A task that is no translating learns, chooses by its own metric, and leaves a model."""
    result, said = go(parity)
    assert result.progress.best is not None
    assert result.progress.best["accuracy"] > 80
    assert "accuracy" in said
    opened = open_folder(Path(parity.out))
    model, config = opened.model, opened.config
    assert isinstance(model, EncoderOnly)
    assert config.model == MODEL
    card = (Path(parity.out) / "README.md").read_text(encoding="utf-8")
    assert "# Parity" in card
    assert "- accuracy: " in card
    assert result.progress.tokens == 60 * 32


@pytest.mark.parametrize(
    ("metric", "message"), [("accurcy", "did you mean accuracy"), ("bleu", "accuracy, loss")]
)
def test_a_metric_of_another_task(metric: str, message: str) -> None:
    """A metric that the task does not measure is refused, with those that it does."""
    with pytest.raises(InputError, match=f'train.metric = "{metric}" is not measured .*{message}'):
        ParityRecipe(train=TrainConfig(max_steps=1, metric=metric))


def test_the_metric_is_the_tasks_own() -> None:
    """Unless one is set, the best model is chosen by what the task is judged by."""
    assert ParityRecipe().metric == "accuracy"
    assert ParityRecipe(train=TrainConfig(max_steps=1, metric="loss")).metric == "loss"


def use_up_memory() -> None:
    """Ask for more than any processor can address."""
    torch.empty(1 << 55)


class LossTooLarge(ParityJob):
    """A job whose thirtieth step takes too much."""

    def loss(self, batch: Rows) -> Tensor:
        """Fail in the second epoch, after a checkpoint."""
        if self.batches.epoch == 1 and self.batches.position == 10:
            use_up_memory()
        return super().loss(batch)


class ValidationTooLarge(ParityJob):
    """A job that cannot be validated."""

    def measure(self) -> Validation:
        """Fail."""
        use_up_memory()
        raise AssertionError


def test_a_step_without_memory(parity: ParityRecipe) -> None:
    """It ends in a sentence with the batch and what to change, and changing that works."""
    size = (
        r"out of memory in a batch of 8 examples and 32 tokens: lower .* or add train\.activation"
    )
    with pytest.raises(DragomanError, match=size) as raised:
        go(parity, LossTooLarge)
    assert raised.value.exit_code == 1
    spared = replace(parity, train=replace(parity.train, activation_checkpointing=True))
    result, said = go(spared)
    assert "Resuming from step 20." in said
    assert result.progress.step == 60
    other = replace(spared, out=spared.out + "-other")
    with pytest.raises(DragomanError, match=r"makes up for it\)$"):
        go(other, LossTooLarge)


def test_a_validation_without_memory(parity: ParityRecipe) -> None:
    """It ends in a sentence too; what is no lack of memory is not taken for one."""
    with pytest.raises(DragomanError, match="out of memory during validation"):
        go(parity, ValidationTooLarge)

    class Wrong(ParityJob):
        def measure(self) -> Validation:
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="shapes"):
        go(replace(parity, out=parity.out + "-wrong"), Wrong)
