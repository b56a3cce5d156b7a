"""The tokenizers of FSMT: words cut by Moses' rules, and byte-pair encoding of their characters.

    vocab-src.json, vocab-tgt.json   ids of the pieces; `</w>` ends the last piece of a word
    merges.txt                       the pairs to join, as subword-nmt learned them

The rules (Koehn et al., 2007) are those of `sacremoses`, applied as by the class in `transformers`:
punctuation is normalized, characters of Unicode's class C are dropped, words are cut, and `&` and
others are written as `&amp;`. Decoding joins the words again.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any
from unicodedata import category

from tokenizers import Tokenizer as Backend
from tokenizers import pre_tokenizers, processors
from tokenizers.models import BPE

from dragoman.errors import InputError, how_to_install
from dragoman.files.reading import read_file
from dragoman.folder.tokenizers.fast import ForeignTokenizer
from dragoman.folder.tokenizers.files import (
    SETTINGS,
    TokenizerFolder,
    read_vocab,
    refusing,
)
from dragoman.folder.tokenizers.vocabularies import LARGEST
from dragoman.text.spans import Span, trimmed_spans
from dragoman.text.tokenizer import Tokenizer

FSMT_FILES = ("vocab-src.json", "vocab-tgt.json", "merges.txt")
"""The tokenizer files of an FSMT model."""
END = "</w>"
FULL_STOPS = re.compile(r"[。．]\s*")
WIDE = "，、”“∶：？《》）！（；」「０１２３４５６７８９～’━〈〉【】％"
NARROW = dict(zip(map(ord, WIDE), ',,""::?"")!(;""0123456789~\'-<>[]%', strict=True))
NARROW[ord("…")] = "..."
"""Punctuation and digits that Moses replaces in every language."""
FARTHEST = 40
"""Number of characters in which the next word is looked for."""


class MosesTokenizer(ForeignTokenizer):
    """The pieces of one language; `tokenizers` joins them, `sacremoses` cuts and joins words."""

    def __init__(self, folder: TokenizerFolder, vocab: str, lang: str) -> None:
        """Read the files; `vocab` is the name of the language's vocabulary."""
        try:
            import sacremoses
        except ImportError as error:
            raise InputError(
                f"The tokenizer of {folder.path} needs sacremoses; {how_to_install('moses')}."
            ) from error
        ids, merges = read_vocab(folder.path / vocab), FSMT_FILES[-1]
        with refusing(folder.path / merges):
            backend = _joining(folder, ids, merges)
        self._lang, self._lowers = lang, folder.flag("do_lower_case", default=False)
        self._normalizer = sacremoses.MosesPunctNormalizer(lang=lang)
        self._cutter: Any = sacremoses.MosesTokenizer(lang=lang)
        self._joiner: Any = sacremoses.MosesDetokenizer(lang=lang)
        super().__init__(backend, folder, folder.files(*FSMT_FILES))
        self.vocab_size = max(ids.values()) + 1

    def _words(self, text: str) -> str:
        """Return the words of a text, separated by spaces."""
        text = FULL_STOPS.sub(". ", text.lower() if self._lowers else text).translate(NARROW)
        text = self._normalizer.normalize(text)
        text = "".join(char for char in text if not category(char).startswith("C"))
        words: str = self._cutter.tokenize(text, aggressive_dash_splits=True, return_str=True)
        return words

    def _encoded(self, backend: Backend, texts: Sequence[str]) -> list[list[int]]:
        found = super()._encoded(backend, [*map(self._words, texts)])
        return [[id_ if id_ < self.vocab_size else self.unk_id for id_ in ids] for ids in found]

    encode_words = Tokenizer.encode_words
    """Encodes each word alone: the backend's offsets are those in the words of Moses."""

    def spans(self, text: str) -> list[Span | None]:
        """Return the span in `text` of each piece of `encode(text)`.

        Moses may replace a word's characters; a word that is not in the text has no span.
        """
        words, place = self._words(text), 0
        offsets = list[Span]()
        (found,) = self._encodings(self._backend.encode_batch, [words])
        pieces = zip(found.word_ids, found.offsets, strict=True)
        for _, group in groupby(pieces, key=lambda piece: piece[0]):
            parts = [self._joiner.unescape_xml(words[start:end]) for _, (start, end) in group]
            word = "".join(parts)
            start = text.find(word, place, place + FARTHEST + len(word))
            for part in parts:
                end = start + len(part)
                offsets.append((start, end) if start >= 0 else (place, place))
                start = end if start >= 0 else start
            place = max(place, start)
        return trimmed_spans(text, offsets)

    def _text(self, backend: Backend, ids: Iterable[int]) -> str:  # noqa: ARG002 -- the interface
        skipped = self.specials.values()
        pieces = self.tokens(id_ for id_ in map(int, ids) if id_ not in skipped)
        words = "".join(pieces).replace(END, " ").split()
        text: str = self._joiner.detokenize(words)
        return text

    @property
    def content_hash(self) -> str:
        """A hash of everything that affects how a text is encoded."""
        said = f"{self._lang} {self._lowers} {self._backend.to_str()}"
        return sha256(said.encode()).hexdigest()

    def copy_backend(self, *, rest: bool = False) -> Backend:  # noqa: ARG002 -- the interface
        """Raise InputError: `tokenizers` does not have the rules of Moses."""
        raise InputError(
            f"The tokenizer of {self.folder.path} cuts words by sacremoses, which a tokenizer.json "
            "cannot hold; convert the model --to ctranslate2 instead."
        )

    def save(self, path: Path, *, rest: bool = False) -> None:  # noqa: ARG002 -- the interface
        """Raise InputError, as `copy_backend` does."""
        self.copy_backend()


def _joining(folder: TokenizerFolder, ids: Mapping[str, int], merges: str) -> Backend:
    """Build the byte-pair encoding; pieces without an id, which merges may need, get higher ones.

    fairseq numbers the pieces of its training texts, and some are joined in each of them.
    """
    lines = read_file(folder.path / merges, LARGEST).decode().split("\n")
    pairs = (line.split()[:2] for line in lines)
    joined = [*dict.fromkeys((pair[0], pair[1]) for pair in pairs if len(pair) == 2)]
    needed = dict.fromkeys(piece for a, b in joined for piece in (a, b, a + b) if piece not in ids)
    vocab = {**ids, **{piece: id_ for id_, piece in enumerate(needed, max(ids.values()) + 1)}}
    unk = folder.name_of("unk", ids) or "<unk>"
    eos = folder.name_of("sep", ids) or folder.name_of("eos", ids) or "</s>"
    backend = Backend(BPE(vocab, joined, unk_token=unk, end_of_word_suffix=END))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing(
        single=f"$A {eos}", special_tokens=[(eos, ids[eos])]
    )
    return backend


def read_fsmt(folder: TokenizerFolder) -> tuple[MosesTokenizer, MosesTokenizer] | None:
    """Read the tokenizers of an FSMT model; None if a file is missing."""
    if not folder.has(*FSMT_FILES):
        return None
    langs = folder.settings.get("langs") or folder.config.get("langs")
    if not isinstance(langs, list) or [*map(type, langs)] != [str, str]:
        raise InputError(
            f'{folder.path / SETTINGS[0]} has no langs, such as ["en", "de"]; get the whole folder.'
        )
    src, tgt = (MosesTokenizer(folder, *each) for each in zip(FSMT_FILES, langs, strict=False))
    return src, tgt
