"""A model folder as every task takes it: the model on its device, and its tokenizers."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from torch import Tensor

from dragoman.errors import InputError
from dragoman.models.build import Model
from dragoman.models.folder import FolderConfig, load_model, tokenizer_paths
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.device import choose_device

__all__ = ["Folder", "check_vocabulary", "read_folder"]

ModelT = TypeVar("ModelT", bound=Model)

USES = {
    "encoder-decoder": "translates (dragoman translate)",
    "decoder-only": "goes on with texts (dragoman generate)",
    "encoder-only": "reads texts (dragoman classify, dragoman tag)",
}
"""What a model of each kind does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """What a model folder holds."""

    path: Path
    """Where it is."""
    model: Model
    """In evaluation mode."""
    config: FolderConfig
    """What is said of it."""
    src_tokenizer: Tokenizer
    """Of what the model reads."""
    tgt_tokenizer: Tokenizer
    """Of what the model writes; the same object where there is one."""

    def model_of(self, variant: type[ModelT]) -> ModelT:
        """Return the model if it is of a variant. Raises InputError for another one."""
        if not isinstance(self.model, variant):
            kind = self.config.model.kind
            raise InputError(f"{self.path} holds a model of the kind {kind}, which {USES[kind]}.")
        return self.model


def read_folder(path: str | Path, *, device: str) -> Folder:
    """Read a model folder and bring the model to "cpu", "cuda" or, with "auto", the best there is.

    Raises InputError when there is no such folder or device, or the folder cannot be used.
    """
    folder = Path(path)
    model, config = load_model(folder)
    src_path, tgt_path = tokenizer_paths(folder, config)
    src_tokenizer = Tokenizer.load(src_path)
    return Folder(
        path=folder,
        model=model.to(choose_device(device)),
        config=config,
        src_tokenizer=src_tokenizer,
        tgt_tokenizer=src_tokenizer if tgt_path == src_path else Tokenizer.load(tgt_path),
    )


def check_vocabulary(side: str, tokenizer: Tokenizer, matrix: Tensor) -> None:
    """Raise InputError when a tokenizer has pieces that the model has no row for."""
    if len(matrix) < tokenizer.vocab_size:
        raise InputError(
            f"The {side} tokenizer has {tokenizer.vocab_size} pieces and the model knows "
            f"{len(matrix)}; they do not belong together."
        )
