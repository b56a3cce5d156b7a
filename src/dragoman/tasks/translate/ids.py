"""The part of a translator without text: from ids to ids, log-probabilities and attention.

Axes as in `dragoman.decode`: B sentences, S source, T target, H heads, V vocabulary, N rows.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from dragoman.data.dataset import Ragged
from dragoman.data.padding import enclosed
from dragoman.decode import (
    Attentive,
    Beam,
    Ensemble,
    Forbid,
    Forced,
    ForcedEnd,
    ForcedPrefix,
    Greedy,
    Head,
    Hypothesis,
    Items,
    Limits,
    MinimumLength,
    Model,
    NoRepeatedNgrams,
    PowerBeam,
    Prefixes,
    Processor,
    RepetitionPenalty,
    Strategy,
    force,
    mean_log_probs,
    relative_lengths,
    search,
)
from dragoman.decode.constrained import USUAL_WIDTH, Constrained, Edges, Term
from dragoman.decode.requests import Withdrawn
from dragoman.decode.shortlist import BOS, EOS, Lists, Shortlist, Shortlisted
from dragoman.decoding import Decoding
from dragoman.errors import InputError
from dragoman.models import EncoderDecoder
from dragoman.nn import MultiHeadAttention, evaluation_view
from dragoman.nn.patterns.recording import Recording
from dragoman.tasks.held import Held
from dragoman.tasks.options import key_of, strategy_of
from dragoman.text.tokenizer import Frame

Ids = Sequence[int]

MEAN = Head()
"""The mean over the heads of the last layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Specials:
    """Special-token ids and the vocabulary sizes of both sides."""

    src_pad_id: int
    """Padding of sources."""
    src_frame: Frame
    """The ids before and after those of a source."""
    pad_id: int
    """Padding of targets."""
    bos_id: int
    """The first id that the decoder reads."""
    begin: tuple[int, ...] = ()
    """Special tokens that begin every target, such as a language."""
    eos_id: int
    """End of targets."""
    forbidden: tuple[int, ...]
    """Ids that a target never contains."""
    forced_end: bool = False
    """Whether the last token within the length limit is always eos."""


class WantedText(NamedTuple):
    """Text that a translation must contain for a span of its source."""

    start: int
    end: int
    forms: tuple[tuple[int, ...], ...]
    """Alternatives, one of which is written."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source to translate; its length is its number of ids."""

    ids: Ids
    prefix: Ids = ()
    """The ids with which its translation begins."""
    draw: int = 0
    """The number of the sample."""
    text: str = ""
    """The text of the ids, by which a retry splits them."""
    terms: tuple[Term, ...] = ()
    """What its translation must contain, by positions in the ids."""
    wanted: tuple[WantedText, ...] = ()
    """The same by positions in the text."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def key(self) -> Hashable:
        """What its result depends on, besides the options."""
        return tuple(self.ids), tuple(self.prefix), self.draw, self.terms

    @property
    def number(self) -> int:
        """A hash of its content, combined with the seed; independent of its place in a batch."""
        content = repr((list(self.ids), list(self.prefix), self.draw)).encode()
        return int.from_bytes(blake2b(content, digest_size=8).digest())


@dataclass(frozen=True, eq=False)
class IdTranslator:
    """Search, forced decoding and attention on lists of ids without bos and eos.

    `search` and `force` run inside `model.inference()`, where no row of a matrix product depends on
    the number of rows (fp32 on a CPU).
    """

    model: Held[EncoderDecoder]
    specials: Specials
    shortlist: Callable[[], Shortlist] | None = None
    """Called for each search with the option of that name."""
    head: Head = MEAN
    """The head that aligns."""
    edges: Callable[[], Edges] | None = None
    """Called for each search with terms."""
    others: tuple[Held[EncoderDecoder], ...] = ()
    """Other models of an ensemble, which decodes by the mean of all probabilities."""
    aligns: bool = False
    """Whether hypotheses contain their attention."""

    @property
    def models(self) -> tuple[Held[EncoderDecoder], ...]:
        """All models of the ensemble."""
        return self.model, *self.others

    def longest_source(self, wanted: int) -> int:
        """Return `wanted`, or the number of positions besides the frame if that is smaller."""
        bounds = [held.shape.src_embedding.num_positions for held in self.models]
        frame = self.specials.src_frame
        around = len(frame.before) + len(frame.after)
        return max(1, min([wanted, *(places - around for places in bounds if places is not None)]))

    @property
    def longest_target(self) -> int | None:
        """Maximum number of target tokens including eos; None if there is no limit."""
        bounds = [held.shape.tgt_embedding.num_positions for held in self.models]
        return min((places for places in bounds if places is not None), default=None)

    def searched(self, sources: Sequence[Source], options: Decoding) -> Items[Source]:
        """Return the items that a course yields to get the n best of each source."""
        constrained = any(source.terms for source in sources)  # all of them or none
        width = max(USUAL_WIDTH, options.beam_size) if constrained else options.beam_size
        least = options.min_length  # tokens written for any source
        costs = [(len(source) + max(least, len(source.prefix))) * width for source in sources]
        budget = options.max_batch_tokens
        key = key_of(options), self.specials, self.aligns, constrained
        return Items(values=sources, costs=costs, budget=budget, how=(self, options), key=key)

    def forced(self, pair: tuple[Ids, Ids], options: Decoding) -> Items[tuple[Ids, Ids]]:
        """Return the items for a pair's log-probability, score and token log-probabilities."""
        cost, budget = sum(map(len, pair)), max(1, options.max_batch_tokens // 2)
        key = options.length_penalty, self.specials
        how = self, options.length_penalty
        return Items(values=[pair], costs=[cost], budget=budget, how=how, key=key)

    def search(
        self,
        sources: Sequence[Source],
        options: Decoding,
        strategy: Strategy | None = None,
        withdrawn: Withdrawn | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the n best of each source, in order, by `strategy` or else by the options."""
        lengths_B = torch.tensor([len(source) for source in sources])
        begin = self.specials.begin
        given_B = [len(begin) + len(source.prefix) for source in sources]
        least_B = 1 + torch.tensor([max(options.min_length, given) for given in given_B])
        max_B = relative_lengths(
            lengths_B, factor=options.max_length_factor, constant=options.max_length_constant
        )
        max_B = max_B.clamp(min=least_B)
        if self.longest_target is not None:
            max_B = max_B.clamp(max=self.longest_target)
        strategy = strategy or self._strategy(sources, options)
        constrained = strategy if isinstance(strategy, Constrained) else None
        frozen = [held.frozen for held in self.models]
        model: Model[Any] = frozen[0] if len(frozen) == 1 else Ensemble(frozen)
        lists, bos_id, eos_id = None, self.specials.bos_id, self.specials.eos_id
        if options.shortlist and constrained is None:
            lists = self._lists(sources)
            model, bos_id, eos_id = Shortlisted(model, lists), BOS, EOS
        attentive = self.aligns or constrained is not None
        # terms need the attention for the token that a step is about to write
        head = MEAN if constrained is not None and self.head.later else self.head
        if attentive:
            model = Attentive(model, head)
        limits = Limits(bos_id=bos_id, eos_id=eos_id, max_B=max_B.to(self.model.device))
        found = search(
            model,
            self._pad_src([source.ids for source in sources]),
            strategy,
            processors=self._processors(sources, options, lists, strategy, limits),
            limits=limits,
            withdrawn=withdrawn,
        )
        if constrained is not None:
            found = [constrained.best_first(*each) for each in enumerate(found)]

        def finished(number: int, each: Hypothesis) -> Hypothesis:
            if attentive and head != self.head:
                each = replace(each, attention_LS=None)
            if self.specials.forced_end:
                each = _cut_short(each, int(max_B[number]))
            if lists is not None:
                each = replace(each, ids=lists.tokens(number, each))
            return _without(begin, each)

        return [[finished(n, each) for each in best] for n, best in enumerate(found)]

    def _strategy(self, sources: Sequence[Source], options: Decoding) -> Strategy:
        """Return the strategy of the options, or for sources with terms a beam that writes them."""
        if not any(source.terms for source in sources):
            return strategy_of(options, tuple(source.number for source in sources))
        before = len(self.specials.src_frame.before)
        beam = Beam(
            beam_size=options.beam_size,
            length_penalty=options.length_penalty,
            n_best=options.n_best,
        )
        assert self.edges is not None  # noqa: S101 (who searches terms has them)
        terms = (tuple(term.moved(before) for term in source.terms) for source in sources)
        return Constrained(beam=beam, terms=tuple(terms), edges=self.edges())

    def _lists(self, sources: Sequence[Source]) -> Lists:
        """Return the tokens allowed for each source. Raises InputError if there is no shortlist."""
        if self.shortlist is None:
            raise InputError("this translator has no shortlist; load one from a folder that has")
        specials = self.specials
        forced = [(*specials.begin, *source.prefix) for source in sources]
        found = map(self.shortlist().of, (source.ids for source in sources), forced)
        never = (*specials.forbidden, specials.bos_id, specials.eos_id)
        allowed = [
            tokens[~np.isin(tokens, never) | np.isin(tokens, given)]
            for tokens, given in zip(found, forced, strict=True)
        ]
        return Lists(allowed, bos_id=specials.bos_id, eos_id=specials.eos_id)

    def _processors(
        self,
        sources: Sequence[Source],
        options: Decoding,
        lists: Lists | None,
        strategy: Strategy,
        limits: Limits,
    ) -> list[Processor]:
        """Return the processors of the options; their ids are those of the lists, if any."""
        processors: list[Processor] = [] if lists else [Forbid(self.specials.forbidden)]
        if options.min_length:
            min_B = torch.full((len(sources),), options.min_length, device=self.model.device)
            processors.append(MinimumLength(min_B, limits.eos_id))
        first_B1 = None  # transformers also counts the first id that the decoder reads as written
        if options.length_norm == "power":
            first_B1 = torch.full((len(sources), 1), limits.bos_id, device=self.model.device)
        if options.repetition_penalty != 1.0:
            processors.append(RepetitionPenalty(options.repetition_penalty, first_B1))
        if options.no_repeat_ngrams:
            processors.append(NoRepeatedNgrams(options.no_repeat_ngrams, first_B1))
        processors += options.processors
        prefixes = [[*self.specials.begin, *source.prefix] for source in sources]
        if any(prefixes):
            if lists is not None:
                prefixes = [lists.places(number, ids) for number, ids in enumerate(prefixes)]
            processors.append(ForcedPrefix(prefixes, self.model.device))
        if self.specials.forced_end:
            processors.append(ForcedEnd(limits.max_B, limits.eos_id))
        if isinstance(strategy, PowerBeam):
            return strategy.around(processors)
        return processors

    def force(self, pairs: Sequence[tuple[Ids, Ids]], length_penalty: float) -> Forced:
        """Score given targets with the probabilities that a search sees."""
        tgt_in_BT, tgt_out_BT = self._targets([tgt for _, tgt in pairs])
        batch = (self._pad_src([src for src, _ in pairs]), tgt_in_BT, tgt_out_BT)
        return force(self._allowed_logits, batch, pad_id=self.specials.pad_id, alpha=length_penalty)

    def aligned(self, src: Source, found: Hypothesis) -> Tensor:
        """Return the weights (T, S) of `head`, computed unless the search kept those of all steps.

        A hypothesis that did not end lacks the last step.
        """
        kept_LS, column = found.attention_LS, len(self.specials.src_frame.before)
        if kept_LS is None or len(kept_LS) != len(found.ids) + 1:
            return self.attention(src.ids, found.ids)
        return self.head.of_tokens(kept_LS[:, column : column + len(src) + 1].clone())

    def attention(self, src: Ids, tgt: Ids) -> Tensor:
        """Compute the weights (T, S) of `head` with the readable reference implementation.

        They are those of writing the target given the source. Their last row and column are the
        ends of both sentences; other ids of the frame are left out.
        """
        layer, head, _ = self.head
        found: list[Tensor] = []
        model = evaluation_view(self.model.whole())  # other threads use the model
        attention = cast("MultiHeadAttention", model.decoder.each_layer()[layer].cross_attn)
        heads = None if head is None else [head]
        attention.pattern = Recording(of=attention.pattern, see=found.append, heads=heads)
        with self.model.inference():
            model(self._pad_src([src]), self._targets([tgt])[0])
        (weights_BHTS,) = found
        weights_TS = weights_BHTS[0].float().mean(0).cpu()
        row, column = len(self.specials.begin), len(self.specials.src_frame.before)
        return self.head.of_tokens(weights_TS[row:, column : column + len(src) + 1])

    def _allowed_logits(self, src_BS: Tensor, tgt_in_BT: Tensor) -> Tensor:
        """Compute the logits of all positions, without ids that decoding never writes."""
        every = [held.whole()(src_BS, tgt_in_BT).float() for held in self.models]
        logits_BTV: Tensor = every[0] if len(every) == 1 else mean_log_probs(every)
        begun = len(self.specials.begin)
        logits_BTV, tgt_in_BT = logits_BTV[:, begun:].contiguous(), tgt_in_BT[:, begun:]
        rows = torch.arange(tgt_in_BT.numel(), device=tgt_in_BT.device)
        prefixes = Prefixes(tgt_in_BT.reshape(-1, 1), rows)
        forbid = Forbid(self.specials.forbidden)
        return forbid(logits_BTV.flatten(0, 1), prefixes).view_as(logits_BTV)

    def _pad_src(self, sources: Sequence[Ids]) -> Tensor:
        """Return the sources (B, S) in their frames, padded."""
        frame, pad_id = self.specials.src_frame, self.specials.src_pad_id
        return enclosed(Ragged.of(sources), pad_id, frame.before, frame.after).to(self.model.device)

    def _targets(self, targets: Sequence[Ids]) -> tuple[Tensor, Tensor]:
        """Return the input and the expected output of the decoder for the targets: (B, T) both.

        The ids that begin every target are only in the input.
        """
        specials, ids = self.specials, Ragged.of(targets)
        tgt_in_BT = enclosed(ids, specials.pad_id, (specials.bos_id, *specials.begin), ())
        tgt_out_BT = enclosed(ids, specials.pad_id, (), (specials.eos_id,))
        return tgt_in_BT.to(self.model.device), tgt_out_BT.to(self.model.device)


def run(
    how: tuple[IdTranslator, Decoding | float], items: list[Any], withdrawn: Withdrawn
) -> list[Any]:
    """Compute a batch of sources to search, or of pairs to score, which share their settings."""
    translator, options = how
    with translator.model.inference():
        if isinstance(options, Decoding):
            return translator.search(items, options, withdrawn=withdrawn)
        found = translator.force(items, options)
    columns = found.log_prob_B, found.score_B, found.token_log_probs_BT
    return [*zip(*(column.tolist() for column in columns), strict=True)]


def write_to_lengths(
    decoder: Model[Any],
    source_BS: Tensor,
    lengths_B: Tensor,
    ends: tuple[int, int],
    beam_size: int = 1,
) -> None:
    """Search, to time it, to given lengths: an untrained model does not end a sentence.

    `ends` are bos and eos, which none gets. Call it in `dragoman.nn.inference`.
    """
    strategy = Beam(beam_size=beam_size) if beam_size > 1 else Greedy()
    limits = Limits(bos_id=ends[0], eos_id=ends[1], max_B=lengths_B)
    search(decoder, source_BS, strategy, processors=[Forbid(ends[1:])], limits=limits)


def _cut_short(found: Hypothesis, most: int) -> Hypothesis:
    """Return the hypothesis as one that reached the limit, if its end was forced there."""
    if len(found.ids) + 1 < most:
        return found
    return replace(found, token_log_probs=found.token_log_probs[: most - 1], stopped="length")


def _without(begin: Ids, found: Hypothesis) -> Hypothesis:
    """Return the hypothesis without the forced ids at its start, which have probability 1."""
    count = len(begin)
    if not count:
        return found
    ids, values = found.ids[count:], found.token_log_probs[count:]
    weights_LS = None if found.attention_LS is None else found.attention_LS[count:]
    return replace(found, ids=ids, token_log_probs=values, attention_LS=weights_LS)
