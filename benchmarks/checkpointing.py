"""What activation checkpointing costs in time, and what it saves in memory.

    python -m benchmarks checkpointing
    python -m benchmarks checkpointing --d-model 512 --length 1024

Forward and backward of one decoder, with and without it, in turn. The memory is that of the tensors
which the forward pass keeps for the backward pass, counted as autograd keeps them; weights aside.
"""

import argparse
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from benchmarks.paired import Figures, environment, paired, show
from dragoman.models import DecoderOnly, DecoderOnlyConfig
from dragoman.nn import Rotary

VOCAB = 1024
MIB = 2**20


def passes(model: DecoderOnly, ids_BL: Tensor, *, checkpointing: bool) -> int:
    """Run forward and backward once; returns the tokens."""
    model.decoder.checkpointing = checkpointing
    loss(model, ids_BL).backward()
    model.zero_grad()
    return ids_BL.numel()


def kept(model: DecoderOnly, ids_BL: Tensor, *, checkpointing: bool) -> float:
    """MiB that the forward pass keeps, weights aside."""
    model.decoder.checkpointing = checkpointing
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    storages: dict[int, int] = {}

    def pack(x: Tensor) -> Tensor:
        storages[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        total = loss(model, ids_BL)  # bound, so that nothing is freed and its place used again
    del total
    return sum(size for place, size in storages.items() if place not in weights) / MIB


def loss(model: DecoderOnly, ids_BL: Tensor) -> Tensor:
    """A number that all weights matter to."""
    return model(ids_BL).logsumexp(-1).mean()


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Measure, print the ratio and the memory, and return the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks checkpointing", description=__doc__)
    sizes = (("d-model", 256), ("layers", 6), ("rows", 8), ("length", 256), ("rounds", 7))
    for name, default in sizes:
        parser.add_argument(f"--{name}", type=int, default=default)
    chosen = parser.parse_args(arguments)
    config = DecoderOnlyConfig(
        vocab_size=VOCAB,
        d_model=chosen.d_model,
        num_heads=max(1, chosen.d_model // 64),
        d_ff=4 * chosen.d_model,
        num_layers=chosen.layers,
        norm_position="pre",
        positions=Rotary(),
    )
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = DecoderOnly(config).to(device)
    ids_BL = torch.randint(VOCAB, (chosen.rows, chosen.length), device=device)
    found = paired(
        partial(passes, model, ids_BL, checkpointing=True),
        partial(passes, model, ids_BL, checkpointing=False),
        chosen.rounds,
    )
    show("with checkpointing", found)
    memory = {on: kept(model, ids_BL, checkpointing=on) for on in (True, False)}
    print(f"kept for the backward pass   {memory[True]:.1f} MiB   without {memory[False]:.1f} MiB")
    figures = {"kept_mib": memory[True], "kept_mib_without": memory[False]}
    options = {"options": vars(chosen), "environment": environment()}
    return {"checkpointing": options | found | figures}
