"""The shortlist of a translator: learned from pairs of texts, stored in the model folder.

IBM model 1 (`dragoman.data.lexical`) determines which target tokens a source token may become.
"""

from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file

from dragoman.data.lexical import Pairs, count_links
from dragoman.decode.shortlist import Shortlist
from dragoman.errors import DragomanError, InputError
from dragoman.files.writing import rename_durably
from dragoman.folder.format import CONFIG
from dragoman.folder.rereading import FolderFault
from dragoman.models.build import open_tensors
from dragoman.text.tokenizer import Tokenizer

FILE = "shortlist.safetensors"
"""The name of the file in a model folder."""
FREQUENT = 100
"""Number of most frequent target tokens that every list contains."""
LEAST = 1e-4
"""Minimum probability of a target token in the list of a source token."""


def learn_shortlist(pairs: Pairs, size: int, tokenizers: tuple[Tokenizer, Tokenizer]) -> Shortlist:
    """Find the `size` most probable target tokens of each source token, from pairs of ids.

    In addition, every list contains the most frequent target tokens, and each source token that is
    also a target token may become itself, as names and numbers do. Raises InputError if no pair has
    text on both sides.
    """
    src_tokenizer, tgt_tokenizer = tokenizers
    src_size, tgt_size = src_tokenizer.vocab_size, tgt_tokenizer.vocab_size
    if not any(src and tgt for src, tgt in pairs):
        raise InputError("no pair has text on both sides; give the texts of the training")
    learnt = count_links(pairs, src_size, tgt_size)
    keys, probs = learnt.keys_K, learnt.probs_K
    sources, targets = np.divmod(keys, tgt_size)
    order = np.lexsort((-probs, sources))
    sources, targets, probs = sources[order], targets[order], probs[order]
    first = np.searchsorted(sources, np.arange(src_size + 1))
    ranks = np.arange(len(sources)) - first[sources]
    kept = (ranks < size) & (probs >= LEAST)
    copied = _alike(src_tokenizer, tgt_tokenizer)
    every = np.concatenate([keys[order][kept], copied[:, 0] * tgt_size + copied[:, 1]])
    sources, targets = np.divmod(np.unique(every), tgt_size)
    seen = np.bincount(np.concatenate([tgt for _, tgt in pairs]).astype(np.int64))
    forbidden = list(tgt_tokenizer.specials.values())
    seen[[special for special in forbidden if special < len(seen)]] = 0
    frequent = np.argsort(-seen, kind="stable")[:FREQUENT]
    return Shortlist(
        starts_V=np.searchsorted(sources, np.arange(src_size + 1)),
        ids_X=targets,
        always_A=frequent[seen[frequent] > 0],
    )


def _alike(src: Tokenizer, tgt: Tokenizer) -> np.ndarray:
    """Return the ids (X, 2) of the pieces that both vocabularies contain."""
    place_of = {piece: place for place, piece in enumerate(tgt.tokens(range(tgt.vocab_size)))}
    pieces = enumerate(src.tokens(range(src.vocab_size)))
    specials = set(tgt.specials)
    both = [(n, place_of[p]) for n, p in pieces if p in place_of and p not in specials]
    return np.array(both, dtype=np.int64).reshape(-1, 2)


def save_shortlist(
    shortlist: Shortlist, folder: Path, tokenizers: tuple[Tokenizer, Tokenizer]
) -> Path:
    """Write the shortlist into a model folder, and return its file.

    Raises DragomanError if writing fails; an older file then stays unchanged.
    """
    arrays = {"starts": shortlist.starts_V, "ids": shortlist.ids_X, "always": shortlist.always_A}
    part = folder / f".{FILE}.part"
    try:
        stored = {name: array.astype(np.int32) for name, array in arrays.items()}
        save_file(stored, part, {"tokenizers": _hashes(tokenizers)})
        part.chmod((folder / CONFIG).stat().st_mode)  # the library makes it private
        rename_durably(part, folder / FILE)
    except (OSError, SafetensorError) as error:
        part.unlink(missing_ok=True)
        raise DragomanError(f"Cannot write {folder / FILE}: {error}.") from error
    return folder / FILE


def load_shortlist(folder: Path, tokenizers: tuple[Tokenizer, Tokenizer]) -> Shortlist:
    """Read the shortlist of a model folder.

    Raises InputError if there is none, and FolderFault if it is damaged or was learned with other
    tokenizers.
    """
    path = folder / FILE
    if not path.is_file():
        raise InputError(
            f"{folder} has no shortlist; learn one from the texts of its training by "
            f"dragoman shortlist {folder} --src FILE --tgt FILE"
        )
    try:
        with open_tensors(path, "np") as stored:
            learnt_with = (stored.metadata() or {}).get("tokenizers")
            starts, ids, always = (stored.get_tensor(n) for n in ("starts", "ids", "always"))
    except (OSError, SafetensorError) as error:
        raise FolderFault(f"{path} is damaged ({error}); learn the shortlist again.") from error
    if learnt_with != _hashes(tokenizers):
        raise FolderFault(
            f"{path} was learnt with other tokenizers than those of {folder}; learn it again."
        )
    src, tgt = tokenizers
    bounds = (starts, ids.size), (ids, tgt.vocab_size - 1), (always, tgt.vocab_size - 1)
    if starts.shape != (src.vocab_size + 1,) or not all(_within(*each) for each in bounds):
        raise InputError(
            f"{path} is damaged (an index is out of range); learn the shortlist again."
        )
    return Shortlist(starts.astype(np.int64), ids.astype(np.int64), always.astype(np.int64))


def _within(array: np.ndarray, most: int) -> bool:
    """Return whether an array has one axis, and integers from 0 to `most`."""
    whole = array.ndim == 1 and array.dtype.kind == "i"
    return whole and (not len(array) or bool(array.min() >= 0 and array.max() <= most))


def _hashes(tokenizers: tuple[Tokenizer, Tokenizer]) -> str:
    return " ".join(tokenizer.content_hash for tokenizer in tokenizers)
