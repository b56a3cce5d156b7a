"""What `config.json` of a model folder holds, and the names of the files beside it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dragoman.decoding import GENERATING, TRANSLATING, Decoding, merged
from dragoman.files.reading import open_regular
from dragoman.folder.defaults import GenerationDefaults, PublishedDefaults, ReadingDefaults
from dragoman.models.config import ModelConfig
from dragoman.plain import to_plain
from dragoman.version import __version__

T = TypeVar("T")

FORMAT, IN_EIGHT_BITS, PUBLISHED = 2, 3, 4
"""The numbers of the format written here: with weights in fp32, with matrices rounded to 8 bits,
and with tokenizers of another library; they grow when an older dragoman could not read it."""
AS_IT_IS = 0
"""Stands for the format of a folder of Hugging Face that is read as it is."""

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
JOINT, SRC, TGT = "tokenizer.json", "tokenizer.src.json", "tokenizer.tgt.json"
ORIGIN = "huggingface"
"""The part of a folder with the files of the library that a model came from."""
PARTS = (CONFIG, WEIGHTS, CARD, JOINT, SRC, TGT)
"""The files that a folder consists of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderConfig:
    """What `config.json` holds."""

    format: int = FORMAT
    """The format of the folder."""
    dragoman: str = __version__
    """The version that wrote it."""
    model: ModelConfig
    """The architecture; its `kind` is the folder's kind."""
    decoding: Decoding = field(default_factory=Decoding)
    """How to decode."""
    generation: GenerationDefaults | None = None
    """How to generate, where the model is decoder-only."""
    reading: ReadingDefaults | None = None
    """How to read, where the model is encoder-only."""
    published: PublishedDefaults | None = None
    """What a model of another library needs beside; None for one that dragoman trained."""
    src_lang: str | None = None
    """The source language, where known."""
    tgt_lang: str | None = None
    """The target language, where known."""
    task: str | None = None
    """The module of a task from outside the package; of the others the model tells."""
    tokenizers: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each tokenizer file that the weights were trained with, and of all other files of
    `huggingface/`; saving fills it in."""
    weights_sha256: str | None = None
    """Hash of the weights; saving fills it in. Format 1 has none."""
    replaced_sha256: str | None = None
    """Hash of the weights that these replace; the folder may hold them if saving is killed."""
    model_sha256: str | None = None
    """Hash of the section `model`; saving fills it in. Format 1 has none."""

    @property
    def as_it_is(self) -> bool:
        """Whether the folder is another library's, read as it is."""
        return self.format == AS_IT_IS

    @property
    def translating(self) -> Decoding:
        """The options of translating, over the defaults."""
        return merged(self.decoding, TRANSLATING)

    @property
    def generating(self) -> Decoding:
        """The folder's options of generating, over the defaults."""
        return merged(self.generation or Decoding(), GENERATING)


class Saves(Protocol):
    """What can write itself to a file: a tokenizer."""

    def save(self, path: Path) -> None:
        """Write to `path`."""


def sha256_of(path: Path) -> str:
    """SHA-256 of a file."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_of(section: Mapping[str, Any]) -> str:
    """SHA-256 of a section of the config, however it is indented and its keys are ordered."""
    return hashlib.sha256(json.dumps(section, sort_keys=True).encode()).hexdigest()


def as_saved(config: FolderConfig) -> dict[str, Any]:
    """What `config.json` holds of a config: a task only where it is not one of the package's."""
    plain: dict[str, Any] = to_plain(config)
    for name in ("task", "published"):
        if plain[name] is None:
            del plain[name]
    return plain


def names_of(tokenizers: tuple[T, T]) -> dict[str, T]:
    """The tokenizers of source and target by the names of their files: one where they are one."""
    src, tgt = tokenizers
    return {JOINT: src} if src is tgt else {SRC: src, TGT: tgt}
