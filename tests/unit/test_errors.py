"""The errors that reach a user."""

import re

import pytest

from dragoman.errors import InputError, is_out_of_memory


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("model.é 模型\u3000a\xa0b is unknown", "model.é 模型\u3000a\xa0b is unknown"),
        ("two\nlines\r", r"two\nlines\r"),
        ("a\u2028b", r"a\u2028b"),
        ("\x1b[2Jclear \ud800", r"\x1b[2Jclear \ud800"),
    ],
)
def test_a_sentence_stays_on_one_line(text: str, shown: str) -> None:
    """A damaged file can give its keys and names any characters, also those a terminal obeys."""
    assert str(InputError(text)) == shown


@pytest.mark.parametrize(
    ("given", "most"), [("9" * 4000, 350), ("a b " * 500_000, 3120), ("Wort, " * 300, 1900)]
)
def test_an_endless_value_of_a_file_is_shortened(given: str, most: int) -> None:
    """The file before it and the advice behind it stay, and lists of usual lengths."""
    shown = str(InputError(f"/a/config.json: size is {given}; get another file."))
    assert re.match(r"/a/config\.json: size is \w.*; get another file\.$", shown)
    assert len(shown) <= most
    assert ("..." in shown) is (len(given) > 2000)


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (MemoryError(), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory"), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), True),
        (RuntimeError("std::bad_alloc"), True),
        (RuntimeError("shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_a_lack_of_memory_is_known_by_what_libraries_say(error: Exception, *, is_one: bool) -> None:
    """There is no type that all of them share."""
    assert is_out_of_memory(error) is is_one
