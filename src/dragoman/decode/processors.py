"""Processors: changes to the logits before they become probabilities.

A processor is any callable `(logits_NV, prefixes) -> logits_NV`; it may modify the logits in place.
Those here are small values. An option at its neutral setting adds none to the list. A forbidden
token has probability 0, and the rest is renormalised: log-probabilities of a search are those of
the processed distribution.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from dragoman.decode.protocol import Prefixes
from dragoman.errors import InputError
from dragoman.nn.cpu.ranking import IMPOSSIBLE

Processor = Callable[[Tensor, Prefixes], Tensor]


class GivenProcessor:
    """A user's processor, whose faults are not attributed to the model."""

    def __init__(self, process: Processor) -> None:
        self._process = process
        self._name = getattr(process, "__name__", type(process).__name__)
        self._spoilt = False

    def __call__(self, logits_NV: Tensor, prefixes: Prefixes) -> Tensor:
        """Process the logits. Raises InputError if the result is not floats of their shape."""
        shape, sound = logits_NV.shape, not is_spoilt(logits_NV)
        made: object = self._process(logits_NV, prefixes)
        if not (isinstance(made, Tensor) and made.is_floating_point() and made.shape == shape):
            what = f"{made.dtype} {(*made.shape,)}" if isinstance(made, Tensor) else type(made)
            raise InputError(
                f"The processor {self._name} returns {what}; it must return the logits, floats of "
                f"shape {(*shape,)}."
            )
        self._spoilt = sound and is_spoilt(made)
        return made

    def check(self) -> None:
        """Raise InputError if the last call made valid logits NaN or infinite."""
        if self._spoilt:
            raise InputError(
                f"The processor {self._name} makes NaN or infinite logits; correct it: -inf "
                "forbids a token."
            )


def is_spoilt(logits_NV: Tensor) -> bool:
    """Return whether some logits are NaN or +inf, which softmax cannot handle."""
    return bool((logits_NV.isnan() | logits_NV.isposinf()).any())


@dataclass(frozen=True, slots=True)
class Forbid:
    """Tokens that are never generated: usually padding, bos and the unknown token."""

    ids: tuple[int, ...]

    def __call__(self, logits_NV: Tensor, prefixes: Prefixes) -> Tensor:  # noqa: ARG002 -- required by the interface
        """Set the columns to minus infinity."""
        for columns in _runs(self.ids):  # slices: an index tensor would have to move to the device
            logits_NV[:, columns].fill_(IMPOSSIBLE)
        return logits_NV


@dataclass(frozen=True, slots=True)
class ForbidSequences:
    """Sequences of one or more tokens that are never generated."""

    sequences: tuple[tuple[int, ...], ...]
    """The ids of each."""

    def __call__(self, logits_NV: Tensor, prefixes: Prefixes) -> Tensor:
        """Forbid the last token of a sequence in each row that ends with those before it."""
        ids_NL = prefixes.ids_NL
        for *before, last in self.sequences:
            start = ids_NL.shape[1] - len(before)
            if start >= 0:
                begun_N = (ids_NL[:, start:] == ids_NL.new_tensor(before)).all(dim=1)
                logits_NV[:, last].masked_fill_(begun_N, IMPOSSIBLE)
        return logits_NV


@cache
def _runs(ids: tuple[int, ...]) -> tuple[slice, ...]:
    """Return the ids as few ranges, without -1, the padding id of a vocabulary without padding."""
    known = {token for token in ids if token >= 0}
    firsts = sorted(token for token in known if token - 1 not in known)
    lasts = sorted(token for token in known if token + 1 not in known)
    return tuple(slice(first, last + 1) for first, last in zip(firsts, lasts, strict=True))


class MinimumLength:
    """Forbids eos before sentence b has `min_B[b]` tokens (eos not counted)."""

    def __init__(self, min_B: Tensor, eos_id: int) -> None:
        self._min_B = min_B
        self._eos_id = eos_id
        self._longest = int(min_B.max()) if len(min_B) else 0

    def __call__(self, logits_NV: Tensor, prefixes: Prefixes) -> Tensor:
        """Forbid eos in the rows that are too short."""
        length = prefixes.ids_NL.shape[1]
        if length < self._longest:
            short_N = self._min_B[prefixes.sentence_N] > length
            logits_NV[:, self._eos_id].masked_fill_(short_N, IMPOSSIBLE)
        return logits_NV


class ForcedPrefix:
    """Makes sentence b begin with the tokens `prefixes[b]`; the last processor of a list.

    The prefix is given, so it has probability 1 whatever other processors forbid: the
    log-probability of a result is that of the rest, given the prefix.
    """

    def __init__(self, prefixes: Sequence[Sequence[int]], device: torch.device) -> None:
        longest = max(map(len, prefixes), default=0)
        padded = [[*ids, *[-1] * (longest - len(ids))] for ids in prefixes]
        self._ids_BL = torch.tensor(padded, device=device)  # -1: nothing is forced

    def __call__(self, logits_NV: Tensor, prefixes: Prefixes) -> Tensor:
        """Allow no other token in rows that are inside their prefix."""
        length = prefixes.ids_NL.shape[1]
        if length < self._ids_BL.shape[1]:
            ids_N1 = self._ids_BL[prefixes.sentence_N, length][:, None]
            forced_N1, ids_N1 = ids_N1 >= 0, ids_N1.clamp(min=0)
            values_N1 = logits_NV.gather(1, ids_N1).masked_fill(forced_N1, 0.0)
            logits_NV.masked_fill_(forced_N1, IMPOSSIBLE).scatter_(1, ids_N1, values_N1)
        return logits_NV


class ForcedEnd:
    """Makes sentence b end by its token number `max_B[b]`, an eos with probability 1.

    So the beam compares whole sequences at the limit too, as that of transformers does if
    `forced_eos_token_id` is set.
    """

    def __init__(self, max_B: Tensor, eos_id: int) -> None:
        self._max_B = max_B
        self._eos_id = eos_id

    def __call__(self, logits_NV: Tensor, prefixes: Prefixes) -> Tensor:
        """Allow only eos in rows that are at their last token."""
        last_N = self._max_B[prefixes.sentence_N] - 1 <= prefixes.ids_NL.shape[1]
        logits_NV.masked_fill_(last_N[:, None], IMPOSSIBLE)
        logits_NV[:, self._eos_id].masked_fill_(last_N, 0.0)
        return logits_NV


class RepetitionPenalty:
    """Divides the logits of previous tokens by `penalty`; negative ones are multiplied.

    So a penalty above 1 makes them less probable (Keskar et al. 2019, section 4.1, where all
    logits are positive). `context_BS` are the prompts, whose tokens count too if it is given.
    """

    def __init__(self, penalty: float, context_BS: Tensor | None = None) -> None:
        if not 0.0 < penalty < float("inf"):
            raise InputError(f"repetition_penalty is {penalty}; it must be a number above 0.")
        self._penalty = penalty
        self._context_BS = context_BS

    def __call__(self, logits_NV: Tensor, prefixes: Prefixes) -> Tensor:
        """Penalise each used token once, however often it was used."""
        ids_NL = _with_context(prefixes, self._context_BS)
        used_NL = logits_NV.gather(1, ids_NL)
        weaker_NL = torch.where(used_NL > 0, used_NL / self._penalty, used_NL * self._penalty)
        return logits_NV.scatter_(1, ids_NL, weaker_NL)


class NoRepeatedNgrams:
    """Forbids n-grams to occur twice (Paulus et al. 2018, section 2.5, for n = 3).

    `context_BS` are the prompts, whose n-grams count too if it is given.
    """

    def __init__(self, size: int, context_BS: Tensor | None = None) -> None:
        if size < 1:
            raise InputError(f"no_repeat_ngrams is {size}; it must be 1 or more.")
        self._size = size
        self._context_BS = context_BS

    def __call__(self, logits_NV: Tensor, prefixes: Prefixes) -> Tensor:
        """Forbid each token that has already followed the current last n - 1 tokens."""
        ids_NL = _with_context(prefixes, self._context_BS)
        length = ids_NL.shape[1]
        if length < self._size:
            return logits_NV
        ngrams_NMn = ids_NL.unfold(1, self._size, 1)
        last_Nm = ids_NL[:, length - self._size + 1 :]
        again_NM = (ngrams_NMn[:, :, :-1] == last_Nm[:, None]).all(dim=2)
        rows, places = again_NM.nonzero(as_tuple=True)
        logits_NV[rows, ngrams_NMn[rows, places, -1]] = IMPOSSIBLE
        return logits_NV


def _with_context(prefixes: Prefixes, context_BS: Tensor | None) -> Tensor:
    """Return each row's prompt, if there are prompts, and what the row has generated so far."""
    if context_BS is None:
        return prefixes.ids_NL
    return torch.cat([context_BS[prefixes.sentence_N], prefixes.ids_NL], dim=1)


def relative_lengths(src_lengths_B: Tensor, *, factor: float, constant: int) -> Tensor:
    """Return a limit for each sentence: `floor(factor * src_length) + constant`, at least 0.

    Used for minimum and maximum lengths; `factor = 0` makes an absolute limit.
    """
    scaled_B = (src_lengths_B.double() * factor).floor().long()
    return torch.clamp(scaled_B + constant, min=0)
