"""Translation: lines in, lines out.

    translator = dragoman.load("runs/en-zh")
    translator.translate("I like tea.").text
    translator.translate(lines, beam_size=4, n_best=2)

The steps for a line (`course`): sentences, chunks of their ids (`lines`), batches of similar length
within a budget of tokens (`dragoman.decode.scheduler`), search (`ids`), another search if the first
one failed (`retries`), and text in its place.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, partial
from itertools import chain, islice, repeat
from typing import Any, Self, overload

from dragoman.decode import Course, Head, Hypothesis, Request, Scheduler, Strategy
from dragoman.decode.shortlist import Shortlist
from dragoman.decoding import TRANSLATING, Decoding, merged
from dragoman.errors import InputError
from dragoman.folder.opening import ModelFolder
from dragoman.models import EncoderDecoder
from dragoman.nn import Arithmetic
from dragoman.tasks.answering import Answering, in_windows
from dragoman.tasks.folders import check_vocabulary
from dragoman.tasks.held import Held
from dragoman.tasks.lines import as_pairs, as_texts, encode_each, encode_prefixes, several, trimmed
from dragoman.tasks.options import check_sampling, processors_of
from dragoman.tasks.results import Scored, Translation, score_each
from dragoman.tasks.translate.course import LineTranslator
from dragoman.tasks.translate.ids import Ids, IdTranslator, Source, Specials, run
from dragoman.tasks.translate.languages import Languages, languages_of
from dragoman.tasks.translate.line import Kept, Line, remembered
from dragoman.tasks.translate.shortlist import load_shortlist
from dragoman.tasks.translate.terms import check_kept, check_plain_search, edges_of
from dragoman.text.glossary import Glossary
from dragoman.text.placeholders import placeholder_ids
from dragoman.text.tokenizer import Tokenizer

LONGEST_PAIR = 8192
"""Maximum number of tokens of a pair in scoring, which cannot split; more need too much memory."""


class Translator(Answering[Decoding, Translation]):
    """A model and its tokenizers: text to text.

    On a CPU it decodes with the weights that the model had when the translator was created; after
    training, create another one. `options` are the defaults of a call.
    """

    def __init__(  # noqa: PLR0913 -- all that a folder has
        self,
        model: EncoderDecoder | Held[EncoderDecoder],
        src_tokenizer: Tokenizer,
        tgt_tokenizer: Tokenizer,
        *,
        decoding: Decoding | None = None,
        precision: Arithmetic = "fp32",
        shortlist: Callable[[], Shortlist] | None = None,
        languages: Languages | None = None,
        alignment: Sequence[int] | None = None,
    ) -> None:
        """`shortlist` returns the shortlist for the option of that name."""
        held = Held.of(model, precision) if isinstance(model, EncoderDecoder) else model
        check_vocabulary("source", src_tokenizer, held.shape.src_embedding.weight)
        check_vocabulary("target", tgt_tokenizer, held.shape.output.weight)
        self._languages = languages or Languages(src_tokenizer=src_tokenizer)
        self.src_tokenizer = self._languages.reads
        self.tgt_tokenizer = tgt_tokenizer
        tgt = tgt_tokenizer
        unused = range(tgt.vocab_size, len(held.shape.output.weight))
        specials = Specials(
            src_pad_id=src_tokenizer.pad_id,
            src_frame=src_tokenizer.frame(),
            pad_id=tgt.pad_id,
            bos_id=tgt.bos_id,
            eos_id=tgt.eos_id,
            forbidden=(tgt.pad_id, tgt.unk_id, tgt.bos_id, *unused),
        )
        specials = self._languages.specials(specials)
        self.options = merged(*self._languages.layers(decoding or Decoding()), TRANSLATING)
        self._placeholders = all(map(placeholder_ids, (src_tokenizer, tgt_tokenizer)))
        self.memory: Mapping[str, str] = {}
        edges = cache(partial(edges_of, tgt, len(held.shape.output.weight)))
        self._processors = processors_of(tgt)
        head = Head(*alignment or ())
        self._ids = IdTranslator(held, specials, shortlist, head, edges)
        self.scheduler = Scheduler[Any, Any](run, held.lanes)

    @classmethod
    def of(cls, folder: ModelFolder, precision: Arithmetic = "fp32") -> Self:
        """Create a translator from a folder. Raises InputError unless its model translates."""
        return cls(
            Held.read(folder, EncoderDecoder, precision),
            *folder.tokenizers,
            decoding=folder.config.decoding,
            shortlist=cache(partial(load_shortlist, folder.path, folder.tokenizers)),
            languages=languages_of(folder),
            alignment=folder.config.alignment,
        )

    @property
    def specials(self) -> Specials:
        """The ids around sources and targets for the chosen languages."""
        return self._ids.specials

    @property
    def is_multilingual(self) -> bool:
        """Whether `between` can choose languages."""
        return bool(self._languages.known)

    def between(self, src_lang: str | None = None, tgt_lang: str | None = None) -> Self:
        """Return a translator of the same model, from one language to another.

        Codes may be written in any usual form (`zh`, `zh-CN`, `zho_Hans`). Raises InputError, with
        the nearest code, for a language that the model does not have; whether it needs one that is
        not given is checked by what translates or scores. Nothing changes if both are None, or are
        the two languages of a model of one pair.
        """
        if src_lang is None and tgt_lang is None:
            return self
        languages = self._languages.between(*self._languages.meant(src_lang, tgt_lang))
        if languages is self._languages:  # those of a model of one pair
            return self
        bound, specials = copy(self), languages.specials(self.specials)
        bound._languages, bound.src_tokenizer = languages, languages.reads  # noqa: SLF001 -- the same class
        bound._ids = replace(self._ids, specials=specials)  # noqa: SLF001
        return bound

    def remembering(self, memory: Mapping[str, str]) -> Self:
        """Return a translator that reuses the translations of lines in a memory.

        They are copied letter for letter except for white space, and have the flag "memory". A line
        with a prefix is translated.
        """
        if not hasattr(memory, "get"):
            raise TypeError(f"The memory is {memory!r:.40}; give a mapping of lines.")
        other = copy(self)
        other.memory = memory
        return other

    def aligning(self) -> Self:
        """Return a translator that aligns while it translates, without another pass."""
        other = copy(self)
        other._ids = replace(self._ids, aligns=True)  # noqa: SLF001 -- the same class
        return other

    def ensemble(self, *others: "Translator") -> Self:
        """Return a translator that decodes by the mean of the probabilities of all these models.

        Options and alignments are those of this one. Raises InputError unless all have the same
        tokenizers and the same number of rows for them, and are on the same device.
        """
        own = self._ids
        for number, other in enumerate(others, start=2):
            if _hashes(self) != _hashes(other) or self.specials != other.specials:
                raise InputError(
                    f"Model {number} of the ensemble has another vocabulary than the first; only "
                    "models with the same tokenizers can decode together (train one with "
                    "tokenizer.path)."
                )
            if own.model.device != (device := other._ids.model.device):  # noqa: SLF001
                raise InputError(
                    f"Model {number} of the ensemble is on {device}, the first on "
                    f"{own.model.device}; load all on one device."
                )
        joined, theirs = copy(self), [each._ids.models for each in others]  # noqa: SLF001
        joined._ids = replace(own, others=(*own.others, *chain(*theirs)))  # noqa: SLF001
        joined.scheduler = Scheduler(run, own.model.lanes)
        return joined

    @overload
    def translate(  # type: ignore[overload-overlap]  # a str is an iterable of str
        self,
        text: str,
        *,
        prefix: str | None = None,
        glossary: Glossary | Mapping[str, str] | None = None,
        kept: Kept | None = None,
        beam_size: int | None = None,
        n_best: int | None = None,
        length_penalty: float | None = None,
        max_batch_tokens: int | None = None,
        options: Decoding | None = None,
    ) -> Translation: ...

    @overload
    def translate(
        self,
        text: Iterable[str],
        *,
        prefix: Iterable[str] | None = None,
        glossary: Glossary | Mapping[str, str] | None = None,
        kept: Iterable[Kept] | None = None,
        beam_size: int | None = None,
        n_best: int | None = None,
        length_penalty: float | None = None,
        max_batch_tokens: int | None = None,
        options: Decoding | None = None,
    ) -> list[Translation]: ...

    def translate(  # noqa: PLR0913 -- what differs from call to call has a name
        self,
        text: str | Iterable[str],
        *,
        prefix: str | Iterable[str] | None = None,
        glossary: Glossary | Mapping[str, str] | None = None,
        kept: Any = None,
        beam_size: int | None = None,
        n_best: int | None = None,
        length_penalty: float | None = None,
        max_batch_tokens: int | None = None,
        options: Decoding | None = None,
    ) -> Translation | list[Translation]:
        """Translate a line, or any number of lines: one result for each, in order.

        Keyword arguments take precedence over `options`, and these over `self.options`. An empty
        line stays empty; a line of more than `max_src_tokens`, or of more than the model has
        learned positions for, is translated in chunks. `prefix` is the beginning of the translation
        of the line (of its first sentence, if it is split), one for each line; an empty one forces
        nothing. Scores are those of the rest, given the prefix. `terms` of a result contains the
        outcome of each term of the `glossary`, which may be a mapping from sources to targets.
        `kept` contains the spans (start, end) of the line, in characters, whose text is copied
        letter for letter; a list of them for each line.
        """
        given = {"beam_size": beam_size, "n_best": n_best, "length_penalty": length_penalty}
        given |= {"max_batch_tokens": max_batch_tokens}
        chosen = merged(Decoding.of(given), options or Decoding(), self.options)
        begun = None if prefix is None else as_texts(prefix)
        alone = isinstance(text, str)
        places = [kept] if alone and kept is not None else kept
        lines = as_texts(text)
        request = self.submit(lines, chosen, prefixes=begun, glossary=glossary, kept=places)
        found = [*request.in_order()]
        return found[0] if alone else found

    def submit(
        self,
        texts: Iterable[str],
        options: Decoding | None = None,
        *,
        prefixes: Iterable[str] | None = None,
        glossary: Glossary | Mapping[str, str] | None = None,
        kept: Iterable[Kept] | None = None,
    ) -> Request[Translation]:
        """Request translations, which arrive as they are finished and can be withdrawn.

        The other arguments are those of `stream`.
        """
        chosen = self._chosen(options)
        begun = None if prefixes is None else as_texts(several(prefixes))
        places = None if kept is None else [*kept]
        lines = as_texts(several(texts))
        return self.scheduler.submit(self.courses(lines, chosen, begun, glossary, places))

    def stream(
        self,
        lines: Iterable[str],
        options: Decoding | None = None,
        *,
        prefixes: Iterable[str] | None = None,
        glossary: Glossary | Mapping[str, str] | None = None,
        kept: Iterable[Kept] | None = None,
        window: int = 4096,
    ) -> Iterator[Translation]:
        """Translate any number of lines, in windows so that memory is bounded.

        `prefixes` and `kept` are as in `translate`, one for each line. Raises InputError as soon as
        one has fewer than there are lines, and at the end if there are more prefixes.
        """
        chosen = self._chosen(options)
        begun = None if prefixes is None else iter(several(prefixes))
        places = None if kept is None else iter(kept)

        def submit(taken: list[str]) -> Request[Translation]:
            some = None if begun is None else list(islice(begun, len(taken)))
            copied = None if places is None else list(islice(places, len(taken)))
            return self.submit(taken, chosen, prefixes=some, glossary=glossary, kept=copied)

        yield from in_windows(lines, submit, window)
        if begun is not None and next(begun, None) is not None:
            raise InputError("There are more prefixes than lines; give one for each line.")

    def score(self, pairs: Iterable[tuple[str, str]]) -> list[Scored]:
        """Score given translations: pairs of source and target, in order.

        A pair with an empty side, or one that cannot be encoded, is flagged. Probabilities are the
        same as in translating: ids that decoding never writes have probability 0. A translator in
        int8 scores in float32.
        """
        pairs = as_pairs(pairs)
        encoded = [
            encode_each(tokenizer.encode_batch, [trimmed(pair[side], tokenizer) for pair in pairs])
            for side, tokenizer in enumerate((self.src_tokenizer, self.tgt_tokenizer))
        ]
        return score_each(zip(*encoded, strict=True), self.score_ids, least=0)

    def score_ids(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[Scored]:
        """Score pairs of ids, both without bos and eos."""
        self._languages.check_chosen()
        for src, tgt in pairs:
            if (length := len(src) + len(tgt)) > LONGEST_PAIR:
                begins = self.src_tokenizer.decode(src[:8]), self.tgt_tokenizer.decode(tgt[:8])
                raise InputError(
                    f"The pair that begins with {begins[0]!r} and {begins[1]!r} has {length} "
                    f"tokens and at most {LONGEST_PAIR} can be scored at once; cut it into "
                    "sentences."
                )
        return [*self.scheduler.submit([self._score(*pair) for pair in pairs]).in_order()]

    def watch(self, src: Ids, options: Decoding, strategy: Strategy) -> list[Hypothesis]:
        """Return the n best of a source of ids by a strategy that wraps `strategy_of(options)`."""
        self._languages.check_chosen()
        options = self._for_ids(options)
        with self._ids.model.inference():
            return self._ids.search([Source(src)], options, strategy)[0]

    # ------------------------------------------------------------ from ids to results

    def _chosen(self, options: Decoding | None) -> Decoding:
        return merged(options or Decoding(), self.options)

    def _for_ids(self, options: Decoding) -> Decoding:
        """Return the options with processors in place of the forbidden words."""
        return replace(options, forbidden_words=(), processors=self._processors(options))

    def courses(
        self,
        texts: Sequence[str],
        options: Decoding,
        prefixes: list[str] | None = None,
        glossary: Glossary | Mapping[str, str] | None = None,
        kept: Sequence[Kept] | None = None,
    ) -> list[Course[Source, list[Hypothesis], Translation]]:
        """Return the course of each line, given all options; the rest is as in `translate`."""
        check_sampling(options)
        self._languages.check_chosen()
        if kept is not None or (glossary is not None and options.terms == "search"):
            check_plain_search(options)
        if isinstance(glossary, Mapping):
            glossary = Glossary(glossary)
        if not isinstance(glossary, Glossary | None):
            raise TypeError(
                f"The glossary is {glossary!r:.40}; give Glossary.read(path), or a mapping from "
                "sources to targets."
            )
        if kept is not None:
            kept = check_kept(texts, kept)
        begun = encode_prefixes(prefixes, len(texts), self.tgt_tokenizer, self._ids.longest_target)
        lines = LineTranslator(
            self._ids,
            self.src_tokenizer,
            self.tgt_tokenizer,
            self._for_ids(options),
            self._placeholders,
        )
        known = (
            None if prefix else remembered(self.memory, text)
            for text, prefix in zip(texts, begun, strict=True)
        )
        columns = texts, lines.parts_of(texts), begun, repeat(glossary), kept or repeat(()), known
        return [lines.course(Line(*column)) for column in zip(*columns, strict=False)]

    def _score(self, src: Ids, tgt: Ids) -> Course[Any, Any, Scored]:
        ((log_prob, score, token_log_probs),) = yield self._ids.forced((src, tgt), self.options)
        return Scored(
            log_prob=log_prob,
            score=score,
            tokens=tuple(self.tgt_tokenizer.tokens([*tgt, self.tgt_tokenizer.eos_id])),
            token_log_probs=tuple(token_log_probs[: len(tgt) + 1]),
        )


def _hashes(translator: Translator) -> tuple[str, str]:
    return translator.src_tokenizer.content_hash, translator.tgt_tokenizer.content_hash
