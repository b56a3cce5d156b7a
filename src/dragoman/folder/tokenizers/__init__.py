"""The tokenizers of Hugging Face folders: the ids that their own library gives.

`read_tokenizers` looks for what a folder has. Unlike our own these tokenizers lose what their
normalizers change. The name of a special token in a text is text, as with `split_special_tokens` of
Hugging Face; only a text for Marian may begin with the language to translate into, `>>lang<<`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend

from dragoman.errors import InputError
from dragoman.files.reading import LARGEST_JSON, read_file
from dragoman.folder.tokenizers.built import from_merges, from_pieces, from_words
from dragoman.folder.tokenizers.fast import ForeignTokenizer
from dragoman.folder.tokenizers.files import TokenizerFolder, refusing
from dragoman.folder.tokenizers.pieces import read_m2m100, read_marian, read_marian_own
from dragoman.text.limits import parse
from dragoman.text.tokenizer import Tokenizer

__all__ = ["read_tokenizers"]


def read_tokenizers(folder: Path, config: Mapping[str, Any]) -> tuple[Tokenizer, Tokenizer]:
    """Read the tokenizers of source and target of a Hugging Face folder: one twice where both are.

    `config` is the folder's `config.json`. Raises InputError where a file is missing or damaged,
    and where it takes a package that is not installed.
    """
    found = TokenizerFolder.of(Path(folder), config)
    if found.has(*MARIAN):
        with refusing(found.path / "vocab.json"):
            return read_marian(found)
    if config.get("model_type") == "marian" and (own := read_marian_own(found)):
        return own
    if found.has("tokenizer.json"):
        names: tuple[str, ...] = ("tokenizer.json",)
    elif found.has("sentencepiece.bpe.model", "vocab.json"):
        with refusing(found.path / "vocab.json"):
            both = read_m2m100(found)
            return both, both
    else:
        names = next((names for names in BUILT if found.has(*names)), ())
    if not names and (missing := _missing_of_marian(found)):
        raise InputError(f"{folder} has no {' and no '.join(missing)}; get the whole folder.")
    if not names:
        raise InputError(
            f"{folder} has no tokenizer: neither tokenizer.json nor "
            f"{', '.join(' with '.join(names) for names in BUILT)}; get the whole folder."
        )
    with refusing(found.path / names[-1]):
        tokenizer = ForeignTokenizer(_backend(found, names), found, found.files(*names))
        frame = tokenizer.frame()
        if (size := len(frame.before) + len(frame.after)) > LONGEST_FRAME:
            raise InputError(
                f"{found.path / names[-1]} puts {size:,} ids around each text; at most "
                f"{LONGEST_FRAME} are supported."
            )
        if beyond := [id_ for id_ in frame.before + frame.after if id_ >= tokenizer.vocab_size]:
            raise InputError(
                f"{found.path / names[-1]} is damaged: it puts the id {beyond[0]} around texts, "
                f"but has {tokenizer.vocab_size} pieces; download it again."
            )
        return tokenizer, tokenizer


LONGEST_FRAME = 16
"""Most ids around a text; published tokenizers put up to 4."""
MARIAN = ("source.spm", "target.spm", "vocab.json")


def _missing_of_marian(folder: TokenizerFolder) -> list[str]:
    """The files that a folder lacks of Marian's tokenizers, if it has some of them."""
    missing = [name for name in MARIAN if not folder.has(name)]
    known = folder.config.get("model_type") == "marian" or folder.has("source.spm")
    return missing if known else []


BUILT = (
    ("vocab.txt",),
    ("vocab.json", "merges.txt"),
    *((name,) for name in ("spiece.model", "sentencepiece.bpe.model", "tokenizer.model")),
)
"""Files that a tokenizer is built from where there is no tokenizer.json."""


def _backend(folder: TokenizerFolder, names: tuple[str, ...]) -> Backend:
    match names:
        case ("tokenizer.json",):
            return parse(read_file(folder.path / names[0], LARGEST_JSON))
        case ("vocab.txt",):
            return from_words(folder)
        case ("vocab.json", _):
            return from_merges(folder)
    return from_pieces(folder, names[0])
