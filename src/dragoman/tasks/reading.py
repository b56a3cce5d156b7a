"""How an encoder reads: any number of texts, each by itself, with the head that is asked for."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from dragoman.decode import schedule
from dragoman.errors import InputError
from dragoman.models import EncoderOnly, EncoderOnlyConfig
from dragoman.models.heads import Head, NoHead
from dragoman.nn import Precision, inference
from dragoman.tasks.folders import Folder
from dragoman.text.tokenizer import Tokenizer

__all__ = ["EncoderReader", "head_of"]

Answer = TypeVar("Answer")
HeadT = TypeVar("HeadT", bound=Head)

ENDS = {
    "classify": "classifies texts (dragoman classify)",
    "tag": "tags words (dragoman tag)",
    "masked-language": "guesses hidden words and is there to start from (dragoman train --from)",
    "none": "has no head",
}
"""What an encoder with each head does."""


def head_of(folder: Folder, wanted: type[HeadT]) -> HeadT:
    """Return how a folder's encoder ends. Raises InputError for another end, or no encoder."""
    folder.model_of(EncoderOnly)
    config = folder.config.model
    head = config.head if isinstance(config, EncoderOnlyConfig) else NoHead()
    if not isinstance(head, wanted):
        raise InputError(f"{folder.path} holds an encoder that {ENDS[head.kind]}.")
    return head


class EncoderReader:
    """An encoder that reads rows of ids, in batches of alike lengths.

    What it answers to a row does not depend on the rows beside it: in fp32 on a CPU it is the same
    bit for bit for any budget and any order.
    """

    def __init__(self, model: EncoderOnly, tokenizer: Tokenizer, precision: Precision) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._precision: Precision = precision

    def read(
        self,
        rows: Sequence[Sequence[int]],
        answer: Callable[[Tensor, list[int]], Iterable[Answer]],
        max_batch_tokens: int,
    ) -> list[Answer]:
        """Give the answer to each row of ids, which have neither bos nor eos, in order.

        `answer` makes those of a batch from the model's logits and the numbers of its rows.
        """
        found: dict[int, Answer] = {}
        lengths = [len(row) + 2 for row in rows]
        with inference(self._model, self._precision) as device:
            for batch in schedule(lengths, max_batch_tokens):
                ids_BL = self._pad([rows[index] for index in batch]).to(device)
                found |= zip(batch, answer(self._model(ids_BL).float(), batch), strict=True)
        return [found[index] for index in range(len(rows))]

    def _pad(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """The rows between bos and eos, padded to a rectangle (B, L)."""
        bos, eos, pad = self._tokenizer.bos_id, self._tokenizer.eos_id, self._tokenizer.pad_id
        longest = max(map(len, rows))
        return torch.tensor([[bos, *row, eos, *[pad] * (longest - len(row))] for row in rows])
