"""The tokenizers of Hugging Face folders: the ids that their own library gives.

`read_tokenizers` looks for what a folder has. Unlike our own these tokenizers lose something: what
their normalizers change is gone, and a special token that is spelt out in a text is that token, as
Hugging Face has it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend

from dragoman.errors import InputError
from dragoman.text.foreign.fast import ForeignTokenizer
from dragoman.text.foreign.folder import TokenizerFolder, refusing
from dragoman.text.tokenizer import Tokenizer

__all__ = ["read_tokenizers"]


def read_tokenizers(folder: Path, config: Mapping[str, Any]) -> tuple[Tokenizer, Tokenizer]:
    """Read the tokenizers of source and target of a Hugging Face folder: one twice where both are.

    `config` is the folder's `config.json`. Raises InputError where a file is missing or damaged,
    and where it takes a package that is not installed.
    """
    found = TokenizerFolder.of(Path(folder), config)
    if found.has("tokenizer.json"):
        path = found.path / "tokenizer.json"
        with refusing(path):
            backend = Backend.from_str(path.read_text(encoding="utf-8"))
            tokenizer = ForeignTokenizer(backend, found, found.files("tokenizer.json"))
        return tokenizer, tokenizer
    raise InputError(f"{folder} has no tokenizer: no tokenizer.json; get the whole folder.")
