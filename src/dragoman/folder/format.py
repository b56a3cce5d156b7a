"""The format of a model folder: the contents of `config.json`, the other files, and saving them.

Saving writes next to the old files, syncs, and then renames. After a kill or a power failure in
between, either the old or the new weights are there: the config is replaced first, with the hashes
of both. If the architecture, the tokenizers or the precision (8 bits) change, the config is
replaced last, and rejects files that are not its own.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from dragoman.decoding import GENERATING, TRANSLATING, Decoding, Tokens, merged
from dragoman.errors import DragomanError, InputError
from dragoman.files.reading import open_regular, read_object
from dragoman.files.writing import rename_durably, sync, write_durably
from dragoman.models.build import Model, build_on_meta
from dragoman.models.config import ModelConfig
from dragoman.models.eight_bits import rounded
from dragoman.plain import to_plain
from dragoman.ranges import check_ranges
from dragoman.settings import parse_settings
from dragoman.version import __version__

T = TypeVar("T")

FORMAT, IN_EIGHT_BITS, PUBLISHED = 2, 3, 4
"""Format numbers written here: weights in fp32, matrices rounded to 8 bits, and tokenizers of
another library. They increase when an older dragoman cannot read the result."""
AS_IT_IS = 0
"""Format number of an unconverted Hugging Face folder."""

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
JOINT, SRC, TGT = "tokenizer.json", "tokenizer.src.json", "tokenizer.tgt.json"
ORIGIN = "huggingface"
"""Subfolder for the files of the library that a model came from."""
PARTS = (CONFIG, WEIGHTS, CARD, JOINT, SRC, TGT)
"""The files of a model folder."""
UNFINISHED = ".saving"

# ---------------------------------------------------------------- defaults

Words = Literal["spaced", "characters"]

TRANSLATION = Decoding(
    **{
        name: getattr(TRANSLATING, name)
        for name in (
            *("beam_size", "length_penalty", "max_length_factor", "max_length_constant"),
            *("max_src_tokens", "split_sentences"),
        )
    }
)
"""Decoding defaults of a translator's folder, unless its recipe changes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTemplate:
    """How the turns of a dialogue become one sequence: the token of a role, the text, eos."""

    user: str = "<user>"
    """Special token before each turn of the user."""
    assistant: str = "<assistant>"
    """Special token before each answer of the model."""

    def __post_init__(self) -> None:
        """Raise InputError if both roles have the same token."""
        if self.user == self.assistant:
            raise InputError(f"user and assistant are both {self.user}; give each its own token")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GenerationDefaults(Decoding):
    """How a decoder-only model continues a prompt by default."""

    opening: str | None = None
    """Text to put before every prompt, such as an empty line, for a model trained on windows of
    text; by default a prompt begins a document."""
    chat: ChatTemplate | None = None
    """For a dialogue model: the tokens of the roles. A prompt is then a dialogue with one turn per
    line, the last from the user, and the answer is generated."""


GENERATION = GenerationDefaults(
    context=None, max_tokens=256, count_prompt=False, temperature=GENERATING.temperature
)
"""Generation defaults of a generator's folder, unless its recipe changes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingDefaults:
    """How an encoder-only model reads texts."""

    max_tokens: Tokens = 256
    """Maximum number of tokens; a longer text is read in parts."""
    words: Words = "spaced"
    """What is tagged: words split at white space and punctuation, or every character."""
    inside_begins: bool = False
    """Whether a tag I-X may begin a span, as in IOB1: each word then has its most probable tag."""

    def __post_init__(self) -> None:
        """Raise InputError for a value out of its range."""
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PublishedDefaults(Decoding):
    """Additional settings of a model from another library.

    Its tokenizers are read from that library's files, and decoding follows its publisher.
    """

    family: str
    """The `model_type` of its config: how tokenizers are read, and where languages go."""
    forbidden: tuple[int, ...] = ()
    """Ids that are never written."""
    forbidden_sequences: tuple[tuple[int, ...], ...] = ()
    """Sequences of several ids that are never written."""
    begin: tuple[int, ...] = ()
    """Ids that every target begins with, unless a language says otherwise."""
    forced_end: bool = False
    """Whether the last token that the length limit allows is always the end."""
    ends: tuple[int, ...] = ()
    """Ids that end a decoder-only model's text, if not just the tokenizer's eos."""
    probe: tuple[float, ...] = ()
    """Some logits of the publisher's weights; empty for other weights, or if none were compared."""


# ---------------------------------------------------------------- config.json


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderConfig:
    """The contents of `config.json`."""

    format: int = FORMAT
    """The format of the folder."""
    dragoman: str = __version__
    """The version of dragoman that wrote it."""
    model: ModelConfig
    """The architecture; its `kind` is the folder's kind."""
    decoding: Decoding = field(default_factory=Decoding)
    """Decoding defaults."""
    generation: GenerationDefaults | None = None
    """Generation defaults, if the model is decoder-only."""
    reading: ReadingDefaults | None = None
    """Reading defaults, if the model is encoder-only."""
    alignment: tuple[int, ...] | None = None
    """The decoder layer and head whose attention to the source aligns words, and optionally 1 if a
    token is aligned by the step that reads it instead of the one that writes it. By default, the
    mean over the heads of the last layer is used."""
    published: PublishedDefaults | None = None
    """Additional settings of a model from another library; None if dragoman trained it."""
    src_lang: str | None = None
    """The source language, if known."""
    tgt_lang: str | None = None
    """The target language, if known."""
    directions: tuple[tuple[str, str], ...] = ()
    """The directions that a multilingual model was trained in; empty for a single pair."""
    task: str | None = None
    """The module of a task from outside the package; built-in tasks follow from the model."""
    tokenizers: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each tokenizer file that the weights were trained with, and of all other files in
    `huggingface/`; saving fills it in."""
    weights_sha256: str | None = None
    """Hash of the weights; saving fills it in. Format 1 has none."""
    replaced_sha256: str | None = None
    """Hash of the previous weights, which the folder may still contain if saving was killed."""
    model_sha256: str | None = None
    """Hash of the section `model`; saving fills it in. Format 1 has none."""

    @property
    def as_it_is(self) -> bool:
        """Whether the folder is another library's, unconverted."""
        return self.format == AS_IT_IS

    @property
    def translating(self) -> Decoding:
        """The folder's translation options, merged over the defaults."""
        return merged(self.decoding, TRANSLATING)

    @property
    def generating(self) -> Decoding:
        """The folder's generation options, merged over the defaults."""
        return merged(self.generation or Decoding(), GENERATING)


def own_config(path: Path, data: Mapping[str, Any]) -> FolderConfig:
    """Parse and check a `config.json` of ours. Raises InputError if it is invalid."""
    if isinstance(number := data.get("format"), int) and number > PUBLISHED:
        raise InputError(
            f"{path} has format {number}, made by a newer dragoman "
            f"({data.get('dragoman', 'version unknown')}); this one, {__version__}, reads up to "
            f"format {PUBLISHED}: upgrade dragoman."
        )
    config = parse_settings(FolderConfig, data, str(path))
    if config.format > 1 and None in (config.weights_sha256, config.model_sha256):
        raise InputError(f"{path} is damaged: it lacks the hash of the weights or of the model.")
    if config.model_sha256 not in (None, digest_of(data["model"])):
        raise InputError(
            f"{path}: the section model is not the one that the weights were saved with; restore "
            f"the {CONFIG} that training wrote."
        )
    sizes = getattr(config.model, "num_decoder_layers", 0), config.model.num_heads
    if config.alignment is not None and not _is_head(config.alignment, *sizes):
        raise InputError(
            f"{path} has alignment = {[*config.alignment]}, and the model has {sizes[0]} layers of "
            f"{sizes[1]} heads in its decoder (a third number is 0 or 1); leave alignment out."
        )
    return config


def _is_head(places: Sequence[int], layers: int, heads: int) -> bool:
    within = (0 <= place < size for place, size in zip(places, (layers, heads, 2), strict=False))
    return len(places) in {2, 3} and all(within)


class Saves(Protocol):
    """An object that can write itself to a file, such as a tokenizer."""

    def save(self, path: Path) -> None:
        """Write to `path`."""


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_of(section: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a section of the config, regardless of indentation and key order."""
    return hashlib.sha256(json.dumps(section, sort_keys=True).encode()).hexdigest()


def as_saved(config: FolderConfig) -> dict[str, Any]:
    """Return the contents of `config.json` for a config, without optional keys that are empty."""
    plain: dict[str, Any] = to_plain(config)
    for name in ("task", "published", "alignment", "directions"):
        if not plain[name]:
            del plain[name]
    return plain


def record_alignment(folder: Path, head: Sequence[int] | None) -> None:
    """Write only the alignment head into the config of a folder of ours; None removes it.

    Raises DragomanError if writing fails; the config is then unchanged.
    """
    data = read_object(folder / CONFIG)
    own_config(folder / CONFIG, data)
    data = {name: value for name, value in data.items() if name != "alignment"}
    data |= {} if head is None else {"alignment": list(head)}
    text = json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    try:
        write_durably(folder / CONFIG, text)
    except OSError as error:
        raise DragomanError(f"Cannot write {folder / CONFIG}: {error.strerror}.") from error


def names_of(tokenizers: tuple[T, T]) -> dict[str, T]:
    """Return the source and target tokenizers by file name; a shared one once."""
    src, tgt = tokenizers
    return {JOINT: src} if src is tgt else {SRC: src, TGT: tgt}


# ---------------------------------------------------------------- saving


def save_model(
    folder: Path,
    weights: Model | Mapping[str, Tensor],
    config: FolderConfig,
    *,
    tokenizers: tuple[Saves, Saves] | Mapping[str, Saves],
    card: str | None = None,
    eight_bits: bool = False,
) -> FolderConfig:
    """Write a model folder and return its config.

    During saving, or after it was killed, a reader finds the old or the new model if both have the
    same architecture, tokenizers and format; otherwise the folder may be rejected.
    `weights` is the model or its state dict; `tokenizers` are those of source and target, the same
    object twice if shared, or files by name; `card` is the text of `README.md`; `eight_bits` rounds
    the matrices, to a quarter of the size. Raises InputError if the folder cannot be created, and
    DragomanError if writing fails (a full disk); an older model is then unchanged, and no partial
    files remain.
    """
    names = dict(tokenizers if isinstance(tokenizers, Mapping) else names_of(tokenizers))
    number = IN_EIGHT_BITS if eight_bits else FORMAT if config.published is None else PUBLISHED
    with _staging(folder) as staged:
        for name, tokenizer in names.items():
            for path in (staged / name, folder / name):
                path.parent.mkdir(exist_ok=True)
            tokenizer.save(staged / name)
        stored = _stored_once(weights, config.model)
        stored = rounded(stored, config.model) if eight_bits else stored
        save_file(stored, staged / WEIGHTS, {"format": "pt"})
        config = replace(
            config,
            format=number,
            dragoman=__version__,
            tokenizers={name: sha256_of(staged / name) for name in names},
            weights_sha256=sha256_of(staged / WEIGHTS),
            model_sha256=digest_of(to_plain(config.model)),
        )
        config = replace(config, replaced_sha256=_replaced(folder, config))
        text = json.dumps(as_saved(config), indent=2, sort_keys=True, ensure_ascii=False)
        (staged / CONFIG).write_text(text + "\n", encoding="utf-8")
        (staged / WEIGHTS).chmod((staged / CONFIG).stat().st_mode)  # safetensors makes it private
        if card is not None:
            (staged / CARD).write_text(card, encoding="utf-8")
        sync(staged)  # a full disk may be reported only now
        order = [WEIGHTS, CONFIG] if config.replaced_sha256 is None else [CONFIG, WEIGHTS]
        for name in [*names, *([CARD] if card is not None else []), *order]:
            rename_durably(staged / name, folder / name)
        for name in {JOINT, SRC, TGT} - set(names):
            (folder / name).unlink(missing_ok=True)
    return config


@contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder inside `folder`, removed afterwards; its errors become ours."""
    new = not folder.exists()
    staged = folder / UNFINISHED
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir()
    except OSError as error:
        raise InputError(
            f"Cannot write the model to {folder}: {error.strerror}; give another folder."
        ) from error
    try:
        yield staged
    except (OSError, SafetensorError, DragomanError) as error:
        if new:
            shutil.rmtree(folder, ignore_errors=True)
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DragomanError(
            f"Saving the model to {folder} failed ({reason}); nothing there was changed."
        ) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _stored_once(weights: Model | Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """Return the weights in fp32 on the CPU, each under its first name: tied ones have several."""
    state = weights if isinstance(weights, Mapping) else weights.state_dict()
    first = {name for name, _ in build_on_meta(config).named_parameters()}
    return {
        name: value.detach().float().cpu().contiguous()
        for name, value in state.items()
        if name in first
    }


def _replaced(folder: Path, config: FolderConfig) -> str | None:
    """Return the hash of the weights of an earlier save in a folder, if they fit the config."""
    try:
        old = own_config(folder / CONFIG, read_object(folder / CONFIG))
    except InputError:
        return None
    same = old.format == config.format and old.tokenizers == config.tokenizers
    return old.weights_sha256 if same and old.model_sha256 == config.model_sha256 else None
