"""The languages of a translator: those that it knows, the two chosen, and the ids that tell them.

A model that we trained reads a tag for the target language before the source
(`dragoman.text.tags`). Where other libraries put a language depends on the family. M2M100 and NLLB
read the source language in the frame and begin the target with the target language; mBART's first
models begin with it instead of the usual decoder start (Liu et al., 2020). Marian's models into
many languages read the target language in the frame, and so do SMaLL-100 and MADLAD-400, which have
the classes of M2M100 and T5. T5 itself has none: its tasks are words of the text.
"""

import warnings
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Self

from dragoman.data.languages import Direction
from dragoman.decoding import Decoding
from dragoman.errors import InputError, did_you_mean
from dragoman.folder.format import PublishedDefaults
from dragoman.folder.opening import ModelFolder
from dragoman.languages import LangCodes, base_of, is_usual, resolve, resolve_target
from dragoman.models import EncoderDecoderConfig
from dragoman.ranges import UNSET
from dragoman.tasks.options import published_options
from dragoman.tasks.translate.batches import Framing
from dragoman.tasks.translate.ids import Specials
from dragoman.text.tags import source_tag
from dragoman.text.tokenizer import Frame, Tokenizer

SHOWN = 12
"""Maximum number of languages that an error lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Languages:
    """The languages of a model that dragoman trained, or of one without a folder."""

    src_tokenizer: Tokenizer
    src_lang: str | None = None
    tgt_lang: str | None = None
    directions: tuple[Direction, ...] = ()
    """The directions in which the model was trained; empty for one pair, without tags."""

    def layers(self, folder: Decoding) -> list[Decoding]:
        """Return a folder's options, with those that precede or follow them."""
        return [folder]

    def specials(self, specials: Specials) -> Specials:
        """Return the ids around sources and targets for the chosen languages."""
        if not self.directions:
            return specials
        never = {*specials.forbidden, *self.src_tokenizer.specials.values()} - {specials.eos_id}
        return replace(specials, src_frame=self.src_frame, forbidden=tuple(sorted(never)))

    def framing(self, tgt_tokenizer: Tokenizer) -> Framing:
        """Return the ids around training pairs."""
        return Framing(
            src=self.src_frame, tgt=Frame((), (tgt_tokenizer.eos_id,)), start=tgt_tokenizer.bos_id
        )

    @property
    def src_frame(self) -> Frame:
        """The ids around a source."""
        frame = self.src_tokenizer.frame(self.tgt_lang if self.directions else None)
        told = self.src_tokenizer.specials.get(source_tag(self.src_lang or ""))
        return frame if told is None else Frame((*frame.before, told), frame.after)

    @property
    def tells_source(self) -> bool:
        """Whether the model is told the language of the source."""
        return any(source_tag(code) in self.src_tokenizer.specials for code in self.known)

    @property
    def reads(self) -> Tokenizer:
        """The tokenizer of sources; once a language is chosen, a source does not choose one."""
        return self.src_tokenizer

    @property
    def known(self) -> dict[str, int]:
        """The ids of the model's languages by code; empty for a model of one pair."""
        return dict(self.src_tokenizer.languages) if self.directions else {}

    @property
    def writes(self) -> Collection[str]:
        """The languages that the model can be asked to write."""
        return {tgt for _, tgt in self.directions}

    def meant(self, src_lang: str | None, tgt_lang: str | None) -> LangCodes:
        """Return the model's codes for codes in any usual form; others are unchanged."""
        src = src_lang and is_usual(src_lang) and resolve(src_lang, self.known)
        tgt = tgt_lang and is_usual(tgt_lang) and resolve_target(tgt_lang, self.writes)
        return src or src_lang, tgt or tgt_lang

    def between(self, src_lang: str | None, tgt_lang: str | None) -> Self:
        """Return a copy with languages. Raises InputError for one that the model lacks.

        Warns about a direction in which it was not trained. A model of one pair has those two,
        which its folder may name.
        """
        if not self.directions:
            self._check_pair(src_lang, tgt_lang)
            return self
        if src_lang is not None:
            self._check(src_lang, "source", self.known)
        if tgt_lang is not None:
            self._check(tgt_lang, "target", self.writes)
        chosen = replace(
            self, src_lang=src_lang or self.src_lang, tgt_lang=tgt_lang or self.tgt_lang
        )
        asked = chosen.src_lang, chosen.tgt_lang
        if None not in asked and asked not in self.directions:
            trained = ", ".join("-".join(direction) for direction in self.directions)
            warnings.warn(
                f"The model was not trained to translate {asked[0]} to {asked[1]} (it was in "
                f"{trained}), so this is zero-shot: check what it writes.",
                stacklevel=3,
            )
        return chosen

    def check_chosen(self) -> None:
        """Raise InputError if the model needs a language that was not given."""
        if not self.directions:
            return
        if self.tgt_lang is None or (self.src_lang is None and self.tells_source):
            needed = "--src-lang and --tgt-lang" if self.tells_source else "--tgt-lang"
            raise InputError(
                f"The model has {len(self.known)} languages; say which by {needed} (in Python: "
                f"translator.between): {listed(self.known)}."
            )

    def _check_pair(self, src_lang: str | None, tgt_lang: str | None) -> None:
        src, tgt = self.src_lang, self.tgt_lang
        is_src = src_lang is None or (src and resolve(src_lang, [src]))
        is_tgt = tgt_lang is None or (tgt and resolve_target(tgt_lang, [tgt]))
        if not (is_src and is_tgt):
            pair = f", {src} to {tgt}" if src and tgt else ""
            raise InputError(
                f"The model translates one pair of languages{pair}; leave out src_lang and "
                "tgt_lang (--src-lang and --tgt-lang)."
            )

    @staticmethod
    def _check(code: str, side: str, known: Collection[str]) -> None:
        if code not in known:
            hint = did_you_mean(code, known) or "."
            raise InputError(
                f"The model has no {side} language {code}: it has {listed(known, code)}{hint}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Published(Languages):
    """A model of another library, and the chosen languages."""

    config: EncoderDecoderConfig
    defaults: PublishedDefaults
    alone: bool = False
    """Whether lines are neither split nor searched again, as in the publisher's class."""

    @classmethod
    def of(cls, folder: ModelFolder) -> Self | None:
        """Return the languages of a folder; None for a model of our own.

        The chosen languages are those of its fine-tuning, or else the one that it always writes.
        """
        config, defaults = folder.config, folder.config.published
        if defaults is None or not isinstance(config.model, EncoderDecoderConfig):
            return None
        begins = (config.model.bos_id, *defaults.begin)
        writes = (code for code, id_ in folder.src_tokenizer.languages.items() if id_ in begins)
        return cls(
            config=config.model,
            defaults=defaults,
            src_tokenizer=folder.src_tokenizer,
            src_lang=config.src_lang,
            tgt_lang=config.tgt_lang or next(writes, None),
            alone=folder.as_published,
        )

    def layers(self, folder: Decoding) -> list[Decoding]:
        """Return a folder's options over the publisher's; only a call can enable sampling."""
        alone = [Decoding(split_sentences=False, retry=False)] if self.alone else []
        said = published_options(self.defaults)
        return [*alone, folder, replace(said, top_k=UNSET, top_p=UNSET, min_p=UNSET)]

    def specials(self, specials: Specials) -> Specials:
        """Return the ids around sources and targets for the chosen languages."""
        config, (bos_id, begin) = self.config, self._start
        return replace(
            specials,
            src_pad_id=config.pad_id,
            src_frame=self.src_frame,
            pad_id=config.pad_id,
            bos_id=bos_id,
            begin=begin,
            eos_id=config.eos_id,
            forbidden=self.defaults.forbidden,
            forced_end=self.defaults.forced_end,
        )

    def framing(self, tgt_tokenizer: Tokenizer) -> Framing:
        """Return the ids that the publisher's class puts around training pairs.

        A target has the frame of a source in its language, so mBART's first models learn to write
        the language after it, with which the decoder begins.
        """
        tgt = tgt_tokenizer.frame(self.tgt_lang if self.known else None)
        if self._in_source:
            tgt = Frame((), (tgt_tokenizer.eos_id,))
        return Framing(src=self.src_frame, tgt=tgt, start=self._start[0])

    @property
    def known(self) -> dict[str, int]:
        """The ids of the model's languages by code."""
        return dict(self.src_tokenizer.languages)

    @property
    def reads(self) -> Tokenizer:
        """The tokenizer of sources; once a language is chosen, a source does not choose one."""
        chosen = self._in_source and self.tgt_lang is not None
        return self.src_tokenizer.without_marks() if chosen else self.src_tokenizer

    @property
    def _in_source(self) -> bool:
        """Whether the source names the target language."""
        return self.src_tokenizer.lang_in_source

    @property
    def src_frame(self) -> Frame:
        """The ids around a source."""
        lang = self.tgt_lang if self._in_source else self.src_lang
        return self.src_tokenizer.frame(lang if self.known else None)

    @property
    def _start(self) -> tuple[int, tuple[int, ...]]:
        """The first id that the decoder reads, and the ids that begin every target."""
        bos_id, begin = self.config.bos_id, self.defaults.begin
        if self._in_source or not self.known or self.tgt_lang is None:
            return bos_id, begin
        lang = self.known[self.tgt_lang]
        if bos_id < 0 or bos_id in self.known.values():
            return lang, ()
        return bos_id, (lang,)

    @property
    def writes(self) -> Collection[str]:
        """The languages that the model can be asked to write."""
        return self.known

    def between(self, src_lang: str | None, tgt_lang: str | None) -> Self:
        """Return a copy with languages. Raises InputError for one that the model lacks."""
        if not self.known:
            raise InputError(
                "The model has no codes of languages; leave out --src-lang and --tgt-lang (T5 "
                "reads its task in the text)."
            )
        if src_lang is not None and not self._in_source:
            self._check(src_lang, "source", self.known)
        if tgt_lang is not None:
            self._check(tgt_lang, "target", self.writes)
        return replace(self, src_lang=src_lang or self.src_lang, tgt_lang=tgt_lang or self.tgt_lang)

    def check_chosen(self) -> None:
        """Raise InputError if the model needs a language that was not given."""
        # a text for Marian or MADLAD-400 may begin with its language; SMaLL-100 would take English
        in_text = self._in_source and not self.src_frame.before
        if self.known and self.tgt_lang is None and not in_text:
            raise InputError(
                f"The model has {len(self.known)} languages; say which by --src-lang and "
                f"--tgt-lang (in Python: translator.between): {listed(self.known)}."
            )
        if self._start[0] < 0:
            raise InputError(
                "The model's config.json has no decoder_start_token_id, with which a target "
                "begins; get the whole file."
            )

    def check_pair(self) -> None:
        """Raise InputError if a language that training needs was not given."""
        self.check_chosen()
        if self.src_lang is None and not self._in_source:
            raise InputError(
                "The sources are in one of the model's languages; say in which by --src-lang, or "
                f"by data.src_lang in a recipe: {listed(self.known)}."
            )


def languages_of(folder: ModelFolder) -> Languages:
    """Return the languages of any model folder."""
    config = folder.config
    return Published.of(folder) or Languages(
        src_tokenizer=folder.src_tokenizer,
        src_lang=config.src_lang,
        tgt_lang=config.tgt_lang,
        directions=config.directions,
    )


def listed(codes: Collection[str], asked: str = "") -> str:
    """List some languages of a model, sorted; codes of the language `asked` come first."""
    ordered = sorted(codes, key=lambda code: (base_of(code) != base_of(asked), code))
    more = f" and {len(ordered) - SHOWN} others" if len(ordered) > SHOWN else ""
    return ", ".join(ordered[:SHOWN]) + more
