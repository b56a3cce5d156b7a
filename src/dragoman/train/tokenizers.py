"""The tokenizers of a model folder: ours, or those of Hugging Face."""

from pathlib import Path

from dragoman.models.folder import AS_IT_IS, FolderConfig, tokenizer_paths
from dragoman.models.foreign.files import read_hf
from dragoman.models.foreign.origin import origin_of
from dragoman.text.tokenizer import Tokenizer


def tokenizers_of(folder: Path, config: FolderConfig) -> tuple[Tokenizer, Tokenizer]:
    """Read the tokenizers of a model folder: one object twice where there is one."""
    if config.published is None:
        return load_tokenizers(*tokenizer_paths(folder, config))
    from dragoman.text.foreign import read_tokenizers  # the libraries for it may be missing

    if config.format != AS_IT_IS:
        tokenizer_paths(folder, config)  # checks the files
    origin = origin_of(folder, config)
    return read_tokenizers(origin, read_hf(origin))


def load_tokenizers(src: Path, tgt: Path) -> tuple[Tokenizer, Tokenizer]:
    """Read the tokenizers of source and target: one object twice where both are one file."""
    tokenizer = Tokenizer.load(src)
    return tokenizer, tokenizer if tgt == src else Tokenizer.load(tgt)
