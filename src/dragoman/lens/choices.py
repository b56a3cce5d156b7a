"""The options of `dragoman inspect`; nothing large is imported."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields

from dragoman.errors import InputError
from dragoman.languages import LanguagePair

MAX_TOKENS = 16
"""Default maximum number of generated tokens: each is a row of the output."""


def numbers_of(option: str) -> Callable[[str], tuple[int, ...]]:
    """Return a parser of number lists such as 0,2,5. It raises InputError for any other text."""

    def numbers(text: str) -> tuple[int, ...]:
        try:
            return tuple(map(int, text.split(",")))
        except ValueError:
            message = f'{option} "{text}" is not a list of numbers; write it as 0,2,5.'
            raise InputError(message) from None

    return numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which layers and heads to keep, by their numbers from 0; all, unless given."""

    layers: Sequence[int] | None = field(default=None, metadata={"read": numbers_of("--layers")})
    """Layers whose attention to show, counted from 0, such as 0,5; by default all that fit."""
    heads: Sequence[int] | None = field(default=None, metadata={"read": numbers_of("--heads")})
    """Heads to average and show, counted from 0, such as 0,5; all by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices(LanguagePair, Wanted):
    """How to decode, and which attention to keep; None if not given.

    The options of the command line are made from the fields.
    """

    beam_size: int | None = None
    """For translation: beam size."""
    max_tokens: int | None = None
    """For generation: maximum number of tokens; 16 by default."""
    temperature: float | None = None
    """For generation: sampling temperature; 0 is greedy."""
    seed: int | None = None
    """For generation: random seed."""
    switch_off: bool = False
    """For translation: translate again with each head switched off, one at a time."""

    def given(self) -> list[str]:
        """Return the names of the options that are given."""
        values = ((each.name, getattr(self, each.name)) for each in fields(self))
        return [name for name, value in values if value is not None and value is not False]
