"""Validation: the loss, what the model makes of the source, and the scores of its translations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from dragoman.data.batch import Batch
from dragoman.models import EncoderDecoder
from dragoman.train.objective import reference_loss

Scorer = Callable[[], Mapping[str, float]]
"""Translates the validation sources and returns `bleu` and `chrf`; made by the caller."""

COLLAPSE = 0.02  # nats: a source that helps by less than this is not looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """What one validation found."""

    loss: float
    """Mean over the target's tokens in nats, without label smoothing: ln of the perplexity."""
    source_gain: float | None = None
    """How much the loss grows, in nats, when each sentence is given another one's source."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """`bleu` and `chrf` of greedy translations."""

    @property
    def collapsed(self) -> bool:
        """Whether the decoder has learnt to ignore the source."""
        return self.source_gain is not None and self.source_gain < COLLAPSE

    def to_dict(self) -> dict[str, float]:
        """Return the figures by name, fit for JSON."""
        gain = {} if self.source_gain is None else {"source_gain": self.source_gain}
        return {"loss": self.loss, **gain, **self.scores}

    def __str__(self) -> str:
        scores = "".join(f", {name} {value:.2f}" for name, value in self.scores.items())
        return f"loss {self.loss:.3f}{scores}"


def is_better(new: Mapping[str, float], old: Mapping[str, float] | None, metric: str) -> bool:
    """Compare two validations by `loss` (smaller is better), `bleu` or `chrf`."""
    if old is None:
        return True
    return new[metric] < old[metric] if metric == "loss" else new[metric] > old[metric]


@torch.inference_mode()
def validate(model: EncoderDecoder, batches: Sequence[Batch], scorer: Scorer) -> Validation:
    """Measure a model on fixed batches, in evaluation mode, and leave it in training mode."""
    model.eval()
    loss = sum(_summed_loss(model, batch.src_BS, batch) for batch in batches)
    num_tokens = sum(batch.num_tgt_tokens for batch in batches)
    validation = Validation(
        loss=loss / num_tokens, source_gain=_source_gain(model, batches), scores=scorer()
    )
    model.train()
    return validation


def _source_gain(model: EncoderDecoder, batches: Sequence[Batch]) -> float | None:
    """Compare the loss of one batch with the loss when its sources are passed on by one place."""
    sample = max(batches, key=lambda batch: len(batch.src_BS))
    if len(sample.src_BS) == 1:
        return None
    swapped = _summed_loss(model, sample.src_BS.roll(1, dims=0), sample)
    return (swapped - _summed_loss(model, sample.src_BS, sample)) / sample.num_tgt_tokens


def _summed_loss(model: EncoderDecoder, src_BS: Tensor, batch: Batch) -> float:
    logits_BTV = model(src_BS, batch.tgt_in_BT)
    real_BT = batch.tgt_out_BT != model.pad_id
    return reference_loss(logits_BTV[real_BT], batch.tgt_out_BT[real_BT], 0.0).item()
