"""What a translator of another library's model does otherwise: its languages, frames and beam.

Where a language goes, by family: M2M100 and NLLB read that of the source in the frame and begin
the target with its own; mBART's first models begin with it instead of what a decoder starts with
(Liu et al., 2020); Marian's models into many languages read that of the target in the frame, and
T5 has none: its tasks are words of the text.
"""

from dataclasses import dataclass, replace
from typing import Self

from dragoman.errors import InputError, did_you_mean
from dragoman.models import EncoderDecoderConfig
from dragoman.models.defaults import PublishedDefaults
from dragoman.tasks.folders import Folder
from dragoman.tasks.options import DecodingOptions
from dragoman.tasks.translate.ids import Specials
from dragoman.text.tokenizer import Tokenizer

SHOWN = 12
"""Languages that an error lists at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A model of another library, and the languages that were chosen."""

    config: EncoderDecoderConfig
    defaults: PublishedDefaults
    src_tokenizer: Tokenizer
    src_lang: str | None = None
    tgt_lang: str | None = None

    @classmethod
    def of(cls, folder: Folder) -> Self | None:
        """Return what a folder says; None for a model of our own."""
        model, defaults = folder.config.model, folder.config.published
        if defaults is None or not isinstance(model, EncoderDecoderConfig):
            return None
        return cls(config=model, defaults=defaults, src_tokenizer=folder.src_tokenizer)

    def options(self, options: DecodingOptions) -> DecodingOptions:
        """Return the options that decode as the publisher does."""
        said = self.defaults
        return replace(
            options,
            length_norm="power",
            early_stopping=said.early_stopping,
            min_length=said.min_length,
            no_repeat_ngrams=said.no_repeat_ngrams,
            repetition_penalty=said.repetition_penalty,
        )

    def specials(self, specials: Specials) -> Specials:
        """Return the ids around sources and targets, for the languages that were chosen."""
        config, frame, begin = self.config, self.src_tokenizer.frame(), self.defaults.begin
        bos_id = config.bos_id
        if self.languages and self.defaults.family == "marian":
            frame = self.src_tokenizer.frame(self.tgt_lang)
        elif self.languages:
            frame = self.src_tokenizer.frame(self.src_lang)
            if self.tgt_lang is not None:
                begin = (self.languages[self.tgt_lang],)
            if bos_id < 0 and begin:
                (bos_id,), begin = begin, ()
        return replace(
            specials,
            src_pad_id=config.pad_id,
            src_frame=frame,
            pad_id=config.pad_id,
            bos_id=bos_id,
            begin=begin,
            eos_id=config.eos_id,
            forbidden=self.defaults.forbidden,
        )

    @property
    def languages(self) -> dict[str, int]:
        """The languages of the model, by their codes."""
        return dict(self.src_tokenizer.languages)

    def between(self, src_lang: str | None, tgt_lang: str | None) -> Self:
        """Return the same with languages. Raises InputError for one that the model lacks."""
        if not self.languages:
            raise InputError(
                "The model has no codes of languages; leave out --src-lang and --tgt-lang (T5 "
                "reads its task in the text)."
            )
        if src_lang is not None and self.defaults.family != "marian":
            self._check(src_lang, "source")
        if tgt_lang is not None:
            self._check(tgt_lang, "target")
        return replace(self, src_lang=src_lang or self.src_lang, tgt_lang=tgt_lang or self.tgt_lang)

    def check_chosen(self) -> None:
        """Raise InputError where the model needs a language that was not given."""
        in_text = self.defaults.family == "marian"  # which may begin with >>lang<<
        if self.languages and self.tgt_lang is None and not (in_text or self.defaults.begin):
            raise InputError(
                f"The model has {len(self.languages)} languages; say which by --src-lang and "
                f"--tgt-lang (in Python: translator.between): {self._listed()}."
            )

    def _check(self, code: str, side: str) -> None:
        if code not in self.languages:
            hint = did_you_mean(code, self.languages) or "."
            raise InputError(
                f"The model has no {side} language {code}: it has {self._listed()}{hint}"
            )

    def _listed(self) -> str:
        codes = sorted(self.languages)
        more = f" and {len(codes) - SHOWN} others" if len(codes) > SHOWN else ""
        return ", ".join(codes[:SHOWN]) + more
