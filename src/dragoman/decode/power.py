"""Beam search ranked as in Hugging Face's transformers and fairseq: `log p(y | x) / n ** alpha`.

The models of those libraries were tuned with it, so it reproduces their published texts. It differs
from `Beam` in three ways:

- the score divides by `n ** alpha` (Ott et al. 2019, fairseq), n counting the end of the sentence;
- a hypothesis that ends takes no slot from the beam: a step ranks (1 + E) W continuations, where
  E tokens end a sequence; the W best continuations fill the slots, and those that end and are among
  the W best are complete;
- a sentence is decided by an estimate, not by a bound (`EarlyStopping`).

There, processors remove probability without renormalisation, unless `renormalize_logits` is set,
and a repetition penalty changes log-probabilities. `Unshared` does both here.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from dragoman.decode.beam import Beam, BeamFrontier
from dragoman.decode.processors import Processor
from dragoman.decode.protocol import Advance, Prefixes
from dragoman.decoding import EarlyStopping
from dragoman.nn.cpu.ranking import IMPOSSIBLE


class Unshared:
    """Two processors around all others, which keep the rest from being renormalised."""

    def __init__(self) -> None:
        self._left_M1 = torch.zeros(())

    def around(self, processors: list[Processor], *, renormalize: bool) -> list[Processor]:
        """Put the two around the others; only the first if steps are renormalised."""
        return [self._normalise, *processors, *([] if renormalize else [self._measure])]

    def _normalise(self, logits_MV: Tensor, prefixes: Prefixes) -> Tensor:  # noqa: ARG002 -- required by the interface
        return logits_MV.sub_(logits_MV.logsumexp(-1, keepdim=True))

    def _measure(self, logits_MV: Tensor, prefixes: Prefixes) -> Tensor:  # noqa: ARG002 -- required by the interface
        self._left_M1 = logits_MV.logsumexp(-1, keepdim=True)
        return logits_MV

    def restore(self, log_probs_MV: Tensor) -> Tensor:
        """Undo the normalisation that followed the processors."""
        return log_probs_MV + self._left_M1


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerBeam:
    """The `width` best prefixes at each step, the `n_best` best sequences at the end."""

    width: int
    """Open hypotheses, W; another W slots are for those that end."""
    length_penalty: float
    """The exponent alpha: 0 compares sums, greater values favour longer outputs."""
    n_best: int = 1
    early_stopping: EarlyStopping = "estimate"
    ends: tuple[int, ...] = ()
    """The tokens that end a sequence, if not eos alone; all become eos."""
    renormalize: bool = False
    """Renormalise after the processors (`renormalize_logits`)."""
    unshared: Unshared = field(default_factory=Unshared, compare=False)

    def around(self, processors: list[Processor]) -> list[Processor]:
        """Return the processors, wrapped in those that this search needs."""
        return self.unshared.around(processors, renormalize=self.renormalize)

    @property
    def beam_size(self) -> int:
        """Number of rows that each sentence needs."""
        return (1 + max(1, len(self.ends))) * self.width

    def begin(self, max_B: Tensor, eos_id: int) -> "PowerFrontier":
        """Start a search of B sentences of at most `max_B` tokens each."""
        return PowerFrontier(self, max_B, eos_id)


class PowerFrontier(BeamFrontier):
    """The open hypotheses of every sentence, and the scores of its W best complete ones."""

    def __init__(self, options: PowerBeam, max_B: Tensor, eos_id: int) -> None:
        super().__init__(Beam(beam_size=options.beam_size, n_best=options.width), max_B, eos_id)
        self._options = options
        self._penalty = lambda length: float(length**options.length_penalty)
        self._ends_E = max_B.new_tensor(options.ends or (eos_id,))

    def advance(self, log_probs_MV: Tensor) -> Advance:
        """Rank the continuations of all open hypotheses (M rows or more); keep W."""
        return super().advance(self._options.unshared.restore(log_probs_MV))

    def _choose(self, possible_BW: Tensor, tokens_BW: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the W best that continue, and the ends among the W best; all become eos."""
        width = self._options.width
        ends_BW = torch.isin(tokens_BW, self._ends_E)
        tokens_BW = tokens_BW.masked_fill(ends_BW, self._eos_id)
        ends_BW |= (self._max_B <= self._length)[:, None]
        open_BW = possible_BW & ~ends_BW
        open_BW &= open_BW.cumsum(1) <= width
        return tokens_BW, open_BW, possible_BW & ends_BW & (self._ranks_W < width)

    def _undecided_B(self) -> Tensor:
        """Return whether a sentence lacks complete hypotheses or an open one may beat the worst."""
        worst_B = self._best_Bn[:, -1]
        if self._options.early_stopping == "full":
            return worst_B == IMPOSSIBLE
        never = self._options.early_stopping == "never"
        length_B = self._max_B if never else torch.full_like(self._max_B, self._length)
        possible_B = self._log_probs_BW.amax(1) / length_B**self._options.length_penalty
        return (possible_B > worst_B) | (worst_B == IMPOSSIBLE)
