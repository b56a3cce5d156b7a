"""Classification: from a text to its label, and how sure the model is.

    classifier = dragoman.load("runs/sst2")
    classifier.classify("a gorgeous, witty film").label
    classifier.classify(lines)

A long text is read in parts, whose probabilities are averaged.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

import torch
from torch import Tensor

from dragoman.decode import Course
from dragoman.models.heads import ClassificationHead
from dragoman.plain import Plain
from dragoman.tasks.encoders import TOKENS, EncoderReader, Row, read
from dragoman.tasks.lines import Chunk, to_chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification(Plain):
    """The classification of a text. `str(classification)` is its label."""

    label: str
    """The most probable label; empty for a text without one, as `flags` say."""
    probability: float = 0.0
    """Its probability."""
    probabilities: Mapping[str, float] = field(hash=False)
    """The probability of each label, the most probable first."""
    flags: tuple[str, ...] = ()
    """What was unusual: "empty" (nothing to classify), "unreadable" (the tokenizer cannot encode
    the text), "split" (a long text was read in parts, weighted by their number of tokens)."""

    def __str__(self) -> str:
        return self.label


class Classifier(EncoderReader[Classification, Tensor]):
    """Texts to labels: an encoder with a head of labels, and its tokenizer."""

    head = ClassificationHead

    @overload
    def classify(  # type: ignore[overload-overlap]  # a str is an iterable of str
        self, text: str, *, max_batch_tokens: int = TOKENS
    ) -> Classification: ...

    @overload
    def classify(
        self, text: Iterable[str], *, max_batch_tokens: int = TOKENS
    ) -> list[Classification]: ...

    def classify(
        self, text: str | Iterable[str], *, max_batch_tokens: int = TOKENS
    ) -> Classification | list[Classification]:
        """Classify a text, or any number of them; results are in the same order.

        `max_batch_tokens`, padding included, affects only memory and speed.
        """
        return self.answers(text, max_batch_tokens)

    def courses(
        self, texts: Sequence[str], options: int
    ) -> list[Course[Row, Tensor, Classification]]:
        """Return how each text is classified, in batches of at most this many tokens."""
        chunks_of = to_chunks(texts, self.tokenizer, self.reading.max_tokens)
        return [self._course(chunks, options) for chunks in chunks_of]

    def _course(
        self, chunks: list[Chunk] | None, budget: int
    ) -> Course[Row, Tensor, Classification]:
        if not chunks:
            flag = "unreadable" if chunks is None else "empty"
            return Classification(label="", probabilities={}, flags=(flag,))
        found = yield read([Row(chunk.ids) for chunk in chunks], budget)
        lengths = [len(chunk.ids) for chunk in chunks]
        shares = torch.tensor(lengths, dtype=torch.float64, device="cpu")
        mean_C = torch.stack(found).cpu().double().T @ (shares / shares.sum())
        order = mean_C.argsort(descending=True, stable=True).tolist()
        probabilities = {self.labels[index]: mean_C[index].item() for index in order}
        best = self.labels[order[0]]
        return Classification(
            label=best,
            probability=probabilities[best],
            probabilities=probabilities,
            flags=("split",) if len(chunks) > 1 else (),
        )

    def _found(self, ids_BL: Tensor, rows: Sequence[Row]) -> Tensor:  # noqa: ARG002 -- as others
        logits_BC: Tensor = self._model(ids_BL)
        return logits_BC.float().softmax(-1)
