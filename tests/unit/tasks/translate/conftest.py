"""What the tests of translators share."""

import pytest
from tests.unit.tasks.tiny import make_translator

from dragoman.tasks.translate.translator import Translator


@pytest.fixture(scope="module")
def translator(request: pytest.FixtureRequest) -> Translator:
    """One for all tests: translating changes nothing in it."""
    return make_translator(several=getattr(request, "param", False))
