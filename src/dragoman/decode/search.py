"""The one loop of decoding: step, process, log-softmax, advance, select, stop.

``search_steps`` is the loop as a generator, which is what streaming needs; ``search`` runs it to
its end. Everything that differs between ways of decoding is a value handed in: the model, the
strategy, the processors, the limits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.decode.processors import Prefixes, Processor
from dragoman.decode.protocol import Advance, Model, StateT, Strategy
from dragoman.errors import InputError

__all__ = ["Hypothesis", "Limits", "Step", "search", "search_steps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where hypotheses begin and end."""

    bos_id: int
    """The token that the model reads first; not part of a result."""
    eos_id: int
    """The token that completes a hypothesis; not part of a result's ids, but of its score."""
    max_B: Tensor
    """Most tokens to generate for each sentence, eos counted; 1 or more."""
    first_B: Tensor | None = None
    """The token that the model reads first for each sentence, instead of bos: the last one of each
    prompt where the source is a prompt that the output goes on from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """One output sequence."""

    ids: tuple[int, ...]
    """Its tokens, without bos and eos."""
    score: float
    """``log_prob`` normalised for length: what the n best are ordered by."""
    log_prob: float
    """The sum of ``token_log_probs``."""
    token_log_probs: tuple[float, ...]
    """One for each token, and one more for eos where it was generated."""
    stopped: Literal["eos", "length"]
    """Whether it ended by itself or reached the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What ``search_steps`` yields after each step."""

    prefixes: Prefixes
    """The prefixes after this step."""
    open_N: Tensor
    """True for the rows that go on."""
    finished: dict[int, list[Hypothesis]]
    """The sentences that are decided with this step, each with its n best."""


def search(
    model: Model[StateT],
    src_BS: Tensor,
    strategy: Strategy,
    *,
    processors: Sequence[Processor] = (),
    limits: Limits,
) -> list[list[Hypothesis]]:
    """The n best hypotheses of every sentence, best first, in the order of the sentences.

    Every sentence gets at least one. Its hypotheses depend on its own source alone as far as the
    model's logits do. Raises InputError when the model gives NaN.
    """
    finished: dict[int, list[Hypothesis]] = {}
    for step in search_steps(model, src_BS, strategy, processors=processors, limits=limits):
        finished |= step.finished
    return [finished[sentence] for sentence in range(src_BS.shape[0])]


@torch.inference_mode()
def search_steps(
    model: Model[StateT],
    src_BS: Tensor,
    strategy: Strategy,
    *,
    processors: Sequence[Processor] = (),
    limits: Limits,
) -> Iterator[Step]:
    """The loop; yields after every step until all sentences are decided."""
    _check(src_BS, limits)
    if src_BS.shape[0] == 0:
        return
    width = strategy.beam_size
    state = model.start(src_BS, width)
    frontier = strategy.begin(limits.max_B, limits.eos_id)
    log_softmax = _LogSoftmax()
    rows = _Rows(src_BS.shape[0], strategy, limits, src_BS.device)
    while True:
        logits_NV = model.step(rows.last_N, state)
        for process in processors:
            logits_NV = process(logits_NV, rows.prefixes)
        log_probs_NV = log_softmax(logits_NV)
        advance = frontier.advance(log_probs_NV)

        # One row of a softmax is NaN as a whole or not at all. Three flags, one synchronisation.
        broken = (log_probs_NV[:, 0].isnan() & rows.open_N).any()
        undecided_B = advance.open_N.view(-1, width).any(1)
        flags = torch.stack([broken, advance.ended_N.any(), ~undecided_B.all()])
        is_broken, any_ended, any_decided = flags.tolist()
        if is_broken:
            raise _broken(logits_NV)

        rows.append(advance)
        if any_ended:
            rows.collect(advance)
        parents_N = advance.parents_N
        finished = {}
        if any_decided:
            finished = rows.decided(undecided_B)
            sentences_K = undecided_B.nonzero().flatten()
            kept_N = undecided_B.repeat_interleave(width).nonzero().flatten()
            parents_N = kept_N if parents_N is None else parents_N[kept_N]
            frontier.keep(sentences_K)
            rows.keep(kept_N)
        yield Step(prefixes=rows.prefixes, open_N=rows.open_N, finished=finished)
        if not len(rows.last_N):
            return
        if parents_N is not None:
            state.select(parents_N)


def _check(src_BS: Tensor, limits: Limits) -> None:
    """Shapes and ranges at the door."""
    if src_BS.ndim != 2 or limits.max_B.shape != src_BS.shape[:1]:
        shapes = f"{tuple(src_BS.shape)} and {tuple(limits.max_B.shape)}"
        raise ValueError(f"sources (B, S) and length limits (B) disagree: {shapes}")
    if bool((limits.max_B < 1).any()):
        raise ValueError(f"a maximum length below 1: {limits.max_B.tolist()}")


class _LogSoftmax:
    """``logits - log sum exp(logits)`` of each row, in float32.

    The result lies in the same memory in every step: fresh memory of this size comes from the
    system page by page, which takes as long as the computation (64 sentences, 5 beams, 8,000
    tokens: 1 ms a step).
    """

    def __init__(self) -> None:
        self._space_NV: Tensor | None = None

    def __call__(self, logits_NV: Tensor) -> Tensor:
        """Valid until the next call. The number of rows never grows."""
        if self._space_NV is None:
            self._space_NV = torch.empty_like(logits_NV, dtype=torch.float32)
        space_NV = self._space_NV[: len(logits_NV)]
        return torch.log_softmax(logits_NV, dim=1, dtype=torch.float32, out=space_NV)


def _broken(logits_NV: Tensor) -> InputError:
    """The reason why a row has no probabilities."""
    if bool((logits_NV.isnan() | logits_NV.isposinf()).any()):
        return InputError(
            "The model gives NaN or infinite logits, so its weights are broken; "
            "use another checkpoint."
        )
    return InputError(
        "No token is left to generate: the processors (forbidden tokens, minimum length) "
        "exclude the whole vocabulary; relax one of them."
    )


class _Rows:
    """The N rows of a search: which sentence each serves, and the history of its tokens.

    The history is preallocated and doubles when it is full.
    """

    def __init__(
        self, num_sentences: int, strategy: Strategy, limits: Limits, device: torch.device
    ) -> None:
        width = strategy.beam_size
        self._n_best = strategy.n_best
        self._eos_id = limits.eos_id
        self._width = width
        self._sentence_N = torch.arange(num_sentences, device=device).repeat_interleave(width)
        count = len(self._sentence_N)
        self._ids_NL = torch.zeros((count, 32), dtype=torch.long, device=device)
        self._log_probs_NL = torch.zeros((count, 32), device=device)
        self._length = 0
        self._complete: dict[int, list[Hypothesis]] = {}
        first_B = limits.first_B
        if first_B is None:
            first_B = torch.full((num_sentences,), limits.bos_id, device=device)
        self.last_N = first_B.repeat_interleave(width)
        self.open_N = (torch.arange(count, device=device) % width) == 0

    @property
    def prefixes(self) -> Prefixes:
        """What the processors see."""
        return Prefixes(self._ids_NL[:, : self._length], self._sentence_N)

    def append(self, advance: Advance) -> None:
        """Reorder the histories by parents and append the new tokens."""
        if self._length == self._ids_NL.shape[1]:
            room = (0, self._length)
            self._ids_NL = F.pad(self._ids_NL, room)
            self._log_probs_NL = F.pad(self._log_probs_NL, room)
        if advance.parents_N is not None:
            self._ids_NL = self._ids_NL.index_select(0, advance.parents_N)
            self._log_probs_NL = self._log_probs_NL.index_select(0, advance.parents_N)
        self._ids_NL[:, self._length] = advance.tokens_N
        self._log_probs_NL[:, self._length] = advance.token_log_probs_N
        self._length += 1
        self.last_N = advance.tokens_N
        self.open_N = advance.open_N

    def collect(self, advance: Advance) -> None:
        """Copy the hypotheses that ended with this step."""
        rows = advance.ended_N.nonzero().flatten()
        columns = zip(
            self._sentence_N[rows].tolist(),
            self._ids_NL[rows, : self._length].tolist(),
            self._log_probs_NL[rows, : self._length].tolist(),
            advance.log_probs_N[rows].tolist(),
            advance.scores_N[rows].tolist(),
            strict=True,
        )
        for sentence, ids, token_log_probs, log_prob, score in columns:
            by_itself = ids[-1] == self._eos_id
            hypothesis = Hypothesis(
                ids=tuple(ids[:-1] if by_itself else ids),
                score=score,
                log_prob=log_prob,
                token_log_probs=tuple(token_log_probs),
                stopped="eos" if by_itself else "length",
            )
            self._complete.setdefault(sentence, []).append(hypothesis)

    def decided(self, undecided_B: Tensor) -> dict[int, list[Hypothesis]]:
        """The n best of the sentences that need no further step; earlier first among equals."""
        sentences = self._sentence_N[:: self._width][~undecided_B].tolist()
        ranked = {
            sentence: sorted(self._complete.pop(sentence), key=lambda h: h.score, reverse=True)
            for sentence in sentences
        }
        return {sentence: best[: self._n_best] for sentence, best in ranked.items()}

    def keep(self, rows_N: Tensor) -> None:
        """Go on with these rows only."""
        self._sentence_N = self._sentence_N[rows_N]
        self._ids_NL = self._ids_NL[rows_N]
        self._log_probs_NL = self._log_probs_NL[rows_N]
        self.last_N = self.last_N[rows_N]
        self.open_N = self.open_N[rows_N]
