"""How the model of a folder is used unless a call says otherwise."""

from dataclasses import dataclass
from typing import Annotated, Literal

from dragoman.ranges import Count, NonNegative, Range, check_ranges

__all__ = [
    "WIDEST",
    "BeamSize",
    "Context",
    "DecodingDefaults",
    "GenerationDefaults",
    "ReadingDefaults",
    "Words",
]

Words = Literal["spaced", "characters"]

WIDEST = 1000
"""Most hypotheses of a beam: each step ranks their square."""

BeamSize = Annotated[
    int,
    Range(
        least=1,
        most=WIDEST,
        why="each step of the search ranks its square, and beams of 4 to 10 are usual",
    ),
]
Context = Annotated[int, Range(least=2)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingDefaults:
    """How the model decodes unless told otherwise."""

    beam_size: BeamSize = 5
    """Hypotheses kept at each step; 1 is greedy search."""
    length_penalty: NonNegative = 1.0
    """The exponent alpha of ``((5 + n) / 6) ** alpha``; greater favours longer translations."""
    max_length_factor: NonNegative = 2.0
    """A translation has at most factor * (source tokens) + constant tokens ..."""
    max_length_constant: Count = 20
    """... this constant being one for short lines."""
    max_src_tokens: Count = 256
    """A line of more tokens is translated in chunks: longer than what training has seen."""

    def __post_init__(self) -> None:
        """Raise InputError for a value that no call could use."""
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationDefaults:
    """How a decoder-only model goes on from a prompt unless told otherwise."""

    context: Context | None = None
    """Tokens that it sees at once, as many as in training; unless given, as many as there are."""
    opening: str | None = None
    """Text before every prompt, of a model that has learnt from the middle of texts, such as an
    empty line; unless given, a prompt begins a document."""
    max_tokens: Count = 256
    """Most tokens to generate."""
    temperature: NonNegative = 0.8
    """Of sampling; 0 is greedy search."""

    def __post_init__(self) -> None:
        """Raise InputError for a value that no call could use."""
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingDefaults:
    """How an encoder-only model reads texts."""

    max_tokens: Count = 256
    """A text of more tokens is read in parts: longer than what training has seen."""
    words: Words = "spaced"
    """What is tagged: words that white space and punctuation part, or every character."""

    def __post_init__(self) -> None:
        """Raise InputError for a value that no call could use."""
        check_ranges(self)
