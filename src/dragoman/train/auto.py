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


def auto_recipe(data: DataConfig, out: str) -> TranslateRecipe:
    """Choose preset, dropout, vocabulary and steps from the number of pairs.

    The less text, the smaller the model and its vocabulary and the more passes; a GPU gets larger
    batches, and fewer of them. Pre-norm, since it learns without a tuned warm-up (Xiong et al.,
    2020).
    """
    data = replace(
        data,
        src_lang=data.src_lang or _language(data.src),
        tgt_lang=data.tgt_lang or _language(data.tgt),
    )
    num_pairs = sum(_count(corpus) for corpus in data.training)
    if not num_pairs:
        raise InputError("there is nothing to learn from: the training files hold no pair")
    size = next(size for size in SIZES if num_pairs <= size.up_to)
    max_tokens = 25_000 if torch.cuda.is_available() else 4096
    steps = max(300, round(size.epochs * num_pairs * TOKENS_PER_PAIR / max_tokens))
    every = max(100, min(2000, steps // 20))
    return TranslateRecipe(
        description=f"Chosen for {num_pairs:,} pairs: {preset_words(size)}.",
        out=out,
        data=data,
        tokenizer=TokenizerConfig(vocab_size=size.vocab_size),
        batch=BatchConfig(max_tokens=max_tokens),
        model=replace(preset(size.preset), norm_position="pre", dropout=size.dropout),
        train=TrainConfig(
            max_steps=steps,
            warmup_steps=min(1000, steps // 10),
            validate_every=every,
            save_every=every,
            patience=8,
        ),
    )


def preset_words(size: Size) -> str:
    """Say what was chosen."""
    model: EncoderDecoderConfig = preset(size.preset)
    return (
        f"{size.preset} ({model.num_encoder_layers}+{model.num_decoder_layers} layers, d_model "
        f"{model.d_model}), dropout {size.dropout}, {size.vocab_size:,} pieces, {size.epochs:g} "
        f"passes, {os.cpu_count()} processors"
    )


def _language(file: str | None) -> str | None:
    """Read the language off a file's ending: `train.zh.xz` is zh, `train.txt` is unknown."""
    endings = [e[1:] for e in Path(file or "").suffixes if e not in (".gz", ".xz", ".zst")]
    return endings[-1] if endings and len(endings[-1]) == 2 and endings[-1].isalpha() else None


def _count(corpus: CorpusConfig) -> int:
    pairs: Iterator[object] = read_pairs(corpus)
    return sum(1 for _ in pairs)
