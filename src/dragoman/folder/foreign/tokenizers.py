"""The tokenizers of Hugging Face folders, with the same ids as in their own library.

`read_tokenizers` detects the format of a folder. Unlike our own, these tokenizers lose what their
normalizers change. The name of a special token in a text is text, as with `split_special_tokens` of
Hugging Face; only a text for Marian may begin with its target language, `>>lang<<`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from tokenizers import Tokenizer as Backend

from dragoman.errors import InputError
from dragoman.folder.foreign import FAMILIES, RULES
from dragoman.folder.foreign.reading import HF
from dragoman.folder.tokenizers.built import from_json, from_merges, from_pieces, from_words
from dragoman.folder.tokenizers.fast import ForeignTokenizer
from dragoman.folder.tokenizers.files import TokenizerFolder, refusing
from dragoman.folder.tokenizers.pieces import read_m2m100
from dragoman.text.tokenizer import Tokenizer

SPM = ("spiece.model", "sentencepiece.bpe.model", "tokenizer.model")
MADE: Mapping[tuple[str, ...], Callable[[TokenizerFolder], ForeignTokenizer | Backend]] = {
    ("tokenizer.json",): from_json,
    ("sentencepiece.bpe.model", "vocab.json"): read_m2m100,
    ("vocab.txt",): from_words,
    ("vocab.json", "merges.txt"): from_merges,
    **{(name,): partial(from_pieces, name=name) for name in SPM},
}
"""The files that a tokenizer can be read from; the first set that a folder has is used."""
LONGEST_FRAME = 16
"""Maximum number of ids around a text; published tokenizers add up to 4."""


def read_tokenizers(folder: Path, config: HF) -> tuple[Tokenizer, Tokenizer]:
    """Read the source and target tokenizers of a Hugging Face folder: a shared one twice.

    `config` is the folder's `config.json`. Raises InputError if a file is missing or damaged, or if
    a required package is not installed.
    """
    found = TokenizerFolder.of(folder, config, RULES)
    family = FAMILIES.get(str(config.get("model_type")))
    if family is not None and (own := family.own_tokenizers(found)):
        return own
    names = next((names for names in MADE if found.has(*names)), None)
    if names is None:
        raise InputError(_why_none(found, family.tokenizer_files if family else ()))
    with refusing(found.path / names[-1]):
        made = MADE[names](found)
        if not isinstance(made, ForeignTokenizer):
            made = ForeignTokenizer(made, found, found.files(*names))
            _check_frame(made, found.path / names[-1])
        return made, made


def _check_frame(tokenizer: Tokenizer, file: Path) -> None:
    frame = tokenizer.frame()
    ids = frame.before + frame.after
    if len(ids) > LONGEST_FRAME:
        raise InputError(
            f"{file} puts {len(ids):,} ids around each text; at most {LONGEST_FRAME} are supported."
        )
    if beyond := [id_ for id_ in ids if id_ >= tokenizer.vocab_size]:
        raise InputError(
            f"{file} is damaged: it puts the id {beyond[0]} around texts, but has "
            f"{tokenizer.vocab_size} pieces; download it again."
        )


def _why_none(folder: TokenizerFolder, wanted: Sequence[str]) -> str:
    """Return what a folder lacks: its family's files, or all."""
    if wanted:
        missing = [name for name in wanted if not folder.has(name)]
        return f"{folder.path} has no {' and no '.join(missing)}; get the whole folder."
    first, _, *others = map(" with ".join, MADE)
    return (
        f"{folder.path} has no tokenizer: neither {first} nor {', '.join(others)}; get the whole "
        "folder."
    )
