"""Generation: from a prompt to its continuation.

    generator = dragoman.load("runs/shakespeare")
    generator.generate("ROMEO:").text
    for piece in generator.stream("ROMEO:"):
        print(piece, end="")

Prompts of equal length share a batch, so there is no padding, and a sampled text's random numbers
follow from the seed and the prompt's place.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Self, overload

import torch

from dragoman.decode import Course, Hypothesis, Request, Strategy, length_penalty
from dragoman.decoding import GENERATING, Decoding, merged, with_seed
from dragoman.errors import InputError
from dragoman.folder.format import GENERATION, GenerationDefaults, PublishedDefaults
from dragoman.folder.opening import ModelFolder
from dragoman.languages import LangCodes
from dragoman.models import DecoderOnly
from dragoman.nn import Arithmetic
from dragoman.tasks.answering import Answering, in_windows
from dragoman.tasks.folders import check_vocabulary
from dragoman.tasks.generate.dialogue import Chat, DialogueCodec, dialogue_of
from dragoman.tasks.generate.ids import IdGenerator, Prompt, See
from dragoman.tasks.generate.middle import Middle
from dragoman.tasks.generate.prompts import PromptCodec, TextStream, cut_at, known_ids
from dragoman.tasks.held import Held
from dragoman.tasks.lines import as_pairs, as_texts, encode_each
from dragoman.tasks.options import published_options, strategy_of
from dragoman.tasks.results import Generation, Scored, score_each
from dragoman.text.tokenizer import Tokenizer


class Generator(Answering[Decoding, Generation]):
    """A decoder-only model and its tokenizer, to continue texts.

    On a CPU it decodes with the weights that the model had when the generator was created; after
    training, create another one. `options` are the defaults of a call.
    """

    def __init__(
        self,
        model: DecoderOnly | Held[DecoderOnly],
        tokenizer: Tokenizer,
        *,
        defaults: GenerationDefaults | None = None,
        published: PublishedDefaults | None = None,
        decoding: Decoding | None = None,
        precision: Arithmetic = "fp32",
    ) -> None:
        """`published` and its beam `decoding` are for a model of another library."""
        held = Held.of(model, precision) if isinstance(model, DecoderOnly) else model
        check_vocabulary("model's", tokenizer, held.shape.output.weight)
        defaults = defaults or GENERATION
        self.tokenizer = tokenizer
        layers: list[Decoding] = [defaults]
        self.dialogues = None if defaults.chat is None else DialogueCodec(tokenizer, defaults.chat)
        """How turns become ids; None unless the model learned dialogues."""
        before = None if published is None else tokenizer.frame().before
        self._codec = self.dialogues or PromptCodec(tokenizer, defaults.opening, before)
        unused = range(tokenizer.vocab_size, len(held.shape.output.weight))
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
        """The ids that are never generated: special tokens, and ids without a piece."""
        ends = (published and published.ends) or (tokenizer.eos_id,)
        self._ids = IdGenerator(held, tokenizer, ends, self.never, self.options.context)
        self.scheduler = self._ids.scheduler

    @classmethod
    def of(cls, folder: ModelFolder, precision: Arithmetic = "fp32") -> Self:
        """Create one from an open folder. Raises InputError unless its model generates."""
        return cls(
            Held.read(folder, DecoderOnly, precision),
            folder.tgt_tokenizer,
            defaults=folder.config.generation,
            published=folder.config.published,
            decoding=folder.config.decoding,
        )

    @property
    def model(self) -> DecoderOnly:
        """Predicts the next token."""
        return self._ids.model.whole()

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self._ids.model.device

    @property
    def context(self) -> int | None:
        """How many tokens the model sees at once; None if nothing limits them."""
        return self._ids.context(self.options)

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
        """Continue a prompt, or any number of them; results are in the same order.

        Arguments by name take precedence over `options`, and these over `self.options`. Each call
        returns different texts unless a `seed` is given, or nothing is sampled.
        """
        given = {"max_tokens": max_tokens, "temperature": temperature, "seed": seed, "stop": stop}
        chosen = with_seed(Decoding.of(given), options or Decoding(), self.options)
        found = [*self.submit(as_texts(prompts), chosen).in_order()]
        return found[0] if isinstance(prompts, str) else found

    def each(
        self, prompts: Iterable[str], options: Decoding | None = None, *, window: int = 256
    ) -> Iterator[Generation]:
        """Yield what `generate` returns; prompts are taken in windows, so memory is bounded."""
        chosen, numbers = self._chosen(options), count()

        def submit(taken: list[str]) -> Request[Generation]:
            return self.scheduler.submit(self.courses(taken, chosen, numbers))

        yield from in_windows(prompts, submit, window)

    def stream(self, prompt: str, options: Decoding | None = None) -> Iterator[str]:
        """Yield the text of `generate` as it grows: whole characters, never taken back."""
        options = self._chosen(options)
        yield from self._stream(self.prompt(prompt, options), options)

    def _stream(self, prompt: Prompt, options: Decoding) -> Iterator[str]:
        growing = self.growing(options, begins_text=prompt.begins_text)
        steps = self._ids.steps([prompt], strategy_of(options, (0,)), options)
        while not growing.stopped:
            with self._ids.model.inference():  # the caller's use of a piece is outside
                step = next(steps, None)
            if step is None:
                break
            known = known_ids(step, drafting=options.beam_size > 1)
            if piece := growing.extend(known.get(0, ())):
                yield piece
        if piece := growing.finish():
            yield piece

    def growing(self, options: Decoding, *, begins_text: bool) -> TextStream:
        """Return what turns the tokens of a continuation into text, as they come."""
        return TextStream(self.tokenizer, options.stop, begins_text=begins_text)

    def begins_text(self, prompt: str) -> bool:
        """Return whether the continuation of a prompt begins a text."""
        return self._codec.begins_text(prompt)

    def chat(
        self,
        options: Decoding | None = None,
        *,
        system: str | None = None,
        languages: LangCodes = (None, None),
    ) -> Chat:
        """Start a conversation; `system` is a system prompt, for chat templates of Hugging Face.

        `languages` are those of source and target, for a template that reads them
        (TranslateGemma). Raises InputError for a model without a chat template.
        """
        encode_turns = dialogue_of(self.tokenizer, self.dialogues, system, languages)
        chosen = self._chosen(options)

        def answer(turns: Sequence[str]) -> Iterator[str]:
            ids = encode_turns(as_texts(turns), self._room(chosen))
            return self._stream(Prompt(turns[-1], ids, begins_text=True, bounded=True), chosen)

        return Chat(answer)

    def fill(self, prefix: str, suffix: str, options: Decoding | None = None) -> Generation:
        """Generate the text between two others, by a model that learned with the middle last.

        Raises InputError as `prompt` does.
        """
        options = self._chosen(options)
        middle = self.prompt(prefix, options, *as_texts([suffix]))
        (found,) = self.scheduler.submit([self.continued(middle, options)]).in_order()
        return found

    def prompt(self, text: str, options: Decoding, suffix: str | None = None) -> Prompt:
        """Return the prompt for what follows a text, or for what is between it and a suffix.

        Raises InputError for an empty text and, with a suffix, for a model that did not learn with
        the middle last (its tokenizer lacks the tokens that mark the parts), and if the two leave
        no room in what the model sees at once.
        """
        ids = self.encode(text, options)
        if suffix is None:
            return self._prompt(text, ids)
        (suffix_ids,) = self.tokenizer.encode_rest(as_texts([suffix]))
        ids = Middle(self.tokenizer).prompt(ids, suffix_ids)
        context = self._ids.context(options)
        if context is not None and len(ids) >= context:
            raise InputError(
                f"Prefix and suffix are {len(ids):,} tokens, and the model sees {context:,} at "
                "once; shorten one of them."
            )
        return Prompt(text, ids, self._codec.begins_text(text))

    def score(self, pairs: Iterable[tuple[str, str]]) -> list[Scored]:
        """Score given texts: pairs of a prompt and its continuation.

        The probabilities are those of generation: what is never generated has none. Each pair is
        seen as a whole, and the end of a text is not scored.
        """
        encoded = self._codec.encode_pairs(as_pairs(pairs))
        with self._ids.model.inference():
            return score_each(encoded, lambda read: [self._score(*pair) for pair in read], least=1)

    def encode(self, prompt: str, options: Decoding | None = None) -> list[int]:
        """Return the ids that the model reads for a prompt. Raises InputError if there are none."""
        (ids,) = self._codec.encode(as_texts([prompt]), self._room(options or self.options))
        if not ids:
            raise InputError("An empty prompt has nothing to continue; give some text.")
        return ids

    def watch(self, text: str, options: Decoding, strategy: Strategy) -> Generation:
        """Continue a prompt as `generate` does, by a strategy that wraps `strategy_of(options)`."""
        prompt = self.prompt(text, options)
        best: dict[int, list[Hypothesis]] = {}
        with self._ids.model.inference():
            for step in self._ids.steps([prompt], strategy, options):
                best |= step.finished
        return self._result(prompt, best[0][0], options)

    def _prompt(self, text: str, ids: list[int]) -> Prompt:
        bounded = self.dialogues is not None
        return Prompt(text, ids, self._codec.begins_text(text), bounded=bounded)

    def courses(
        self,
        texts: Sequence[str],
        options: Decoding,
        numbers: Iterable[int] | None = None,
        see: See | None = None,
    ) -> list[Course[Prompt, Hypothesis, Generation]]:
        """Return how each prompt is continued, given all options.

        Sampling depends on the `numbers` of the prompts: 0, 1, ... by default. `see` watches a
        single one grow.
        """
        encoded = encode_each(partial(self._codec.encode, room=self._room(options)), texts)
        columns = zip(texts, encoded, count() if numbers is None else numbers, strict=False)
        return [self._course(*column, options, see) for column in columns]

    def asking(
        self,
        turns: Sequence[str],
        options: Decoding,
        *,
        system: str | None = None,
        languages: LangCodes = (None, None),
    ) -> Prompt:
        """Return the prompt that asks for an answer to the last of the turns of user and model.

        Raises InputError for a model without a chat template.
        """
        encode_turns = dialogue_of(self.tokenizer, self.dialogues, system, languages)
        ids = encode_turns(turns, self._room(options))
        return Prompt(turns[-1], ids, begins_text=True, bounded=True)

    def _course(
        self, text: str, ids: list[int] | None, number: int, options: Decoding, see: See | None
    ) -> Course[Prompt, Hypothesis, Generation]:
        """Continue a prompt; if `ids` is empty, or None (unreadable), generate nothing."""
        if not ids:
            flag = "unreadable" if ids is None else "empty"
            return Generation(prompt=text, text="", stopped="eos", flags=(flag,))
        prompt = self._prompt(text, ids)._replace(number=number, see=see)
        return (yield from self.continued(prompt, options))

    def continued(
        self, prompt: Prompt, options: Decoding
    ) -> Course[Prompt, Hypothesis, Generation]:
        """Return how a prompt is continued, given all options."""
        (best,) = yield self._ids.continued(prompt, options)
        return self._result(prompt, best, options)

    def _room(self, options: Decoding) -> tuple[int, int] | None:
        return options.prompt_room(self._ids.context(options))

    def _result(self, prompt: Prompt, best: Hypothesis, options: Decoding) -> Generation:
        decode = self.tokenizer.decode if prompt.begins_text else self.tokenizer.decode_rest
        whole = decode(best.ids)
        cut = cut_at(whole, options.stop)
        if cut is not None:
            best = _without_forced_end(best, options)
        context = self._ids.context(options)
        forgotten = context is not None and len(prompt.ids) + len(best.ids) > context
        return Generation(
            prompt=prompt.text,
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
        values = self._ids.force(prompt, text)
        log_prob = sum(values)
        return Scored(
            log_prob=log_prob,
            score=log_prob / length_penalty(len(text), self.options.length_penalty),
            tokens=tuple(self.tokenizer.tokens(text)),
            token_log_probs=tuple(values),
        )

    def _chosen(self, options: Decoding | None) -> Decoding:
        return with_seed(options or Decoding(), self.options)


def _without_forced_end(best: Hypothesis, options: Decoding) -> Hypothesis:
    """Remove the eos that followed a stop string: the model did not write it."""
    length, alpha = len(best.ids), options.length_penalty
    if len(best.token_log_probs) == length:  # the limit was reached at once
        return best
    power = options.beam_size > 1 and options.length_norm == "power"
    penalty = length**alpha if power else length_penalty(length, alpha)
    return replace(best, token_log_probs=best.token_log_probs[:-1], score=best.log_prob / penalty)
