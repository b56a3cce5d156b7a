"""Tagging: a text in, the tags of its words and the spans that they form out.

    tagger = dragoman.load("runs/conll2003")
    tagger.tag("Anna Moser lives in Basel.").spans
    tagger.tag(lines)
    tagger.tag_words([["Anna", "Moser", "lives", "in", "Basel", "."]])

A word is what white space and punctuation part, in Chinese and Japanese each character; or, if the
model was trained so, any character. Of all rows of tags, the most probable that forms spans is
chosen. The tags of a text do not depend on the texts beside it: in fp32 on a CPU they and their
probabilities are the same bit for bit for any batch size and any order.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from math import prod
from typing import overload

import torch
from torch import Tensor

from dragoman.data.tagged import find_spans
from dragoman.errors import InputError
from dragoman.models.bio import best_tags
from dragoman.models.defaults import Words
from dragoman.models.heads import TaggingHead
from dragoman.plain import Plain
from dragoman.tasks.encoders import EncoderReader
from dragoman.tasks.lines import as_texts, windows

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
    """The words of a text, in order; white space is in none."""
    return [Word(m.group(), m.start(), m.end()) for m in _PATTERNS[words].finditer(text)]


def join_words(words: Sequence[str], kind: Words) -> tuple[str, list[Word]]:
    """Join words to one text, with spaces where words are spaced."""
    gap = " " if kind == "spaced" else ""
    starts = accumulate((len(word) + len(gap) for word in words), initial=0)
    found = [Word(word, at, at + len(word)) for word, at in zip(words, starts, strict=False)]
    return gap.join(words), found


@dataclass(frozen=True, slots=True)
class TaggedWord(Word):
    """A word and its tag."""

    tag: str
    probability: float
    """What the model gives to this tag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedSpan:
    """Words that are one thing, which is `text[start:end]` of their text."""

    label: str
    text: str
    start: int
    end: int
    words: tuple[int, int]
    """Its first word and the one behind its last, counted from 0."""
    score: float
    """The geometric mean of its words' probabilities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagging(Plain):
    """The words of a text with their tags."""

    text: str
    """The text; words that were given as such, joined."""
    words: tuple[TaggedWord, ...]
    """All words, in order."""
    spans: tuple[TaggedSpan, ...]
    """What they form, in order; none where tags stand for single words."""
    flags: tuple[str, ...] = ()
    """What was unusual: "empty" (no word), "split" (a long text was read in parts)."""


class Tagger(EncoderReader):
    """Texts, or words, to tags: an encoder with a head of tags, and its tokenizer."""

    head = TaggingHead

    @overload
    def tag(  # type: ignore[overload-overlap]  # a str is an iterable of str
        self, text: str, *, max_batch_tokens: int = 8192
    ) -> Tagging: ...

    @overload
    def tag(self, text: Iterable[str], *, max_batch_tokens: int = 8192) -> list[Tagging]: ...

    def tag(
        self, text: str | Iterable[str], *, max_batch_tokens: int = 8192
    ) -> Tagging | list[Tagging]:
        """Tag the words of a text, or of any number of them: as many results, in their order.

        `max_batch_tokens`, padding included, is a matter of memory and speed alone.
        """
        texts = as_texts(text)
        words = [split_words(one, self.reading.words) for one in texts]
        found = self._tag(texts, words, max_batch_tokens)
        return found[0] if isinstance(text, str) else found

    def tag_words(
        self, sentences: Iterable[Sequence[str]], *, max_batch_tokens: int = 8192
    ) -> list[Tagging]:
        """Tag words that are parted already. Raises InputError where one is empty."""
        joined = [join_words(words, self.reading.words) for words in sentences]
        for number, (_, words) in enumerate(joined, start=1):
            if not all(word.text.strip() for word in words):
                raise InputError(f"Sentence {number} has an empty word.")
        texts = [text for text, _ in joined]
        return self._tag(texts, [words for _, words in joined], max_batch_tokens)

    def stream(
        self, lines: Iterable[str], *, max_batch_tokens: int = 8192, window: int = 4096
    ) -> Iterator[Tagging]:
        """Tag without end: lines are taken in windows, so memory is bounded."""
        for taken in windows(lines, window):
            yield from self.tag(taken, max_batch_tokens=max_batch_tokens)

    def stream_words(
        self,
        sentences: Iterable[Sequence[str]],
        *,
        max_batch_tokens: int = 8192,
        window: int = 4096,
    ) -> Iterator[Tagging]:
        """The same for words that are parted already."""
        for taken in windows(sentences, window):
            yield from self.tag_words(taken, max_batch_tokens=max_batch_tokens)

    # ------------------------------------------------------------ words to tags

    def _tag(
        self, texts: list[str], words_of: list[list[Word]], max_batch_tokens: int
    ) -> list[Tagging]:
        parts_of = [self._parts([word.text for word in words]) for words in words_of]
        parts = [part for parts in parts_of for part in parts]

        def answer(logits_BLC: Tensor, batch: list[int]) -> list[list[tuple[int, float]]]:
            return self._choose(logits_BLC, [parts[index] for index in batch])

        rows = [[id_ for word in part for id_ in word] for part in parts]
        found = iter(self._read(rows, answer, max_batch_tokens))
        return [
            self._result(text, words, list(islice(found, len(parts))))
            for text, words, parts in zip(texts, words_of, parts_of, strict=True)
        ]

    def _parts(self, words: list[str]) -> list[list[list[int]]]:
        """The ids of each word, in parts of at most `max_tokens`; a longer word is cut."""
        parts: list[list[list[int]]] = []
        room = 0
        for ids in self.tokenizer.encode_batch(words):
            kept = ids[: self.reading.max_tokens]
            if len(kept) > room:
                parts.append([])
                room = self.reading.max_tokens
            parts[-1].append(kept)
            room -= len(kept)
        return parts

    def _choose(
        self, logits_BLC: Tensor, parts: list[list[list[int]]]
    ) -> list[list[tuple[int, float]]]:
        """The tag of each word of each part, and its probability."""
        tagged_BL = torch.zeros(logits_BLC.shape[:2], dtype=torch.bool)
        for row, part in enumerate(parts):
            place = 1  # behind bos
            for ids in part:
                tagged_BL[row, place] = True
                place += len(ids)
        tagged_BL = tagged_BL.to(logits_BLC.device)
        chosen_BL = best_tags(logits_BLC, tagged_BL, self.labels)
        given_BL = logits_BLC.softmax(-1).gather(-1, chosen_BL[..., None])[..., 0]
        columns = zip(chosen_BL, given_BL, tagged_BL, strict=True)
        return [
            list(zip(chosen[tagged].tolist(), given[tagged].tolist(), strict=True))
            for chosen, given, tagged in columns
        ]

    def _result(
        self, text: str, words: list[Word], found: list[list[tuple[int, float]]]
    ) -> Tagging:
        chosen = (one for part in found for one in part)
        tagged = tuple(
            TaggedWord(word.text, word.start, word.end, self.labels[number], probability)
            for word, (number, probability) in zip(words, chosen, strict=True)
        )
        flags = {"empty": not words, "split": len(found) > 1}
        return Tagging(
            text=text,
            words=tagged,
            spans=tuple(_spans(text, tagged)),
            flags=tuple(flag for flag, holds in flags.items() if holds),
        )


def _spans(text: str, words: Sequence[TaggedWord]) -> Iterator[TaggedSpan]:
    """What the tags form: a tag goes on with a span of its type, also from part to part."""
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
