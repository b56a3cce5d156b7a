"""Marian and M2M100: pieces by SentencePiece's own library, ids from a `vocab.json`.

The SentencePiece model splits a text into pieces; its own ids are not used. `vocab.json` maps the
pieces to the model's ids, and a piece that is not in it to the unknown token.
"""

import json
import re
from collections.abc import Iterable, Sequence
from copy import copy
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend

from dragoman.errors import InputError
from dragoman.files.reading import read_file, read_own
from dragoman.folder.tokenizers.fast import CLEANED, ForeignTokenizer
from dragoman.folder.tokenizers.files import USUAL, Pieces, TokenizerFolder, read_vocab, refusing
from dragoman.folder.tokenizers.vocabularies import (
    LARGEST,
    fields,
    find_vocabularies,
    number_in,
    read_vocabulary,
)
from dragoman.text.limits import MOST_GROWTH, longest_replacement
from dragoman.text.spans import Span, trimmed_spans
from dragoman.text.tokenizer import BYTES, Frame, Tokenizer
from dragoman.text.unreadable import encode_or_reject

MARIAN_FILES = ("source.spm", "target.spm", "vocab.json")
"""The tokenizer files of a Marian model in a Hugging Face folder."""
PIECES, BEGIN, END = 2, 4, 5
"""Fields of `SentencePieceText`, and of a piece: its start and end in UTF-8 bytes."""
CODES = {
    "m2m100": "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga "
    "gd gl gu ha he hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml "
    "mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn "
    "tr uk ur uz vi wo xh yi yo zh zu",
    "wmt21": "en ha is ja cs ru zh de",
}
"""The languages of M2M100 and the WMT 2021 models, whose tokens follow the vocabulary."""


class PieceTokenizer(ForeignTokenizer):
    """A SentencePiece model, and the ids of its pieces in a vocabulary.

    The first of `models` splits texts, and the second joins pieces. `roles` are the special tokens'
    roles, by default Marian's. `lang` is the default language put before a text; None for Marian,
    where a text may begin with its target language, `>>lang<<`.
    """

    def __init__(
        self,
        folder: TokenizerFolder,
        files: Sequence[str],
        models: tuple[Path, Path],
        vocab: dict[str, int],
        *,
        roles: Iterable[str] = ("eos", "unk", "pad"),
        lang: str | None = None,
    ) -> None:
        self.folder, self.files = folder, folder.files(*files)
        self._models = models
        self._reads, self._writes = map(_load, models)
        self._lang, self._marks = lang, lang is None
        self.lang_in_source = self._marks or folder.rules.lang_in_source
        names = (folder.name_of(role, vocab) for role in roles)
        self._named = tuple(dict.fromkeys(n for n in (*names, *folder.extra_tokens) if n))
        for name in self._named:
            vocab.setdefault(name, len(vocab))
        self._vocab = vocab
        self._pieces = {id_: piece for piece, id_ in vocab.items()}
        self._begin(vocab)

    @cached_property
    def specials(self) -> dict[str, int]:
        """The ids of the special tokens, including those of languages."""
        marked = {p: i for p, i in self._vocab.items() if _LANGUAGE.fullmatch(p)}
        return {name: self._vocab[name] for name in self._named} | marked

    @cached_property
    def byte_ids(self) -> frozenset[int]:
        """The ids of the byte tokens, which spell characters that are in no piece."""
        return frozenset(self._vocab[byte] for byte in BYTES if byte in self._vocab)

    def frame(self, lang: str | None = None) -> Frame:
        """Return the ids around a source text in `lang` (Marian: into `lang`)."""
        lang = lang or self._lang
        return Frame(() if lang is None else (self.language_id(lang),), (self.eos_id,))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text; see `Tokenizer.encode_batch`."""
        return encode_or_reject(lambda some: [*map(self._marked_ids, some)], texts)

    def encode_rest(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of texts that continue other text: no space is put before them."""

        def encode(some: Sequence[str]) -> list[list[int]]:
            return [self._text_ids(self._plain_reads, text) for text in some]

        return encode_or_reject(encode, texts)

    encode_words = Tokenizer.encode_words
    """Encodes each word alone: SentencePiece's library gives no character offsets here."""

    @cached_property
    def _plain_reads(self) -> Any:  # noqa: ANN401 -- SentencePiece has no types
        return _load(self._models[0], WITHOUT_FIRST_SPACE)

    def language_mark(self, text: str) -> str:
        """Return the `>>lang<<` that a text begins with, if the model has this language."""
        found = _MARK.match(text) if self._marks else None
        return found[0] if found and found[1] in self.languages else ""

    def without_marks(self) -> "PieceTokenizer":
        """Return a copy that treats language marks as text: the language is already chosen."""
        plain = copy(self)
        plain._marks = False  # noqa: SLF001 -- the same class
        return plain

    def _marked_ids(self, text: str) -> list[int]:
        mark = self.language_mark(text)
        before = [self._vocab[mark]] if mark else []
        return before + self._text_ids(self._reads, text[len(mark) :])

    def _text_ids(self, processor: Any, text: str) -> list[int]:  # noqa: ANN401 -- as above
        """Return the ids of a text. SentencePiece returns unknown pieces as in the text."""
        pieces = processor.encode(text, out_type=str)
        return self._as_text([self._vocab.get(piece, self.unk_id) for piece in pieces])

    def spans(self, text: str) -> list[Span | None]:
        """Return the span in `text` of each piece of `encode(text)`; None for a language mark."""
        mark = self.language_mark(text)
        rest = text[len(mark) :]
        char_of = [n for n, char in enumerate(text) for _ in char.encode()] + [len(text)]
        begun = len(mark.encode())
        message = self._reads.encode(rest, out_type="serialized_proto")
        pieces = (dict(fields(piece)) for kind, piece in fields(message) if kind == PIECES)
        places = ([number_in(piece[n]) + begun for n in (BEGIN, END)] for piece in pieces)
        offsets = [(char_of[start], char_of[end]) for start, end in places]
        return [*([None] if mark else []), *trimmed_spans(text, offsets)]

    def decode(self, ids: Iterable[int]) -> str:
        """Decode `ids` as Hugging Face does; special tokens are skipped."""
        return self._cleaned(self.decode_rest(ids).strip())

    def decode_rest(self, ids: Iterable[int]) -> str:
        """Decode `ids` that continue others."""
        skipped = {self._vocab[name] for name in self._named}
        pieces = [
            self._pieces[id_] for id_ in map(int, ids) if id_ in self._pieces and id_ not in skipped
        ]
        text: str = self._writes.decode_pieces(pieces)
        return text.replace("▁", " ")

    @cached_property
    def cleaned(self) -> tuple[str, ...]:
        """Strings that lose their spaces in decoded texts."""
        return CLEANED if self.folder.flag("clean_up_tokenization_spaces", default=False) else ()

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Return the pieces as the vocabulary spells them, for display."""
        return [self._pieces.get(int(id_), f"<no piece {id_}>") for id_ in ids]

    @cached_property
    def content_hash(self) -> str:
        """Return a hash of everything that affects how a text is encoded."""
        digest = sha256(json.dumps([self._vocab, self._named], sort_keys=True).encode())
        for processor in (self._reads, self._writes):
            digest.update(processor.serialized_model_proto())
        return digest.hexdigest()

    def copy_backend(self, *, rest: bool = False) -> Backend:  # noqa: ARG002 -- the interface
        """Raise InputError: `tokenizers` cannot run this one."""
        raise InputError(
            f"The tokenizer of {self.folder.path} is {', '.join(self.files)}, which cannot be "
            "written as a tokenizer.json."
        )

    def save(self, path: Path, *, rest: bool = False) -> None:  # noqa: ARG002 -- the interface
        """Write the file that an ONNX folder's `run.py` reads, next to the SentencePiece models."""
        for model in self._models:
            (path.parent / model.name).write_bytes(read_own(model))
        said = {
            "models": [model.name for model in self._models],
            "ids": self._vocab,
            "unk_id": self.unk_id,
            "specials": self._named,
            "marks": self._marks,
        }
        path.write_text(json.dumps(said, ensure_ascii=False), encoding="utf-8")


_MARK = re.compile(r">>([^<>\s]+)<<")
_LANGUAGE = re.compile(r">>\S+<<|__[a-z]{2,3}__")


def read_marian(folder: TokenizerFolder) -> tuple[PieceTokenizer, PieceTokenizer] | None:
    """Read the two tokenizers of a Marian model, with one or two vocabularies.

    Without the files of Hugging Face, read Marian's own; return None if there are none.
    """
    if not folder.has(*MARIAN_FILES):
        return _read_marians_own(folder)
    apart = folder.flag("separate_vocabs", default=False)
    names = [*MARIAN_FILES, *["target_vocab.json"] * apart]
    source, target, vocab, *others = (folder.path / name for name in names)
    with refusing(vocab):
        given = read_vocab(vocab)
        written = read_vocab(others[0]) if apart else dict(given)
        joins = target if apart else source  # as in Hugging Face
        reads = PieceTokenizer(folder, names, (source, joins), given)
        return reads, PieceTokenizer(folder, names, (target, joins), written).without_marks()


def _read_marians_own(folder: TokenizerFolder) -> tuple[PieceTokenizer, PieceTokenizer] | None:
    """Read the tokenizers of Marian's own folder; None if it has no vocabulary of Marian's.

    SentencePiece models that Marian trained have the model's ids; for others, a YAML vocabulary
    numbers the pieces. Padding is last, since its row was appended.
    """
    numbered = find_vocabularies(folder.path)
    pad_id = folder.config.get("pad_token_id")
    if numbered is None or not isinstance(pad_id, int):
        return None
    models = numbered
    if numbered[0].suffix != ".spm":
        models = folder.path / "source.spm", folder.path / "target.spm"
        if missing := [path.name for path in models if not path.is_file()]:
            raise InputError(
                f"{folder.path} has no {missing[0]}: {numbered[0].name} numbers the pieces, and "
                "source.spm and target.spm cut texts into them; get the whole folder (models of "
                "other pieces than SentencePiece's are not read)."
            )
    names = tuple(dict.fromkeys(path.name for path in (*models, *numbered)))
    read = []
    for model, joins, numbers in zip(models, models, numbered, strict=True):
        vocab = read_vocabulary(numbers)
        if max(vocab.values(), default=-1) >= pad_id:
            raise InputError(f"{numbers} has more pieces than the {pad_id:,} of the model.")
        vocab["<pad>"] = pad_id
        read.append(PieceTokenizer(folder, names, (model, joins), vocab))
    return read[0], read[1].without_marks()


def read_m2m100(folder: TokenizerFolder) -> PieceTokenizer:
    """Read the tokenizer of M2M100: the tokens of its languages follow the vocabulary."""
    names = ["sentencepiece.bpe.model", "vocab.json"]
    model, path = (folder.path / name for name in names)
    vocab = read_vocab(path)
    codes = CODES[str(folder.settings.get("language_codes") or "m2m100")].split()
    vocab |= {f"__{code}__": len(vocab) + at for at, code in enumerate(codes)}
    lang = str(folder.settings.get("src_lang") or "en")
    return PieceTokenizer(folder, names, (model, model), vocab, roles=USUAL, lang=lang)


WITHOUT_FIRST_SPACE = b"\x1a\x02\x18\x00"
"""Appended to a model, sets its `normalizer_spec.add_dummy_prefix` to false: repeated parts of a
message are merged (https://protobuf.dev/programming-guides/encoding/#last-one-wins)."""


def _load(path: Path, more: bytes = b"") -> Any:  # noqa: ANN401 -- SentencePiece has no types
    """Load a model file with `more` appended."""
    from sentencepiece import SentencePieceProcessor  # few models need it

    with refusing(path):
        longest = longest_replacement(Pieces.read(path).charsmap)  # the library checks nothing
        if longest > MOST_GROWTH:
            raise ValueError(f"it replaces a character by {longest:,} bytes")
        return SentencePieceProcessor(model_proto=read_file(path, LARGEST) + more)
