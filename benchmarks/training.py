"""Tokens per second of a training step: ours against `torch.nn.Transformer`.

Same size, same batches, dropout, label smoothing, clipping, fused Adam and autocast on both sides;
one round is one step on every batch. Sources and targets are random ids without padding, so that
tokens are tokens.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.paired import Figures, environment, paired, show
from dragoman.models import EncoderDecoder, EncoderDecoderConfig
from dragoman.nn import autocast, causal_mask, sinusoidal_table
from dragoman.tasks.translate.batches import PairBatch
from dragoman.train.config import TrainConfig
from dragoman.train.objective import summed_loss
from dragoman.train.optimizer import make_optimizer
from dragoman.train.step import Stepper

LENGTHS = (12, 16, 20, 28)  # as in image captions
POSITIONS = 64


class PeerModel(nn.Module):
    """torch's Transformer with tied, scaled embeddings and sinusoidal positions."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.src_vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.register_buffer("table", sinusoidal_table(POSITIONS, config.d_model).float())
        self.dropout = nn.Dropout(config.dropout)
        self.transformer = nn.Transformer(
            config.d_model,
            config.num_heads,
            config.num_encoder_layers,
            config.num_decoder_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
            norm_first=config.norm_position == "pre",
        )

    def forward(self, src_BS: Tensor, tgt_BT: Tensor, pad_BS: Tensor | None = None) -> Tensor:
        """The logits of every target position; `pad` marks the padding of sources."""
        length = tgt_BT.shape[1]
        hidden = self.transformer(
            self._embed(src_BS),
            self._embed(tgt_BT),
            tgt_mask=~causal_mask(length, length, tgt_BT.device),
            tgt_is_causal=True,
            src_key_padding_mask=pad_BS,
            memory_key_padding_mask=pad_BS,
        )
        return F.linear(hidden, self.embedding.weight)

    def _embed(self, ids: Tensor) -> Tensor:
        table: Tensor = self.get_buffer("table")
        scale = table.shape[1] ** 0.5
        return self.dropout(self.embedding(ids) * scale + table[: ids.shape[1]])


def make_batches(vocab_size: int, max_tokens: int, device: torch.device) -> list[PairBatch]:
    """One batch of each length, of about `max_tokens` source and target tokens."""
    generator = torch.Generator().manual_seed(1)
    batches = []
    for length in LENGTHS:
        size = (max(1, max_tokens // (2 * length)), length)
        src, tgt_in, tgt_out = torch.randint(4, vocab_size, (3, *size), generator=generator)
        batch = PairBatch(
            src_BS=src,
            tgt_in_BT=tgt_in,
            tgt_out_BT=tgt_out,
            num_targets=tgt_out.numel(),
            num_tokens=src.numel() + tgt_out.numel(),
            indices=np.arange(size[0]),
        )
        batches.append(batch.to(device))
    return batches


def our_epoch(stepper: Stepper[PairBatch], batches: Sequence[PairBatch]) -> int:
    """Our step on every batch; returns the tokens."""
    return sum(stepper([batch], 1e-4).num_tokens for batch in batches)


def peer_epoch(
    model: PeerModel,
    optimizer: torch.optim.Optimizer,
    precision: Callable[[], torch.autocast],
    batches: Sequence[PairBatch],
) -> int:
    """The usual step on every batch; returns the tokens."""
    for batch in batches:
        with precision():
            logits = model(batch.src_BS, batch.tgt_in_BT)
            targets = batch.tgt_out_BT.flatten()
            loss = F.cross_entropy(logits.flatten(0, 1), targets, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
    return sum(batch.num_tokens for batch in batches)


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Measure, print the ratio and return the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks training", description=__doc__)
    for name, default in (("d-model", 256), ("layers", 6), ("decoder-layers", 2), ("vocab", 8000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--max-tokens", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    chosen = parser.parse_args(arguments)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = EncoderDecoderConfig(
        src_vocab_size=chosen.vocab,
        tgt_vocab_size=chosen.vocab,
        d_model=chosen.d_model,
        num_heads=max(1, chosen.d_model // 64),
        d_ff=4 * chosen.d_model,
        num_encoder_layers=chosen.layers,
        num_decoder_layers=chosen.decoder_layers,
        attention_dropout=0.1,  # where torch's layers have it
        ffn_dropout=0.1,
    )
    precision = partial(autocast, chosen.precision, device)
    model, peer = EncoderDecoder(config).to(device), PeerModel(config).to(device)
    settings = TrainConfig(max_steps=1)
    stepper: Stepper[PairBatch] = Stepper(
        model=model,
        optimizer=make_optimizer(model, settings),
        precision=precision,
        loss=lambda batch: summed_loss(
            model, batch.src_BS, batch.tgt_in_BT, batch.tgt_out_BT, settings.label_smoothing
        ),
        clip_norm=settings.clip_norm,
    )
    peer_optimizer = make_optimizer(peer, settings)
    batches = make_batches(chosen.vocab, chosen.max_tokens, device)
    found = paired(
        partial(our_epoch, stepper, batches),
        partial(peer_epoch, peer, peer_optimizer, precision, batches),
        chosen.rounds,
    )
    show(f"training {chosen.precision}", found)
    return {"training": {"options": vars(chosen), "environment": environment(), **found}}
