"""How to decode: the values of one call."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

from dragoman.decode import Beam, Greedy, Sample
from dragoman.errors import InputError
from dragoman.models.defaults import BeamSize, Context, DecodingDefaults
from dragoman.ranges import BelowOne, Count, Index, NonNegative, Positive, Range, check_ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingOptions(DecodingDefaults):
    """All options of a call of `translate`. The model folder has their defaults.

    A translation that reaches the greatest length ends there, with the flag "max_length"; a line
    that is translated in chunks has the flag "split".
    """

    n_best: Count = 1
    """Number of translations to return for each line; a beam has at most beam_size."""
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
    retry: bool = True
    """Search again where a translation loops, reaches its greatest length or is empty."""
    max_batch_tokens: Count = 8192
    """Maximum number of source tokens per batch, padding included, times beam_size: changes memory
    and speed only."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.temperature > 0:
            _check_beamless(self.beam_size, self.temperature)
            return
        for name, neutral in {"top_k": None, "top_p": 1.0, "min_p": 0.0}.items():
            if (value := getattr(self, name)) != neutral:
                raise InputError(
                    f"{name} is {value} with temperature 0, which does not sample; set "
                    f"temperature above 0, or leave {name} out"
                )
        if self.n_best > self.beam_size:
            raise InputError(
                f"n_best is {self.n_best} with beam_size {self.beam_size}; "
                "it must be at most beam_size"
            )

    @property
    def draws(self) -> int:
        """How often each sentence is searched: once for each translation that is sampled."""
        return self.n_best if self.temperature > 0 else 1

    def strategy(self, numbers: tuple[int, ...] | None = None) -> Beam | Greedy | Sample:
        """How tokens are chosen, for sentences whose random numbers follow from these."""
        if self.temperature > 0:
            return _sampling(self, numbers)
        if self.beam_size == 1:
            return Greedy(length_penalty=self.length_penalty)
        return Beam(
            beam_size=self.beam_size, length_penalty=self.length_penalty, n_best=self.n_best
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationOptions:
    """All options of a call of `generate`. The model folder has their defaults."""

    max_tokens: Count = 256
    """Maximum number of tokens to generate."""
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
    length_penalty: NonNegative = 1.0
    """Exponent alpha of `((5 + n) / 6) ** alpha` in the score."""
    stop: tuple[str, ...] = ()
    """Stop before the first of these strings."""
    repetition_penalty: Positive = 1.0
    """Values above 1 make tokens less likely that the prompt or the text already has."""
    no_repeat_ngrams: Index = 0
    """Never repeat an n-gram of this length; 0 allows repetition."""
    context: Context | None = None
    """Maximum number of tokens that the model sees at once; the folder's value by default."""
    max_batch_tokens: Count = 16384
    """Maximum number of tokens per batch, generated ones included: changes memory and speed
    only."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.temperature > 0:
            _check_beamless(self.beam_size, self.temperature)
        if not all(self.stop):
            raise InputError("a stop string is empty; it would end every text at its beginning")

    def strategy(self, numbers: tuple[int, ...]) -> Beam | Greedy | Sample:
        """How tokens are chosen, for texts that have these numbers among all."""
        if self.temperature > 0:
            return _sampling(self, numbers)
        if self.beam_size > 1:
            return Beam(beam_size=self.beam_size, length_penalty=self.length_penalty)
        return Greedy(length_penalty=self.length_penalty)


def _sampling(
    options: DecodingOptions | GenerationOptions, numbers: tuple[int, ...] | None
) -> Sample:
    """Sampling as the options have it, for sequences of these numbers."""
    return Sample(
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        min_p=options.min_p,
        seed=options.seed,
        numbers=numbers,
        length_penalty=options.length_penalty,
    )


def _check_beamless(beam_size: int, temperature: float) -> None:
    """Raise InputError for a beam while sampling."""
    if beam_size > 1:
        raise InputError(
            f"beam_size is {beam_size} with temperature {temperature}; beam search does not "
            "sample: set temperature to 0, or beam_size to 1"
        )


OptionsT = TypeVar("OptionsT", DecodingOptions, GenerationOptions)


def with_given(options: OptionsT, given: Mapping[str, Any]) -> OptionsT:
    """Return the options with those values in place of their own that are not None."""
    return replace(options, **{name: value for name, value in given.items() if value is not None})
