"""A tokenizer whose decoding is the exact inverse of its encoding, for every Unicode string.

A text is split into words (`dragoman.text.train` has the rules), each word into pieces of the
vocabulary, and a character that is in no piece into its UTF-8 bytes ("byte fallback", Kudo and
Richardson 2018, an option of SentencePiece). Encoding is lossless because:

- spaces are ordinary characters of the pieces, so nothing has to be guessed when joining;
- decoding removes the one space that encoding adds before the first word, to make it the same piece
  as in the middle of a sentence;
- special and byte tokens are never matched in a text: `"</s>"` is four ordinary characters.

The file is a single `tokenizer.json`, which Hugging Face `tokenizers` can read.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, count, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding
from tokenizers import Tokenizer as Backend

from dragoman.errors import DragomanError, InputError
from dragoman.files.reading import LARGEST_JSON, read_file
from dragoman.files.writing import write_durably
from dragoman.text.limits import parse, prepare
from dragoman.text.spans import Span, lengths_of, seen_in, spans_of
from dragoman.text.tags import languages_in
from dragoman.text.unreadable import encode_or_reject, is_library_error

SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")
"""Padding, unknown (never produced: bytes cover everything), beginning and end of a sequence."""

MASK = "<mask>"
"""The special token that replaces what a masked language model predicts."""

BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
"""The byte tokens, in order."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The ids that a model expects before and after those of a source text."""

    before: tuple[int, ...]
    after: tuple[int, ...]


class Tokenizer:
    """Text to piece ids and back: `decode(encode(text)) == text`.

    This holds for the tokenizers that dragoman trains. Those of other libraries
    (`dragoman.folder.tokenizers`) have the same methods, and lose what their own rules lose.
    """

    files: tuple[str, ...] = ("tokenizer.json",)
    """Names of the files that it was loaded from, in their folder."""

    lang_in_source = False
    """Whether a source names its target language (Marian, SMaLL-100, MADLAD-400)."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.vocab_size: int = backend.get_vocab_size(with_added_tokens=True)
        ids = backend.get_vocab(with_added_tokens=True)
        self.pad_id, self.unk_id, self.bos_id, self.eos_id = (ids[token] for token in SPECIALS)

    @cached_property
    def languages(self) -> Mapping[str, int]:
        """The id of each language's token, by its code; empty for a model of one pair."""
        return languages_in(self.specials)

    def frame(self, lang: str | None = None) -> Frame:
        """Return the ids around a source text in `lang` (for Marian's and our models: into `lang`).

        Without `lang`, the tokenizer's files decide. Raises InputError for a language that the
        model does not have.
        """
        if lang is None:
            return Frame((), (self.eos_id,))
        if lang not in self.languages:
            known = ", ".join(self.languages) or "only one pair; leave it out"
            raise InputError(f"The model has no language {lang}: it has {known}.")
        return Frame((self.languages[lang],), (self.eos_id,))

    def language_mark(self, text: str) -> str:  # noqa: ARG002 -- for models that have marks
        """Return the `>>lang<<` at the start of a source text that names its target language.

        Empty if the model reads no such mark.
        """
        return ""

    def without_marks(self) -> "Tokenizer":
        """Return a tokenizer for texts whose target language is chosen: a mark in them is text."""
        return self

    def encode(self, text: str) -> list[int]:
        """Return the piece ids of `text`, without bos and eos; none for an empty text."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the piece ids of each text, in order, computed on all cores.

        Raises UnreadableText, with the number of the text, for one that cannot be encoded because
        it contains a lone surrogate, which is not Unicode text and has no UTF-8 form.
        """
        return self._encoded(self._backend, texts)

    def encode_rest(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the piece ids of texts that continue other text: no space is added before them.

        `encode(a) + encode_rest([b])[0]` decodes to `a + b` for every text `a` that is not empty.
        It equals `encode(a + b)` if no word crosses the boundary, for example after the line feed
        between two lines that neither begin nor end with a space.
        """
        return self._encoded(self._without_first_space, texts)

    def encode_words(
        self, texts: Sequence[str], words: Sequence[Sequence[tuple[int, int]]]
    ) -> list[tuple[list[int], list[int | None]]]:
        """Return the piece ids of each text, and the index of each word's first piece in them.

        Word `(start, end)` is `text[start:end]`; its index is None if it has no piece. Tokenizers
        that dragoman trains encode each word separately and skip the text between words.
        """
        pairs = zip(texts, words, strict=True)
        alone = [text[slice(*place)] for text, places in pairs for place in places]
        pieces = iter(self.encode_batch(alone))
        found: list[tuple[list[int], list[int | None]]] = []
        for places in words:
            own = [*islice(pieces, len(places))]
            starts = accumulate(map(len, own), initial=0)
            firsts = [start if each else None for each, start in zip(own, starts, strict=False)]
            found.append(([*chain.from_iterable(own)], firsts))
        return found

    def decode_rest(self, ids: Iterable[int]) -> str:
        """Return the text of `ids` that continue others; a space at their beginning is kept."""
        text: str = self._without_first_space.decode(self._plain(ids), skip_special_tokens=False)
        return text

    @cached_property
    def _without_first_space(self) -> Backend:
        """The same tokenizer, but neither adding nor removing a space before the first word."""
        state = json.loads(self._backend.to_str())
        steps = [{"type": "ByteFallback"}, {"type": "Fuse"}]
        decoder = {"type": "Sequence", "decoders": steps}
        return Backend.from_str(json.dumps(state | {"normalizer": None, "decoder": decoder}))

    def _encoded(self, backend: Backend, texts: Sequence[str]) -> list[list[int]]:
        return [each.ids for each in self._encodings(backend.encode_batch_fast, texts)]

    @staticmethod
    def _encodings(encode: Callable[..., list[Encoding]], texts: Sequence[str]) -> list[Encoding]:
        return encode_or_reject(lambda some: encode(some, add_special_tokens=False), texts)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of `ids`; special tokens are skipped.

        Bytes that are not valid UTF-8 (only a model generates such) become U+FFFD, one per byte.
        """
        text: str = self._backend.decode(self._plain(ids), skip_special_tokens=False)
        return text

    def lengths(self, ids: Sequence[int]) -> list[int]:
        """Return how many characters, except white space, each of `ids` adds to `decode(ids)`."""
        return lengths_of(ids, self.decode, self.decode_rest)

    def spans(self, text: str) -> list[Span | None]:
        """Return the span of each piece of `encode(text)` in `text`; a byte has its letter's span.

        None for a piece without text, if no later one has any.
        """
        return spans_of(seen_in(text), self.lengths(self.encode(text)))

    def _plain(self, ids: Iterable[int]) -> list[int]:
        specials = set(self.specials.values())
        return [id_ for id_ in map(int, ids) if id_ not in specials]

    @cached_property
    def specials(self) -> dict[str, int]:
        """The ids of all special tokens: the four, and those requested for its training."""
        vocab = self._backend.get_vocab(with_added_tokens=True)
        return {
            token: id_
            for token, id_ in vocab.items()
            if token in SPECIALS or (is_special(token) and token not in _BYTES)
        }

    @property
    def unwritten(self) -> frozenset[int]:
        """The ids of special tokens that are in the ids of no text: none for ours."""
        return frozenset()

    @cached_property
    def reads_leading_space(self) -> bool:
        """Whether a space before a text is part of it, with its own ids; False for ours."""
        return False

    @cached_property
    def cleaned(self) -> tuple[str, ...]:
        """The strings that lose their spaces in decoded texts: none for ours."""
        return ()

    @property
    def first_piece(self) -> int:
        """The smallest id of a piece that is neither special nor a single byte."""
        taken = {*self.specials.values()}
        return next(id_ for id_ in count(len(SPECIALS) + len(BYTES)) if id_ not in taken)

    def special_id(self, token: str) -> int:
        """Return the id of a special token. Raises InputError if the tokenizer does not have it."""
        if token not in self.specials:
            raise InputError(
                f"The tokenizer has no special token {token}; train it with tokenizer.specials = "
                f'["{token}"].'
            )
        return self.specials[token]

    @cached_property
    def byte_ids(self) -> frozenset[int]:
        """The ids of the byte tokens, which spell characters that are in no piece; may be empty."""
        return frozenset(filter(None, map(self._backend.token_to_id, BYTES)))

    def is_byte(self, id_: int) -> bool:
        """Return whether a token may be only a part of a character, to read with its neighbours."""
        return self.tokens([id_])[0] in _BYTES

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Return the pieces as the vocabulary spells them, for display."""
        return [self._backend.id_to_token(int(id_)) or f"<no piece {id_}>" for id_ in ids]

    @cached_property
    def content_hash(self) -> str:
        """A hash of everything that determines how a text is encoded."""
        return hashlib.sha256(self._backend.to_str().encode()).hexdigest()

    def splits(self) -> "SubwordSplits":
        """Return, for each piece, the pairs of pieces that it can be split into.

        BPE: the two pieces whose merge made it. Unigram: any two pieces that concatenate to it.
        """
        model = json.loads(self._backend.to_str())["model"]
        vocab = self._backend.get_vocab(with_added_tokens=True)
        if model["type"] == "BPE":
            merges = (m if isinstance(m, list) else m.split(" ") for m in model["merges"])
            triples = [(vocab[a + b], vocab[a], vocab[b]) for a, b in merges]
        else:
            plain = {
                piece: id_
                for piece, id_ in vocab.items()
                if piece not in _BYTES and piece not in self.specials
            }
            triples = [
                (id_, plain[piece[:cut]], plain[piece[cut:]])
                for piece, id_ in plain.items()
                for cut in range(1, len(piece))
                if piece[:cut] in plain and piece[cut:] in plain
            ]
        return SubwordSplits.of(triples, vocab_size=self.vocab_size)

    def copy_backend(self, *, rest: bool = False) -> Backend:
        """Return a copy of the library's tokenizer, to change it and write it elsewhere.

        With `rest`, the copy is the one for `encode_rest` and `decode_rest`.
        """
        backend = self._without_first_space if rest else self._backend
        return Backend.from_str(backend.to_str())

    def save(self, path: Path, *, rest: bool = False) -> None:
        """Write the tokenizer to a JSON file, atomically.

        With `rest`, write the one for `encode_rest` and `decode_rest`.
        """
        backend = self._without_first_space if rest else self._backend
        try:
            write_durably(path, backend.to_str(pretty=True))
        except OSError as error:
            raise DragomanError(f"Cannot write {path}: {error.strerror}.") from error

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Read what `save` wrote. Raises InputError if there is no such tokenizer."""
        try:
            content = read_file(Path(path), LARGEST_JSON).decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not a tokenizer.json: it is not UTF-8 text.") from error
        return cls.from_json(content, origin=str(path))

    @classmethod
    def from_json(cls, content: str, origin: str) -> "Tokenizer":
        """Return a tokenizer from the text of its file, which errors call `origin`."""
        try:
            backend = parse(content)
        except BaseException as error:  # the library raises no narrower one
            if not is_library_error(error):
                raise
            raise InputError(f"{origin} is not a readable tokenizer.json: {error}.") from error
        prepare(backend, origin)
        missing = [token for token in SPECIALS if backend.token_to_id(token) is None]
        if missing:
            raise InputError(
                f"The tokenizer {origin} has no token {', '.join(missing)}; "
                "use the tokenizer.json that dragoman wrote beside the weights."
            )
        return cls(backend)


_BYTES = frozenset(BYTES)
_SPECIAL = re.compile(r"<\S*[^\W_]\S*>")


def is_special(token: str) -> bool:
    """Return whether the token has the form of a special one, `<name>`.

    No piece of a text has it: splitting into words separates letters and digits from brackets.
    """
    return _SPECIAL.fullmatch(token) is not None


# ---------------------------------------------------------------- subword sampling

Ids = npt.NDArray[np.integer]
Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubwordSplits:
    r"""Subword sampling on ids: each piece is split into two with some probability.

    BPE-dropout (Provilkov et al. 2020, section 3) shows the model several segmentations of the same
    word by skipping merges at random while the text is tokenised. Here the stored segmentation is
    randomised instead: a piece :math:`c = ab` is replaced by :math:`a, b` with probability
    :math:`p`, then :math:`a` and :math:`b` in turn, until no more pieces are split. The text stays
    the same and is not needed, and a whole corpus takes a few array operations.

    The distribution is not that of BPE-dropout (there, a skipped merge can give way to another
    one), but the purpose and the limits are: p = 0 changes nothing, and p = 1 leaves only pieces
    that cannot be split.

    Piece `i` is `left[k]` and `right[k]` concatenated, for each `k` from `first[i]` to
    `first[i + 1] - 1`.
    """

    first: npt.NDArray[np.int64]
    """The index of each piece's first split; shape (vocab_size + 1,)."""
    left: npt.NDArray[np.int64]
    """The first part of each split."""
    right: npt.NDArray[np.int64]
    """The second part of each split."""

    @classmethod
    def of(cls, triples: Iterable[tuple[int, int, int]], vocab_size: int) -> "SubwordSplits":
        """Create the table from triples (piece, its first part, its second part)."""
        table = np.array(sorted(set(triples)), dtype=np.int64).reshape(-1, 3)
        counts = np.bincount(table[:, 0], minlength=vocab_size)
        first = np.concatenate([[0], np.cumsum(counts)])
        return cls(first=first, left=table[:, 1], right=table[:, 2])

    def sample(
        self, ids: Ids, offsets: Offsets, *, probability: float, rng: np.random.Generator
    ) -> tuple[Ids, Offsets]:
        """Split pieces of many texts at random.

        `ids` are the pieces of all texts one after another; text `k` is
        `ids[offsets[k]:offsets[k + 1]]`. Returns the same two arrays for the sampled texts, with
        the dtype of `ids`; the arguments are not modified.
        """
        fresh = np.ones(len(ids), dtype=np.bool_)
        while fresh.any():
            (at,) = np.nonzero(fresh)
            starts = self.first[ids[at]]
            choices = self.first[ids[at].astype(np.int64) + 1] - starts
            chosen = (choices > 0) & (rng.random(len(at), dtype=np.float32) < probability)
            at, starts, choices = at[chosen], starts[chosen], choices[chosen]
            split = starts + rng.integers(0, choices) if len(at) else starts
            ids, offsets, fresh = self._apply(ids, offsets, at, split)
        return ids, offsets

    def _apply(
        self, ids: Ids, offsets: Offsets, at: Offsets, split: Offsets
    ) -> tuple[Ids, Offsets, npt.NDArray[np.bool_]]:
        """Replace the pieces `at` by both parts of `split`, and mark the parts."""
        lengths = np.ones(len(ids), dtype=np.int64)
        lengths[at] = 2
        out = np.repeat(ids, lengths)
        place = at + np.arange(len(at))
        out[place] = self.left[split]
        out[place + 1] = self.right[split]
        fresh = np.zeros(len(out), dtype=np.bool_)
        fresh[place] = True
        fresh[place + 1] = True
        grown = offsets + np.searchsorted(at, offsets)
        return out, grown, fresh
