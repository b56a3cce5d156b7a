"""A recipe of each task with no setting at its default, and its batches made by hand."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tests.unit.train import encoder_recipes
from tests.unit.train.made import TINY
from torch import Tensor, nn

from dragoman.data.batches import BatchConfig, Stream
from dragoman.data.corpus import CorpusConfig
from dragoman.data.dataset import TextDataset, hold_out, hold_out_rows
from dragoman.data.documents import HoldOut, prepare_documents
from dragoman.data.labelled import load_labelled
from dragoman.data.prepare import prepare
from dragoman.data.tagged import load_tagged
from dragoman.decoding import Decoding
from dragoman.folder.format import GenerationDefaults
from dragoman.models import DecoderOnly, DecoderOnlyConfig, EncoderDecoder, EncoderOnly
from dragoman.nn import Documents, Rotary
from dragoman.tasks.classify import task as classify_
from dragoman.tasks.generate import batches as generate_
from dragoman.tasks.generate.middle import SENTINELS, Middle
from dragoman.tasks.generate.recipe import GenerateRecipe, TextFiles
from dragoman.tasks.hiding import NoisyBatchConfig
from dragoman.tasks.pretrain import task as pretrain_
from dragoman.tasks.tag import task as tag_
from dragoman.tasks.translate import batches as translate_
from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.train import TokenizerConfig
from dragoman.train.config import TrainConfig
from dragoman.train.recipe import RunRecipe

STEPS, SEED, PEAK, WARMUP = 4, 7, 0.05, 3
TRAIN = TrainConfig(
    max_steps=STEPS,
    max_minutes=1e9,  # neither limit is reached
    patience=99,
    seed=SEED,
    device="cpu",
    precision="fp32",
    optimizer="adamw",
    learning_rate=PEAK,
    schedule="constant",
    warmup_steps=WARMUP,
    beta1=0.7,
    beta2=0.9,
    eps=1e-2,
    weight_decay=0.4,
    clip_norm=0.1,
    label_smoothing=0.3,
    activation_checkpointing=True,
    deterministic=True,
    max_skipped=3,
    shard="off",
    accumulate=2,
    validate_every=3,
    validate_limit=3,
    metric="loss",
    save_every=3,
    ema=0.9,
    average_last=1,
    log_every=1,
)
R_DROP = 0.7
"""The weight of the R-Drop divergence, for tasks that read a batch twice."""
RATES: Mapping[str, Callable[[int], float]] = {
    "noam": lambda step: PEAK * 16**-0.5 * min(step**-0.5, step * WARMUP**-1.5),
    "inverse-sqrt": lambda step: PEAK * min(step / WARMUP, (WARMUP / step) ** 0.5),
    "cosine": lambda step: (
        PEAK * min(1, step / WARMUP) * (1 + math.cos(math.pi * (step - 1) / STEPS)) / 2
    ),
    "linear": lambda step: PEAK * min(1, step / WARMUP) * (1 - (step - 1) / STEPS),
    "constant": lambda step: PEAK * min(1, step / WARMUP),
}
"""Learning rates of the steps, counted from 1; the model's width is 16."""
BATCH = NoisyBatchConfig(max_tokens=90, max_length=7, subword_sampling=0.3, token_dropout=0.25)
UNKNOWN_ID, MASKED_ID = 1, 260
"""The ids are four special tokens, the bytes and then the mask, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """What a hand-written loop needs for a task."""

    build: Callable[[], nn.Module]
    batches: Iterator[Any]
    validation: Sequence[Any]
    read: Callable[[Any, Any], tuple[Tensor, Tensor]]
    """Map model and batch to logits `(M, V)` and targets `(M)`."""
    passes: int = 1
    """Passes per batch: two for R-Drop, whose logits are in the two halves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A recipe, its entries in `config.json`, and the same training by hand."""

    recipe: RunRecipe
    written: Mapping[str, object]
    learner: Callable[[Tokenizer], Hand]
    """Build the loop's inputs from the tokenizer that the run trained."""

    def open(self) -> Hand:
        """Return the inputs of a loop that starts from the same state as the run."""
        return self.learner(Tokenizer.load(Path(self.recipe.out) / "tokenizer.json"))


def translate(folder: Path) -> Case:
    """Return the case of translating longer and shorter pairs of numbers."""
    lines = [" ".join(str(i + k) for k in range(1 + i % 5)) for i in range(60)]
    (folder / "a.src").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "a.tgt").write_text("\n".join(x[::-1] for x in lines) + "\n", encoding="utf-8")
    src, tgt, cache = str(folder / "a.src"), str(folder / "a.tgt"), str(folder / "cache")
    settings = NoisyBatchConfig(
        max_tokens=90, max_length=40, subword_sampling=0.3, token_dropout=0.2
    )
    decoding = {
        "beam_size": 2,
        "length_penalty": 0.5,
        "max_length_factor": 1.5,
        "max_length_constant": 4,
        "max_src_tokens": 33,
    }
    recipe = TranslateRecipe(
        out=str(folder / "run"),
        data=DataConfig(src=src, tgt=tgt, cache=cache, hold_out=4, src_lang="en", tgt_lang="de"),
        tokenizer=TokenizerConfig(vocab_size=300),
        batch=settings,
        model=replace(TINY, src_vocab_size=0, tgt_vocab_size=0, dropout=0.2),
        train=replace(TRAIN, schedule="noam", r_drop=R_DROP),
        decoding=Decoding(**decoding),  # type: ignore[arg-type]
    )

    def read(model: EncoderDecoder, part: translate_.PairBatch) -> tuple[Tensor, Tensor]:
        passes = 2 if model.training else 1
        src_BS = part.src_BS
        if model.training:
            chosen_BS = torch.rand(src_BS.shape) < 0.2
            src_BS = src_BS.masked_fill(chosen_BS & (src_BS > 3), UNKNOWN_ID)
        src, tgt_in, tgt_out = (
            each.repeat(passes, 1) for each in (src_BS, part.tgt_in_BT, part.tgt_out_BT)
        )
        return model(src, tgt_in)[tgt_out != 0], tgt_out[tgt_out != 0]

    def learner(pieces: Tokenizer) -> Hand:
        pairs = prepare(CorpusConfig(src=src, tgt=tgt), pieces, pieces, Path(cache))
        rest, held = hold_out(pairs, 4, 40, SEED)
        splits = (pieces.splits(), pieces.splits())
        size = pieces.vocab_size
        config = replace(recipe.model, src_vocab_size=size, tgt_vocab_size=size)
        return Hand(
            build=lambda: EncoderDecoder(config),
            batches=Stream(translate_.PairBatches([rest], settings, splits=splits), seed=SEED),
            validation=list(translate_.PairBatches([held], BatchConfig(max_tokens=90)).fixed()),
            read=read,
            passes=2,
        )

    asked = decoding | {"split_sentences": True}  # found in the validation sources
    written = {"decoding": asked, "src_lang": "en", "tgt_lang": "de"}
    return Case(recipe=recipe, written=written, learner=learner)


def generate(folder: Path) -> Case:
    """Return the case of generating short documents."""
    text = "".join(f"{'it was so good ' * (1 + i % 3)}{i}\n" for i in range(60))
    (folder / "a.txt").write_text(text, encoding="utf-8")
    settings = generate_.PackConfig(
        length=20, rows=3, packing="documents", stride=7, subword_sampling=0.3, fill_in_middle=0.4
    )
    generation = {"context": 19, "opening": "so", "max_tokens": 11, "temperature": 0.3}
    share = HoldOut(share=0.2, by="documents")
    recipe = GenerateRecipe(
        out=str(folder / "run"),
        data=TextFiles(
            train=(str(folder / "a.txt"),),
            split="line",
            hold_out=share,
            cache=str(folder / "cache"),
        ),
        tokenizer=TokenizerConfig(vocab_size=310, specials=SENTINELS),
        batch=settings,
        model=DecoderOnlyConfig(
            d_model=16, num_heads=2, d_ff=24, num_layers=1, positions=Rotary(), dropout=0.2
        ),
        train=replace(TRAIN, schedule="cosine"),
        generation=GenerationDefaults(**generation),  # type: ignore[arg-type]
    )

    def read(model: DecoderOnly, part: generate_.LanguageBatch) -> tuple[Tensor, Tensor]:
        assert part.document_lengths is not None
        real_BL = part.targets_BL >= 0
        logits_BLV = model(part.inputs_BL, None, Documents(part.document_lengths))
        return logits_BLV[real_BL], part.targets_BL[real_BL]

    def learner(pieces: Tokenizer) -> Hand:
        rest, held = prepare_documents([folder / "a.txt"], "line", pieces, folder / "cache", share)
        assert held is not None
        config = replace(recipe.model, vocab_size=pieces.vocab_size)
        return Hand(
            build=lambda: DecoderOnly(config),
            batches=Stream(
                generate_.PackedBatches(rest, settings, pieces.splits(), Middle(pieces)), seed=SEED
            ),
            validation=list(generate_.PackedBatches(held, settings).fixed()),
            read=read,
        )

    written = {"generation": generation | {"chat": None, "count_prompt": False}}
    return Case(recipe=recipe, written=written, learner=learner)


def pretrain(folder: Path) -> Case:
    """Return the case of pretraining on texts of three kinds with some tokens masked."""
    masking = pretrain_.MaskConfig(share=0.4, masked=0.5, random=0.3)
    settings = BatchConfig(max_tokens=90, max_length=7, subword_sampling=0.3)
    recipe = encoder_recipes.masked_recipe(folder)
    recipe = replace(
        recipe,
        data=replace(recipe.data, hold_out=9),
        masking=masking,
        batch=settings,
        model=replace(recipe.model, d_model=16, dropout=0.2),
        train=replace(TRAIN, schedule="inverse-sqrt"),
    )

    def read(model: EncoderOnly, part: pretrain_.MaskedBatch) -> tuple[Tensor, Tensor]:
        hidden_BL = part.targets_BL >= 0
        return model(part.ids_BL)[hidden_BL], part.targets_BL[hidden_BL]

    def learner(pieces: Tokenizer) -> Hand:
        data, cache = recipe.data, recipe.data.cache_folder
        bare, _ = prepare_documents([folder / "bare.txt"], "line", pieces, cache)
        marked = load_labelled(folder / "texts.tsv", data.labelled_layout, pieces)
        named = load_tagged(folder / "words.conll", data.tagged_layout, pieces)
        texts = TextDataset.joined([bare, marked.as_texts(), named.as_texts()])
        rest, held = (
            replace(texts, texts=texts.texts.take(rows))
            for rows in hold_out_rows(texts.texts, 9, SEED)
        )
        vocabulary = pretrain_.Vocabulary(MASKED_ID, (pieces.first_piece, pieces.vocab_size))
        config = replace(recipe.model, vocab_size=pieces.vocab_size)
        return Hand(
            build=lambda: EncoderOnly(config),
            batches=Stream(
                pretrain_.MaskedBatches(
                    rest, settings, vocabulary, masking, splits=pieces.splits()
                ),
                seed=SEED,
            ),
            validation=list(pretrain_.MaskedBatches(held, settings, vocabulary, masking).fixed()),
            read=read,
        )

    return Case(recipe=recipe, written={}, learner=learner)


def hidden(model: EncoderOnly, ids_BL: Tensor) -> Tensor:
    """Mask a quarter of the pieces in training, except special tokens."""
    if not model.training:
        return ids_BL
    chosen_BL = torch.rand(ids_BL.shape) < 0.25
    return ids_BL.masked_fill(chosen_BL & (ids_BL > 3) & (ids_BL != MASKED_ID), MASKED_ID)


def labels(
    recipe: Any,  # noqa: ANN401 -- of either task
    names: tuple[str, ...],
    load: Callable[[Any, Tokenizer], Any],
    batches: Callable[..., Any],
    read: Callable[[Any, Any], tuple[Tensor, Tensor]],
) -> Case:
    """Return the case of labelling texts or words with some pieces masked."""
    recipe = replace(
        recipe,
        data=replace(recipe.data, hold_out=6),
        batch=BATCH,
        model=replace(recipe.model, d_model=16, dropout=0.2),
    )

    def learner(pieces: Tokenizer) -> Hand:
        texts = load(recipe.data.layout, pieces)
        rows = hold_out_rows(texts.as_texts().texts, 6, SEED)
        rest, held = (texts.take(part) for part in rows)
        head = replace(recipe.head, labels=names)
        config = replace(recipe.model, vocab_size=pieces.vocab_size, head=head)
        return Hand(
            build=lambda: EncoderOnly(config),
            batches=Stream(batches(rest, BATCH, splits=pieces.splits()), seed=SEED),
            validation=list(batches(held, BATCH).fixed()),
            read=read,
        )

    return Case(
        recipe=recipe,
        written={"reading": {"max_tokens": 7, "words": "spaced", "inside_begins": False}},
        learner=learner,
    )


def classify(folder: Path) -> Case:
    """Return the case of classifying labelled texts."""

    def read(model: EncoderOnly, part: classify_.ClassBatch) -> tuple[Tensor, Tensor]:
        return model(hidden(model, part.ids_BL)), part.labels_B

    recipe = replace(encoder_recipes.classify_recipe(folder), train=TRAIN)
    load = partial(load_labelled, folder / "texts.tsv")
    return labels(recipe, ("0", "1"), load, classify_.class_batches, read)


def tag(folder: Path) -> Case:
    """Return the case of tagging the words of sentences."""

    def read(model: EncoderOnly, part: tag_.TagBatch) -> tuple[Tensor, Tensor]:
        first_BL = part.tags_BL >= 0
        return model(hidden(model, part.ids_BL))[first_BL], part.tags_BL[first_BL]

    recipe = replace(encoder_recipes.tag_recipe(folder), train=replace(TRAIN, schedule="linear"))
    load = partial(load_tagged, folder / "words.conll")
    return labels(recipe, ("O", "B-PER", "I-PER"), load, tag_.tag_batches, read)


TASKS = {case.__name__: case for case in (translate, generate, pretrain, classify, tag)}
