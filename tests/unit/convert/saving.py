"""Small configs of decoders and encoders, and folders of models that were never trained."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tests.unit.models.small import stir
from tests.unit.tasks.tiny import make_tokenizer

from dragoman.folder.format import FolderConfig, save_model
from dragoman.models import DecoderOnlyConfig, Model, build
from dragoman.models.config import ModelConfig
from dragoman.models.presets import decoder_preset, encoder_preset
from dragoman.nn import Rotary
from dragoman.text.tokenizer import Tokenizer

TOKENIZER = make_tokenizer()
SIZE: dict[str, Any] = {
    "vocab_size": TOKENIZER.vocab_size,
    "d_model": 32,
    "num_heads": 4,
    "d_ff": 48,
    "num_layers": 2,
}
OWN = DecoderOnlyConfig(**SIZE, positions=Rotary(), norm_position="pre")
LLAMA = replace(decoder_preset("llama-tiny"), **SIZE)
GPT2 = replace(decoder_preset("gpt2-tiny"), **SIZE)
BERT = replace(encoder_preset("bert-tiny"), **SIZE)
LABELS = ("bad", "good", "none of both")


def save(
    folder: Path,
    config: ModelConfig,
    tokenizer: Tokenizer = TOKENIZER,
    **defaults: Any,  # noqa: ANN401
) -> Model:
    """Save a model whose biases and norms, too, are drawn at random."""
    torch.manual_seed(1)
    model = build(config).eval()
    stir(model)
    tokenizers = (tokenizer, tokenizer)
    save_model(folder, model, FolderConfig(model=config, **defaults), tokenizers=tokenizers)
    return model
