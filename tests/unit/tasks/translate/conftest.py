"""Fixtures for the tests of translators."""

from collections.abc import Callable, Sequence

import pytest
from tests.unit.tasks.tiny import make_translator

from dragoman.tasks.results import Translation
from dragoman.tasks.translate.course import LineTranslator
from dragoman.tasks.translate.line import Line
from dragoman.tasks.translate.retries import Searching
from dragoman.tasks.translate.translator import Translator
from dragoman.text.spans import Span

Write = Callable[[Line, Sequence[Span], Sequence[Span]], str]
"""Write the translation of a line from what is removed from it and what is forced."""


@pytest.fixture(scope="module")
def translator(request: pytest.FixtureRequest) -> Translator:
    """One translator for all tests, since translating does not modify it."""
    return make_translator(several=getattr(request, "param", False))


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> Callable[[Write], None]:
    """Return a function that replaces the model by a function that writes translations."""

    def set_up(write: Write) -> None:
        def attempt(
            self: LineTranslator, line: Line, out: Sequence[Span], forced: Sequence[Span] = ()
        ) -> Searching[Translation]:
            del self
            yield from ()
            return Translation(text=write(line, out, forced))

        monkeypatch.setattr(LineTranslator, "_attempt", attempt)

    return set_up
