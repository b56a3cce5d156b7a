"""The model against `torch.nn.Transformer` with the same weights."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from tests.unit.models.small import PAD, SMALL, distance, make_model, random_sentences
from torch import Tensor, nn

from dragoman.models import EncoderDecoder, EncoderDecoderConfig


class TorchTransformer(nn.Module):
    """The paper's model from `torch.nn` alone, with all three matrices tied."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        shape = (config.d_model, config.num_heads, config.d_ff, 0.0, config.activation)
        pre = config.norm_position == "pre"
        encoder_layer = nn.TransformerEncoderLayer(*shape, batch_first=True, norm_first=pre)
        decoder_layer = nn.TransformerDecoderLayer(*shape, batch_first=True, norm_first=pre)
        self.embedding = nn.Embedding(config.src_vocab_size, config.d_model, padding_idx=PAD)
        self.encoder = nn.TransformerEncoder(
            encoder_layer,
            config.num_encoder_layers,
            nn.LayerNorm(config.d_model),
            enable_nested_tensor=False,
        )
        self.decoder = nn.TransformerDecoder(
            decoder_layer, config.num_decoder_layers, nn.LayerNorm(config.d_model)
        )

    def forward(self, src_BS: Tensor, tgt_BT: Tensor) -> Tensor:
        """Return the logits, with torch's masks (True hides)."""
        hidden_keys_BS = src_BS == PAD
        num_queries = tgt_BT.shape[1]
        future_TT = torch.ones(num_queries, num_queries, dtype=torch.bool).triu(1)
        memory_BSD = self.encoder(self._embed(src_BS), src_key_padding_mask=hidden_keys_BS)
        hidden_BTD = self.decoder(
            self._embed(tgt_BT),
            memory_BSD,
            tgt_mask=future_TT,
            tgt_key_padding_mask=tgt_BT == PAD,
            memory_key_padding_mask=hidden_keys_BS,
        )
        logits_BTV: Tensor = hidden_BTD @ self.embedding.weight.T
        return logits_BTV

    def _embed(self, ids_BL: Tensor) -> Tensor:
        x_BLD: Tensor = self.embedding(ids_BL)
        length, d_model = x_BLD.shape[1:]
        angles = np.arange(length)[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
        table = np.empty((length, d_model))
        table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
        return x_BLD * math.sqrt(d_model) + torch.from_numpy(table).to(x_BLD.dtype)


class Match(NamedTuple):
    """One of our parameters and the rows of torch's parameter with the same meaning."""

    ours: str
    theirs: str
    rows: slice = slice(None)


def matches(config: EncoderDecoderConfig) -> Iterator[Match]:
    """Yield the names of every parameter in both models."""
    yield Match("src_embedding.weight", "embedding.weight")
    d = config.d_model
    for stack, depth in (
        ("encoder", config.num_encoder_layers),
        ("decoder", config.num_decoder_layers),
    ):
        attentions = {"self_attn": "self_attn"}
        norms = {"self_attn": "norm1", "ffn": "norm2"}
        if stack == "decoder":
            attentions["cross_attn"] = "multihead_attn"
            norms = {"self_attn": "norm1", "cross_attn": "norm2", "ffn": "norm3"}
        for kind in ("weight", "bias"):
            yield Match(f"{stack}.final_norm.{kind}", f"{stack}.norm.{kind}")
            for i in range(depth):
                layer = f"{stack}.layers.{i}"
                for ours, theirs in attentions.items():
                    packed = f"{layer}.{theirs}.in_proj_{kind}"
                    yield Match(f"{layer}.{ours}.q_proj.{kind}", packed, slice(d))
                    yield Match(f"{layer}.{ours}.kv_proj.{kind}", packed, slice(d, None))
                    out = f"{layer}.{theirs}.out_proj.{kind}"
                    yield Match(f"{layer}.{ours}.out_proj.{kind}", out)
                yield Match(f"{layer}.ffn.up.{kind}", f"{layer}.linear1.{kind}")
                yield Match(f"{layer}.ffn.down.{kind}", f"{layer}.linear2.{kind}")
                for sublayer, norm in norms.items():
                    yield Match(
                        f"{layer}.{sublayer}_residual.norm.{kind}", f"{layer}.{norm}.{kind}"
                    )


def pair(
    config: EncoderDecoderConfig, dtype: torch.dtype
) -> tuple[EncoderDecoder, TorchTransformer]:
    """Build both models with our weights; no parameter of either is left out."""
    ours = make_model(config, dtype).train()
    theirs = TorchTransformer(config).to(dtype).train()
    mine, its = dict(ours.named_parameters()), dict(theirs.named_parameters())
    found = list(matches(config))
    assert {match.ours for match in found} == mine.keys()
    assert {match.theirs for match in found} == its.keys()
    with torch.no_grad():
        for match in found:
            its[match.theirs][match.rows] = mine[match.ours]
    return ours, theirs


CONFIGS = {
    f"{position}-{activation}": replace(
        SMALL,
        num_encoder_layers=3,
        num_decoder_layers=2,
        norm_position=position,
        activation=activation,
        final_norm=True,
    )
    for position in ("post", "pre")
    for activation in ("relu", "gelu")
}
TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-5}


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", CONFIGS)
def test_logits_and_every_gradient_are_those_of_torch(name: str, dtype: torch.dtype) -> None:
    """With copied weights and padding on both sides, logits and all gradients agree."""
    config, tolerance = CONFIGS[name], TOLERANCES[dtype]
    ours, theirs = pair(config, dtype)
    src_BS = random_sentences(1, [7, 3, 5])
    tgt_BT = random_sentences(2, [4, 6, 1])
    real_BT1 = (tgt_BT != PAD)[..., None]

    logits, expected = ours(src_BS, tgt_BT), theirs(src_BS, tgt_BT)
    assert distance(logits * real_BT1, expected * real_BT1) < tolerance

    slopes = torch.randn_like(expected) * real_BT1 / real_BT1.sum()
    (logits * slopes).sum().backward()
    (expected * slopes).sum().backward()
    mine, its = dict(ours.named_parameters()), dict(theirs.named_parameters())
    for match in matches(config):
        grad, wanted = mine[match.ours].grad, its[match.theirs].grad
        assert grad is not None
        assert wanted is not None
        assert wanted.abs().max() > 0
        assert distance(grad, wanted[match.rows]) < tolerance, match.ours
