"""Sentences with a tag for each word: read, made uniform, tokenised.

A file has one word a line, its columns parted by blanks or tabs, and a blank line after each
sentence (the form of the CoNLL shared tasks; lines that begin with `-DOCSTART-` are no words).
Spans come out as BIO, however the file writes them. In Chinese, characters are words.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from dragoman.data.dataset import Ragged, SpecialIds, TextDataset, gather
from dragoman.data.prepare import Encoder, encode_all, special_ids
from dragoman.data.schemes import (
    Scheme,
    bio_labels,
    detect_scheme,
    find_spans,
    parted,
    to_bio,
)
from dragoman.errors import InputError, nearest
from dragoman.files.reading import read_lines
from dragoman.wording import counted

__all__ = [
    "TaggedDataset",
    "TaggedLayout",
    "TaggedSentence",
    "load_tagged",
    "read_tagged",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedLayout:
    """Where a file of tagged words has what."""

    word_column: int = 1
    """Column of the word, counted from 1; from the end with -1."""
    tag_column: int = -1
    """Column of the tag, counted the same; -1 is the last."""
    scheme: Literal["auto", "bio", "iob1", "bioes", "plain"] = "auto"
    """Tagging scheme of spans; "plain" if tags do not form spans, such as parts of speech."""

    def __post_init__(self) -> None:
        if 0 in (self.word_column, self.tag_column) or self.word_column == self.tag_column:
            raise InputError(
                f"word_column ({self.word_column}) and tag_column ({self.tag_column}) must be two "
                "different columns, counted from 1, or from the end with -1."
            )


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """The words of a sentence and their tags as they stand in the file."""

    words: list[str]
    tags: list[str]
    line: int
    """Line of the first word."""


def read_tagged(path: Path, layout: TaggedLayout) -> Iterator[TaggedSentence]:
    """The sentences of a file. Raises InputError with the line for what is no word and tag."""
    sentence = TaggedSentence([], [], 1)
    for number, line in enumerate(chain(read_lines(path), [""]), start=1):
        columns = re.split(r"[ \t]+", line.strip(" \t"))
        if columns == [""] or columns[0].startswith("-DOCSTART-"):
            if sentence.words:
                yield sentence
            sentence = TaggedSentence([], [], number + 1)
            continue
        places = [
            at - 1 if at > 0 else len(columns) + at
            for at in (layout.word_column, layout.tag_column)
        ]
        if not 0 <= min(places) < max(places) < len(columns):
            raise InputError(
                f"{path} line {number} has {len(columns)} column{'s' * (len(columns) != 1)} "
                f"(word in column {layout.word_column}, tag in {layout.tag_column}); part them by "
                "blanks or tabs, or set word_column and tag_column."
            )
        sentence.words.append(columns[places[0]])
        sentence.tags.append(columns[places[1]])


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedDataset:
    """Words as piece ids, and their tags as numbers.

    Sentence s holds the words `sentences[s]` to `sentences[s + 1] - 1`.
    """

    name: str
    pieces: Ragged
    """The piece ids of each word."""
    tags: npt.NDArray[np.int64]
    """The number of each word's tag; shape (words,)."""
    sentences: npt.NDArray[np.int64]
    """Where sentences begin, in words, and the number of words at the end."""
    labels: tuple[str, ...]
    """The tags by number: O, B-X, I-X, ... or, if plain, as in the file."""
    scheme: Scheme
    """How the file wrote spans."""
    malformed: int
    """Tags that stood where the scheme forbids them."""
    special: SpecialIds

    def __len__(self) -> int:
        return len(self.sentences) - 1

    @property
    def content_hash(self) -> str:
        """A hash of the ids, the sentences, the tags and their names."""
        digest = hashlib.sha256(json.dumps([self.labels, astuple(self.special)]).encode())
        for array in (self.pieces.ids, self.pieces.offsets, self.sentences, self.tags):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:32]

    def by_sentence(self, tags: npt.NDArray[np.int64]) -> list[list[str]]:
        """Tag numbers of all words, the own ones or predicted ones, as names in sentences."""
        names = [self.labels[tag] for tag in tags.tolist()]
        bounds = self.sentences.tolist()
        return [names[start:stop] for start, stop in pairwise(bounds)]

    def take(self, rows: npt.NDArray[np.int64]) -> "TaggedDataset":
        """The sentences with these numbers."""
        counts = np.diff(self.sentences)[rows]
        words = gather(np.arange(len(self.tags)), self.sentences[rows], counts)
        return replace(
            self,
            pieces=self.pieces.take(words.ids.astype(np.int64)),
            tags=self.tags[words.ids],
            sentences=words.offsets,
        )

    def as_texts(self) -> TextDataset:
        """The texts alone: for learning from them without labels."""
        return TextDataset(
            name=self.name,
            texts=Ragged(self.pieces.ids, self.pieces.offsets[self.sentences]),
            special=self.special,
            content_hash=self.content_hash,
        )

    def report(self, max_length: int) -> Iterator[str]:
        """What is in it, in sentences; `max_length` is the limit beyond which they are cut."""
        yield f"{self.name}: {counted(len(self), 'sentence')}, {counted(len(self.tags), 'word')}."
        if self.scheme == "plain":
            yield f"{self.name}: {counted(len(self.labels), 'tag')}, each for one word."
        else:
            begins = np.array([label.startswith("B-") for label in self.labels])
            spans = int(begins[self.tags].sum())
            written = {"bio": "BIO", "iob1": "IOB1", "bioes": "BIOES"}[self.scheme]
            yield f"{self.name}: {counted(spans, 'span')}, written as {written}, learned as BIO."
        if self.malformed:
            yield (
                f"{self.name}: {counted(self.malformed, 'tag does', 'tags do')} not follow the "
                "scheme; read as the CoNLL shared tasks' script reads them."
            )
        longer = int((np.diff(self.pieces.offsets[self.sentences]) > max_length).sum())
        if longer:
            over = f"over {counted(max_length, 'token')}"
            parted = counted(longer, f"sentence {over} is", f"sentences {over} are")
            yield f"{self.name}: {parted} parted."


def load_tagged(
    path: Path, layout: TaggedLayout, encoder: Encoder, labels: Sequence[str] = ()
) -> TaggedDataset:
    """Read and tokenise a file; spans become BIO.

    The tags are numbered in the order of `labels`, or else O first and types sorted. Raises
    InputError for a tag that is not among those given, and for whatever `read_tagged` rejects.
    """
    read = list(read_tagged(path, layout))
    if not read:
        raise InputError(f"{path} holds no word with a tag.")
    scheme = detect_scheme(s.tags for s in read) if layout.scheme == "auto" else layout.scheme
    tags, malformed = _unified(path, read, scheme)
    found = set(chain.from_iterable(tags))
    types = {tag[2:] for tag in found if tag != "O"}
    ordered = tuple(labels or (sorted(found) if scheme == "plain" else bio_labels(types)))
    numbers = {name: number for number, name in enumerate(ordered)}
    _check_known(path, read, tags, numbers)
    return TaggedDataset(
        name=str(path),
        pieces=_pieces(chain.from_iterable(s.words for s in read), encoder),
        tags=np.array([numbers[tag] for tag in chain.from_iterable(tags)], dtype=np.int64),
        sentences=np.cumsum([0, *(len(s.words) for s in read)]),
        labels=ordered,
        scheme=scheme,
        malformed=malformed,
        special=special_ids(encoder),
    )


def _unified(
    path: Path, sentences: Sequence[TaggedSentence], scheme: Scheme
) -> tuple[list[list[str]], int]:
    """The tags of each sentence as BIO, or as they are, and how many were malformed."""
    if scheme == "plain":
        return [sentence.tags for sentence in sentences], 0
    unified, malformed = [], 0
    for sentence in sentences:
        for line, tag in enumerate(sentence.tags, start=sentence.line):
            if parted(tag)[0] is None:
                raise InputError(
                    f"{path} line {line} has the tag {tag!r}, neither O nor a prefix, a hyphen and "
                    'a type; mend it, or set scheme = "plain" where tags stand for single words.'
                )
        spans, wrong = find_spans(sentence.tags, scheme)
        unified.append(to_bio(spans, len(sentence.tags)))
        malformed += wrong
    return unified, malformed


def _check_known(
    path: Path,
    sentences: Sequence[TaggedSentence],
    tags: Sequence[Sequence[str]],
    known: dict[str, int],
) -> None:
    for sentence, unified in zip(sentences, tags, strict=True):
        for line, tag in enumerate(unified, start=sentence.line):
            if tag not in known:
                close = nearest(tag, known)
                hint = f"; did you mean {close!r}?" if close else ""
                raise InputError(
                    f"{path} line {line} has the tag {tag!r}, which is not among "
                    f"{', '.join(known)}{hint}"
                )


def _pieces(words: Iterator[str], encoder: Encoder) -> Ragged:
    """The ids of each word by itself.

    They are those that it has in a text: the tokenizer puts a space before each text except where
    its script writes none.
    """
    pieces = encode_all(words, encoder)
    if (pieces.lengths == 0).any():
        raise ValueError("the tokenizer gives no piece for a word")
    return pieces
