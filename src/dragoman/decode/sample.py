"""Sampling: the next token is drawn at random from the distribution, or from its best part.

With the probabilities `p` of a row in descending order (ties in order of id), in turn:

    temperature   p_v ** (1 / temperature), renormalised
    top_k         the k most probable (Fan et al. 2018, section 5.4)
    top_p         the fewest that together have at least the probability top_p (the nucleus:
                  Holtzman et al. 2020, section 3.1)
    min_p         those at least min_p times as probable as the first (Nguyen et al. 2024,
                  section 3)

The most probable token always stays, so `top_k = 1` is greedy search.

Each sequence has its own random numbers, one for each token, determined by the seed and the
sequence's number alone: what is drawn for a sequence does not depend on its batch. The
log-probabilities of the result are the model's, whatever the options here.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dragoman.decode.greedy import SingleFrontier
from dragoman.decoding import TopP
from dragoman.nn.cpu.ranking import top_tokens
from dragoman.ranges import BelowOne, Count, Index, NonNegative, Positive, check_ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Draw every token; the neutral values of the options draw from the whole distribution."""

    temperature: Positive = 1.0
    """Below 1 sharpens the distribution, above 1 flattens it; more than 0 (0 would be Greedy)."""
    top_k: Count | None = None
    """Maximum number of tokens to draw from; all by default."""
    top_p: TopP = 1.0
    """Total probability of the tokens to draw from, in (0, 1]."""
    min_p: BelowOne = 0.0
    """Minimum probability of a token as a share of the greatest, in [0, 1)."""
    seed: Index = 0
    """Determines all random numbers, together with the numbers of the sequences."""
    numbers: tuple[int, ...] | None = None
    """The number of each sequence of the batch among all that share the seed; 0, 1, 2 ... by
    default."""
    length_penalty: NonNegative = 0.6
    """The exponent alpha of the score; it cannot change what is chosen."""

    beam_size = 1
    n_best = 1

    def __post_init__(self) -> None:
        check_ranges(self)

    def begin(self, max_B: Tensor, eos_id: int) -> SingleFrontier:
        """Start B sequences of at most `max_B` tokens each."""
        return SingleFrontier(max_B, eos_id, self.length_penalty, _Draw(self, len(max_B)))


class _Draw:
    """The random numbers of running sequences."""

    def __init__(self, options: Sample, count: int) -> None:
        numbers = range(count) if options.numbers is None else options.numbers
        if len(numbers) != count:
            raise ValueError(f"{len(numbers)} numbers for {count} sequences")
        self._options = options
        self._generators = [np.random.default_rng([options.seed, number]) for number in numbers]

    def choose(self, log_probs_NV: Tensor) -> Tensor:
        """Draw a token for each row: the first whose cumulative weight exceeds a random number.

        The number is below the total (the greatest, 1 - 2^-53, times a total rounds below it), so
        the token has a weight. In a row of NaN no sum exceeds anything, so it takes its first
        token; the search rejects it.
        """
        weights_Nk, tokens_Nk = keep_best(log_probs_NV, self._options)
        sums_Nk = weights_Nk.cumsum(dim=1)
        drawn_N = torch.tensor([g.random() for g in self._generators], dtype=torch.float64)
        wanted_N1 = drawn_N.to(sums_Nk.device)[:, None] * sums_Nk[:, -1:]
        places_N1 = (sums_Nk <= wanted_N1).sum(dim=1, keepdim=True)
        return tokens_Nk.gather(1, places_N1)[:, 0]

    def keep(self, sentences_K: Tensor) -> None:
        self._generators = [self._generators[index] for index in sentences_K.tolist()]


def keep_best(log_probs_NV: Tensor, options: Sample) -> tuple[Tensor, Tensor]:
    """Return the weights (N, k) and ids of the candidates; a token with weight 0 is not drawn.

    Weights are probabilities up to a factor for each row. They are float64, in which the sum over
    a large vocabulary keeps its small terms.
    """
    vocab_size = log_probs_NV.shape[1]
    k = min(options.top_k or vocab_size, vocab_size)
    values_Nk, tokens_Nk = _ranked(log_probs_NV, k, options)
    values_Nk = values_Nk.double()
    # the best stays 0 at any temperature
    below_Nk = values_Nk - values_Nk.amax(dim=1, keepdim=True)
    probs_Nk = (below_Nk / options.temperature).softmax(dim=1)
    if options.top_p < 1.0:
        enough_Nk = probs_Nk.cumsum(dim=1) >= options.top_p  # with this one, so the next is out
        probs_Nk[:, 1:].masked_fill_(enough_Nk[:, :-1], 0.0)
    if options.min_p > 0.0:
        least_N1 = options.min_p * probs_Nk[:, :1]
        probs_Nk = probs_Nk.masked_fill(probs_Nk < least_N1, 0.0)
    return probs_Nk, tokens_Nk


def _ranked(log_probs_NV: Tensor, k: int, options: Sample) -> tuple[Tensor, Tensor]:
    """Return the k best in descending order; all in any order if the order does not matter."""
    vocab_size = log_probs_NV.shape[1]
    if k < vocab_size:
        return top_tokens(log_probs_NV, k)
    if options.top_p == 1.0 and options.min_p == 0.0:
        places_V = torch.arange(vocab_size, device=log_probs_NV.device)
        return log_probs_NV, places_V.expand_as(log_probs_NV)
    return torch.sort(log_probs_NV, dim=1, descending=True, stable=True)
