"""Complete decoding options: given ones over a task's defaults."""

from dragoman.decoding import GENERATING, TRANSLATING, Decoding, merged


def translating(**given: object) -> Decoding:
    """Return options of translation."""
    return merged(Decoding(**given), TRANSLATING)  # type: ignore[arg-type]


def generating(**given: object) -> Decoding:
    """Return options of generation."""
    return merged(Decoding(**given), GENERATING)  # type: ignore[arg-type]
