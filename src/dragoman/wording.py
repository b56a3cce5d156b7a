"""Counts in sentences: ``1 step``, ``1,250 steps``."""

__all__ = ["counted"]


def counted(count: float, one: str, more: str | None = None) -> str:
    """A count with what is counted: ``one`` beside 1, else ``more``, or ``one`` with an `s`."""
    number = f"{count:,}" if isinstance(count, int) else f"{count:g}"
    return f"{number} {one if count == 1 else more or f'{one}s'}"
