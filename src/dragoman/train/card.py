"""The model card: what a person who finds the folder needs to know."""

import platform
from collections.abc import Mapping

import torch

from dragoman import __version__
from dragoman.models import EncoderDecoderConfig, count_parameters
from dragoman.train.loop import Progress
from dragoman.train.recipe import Recipe


def model_card(
    recipe: Recipe,
    model: EncoderDecoderConfig,
    progress: Progress,
    *,
    figures: Mapping[str, float],
    signature: str,
) -> str:
    """Write the card as Markdown: data, architecture, training, scores, versions, how to use."""
    data = recipe.data
    corpora = [f"- training: `{path}`" for corpus in data.named for path in corpus.paths]
    if data.valid_src:
        corpora.append(f"- validation: `{data.valid_src}`, `{data.valid_tgt}`")
    else:
        corpora.append(f"- validation: up to {data.hold_out} pairs held out from the training data")
    scores = [f"- {name}: {value:.4g}" for name, value in figures.items()]
    pair = f"{data.src_lang or 'source'} to {data.tgt_lang or 'target'}"
    parameters = sum(count_parameters(model).values())
    lines = [
        f"# Translation model, {pair}",
        "",
        recipe.description,
        "",
        "## Data",
        "",
        *corpora,
        *([f"- from: {data.source}"] if data.source else []),
        "",
        "## Model",
        "",
        f"Encoder-decoder Transformer, {parameters:,} parameters: {model.num_encoder_layers} "
        f"encoder and {model.num_decoder_layers} decoder layers, d_model {model.d_model}, "
        f"{model.num_heads} heads, d_ff {model.d_ff}, {model.norm_position}-norm.",
        "",
        "## Training",
        "",
        f"{progress.step:,} steps, {progress.tokens:,} tokens, "
        f"{progress.seconds / 60:.1f} minutes, seed {recipe.train.seed}. "
        "The whole recipe: `training/recipe.json`.",
        "",
        "## Validation",
        "",
        f"Greedy translations, sacreBLEU `{signature}`; the loss is in nats per target token.",
        "",
        *scores,
        "",
        "## Use",
        "",
        "    dragoman translate THIS_FOLDER < input.txt",
        "",
        f"Made by dragoman {__version__}, torch {torch.__version__}, "
        f"Python {platform.python_version()}.",
        "",
    ]
    return "\n".join(lines)
