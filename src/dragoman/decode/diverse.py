"""Diverse beam search (Vijayakumar et al. 2016): groups of hypotheses that avoid each other.

The W slots of a sentence are cut into G groups, each a beam of W / G. In every step the groups
choose in turn, and rank their continuations by

    log p(y_<=t | x) - diversity * c(y_t)

where c(v) is how often the earlier groups of the sentence took the token v in this step (Hamming
diversity: section 3, algorithm 1). This only affects the ranking: log-probabilities and scores stay
the model's, and no penalty carries over to the next step. The search returns duplicates once.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.decode.beam import Beam, BeamFrontier
from dragoman.decoding import DIVERSITY, Diversity
from dragoman.errors import InputError
from dragoman.nn.cpu.ranking import IMPOSSIBLE
from dragoman.ranges import Count


@dataclass(frozen=True, slots=True, kw_only=True)
class DiverseBeam(Beam):
    """A beam in groups; one group is `Beam`."""

    groups: Count = 1
    """Groups of each sentence, G, which share the `beam_size` slots equally."""
    diversity: Diversity = DIVERSITY
    """Penalty on a token for each earlier group that took it in the same step."""

    def __post_init__(self) -> None:
        Beam.__post_init__(self)
        if self.beam_size % self.groups:
            raise InputError(
                f"beam_size is {self.beam_size} with {self.groups} groups; "
                "it must be a multiple of their number"
            )

    def begin(self, max_B: Tensor, eos_id: int) -> "DiverseFrontier":
        """Start a search of B sentences of at most `max_B` tokens each."""
        return DiverseFrontier(self, max_B, eos_id)


class DiverseFrontier(BeamFrontier):
    """A beam search in which every group is a sentence: group g of sentence b is b * G + g.

    A decided group continues until its sentence is decided: later groups avoid its tokens.
    """

    def __init__(self, options: DiverseBeam, max_B: Tensor, eos_id: int) -> None:
        width = options.beam_size // options.groups
        beam = Beam(
            beam_size=width,
            length_penalty=options.length_penalty,
            n_best=min(options.n_best, width),
        )
        super().__init__(beam, max_B.repeat_interleave(options.groups), eos_id)
        # The others take at most W - W / G tokens, so W / G of a row's W best are not penalised.
        self._num_candidates = options.beam_size
        self._diversity = options.diversity
        self._groups_G = torch.arange(options.groups, device=max_B.device)

    def _order(self, sums_BM: Tensor, tokens_BM: Tensor, vocab_size: int) -> Tensor:
        """Return the best of each group, group by group; ties go to the more probable."""
        num_groups, num_places = len(self._groups_G), sums_BM.shape[1]
        sums_BGM = sums_BM.view(-1, num_groups, num_places)
        tokens_BGM = tokens_BM.view(-1, num_groups, num_places)
        slots_BG = self._slots_B.view(-1, num_groups)
        taken_BV = sums_BM.new_zeros(len(slots_BG), vocab_size)
        orders = []
        for group in range(num_groups):
            sums_BM, tokens_BM = sums_BGM[:, group], tokens_BGM[:, group]
            lowered_BM = sums_BM - self._diversity * taken_BV.gather(1, tokens_BM)
            order_BW = super()._order(lowered_BM, tokens_BM, vocab_size)
            possible_BW = sums_BM.gather(1, order_BW) > IMPOSSIBLE
            chosen_BW = possible_BW & (self._ranks_W < slots_BG[:, group, None])
            taken_BV.scatter_add_(1, tokens_BM.gather(1, order_BW), chosen_BW.to(taken_BV))
            orders.append(order_BW)
        return torch.stack(orders, dim=1).flatten(0, 1)

    def keep(self, sentences_K: Tensor) -> None:
        """Keep only these of the current sentences."""
        super().keep((sentences_K[:, None] * len(self._groups_G) + self._groups_G).flatten())
