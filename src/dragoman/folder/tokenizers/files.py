"""The files of a Hugging Face folder that define its tokenizer."""

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

from dragoman.errors import DragomanError, InputError
from dragoman.files.reading import is_pointer, pointer, read_file, read_object
from dragoman.folder.tokenizers.vocabularies import LARGEST, fields
from dragoman.text.unreadable import is_library_error

USUAL = {
    "bos": ("<s>", "<bos>", "<|endoftext|>"),
    "eos": ("</s>", "<eos>", "<|endoftext|>"),
    "unk": ("<unk>", "[UNK]", "<|endoftext|>"),
    "sep": ("[SEP]", "</s>"),
    "pad": ("<pad>", "[PAD]"),
    "cls": ("[CLS]", "<s>"),
    "mask": ("[MASK]", "<mask>"),
}
"""Usual names of the special token of a role, if the files do not name it."""

LANGUAGE = re.compile(r">>(\S+)<<|__([a-z]{2,3})__|([a-z]{2}_[A-Z]{2}|[a-z]{3}_[A-Z][a-z]{3})")
"""Tokens that name a language: Marian's, M2M100's, mBART's and NLLB's."""
TARGET = re.compile(r"<2([a-z]{2,3}([_-][A-Za-z0-9]{2,8})*)>")
"""Pieces that name the target language at the start of a source: MADLAD-400's."""

SETTINGS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
"""Settings files, which a folder may have in addition to those of the vocabulary."""


Scores = list[tuple[str, float]]

LONGEST_PIECE = 512
"""Maximum number of characters in a piece, each part of which is looked up; the longest published
ones are 128 spaces."""
LEAST_PIECES = 4
CONTROL, USER_DEFINED = 3, 4


@dataclass(frozen=True, slots=True)
class Pieces:
    """The parts read from a SentencePiece model, a Protocol Buffers message."""

    path: Path
    scores: Scores
    """Each piece and its score."""
    added: list[AddedToken]
    """Pieces matched literally in texts: control and user-defined ones."""
    charsmap: bytes
    """The normalizer's character map; empty if there is none."""

    @classmethod
    def read(cls, path: Path) -> "Pieces":
        """Read a model file; the caller handles any error that a damaged one raises."""
        scores: Scores = []
        added: list[AddedToken] = []
        charsmap = b""
        for field, value in fields(read_file(path, LARGEST)):
            if field == 1:
                inner = dict(fields(value))
                piece, kind = inner[1].decode(), inner.get(3, b"\1")[0]
                if len(piece) > LONGEST_PIECE:
                    raise InputError(f"{path} has a piece of {len(piece):,} characters.")
                scores.append((piece, struct.unpack("<f", inner.get(2, bytes(4)))[0]))
                if kind in (CONTROL, USER_DEFINED):
                    added.append(AddedToken(piece, normalized=False, special=kind == CONTROL))
            elif field == 3:
                charsmap = dict(fields(value)).get(2, b"")
        if len(scores) < LEAST_PIECES:
            raise InputError(f"{path} holds no pieces; download it again.")
        return cls(path, scores, added, charsmap)


MASK = AddedToken("<mask>", lstrip=True, normalized=False)
"""It takes the space before it: the text's or the normalizer's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerRules:
    """Behaviour of a family's tokenizers that their files do not define."""

    build: "Callable[[TokenizerFolder, Pieces], Backend] | None" = None
    """Builds a tokenizer from a SentencePiece model."""
    mask: AddedToken | None = None
    """A mask token to add to the built tokenizer."""
    frame: str = ""
    """The template around a text, `$A`, if it does not depend on its language."""
    words: str | None = None
    """Pattern of a word for byte-level BPE; GPT-2's by default."""
    framed: bool = True
    """Whether byte-level BPE puts cls and sep around a text."""
    lang: str | None = None
    """The default source language: a file may be older than the setting for it."""
    lang_last: bool = False
    """Whether the language follows the text, unless the settings say otherwise."""
    lang_in_source: bool = False
    """Whether the language before a source is that of its translation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerFolder:
    """A folder's tokenizer files and settings."""

    path: Path
    config: Mapping[str, Any]
    """The model's `config.json`."""
    settings: Mapping[str, Any]
    """`tokenizer_config.json`, and `special_tokens_map.json` for what it leaves out."""
    kind: str
    """The kind of tokenizer: the class that the settings name, or the model's type."""
    rules: TokenizerRules
    """The rules of its kind."""

    @classmethod
    def of(
        cls, path: Path, config: Mapping[str, Any], known: Mapping[str, TokenizerRules]
    ) -> "TokenizerFolder":
        """Read the settings; `known` are the rules of each kind of tokenizer.

        Raises InputError for files that are not JSON objects.
        """
        found: dict[str, Any] = {}
        for name in reversed(SETTINGS[:2]):
            if (path / name).exists():
                found |= read_object(path / name)
        kind = str(found.get("tokenizer_class") or config.get("model_type") or "").lower()
        kind = kind.removesuffix("fast").removesuffix("tokenizer").replace("_", "")
        rules = known.get(kind, TokenizerRules())
        return cls(path=path, config=config, settings=found, kind=kind, rules=rules)

    def has(self, *names: str) -> bool:
        """Whether all these files exist."""
        return all((self.path / name).is_file() for name in names)

    def files(self, *names: str) -> tuple[str, ...]:
        """Return these names, and those of the settings files that exist."""
        return (*names, *(name for name in SETTINGS if self.has(name)))

    def name_of(self, role: str, vocab: Mapping[str, int]) -> str | None:
        """Return a role's special token: from the settings, or a usual name if they name none."""
        if any(f"{each}_token" in self.settings for each in USUAL):
            return _content(self.settings.get(f"{role}_token"))
        return next((name for name in USUAL[role] if name in vocab), None)

    @property
    def extra_tokens(self) -> list[str]:
        """Special tokens without a role, such as languages."""
        found = [
            *_listed(self.settings.get("additional_special_tokens")),
            *_listed(self.settings.get("extra_special_tokens")),
        ]
        return [name for name in map(_content, found) if name]

    @property
    def added(self) -> list[str]:
        """The tokens that the settings add to the vocabulary, in newer and in older files."""
        listed = _listed(self.settings.get("added_tokens_decoder"))
        older = read_object(self.path / SETTINGS[2]) if self.has(SETTINGS[2]) else {}
        return [name for name in (*map(_content, listed), *older) if name]

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a boolean setting."""
        value = self.settings.get(name)
        return default if value is None else bool(value)


def _listed(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _content(token: object) -> str | None:
    """Return the text of a token, which files give as a string or with its properties."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


def read_vocab(path: Path) -> dict[str, int]:
    """Read the id of each piece from a `vocab.json`. Raises InputError if it is anything else."""
    vocab = read_object(path)
    if not vocab or not all(type(id_) is int and 0 <= id_ < 1 << 31 for id_ in vocab.values()):
        raise InputError(f"{path} does not give a number to each piece; download it again.")
    return vocab


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Turn any error of a library for a damaged file, including panics, into an InputError."""
    try:
        yield
    except DragomanError:
        raise
    except BaseException as error:
        if not is_library_error(error):
            raise  # Ctrl-C
        if path.is_file() and is_pointer(path):
            raise InputError(pointer(path)) from error
        raise InputError(f"{path} is damaged: {error}; download it again.") from error
