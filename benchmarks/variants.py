"""One small decoder, every position scheme, pattern and block: what each is worth on one text.

    python -m benchmarks variants
    python -m benchmarks variants --steps 1000 --only rotary window

Same text (tinyshakespeare, its last tenth held out), same seed, same steps; only the part under its
name differs. Told are the loss in nats per character at the context of training, the loss at four
times that context (where a scheme allows it), and the time of a step beside one of "rotary", both
taken in turn. One seed each: differences of a hundredth mean nothing.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch.nn.functional import cross_entropy

from benchmarks.paired import Figures, environment, paired
from dragoman.data.documents import DocumentDataset, prepare_documents
from dragoman.errors import InputError
from dragoman.folder.opening import open_folder
from dragoman.models import DecoderOnly, DecoderOnlyConfig
from dragoman.nn import (
    ALiBi,
    Causal,
    DynamicScaling,
    Fixed,
    Learned,
    LinearAttention,
    Longformer,
    NoPositions,
    RelativeBias,
    Rotary,
    Rwkv,
    Sinusoidal,
    SlidingWindow,
    Strided,
)
from dragoman.tasks.generate.batches import PackConfig, PackedBatches
from dragoman.tasks.generate.recipe import GenerateRecipe, TextFiles
from dragoman.tasks.task import train
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.train import TokenizerConfig
from dragoman.train.config import TrainConfig

LENGTH = 128
FURTHER = 4  # times the context of training
ROWS = 16
MODEL = DecoderOnlyConfig(
    d_model=128,
    num_heads=4,
    d_ff=512,
    num_layers=4,
    dropout=0.0,
    activation="gelu",
    norm_position="pre",
    init="gpt2",
    positions=Rotary(),
)
VARIANTS = {
    "rotary": MODEL,
    "rotary, dynamic": replace(
        MODEL, positions=Rotary(scaling=DynamicScaling(factor=FURTHER, trained_length=LENGTH))
    ),
    "sinusoidal": replace(MODEL, positions=Sinusoidal(), scale_embedding=True),
    "learned": replace(MODEL, positions=Learned(max_length=LENGTH)),
    "relative-bias": replace(MODEL, positions=RelativeBias()),
    "alibi": replace(MODEL, positions=ALiBi()),
    "none": replace(MODEL, positions=NoPositions()),
    "window": replace(MODEL, patterns=(SlidingWindow(size=32),)),
    "window, window, full": replace(
        MODEL, patterns=(SlidingWindow(size=32), SlidingWindow(size=32), Causal())
    ),
    "longformer": replace(MODEL, patterns=(Longformer(window=32, causal=True),)),
    "strided": replace(MODEL, patterns=(Strided(stride=12),)),
    "fixed": replace(MODEL, patterns=(Fixed(stride=16, summary=4),)),
    "linear": replace(MODEL, patterns=(LinearAttention(),)),
    "linear with decay": replace(MODEL, patterns=(LinearAttention(decay="retnet"),)),
    "rwkv": replace(  # whose gates take what is less of the width
        MODEL,
        patterns=(Rwkv(),),
        positions=NoPositions(),
        activation="relu",
        d_ff=444,
        embedding_norm=True,
    ),
    "grouped-query": replace(MODEL, num_kv_heads=2),
    "multi-query": replace(MODEL, num_kv_heads=1),
    "query/key norm": replace(MODEL, qk_norm=True),
    "ReLU": replace(MODEL, activation="relu"),
    "SwiGLU": replace(MODEL, activation="silu", gated=True, d_ff=344),
    "RMSNorm": replace(MODEL, norm="rms"),
    "post-norm": replace(MODEL, norm_position="post"),
    "DeepNorm": replace(MODEL, norm_position="deepnorm", init="xavier"),
    "Xavier": replace(MODEL, init="xavier"),
}


def measure(name: str, options: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Train one variant and return its figures."""
    model, steps = VARIANTS[name], options.steps
    recipe = GenerateRecipe(
        description=name,
        out=str(out),
        data=TextFiles(train=("tinyshakespeare/train.txt",)),
        tokenizer=TokenizerConfig(model="characters", vocab_size=400),
        batch=PackConfig(length=LENGTH, rows=ROWS),
        model=model,
        train=TrainConfig(
            max_steps=steps,
            learning_rate=2e-3,
            schedule="cosine",
            warmup_steps=steps // 20,
            label_smoothing=0.0,
            validate_every=steps,
            save_every=steps,
            average_last=1,
        ),
    )
    train(recipe, console=Console(quiet=True))
    loaded = open_folder(out).model
    assert isinstance(loaded, DecoderOnly)
    tokenizer = Tokenizer.load(out / "tokenizer.json")
    data = recipe.data
    _, held = prepare_documents(
        data.training, data.split, tokenizer, data.cache_folder, data.hold_out
    )
    assert held is not None
    figures: dict[str, Any] = {
        "parameters": sum(parameter.numel() for parameter in loaded.parameters()),
        "time": relative_time(model, len(loaded.output.weight), options.rounds),
        "nats_per_char": nats_per_char(loaded, held, LENGTH),
    }
    try:
        figures["nats_per_char_further"] = nats_per_char(loaded, held, FURTHER * LENGTH)
    except InputError:  # learned positions end with the context of training
        figures["nats_per_char_further"] = None
    return figures


def relative_time(config: DecoderOnlyConfig, vocab_size: int, rounds: int) -> float:
    """How long a step takes, forward and backward, beside one of the first variant."""
    ids = torch.randint(4, vocab_size, (ROWS, LENGTH))
    models = (DecoderOnly(replace(one, vocab_size=vocab_size)) for one in (config, MODEL))
    return 1.0 / float(paired(*(partial(_step, model, ids) for model in models), rounds)["ratio"])


def _step(model: DecoderOnly, ids_BL: torch.Tensor) -> int:
    model.zero_grad()
    cross_entropy(model(ids_BL[:, :-1]).flatten(0, 1), ids_BL[:, 1:].flatten()).backward()
    return ids_BL.numel()


@torch.inference_mode()
def nats_per_char(model: DecoderOnly, held: DocumentDataset, length: int) -> float:
    """The loss over the whole held-out text, read in windows of `length`."""
    batches = PackedBatches(held, PackConfig(length=length, rows=2048 // length)).fixed()
    return sum(GenerateRecipe.loss(model, batch, 0.0).item() for batch in batches) / held.num_chars


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Train every variant, or those that are named, and return the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks variants", description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7, help="of a step of each, in turn")
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    options = parser.parse_args(arguments)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only:
            found[name] = measure(name, options, Path(folder) / name)
            one = found[name]
            further = one["nats_per_char_further"]
            print(
                f"{name:<22} {one['parameters']:>9,} parameters  {one['nats_per_char']:.3f} nats "
                f"per character, {'none' if further is None else format(further, '.3f')} at "
                f"{FURTHER * LENGTH}  time {one['time']:.2f}",
                flush=True,
            )
    return {"variants": {"steps": options.steps, "environment": environment(), "variants": found}}
