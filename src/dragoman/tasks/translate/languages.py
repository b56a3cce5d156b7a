"""The languages of a multilingual translator: those that it knows, and the two chosen.

A model that we trained reads a tag for the target language before the source
(`dragoman.text.tags`); `dragoman.tasks.translate.published` is for the models of other libraries.
"""

import warnings
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Self

from dragoman.data.languages import Direction
from dragoman.decoding import Decoding
from dragoman.errors import InputError, did_you_mean
from dragoman.languages import LangCodes, base_of, is_usual, resolve, resolve_target
from dragoman.tasks.translate.batches import Framing
from dragoman.tasks.translate.ids import Specials
from dragoman.text.tags import source_tag
from dragoman.text.tokenizer import Frame, Tokenizer

SHOWN = 12
"""Maximum number of languages that an error lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Languages:
    """The languages of a model that dragoman trained."""

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
        """The ids of the model's languages by code."""
        return dict(self.src_tokenizer.languages)

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


def listed(codes: Collection[str], asked: str = "") -> str:
    """List some languages of a model, sorted; codes of the language `asked` come first."""
    ordered = sorted(codes, key=lambda code: (base_of(code) != base_of(asked), code))
    more = f" and {len(ordered) - SHOWN} others" if len(ordered) > SHOWN else ""
    return ", ".join(ordered[:SHOWN]) + more
