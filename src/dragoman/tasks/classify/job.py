"""Learning to classify: labelled texts, an encoder with a vector for each, judged by accuracy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from dragoman.data.batches import Stream
from dragoman.data.labelled import LabelledDataset, load_labelled, read_labelled
from dragoman.models import EncoderOnly
from dragoman.models.defaults import ReadingDefaults
from dragoman.models.folder import FolderConfig
from dragoman.tasks.classify.batches import ClassBatch, class_batches
from dragoman.tasks.classify.recipe import ClassifyRecipe
from dragoman.tasks.encoders import EncoderJob, describe, hide_tokens, read_labels, splits_for
from dragoman.train.job import CardPart, Check, Say, Validation, evaluating, unchecked
from dragoman.train.objective import reference_loss
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import begin_model, begin_tokenizer, check_tokens

ONE_LABEL = (
    "the model gives all validation texts the same label; lower train.learning_rate or lengthen "
    "train.warmup_steps"
)


def batch_loss(model: EncoderOnly, batch: ClassBatch, smoothing: float) -> Tensor:
    """Sum the smoothed cross-entropy over texts."""
    return reference_loss(model(batch.ids_BL), batch.labels_B, smoothing)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifyJob(EncoderJob[ClassifyRecipe, ClassBatch]):
    """An encoder and labelled texts."""

    def loss(self, batch: ClassBatch) -> Tensor:
        """Sum the smoothed cross-entropy over texts, some of whose tokens are hidden."""
        ids_BL = hide_tokens(batch.ids_BL, self.recipe.batch.token_dropout, self.tokenizer)
        smoothing = self.recipe.train.label_smoothing
        return batch_loss(self.model, replace(batch, ids_BL=ids_BL), smoothing)

    def measure(self) -> Validation:
        """Find the loss and the share of texts that get their label."""
        loss, correct, chosen = 0.0, 0, set[int]()
        with evaluating(self.model) as device:
            for batch in (batch.to(device) for batch in self.validation):
                logits_BC = self.model(batch.ids_BL)
                chosen_B = logits_BC.argmax(-1)
                loss += reference_loss(logits_BC, batch.labels_B, 0.0).item()
                correct += int((chosen_B == batch.labels_B).sum())
                chosen.update(chosen_B.tolist())
        total = sum(batch.num_targets for batch in self.validation)
        return Validation(
            loss=loss / total,
            scores={"accuracy": 100 * correct / total},
            warnings=(ONE_LABEL,) if len(chosen) == 1 else (),
        )

    def card(self, validation: Validation) -> CardPart:  # noqa: ARG002 (the form of all tasks)
        """Say which texts, and how they are judged."""
        return CardPart(
            title="Text classifier",
            data=self.recipe.data.said,
            architecture=describe(self.recipe.model),
            judged="The accuracy is the share, in percent, of texts that get their label; the loss "
            "is in nats per text.",
            use="dragoman classify THIS_FOLDER < input.txt",
        )


def assemble(
    recipe: ClassifyRecipe,
    folder: RunFolder,
    say: Say,
    check: Check = unchecked,
) -> ClassifyJob:
    """Read the texts, learn or load the tokenizer, and build model and batches."""
    data, batch = recipe.data, recipe.batch
    texts = (text for _, _, text in read_labelled(data.training, data.layout))
    tokenizer = begin_tokenizer(recipe, texts, folder.training, say)

    def load(path: Path, labels: Sequence[str]) -> LabelledDataset:
        return load_labelled(path, data.layout, tokenizer, labels)

    training, validation = read_labels(recipe, load, "text", say)
    architecture = replace(
        recipe.model,
        vocab_size=recipe.model.vocab_size or tokenizer.vocab_size,
        head=replace(recipe.head, labels=training.labels),
    )
    source = class_batches(training, batch, splits_for(batch, tokenizer))
    batches = Stream(source, seed=recipe.train.seed)
    check_tokens(architecture, tokenizer)
    validated = tuple(class_batches(validation, batch).fixed())
    check(architecture, batches, validated)
    return ClassifyJob(
        recipe=recipe,
        config=FolderConfig(
            model=architecture, reading=ReadingDefaults(max_tokens=batch.max_length)
        ),
        model=begin_model(EncoderOnly, architecture, recipe),
        tokenizer=tokenizer,
        batches=batches,
        validation=validated,
    )
