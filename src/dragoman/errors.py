"""The two errors that users see, the nearest known word, and how to install a missing library.

Both have one sentence: what is wrong, where, and what to do. The command line prints that sentence
without a traceback and exits with the error's exit code. Any other exception is a bug.
"""

import unicodedata
from collections.abc import Iterable

NO_MEMORY = ("out of memory", "allocate memory", "not enough memory", "ALLOC_FAILED", "bad_alloc")
"""Words of the messages of torch, CUDA, cuBLAS, Windows and C++."""

LONGEST = 4096
"""Characters of a sentence, which may list two hundred languages; a word gets an eighth of it."""


class DragomanError(Exception):
    """A failure that is neither wrong input nor a bug: a full disk, a lost device.

    The sentence is one line: line breaks and control characters, such as those of a damaged file,
    are escaped, and the middle of an overlong one is left out.
    """

    exit_code = 1

    def __init__(self, sentence: str) -> None:
        super().__init__(escaped(shortened(sentence)))

    @property
    def sentence(self) -> str:
        """The message with a full stop, which it lacks if it is also a part of other messages."""
        text = str(self)
        return text if text.endswith((".", "?", "!")) else f"{text}."


def shortened(text: str) -> str:
    """Leave out the middle of an overlong sentence, and of overlong words in it."""
    words = text.split(" ")
    text = " ".join(w if len(w) <= LONGEST // 8 else f"{w[:200]}...{w[-100:]}" for w in words)
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}... {text[-LONGEST // 4 :]}"


def escaped(text: str, keep: str = "") -> str:
    """Escape line breaks, control characters and lone surrogates, except those in `keep`."""

    def shown(char: str) -> str:
        breaks = char not in keep and unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"}
        return repr(char)[1:-1] if breaks else char

    return "".join(map(shown, text))


class InputError(DragomanError):
    """The user's input is wrong: a file, an option, a recipe, a model folder."""

    exit_code = 2


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of Python, torch or a GPU means that memory has run out."""
    text = str(error)
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"  # torch's, which must not be imported here
        or (isinstance(error, RuntimeError) and any(words in text for words in NO_MEMORY))
    )


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known word closest to `word`, or None if none is close.

    Case is ignored, and hyphens equal underscores. `cutoff` is difflib's: 1 requires the same
    word.
    """
    from difflib import get_close_matches  # rarely needed, and slow to import

    def plain(text: str) -> str:
        return text.lower().replace("-", "_")

    by_plain = {plain(candidate): candidate for candidate in known}
    matches = get_close_matches(plain(word), by_plain, n=1, cutoff=cutoff)
    return by_plain[matches[0]] if matches else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean X?` for the nearest known word, or "" if none is close."""
    close = nearest(word, known)
    return f"; did you mean {close}?" if close else ""


def how_to_install(extra: str) -> str:
    """Return the end of a sentence about a missing library: there is no published release."""
    return f"in a checkout: pip install '.[{extra}]'"
