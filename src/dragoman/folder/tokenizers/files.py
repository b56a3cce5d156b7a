"""The files of a Hugging Face folder that say how texts become ids."""

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
"""What the special token of a role is called where the files do not say it."""

LANGUAGE = re.compile(r">>(\S+)<<|__([a-z]{2,3})__|([a-z]{2}_[A-Z]{2}|[a-z]{3}_[A-Z][a-z]{3})")
"""Tokens that name a language: Marian's, M2M100's, mBART's and NLLB's."""

SETTINGS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
"""Files of settings, which a folder may have beside those of the vocabulary."""


Scores = list[tuple[str, float]]

LONGEST_PIECE = 512
"""Most characters of a piece, each of whose parts is looked up: the longest published ones are 128
spaces."""
LEAST_PIECES = 4
CONTROL, USER_DEFINED = 3, 4


@dataclass(frozen=True, slots=True)
class Pieces:
    """What is read of a SentencePiece model, which is a message of Protocol Buffers."""

    path: Path
    scores: Scores
    """Each piece and its score."""
    added: list[AddedToken]
    """Pieces that are looked for in texts as they are: control and user-defined ones."""
    charsmap: bytes
    """The normalizer's map of characters; empty for none."""

    @classmethod
    def read(cls, path: Path) -> "Pieces":
        """Read a model file; whatever a damaged one raises is the caller's."""
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
"""It takes the space before it: the text's own, or that of the normalizer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerRules:
    """What the tokenizers of a family do that their files do not say."""

    build: "Callable[[TokenizerFolder, Pieces], Backend] | None" = None
    """Makes one of a SentencePiece model."""
    mask: AddedToken | None = None
    """Added to what is made so."""
    frame: str = ""
    """What it puts around a text, `$A`, where that does not follow its language."""
    words: str | None = None
    """What is a word for byte-level BPE; by default what GPT-2 takes for one."""
    framed: bool = True
    """Whether byte-level BPE has cls and sep around a text."""
    lang: str | None = None
    """The language of a source where none is named: a file may be older than its settings."""
    lang_last: bool = False
    """Whether it follows the text, unless the settings say otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerFolder:
    """The files of a folder that say how texts become ids."""

    path: Path
    config: Mapping[str, Any]
    """The model's `config.json`."""
    settings: Mapping[str, Any]
    """`tokenizer_config.json`, and `special_tokens_map.json` for what it leaves out."""
    kind: str
    """The kind of tokenizer: the class that the settings name, else the model's type."""
    rules: TokenizerRules
    """Those of its kind."""

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
        """Whether all these files are there."""
        return all((self.path / name).is_file() for name in names)

    def files(self, *names: str) -> tuple[str, ...]:
        """These files, and those of settings that are there."""
        return (*names, *(name for name in SETTINGS if self.has(name)))

    def name_of(self, role: str, vocab: Mapping[str, int]) -> str | None:
        """The special token of a role: of the settings, or a usual name where they have none."""
        if any(f"{each}_token" in self.settings for each in USUAL):
            return _content(self.settings.get(f"{role}_token"))
        return next((name for name in USUAL[role] if name in vocab), None)

    @property
    def extra_tokens(self) -> list[str]:
        """Special tokens beside those that have a role: of languages, say."""
        found = [
            *_listed(self.settings.get("additional_special_tokens")),
            *_listed(self.settings.get("extra_special_tokens")),
        ]
        return [name for name in map(_content, found) if name]

    def flag(self, name: str, *, default: bool) -> bool:
        """A setting that is true or false."""
        value = self.settings.get(name)
        return default if value is None else bool(value)


def _listed(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _content(token: object) -> str | None:
    """The text of a token, which files give as it is or with its properties."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None


def read_vocab(path: Path) -> dict[str, int]:
    """Read a `vocab.json`: the id of each piece. Raises InputError where it is something else."""
    vocab = read_object(path)
    if not vocab or not all(type(id_) is int and 0 <= id_ < 1 << 31 for id_ in vocab.values()):
        raise InputError(f"{path} does not give a number to each piece; download it again.")
    return vocab


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Turn what a library raises for a damaged file, panics too, into one InputError."""
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
