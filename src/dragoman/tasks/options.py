"""How to decode: the values of one call."""

from dataclasses import dataclass
from typing import Annotated

from dragoman.decode import Beam, Greedy, Sample
from dragoman.errors import InputError
from dragoman.models.defaults import BeamSize, Context, DecodingDefaults
from dragoman.ranges import BelowOne, Count, Index, NonNegative, Positive, Range, check_ranges

__all__ = ["DecodingOptions", "GenerationOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingOptions(DecodingDefaults):
    """Everything that a call of ``translate`` may choose. A model folder brings its defaults.

    A translation that reaches the greatest length ends there, with the flag "max_length"; a line
    that is translated in chunks has the flag "split".
    """

    n_best: Count = 1
    """Translations to return for each line, at most beam_size."""
    min_length: Index = 0
    """No translation has fewer tokens."""
    max_batch_tokens: Count = 8192
    """Source tokens of one batch, padding included, times beam_size: a matter of memory and speed
    alone."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.n_best > self.beam_size:
            raise InputError(
                f"n_best is {self.n_best} with beam_size {self.beam_size}; "
                "a beam gives no more translations than its size."
            )

    def strategy(self) -> Beam | Greedy:
        """How tokens are chosen."""
        if self.beam_size == 1:
            return Greedy(length_penalty=self.length_penalty)
        return Beam(
            beam_size=self.beam_size, length_penalty=self.length_penalty, n_best=self.n_best
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationOptions:
    """Everything that a call of ``generate`` may choose. A model folder brings its defaults."""

    max_tokens: Count = 256
    """Most tokens to generate."""
    min_tokens: Index = 0
    """The model does not end by itself before so many."""
    temperature: NonNegative = 0.8
    """Of sampling: 0 is greedy search (or beam search), 1 the model's own distribution."""
    top_k: Count | None = None
    """Draw from so many of the most probable tokens; from all unless given."""
    top_p: Annotated[float, Range(above=0, most=1)] = 1.0
    """Draw from the fewest tokens that together have this probability."""
    min_p: BelowOne = 0.0
    """Draw from tokens at least so many times as probable as the most probable one."""
    seed: Index = 0
    """Decides what is drawn, for each prompt by its place among the prompts."""
    beam_size: BeamSize = 1
    """Hypotheses kept at each step where nothing is drawn (temperature 0); 1 is greedy search."""
    length_penalty: NonNegative = 1.0
    """The exponent alpha of ``((5 + n) / 6) ** alpha`` in the score."""
    stop: tuple[str, ...] = ()
    """The text ends before the first of these strings."""
    repetition_penalty: Positive = 1.0
    """Above 1 makes tokens of prompt and text less probable."""
    no_repeat_ngrams: Index = 0
    """No so many tokens in a row come twice; 0 allows it."""
    context: Context | None = None
    """Most tokens that the model sees at once; as the folder says unless given."""
    max_batch_tokens: Count = 16384
    """Tokens of one batch, generated ones included: a matter of memory and speed alone."""

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.beam_size > 1 and self.temperature > 0:
            raise InputError(
                f"beam_size is {self.beam_size} with temperature {self.temperature}; a beam does "
                "not draw: set temperature to 0."
            )
        if not all(self.stop):
            raise InputError("A stop string is empty; it would end every text at once.")

    def strategy(self, numbers: tuple[int, ...]) -> Beam | Greedy | Sample:
        """How tokens are chosen, for texts that have these numbers among all."""
        if self.temperature > 0:
            return Sample(
                temperature=self.temperature,
                top_k=self.top_k,
                top_p=self.top_p,
                min_p=self.min_p,
                seed=self.seed,
                numbers=numbers,
                length_penalty=self.length_penalty,
            )
        if self.beam_size > 1:
            return Beam(beam_size=self.beam_size, length_penalty=self.length_penalty)
        return Greedy(length_penalty=self.length_penalty)
