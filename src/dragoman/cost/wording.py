"""Counts in sentences: ``1 step``, ``1,250 steps``."""

__all__ = ["counted"]


def counted(count: float, noun: str) -> str:
    """A count with its noun, which takes an `s` beside any number but 1."""
    number = f"{count:,}" if isinstance(count, int) else f"{count:g}"
    return f"{number} {noun}{'' if count == 1 else 's'}"
