"""What the tasks of an encoder share: batches with hidden words, and words for the model card."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.data.batches import BatchConfig
from dragoman.models import EncoderOnlyConfig
from dragoman.ranges import BelowOne
from dragoman.text.tokenizer import MASK, Tokenizer
from dragoman.wording import counted

__all__ = ["NoisyBatchConfig", "describe", "hide_tokens"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyBatchConfig(BatchConfig):
    """How texts are put into batches, and how much of them is hidden."""

    token_dropout: BelowOne = 0.0
    """Probability that training hides a token, so that no single one decides."""


def hide_tokens(ids_BL: Tensor, probability: float, tokenizer: Tokenizer) -> Tensor:
    """Put the mask (or the unknown token) in the place of each token with `probability`.

    Special tokens stay. Word dropout (Iyyer et al., 2015): few texts last longer when they are
    never quite the same. The random numbers are those of torch, which a checkpoint keeps.
    """
    if not probability:
        return ids_BL
    specials = torch.tensor(list(tokenizer.specials.values()), device=ids_BL.device)
    chosen_BL = torch.rand(ids_BL.shape, device=ids_BL.device) < probability
    hidden_id = tokenizer.specials.get(MASK, tokenizer.unk_id)
    return ids_BL.masked_fill(chosen_BL & ~torch.isin(ids_BL, specials), hidden_id)


def describe(config: EncoderOnlyConfig) -> str:
    """Return kind, layers and widths, as the model card has them."""
    return (
        f"an encoder of {counted(config.num_layers, 'layer')}, d_model {config.d_model}, "
        f"{counted(config.num_heads, 'head')}, d_ff {config.d_ff}, {config.norm_position}-norm, "
        f"positions: {config.positions.kind}"
    )
