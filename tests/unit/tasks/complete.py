"""Options of decoding as a task sees them: some given, the others at the task's defaults."""

from dragoman.decoding import GENERATING, TRANSLATING, Decoding, merged


def translating(**given: object) -> Decoding:
    """The options of translating."""
    return merged(Decoding(**given), TRANSLATING)  # type: ignore[arg-type]


def generating(**given: object) -> Decoding:
    """The options of generating."""
    return merged(Decoding(**given), GENERATING)  # type: ignore[arg-type]
