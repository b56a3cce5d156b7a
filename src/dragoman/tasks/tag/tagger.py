"""Tagging: from a text to the tags of its words and the spans that they form.

    tagger = dragoman.load("runs/conll2003")
    tagger.tag("Anna Moser lives in Basel.").spans
    tagger.tag(lines)
    tagger.tag_words([["Anna", "Moser", "lives", "in", "Basel", "."]])

A word is what white space and punctuation separate, in Chinese and Japanese each character; or, if
the model was trained so, any character. The most probable sequence of tags that forms spans is
chosen; a published tagger gives each word its most probable tag, and I- may begin a span.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import prod
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dragoman.data.tagged import OUTSIDE, find_spans, join_words
from dragoman.data.word_features import word_features
from dragoman.decode import Course, Request
from dragoman.errors import InputError
from dragoman.folder.format import Words
from dragoman.models.bio import best_tags
from dragoman.models.heads import TaggingHead
from dragoman.plain import Plain
from dragoman.tasks.answering import in_windows
from dragoman.tasks.encoders import TOKENS, EncoderReader, Row, read
from dragoman.tasks.lines import encode_each, is_blank, several

GAPS: Mapping[Words, str] = {"spaced": " ", "characters": ""}
"""What joins words into a text."""

_UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

_PATTERNS = {
    "spaced": re.compile(
        rf"[{_UNSPACED}]"
        r"|(?:[^\W\d_]\.){2,}"  # U.S.
        rf"|[^\W{_UNSPACED}]+(?:[.,'’\-/&][^\W{_UNSPACED}]+)*"  # 3.5, don't, twenty-one
        r"|[^\w\s]"
    ),
    "characters": re.compile(r"\S"),
}


@dataclass(frozen=True, slots=True)
class Word:
    """A word, which is `text[start:end]` of its text."""

    text: str
    start: int
    end: int


def split_words(text: str, words: Words) -> list[Word]:
    """Return the words of a text, in order; none contains white space."""
    return [Word(m.group(), m.start(), m.end()) for m in _PATTERNS[words].finditer(text)]


@dataclass(frozen=True, slots=True)
class TaggedWord(Word):
    """A word and its tag."""

    tag: str
    probability: float
    """The probability of this tag; 0 for a word that the tokenizer drops, which has "O"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedSpan:
    """A span of words, `text[start:end]` of their text."""

    label: str
    text: str
    start: int
    end: int
    words: tuple[int, int]
    """Its first word and the one after its last, counted from 0."""
    score: float
    """The geometric mean of its words' probabilities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagging(Plain):
    """The words of a text with their tags."""

    text: str
    """The text; given words are joined."""
    words: tuple[TaggedWord, ...]
    """All words, in order."""
    spans: tuple[TaggedSpan, ...]
    """The spans that they form, in order; none if tags are of single words."""
    flags: tuple[str, ...] = ()
    """What was unusual: "empty" (no word with a piece), "unreadable" (the tokenizer cannot encode
    the text, whose words are all O), "max_length" (the model read only a part of a word longer than
    its limit), "split" (a long text was read in parts)."""


Chosen = list[tuple[int, float]]
"""The number and the probability of the tag of each word."""


def check_words(sentences: Iterable[Any], before: int) -> None:
    """Raise an error for a sentence with an empty word, or with anything that is not a str."""
    for number, words in enumerate(sentences, start=before + 1):
        listed = isinstance(words, Iterable) and not isinstance(words, str | Iterator)
        if not listed or not all(isinstance(word, str) for word in words):
            raise TypeError(
                f"Sentence {number} is {words!r:.40}; give a list of words, each a str."
            )
        if not all(word.strip() for word in words):
            raise InputError(f"Sentence {number} has an empty word.")


class Tagger(EncoderReader[Tagging, Chosen]):
    """Texts, or words, to tags: an encoder with a head of tags, and its tokenizer."""

    head = TaggingHead

    @overload
    def tag(  # type: ignore[overload-overlap]  # a str is an iterable of str
        self, text: str, *, max_batch_tokens: int = TOKENS
    ) -> Tagging: ...

    @overload
    def tag(self, text: Iterable[str], *, max_batch_tokens: int = TOKENS) -> list[Tagging]: ...

    def tag(
        self, text: str | Iterable[str], *, max_batch_tokens: int = TOKENS
    ) -> Tagging | list[Tagging]:
        """Tag the words of a text, or of any number of them; results are in the same order.

        `max_batch_tokens`, padding included, affects only memory and speed.
        """
        return self.answers(text, max_batch_tokens)

    def tag_words(
        self, sentences: Iterable[Sequence[str]], *, max_batch_tokens: int = TOKENS
    ) -> list[Tagging]:
        """Tag words that are already split. Raises InputError if one is empty."""
        given = [*several(sentences)]
        check_words(given, 0)
        return [*self._submit_words(given, max_batch_tokens).in_order()]

    def stream_words(
        self,
        sentences: Iterable[Sequence[str]],
        *,
        max_batch_tokens: int = TOKENS,
        window: int = 4096,
    ) -> Iterator[Tagging]:
        """Tag an endless stream of sentences whose words are already split."""
        yield from in_windows(
            sentences,
            lambda taken: self._submit_words(taken, max_batch_tokens),
            window,
            check_words,
        )

    # ------------------------------------------------------------ words to tags

    def courses(self, texts: Sequence[str], options: int) -> list[Course[Row, Chosen, Tagging]]:
        """Return how the words of each text are tagged, in batches of at most this many tokens."""
        words = [[] if is_blank(one) else split_words(one, self.reading.words) for one in texts]
        return self._courses(texts, words, options)

    def _submit_words(
        self, sentences: Iterable[Sequence[str]], max_batch_tokens: int
    ) -> Request[Tagging]:
        texts, words_of = list[str](), list[list[Word]]()
        for words in sentences:
            text, places = join_words(words, GAPS[self.reading.words])
            texts.append(text)
            words_of.append([Word(text[start:end], start, end) for start, end in places])
        return self.scheduler.submit(self._courses(texts, words_of, max_batch_tokens))

    def _courses(
        self, texts: Sequence[str], words_of: list[list[Word]], budget: int
    ) -> list[Course[Row, Chosen, Tagging]]:
        places = [[(word.start, word.end) for word in words] for words in words_of]
        encoded = encode_each(
            lambda some: self.tokenizer.encode_words([t for t, _ in some], [at for _, at in some]),
            list(zip(texts, places, strict=True)),
        )
        columns = zip(texts, words_of, encoded, strict=True)
        return [self._course(*column, budget) for column in columns]

    def _course(
        self,
        text: str,
        words: list[Word],
        encoded: tuple[list[int], list[int | None]] | None,
        budget: int,
    ) -> Course[Row, Chosen, Tagging]:
        """Tag the words of a text, given its ids and where each word begins in them."""
        rows = _rows(*encoded, self.features_of(words), self.reading.max_tokens) if encoded else []
        found = yield read(rows, budget)
        ids, starts = encoded or ([], [None] * len(words))
        tagged = tuple(self._tagged(words, starts, chain.from_iterable(found)))
        flags = {
            "empty": not rows and encoded is not None,
            "unreadable": encoded is None,
            "max_length": sum(len(row.ids) for row in rows) < len(ids) and bool(rows),
            "split": len(rows) > 1,
        }
        return Tagging(
            text=text,
            words=tagged,
            spans=tuple(_spans(text, tagged)),
            flags=tuple(flag for flag, holds in flags.items() if holds),
        )

    def _found(self, ids_BL: Tensor, rows: Sequence[Row]) -> list[Chosen]:
        tagged_BL = torch.zeros(ids_BL.shape, dtype=torch.bool)
        for number, row in enumerate(rows):
            tagged_BL[number, [place + 1 for place in row.words]] = True  # after bos
        words_BLF = features_at(tagged_BL, [*chain.from_iterable(row.features for row in rows)])
        tagged_BL = tagged_BL.to(ids_BL.device)
        words_BLF = None if words_BLF is None else words_BLF.to(ids_BL.device)
        logits_BLC: Tensor = self._model(ids_BL, words_BLF=words_BLF).float()
        free = self.reading.inside_begins
        chosen_BL = logits_BLC.argmax(-1) if free else best_tags(logits_BLC, tagged_BL, self.labels)
        given_BL = logits_BLC.softmax(-1).gather(-1, chosen_BL[..., None])[..., 0]
        columns = zip(chosen_BL, given_BL, tagged_BL, strict=True)
        return [
            list(zip(chosen[tagged].tolist(), given[tagged].tolist(), strict=True))
            for chosen, given, tagged in columns
        ]

    def features_of(self, words: Sequence[Word]) -> list[tuple[int, ...]]:
        """Return the features of each word, as the model takes them; nothing if it takes none."""
        table = self._model.words
        rows = 0 if table is None else len(table.weight)
        return [word_features(word.text, rows) if rows else () for word in words]

    def _tagged(
        self, words: list[Word], starts: list[int | None], chosen: Iterator[tuple[int, float]]
    ) -> Iterator[TaggedWord]:
        """Yield the words with their tags; words that begin in one piece share a tag and span."""
        before, tag, probability = -1, OUTSIDE, 0.0
        for word, start in zip(words, starts, strict=True):
            if start is None:
                yield TaggedWord(word.text, word.start, word.end, OUTSIDE, 0.0)
                continue
            if start != before:
                number, probability = next(chosen)
                before, tag = start, self.labels[number]
            elif (inside := f"I-{tag[2:]}") in self.labels and tag.startswith("B-"):
                tag = inside
            yield TaggedWord(word.text, word.start, word.end, tag, probability)


def features_at(
    first_BL: Tensor, features: Sequence[Sequence[int]] | npt.NDArray[np.int64]
) -> Tensor | None:
    """Return the features of words at their first pieces; None if they have none."""
    features_MF = torch.as_tensor(features, dtype=torch.int64)
    if not features_MF.numel():
        return None
    words_BLF = torch.zeros(*first_BL.shape, features_MF.shape[1], dtype=torch.int64)
    words_BLF[first_BL] = features_MF
    return words_BLF


def _rows(
    ids: list[int], starts: list[int | None], features: Sequence[tuple[int, ...]], limit: int
) -> list[Row]:
    """Split a text between words into rows; a word longer than `limit` is truncated.

    If words begin in the same piece, the features of the first one count.
    """
    first = {s: f for s, f in zip(starts[::-1], features[::-1], strict=True) if s is not None}
    begins = sorted(first)
    rows: list[Row] = []
    bounds = [*begins, len(ids)] if begins[:1] == [0] else [0, *begins, len(ids)]
    for start, end in pairwise(bounds if begins else ()):
        kept = ids[start : min(end, start + limit)]
        if not rows or len(rows[-1].ids) + len(kept) > limit:
            rows.append(Row([]))
        if start >= begins[0]:
            rows[-1].words.append(len(rows[-1].ids))
            rows[-1].features.append(first[start])
        rows[-1].ids.extend(kept)
    return rows


def _spans(text: str, words: Sequence[TaggedWord]) -> Iterator[TaggedSpan]:
    """Yield the spans that the tags form; a span may continue in the next part."""
    for span in find_spans([word.tag for word in words])[0]:
        own = words[span.start : span.stop]
        yield TaggedSpan(
            label=span.type,
            text=text[own[0].start : own[-1].end],
            start=own[0].start,
            end=own[-1].end,
            words=(span.start, span.stop),
            score=prod(word.probability ** (1 / len(own)) for word in own),
        )
