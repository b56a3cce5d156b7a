"""A tokenizer whose decoding is the exact inverse of its encoding, for every Unicode string.

A text is cut into words (`dragoman.text.train` has the rules), each word into pieces of the
vocabulary, and a character that is in no piece into the bytes of its UTF-8 form ("byte fallback",
Kudo and Richardson 2018, SentencePiece, there as an option). What makes it lossless:

- spaces are ordinary characters of the pieces, so nothing has to be guessed when joining;
- the one space that is put before the first word, so that it is the same piece as in the middle
  of a sentence, is taken away again by decoding;
- special and byte tokens are never looked for in a text: `"</s>"` is four ordinary characters.

The file is one `tokenizer.json` of Hugging Face `tokenizers`, which reads it by itself.
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
"""The special token in place of what a masked language model predicts."""

BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
"""The byte tokens, in order."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The ids that a model expects around those of a source text."""

    before: tuple[int, ...]
    after: tuple[int, ...]


class Tokenizer:
    """Text to piece ids and back: `decode(encode(text)) == text`.

    That promise is of the tokenizers that dragoman trains. Those of another library
    (`dragoman.folder.tokenizers`) have the same methods, and lose what their own rules lose.
    """

    files: tuple[str, ...] = ("tokenizer.json",)
    """Names of the files that it was read from, in their folder."""

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
        """The ids around a source text in `lang` (of Marian's models and of ours: into `lang`).

        Without `lang`: as the tokenizer's files have it. Raises InputError for a language that the
        model does not have.
        """
        if lang is None:
            return Frame((), (self.eos_id,))
        if lang not in self.languages:
            known = ", ".join(self.languages) or "only one pair; leave it out"
            raise InputError(f"The model has no language {lang}: it has {known}.")
        return Frame((self.languages[lang],), (self.eos_id,))

    def language_mark(self, text: str) -> str:  # noqa: ARG002 -- for models that have marks
        """The `>>lang<<` at the beginning of a source text that names its target language.

        Empty where the model reads no such mark.
        """
        return ""

    def without_marks(self) -> "Tokenizer":
        """The same, for texts whose target language is chosen already: a mark in them is text."""
        return self

    def encode(self, text: str) -> list[int]:
        """The piece ids of `text`, without bos and eos; none for an empty text."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The piece ids of each text, in order, computed on all cores.

        Raises UnreadableText, with the number of the text, for one that cannot be encoded: with a
        lone surrogate, which is not Unicode text and has no UTF-8 form.
        """
        return self._encoded(self._backend, texts)

    def encode_rest(self, texts: Sequence[str]) -> list[list[int]]:
        """The piece ids of texts that continue other text: no space is put before them.

        `encode(a) + encode_rest([b])[0]` decodes to `a + b` for every text `a` that is not
        empty, and is `encode(a + b)` where no word crosses from one to the other: after the line
        feed between two lines, say, that begin and end with no space.
        """
        return self._encoded(self._without_first_space, texts)

    def encode_words(
        self, texts: Sequence[str], words: Sequence[Sequence[tuple[int, int]]]
    ) -> list[tuple[list[int], list[int | None]]]:
        """The piece ids of each text, and the index in them of each word's first piece.

        Word `(start, end)` is `text[start:end]`; its index is None if it has no piece. Tokenizers
        that dragoman trains encode each word by itself and skip what is between the words.
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
        """The text of `ids` that continue others: a space at their beginning stays."""
        text: str = self._without_first_space.decode(self._plain(ids), skip_special_tokens=False)
        return text

    @cached_property
    def _without_first_space(self) -> Backend:
        """The same without the space before the first word: it neither puts nor takes one."""
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
        """The text of `ids`; special tokens are skipped.

        Bytes that form no UTF-8 (only a model writes such) become U+FFFD, one for each byte.
        """
        text: str = self._backend.decode(self._plain(ids), skip_special_tokens=False)
        return text

    def lengths(self, ids: Sequence[int]) -> list[int]:
        """How many characters, white space aside, each of `ids` adds to `decode(ids)`."""
        return lengths_of(ids, self.decode, self.decode_rest)

    def spans(self, text: str) -> list[Span | None]:
        """Where each piece of `encode(text)` stands in `text`; a lone byte where its letter does.

        None for one without text, and none after it that has some.
        """
        return spans_of(seen_in(text), self.lengths(self.encode(text)))

    def _plain(self, ids: Iterable[int]) -> list[int]:
        specials = set(self.specials.values())
        return [id_ for id_ in map(int, ids) if id_ not in specials]

    @cached_property
    def specials(self) -> dict[str, int]:
        """The ids of all special tokens: the four, and those that its training was asked for."""
        vocab = self._backend.get_vocab(with_added_tokens=True)
        return {
            token: id_
            for token, id_ in vocab.items()
            if token in SPECIALS or (is_special(token) and token not in _BYTES)
        }

    @cached_property
    def reads_leading_space(self) -> bool:
        """Whether a space before a text is part of it, with ids of its own; not in ours."""
        return False

    @cached_property
    def cleaned(self) -> tuple[str, ...]:
        """What loses its spaces in texts that are decoded: nothing in ours."""
        return ()

    @property
    def first_piece(self) -> int:
        """The smallest id of a piece that is neither special nor a single byte."""
        taken = {*self.specials.values()}
        return next(id_ for id_ in count(len(SPECIALS) + len(BYTES)) if id_ not in taken)

    def special_id(self, token: str) -> int:
        """The id of a special token. Raises InputError when the tokenizer has none of that name."""
        if token not in self.specials:
            raise InputError(
                f"The tokenizer has no special token {token}; train it with tokenizer.specials = "
                f'["{token}"].'
            )
        return self.specials[token]

    @cached_property
    def byte_ids(self) -> frozenset[int]:
        """The ids of the tokens that spell characters which are in no piece; none without these."""
        return frozenset(filter(None, map(self._backend.token_to_id, BYTES)))

    def is_byte(self, id_: int) -> bool:
        """Whether a token may be a part of a character only, and reads with those beside it."""
        return self.tokens([id_])[0] in _BYTES

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The pieces as the vocabulary spells them, for display."""
        return [self._backend.id_to_token(int(id_)) or f"<no piece {id_}>" for id_ in ids]

    @cached_property
    def content_hash(self) -> str:
        """A hash of everything that decides how a text is encoded."""
        return hashlib.sha256(self._backend.to_str().encode()).hexdigest()

    def splits(self) -> "SubwordSplits":
        """For each piece the pairs of pieces that it can be taken apart into.

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
        """A copy of the library's tokenizer, to be changed and written elsewhere.

        With `rest` it is that of `encode_rest` and `decode_rest`.
        """
        backend = self._without_first_space if rest else self._backend
        return Backend.from_str(backend.to_str())

    def save(self, path: Path, *, rest: bool = False) -> None:
        """Write the tokenizer to one JSON file, which appears when it is whole.

        With `rest` it is that of `encode_rest` and `decode_rest`.
        """
        backend = self._without_first_space if rest else self._backend
        try:
            write_durably(path, backend.to_str(pretty=True))
        except OSError as error:
            raise DragomanError(f"Cannot write {path}: {error.strerror}.") from error

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Read what `save` wrote. Raises InputError when there is no such tokenizer."""
        try:
            content = read_file(Path(path), LARGEST_JSON).decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not a tokenizer.json: it is not UTF-8 text.") from error
        return cls.from_json(content, origin=str(path))

    @classmethod
    def from_json(cls, content: str, origin: str) -> "Tokenizer":
        """A tokenizer from the text of its file; `origin` is named when something is wrong."""
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
    """Whether the token has the form of a special one, `<name>`.

    No piece of a text has it: words part letters and digits from brackets.
    """
    return _SPECIAL.fullmatch(token) is not None


# ---------------------------------------------------------------- subword sampling

Ids = npt.NDArray[np.integer]
Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubwordSplits:
    r"""Subword sampling on ids: each piece is taken apart into two with some probability.

    BPE-dropout (Provilkov et al. 2020, section 3) shows the model several segmentations of the same
    word by skipping merges at random while the text is tokenised. Here the stored segmentation is
    randomised instead: a piece :math:`c = ab` is replaced by :math:`a, b` with probability
    :math:`p`, then :math:`a` and :math:`b` in turn, until nothing is taken apart any more. The text
    stays the same and is not needed, and a whole corpus takes a few array operations.

    The distribution is not that of BPE-dropout (a skipped merge there can give way to another one),
    but it has its purpose and its limits: p = 0 changes nothing, p = 1 leaves what cannot be split.

    Piece `i` is `left[k]` and `right[k]` concatenated, for each `k` from `first[i]` to
    `first[i + 1] - 1`.
    """

    first: npt.NDArray[np.int64]
    """Where the splits of each piece begin; shape (vocab_size + 1,)."""
    left: npt.NDArray[np.int64]
    """The first part of each split."""
    right: npt.NDArray[np.int64]
    """The second part of each split."""

    @classmethod
    def of(cls, triples: Iterable[tuple[int, int, int]], vocab_size: int) -> "SubwordSplits":
        """From triples (piece, its first part, its second part)."""
        table = np.array(sorted(set(triples)), dtype=np.int64).reshape(-1, 3)
        counts = np.bincount(table[:, 0], minlength=vocab_size)
        first = np.concatenate([[0], np.cumsum(counts)])
        return cls(first=first, left=table[:, 1], right=table[:, 2])

    def sample(
        self, ids: Ids, offsets: Offsets, *, probability: float, rng: np.random.Generator
    ) -> tuple[Ids, Offsets]:
        """Take pieces of many texts apart at random.

        `ids` are the pieces of all texts one after another; text `k` is
        `ids[offsets[k]:offsets[k + 1]]`. Gives the same two arrays of the sampled texts, with
        the type of `ids`; the arguments are not changed.
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
        """Put both parts of `split` in the place of the pieces `at`, and mark the parts."""
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
