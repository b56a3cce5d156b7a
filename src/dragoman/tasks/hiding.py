"""Word dropout: training hides random tokens of each text, anew at every reading."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.data.batches import BatchConfig
from dragoman.ranges import BelowOne
from dragoman.text.tokenizer import MASK, Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyBatchConfig(BatchConfig):
    """How texts are put into batches, and how much of them is hidden."""

    token_dropout: BelowOne = 0.0
    """Probability of masking a token in training (word dropout); in translation, a source token."""


def hide_tokens(ids_BL: Tensor, probability: float, tokenizer: Tokenizer) -> Tensor:
    """Replace each token with the mask (or the unknown token) with `probability`.

    Special tokens stay. Word dropout (Iyyer et al., 2015; of a translator's source Sennrich et al.,
    2016, "Edinburgh Neural Machine Translation Systems for WMT 16"): a small corpus overfits later
    if its texts are never quite the same. The random numbers are torch's, whose state is in a
    checkpoint.
    """
    if not probability:
        return ids_BL
    specials = torch.tensor(list(tokenizer.specials.values()), device=ids_BL.device)
    chosen_BL = torch.rand(ids_BL.shape, device=ids_BL.device) < probability
    hidden_id = tokenizer.specials.get(MASK, tokenizer.unk_id)
    return ids_BL.masked_fill(chosen_BL & ~torch.isin(ids_BL, specials), hidden_id)
