"""The special tokens of a multilingual model.

`<2de>` before a source requests German output (Johnson et al. 2017, "Google's Multilingual Neural
Machine Translation System", section 3). If the model is also told the language of the source,
`<de>` after it says that this is German.
"""

import re
from collections.abc import Iterable, Mapping

_INTO = re.compile(r"<2([a-zA-Z][\w-]*)>", re.ASCII)


def is_code(language: str) -> bool:
    """Return whether a language can be requested by a special token."""
    return _INTO.fullmatch(f"<2{language}>") is not None


def tags_of(languages: Iterable[str], *, told_source: bool = False) -> list[str]:
    """Return the special tokens of languages."""
    codes = sorted(languages)
    return [f"<2{code}>" for code in codes] + [source_tag(code) for code in codes if told_source]


def source_tag(language: str) -> str:
    """Return the special token for the language of a source."""
    return f"<{language}>"


def languages_in(specials: Mapping[str, int]) -> dict[str, int]:
    """Return the languages that special tokens request, each with its id, in the order of ids."""
    ids = sorted(specials.items(), key=lambda special: special[1])
    return {found[1]: id_ for name, id_ in ids if (found := _INTO.fullmatch(name))}
