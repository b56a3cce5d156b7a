"""Translation of a line: search, retry if something is wrong, and join the results.

A line has a course (`dragoman.decode.scheduler`), which continues as long as another search may
improve the result. If nothing is wrong with the first result, nothing more is computed.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, pairwise

from dragoman.decode import Hypothesis
from dragoman.decoding import Decoding
from dragoman.tasks.lines import LinePart, decode_line, joined, to_parts, trimmed
from dragoman.tasks.results import Alignment, TermUse, Translation
from dragoman.tasks.translate.fitting import (
    fitted,
    in_capitals,
    in_small_letters,
    is_in_capitals,
)
from dragoman.tasks.translate.ids import IdTranslator, Source
from dragoman.tasks.translate.line import Line, is_readable
from dragoman.tasks.translate.linking import Rendered, alignments_of, read_spans
from dragoman.tasks.translate.preserved import (
    PRESERVED,
    count_numbers,
    differences,
    forms,
    missing,
)
from dragoman.tasks.translate.removed import Shortened, unlearned, unseen, whole_words
from dragoman.tasks.translate.replacing import replaced
from dragoman.tasks.translate.retries import (
    SEVERITIES,
    Found,
    Searching,
    quality_flags,
    search_and_retry,
    severity,
)
from dragoman.tasks.translate.rewriting import Placed, words_copied
from dragoman.tasks.translate.terms import (
    changed,
    is_apart,
    is_plain_search,
    sources_of,
    used,
    wanted_of,
)
from dragoman.text.sentences import sentences_of
from dragoman.text.spans import Span, places_in
from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class LineTranslator:
    """Translates lines with one model and fixed options."""

    ids: IdTranslator
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    options: Decoding
    """Options for ids: without words."""
    placeholders: bool = False
    """Whether the model has learned placeholders (`Placed`)."""

    def parts_of(self, texts: Sequence[str]) -> list[list[LinePart] | None]:
        """Split each text into sentences, and each sentence into chunks that fit the model."""
        limit = self.ids.longest_source(self.options.max_src_tokens)
        split = self.options.split_sentences is not False
        return to_parts(texts, self.src_tokenizer, limit, split=split)

    def course(self, line: Line) -> Searching[Translation]:
        """Translate, and report the outcome of the line's terms and kept text."""
        found = yield from self._found(line)
        return found.each(partial(_judged, line))

    def _found(self, line: Line) -> Searching[Translation]:
        """Translate, unless a memory has the line, it is a single term, or all of it is copied.

        A line in capitals, which models have rarely seen, is translated in sentence case.
        """
        if not line.parts:
            return self._result(line.text, line.parts, [])
        if line.known is not None:
            return self._known(line.text, line.known, "memory")
        if (term := line.whole_term()) is not None:
            return self._known(line.text, term)
        retry = self.options.retry
        if retry and not (line.prefix or is_readable(line.rest) or line.terms):
            return _untranslated(line)
        if not (retry and is_in_capitals(line)):
            return (yield from self._placed(line))
        found = yield from self._placed(self._reread(line, in_small_letters(line)))
        return found.each(partial(in_capitals, kept=line.texts_of(line.kept)))

    def _reread(self, line: Line, text: str) -> Line:
        """Return `line` with another text for the model to read."""
        (parts,) = self.parts_of([text])
        return replace(line, text=text, parts=parts)

    def _placed(self, line: Line) -> Searching[Translation]:
        """Translate, with placeholders from the vocabulary if the model has learned them.

        If one does not appear exactly once in the translation, the line is translated without them.
        """
        if not self.placeholders:
            return (yield from self._retried(line))
        placed = Placed(line.text) if line.prefix else Placed.of(line.text, line.kept)
        inner = line
        if placed.spans:
            inner = self._reread(replace(line, kept=(), placed=placed.places), placed.text)
        found = yield from self._retried(inner)
        if _not_once(inner, found.text) and (self.options.retry or line.kept):
            return (yield from self._retried(line))
        return found.each(placed.restored)

    def _retried(self, line: Line) -> Searching[Translation]:
        """Translate, and translate again if text that should be copied was not.

        This text is forced. If that fails, it is removed and then reinserted, as is done from the
        start with characters that the vocabulary lacks, invisible characters, and the number of an
        item. The first translation stays unless a retry keeps more and is otherwise not worse.
        """
        retry = self.options.retry
        out = [*self._unknown(line), *unseen(line.text), *line.sign] if retry else []
        best = yield from self._attempt(line, out)
        forced = missed = self._missed(line, best.text) if retry else []
        rungs = [(out, missed), ([*out, *missed], [])]
        if {*missed} <= {*line.kept} or not is_plain_search(self.options):
            del rungs[0]  # they were forced already, or cannot be
        for without, again in rungs:
            if not missed:
                break
            other = yield from self._attempt(line, without, again)
            still = self._missed(line, other.text)
            is_better = len(still) < len(missed) and severity(other.flags) <= severity(best.flags)
            if is_better and not _adds_number(line.text, best.text, other.text):
                best, missed = other.each(partial(_flagged, flags=["retried"])), still
        if self.options.terms == "replace":
            kept, begun = line.texts_of(line.kept), len(self.tgt_tokenizer.decode(line.prefix))
            best = best.each(partial(replaced, found=line.free_terms, begun=begun, kept=kept))
        return best.each(partial(fitted, line=line, forced=forced)) if retry else best

    def _unknown(self, line: Line) -> list[Span]:
        """Return the spans of words with characters that the vocabulary lacks, except terms.

        The translations of terms are known.
        """
        tokenizer = self.src_tokenizer
        strange = {tokenizer.unk_id, *tokenizer.byte_ids}
        found: dict[bool, list[Span]] = {False: [], True: []}
        for part in line.parts or ():
            if any(strange.intersection(chunk.ids) for chunk in part.chunks):
                texts = [chunk.text for chunk in part.chunks]
                spans_of = read_spans(line.text, part.start, texts, tokenizer)
                ids = chain(*(chunk.ids for chunk in part.chunks))
                for id_, piece in zip(ids, chain(*spans_of), strict=True):
                    if id_ in strange and piece is not None:
                        found[id_ == tokenizer.unk_id].append(piece)
        if not any(found.values()):
            return []
        spelt, known = unlearned(line.text, found[False]), line.term_places
        words = [*whole_words(line.text, [*found[True], *spelt])]
        words = [word for word in words if known.isdisjoint(range(*word))]
        strange_places, copied = places_in(words), places_in(line.copied)
        whole = [span for span in line.copied if not strange_places.isdisjoint(range(*span))]
        return [*whole, *(word for word in words if copied.isdisjoint(range(*word)))]

    def _missed(self, line: Line, translation: str) -> list[Span]:
        """Return the spans that should appear unchanged in the translation and do not.

        Spans of placeholders that do not appear there exactly once are included.
        """
        lost = missing(line.text, translation)
        known = line.term_places if lost else set()
        lost = [span for span in lost if known.isdisjoint(range(*span))]
        lost += _not_once(line, translation)
        return sorted({*lost, *changed(line.text, line.kept, translation)})

    def _attempt(
        self, line: Line, out: Sequence[Span], forced: Sequence[Span] = ()
    ) -> Searching[Translation]:
        """Translate without the spans `out`, which are put back after, and with `forced` copied."""
        left = Shortened(line.text, out)
        if not out or (line.prefix and not is_readable(left.text)):
            return (yield from self._translated(line, [*line.kept, *forced]))
        if not is_readable(left.text):
            return _untranslated(line)
        found = yield from self._translated(
            self._reread(line, left.text), left.moved([*line.kept, *forced])
        )
        return found.each(left.restored)

    def _translated(self, line: Line, copied: Sequence[Span]) -> Searching[Translation]:
        ids, terms = self.ids, line.terms
        if terms and self.options.terms == "replace":
            ids, terms = replace(ids, aligns=True), []
        src, tgt = self.src_tokenizer, self.tgt_tokenizer
        wanted = wanted_of(line.text, terms, copied, tgt)
        sources = [
            source
            for part in line.parts or ()
            for source in sources_of(line.text, part.start, part.chunks, wanted, src)
        ]
        if sources:
            sources[0] = replace(sources[0], prefix=line.prefix)
        search = partial(self._search, ids)
        found = yield from search_and_retry(search, sources, self.options, src, tgt)
        return self._result(line.text, line.parts, found)

    def _search(
        self, ids: IdTranslator, sources: Sequence[Source], options: Decoding
    ) -> Searching[list[list[Hypothesis]]]:
        """Return the n best of each source, from beam or samples, by score or by least risk.

        Equal sources are searched once.
        """
        drawn = [replace(src, draw=n) for src in sources for n in range(options.draws)]
        found: dict[Hashable, list[Hypothesis]] = {}
        for constrained in (False, True):
            some = {src.key: src for src in drawn if bool(src.terms) == constrained}
            found |= zip(some, (yield ids.searched([*some.values()], options)), strict=True)
        in_order = (found[src.key] for src in drawn)
        n_bests = [[*chain(*islice(in_order, options.draws))] for _ in sources]
        if options.draws > 1:
            n_bests = [sorted(best, key=lambda one: one.score, reverse=True) for best in n_bests]
        if options.mbr:
            from dragoman.tasks.translate.risk import least_risk  # sacreBLEU is slow to import

            for best in n_bests:
                order = least_risk([self.tgt_tokenizer.decode(one.ids) for one in best])
                best[:] = [best[n] for n in order[: options.n_best]]
        return n_bests

    def _result(self, line: str, parts: list[LinePart] | None, found: list[Found]) -> Translation:
        """Build a line's translation from the results for the chunks of its parts.

        The n-th best of a line consists of the n-th best of its chunks (the last one if a chunk has
        fewer). Their scores and log-probabilities are summed.
        """
        if not parts:
            return Translation(text="", flags=("unreadable" if parts is None else "empty",))
        count = max(len(best) for each in found for best in each.n_best)
        first, *others = (self._nth(n, line, parts, found) for n in range(count))
        return replace(first, alternatives=tuple(others)).aligned_as(first)

    def _nth(self, n: int, line: str, parts: list[LinePart], found: list[Found]) -> Translation:
        nth = (each.nth(n) for each in found)
        pairs_of = [[*chain(*islice(nth, len(part.chunks)))] for part in parts]
        sources, chosen = zip(*chain(*pairs_of), strict=True)
        tokenizer = self.tgt_tokenizer
        texts_of = [[decode_line(tokenizer, best.ids) for _, best in pairs] for pairs in pairs_of]
        between = [line[before.end : part.start] for before, part in pairwise(parts)]
        text, places = joined([joined(texts)[0] for texts in texts_of], between)
        given = sum(len(sentences_of(line[part.start : part.end])) for part in parts)
        texts = chain(*texts_of)
        quality = differences(line, text).union(*map(quality_flags, sources, chosen, texts))
        flags = {
            "split": len(sources) > len(parts),
            "several_sentences": len(parts) < given > len(sentences_of(text)),
            "retried": any(each.retried for each in found),
            "unknown_characters": any(self.src_tokenizer.unk_id in src.ids for src in sources),
        } | {flag: flag in quality for flag in (*SEVERITIES, *PRESERVED)}
        rendered = [
            Rendered(part.start, place, pairs)
            for part, place, pairs in zip(parts, places, pairs_of, strict=True)
        ]
        return Translation(
            text=text,
            score=sum(hypothesis.score for hypothesis in chosen),
            log_prob=sum(hypothesis.log_prob for hypothesis in chosen),
            tokens=tuple(chain(*(tokenizer.tokens(h.ids) for h in chosen))),
            token_log_probs=tuple(chain(*(h.token_log_probs for h in chosen))),
            flags=tuple(flag for flag, holds in flags.items() if holds),
            sentences=tuple(
                (part.start, part.end, *place) for part, place in zip(parts, places, strict=True)
            ),
        ).aligned_by(lambda: self._align(line, text, rendered))

    def _known(self, line: str, text: str, *flags: str) -> Translation:
        """Return a translation that the model did not write, aligned by the model's attention."""
        read, written = trimmed(line, self.src_tokenizer), trimmed(text, self.tgt_tokenizer)
        source = Source(self.src_tokenizer.encode(read), text=read)
        ids = tuple(self.tgt_tokenizer.encode(written))
        most = self.ids.longest_target or len(ids)
        longest = self.ids.longest_source(self.options.max_src_tokens)
        found = Hypothesis(ids=ids, score=0.0, log_prob=0.0, token_log_probs=(), stopped="eos")
        is_read = len(source) <= longest and len(ids) <= most
        rendered = [Rendered(0, (0, len(text)), [(source, found)])] * is_read
        tokens = tuple(self.tgt_tokenizer.tokens(ids))
        result = Translation(text=text, tokens=tokens, flags=flags)
        return result.aligned_by(lambda: self._align(line, text, rendered))

    def _align(self, line: str, text: str, rendered: list[Rendered]) -> tuple[Alignment, ...]:
        tokenizers = self.src_tokenizer, self.tgt_tokenizer
        return tuple(alignments_of(line, text, rendered, tokenizers, self.ids.aligned))


def _not_once(line: Line, translation: str) -> list[Span]:
    return [span for span in line.placed if translation.count(line.text[slice(*span)]) != 1]


def _judged(line: Line, translation: Translation) -> Translation:
    """Return the translation with the outcome of the line's terms and kept text."""
    text = translation.text
    terms = used(line.terms, text)
    flags = {
        "kept": bool(changed(line.text, line.kept, text)),
        "untranslated_forms": any(form in text for form in forms(line.text)),
        "terms_missed": any(term.outcome == "missed" for term in terms),
        "terms_apart": is_apart(line.terms, line.text, text),
    }
    return _flagged(translation, [flag for flag, holds in flags.items() if holds], terms)


def _flagged(
    translation: Translation, flags: Sequence[str], terms: tuple[TermUse, ...] = ()
) -> Translation:
    """Return the translation with more flags, and the outcome of its terms if any."""
    every = tuple(dict.fromkeys([*translation.flags, *flags]))
    flagged = replace(translation, flags=every, terms=terms or translation.terms)
    return flagged.aligned_as(translation)


def _untranslated(line: Line) -> Translation:
    """Return a line of which the model can read nothing as its own translation."""
    text = line.text.strip()
    start = line.text.find(text)
    return Translation(
        text=text,
        flags=("unknown_characters",) if any(map(str.isalpha, line.rest)) else (),
        sentences=((start, start + len(text), 0, len(text)),),
        copied=tuple(words_copied(text, start, 0)),
    )


def _adds_number(line: str, before: str, after: str) -> bool:
    """Return whether the right number only stands next to the wrong one, which hides the error."""
    most = max(map(count_numbers, (line, before)))
    return count_numbers(after) > most and "numbers" in differences(line, before)
