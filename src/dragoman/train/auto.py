"""A recipe for two files and nothing else: sizes chosen from the data and the machine."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from dragoman.data.batch import BatchConfig
from dragoman.data.corpus import CorpusConfig, read_pairs
from dragoman.errors import InputError
from dragoman.models import EncoderDecoderConfig, preset
from dragoman.text.train import TokenizerConfig
from dragoman.train.config import TrainConfig
from dragoman.train.recipes.translate import DataConfig, TranslateRecipe
from dragoman.train.start import start_from
from dragoman.wording import counted

TOKENS_PER_PAIR = 30  # source and target pieces of an average sentence pair


@dataclass(frozen=True, slots=True)
class Size:
    """What suits corpora up to a number of pairs."""

    up_to: float
    preset: str
    dropout: float
    vocab_size: int
    epochs: float


SIZES = (
    Size(20_000, "tiny", 0.3, 4_000, 60),
    Size(100_000, "small", 0.3, 6_000, 40),
    Size(1_000_000, "small", 0.1, 16_000, 12),
    Size(float("inf"), "base", 0.1, 32_000, 5),
)


FINE_TUNING_EPOCHS = 10  # at most: the model has learnt the languages, and shall not forget them
FINE_TUNING_RATE = 3e-4


def auto_recipe(data: DataConfig, out: str, start: str | None = None) -> TranslateRecipe:
    """Choose preset, dropout, vocabulary and steps from the number of pairs.

    The less text, the smaller the model and its vocabulary and the more passes; a GPU gets larger
    batches, and fewer of them. Pre-norm, since it learns without a tuned warm-up (Xiong et al.,
    2020). A run that starts from the model folder `start` has its sizes, a lower rate and at most
    ten passes.
    """
    data = replace(
        data,
        src_lang=data.src_lang or _language(data.src),
        tgt_lang=data.tgt_lang or _language(data.tgt),
    )
    num_pairs = sum(_count(corpus) for corpus in data.training)
    if not num_pairs:
        raise InputError("there is nothing to learn from: the training files hold no pair")
    pairs = counted(num_pairs, "pair")
    size = next(size for size in SIZES if num_pairs <= size.up_to)
    max_tokens = 25_000 if torch.cuda.is_available() else 4096
    recipe = TranslateRecipe(out=out, data=data, batch=BatchConfig(max_tokens=max_tokens))
    num_batches = num_pairs * TOKENS_PER_PAIR / max_tokens
    if start is not None:
        epochs = min(size.epochs, FINE_TUNING_EPOCHS)
        return replace(
            start_from(recipe, start),
            description=f"Chosen for {pairs}: {epochs:g} more passes with {start}.",
            train=replace(_limits(epochs * num_batches), learning_rate=FINE_TUNING_RATE),
        )
    return replace(
        recipe,
        description=f"Chosen for {pairs}: {preset_words(size)}.",
        tokenizer=TokenizerConfig(vocab_size=size.vocab_size),
        model=replace(preset(size.preset), norm_position="pre", dropout=size.dropout),
        train=_limits(size.epochs * num_batches),
    )


def _limits(num_batches: float) -> TrainConfig:
    """When to stop, to validate and to save."""
    steps = max(300, round(num_batches))
    every = max(100, min(2000, steps // 20))
    return TrainConfig(
        max_steps=steps,
        warmup_steps=min(1000, steps // 10),
        validate_every=every,
        save_every=every,
        patience=8,
    )


def preset_words(size: Size) -> str:
    """Say what was chosen."""
    model: EncoderDecoderConfig = preset(size.preset)
    return (
        f"{size.preset} ({model.num_encoder_layers}+{model.num_decoder_layers} layers, d_model "
        f"{model.d_model}), dropout {size.dropout}, {size.vocab_size:,} pieces, {size.epochs:g} "
        f"passes, {counted(os.cpu_count() or 1, 'processor')}"
    )


def _language(file: str | None) -> str | None:
    """Read the language off a file's ending: `train.zh.xz` is zh, `train.txt` is unknown."""
    endings = [e[1:] for e in Path(file or "").suffixes if e not in (".gz", ".xz", ".zst")]
    return endings[-1] if endings and len(endings[-1]) == 2 and endings[-1].isalpha() else None


def _count(corpus: CorpusConfig) -> int:
    pairs: Iterator[object] = read_pairs(corpus)
    return sum(1 for _ in pairs)
