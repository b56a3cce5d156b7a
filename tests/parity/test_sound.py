"""Sound as in Hugging Face's Whisper: log-mel frames, and the encoder with random weights."""

import numpy as np
import pytest
import torch
from tests.parity.foreign import DTYPES, TOLERANCE, assert_same_logits, make_theirs, run
from torch import Tensor
from transformers import PreTrainedModel, WhisperConfig, WhisperFeatureExtractor
from transformers.models.whisper.modeling_whisper import WhisperEncoder

from dragoman.models import EncoderOnly, EncoderOnlyConfig
from dragoman.nn import Sinusoidal, SoundEmbedding, log_mel

WHISPER = {
    "num_mel_bins": 7,
    "d_model": 12,
    "encoder_layers": 2,
    "encoder_attention_heads": 3,
    "encoder_ffn_dim": 20,
    "max_source_positions": 17,
}


@pytest.mark.parametrize("num_mels", [80, 128])
@pytest.mark.parametrize("length", [201, 1_600, 16_000, 20_357])
def test_log_mel_frames_agree(length: int, num_mels: int) -> None:
    """The input is noise of growing loudness, of several lengths, alone and in a batch."""
    samples = torch.randn(3, length) * torch.linspace(0, 0.3, length) ** 4
    theirs = WhisperFeatureExtractor(feature_size=num_mels)
    wanted = theirs(
        samples.numpy(),
        sampling_rate=16_000,
        padding="do_not_pad",
        truncation=False,
        return_tensors="pt",
    )["input_features"]
    got = log_mel(samples, num_mels=num_mels)
    assert got.shape == wanted.shape == (3, num_mels, length // 160)
    assert float((got - wanted).abs().max()) < 1e-5
    torch.testing.assert_close(log_mel(samples[1], num_mels=num_mels), got[1], rtol=0, atol=1e-6)


def test_thirty_seconds_agree() -> None:
    """Padded with zeros to 30 s, as for Whisper, float64 agrees with their float32."""
    samples = 0.1 * torch.randn(5_000)
    wanted = WhisperFeatureExtractor()(samples.numpy(), sampling_rate=16_000)["input_features"][0]
    filled = torch.nn.functional.pad(samples, (0, 480_000 - 5_000))
    assert float(np.abs(log_mel(filled).numpy() - wanted).max()) < 1e-5
    assert float(np.abs(log_mel(filled.double()).numpy() - wanted).max()) < 1e-4


def ours_of(theirs: PreTrainedModel) -> tuple[SoundEmbedding, EncoderOnly]:
    """Return our two modules with their weights; their keys have no bias, so ours is zero."""
    config = EncoderOnlyConfig(
        vocab_size=1,
        d_model=WHISPER["d_model"],
        num_heads=WHISPER["encoder_attention_heads"],
        d_ff=WHISPER["encoder_ffn_dim"],
        num_layers=WHISPER["encoder_layers"],
        norm_position="pre",
        activation="gelu",
        positions=Sinusoidal(layout="halves", exponent="d/2-1"),
    )
    sounds = SoundEmbedding(WHISPER["num_mel_bins"], WHISPER["d_model"]).to(theirs.dtype)
    encoder = EncoderOnly(config).to(theirs.dtype).eval()
    weights: dict[str, Tensor] = dict(theirs.state_dict())
    sounds.load_state_dict({n: w for n, w in weights.items() if n.startswith("conv")})
    mapped: dict[str, Tensor] = {"embedding.weight": encoder.embedding.weight}
    for end in ("weight", "bias"):
        mapped[f"encoder.final_norm.{end}"] = weights[f"layer_norm.{end}"]
        for number in range(WHISPER["encoder_layers"]):
            here, there = f"encoder.layers.{number}.", f"layers.{number}."
            for ours, name in (
                ("self_attn.q_proj", "self_attn.q_proj"),
                ("self_attn.out_proj", "self_attn.out_proj"),
                ("self_attn_residual.norm", "self_attn_layer_norm"),
                ("ffn.up", "fc1"),
                ("ffn.down", "fc2"),
                ("ffn_residual.norm", "final_layer_norm"),
            ):
                mapped[f"{here}{ours}.{end}"] = weights[f"{there}{name}.{end}"]
            value = weights[f"{there}self_attn.v_proj.{end}"]
            key = weights.get(f"{there}self_attn.k_proj.{end}", torch.zeros_like(value))
            mapped[f"{here}self_attn.kv_proj.{end}"] = torch.cat([key, value])
    encoder.load_state_dict(mapped)
    return sounds, encoder


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_the_encoder_agrees(dtype: torch.dtype) -> None:
    """Convolutions, positions, layers and the gradient of the input agree."""
    theirs = make_theirs(WhisperEncoder, WhisperConfig(**WHISPER), dtype)
    sounds, encoder = ours_of(theirs)
    frames = torch.randn(2, WHISPER["num_mel_bins"], 34, dtype=dtype, requires_grad=True)
    got, wanted = encoder.encode(sounds(frames)), run(theirs, input_features=frames)
    assert got.shape == (2, 17, WHISPER["d_model"])
    assert_same_logits(got, wanted)
    ours, others = (torch.autograd.grad(out.square().sum(), frames)[0] for out in (got, wanted))
    assert float((ours - others).abs().max() / others.abs().max()) < TOLERANCE[dtype]
