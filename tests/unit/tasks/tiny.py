"""A small translator with random weights, and lines for it."""

from dataclasses import replace
from functools import cache
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import torch

from dragoman.decoding import Decoding
from dragoman.folder.format import FolderConfig, save_model
from dragoman.folder.opening import open_folder
from dragoman.models import EncoderDecoder, EncoderDecoderConfig
from dragoman.nn import Arithmetic
from dragoman.tasks.translate.languages import Languages
from dragoman.tasks.translate.translator import Translator
from dragoman.text.tags import tags_of
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.train import TokenizerConfig, train_tokenizer, with_specials

WORDS = ("the", "a", "cat", "dog", "house", "tree", "sees", "runs", "big", *"我你喜欢学习吗。")
DECODING = Decoding(
    split_sentences=False,
    beam_size=3,
    length_penalty=1.0,
    max_length_factor=0.5,
    max_length_constant=8,
)


def random_lines(count: int, seed: int = 0, longest: int = 20) -> list[str]:
    """Return lines of one to `longest` words."""
    draw = Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, longest))) for _ in range(count)]


@cache
def make_tokenizer(vocab_size: int = 320, *specials: str) -> Tokenizer:
    """Train a tokenizer on some lines, once, since nothing modifies it."""
    config = TokenizerConfig(vocab_size=vocab_size, specials=specials)
    return train_tokenizer(random_lines(100, seed=9), config)


def make_config(tokenizer: Tokenizer) -> EncoderDecoderConfig:
    """Return a config of two small layers."""
    return EncoderDecoderConfig(
        src_vocab_size=tokenizer.vocab_size,
        tgt_vocab_size=tokenizer.vocab_size,
        d_model=32,
        num_heads=4,
        d_ff=64,
        num_encoder_layers=1,
        num_decoder_layers=1,
        tie_embeddings="none",
        output_bias=True,
    )


def make_model(config: EncoderDecoderConfig, seed: int = 0) -> EncoderDecoder:
    """Return a model with random weights, confident predictions and a tendency to end."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = EncoderDecoder(config)
    with torch.no_grad():
        model.output.weight *= 8.0
        model.output.bias[config.eos_id] += 5.0
    return model


def make_translator(
    decoding: Decoding = DECODING,
    tokenizer: Tokenizer | None = None,
    *,
    several: bool = False,
    seed: int = 0,
    precision: Arithmetic = "fp32",
) -> Translator:
    """Return a translator in memory, of one pair of languages or of several."""
    tokenizer, languages = tokenizer or make_tokenizer(), None
    if several:
        tokenizer = with_specials(tokenizer, tags_of(["en", "zh"], told_source=True))
        directions = (("en", "zh"), ("zh", "en"))
        languages = Languages(src_tokenizer=tokenizer, directions=directions).between("zh", "en")
    model = make_model(make_config(tokenizer), seed)
    return Translator(
        *(model, tokenizer, tokenizer), decoding=decoding, languages=languages, precision=precision
    )


def save_translator(
    folder: Path,
    config: EncoderDecoderConfig | None = None,
    /,
    **decoding: Any,  # noqa: ANN401 -- an option's value
) -> Path:
    """Save such a model, or one of another config, with more decoding options."""
    tokenizer = make_tokenizer()
    config = config or make_config(tokenizer)
    options = replace(DECODING, **decoding)
    about = FolderConfig(model=config, decoding=options, src_lang="en", tgt_lang="zh")
    save_model(folder, make_model(config), about, tokenizers=(tokenizer, tokenizer))
    return folder


def save_another(folder: Path) -> None:
    """Replace the model in a folder by another one of the same shape."""
    old = open_folder(folder)
    weights = {name: -weight for name, weight in old.load().state_dict().items()}
    save_model(folder, weights, old.config, tokenizers=old.tokenizers)


def save_several(folder: Path, *codes: str) -> Path:
    """Save a model that translates between each two of several languages."""
    tokenizer = with_specials(make_tokenizer(), tags_of(codes, told_source=True))
    sizes = make_config(tokenizer)
    about = FolderConfig(model=sizes, decoding=DECODING, directions=tuple(permutations(codes, 2)))
    save_model(folder, make_model(sizes), about, tokenizers=(tokenizer, tokenizer))
    return folder
