"""Sentences with a tag for each word: read, converted to one scheme, tokenised.

A file has one word per line, its columns separated by blanks or tabs, and a blank line after each
sentence (the format of the CoNLL shared tasks; lines that begin with `-DOCSTART-` are not words).
In Chinese, characters are words. A span of type X over words is written

    IOB1    I-X for all words; B-X only if a span of the same type ends right before
    BIO     B-X for the first word, I-X for the others (IOB2)
    BIOES   S-X for a span of one word; else B-X, I-X (or M-X), and E-X for the last
            (BILOU writes U and L, BMESO writes M)

and O outside. Tjong Kim Sang and Veenstra (1999) compare them. Spans are returned as BIO. Real
files break their own rules; broken spans are read as `conlleval`, the script of the CoNLL shared
tasks, reads them, and counted.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import accumulate, chain, islice, pairwise
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from dragoman.data.dataset import Ragged, SpecialIds, TextDataset, fingerprint_of, gather
from dragoman.data.labelled import unknown_label
from dragoman.data.prepare import CHUNK, TextEncoder, id_type, special_ids
from dragoman.data.word_features import word_features
from dragoman.errors import InputError
from dragoman.files.reading import read_lines
from dragoman.wording import counted

Scheme = Literal["bio", "iob1", "bioes", "plain"]
"""`plain`: each tag belongs to a single word, such as parts of speech."""

OUTSIDE = "O"
_MEANING = {"B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S"}


@dataclass(frozen=True, slots=True)
class Span:
    """Words `start` to `stop - 1` of a sentence form one span of that type."""

    start: int
    stop: int
    type: str


def detect_scheme(sentences: Iterable[Sequence[str]]) -> Scheme:
    """Return the scheme that the tags of a whole file follow.

    Plain if no tag has a prefix; BIOES if any is E, S, L or U. With only B and I, the spans that do
    not follow one of their own type decide: IOB1 if most of them begin with I, BIO if with B.
    """
    letters: set[str | None] = set()
    begun = Counter[str | None]()
    for tags in sentences:
        before = OUTSIDE
        for tag in tags:
            letter, type_ = _parted(tag)
            letters.add(letter)
            begun[letter] += before == OUTSIDE or before[2:] != type_
            before = tag
    if None in letters and letters <= {OUTSIDE, None}:
        return "plain"
    if letters & {"E", "S"}:
        return "bioes"
    return "iob1" if begun["I"] > begun["B"] else "bio"


def find_spans(tags: Sequence[str], scheme: Scheme = "bio") -> tuple[list[Span], int]:
    """Return the spans of a sentence, and the number of tags that the scheme forbids there.

    A tag that continues a missing span begins it; a span without an end ends before the next tag
    that does not belong to it.
    """
    spans: list[Span] = []
    malformed = 0
    start, open_type = 0, None
    for i, tag in enumerate((*tags, OUTSIDE)):
        letter, type_ = _parted(tag)
        goes_on = letter in ("I", "E") and type_ == open_type
        if not goes_on and open_type is not None:
            spans.append(Span(start, i, open_type))
            malformed += scheme == "bioes"  # E is missing
            open_type = None
        if letter in (None, OUTSIDE):
            continue
        if not goes_on:
            start, open_type = i, type_
            parts = bool(spans) and (spans[-1].stop, spans[-1].type) == (i, type_)
            malformed += letter in ("I", "E") if scheme != "iob1" else letter == "B" and not parts
        if letter in ("E", "S") and open_type is not None:
            spans.append(Span(start, i + 1, open_type))
            open_type = None
    return spans, malformed


def to_bio(spans: Iterable[Span], length: int) -> list[str]:
    """Return the tags of a sentence of `length` words with these spans."""
    tags = [OUTSIDE] * length
    for span in spans:
        tags[span.start] = f"B-{span.type}"
        tags[span.start + 1 : span.stop] = [f"I-{span.type}"] * (span.stop - span.start - 1)
    return tags


def bio_labels(types: Iterable[str]) -> Iterator[str]:
    """Yield every tag that spans of these types can need, O first."""
    yield OUTSIDE
    for type_ in sorted(set(types)):
        yield f"B-{type_}"
        yield f"I-{type_}"


def _parted(tag: str) -> tuple[str | None, str]:
    """Return the meaning of the prefix (None if there is none) and the type."""
    if tag == OUTSIDE:
        return OUTSIDE, ""
    prefix, hyphen, type_ = tag.partition("-")
    return (_MEANING.get(prefix), type_) if hyphen and type_ else (None, tag)


# ---------------------------------------------------------------- files


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedLayout:
    """The columns of a file of tagged words."""

    word_column: int = 1
    """Column of the word, counted from 1, or from the end with -1."""
    tag_column: int = -1
    """Column of the tag, counted in the same way; -1 is the last."""
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
    """The words of a sentence and their tags as in the file."""

    words: list[str]
    tags: list[str]
    line: int
    """Line number of the first word."""


def read_tagged(path: Path, layout: TaggedLayout) -> Iterator[TaggedSentence]:
    """Yield the sentences of a file. Raises InputError with the line for a missing word or tag."""
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
                f"{path} line {number} has {counted(len(columns), 'column')} "
                f"(word in column {layout.word_column}, tag in {layout.tag_column}); separate them "
                "with blanks or tabs, or set word_column and tag_column."
            )
        sentence.words.append(columns[places[0]])
        sentence.tags.append(columns[places[1]])


def first_columns(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the words of each text, ended by a blank line: the first column of its lines."""
    words: list[str] = []
    for line in lines:
        if columns := line.split(maxsplit=1):
            words.append(columns[0])
        elif words:
            yield words
            words = []
    if words:
        yield words


class WordEncoder(TextEncoder, Protocol):
    """The interface of a tokenizer for tagged sentences."""

    def encode_words(
        self, texts: Sequence[str], words: Sequence[Sequence[tuple[int, int]]]
    ) -> list[tuple[list[int], list[int | None]]]:
        """Return the ids of each text, and the index in them of each word's first piece."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedDataset:
    """Words as piece ids, and their tags as numbers.

    Sentence s contains the words `sentences[s]` to `sentences[s + 1] - 1`.
    """

    name: str
    pieces: Ragged
    """The piece ids of each word; none for a word that shares its first piece with another."""
    tags: npt.NDArray[np.int64]
    """The number of each word's tag; shape (words,)."""
    features: npt.NDArray[np.int64]
    """Features of the look of each word; shape (words, features), or (words, 0)."""
    sentences: npt.NDArray[np.int64]
    """Index of the first word of each sentence, and finally the number of words."""
    labels: tuple[str, ...]
    """The tags by number: O, B-X, I-X, ... or, if plain, as in the file."""
    scheme: Scheme
    """The scheme of the file."""
    malformed: int
    """Number of tags that the scheme forbids at their position."""
    special: SpecialIds

    def __len__(self) -> int:
        return len(self.sentences) - 1

    @property
    def content_hash(self) -> str:
        """A hash of the ids, the sentences, the tags and their names."""
        arrays = (self.pieces.ids, self.pieces.offsets, self.sentences, self.tags)
        return fingerprint_of(self.labels, astuple(self.special), arrays=arrays)

    def by_sentence(self, tags: npt.NDArray[np.int64]) -> list[list[str]]:
        """Return the tag numbers of all words, its own or predicted ones, as names by sentence."""
        names = [self.labels[tag] for tag in tags.tolist()]
        return [names[start:stop] for start, stop in pairwise(self.sentences.tolist())]

    def take(self, rows: npt.NDArray[np.int64]) -> "TaggedDataset":
        """Return the sentences at these indices."""
        counts = np.diff(self.sentences)[rows]
        words = gather(np.arange(len(self.tags)), self.sentences[rows], counts)
        return replace(
            self,
            pieces=self.pieces.take(words.ids.astype(np.int64)),
            tags=self.tags[words.ids],
            features=self.features[words.ids],
            sentences=words.offsets,
        )

    def as_texts(self) -> TextDataset:
        """Return only the texts, to learn from them without labels."""
        return TextDataset(
            name=self.name,
            texts=Ragged(self.pieces.ids, self.pieces.offsets[self.sentences]),
            special=self.special,
            content_hash=self.content_hash,
        )

    def report(self, max_length: int) -> Iterator[str]:
        """Describe the dataset in sentences; those beyond `max_length` tokens are split."""
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
            cut = counted(longer, f"sentence {over} is", f"sentences {over} are")
            yield f"{self.name}: {cut} split."


def load_tagged(
    path: Path,
    layout: TaggedLayout,
    encoder: WordEncoder,
    labels: Sequence[str] = (),
    gap: str = " ",
    feature_rows: int = 0,
) -> TaggedDataset:
    """Read and tokenise a file; spans become BIO.

    The text of a sentence is its words joined by `gap`. Words get features for a table of
    `feature_rows` rows, if any. The tags are numbered in the order of `labels`, or with O first and
    types sorted. Raises InputError for a tag that is not among those given, and for anything that
    `read_tagged` rejects.
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
    for sentence, unified in zip(read, tags, strict=True):
        for line, tag in enumerate(unified, start=sentence.line):
            if tag not in numbers:
                raise unknown_label(f"{path} line {line}", "tag", tag, numbers)
    words = [*chain.from_iterable(s.words for s in read)]
    features = [word_features(word, feature_rows) if feature_rows else () for word in words]
    return TaggedDataset(
        name=str(path),
        pieces=_encode((s.words for s in read), encoder, gap),
        tags=np.array([numbers[tag] for tag in chain.from_iterable(tags)], dtype=np.int64),
        features=np.array(features, dtype=np.int64).reshape(len(words), -1),
        sentences=np.cumsum([0, *(len(s.words) for s in read)]),
        labels=ordered,
        scheme=scheme,
        malformed=malformed,
        special=special_ids(encoder),
    )


def _encode(sentences: Iterable[list[str]], encoder: WordEncoder, gap: str) -> Ragged:
    """Return the pieces of each word, up to the first piece of the next word with pieces."""
    sentences, parts = iter(sentences), list[Ragged]()
    while chunk := list(islice(sentences, CHUNK)):
        texts, words = zip(*(join_words(sentence, gap) for sentence in chunk), strict=True)
        for ids, starts in encoder.encode_words(texts, words):
            bounds = [len(ids)]
            for start, before in zip(starts[::-1], [*starts[-2::-1], None], strict=True):
                bounds.append(bounds[-1] if start is None or start == before else start)
            bounds[-1] = 0
            parts.append(Ragged(np.array(ids, id_type(encoder)), np.array(bounds[::-1])))
    return Ragged.concatenate(parts)


def join_words(words: Sequence[str], gap: str) -> tuple[str, list[tuple[int, int]]]:
    """Join words to one text; return it, and where each word begins and ends in it."""
    starts = accumulate((len(word) + len(gap) for word in words), initial=0)
    return gap.join(words), [(at, at + len(word)) for word, at in zip(words, starts, strict=False)]


def _unified(
    path: Path, sentences: Sequence[TaggedSentence], scheme: Scheme
) -> tuple[list[list[str]], int]:
    """Return each sentence's tags as BIO, or unchanged if plain, and the number malformed."""
    if scheme == "plain":
        return [sentence.tags for sentence in sentences], 0
    unified, malformed = [], 0
    for sentence in sentences:
        for line, tag in enumerate(sentence.tags, start=sentence.line):
            if _parted(tag)[0] is None:
                raise InputError(
                    f"{path} line {line} has the tag {tag!r}, neither O nor a prefix, a hyphen and "
                    'a type; correct it, or set scheme = "plain" where tags are of single words.'
                )
        spans, wrong = find_spans(sentence.tags, scheme)
        unified.append(to_bio(spans, len(sentence.tags)))
        malformed += wrong
    return unified, malformed
