"""How to decode: the values of one call."""

from dataclasses import dataclass

from dragoman.errors import InputError

__all__ = ["DecodingOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingOptions:
    """Everything that a call of ``translate`` may choose. A model folder brings its defaults."""

    beam_size: int = 5
    """Hypotheses kept at each step; 1 is greedy search."""
    n_best: int = 1
    """Translations to return for each line, at most beam_size."""
    length_penalty: float = 1.0
    """The exponent alpha of ``((5 + n) / 6) ** alpha``; greater favours longer translations."""
    min_length: int = 0
    """No translation has fewer tokens."""
    max_length_factor: float = 2.0
    """A translation has at most factor * (source tokens) + constant tokens ..."""
    max_length_constant: int = 20
    """... and ends there, with the flag "max_length"."""
    max_src_tokens: int = 256
    """A line of more tokens is translated in chunks, with the flag "split"."""
    max_batch_tokens: int = 8192
    """Source tokens of one batch, padding included, times beam_size: a matter of memory and speed
    alone."""

    def __post_init__(self) -> None:
        least = {
            "beam_size": 1,
            "n_best": 1,
            "length_penalty": 0,
            "min_length": 0,
            "max_length_factor": 0,
            "max_length_constant": 1,
            "max_src_tokens": 1,
            "max_batch_tokens": 1,
        }
        for name, bound in least.items():
            value: float = getattr(self, name)
            if not bound <= value < float("inf"):
                raise InputError(f"{name} is {value}; it must be {bound} or more.")
        if self.n_best > self.beam_size:
            raise InputError(
                f"n_best is {self.n_best} with beam_size {self.beam_size}; "
                "a beam gives no more translations than its size."
            )
