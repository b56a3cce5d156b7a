"""The part of a generator without text: from ids to ids, and to log-probabilities.

Axes as in `dragoman.decode`: B prompts, S their length, T text, V vocabulary, N rows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.decode import (
    Forbid,
    Hypothesis,
    Items,
    Limits,
    MinimumLength,
    NoRepeatedNgrams,
    PowerBeam,
    Prefixes,
    Processor,
    RepetitionPenalty,
    Rolling,
    Scheduler,
    SearchStep,
    Strategy,
    score_pairs,
    search_steps,
)
from dragoman.decode.requests import Withdrawn
from dragoman.decoding import Decoding
from dragoman.models import DecoderOnly
from dragoman.tasks.generate.prompts import end_by, known_ids, stop_at
from dragoman.tasks.held import Held
from dragoman.tasks.options import key_of, processors_of, strategy_of
from dragoman.text.tokenizer import Tokenizer

See = Callable[[Sequence[int]], None]
"""Receives all tokens that are certain after each step, in the thread that computes."""


class Prompt(NamedTuple):
    """A prompt to continue."""

    text: str
    """The text that the result reports."""
    ids: list[int]
    begins_text: bool
    """Whether the continuation begins a text."""
    number: int = 0
    """The number that its sampling depends on."""
    see: See | None = None
    """Watches the text grow."""
    bounded: bool = False
    """Whether the model must see both at once: an answer takes at most what the prompt leaves."""


NOTHING = Hypothesis(ids=(), score=0.0, log_prob=0.0, token_log_probs=(), stopped="length")
"""The result for a withdrawn prompt."""


class IdGenerator:
    """Search and forced decoding on ids; `steps` and `force` run inside `model.inference()`."""

    def __init__(
        self,
        model: Held[DecoderOnly],
        tokenizer: Tokenizer,
        ends: Sequence[int],
        never: Sequence[int],
        context: int | None,
    ) -> None:
        """A text ends with any of `ends` and never contains any of `never`.

        `context` is how many tokens the model sees at once if the options of a call do not say.
        """
        self.model = model
        self._tokenizer = tokenizer
        self._ends = tuple(ends)
        self._eos_id = min(ends, key=lambda end: end != tokenizer.eos_id)
        self._forbid = Forbid(tuple(never))
        self._named = processors_of(tokenizer)
        self._bound = context
        self.scheduler = Scheduler(self._run, model.lanes)
        """Computes what `continued` asks for."""

    def context(self, options: Decoding) -> int | None:
        """Return how many tokens the model sees at once; None if nothing limits them."""
        places = self.model.shape.embedding.num_positions
        bounds = [bound for bound in (options.context or self._bound, places) if bound]
        return min(bounds, default=None)

    def continued(self, prompt: Prompt, options: Decoding) -> Items[Prompt]:
        """Return what a course yields to be sent the best continuation of a prompt.

        Prompts of equal length share a batch, so there is no padding.
        """
        length = len(prompt.ids)
        return Items(
            values=[prompt],
            costs=[(length + options.new_tokens(length)) * options.beam_size],
            budget=options.max_batch_tokens,
            how=options,
            key=(key_of(options), length, prompt.begins_text, prompt.bounded),
        )

    def _run(
        self, options: Decoding, prompts: list[Prompt], withdrawn: Withdrawn
    ) -> list[Hypothesis]:
        strategy = strategy_of(options, tuple(prompt.number for prompt in prompts))
        watched = {n: prompt.see for n, prompt in enumerate(prompts) if prompt.see is not None}
        best: dict[int, list[Hypothesis]] = {}
        with self.model.inference():
            for step in self.steps(prompts, strategy, options, withdrawn):
                best |= step.finished
                known = known_ids(step, drafting=options.beam_size > 1) if watched else {}
                for number in watched.keys() & known.keys():
                    watched[number](known[number])
        return [best[row][0] if best[row] else NOTHING for row in range(len(prompts))]

    def force(self, prompt: Sequence[int], text: Sequence[int]) -> list[float]:
        """Return the log-probability of each token of a text after a prompt, both non-empty."""
        ids_BL = torch.tensor([[*prompt, *text]], device=self.model.device)
        model = self.model.whole()
        hidden_BLD = model.hidden(ids_BL[:, :-1])[:, len(prompt) - 1 :]
        logits_NV = model.project(hidden_BLD)[0].float()
        targets_BT = ids_BL[:, len(prompt) :]
        allowed_NV = self._forbid(logits_NV, Prefixes(targets_BT.T, torch.arange(len(text))))
        pad_id = self._tokenizer.pad_id
        found: list[float] = score_pairs(allowed_NV[None], targets_BT, pad_id)[0].tolist()
        return found

    def steps(
        self,
        prompts: Sequence[Prompt],
        strategy: Strategy,
        options: Decoding,
        withdrawn: Withdrawn | None = None,
    ) -> Iterator[SearchStep]:
        """Search from prompts of equal length. Either all or no continuations begin a text."""
        prompts_BS = torch.tensor([prompt.ids for prompt in prompts], device=self.model.device)
        begins_text = prompts[0].begins_text
        if isinstance(strategy, PowerBeam):
            strategy = replace(strategy, ends=self._ends)
        length, context = prompts_BS.shape[1], self.context(options)
        most, model = options.new_tokens(length), self.model.frozen
        if context is not None and prompts[0].bounded:
            most = min(most, context - length)
        last, change = length - 1 + most, self.model.shape.changes_at
        over = None if context is None or last <= context else context
        if over is not None or (change is not None and length <= change < last):
            model = Rolling(model, over, change)
        limits = Limits(
            bos_id=self._tokenizer.bos_id,
            eos_id=self._eos_id,
            max_B=torch.full_like(prompts_BS[:, 0], most),
            first_B=prompts_BS[:, -1],
        )
        return search_steps(
            model,
            prompts_BS,
            strategy,
            processors=self._processors(prompts_BS, options, strategy, begins_text=begins_text),
            limits=limits,
            withdrawn=withdrawn,
        )

    def _processors(
        self, prompts_BS: Tensor, options: Decoding, strategy: Strategy, *, begins_text: bool
    ) -> list[Processor]:
        processors: list[Processor] = [self._forbid, *self._named(options)]
        beam = strategy if isinstance(strategy, PowerBeam) else None  # handles several ends itself
        if options.repetition_penalty != 1.0:
            processors.append(RepetitionPenalty(options.repetition_penalty, prompts_BS))
        if options.no_repeat_ngrams:
            processors.append(NoRepeatedNgrams(options.no_repeat_ngrams, prompts_BS))
        if len(self._ends) > 1 and beam is None:
            processors.append(end_by(self._ends, self._eos_id, summed=options.temperature > 0))
        if options.min_length:
            min_B = torch.full_like(prompts_BS[:, 0], options.min_length)
            processors += [MinimumLength(min_B, id_) for id_ in self._ends]
        if options.stop:
            processors.append(
                stop_at(self._tokenizer, self._eos_id, options.stop, begins_text=begins_text)
            )
        return beam.around(processors) if beam else processors
