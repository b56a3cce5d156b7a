"""Generation: a prompt in, its continuation out.

    generator = dragoman.load("runs/shakespeare")
    generator.generate("ROMEO:").text
    for piece in generator.stream("ROMEO:"):
        print(piece, end="")

Prompts of equal length share a batch, so there is no padding, and a sampled text's random numbers
follow from the seed and the prompt's place: a text does not depend on the prompts beside it (in
fp32 on a CPU bit for bit).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self, overload

import torch
from torch import Tensor

from dragoman.decode import (
    Forbid,
    Hypothesis,
    Limits,
    MinimumLength,
    Model,
    NoRepeatedNgrams,
    PowerBeam,
    Prefixes,
    Processor,
    RepetitionPenalty,
    Rolling,
    SearchStep,
    Strategy,
    length_penalty,
    score_pairs,
    search_steps,
)
from dragoman.decoding import GENERATING, Decoding, merged
from dragoman.errors import InputError
from dragoman.folder.format import GENERATION, GenerationDefaults, PublishedDefaults
from dragoman.folder.opening import ModelFolder
from dragoman.models import DecoderOnly
from dragoman.models.plan import Planner
from dragoman.nn import Arithmetic, evaluation_view, inference
from dragoman.tasks.folders import Loadable, check_vocabulary
from dragoman.tasks.generate.dialogue import Chat, DialogueCodec, dialogue_of
from dragoman.tasks.generate.middle import Middle
from dragoman.tasks.generate.prompts import (
    Ends,
    PromptCodec,
    StopAt,
    TextStream,
    cut_at,
    groups,
    known_ids,
    unanswered,
)
from dragoman.tasks.lines import as_texts, encode_each, windows
from dragoman.tasks.options import extra_processors, published_options, strategy_of
from dragoman.tasks.results import Generation, Scored, score_each
from dragoman.tasks.task import model_of
from dragoman.text.tokenizer import Tokenizer


class Generator(Loadable):
    """A decoder-only model and its tokenizer, to continue texts.

    The model may be in training, in another thread too (its mode never changes), and on any device.
    `options` are what a call uses unless told otherwise.
    """

    def __init__(
        self,
        model: DecoderOnly,
        tokenizer: Tokenizer,
        *,
        defaults: GenerationDefaults | None = None,
        published: PublishedDefaults | None = None,
        decoding: Decoding | None = None,
        precision: Arithmetic = "fp32",
    ) -> None:
        """`published` and its beam `decoding` are for a model of another library."""
        check_vocabulary("model's", tokenizer, model.output.weight)
        defaults = defaults or GENERATION
        self.tokenizer = tokenizer
        layers: list[Decoding] = [defaults]
        self.model = model
        """What predicts the next token."""
        self._model = evaluation_view(model)
        self._planner = Planner(self._model, precision)
        self._precision: Arithmetic = precision
        self._ends = (published and published.ends) or (tokenizer.eos_id,)
        self._eos_id = min(self._ends, key=lambda end: end != tokenizer.eos_id)
        self.dialogues = None if defaults.chat is None else DialogueCodec(tokenizer, defaults.chat)
        """How turns become ids; None unless the model learned dialogues."""
        before = None if published is None else tokenizer.frame().before
        self._codec = self.dialogues or PromptCodec(tokenizer, defaults.opening, before)
        unused = range(tokenizer.vocab_size, len(model.output.weight))
        never = set(tokenizer.specials.values()) - {tokenizer.eos_id}
        if published is not None:
            never, unused = set(published.forbidden), range(0)
            beam = decoding or Decoding()
            layers += [
                Decoding(beam_size=beam.beam_size, length_penalty=beam.length_penalty),
                published_options(published),
            ]
        self.options = merged(*layers, GENERATING)
        self.never = (*sorted(never), *unused)
        """The ids that are never written: special tokens, and ids without a piece."""
        self._forbid = Forbid(self.never)

    @classmethod
    def of(cls, folder: ModelFolder, precision: Arithmetic = "fp32") -> Self:
        """Make one of a folder that was read. Raises InputError unless its model generates."""
        return cls(
            model_of(folder, DecoderOnly),
            folder.tgt_tokenizer,
            defaults=folder.config.generation,
            published=folder.config.published,
            decoding=folder.config.decoding,
            precision=precision,
        )

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self._model.output.weight.device

    @property
    def context(self) -> int | None:
        """How many tokens the model sees at once; None where nothing bounds them."""
        return self._context(self.options)

    # ------------------------------------------------------------ text to text

    @overload
    def generate(  # type: ignore[overload-overlap]  # a str is an iterable of str
        self,
        prompts: str,
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        stop: Sequence[str] | None = None,
        options: Decoding | None = None,
    ) -> Generation: ...

    @overload
    def generate(
        self,
        prompts: Iterable[str],
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        stop: Sequence[str] | None = None,
        options: Decoding | None = None,
    ) -> list[Generation]: ...

    def generate(
        self,
        prompts: str | Iterable[str],
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        stop: Sequence[str] | None = None,
        options: Decoding | None = None,
    ) -> Generation | list[Generation]:
        """Continue a prompt, or any number of them: as many results, in their order.

        What is given by name goes before `options`, and these before `self.options`.
        """
        given = {
            "max_tokens": max_tokens,
            "temperature": temperature,
            "seed": seed,
            "stop": None if stop is None else tuple(stop),
        }
        chosen = merged(Decoding.of(given), options or Decoding(), self.options)
        found = self._generate(as_texts(prompts), chosen, 0)
        return found[0] if isinstance(prompts, str) else found

    def each(
        self, prompts: Iterable[str], options: Decoding | None = None, *, window: int = 256
    ) -> Iterator[Generation]:
        """Yield what `generate` returns; prompts are taken in windows, so memory is bounded."""
        first, options = 0, self._chosen(options)
        for taken in windows(prompts, window):
            yield from self._generate(taken, options, first)
            first += len(taken)

    def stream(self, prompt: str, options: Decoding | None = None) -> Iterator[str]:
        """Yield the text of `generate` while it grows: whole characters, none ever taken back."""
        options = self._chosen(options)
        (ids,) = self._encode([prompt], options)
        yield from self._stream(ids, options, begins_text=self._codec.begins_text(prompt))

    def _stream(self, ids: list[int], options: Decoding, *, begins_text: bool) -> Iterator[str]:
        growing = TextStream(self.tokenizer, options.stop, begins_text=begins_text)
        steps = self._steps([ids], strategy_of(options, (0,)), options, begins_text=begins_text)
        pushed = 0
        while not growing.stopped:
            with inference(self._model, self._precision):  # and what is done with a piece outside
                step = next(steps, None)
            if step is None:
                break
            known = known_ids(step, drafting=options.beam_size > 1)
            piece = "".join(map(growing.push, known[pushed:]))
            pushed = len(known)
            if piece:
                yield piece
        if piece := growing.finish():
            yield piece

    def chat(self, options: Decoding | None = None, *, system: str | None = None) -> Chat:
        """Begin a conversation; `system` is a system prompt, for chat templates of Hugging Face.

        Raises InputError for a model without a chat template.
        """
        dialogue = dialogue_of(self.tokenizer, self.dialogues, system)
        chosen = self._chosen(options)

        def answer(turns: Sequence[str]) -> Iterator[str]:
            ids = dialogue.encode_turns(turns, chosen.prompt_room(self._context(chosen)))
            return self._stream(ids, chosen, begins_text=True)

        return Chat(answer)

    def fill(self, prefix: str, suffix: str, options: Decoding | None = None) -> Generation:
        """Generate the text between two others: a model that learned with the middle last.

        Raises InputError for one that did not (its tokenizer lacks the tokens that mark the
        parts), and where the two leave no room in what the model sees at once.
        """
        options = self._chosen(options)
        (suffix_ids,) = self.tokenizer.encode_rest([suffix])
        ids = Middle(self.tokenizer).prompt(self.encode(prefix), suffix_ids)
        context = self._context(options)
        if context is not None and len(ids) >= context:
            raise InputError(
                f"Prefix and suffix are {len(ids):,} tokens, and the model sees {context:,} at "
                "once; shorten one of them."
            )
        return self._watched(prefix, ids, options, strategy_of(options, (0,)))

    def score(self, pairs: Iterable[tuple[str, str]]) -> list[Scored]:
        """What the model thinks of given texts: pairs of a prompt and its continuation.

        The same probabilities as in generating: what is never written has none. Each pair is
        seen as a whole, and the end of a text is not scored.
        """
        encoded = self._codec.encode_pairs(pairs)
        with inference(self._model, self._precision):
            return score_each(encoded, lambda read: [self._score(*pair) for pair in read], least=1)

    def encode(self, prompt: str) -> list[int]:
        """The ids that the model reads of a prompt. Raises InputError if there are none."""
        return self._encode([prompt], self.options)[0]

    def watch(self, prompt: str, options: Decoding, strategy: Strategy) -> Generation:
        """Continue a prompt as `generate` does, by a strategy that wraps `strategy_of(options)`."""
        return self._watched(prompt, self._encode([prompt], options)[0], options, strategy)

    def _watched(
        self, prompt: str, ids: list[int], options: Decoding, strategy: Strategy
    ) -> Generation:
        """Continue ids; the text of the prompt decides how the generated ids are decoded."""
        begins_text = self._codec.begins_text(prompt)
        best: dict[int, list[Hypothesis]] = {}
        with inference(self._model, self._precision):
            for step in self._steps([ids], strategy, options, begins_text=begins_text):
                best |= step.finished
        return self._result(prompt, ids, best[0][0], options)

    def _generate(self, prompts: list[str], options: Decoding, first: int) -> list[Generation]:
        """Continue prompts, the first of which has this number among all."""
        room = options.prompt_room(self._context(options))
        encoded = encode_each(partial(self._codec.encode, room=room), prompts)
        read = {index: ids for index, ids in enumerate(encoded) if ids}
        found = unanswered(prompts, encoded)
        with inference(self._model, self._precision):
            for group in groups({index: len(ids) for index, ids in read.items()}, options):
                begins_text = self._codec.begins_text(prompts[group[0]])
                ids = [read[index] for index in group]
                strategy = strategy_of(options, tuple(first + index for index in group))
                best: dict[int, list[Hypothesis]] = {}
                for step in self._steps(ids, strategy, options, begins_text=begins_text):
                    best |= step.finished
                for row, index in enumerate(group):
                    prompt = prompts[index]
                    found[index] = self._result(prompt, ids[row], best[row][0], options)
        return [found[index] for index in range(len(prompts))]

    def _encode(self, prompts: Sequence[str], options: Decoding) -> list[list[int]]:
        """The ids of prompts. Raises InputError for one without any."""
        return self._codec.encode_some(prompts, options.prompt_room(self._context(options)))

    def _result(
        self, prompt: str, ids: Sequence[int], best: Hypothesis, options: Decoding
    ) -> Generation:
        whole = self._codec.decode(prompt, best.ids)
        cut = cut_at(whole, options.stop)
        context = self._context(options)
        forgotten = context is not None and len(ids) + len(best.ids) > context
        return Generation(
            prompt=prompt,
            text=whole if cut is None else cut,
            ids=best.ids,
            tokens=tuple(self.tokenizer.tokens(best.ids)),
            token_log_probs=best.token_log_probs,
            log_prob=best.log_prob,
            score=best.score,
            stopped=best.stopped if cut is None else "stop",
            flags=("context_cut",) if forgotten else (),
        )

    def _score(self, prompt: Sequence[int], text: Sequence[int]) -> Scored:
        ids_BL = torch.tensor([[*prompt, *text]], device=self.device)
        hidden_BLD = self._model.hidden(ids_BL[:, :-1])[:, len(prompt) - 1 :]
        logits_NV = self._model.project(hidden_BLD)[0].float()
        targets_BT = ids_BL[:, len(prompt) :]
        allowed_NV = self._forbid(logits_NV, Prefixes(targets_BT.T, torch.arange(len(text))))
        values = score_pairs(allowed_NV[None], targets_BT, self.tokenizer.pad_id)[0].tolist()
        log_prob = sum(values)
        return Scored(
            log_prob=log_prob,
            score=log_prob / length_penalty(len(text), self.options.length_penalty),
            tokens=tuple(self.tokenizer.tokens(text)),
            token_log_probs=tuple(values),
        )

    def _chosen(self, options: Decoding | None) -> Decoding:
        """The options of a call over the folder's."""
        return self.options if options is None else merged(options, self.options)

    # ------------------------------------------------------------ ids to ids

    def _steps(
        self,
        prompts: Sequence[Sequence[int]],
        strategy: Strategy,
        options: Decoding,
        *,
        begins_text: bool,
    ) -> Iterator[SearchStep]:
        """Search from prompts of equal length."""
        prompts_BS = torch.tensor(prompts, device=self.device)
        if isinstance(strategy, PowerBeam):
            strategy = replace(strategy, ends=self._ends)
        context = self._context(options)
        planned: Model[Any] = self._planner(strategy.beam_size)
        model = planned if context is None else Rolling(planned, context)
        limits = Limits(
            bos_id=self.tokenizer.bos_id,
            eos_id=self._eos_id,
            max_B=torch.full_like(prompts_BS[:, 0], options.new_tokens(prompts_BS.shape[1])),
            first_B=prompts_BS[:, -1],
        )
        return search_steps(
            model,
            prompts_BS,
            strategy,
            processors=self._processors(prompts_BS, options, strategy, begins_text=begins_text),
            limits=limits,
        )

    def _processors(
        self,
        prompts_BS: Tensor,
        options: Decoding,
        strategy: Strategy,
        *,
        begins_text: bool,
    ) -> list[Processor]:
        processors: list[Processor] = [self._forbid, *extra_processors(options, self.tokenizer)]
        beam = strategy if isinstance(strategy, PowerBeam) else None  # knows several ends itself
        if options.repetition_penalty != 1.0:
            processors.append(RepetitionPenalty(options.repetition_penalty, prompts_BS))
        if options.no_repeat_ngrams:
            processors.append(NoRepeatedNgrams(options.no_repeat_ngrams, prompts_BS))
        if len(self._ends) > 1 and beam is None:
            processors.append(Ends(self._ends, self._eos_id, summed=options.temperature > 0))
        if options.min_length:
            min_B = torch.full_like(prompts_BS[:, 0], options.min_length)
            processors += [MinimumLength(min_B, id_) for id_ in self._ends]
        if options.stop:
            processors.append(
                StopAt(self.tokenizer, self._eos_id, options.stop, begins_text=begins_text)
            )
        return beam.around(processors) if beam else processors

    def _context(self, options: Decoding) -> int | None:
        """How many tokens the model sees at once; None where nothing bounds them."""
        places = self._model.embedding.num_positions
        bounds = [bound for bound in (options.context or self.options.context, places) if bound]
        return min(bounds, default=None)
