"""The files of a Hugging Face folder that say how texts become ids."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError, InputError
from dragoman.files.reading import read_object
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerFolder:
    """The files of a folder that say how texts become ids."""

    path: Path
    config: Mapping[str, Any]
    """The model's `config.json`."""
    settings: Mapping[str, Any]
    """`tokenizer_config.json`, and `special_tokens_map.json` for what it leaves out."""

    @classmethod
    def of(cls, path: Path, config: Mapping[str, Any]) -> "TokenizerFolder":
        """Read the settings. Raises InputError for files that are not JSON objects."""
        found: dict[str, Any] = {}
        for name in reversed(SETTINGS[:2]):
            if (path / name).exists():
                found |= read_object(path / name)
        return cls(path=path, config=config, settings=found)

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

    @property
    def family(self) -> str:
        """The kind of tokenizer: the class that the settings name, else the model's type."""
        kind = str(self.settings.get("tokenizer_class") or self.config.get("model_type") or "")
        return kind.lower().removesuffix("fast").removesuffix("tokenizer").replace("_", "")

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


class refusing:  # noqa: N801 -- reads as a word of the with statement
    """Turn what a library raises for a damaged file, panics too, into one InputError."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Raise InputError for all but it and Ctrl-C."""
        if error is None or isinstance(error, DragomanError):
            return
        if is_library_error(error):
            raise InputError(f"{self._path} is damaged: {error}; download it again.") from error
