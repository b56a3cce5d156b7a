"""The error for a text that a tokenizer's library cannot encode, which names the text."""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from dragoman.errors import InputError

Encoded = TypeVar("Encoded")


class UnreadableText(InputError):  # noqa: N818 -- what it is, as a flag has it
    """A text that its tokenizer cannot encode."""


def encode_or_reject(
    encode: Callable[[Sequence[str]], list[Encoded]], texts: Sequence[str]
) -> list[Encoded]:
    """Return `encode(texts)`; `encode` may raise anything for a text that it cannot encode.

    Raises UnreadableText with the number of the first such text, even if the library panics.
    """
    try:
        return encode(texts)
    except BaseException as failure:
        if not is_library_error(failure) or not all(isinstance(text, str) for text in texts):
            raise
        for number, text in enumerate(texts, start=1):
            try:
                encode([text])
            except BaseException as error:
                if not is_library_error(error):
                    raise
                why = f"fails in the tokenizer's library ({error})"
                if _SURROGATE.search(text):
                    why = (
                        "has an unpaired surrogate, which is not a Unicode character; read the "
                        "text as UTF-8 with strict errors"
                    )
                raise UnreadableText(f"Text {number}, {text[:40]!r}, {why}.") from None
        raise


def is_library_error(error: BaseException) -> bool:
    """Return whether an error is a library's; a panic of Rust, which is not an Exception, too."""
    panic = type(error).__name__ == "PanicException"
    return panic or (isinstance(error, Exception) and not isinstance(error, MemoryError))


_SURROGATE = re.compile("[\ud800-\udfff]")
