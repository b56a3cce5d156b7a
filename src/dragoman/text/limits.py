"""Limits of third-party tokenizers: they must not truncate a text, nor lengthen it very much."""

import json
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

import msgspec
from tokenizers import Tokenizer as Backend

from dragoman.errors import InputError

MOST_GROWTH = 1000
"""Maximum factor by which a tokenizer may lengthen a text. SentencePiece's NFKC turns one character
into 33 bytes."""


class _Merging(msgspec.Struct):
    """The part of a byte-pair model that defines how pieces are joined."""

    continuing_subword_prefix: str | None = None
    merges: tuple[str | tuple[str, ...], ...] = ()


class _File(msgspec.Struct):
    model: _Merging


def parse(content: bytes | str) -> Backend:
    """Return the tokenizer of a `tokenizer.json`. Raises any error or panic of the library.

    Raises ValueError for a prefix that the pieces to be joined do not have: the library cuts it off
    without checking, and aborts the process if that leaves half a character.
    """
    model = msgspec.json.decode(content, type=_File).model
    if prefix := model.continuing_subword_prefix:
        for merge in model.merges:
            second = (merge.split() if isinstance(merge, str) else merge)[-1]
            if not (prefix.isascii() and second.startswith(prefix)):
                raise ValueError(f"{second!r:.40} does not begin with {prefix!r:.40}")
    return Backend.from_str(content if isinstance(content, str) else content.decode())


def prepare(backend: Backend, origin: str) -> None:
    """Turn off truncation and padding, whatever the file sets.

    Raises InputError for a tokenizer that makes a text many times longer.
    """
    backend.no_truncation()
    backend.no_padding()
    for part in (backend.normalizer, backend.decoder):
        if part is None:  # a Sequence is false in tokenizers 0.21
            continue
        steps, growth = [json.loads(part.__getstate__())], 1
        while steps:
            step = steps.pop()
            steps += step.get("normalizers", []) + step.get("decoders", [])
            growth *= _growth(step)
        if growth > MOST_GROWTH:
            raise InputError(
                f"{origin} has replacements that may make a text {growth:,} times longer; at most "
                f"{MOST_GROWTH:,} times is supported."
            )


def _growth(step: Mapping[str, Any]) -> int:
    """Return how many characters a step of a normalizer or decoder may make of one."""
    match step["type"]:
        case "Replace":
            return max(1, len(step["content"]))
        case "Prepend":
            return max(1, len(step["prepend"]))
        case "Precompiled":
            return longest_replacement(b64decode(step["precompiled_charsmap"]))
    return 1


def longest_replacement(charsmap: bytes) -> int:
    """Return the bytes of the longest replacement in a SentencePiece character map.

    The map contains the size of a trie (4 bytes), the trie, and the texts, each followed by a zero.
    """
    texts = charsmap[4 + int.from_bytes(charsmap[:4], "little") :]
    return max(map(len, texts.split(b"\0"))) or 1
