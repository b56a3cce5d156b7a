"""How to decode: the values of one call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

from dragoman.decode import (
    Beam,
    DiverseBeam,
    EarlyStopping,
    ForbidSequences,
    Greedy,
    PowerBeam,
    Processor,
    Sample,
)
from dragoman.decode.diverse import DIVERSITY, Diversity
from dragoman.errors import InputError
from dragoman.models.defaults import (
    WIDEST,
    Alpha,
    BeamSize,
    Context,
    DecodingDefaults,
    LengthNorm,
    PublishedDefaults,
    Tokens,
)
from dragoman.ranges import BelowOne, Count, Index, NonNegative, Positive, Range, check_ranges
from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingOptions(DecodingDefaults):
    """All options of a call of `translate`. The model folder has their defaults.

    A translation that reaches the greatest length ends there, with the flag "max_length"; a line
    that is translated in chunks has the flag "split".
    """

    n_best: Count = 1
    """Number of translations to return for each line; a beam has at most beam_size."""
    length_norm: LengthNorm = "gnmt"
    """What length_penalty is the exponent of: `((5 + n) / 6)`, or n (power) as for the models of
    Hugging Face, whose beam search that is."""
    early_stopping: EarlyStopping = "estimate"
    """When a beam by power is finished."""
    renormalize: bool = False
    """Share out again what processors take away, in a beam by power; other searches always do."""
    beam_groups: Count = 1
    """Groups that the beam is cut into, each of which avoids the tokens of those before it."""
    diversity: Diversity = DIVERSITY
    """What a token loses in log-probability for each time that another group took it in a step."""
    mbr: Annotated[int, Range(least=0, most=WIDEST, why="each is compared with all")] = 0
    """Number of candidates (hypotheses of the beam, or samples) that are ordered by their mean
    similarity to all of them: minimum Bayes risk. 0 orders by score."""
    temperature: NonNegative = 0.0
    """Sampling temperature: 0 is greedy or beam search, 1 the model's own distribution."""
    top_k: Count | None = None
    """Sample from this many of the most probable tokens; from all by default."""
    top_p: Annotated[float, Range(above=0, most=1)] = 1.0
    """Nucleus sampling threshold: sample from the fewest tokens with this total probability."""
    min_p: BelowOne = 0.0
    """Keep tokens at least this fraction as likely as the top one."""
    seed: Index = 0
    """Random seed; each sentence has random numbers of its own, by its text."""
    min_length: Index = 0
    """Minimum number of tokens of a translation."""
    no_repeat_ngrams: Index = 0
    """Never repeat an n-gram of this length; 0 allows repetition."""
    repetition_penalty: Positive = 1.0
    """Values above 1 make tokens less likely that the translation already has."""
    forbidden: tuple[str, ...] = ()
    """Words that a translation never has, each as it is spelled here and as the tokenizer cuts it,
    at the beginning of a word or inside one."""
    processors: tuple[Processor, ...] = ()
    """Further changes to the logits of each step, applied in this order (`dragoman.decode`)."""
    shortlist: bool = False
    """Write only tokens that the folder's shortlist has for the sentence's source tokens."""
    retry: bool = True
    """Search again where a translation loops, reaches its greatest length or is empty."""
    max_batch_tokens: Count = 4096
    """Maximum number of source tokens per batch, padding included, times beam_size: changes memory
    and speed only."""

    def __post_init__(self) -> None:
        check_ranges(self)
        _check_forbidden(self.forbidden)
        if self.shortlist and (self.forbidden or self.processors):
            raise InputError(
                "forbidden and processors see the whole vocabulary, a shortlist only a part of it; "
                "leave out one of them"
            )
        if self.mbr:
            self._check_at_most("n_best", "mbr")
        if self.beam_groups == 1 and self.diversity != DIVERSITY:
            raise InputError(
                f"diversity is {self.diversity} with beam_groups 1, where nothing differs; set "
                "beam_groups above 1, or leave diversity out"
            )
        if self.temperature > 0:
            _check_beamless("beam_size", self.beam_size, self.temperature)
            _check_beamless("beam_groups", self.beam_groups, self.temperature)
            return
        for name, neutral in {"top_k": None, "top_p": 1.0, "min_p": 0.0}.items():
            if (value := getattr(self, name)) != neutral:
                raise InputError(
                    f"{name} is {value} with temperature 0, which does not sample; set "
                    f"temperature above 0, or leave {name} out"
                )
        self._check_at_most("n_best", "beam_size")
        self._check_at_most("mbr", "beam_size")
        if self.beam_size % self.beam_groups:
            raise InputError(
                f"beam_size is {self.beam_size} with beam_groups {self.beam_groups}; it must be a "
                "multiple of beam_groups"
            )

    def _check_at_most(self, name: str, bound: str) -> None:
        """Raise InputError for an option that is greater than another."""
        value, most = getattr(self, name), getattr(self, bound)
        if value > most:
            raise InputError(f"{name} is {value} with {bound} {most}; it must be at most {bound}")

    @property
    def draws(self) -> int:
        """How often each sentence is searched: once for each translation that is sampled."""
        return (self.mbr or self.n_best) if self.temperature > 0 else 1

    def strategy(
        self, numbers: tuple[int, ...] | None = None
    ) -> Beam | Greedy | PowerBeam | Sample:
        """How tokens are chosen, for sentences whose random numbers follow from these."""
        n_best = self.mbr or self.n_best
        if self.beam_groups == 1:
            return _strategy(self, numbers, n_best)
        return DiverseBeam(
            beam_size=self.beam_size,
            length_penalty=self.length_penalty,
            n_best=n_best,
            groups=self.beam_groups,
            diversity=self.diversity,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationOptions:
    """All options of a call of `generate`. The model folder has their defaults."""

    max_tokens: Tokens = 256
    """Maximum number of tokens to generate."""
    count_prompt: bool = False
    """Whether max_tokens includes the tokens of the prompt (`max_length` of Hugging Face); at
    least one token is generated."""
    min_tokens: Index = 0
    """Minimum number of tokens to generate."""
    temperature: NonNegative = 0.8
    """Sampling temperature: 0 is greedy or beam search, 1 the model's own distribution."""
    top_k: Count | None = None
    """Sample from this many of the most probable tokens; from all by default."""
    top_p: Annotated[float, Range(above=0, most=1)] = 1.0
    """Nucleus sampling threshold: sample from the fewest tokens with this total probability."""
    min_p: BelowOne = 0.0
    """Keep tokens at least this fraction as likely as the top one."""
    seed: Index = 0
    """Random seed; each prompt has random numbers of its own, by its index."""
    beam_size: BeamSize = 1
    """Number of hypotheses kept at each step, with temperature 0; 1 is greedy search."""
    length_penalty: Alpha = 1.0
    """Exponent alpha of `((5 + n) / 6) ** alpha` in the score."""
    length_norm: LengthNorm = "gnmt"
    """What scores are divided by: that, or `n ** alpha` ("power", models of Hugging Face)."""
    early_stopping: EarlyStopping = "estimate"
    """When a beam by `n ** alpha` is finished."""
    renormalize: bool = False
    """Share out again what processors take away, in such a beam; other searches always do."""
    stop: tuple[str, ...] = ()
    """Stop before the first of these strings."""
    repetition_penalty: Positive = 1.0
    """Values above 1 make tokens less likely that the prompt or the text already has."""
    no_repeat_ngrams: Index = 0
    """Never repeat an n-gram of this length; 0 allows repetition."""
    forbidden: tuple[str, ...] = ()
    """Words that the text never has, as `DecodingOptions.forbidden`."""
    processors: tuple[Processor, ...] = ()
    """Further changes to the logits of each step, applied in this order (`dragoman.decode`)."""
    context: Context | None = None
    """Maximum number of tokens that the model sees at once; the folder's value by default."""
    max_batch_tokens: Count = 16384
    """Maximum number of tokens per batch, generated ones included: changes memory and speed
    only."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.temperature > 0:
            _check_beamless("beam_size", self.beam_size, self.temperature)
        _check_forbidden(self.forbidden)
        if not all(self.stop):
            raise InputError("a stop string is empty; it would end every text at its beginning")

    def new_tokens(self, prompt: int) -> int:
        """Maximum number of tokens to generate after a prompt of this length."""
        return max(1, self.max_tokens - prompt) if self.count_prompt else self.max_tokens

    def prompt_room(self, context: int | None) -> int | None:
        """Most tokens of a prompt that leave room for an answer; None if nothing bounds them.

        Where one limit is of both, half of it.
        """
        if self.count_prompt:
            return min(context or self.max_tokens, self.max_tokens) // 2
        return context and context - self.max_tokens

    def strategy(self, numbers: tuple[int, ...]) -> Beam | Greedy | PowerBeam | Sample:
        """How tokens are chosen, for texts that have these numbers among all."""
        return _strategy(self, numbers, n_best=1)


def _strategy(
    options: DecodingOptions | GenerationOptions, numbers: tuple[int, ...] | None, n_best: int
) -> Beam | Greedy | PowerBeam | Sample:
    """Sampling for sequences of these numbers, a beam with its `n_best`, or greedy search."""
    length_penalty = options.length_penalty
    if options.temperature > 0:
        return Sample(
            temperature=options.temperature,
            top_k=options.top_k,
            top_p=options.top_p,
            min_p=options.min_p,
            seed=options.seed,
            numbers=numbers,
            length_penalty=length_penalty,
        )
    if options.beam_size == 1:
        return Greedy(length_penalty=length_penalty)
    if options.length_norm == "power":
        return PowerBeam(
            width=options.beam_size,
            length_penalty=length_penalty,
            n_best=n_best,
            early_stopping=options.early_stopping,
            renormalize=options.renormalize,
        )
    return Beam(beam_size=options.beam_size, length_penalty=length_penalty, n_best=n_best)


def _check_beamless(name: str, value: int, temperature: float) -> None:
    """Raise InputError for a beam while sampling."""
    if value > 1:
        raise InputError(
            f"{name} is {value} with temperature {temperature}; beam search does not "
            f"sample: set temperature to 0, or {name} to 1"
        )


def _check_forbidden(words: Sequence[str]) -> None:
    """Raise InputError for a word that is blank, or for one string in place of several."""
    if isinstance(words, str) or not all(word.strip() for word in words):
        raise InputError(f"forbidden is {words!r}; give a tuple of words that are not blank")


def extra_processors(
    options: "DecodingOptions | GenerationOptions", tokenizer: Tokenizer
) -> tuple[Processor, ...]:
    """The processors that the options name, those of their forbidden words first."""
    if not options.forbidden:
        return options.processors
    words = [word.strip() for word in options.forbidden]
    cut = [*tokenizer.encode_batch(words), *tokenizer.encode_rest(words)]
    sequences = tuple(dict.fromkeys(tuple(ids) for ids in cut if ids))
    return (*([ForbidSequences(sequences)] if sequences else []), *options.processors)


def published_processors(published: PublishedDefaults) -> tuple[Processor, ...]:
    """The processors of a published model's settings that no other option has."""
    sequences = published.forbidden_sequences
    return (ForbidSequences(sequences),) if sequences else ()


def as_published(
    options: GenerationOptions, published: PublishedDefaults, decoding: DecodingDefaults
) -> GenerationOptions:
    """Return the options that generate as the publisher does; sampling has no beam."""
    return replace(
        options,
        beam_size=1 if options.temperature > 0 else decoding.beam_size,
        length_penalty=decoding.length_penalty,
        length_norm="power",
        early_stopping=published.early_stopping,
        renormalize=published.renormalize,
        repetition_penalty=published.repetition_penalty,
        no_repeat_ngrams=published.no_repeat_ngrams,
        top_k=published.top_k,
        top_p=published.top_p,
        min_p=published.min_p,
        min_tokens=published.min_length,
        processors=published_processors(published),
    )


OptionsT = TypeVar("OptionsT", DecodingOptions, GenerationOptions)


def with_given(options: OptionsT, given: Mapping[str, Any]) -> OptionsT:
    """Return the options with those values in place of their own that are not None.

    A `max_tokens` that is given counts generated tokens only, and a `temperature` switches off the
    beam unless `beam_size` is given too.
    """
    chosen = {name: value for name, value in given.items() if value is not None}
    if "max_tokens" in chosen:
        chosen.setdefault("count_prompt", False)
    if chosen.get("temperature"):
        chosen.setdefault("beam_size", 1)
    return replace(options, **chosen)
