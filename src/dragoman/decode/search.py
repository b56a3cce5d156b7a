"""The one loop of decoding: step, process, log-softmax, advance, select, stop.

`search_steps` is the loop as a generator, which is what streaming needs; `search` runs it to
its end. Everything that differs between ways of decoding is passed in as a value: the model, the
strategy, the processors, the limits.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import compress, repeat
from operator import not_

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.decode.attended import AttendedRows
from dragoman.decode.compiled import BROKEN, CompiledFrontier, StepsAhead, begin
from dragoman.decode.open_rows import OpenRows
from dragoman.decode.processors import GivenProcessor, Processor, is_spoilt
from dragoman.decode.protocol import (
    Advance,
    Frontier,
    Hypothesis,
    Limits,
    Model,
    Prefixes,
    SearchStep,
    StateT,
    Strategy,
)
from dragoman.errors import InputError
from dragoman.nn.cpu.ranking import LogSoftmax


def search(
    model: Model[StateT],
    src_BS: Tensor,
    strategy: Strategy,
    *,
    processors: Sequence[Processor] = (),
    limits: Limits,
    withdrawn: Callable[[int], bool] | None = None,
) -> list[list[Hypothesis]]:
    """Return the n best hypotheses of each sentence, best first, in the order of the sentences.

    Every sentence gets at least one. Its hypotheses depend on its own source alone as far as the
    model's logits do. `withdrawn` is called with each open sentence's number after each step; a
    withdrawn one takes no further step, and its result is unspecified. If the model's states
    are watched, hypotheses contain what they attended to. Raises InputError if the model gives NaN.
    """
    finished: dict[int, list[Hypothesis]] = {}
    steps = search_steps(
        model, src_BS, strategy, processors=processors, limits=limits, withdrawn=withdrawn
    )
    for step in steps:
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
    withdrawn: Callable[[int], bool] | None = None,
) -> Iterator[SearchStep]:
    """Run the loop; yield after every step until all sentences are decided or withdrawn.

    Steps that compiled code takes in one call, a few milliseconds of a small model, count as one.
    """
    _check(src_BS, limits)
    if src_BS.shape[0] == 0:
        return
    width = strategy.beam_size
    state = model.start(src_BS, width)
    frontier = begin(strategy, limits)
    log_softmax = LogSoftmax()
    rows = _Rows(src_BS.shape[0], strategy, limits, src_BS.device)
    open_rows = OpenRows(frontier, state, rows.open_N)
    rows.attended = AttendedRows.of(state, frontier, rows.last_N)
    ahead = StepsAhead(model, frontier, processors)
    while True:
        advance = ahead.advance(state, open_rows, rows.last_N)
        if advance is None:
            logits_MV = model.step(open_rows.of(rows.last_N), state)
            if rows.attended is not None:
                rows.attended.add(open_rows.places_N)
            for process in processors:
                logits_MV = process(logits_MV, open_rows.prefixes(rows.prefixes))
            open_M = open_rows.of(rows.open_N)
            advance = _advanced(frontier, log_softmax, logits_MV, open_M, processors)
        rows.append(advance)
        undecided = [True] * len(rows.sentences)
        if not advance.quiet:
            goes_on = advance.open_N.tolist()
            undecided = [any(goes_on[n : n + width]) for n in range(0, len(goes_on), width)]
            rows.collect(advance)
        parents_N = None if advance.parents_N is None else advance.parents_N.clone()
        finished = {}
        if withdrawn is not None:
            undecided = [
                some and not withdrawn(sentence)
                for some, sentence in zip(undecided, rows.sentences, strict=True)
            ]
        if not all(undecided):
            undecided_B = torch.tensor(undecided, device=src_BS.device)
            finished = rows.decided(undecided)
            kept_N = undecided_B.repeat_interleave(width).nonzero().flatten()
            parents_N = kept_N if parents_N is None else parents_N[kept_N]
            frontier.keep(undecided_B.nonzero().flatten())
            rows.keep(kept_N)
        yield SearchStep(prefixes=rows.prefixes, open_N=rows.open_N, finished=finished)
        if not len(rows.last_N):
            return
        open_rows.select(parents_N)


def _advanced(
    frontier: Frontier | CompiledFrontier,
    log_softmax: LogSoftmax,
    logits_MV: Tensor,
    open_M: Tensor,
    processors: Sequence[Processor],
) -> Advance:
    """Return the frontier's choice. Raises InputError if an open row has no probabilities."""
    if isinstance(frontier, CompiledFrontier):
        chosen = frontier.advance(logits_MV)
    else:
        log_probs_MV = log_softmax(logits_MV)
        advance = frontier.advance(log_probs_MV)
        # One row of a softmax is NaN as a whole or not at all.
        chosen = None if bool((log_probs_MV[:, 0].isnan() & open_M).any()) else advance
    if chosen is None:
        for each in processors:
            if isinstance(each, GivenProcessor):
                each.check()
        if is_spoilt(logits_MV):
            raise InputError(BROKEN)
        raise InputError(
            "No token is left to generate: the processors (forbidden tokens, minimum length) "
            "exclude the whole vocabulary; relax one of them."
        )
    return chosen


def _check(src_BS: Tensor, limits: Limits) -> None:
    """Check shapes and ranges."""
    if src_BS.ndim != 2 or limits.max_B.shape != src_BS.shape[:1]:
        shapes = f"{tuple(src_BS.shape)} and {tuple(limits.max_B.shape)}"
        raise ValueError(f"sources (B, S) and length limits (B) disagree: {shapes}")
    if bool((limits.max_B < 1).any()):
        raise ValueError(f"a maximum length below 1: {limits.max_B.tolist()}")


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
        self._sentence_N = torch.arange(num_sentences, device=device).repeat_interleave(width)
        self.sentences = [*range(num_sentences)]
        count = len(self._sentence_N)
        self._ids_NL = torch.zeros((count, 32), dtype=torch.long, device=device)
        self._log_probs_NL = torch.zeros((count, 32), dtype=torch.float32, device=device)
        self._length = 0
        self._complete: dict[int, dict[tuple[int, ...], Hypothesis]] = {}
        self.attended: AttendedRows | None = None
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
        if (earlier := advance.earlier) is not None:
            self._extend(earlier.parents_N, earlier.tokens_NS, earlier.token_log_probs_NS)
        tokens_N1, values_N1 = advance.tokens_N[:, None], advance.token_log_probs_N[:, None]
        self._extend(advance.parents_N, tokens_N1, values_N1)
        # The next step overwrites these; a model, or the caller, may keep them.
        self.last_N, self.open_N = advance.tokens_N.clone(), advance.open_N.clone()

    def _extend(self, parents_N: Tensor | None, tokens_NS: Tensor, values_NS: Tensor) -> None:
        end = self._length + tokens_NS.shape[1]
        if end > self._ids_NL.shape[1]:
            room = (0, end)
            self._ids_NL = F.pad(self._ids_NL, room)
            self._log_probs_NL = F.pad(self._log_probs_NL, room)
        if parents_N is not None:
            self._ids_NL = self._ids_NL.index_select(0, parents_N)
            self._log_probs_NL = self._log_probs_NL.index_select(0, parents_N)
            if self.attended is not None:
                self.attended.select(parents_N)
        self._ids_NL[:, self._length : end] = tokens_NS
        self._log_probs_NL[:, self._length : end] = values_NS
        self._length = end

    def collect(self, advance: Advance) -> None:
        """Copy the hypotheses that ended with this step; one that two groups found counts once."""
        rows = advance.ended_N.nonzero().flatten()
        attention = repeat(None) if self.attended is None else self.attended.weights(rows)
        columns = zip(
            self._sentence_N[rows].tolist(),
            self._ids_NL[rows, : self._length].tolist(),
            self._log_probs_NL[rows, : self._length].tolist(),
            advance.log_probs_N[rows].tolist(),
            advance.scores_N[rows].tolist(),
            strict=True,
        )
        for (sentence, ids, token_log_probs, log_prob, score), attention_LS in zip(
            columns, attention, strict=False
        ):
            by_itself = ids[-1] == self._eos_id
            hypothesis = Hypothesis(
                ids=tuple(ids[:-1] if by_itself else ids),
                score=score,
                log_prob=log_prob,
                token_log_probs=tuple(token_log_probs),
                stopped="eos" if by_itself else "length",
                attention_LS=attention_LS,
            )
            self._complete.setdefault(sentence, {}).setdefault(hypothesis.ids, hypothesis)

    def decided(self, undecided: Sequence[bool]) -> dict[int, list[Hypothesis]]:
        """Return the n best of the decided sentences; ties go to the earlier hypothesis."""
        decided = [*compress(self.sentences, map(not_, undecided))]
        self.sentences = [*compress(self.sentences, undecided)]
        found = {sentence: self._complete.pop(sentence, {}).values() for sentence in decided}
        best = {each: sorted(found[each], key=lambda h: h.score, reverse=True) for each in found}
        return {sentence: ranked[: self._n_best] for sentence, ranked in best.items()}

    def keep(self, rows_N: Tensor) -> None:
        """Keep only these rows."""
        if self.attended is not None:
            self.attended.select(rows_N)
        self._sentence_N = self._sentence_N[rows_N]
        self._ids_NL = self._ids_NL[rows_N]
        self._log_probs_NL = self._log_probs_NL[rows_N]
        self.last_N = self.last_N[rows_N]
        self.open_N = self.open_N[rows_N]
