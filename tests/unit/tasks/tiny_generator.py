"""A small generator with random weights that writes anything, even partial characters."""

from dataclasses import replace
from pathlib import Path

import torch
from tests.unit.tasks.tiny import make_tokenizer

from dragoman.folder.format import FolderConfig, GenerationDefaults, save_model
from dragoman.models import DecoderOnly, DecoderOnlyConfig
from dragoman.nn import Rotary
from dragoman.tasks.generate.generator import Generator
from dragoman.text.tokenizer import Tokenizer

DEFAULTS = GenerationDefaults(max_tokens=12, temperature=1.0)
PROMPTS = ["the cat", "a", "我喜欢", "😀 the", "the dog sees a", "", "big", "the cat", "学"]


def make_config(tokenizer: Tokenizer) -> DecoderOnlyConfig:
    """Return a config of one small layer."""
    return DecoderOnlyConfig(
        vocab_size=tokenizer.vocab_size,
        d_model=32,
        num_heads=4,
        num_kv_heads=2,
        d_ff=64,
        num_layers=2,
        positions=Rotary(),
        norm_position="pre",
        output_bias=True,
        tie_embeddings=False,
    )


def make_model(config: DecoderOnlyConfig, seed: int = 0) -> DecoderOnly:
    """Return a model with random weights that tends to end the text or to write its pieces."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = DecoderOnly(config)
    with torch.no_grad():
        model.output.weight *= 20.0
        model.output.bias[config.eos_id] += 4.0
        model.output.bias[260:] += 3.0
    return model.eval()


def make_generator(
    defaults: GenerationDefaults = DEFAULTS,
    config: DecoderOnlyConfig | None = None,
    tokenizer: Tokenizer | None = None,
) -> Generator:
    """Return a generator in memory."""
    tokenizer = tokenizer or make_tokenizer()
    model = make_model(config or make_config(tokenizer))
    return Generator(model, tokenizer, defaults=defaults)


def with_positions(scheme: object) -> DecoderOnlyConfig:
    """Return the config with another position scheme."""
    return replace(make_config(make_tokenizer()), positions=scheme)  # type: ignore[arg-type]


def save_generator(
    folder: Path, defaults: GenerationDefaults = DEFAULTS, tokenizer: Tokenizer | None = None
) -> Path:
    """Save such a model to a folder."""
    tokenizer = tokenizer or make_tokenizer()
    config = make_config(tokenizer)
    saved = FolderConfig(model=config, generation=defaults)
    save_model(folder, make_model(config), saved, tokenizers=(tokenizer, tokenizer))
    return folder
