"""Classification: a text in, its label and how sure the model is out.

    classifier = dragoman.load("runs/sst2")
    classifier.classify("a gorgeous, witty film").label
    classifier.classify(lines)

A text's label does not depend on the texts beside it: in fp32 on a CPU its probabilities are the
same bit for bit for any batch size and any order.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import overload

import torch
from torch import Tensor

from dragoman.models.heads import ClassificationHead
from dragoman.plain import Plain
from dragoman.tasks.encoders import EncoderReader
from dragoman.tasks.lines import Chunk, as_texts, to_chunks, windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification(Plain):
    """What kind of text a text is. `str(classification)` is its label."""

    label: str
    """The most probable label; none for a text without one, as `flags` say."""
    probability: float = 0.0
    """What the model gives to it."""
    probabilities: Mapping[str, float]
    """What it gives to each label, the most probable first."""
    flags: tuple[str, ...] = ()
    """What was unusual: "empty" (nothing to classify), "unreadable" (the tokenizer cannot encode
    the text), "split" (a long text was read in parts, whose probabilities are averaged, each
    weighing as many tokens as it has)."""

    def __str__(self) -> str:
        return self.label


class Classifier(EncoderReader):
    """Texts to labels: an encoder with a head of labels, and its tokenizer."""

    head = ClassificationHead

    @overload
    def classify(  # type: ignore[overload-overlap]  # a str is an iterable of str
        self, text: str, *, max_batch_tokens: int = 8192
    ) -> Classification: ...

    @overload
    def classify(
        self, text: Iterable[str], *, max_batch_tokens: int = 8192
    ) -> list[Classification]: ...

    def classify(
        self, text: str | Iterable[str], *, max_batch_tokens: int = 8192
    ) -> Classification | list[Classification]:
        """Classify a text, or any number of them: as many results, in their order.

        `max_batch_tokens`, padding included, is a matter of memory and speed alone.
        """
        found = self._classify(as_texts(text), max_batch_tokens)
        return found[0] if isinstance(text, str) else found

    def stream(
        self, lines: Iterable[str], *, max_batch_tokens: int = 8192, window: int = 4096
    ) -> Iterator[Classification]:
        """Classify without end: lines are taken in windows, so memory is bounded."""
        for taken in windows(lines, window):
            yield from self._classify(taken, max_batch_tokens)

    def _classify(self, texts: list[str], max_batch_tokens: int) -> list[Classification]:
        chunks_of = to_chunks(texts, self.tokenizer, self.reading.max_tokens)
        rows = [chunk.ids for chunks in chunks_of for chunk in chunks or ()]
        found = iter(self._read(rows, lambda logits_BC, _: logits_BC.softmax(-1), max_batch_tokens))
        return [
            self._result(chunks, list(islice(found, len(chunks or ())))) for chunks in chunks_of
        ]

    def _result(self, chunks: list[Chunk] | None, found: list[Tensor]) -> Classification:
        """A text's label from the probabilities of its parts."""
        if not chunks:
            flag = "unreadable" if chunks is None else "empty"
            return Classification(label="", probabilities={}, flags=(flag,))
        shares = torch.tensor([len(chunk.ids) for chunk in chunks], dtype=torch.float64)
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
