"""A model folder, opened once: its config, its tokenizers, and its weights on demand."""

import math
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

from dragoman.errors import InputError, nearest
from dragoman.files.reading import read_object
from dragoman.folder.adapters import base_of, merge_adapter, warn_of_adapter
from dragoman.folder.foreign.files import (
    empty_foreign,
    foreign_weights,
    of_others,
    read_checkpoint,
    read_hf,
)
from dragoman.folder.foreign.reading import HF
from dragoman.folder.foreign.settings import read_foreign_config, warn_of_settings
from dragoman.folder.foreign.tokenizers import read_tokenizers
from dragoman.folder.format import (
    CONFIG,
    IN_EIGHT_BITS,
    JOINT,
    ORIGIN,
    SRC,
    TGT,
    WEIGHTS,
    FolderConfig,
    own_config,
    sha256_of,
)
from dragoman.models.build import Model, build_empty, reading
from dragoman.models.config import EncoderOnlyConfig
from dragoman.models.eight_bits import in_float32
from dragoman.text.tokenizer import Tokenizer

Made = TypeVar("Made")
Tokenizers = tuple[Tokenizer, Tokenizer]
"""Those of source and target: the same object twice if shared."""
DTYPES = {1: ("F32", "F16", "BF16", "F64"), IN_EIGHT_BITS: ("F32", "I8")}
"""Dtypes of the weights by format; other formats have only fp32."""


class Lender:
    """Temporarily fills parameters of a model on the meta device with their values."""

    def __init__(
        self, model: Model, read: Callable[[Collection[str]], Iterable[tuple[str, Tensor]]]
    ) -> None:
        """`read` yields the named weights, with their names."""
        self._empty = dict(model.named_parameters())
        self._names = {id(each): name for name, each in self._empty.items()}
        self._read = read

    @contextmanager
    def __call__(self, parameters: Iterable[nn.Parameter]) -> Iterator[None]:
        """Fill parameters with their values within the context; derived tensors remain valid."""
        empty = {self._names[id(each)]: each for each in parameters}
        lent = {name: nn.Parameter(weight) for name, weight in self._read(empty.keys())}
        for name, weight in lent.items():
            torch.utils.swap_tensors(empty[name], weight)
        try:
            yield
        finally:
            for name, weight in lent.items():
                torch.utils.swap_tensors(empty[name], weight)

    def give(self) -> None:
        """Fill all parameters with their values permanently, one after another."""
        for name, weight in self._read(self._empty.keys()):
            torch.utils.swap_tensors(self._empty[name], nn.Parameter(weight))  # keeps ties


@dataclass(kw_only=True, eq=False)
class ModelFolder:
    """A model folder written by any supported library; its parts are read once and cached."""

    path: Path
    """The folder of the model; for adapters, of the model that they adapt."""
    config: FolderConfig
    """Its config; for another library's folder, the equivalent one. `load` updates it if the
    weights contradict it, or if another process has saved a model meanwhile."""
    adapters: Path | None = None
    """The folder of peft's adapters, which are added to the weights."""
    device: torch.device = field(default_factory=partial(torch.device, "cpu"))
    """The device of `model`."""
    as_published: bool = False
    """Whether to decode exactly as the publisher's class: a line is one text, searched once."""

    def __str__(self) -> str:
        """Return the path of the folder that was opened."""
        return str(self.adapters or self.path)

    @property
    def origin(self) -> Path:
        """The folder of another library's files: this folder, or a subfolder of ours."""
        return self.path if self.config.as_it_is else self.path / ORIGIN

    @cached_property
    def hf(self) -> HF:
        """The contents of the publisher's `config.json`."""
        return read_hf(self.origin)

    @cached_property
    def tokenizers(self) -> Tokenizers:
        """The tokenizers of source and target. Raises InputError as `tokenizer_paths` does."""
        if self.config.published is None:
            return load_tokenizers(*self.tokenizer_paths())
        if not self.config.as_it_is:
            self.tokenizer_paths()  # checks the files
        return read_tokenizers(self.origin, self.hf)

    @property
    def src_tokenizer(self) -> Tokenizer:
        """The tokenizer for the model's input."""
        return self.tokenizers[0]

    @property
    def tgt_tokenizer(self) -> Tokenizer:
        """The tokenizer for the model's output: the same object if shared."""
        return self.tokenizers[1]

    def tokenizer_paths(self) -> tuple[Path, Path]:
        """Check the hashes of the tokenizer files and return those of source and target."""
        folder, config = self.path, self.config
        names = sorted(config.tokenizers)
        known = names in ([JOINT], [SRC, TGT])
        if config.published is not None:
            known = names != [] and all(
                re.fullmatch(ORIGIN + r"/\w[^/\\]*", name) for name in names
            )
        if not known:
            raise InputError(
                f"{folder / CONFIG}: tokenizers must name {JOINT}, or {SRC} and {TGT}, or files of "
                f"huggingface/, not {', '.join(names) or 'nothing'}."
            )
        for name, trained_with in config.tokenizers.items():
            found = sha256_of(folder / name)
            if found != trained_with:
                raise InputError(
                    f"{folder / name} is not the tokenizer that the weights were trained with "
                    f"(SHA-256 {found[:12]}... instead of {trained_with[:12]}...); "
                    "restore the file that training wrote."
                )
        if config.published is not None:
            beside = {f"{path.parent.name}/{path.name}" for path in folder.glob(f"{ORIGIN}/[!.]*")}
            if unlisted := sorted(beside - config.tokenizers.keys()):
                raise InputError(
                    f"{folder / unlisted[0]} is not among the files that {CONFIG} has hashes of, "
                    "so the model was not saved with it; remove it."
                )
        return folder / names[0], folder / names[-1]

    @cached_property
    def model(self) -> Model:
        """The model on its device, loaded on first access."""
        return self.load().to(self.device)

    @torch.inference_mode(mode=False)  # trainable parameters, even under inference mode
    def load(self) -> Model:
        """Read the weights into a new model in evaluation mode, on the CPU, with adapters merged.

        Raises InputError, with one sentence, for a damaged file, for weights that are missing,
        unexpected, of another shape or not finite, and for weights or a tokenizer other than those
        that the config was saved with. Warns if an older dragoman wrote no hash of the weights, and
        about settings and adapters that are not applied.
        """

        def whole(model: Model, lend: Lender) -> Model:
            lend.give()
            return model

        model = self.lend_to(whole)
        if self.adapters is not None:
            merge_adapter(self.adapters, model, self.config)
        return model

    @property
    def lends(self) -> bool:
        """Whether lending saves memory: weights in safetensors, and no adapters."""
        return self.adapters is None and any(self.path.glob("model*.safetensors"))

    def lend_to(self, make: Callable[[Model, Lender], Made]) -> Made:
        """Call `make` with a model on the meta device and a lender of its weights.

        A file is mapped only while some of its weights are lent, so no more than those are in
        memory. Raises and warns as `load` does, but about settings and adapters that are not
        applied only if `make` returns something.
        """
        if not self.config.as_it_is:
            made = self._lend_ours(make)
        else:
            hf, stored = read_checkpoint(self.path, self.hf)
            if hf != self.hf:  # the weights may correct the config
                self.hf, self.config = hf, read_foreign_config(self.path, hf)
            config = self.config.model
            model = empty_foreign(self.path, config, len(stored))
            once = [stored]
            del stored

            def read(names: Collection[str]) -> Iterator[tuple[str, Tensor]]:
                stored = once.pop() if once else read_checkpoint(self.path, hf)[1]
                return foreign_weights(self.path, hf, stored, config, names)

            made = make(model.eval(), Lender(model, read))
        if self.config.published is not None and made is not None:
            warn_of_settings(self.origin, self.hf, self.config.model)
            warn_of_adapter(self.path)
        return made

    def _lend_ours(self, make: Callable[[Model, Lender], Made]) -> Made:
        """Lend from a folder of ours; start over if another process saves to it meanwhile."""
        path, file = self.path / WEIGHTS, self.path / CONFIG
        while True:
            found, config = _identity(path), self.config
            try:
                self.tokenizer_paths()
                with _checked(path, config) as check:
                    dtypes = DTYPES.get(config.format, ("F32",))
                    model = build_empty(path, config.model, dtypes).eval()
                    made = make(model, Lender(model, partial(_our_weights, path, check)))
                if _identity(path) == found:  # otherwise the parts may come from two saves
                    break
            except InputError:
                self.config = own_config(file, read_object(file))
                if self.config == config:
                    raise
                for name in ("hf", "tokenizers"):  # another process has saved a model meanwhile
                    self.__dict__.pop(name, None)
        if self.config.weights_sha256 is None:
            warnings.warn(
                f"{self.path} was written by an older dragoman without a hash of the weights, so "
                "damage to them cannot be noticed.",
                stacklevel=3,
            )
        return made


def open_folder(path: str | Path) -> ModelFolder:
    """Open a folder of ours, of Hugging Face, of Marian, or of adapters to a local model.

    No weights are read. Raises InputError, with one sentence, for a folder that is missing or
    unfinished, a newer format, and a config that is damaged or of an unsupported model; TypeError
    if `path` is not a path.
    """
    if not isinstance(path, str | PathLike):
        raise TypeError(f"The model folder is {path!r:.40}; give a str or a Path.")
    given = Path(path)
    base = base_of(given)
    folder, adapters = base or given, given if base else None
    file = folder / CONFIG
    if not file.is_file() and not any(folder.glob("*.npz")):  # Marian's own
        raise InputError(_why_no_model(folder))
    data = read_hf(folder)
    if "format" not in data and {"model_type", "architectures"} & {*data}:
        config = read_foreign_config(folder, data)
        opened = ModelFolder(path=folder, config=config, adapters=adapters)
        opened.hf = data
        if isinstance(config.model, EncoderOnlyConfig):
            _pad_as_texts_are(opened)
        return opened
    if type(data.get("format")) is not int or data["format"] < 1:
        raise InputError(
            of_others(folder)
            or f"{file} has no format number and no model_type, so neither dragoman nor Hugging "
            "Face wrote it; give the folder of a model."
        )
    return ModelFolder(path=folder, config=own_config(file, data), adapters=adapters)


def _pad_as_texts_are(opened: ModelFolder) -> None:
    """Set an encoder's pad_id to its tokenizer's: the publisher masks the tokenizer's padding.

    The config may have another: that of a BERT with the vocabulary of XLM-R has 0, which is <s>.
    """
    with suppress(InputError):  # raised again when a text is read
        tokenizer = opened.src_tokenizer
        pad_id, others = tokenizer.pad_id, {tokenizer.bos_id, tokenizer.eos_id, tokenizer.unk_id}
        if pad_id != opened.config.model.pad_id and pad_id not in others:  # fallbacks
            hf = {**opened.hf, "pad_token_id": pad_id}
            opened.config = read_foreign_config(opened.path, hf)
            opened.hf = hf


def load_tokenizers(src: Path, tgt: Path) -> Tokenizers:
    """Read the tokenizers of source and target: one object twice if both are the same file."""
    tokenizer = Tokenizer.load(src)
    return tokenizer, tokenizer if tgt == src else Tokenizer.load(tgt)


def kept_tokenizers(folder: Path) -> Tokenizers | None:
    """Read the tokenizers in `folder` under the names of a model folder; None if there are none."""
    for src, tgt in ((JOINT, JOINT), (SRC, TGT)):
        if (folder / src).exists() and (folder / tgt).exists():
            return load_tokenizers(folder / src, folder / tgt)
    return None


def _our_weights(
    path: Path, check: Callable[[], None], names: Iterable[str]
) -> Iterator[tuple[str, Tensor]]:
    """Yield the named weights of a file, copied to fp32.

    Raises InputError for NaN or infinity, or the error that `check` then finds.
    """
    with reading(path) as stored:
        for name in names:
            weight = in_float32(stored, name)
            if not all(math.isfinite(bound) for bound in weight.aminmax()):
                check()
                raise InputError(
                    f"{path}: the weights {name} hold NaN or infinity, so the training that wrote "
                    "them had failed; use an earlier checkpoint."
                )
            yield name, weight


@contextmanager
def _checked(path: Path, config: FolderConfig) -> Iterator[Callable[[], None]]:
    """Hash the weights in the background; check at the end, or earlier by the yielded function.

    Raises InputError if it is that of another file.
    """
    with ThreadPoolExecutor(1) as thread:
        hashed = thread.submit(sha256_of, path)

        def check() -> None:
            if config.weights_sha256 is None:
                return
            found = hashed.result()
            if found not in (config.weights_sha256, config.replaced_sha256):
                raise InputError(
                    f"{path} is not the file that {CONFIG} was saved with (its SHA-256 is "
                    f"{found}): it is damaged or of another model; copy or train the model again."
                )

        yield check
        check()


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what changes when a file is replaced: its inode and time; None if it is missing."""
    with suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_mtime_ns
    return None


def _why_no_model(folder: Path) -> str:
    if not folder.exists():
        siblings = folder.parent.iterdir() if folder.parent.is_dir() else ()
        close = nearest(folder.name, (s.name for s in siblings if (s / CONFIG).is_file()))
        hint = f"; did you mean {folder.parent / close}?" if close else "."
        return f"There is no model folder {folder}{hint}"
    if reason := of_others(folder):
        return reason
    if not folder.is_dir():
        holds = (
            "which holds it" if folder.suffix == ".npz" else f"which holds {CONFIG} and {WEIGHTS}"
        )
        return f"{folder} is a file; give the model folder, {holds}."
    if (folder / WEIGHTS).exists():
        return f"{folder} has {WEIGHTS} but no {CONFIG}; copy that file too, from the same model."
    if (folder / "training").is_dir():
        return (
            f"{folder} holds a training run that has not written a model yet; "
            "resume it by the command that began it."
        )
    inside = sorted(each.parent for each in folder.glob(f"*/{CONFIG}"))[:3]
    hint = f"; it has model folders: {', '.join(map(str, inside))}" if inside else ""
    if run := next((each.parent for each in folder.parents if each.name == "training"), None):
        hint = f"; give the folder of the run, {run}, which holds the model of its best step"
    return f"{folder} is not a model folder: it has no {CONFIG}{hint}."
