"""The recipe for training on pairs of texts: translation, and any other task with two sides."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from torch import Tensor

from dragoman.data.corpus import CorpusConfig
from dragoman.data.languages import Direction
from dragoman.data.made import MadeConfig, write_made
from dragoman.data.shape import Shape, random_ids, some_targets
from dragoman.decoding import TRANSLATING, Decoding, merged
from dragoman.errors import InputError, did_you_mean
from dragoman.files.documents import TRANSLATION_MEMORY, kind_of_name
from dragoman.folder.format import TRANSLATION, FolderConfig
from dragoman.languages import LangCodes
from dragoman.models import EncoderDecoder, EncoderDecoderConfig
from dragoman.ranges import NonNegative, Probability, Range, check_ranges
from dragoman.tasks.hiding import NoisyBatchConfig
from dragoman.tasks.translate.batches import PairBatch
from dragoman.text.tags import is_code, source_tag
from dragoman.text.tokenizer import MASK, SPECIALS
from dragoman.train.objective import summed_loss
from dragoman.train.recipe import (
    DataFiles,
    RunRecipe,
    Work,
    check_held_out,
    check_places,
    sentence_length,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig(DataFiles):
    """Pairs of texts."""

    src: str | None = None
    """File of source sentences; .gz, .bz2, .xz and .zst are decompressed."""
    tgt: str | None = None
    """File of target sentences, parallel to `src`."""
    tm: str | None = None
    """Translation memory: TMX (with both languages named), XLIFF, PO, CSV or TSV."""
    made: MadeConfig | None = None
    """Built-in sentence pairs, instead of files."""
    corpora: tuple[CorpusConfig, ...] = ()
    """More corpora (parallel files, TSV or JSON lines), each with its weight."""
    valid_src: str | None = None
    """File of source sentences for validation."""
    valid_tgt: str | None = None
    """File of target sentences for validation."""
    hold_out: int = 1000
    """Number of training pairs held out for validation if no files are given; at most a tenth."""
    src_lang: str | None = None
    """Source language, such as en; if a multilingual model is fine-tuned, its code in that
    model."""
    tgt_lang: str | None = None
    """Target language, given in the same way; it selects sacreBLEU's tokenizer."""
    directions: tuple[str, ...] = ()
    """Directions of a multilingual model, such as ["en-de", "de-en"]; if the corpora have several
    language pairs, both directions of each by default."""
    temperature: Annotated[float, Range(least=1)] = 1.0
    """Balances directions: the share of a direction with n pairs is proportional to
    n^(1/temperature), as is that of a language in the vocabulary; 1 leaves the shares unchanged."""
    tag_source: bool = False
    """Whether a multilingual model is told the source language too, not only the target
    language."""
    valid: tuple[CorpusConfig, ...] = ()
    """Validation corpora of a multilingual model; a language pair without one holds out training
    pairs."""
    guided_alignment: NonNegative = 0.0
    """Weight of the loss that teaches one head of the decoder's second-to-last layer which source
    token each target token comes from, such as 0.05; 0 disables it."""
    placeholders: Probability = 0.0
    """Fraction of the pairs in which words and their translations become placeholders, such as 0.1,
    so that the model learns to copy them; 0 disables it."""

    def __post_init__(self) -> None:
        """Raise InputError if there is nothing to validate on, or for a value out of range."""
        check_ranges(self)
        if self.made is None and self.valid_src is None and self.valid_tgt is None:
            check_held_out(self.hold_out)

    @property
    def named(self) -> list[CorpusConfig]:
        """The training corpora, as the recipe names them."""
        files = self.src is not None or self.tgt is not None
        return [
            *([CorpusConfig(src=self.src, tgt=self.tgt)] if files else []),
            *([CorpusConfig(tm=self.tm)] if self.tm else []),
            *self.corpora,
        ]

    @property
    def training(self) -> list[CorpusConfig]:
        """The training corpora, with paths that exist."""
        if not self.named:
            hint = f" (the texts of this recipe: {self.source})" if self.source else ""
            raise InputError(
                f"there is nothing to learn from: set data.src and data.tgt, or data.tm{hint}"
            )
        return [self._resolve(corpus) for corpus in self.named]

    @property
    def validating(self) -> list[CorpusConfig]:
        """The validation corpora, as the recipe names them; empty if pairs are held out."""
        files = self.valid_src is not None or self.valid_tgt is not None
        pair = [CorpusConfig(src=self.valid_src, tgt=self.valid_tgt)] if files else []
        return [*self.valid, *pair]

    @property
    def validation(self) -> list[CorpusConfig]:
        """The validation corpora, with paths that exist."""
        return [self._resolve(corpus) for corpus in self.validating]

    @property
    def learned(self) -> tuple[Direction, ...]:
        """The directions to learn if one model learns several; empty otherwise.

        Raises InputError for a corpus without languages if others have some or several are learned,
        and for a direction that no corpus has.
        """
        if not self.corpora and not self.directions:
            return ()
        pairs = [self.languages(corpus) for corpus in self.named]
        several = len({frozenset(pair) for pair in pairs}) > 1
        if not several and not self.directions:
            return ()
        known: dict[str, Direction] = {}
        for corpus, (src, tgt) in zip(self.named, pairs, strict=True):
            if src is None or tgt is None or src == tgt:
                raise InputError(
                    "a model of several languages needs those of each corpus, and the corpus "
                    f"{corpus.label} does not name its two: give its src_lang and tgt_lang"
                )
            known |= {f"{src}-{tgt}": (src, tgt), f"{tgt}-{src}": (tgt, src)}
        if any(None in self.languages(corpus) for corpus in self.validating):
            raise InputError(
                "validation corpora of several languages need src_lang and tgt_lang: give them as "
                "data.valid, each with both, in place of data.valid_src and data.valid_tgt"
            )
        for name in self.directions:
            if name not in known:
                raise InputError(
                    f"data.directions: no corpus has {name}; there are {', '.join(known)}"
                    f"{did_you_mean(name, known)}"
                )
        return tuple(known[name] for name in self.directions or known)

    def check(self) -> None:
        """Raise InputError if a file is missing, or if source and target are the same file."""
        if self.made is None:
            for corpus in (*self.training, *self.validation):
                for path in corpus.paths:
                    if kind_of_name(path) == TRANSLATION_MEMORY and not corpus.tm:
                        raise InputError(
                            f"{path} is {TRANSLATION_MEMORY} (TMX), which has no lines; give it as "
                            "data.tm (--tm) with data.src_lang and data.tgt_lang"
                        )
                if corpus.src and corpus.tgt and Path(corpus.src).samefile(corpus.tgt):
                    raise InputError(
                        f"source and target are the same file, {corpus.src}; give the translation "
                        "as the other one"
                    )
        elif self.named or self.valid_src or self.valid_tgt or self.valid:
            raise InputError(
                "data.made contradicts data.src, data.tgt, data.tm, data.corpora, data.valid and "
                "data.valid_*: the texts are either the package's or yours; remove one of them"
            )
        else:
            self.made.check()

    def write(self, folder: Path) -> Self:
        """Write generated texts into `folder`, and return the data with these files."""
        if self.made is None:
            return self
        files = {name: str(path.absolute()) for name, path in write_made(self.made, folder).items()}
        return replace(
            self,
            src=files["train.src"],
            tgt=files["train.tgt"],
            valid_src=files["valid.src"],
            valid_tgt=files["valid.tgt"],
        )

    def _resolve(self, corpus: CorpusConfig) -> CorpusConfig:
        names = ((key, getattr(corpus, key)) for key in ("src", "tgt", "tsv", "jsonl", "tm"))
        found: dict[str, Any] = {k: str(self.find(name)) for k, name in names if name is not None}
        src_lang, tgt_lang = self.languages(corpus)
        return replace(corpus, **found, src_lang=src_lang, tgt_lang=tgt_lang)

    def languages(self, corpus: CorpusConfig) -> LangCodes:
        """Return the languages of a corpus; by default those of the recipe."""
        return corpus.src_lang or self.src_lang, corpus.tgt_lang or self.tgt_lang


def check_codes(codes: Iterable[str], *, told_source: bool) -> None:
    """Raise InputError for a language that cannot be a special token, or already is one."""
    for code in codes:
        if not is_code(code):
            raise InputError(
                f'"{code}" is not a language code: a code is letters, digits and hyphens, such '
                "as zh or pt-BR"
            )
        if told_source and source_tag(code) in (*SPECIALS, MASK):
            raise InputError(
                f"the language {code} contradicts data.tag_source: {source_tag(code)} is a special "
                "token already; give the language another code"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslateRecipe(RunRecipe):
    """From a source text to a target text, by an encoder-decoder."""

    metrics: ClassVar[tuple[str, ...]] = ("bleu", "chrf", "exact")
    reads_twice: ClassVar[bool] = True

    task: Literal["translate"] = "translate"
    """Learn to generate the target of each source."""
    data: DataConfig = field(default_factory=DataConfig)
    """The texts."""
    batch: NoisyBatchConfig = field(default_factory=NoisyBatchConfig)
    """How pairs become batches."""
    model: EncoderDecoderConfig = field(default_factory=EncoderDecoderConfig)
    """The architecture."""
    decoding: Decoding = TRANSLATION
    """How the model translates by default."""

    def check(self) -> None:
        """Raise InputError for settings that contradict each other."""
        length = self.batch.max_length
        check_places(self.model.positions, length + 1, f"batch.max_length = {length}")
        learned, tying = self.data.learned, self.model.tie_embeddings
        check_codes(chain(*learned), told_source=self.data.tag_source)
        new = self.start.model is None  # else the tokenizers are those of the folder
        if learned and new and not self.tokenizer.joint:
            raise InputError(
                "tokenizer.joint = false contradicts several languages in one model, which share "
                "one vocabulary: leave it out"
            )
        if new and not self.tokenizer.joint and tying in ("all", "source-target"):
            raise InputError(
                f'tokenizer.joint = false contradicts model.tie_embeddings = "{tying}": two '
                'vocabularies cannot share a matrix; set it to "target-output" or "none"'
            )
        if not learned and (self.data.temperature != 1 or self.data.tag_source):
            raise InputError(
                "data.temperature and data.tag_source are for several languages in one model: name "
                "the languages of the corpora, or data.directions, or leave them out"
            )
        if self.metric != "loss" and self.train.validate_limit < 1:
            raise InputError(
                f'train.metric = "{self.metric}" contradicts train.validate_limit = '
                f"{self.train.validate_limit}: nothing would be translated"
            )
        if self.data.guided_alignment and (other := self.hides_heads):
            raise InputError(
                f"data.guided_alignment = {self.data.guided_alignment} contradicts {other}: "
                "what a head attended to would be lost; leave one of them out"
            )
        merged(self.decoding, TRANSLATING)

    @property
    def hides_heads(self) -> str | None:
        """The setting, if any, with which no head can be trained to align."""
        hiding = {
            "batch.subword_sampling": self.batch.subword_sampling,
            "train.activation_checkpointing": self.train.activation_checkpointing,
            "train.r_drop": self.train.r_drop,
        }
        return next((name for name, value in hiding.items() if value), None)

    def taking_over(self, folder: FolderConfig) -> Self:
        """Return the recipe with the folder's decoding options and, if unset, its languages."""
        data = replace(
            self.data,
            src_lang=self.data.src_lang or folder.src_lang,
            tgt_lang=self.data.tgt_lang or folder.tgt_lang,
        )
        return self.changed({"data": data, "decoding": folder.decoding})

    def use(self, directions: Sequence[Direction] = ()) -> str | None:
        """Return an example command for a model of several directions, if possible for its own."""
        if not directions:
            return None
        own = self.data.src_lang, self.data.tgt_lang
        src, tgt = own if own in directions else directions[0]
        return f"dragoman translate {{folder}} --src-lang {src} --tgt-lang {tgt} < FILE"

    @staticmethod
    def loss(model: EncoderDecoder, batch: PairBatch, smoothing: float) -> Tensor:
        """Sum the smoothed cross-entropy over the target's tokens."""
        return summed_loss(model, batch.src_BS, batch.tgt_in_BT, batch.tgt_out_BT, smoothing)

    @staticmethod
    def sample(config: EncoderDecoderConfig, shape: Shape, rng: np.random.Generator) -> PairBatch:
        """Return a batch of random ids."""
        rows, pad_id = shape.rows, config.pad_id
        src_BS = random_ids((rows, shape.src_length), config.src_vocab_size, pad_id, rng)
        tgt_BT = random_ids((rows, shape.length), config.tgt_vocab_size, pad_id, rng)
        return PairBatch(
            src_BS=src_BS,
            tgt_in_BT=tgt_BT,
            tgt_out_BT=some_targets(tgt_BT, shape.targets, pad_id),
            num_targets=tgt_BT.numel() if shape.targets is None else shape.targets,
            num_tokens=src_BS.numel() + tgt_BT.numel(),
            indices=np.arange(rows),
        )

    def work(self, length: int | None = None) -> Work:
        """Return the work of full batches of pairs; an answer is as long as its source."""
        batch, config, size = self.batch, self.model, self.num_pieces
        tokens = sentence_length(length, "batch.max_length", batch.max_length)
        config = replace(
            config,
            src_vocab_size=config.src_vocab_size or size,
            tgt_vocab_size=config.tgt_vocab_size or size,
        )
        rows = max(1, batch.max_tokens // (2 * tokens))
        return Work(
            recipe=self,
            config=config,
            length=tokens,
            shape=Shape(rows=rows, src_length=tokens, length=tokens),
            longest=batch.max_length,
            answer=tokens,
            beam_size=merged(self.decoding, TRANSLATING).beam_size,
            vocab_size=config.tgt_vocab_size,
        )
