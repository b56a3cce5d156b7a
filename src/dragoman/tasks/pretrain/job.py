"""Learning what was hidden of a text: texts of any kind, an encoder, judged by the loss."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from torch import Tensor

from dragoman.data.batches import Stream
from dragoman.data.dataset import TextDataset, format_held_out, hold_out_rows
from dragoman.data.documents import prepare_documents
from dragoman.data.labelled import load_labelled
from dragoman.data.tagged import load_tagged
from dragoman.models import EncoderOnly
from dragoman.models.folder import FolderConfig
from dragoman.tasks.encoders import EncoderJob, describe, splits_for
from dragoman.tasks.pretrain.batches import MaskedBatch, MaskedBatches, Vocabulary
from dragoman.tasks.pretrain.recipe import MaskedRecipe, UnlabelledFiles
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.job import CardPart, Check, Say, Validation, evaluating, unchecked
from dragoman.train.objective import masked_guesses, masked_loss
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import begin_model, begin_tokenizer, check_tokens
from dragoman.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedJob(EncoderJob[MaskedRecipe, MaskedBatch]):
    """An encoder and texts."""

    def loss(self, batch: MaskedBatch) -> Tensor:
        """Sum the cross-entropy of what was hidden; the output layer runs there alone."""
        smoothing = self.recipe.train.label_smoothing
        return masked_loss(self.model, batch.ids_BL, batch.targets_BL, smoothing)

    def measure(self) -> Validation:
        """Find the loss and the share of hidden tokens that are guessed."""
        loss, correct = 0.0, 0
        with evaluating(self.model) as device:
            for batch in (batch.to(device) for batch in self.validation):
                summed, guessed = masked_guesses(self.model, batch.ids_BL, batch.targets_BL)
                loss += summed.item()
                correct += int(guessed)
        total = sum(batch.num_targets for batch in self.validation)
        return Validation(loss=loss / total, scores={"accuracy": 100 * correct / total})

    def card(self, validation: Validation) -> CardPart:  # noqa: ARG002 (the form of all tasks)
        """Say which texts, and what the figures mean."""
        data = self.recipe.data
        return CardPart(
            title="Masked language model",
            data=(
                *(f"`{name}`" for name in (*data.texts, *data.labelled, *data.tagged)),
                f"validation: up to {counted(data.hold_out, 'text')} held out",
            ),
            architecture=describe(self.recipe.model),
            judged="The loss is in nats per hidden token, the accuracy is the share, in percent, "
            "of hidden tokens that are guessed.",
            use="dragoman train RECIPE --from THIS_FOLDER --out DIR",
        )


def assemble(
    recipe: MaskedRecipe,
    folder: RunFolder,
    say: Say,
    check: Check = unchecked,
) -> MaskedJob:
    """Read the texts, learn or load the tokenizer, and build model and batches."""
    data, batch = recipe.data, recipe.batch
    tokenizer = begin_tokenizer(recipe, data.read(), folder.training, say)
    texts = TextDataset.joined(list(_datasets(data, tokenizer)))
    rest, held = hold_out_rows(texts.texts, data.hold_out, recipe.train.seed)
    said = f"{counted(len(texts), 'text')}, {counted(len(texts.texts.ids), 'token')}"
    say(f"{said}.")
    say(format_held_out(texts.name, len(held), len(texts) - len(rest) - len(held), "text"))
    vocabulary = Vocabulary.of(tokenizer)
    architecture = replace(recipe.model, vocab_size=recipe.model.vocab_size or tokenizer.vocab_size)
    learned = replace(texts, texts=texts.texts.take(rest))
    source = MaskedBatches(learned, batch, vocabulary, recipe.masking, splits_for(batch, tokenizer))
    batches = Stream(source, seed=recipe.train.seed)
    held_out = replace(texts, texts=texts.texts.take(held))
    validation = tuple(MaskedBatches(held_out, batch, vocabulary, recipe.masking).fixed())
    check_tokens(architecture, tokenizer)
    check(architecture, batches, validation)
    return MaskedJob(
        recipe=recipe,
        config=FolderConfig(model=architecture),
        model=begin_model(EncoderOnly, architecture, recipe),
        tokenizer=tokenizer,
        batches=batches,
        validation=validation,
    )


def _datasets(data: UnlabelledFiles, tokenizer: Tokenizer) -> Iterator[TextDataset]:
    """The texts of each file as ids."""
    paths = data.paths
    if paths["texts"]:
        documents, _ = prepare_documents(paths["texts"], data.split, tokenizer, data.cache_folder)
        yield documents
    for path in paths["labelled"]:
        yield load_labelled(path, data.labelled_layout, tokenizer).as_texts()
    for path in paths["tagged"]:
        yield load_tagged(path, data.tagged_layout, tokenizer).as_texts()
