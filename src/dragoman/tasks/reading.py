"""How an encoder reads: any number of texts, each by itself, with a head that has labels."""

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Self, TypeVar

from torch import Tensor

from dragoman.data.batches import framed
from dragoman.data.dataset import Ragged
from dragoman.data.prepare import special_ids
from dragoman.decode import schedule
from dragoman.errors import InputError
from dragoman.models import EncoderOnly, EncoderOnlyConfig
from dragoman.models.folder import ReadingDefaults
from dragoman.models.heads import ClassificationHead, NoHead, TaggingHead
from dragoman.nn import Precision, evaluation_view, inference
from dragoman.tasks.folders import Folder, Loadable, check_vocabulary
from dragoman.text.tokenizer import Tokenizer

__all__ = ["EncoderReader"]

Answer = TypeVar("Answer")


class EncoderReader(Loadable):
    """An encoder with a head of labels, and its tokenizer; each task says what it makes of them.

    The model may be in training, in another thread too (its mode never changes), and on any device.
    `reading` says what a word was in training, and from where on texts are read in parts.
    """

    head: ClassVar[type[ClassificationHead | TaggingHead]]
    """How a model of the task ends."""

    def __init__(
        self,
        model: EncoderOnly,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        reading: ReadingDefaults | None = None,
        *,
        precision: Precision = "fp32",
    ) -> None:
        check_vocabulary("model's", tokenizer, model.embedding.weight)
        self.tokenizer = tokenizer
        self.labels = tuple(labels)
        self.reading = reading or ReadingDefaults()
        self._model = evaluation_view(model)
        self._precision: Precision = precision

    @classmethod
    def of(cls, folder: Folder, precision: Precision = "fp32") -> Self:
        """Make one of a folder that was read. Raises InputError unless its model does the task."""
        model = folder.model_of(EncoderOnly)
        config = folder.config.model
        head = config.head if isinstance(config, EncoderOnlyConfig) else NoHead()
        if not isinstance(head, cls.head):
            raise InputError(f"{folder.path} holds a model that {folder.does}.")
        return cls(
            model, folder.src_tokenizer, head.labels, folder.config.reading, precision=precision
        )

    def _read(
        self,
        rows: Sequence[Sequence[int]],
        answer: Callable[[Tensor, list[int]], Iterable[Answer]],
        max_batch_tokens: int,
    ) -> list[Answer]:
        """Give the answer to each row of ids, which have neither bos nor eos, in order.

        `answer` makes those of a batch from the model's logits and the numbers of its rows. What it
        is does not depend on the rows beside it: where `row_invariant_products` keeps its promise
        it is the same bit for bit for any budget and any order.
        """
        found: dict[int, Answer] = {}
        lengths = [len(row) + 2 for row in rows]
        with inference(self._model, self._precision) as device:
            for batch in schedule(lengths, max_batch_tokens):
                texts = Ragged.of([rows[index] for index in batch])
                ids_BL = framed(texts, special_ids(self.tokenizer)).to(device)
                found |= zip(batch, answer(self._model(ids_BL).float(), batch), strict=True)
        return [found[index] for index in range(len(rows))]
