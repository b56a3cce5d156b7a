"""How the model of a folder is used unless a call says otherwise."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal

from dragoman.errors import InputError

__all__ = [
    "WIDEST",
    "DecodingDefaults",
    "GenerationDefaults",
    "ReadingDefaults",
    "Words",
    "check_least",
    "check_width",
]

Words = Literal["spaced", "characters"]

WIDEST = 1000
"""Most hypotheses of a beam: each step ranks their square."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingDefaults:
    """How the model decodes unless told otherwise."""

    beam_size: int = 5
    """Hypotheses kept at each step; 1 is greedy search."""
    length_penalty: float = 1.0
    """The exponent alpha of ``((5 + n) / 6) ** alpha``; greater favours longer translations."""
    max_length_factor: float = 2.0
    """A translation has at most factor * (source tokens) + constant tokens ..."""
    max_length_constant: int = 20
    """... this constant being one for short lines."""
    max_src_tokens: int = 256
    """A line of more tokens is translated in chunks: longer than what training has seen."""

    def __post_init__(self) -> None:
        """Refuse what no translation could be asked for with."""
        check_least(
            self,
            {
                "beam_size": 1,
                "length_penalty": 0,
                "max_length_factor": 0,
                "max_length_constant": 1,
                "max_src_tokens": 1,
            },
        )
        check_width(self.beam_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationDefaults:
    """How a decoder-only model goes on from a prompt unless told otherwise."""

    context: int | None = None
    """Tokens that it sees at once, as many as in training; unless given, as many as there are."""
    opening: str | None = None
    """Text before every prompt, of a model that has learnt from the middle of texts, such as an
    empty line; unless given, a prompt begins a document."""
    max_tokens: int = 256
    """Most tokens to generate."""
    temperature: float = 0.8
    """Of sampling; 0 is greedy search."""

    def __post_init__(self) -> None:
        """Refuse what no text could be asked for with."""
        check_least(self, {"max_tokens": 1, "temperature": 0})
        if self.context is not None:
            check_least(self, {"context": 2})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingDefaults:
    """How an encoder-only model reads texts."""

    max_tokens: int = 256
    """A text of more tokens is read in parts: longer than what training has seen."""
    words: Words = "spaced"
    """What is tagged: words that white space and punctuation part, or every character."""

    def __post_init__(self) -> None:
        """Refuse parts without a token."""
        check_least(self, {"max_tokens": 1})


def check_least(settings: object, least: Mapping[str, int]) -> None:
    """Raise InputError for a setting below its least value, too large for 64 bits or no number.

    `settings` is a dataclass; what it declares as `int` must be one.
    """
    types = {field.name: field.type for field in fields(settings)}  # type: ignore[arg-type]
    for name, bound in least.items():
        value: float = getattr(settings, name)
        if not bound <= value < float("inf"):
            raise InputError(f"{name} is {value}; it must be {bound} or more.")
        if types[name] is int and not isinstance(value, int):
            raise InputError(f"{name} is {value}; it must be a whole number.")
        if isinstance(value, int) and value >= 1 << 63:
            raise InputError(f"{name} is {value}; it must be less than 2^63.")


def check_width(beam_size: int) -> None:
    """Raise InputError for a beam that no machine could rank."""
    if beam_size > WIDEST:
        raise InputError(
            f"beam_size is {beam_size}; it must be at most {WIDEST}: each step of the search ranks "
            "the square of it, and beams of 4 to 10 are usual."
        )
