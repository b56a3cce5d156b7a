"""The errors that reach a user."""

import pytest

from dragoman.errors import InputError


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("model.é 模型 is unknown", "model.é 模型 is unknown"),
        ("two\nlines\r", r"two\nlines\r"),
        ("\x1b[2Jclear \ud800", r"\x1b[2Jclear \ud800"),
    ],
)
def test_a_sentence_stays_on_one_line(text: str, shown: str) -> None:
    """A damaged file can give its keys and names any characters, also those a terminal obeys."""
    assert str(InputError(text)) == shown
