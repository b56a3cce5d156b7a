"""The results of translating, generating and scoring."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, Protocol, Self, runtime_checkable

import torch
from torch import Tensor

from dragoman.errors import DragomanError
from dragoman.plain import Plain
from dragoman.tasks.lines import windows
from dragoman.text.judging import Outcome
from dragoman.text.spans import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """Which source tokens the model attended to when it wrote each target token.

    The weights are those of the decoder head that aligns words best, if the model folder names one,
    otherwise those of the last cross-attention, averaged over its heads. The end-of-sentence tokens
    take part and come last on both sides.
    """

    src_tokens: tuple[str, ...]
    """The S pieces of the source."""
    tgt_tokens: tuple[str, ...]
    """The T pieces of the translation."""
    weights_TS: Tensor
    """One row for each target token; each sums to 1."""
    src_spans: tuple[Span | None, ...] = ()
    """Where the text of each source token is in the line, in characters; None without text."""
    tgt_spans: tuple[Span | None, ...] = ()
    """Where the text of each target token is in the translation."""

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Alignment)
            and self._texts == other._texts
            and torch.equal(self.weights_TS, other.weights_TS)
        )

    def __hash__(self) -> int:
        return hash(self._texts)

    @property
    def _texts(self) -> tuple[object, ...]:
        return self.src_tokens, self.tgt_tokens, self.src_spans, self.tgt_spans

    @property
    def text_links(self) -> tuple[tuple[int, int, int, int], ...]:
        """(line start, line end, text start, text end) for each target token that has text.

        A link leads to the source text that the token attended to most, weighted against what other
        tokens attend to: each weight is divided by the square root of the source token's sum,
        without which punctuation would draw many links. Tokens that form one character together
        count as one.
        """
        drawn_S = self.weights_TS.sum(0).clamp(min=1e-9)
        weights_TS = self.weights_TS / drawn_S.sqrt()
        tgt_of_span = groupby(range(len(self.tgt_spans)), self.tgt_spans.__getitem__)
        read = [s for s, span in enumerate(self.src_spans) if span is not None]
        links = []
        for tgt_span, tokens in tgt_of_span:
            if tgt_span is not None and read:
                most = int(weights_TS[[*tokens]].sum(0)[read].argmax())
                src_span = self.src_spans[read[most]]
                links.append((*(src_span or ()), *tgt_span))
        return tuple(links)

    @property
    def links(self) -> tuple[tuple[int, int], ...]:
        """Pairs (source index, target index): the source token that each token attended to most.

        Ends of sentences are left out, and so are tokens that attended most to the end.
        """
        most = self.weights_TS.argmax(dim=1).tolist()
        end = len(self.src_tokens) - 1
        return tuple((s, t) for t, s in enumerate(most[:-1]) if s != end)

    def moved(self, in_line: Callable[[Span], Span], in_text: Callable[[Span], Span]) -> Self:
        """Return the alignment of another line and its translation, by the maps of spans."""
        return replace(
            self,
            src_spans=tuple(span and in_line(span) for span in self.src_spans),
            tgt_spans=tuple(span and in_text(span) for span in self.tgt_spans),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TermUse(Plain):
    """A glossary term in a line, and its outcome."""

    source: str
    """As written in the line."""
    target: str
    """What the translation should contain."""
    outcome: Outcome
    """"applied" (the target, or a form that the glossary has), "inflected" (another form of it, by
    the letters that both begin with) or "missed"."""


@dataclass(frozen=True, kw_only=True)
class Translation(Plain):
    """The translation of a line. `str(translation)` is its text, which never has a line break."""

    json_keys = (
        *("text", "score", "log_prob", "tokens", "token_log_probs", "flags", "sentences"),
        *("terms", "alternatives"),
    )

    text: str
    """The translation; empty for a line that has none, as `flags` say."""
    score: float = 0.0
    """`log_prob` normalised for length, which orders the n best unless `mbr` is used."""
    log_prob: float = 0.0
    """Natural logarithm of the probability that the model gives to this translation."""
    tokens: tuple[str, ...] = ()
    """Its pieces."""
    token_log_probs: tuple[float, ...] = ()
    """One for each piece, and one for each end of sentence that the model wrote."""
    flags: tuple[str, ...] = ()
    """What was unusual: "empty" (nothing to translate), "unreadable" (the tokenizer cannot encode
    the line), "split" (a sentence translated in parts), "several_sentences" (a line translated as
    one has fewer sentences than the source), "retried" (found by another search, after a degenerate
    one), "short" (less than a third of the tokens of the source), "broken_characters" (the model
    wrote bytes that are not a character, shown as U+FFFD), "loop" (it repeats itself), "max_length"
    (cut at the length limit), "no_output" (the model wrote nothing for a sentence, or for a part of
    it), "untranslated_forms" (plural forms and the like of a message were copied),
    "unknown_characters" (the source has some that the vocabulary lacks), "kept" (text that should
    have been copied was not), "terms_missed" (see `terms`), "terms_apart" (a term stands in a
    sentence that the source lacks), "numbers", "urls", "placeholders", "tags", "symbols" (those of
    source and translation differ), and "memory" (taken over from a translation memory)."""
    sentences: tuple[tuple[int, int, int, int], ...] = ()
    """Where each separately translated sentence begins and ends, in the line and in `text`:
    (line start, line end, text start, text end), in characters."""
    terms: tuple[TermUse, ...] = ()
    """The terms of the glossary that the line has, in order, and what became of each."""
    copied: tuple[tuple[int, int, int, int], ...] = ()
    """What was put into the text and not translated by the model: positions as in `sentences`."""
    alternatives: tuple["Translation", ...] = ()
    """The other n-best translations, best first."""

    def __str__(self) -> str:
        return self.text

    def aligned_by(self, align: "Align") -> Self:
        """Let `align` compute `alignments` when they are first asked for; return this result."""
        self.__dict__["_align"] = align
        return self

    def aligned_as(self, other: "Translation") -> Self:
        """Take `alignments` from another result; return this one."""
        return self.aligned_by(other.__dict__.get("_align", tuple))

    def each(self, change: "Callable[[Translation], Translation]") -> "Translation":
        """Return what a change makes of this result and of each of its alternatives."""
        changed = change(self)
        if not self.alternatives:
            return changed
        others = tuple(map(change, self.alternatives))
        return replace(changed, alternatives=others).aligned_as(changed)

    @property
    def alignments(self) -> tuple[Alignment, ...]:
        """One for each chunk that was translated: one for most lines, none for an empty one.

        The first call runs the model. Raises DragomanError if the result was pickled before that.
        """
        align: Align = self.__dict__.get("_align", tuple)
        found = align()
        self.__dict__["_align"] = partial(tuple, found)
        return found

    @property
    def text_links(self) -> tuple[tuple[int, int, int, int], ...]:
        """Which characters of the line each piece of the translation comes from.

        (line start, line end, text start, text end) for each token that has text, in the order of
        `text`, without white space at the ends: what the token attended to most; and what is
        `copied`. The first call runs the model, as `alignments` does.
        """
        links = (link for part in self.alignments for link in part.text_links)
        return tuple(sorted((*links, *self.copied), key=itemgetter(2)))

    def __getstate__(self) -> dict[str, Any]:
        """Return everything but the model, which `alignments` needs until they are computed."""
        align = self.__dict__.get("_align")
        if align in (None, tuple) or isinstance(align, partial):
            return self.__dict__
        return self.__dict__ | {"_align": _no_model}

    def linked(self) -> dict[str, list[Any]]:
        """Return the source tokens and links of all chunks, without ends of sentences, for JSON.

        A link is a pair (source index, target index) in these tokens and in `tokens`.
        """
        src_tokens: list[str] = []
        links: list[list[int]] = []
        written = 0
        for part in self.alignments:
            links += [[len(src_tokens) + s, written + t] for s, t in part.links]
            src_tokens += part.src_tokens[:-1]
            written += len(part.tgt_tokens) - 1
        return {"src_tokens": src_tokens, "alignment": links}

    def alignment(self) -> Alignment:
        """Return the alignment of the whole line: those of its chunks along the diagonal."""
        parts = self.alignments
        weights = [part.weights_TS for part in parts]
        return Alignment(
            src_tokens=tuple(token for part in parts for token in part.src_tokens),
            tgt_tokens=tuple(token for part in parts for token in part.tgt_tokens),
            weights_TS=torch.block_diag(*weights) if weights else torch.zeros(0, 0),
        )


Align = Callable[[], tuple[Alignment, ...]]
"""Computes the alignments of a translation."""


def _no_model() -> tuple[Alignment, ...]:
    raise DragomanError(
        "The translation was copied or pickled without its alignments, which need the model; read "
        "them before."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation(Plain):
    """A generated text. `str(generation)` is the text without the prompt."""

    json_keys = (
        *("prompt", "text", "stopped", "log_prob", "score", "tokens", "token_log_probs", "flags"),
    )

    prompt: str
    text: str
    """What was generated, without the prompt."""
    ids: tuple[int, ...] = ()
    """Its token ids, those of a stop string included."""
    tokens: tuple[str, ...] = ()
    """The same as pieces of text."""
    token_log_probs: tuple[float, ...] = ()
    """Log-probability of each token, and of the end of sequence if the model wrote it."""
    log_prob: float = 0.0
    """Their sum."""
    score: float = 0.0
    """The sum normalised for length, which orders a beam."""
    stopped: Literal["eos", "length", "stop"]
    """What ended the text: the model, the limit or a stop string."""
    flags: tuple[str, ...] = ()
    """What was unusual: "context_cut" (prompt and text are longer than what the model sees at once,
    so it no longer saw their beginning), "empty" (the prompt has no tokens to continue) and
    "unreadable" (the tokenizer cannot encode it): nothing was generated."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored(Plain):
    """The log-probability of a given text."""

    log_prob: float
    """Natural logarithm of its probability: the sum of `token_log_probs`."""
    score: float
    """`log_prob` normalised for length."""
    tokens: tuple[str, ...]
    """Its pieces, the end of sentence last."""
    token_log_probs: tuple[float, ...]
    """One for each piece."""
    flags: tuple[str, ...] = ()
    """What was unusual: "empty" (nothing is read before the text, or it has no tokens),
    "unreadable" (a tokenizer cannot encode one). If there is no token to score, the sum is 0."""


Ids = Sequence[int]


def score_each(
    pairs: Iterable[tuple[Ids | None, Ids | None]],
    score: Callable[[list[tuple[Ids, Ids]]], list[Scored]],
    *,
    least: int,
) -> list[Scored]:
    """Return the scores of pairs of ids with at least `least` each, and the flags of all, in order.

    Ids of None stand for a text that cannot be encoded.
    """
    pairs = list(pairs)
    read = {
        number: (first, second)
        for number, (first, second) in enumerate(pairs)
        if first is not None and second is not None and min(len(first), len(second)) >= least
    }
    found = dict(zip(read, score([*read.values()]), strict=True))
    nothing = Scored(log_prob=0.0, score=0.0, tokens=(), token_log_probs=())
    flags = (("unreadable",) if None in pair else () if all(pair) else ("empty",) for pair in pairs)
    return [replace(found.get(number, nothing), flags=each) for number, each in enumerate(flags)]


@runtime_checkable
class Scorer(Protocol):
    """An object that scores given texts: a translator, a generator, or what your own task loads."""

    def score(self, pairs: Iterable[tuple[str, str]]) -> list[Scored]:
        """Return the log-probability of the second text of each pair, given the first."""


def stream_scores(
    scorer: Scorer, pairs: Iterable[tuple[str, str]], window: int = 4096
) -> Iterator[Scored]:
    """Score an endless stream: pairs are taken in windows, so memory is bounded."""
    for taken in windows(pairs, window):
        yield from scorer.score(taken)
