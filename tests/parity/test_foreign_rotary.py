"""Rotary frequencies of every scaling against Hugging Face's functions."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parity.foreign import computing_in
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from dragoman.folder.foreign.rotary import rotary

FACTORS = st.floats(1.0, 40.0)
SCALINGS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "linear": st.fixed_dictionaries({"factor": FACTORS}),
    "dynamic": st.fixed_dictionaries({"factor": FACTORS}),
    "yarn": st.fixed_dictionaries(
        {"factor": FACTORS, "original_max_position_embeddings": st.sampled_from([4, 64, 4096])},
        optional={
            "attention_factor": st.floats(0.1, 3.0),
            "beta_fast": st.floats(8.0, 40.0),
            "beta_slow": st.floats(0.5, 4.0),
        },
    ),
    "yarn by mscale": st.fixed_dictionaries(
        {
            "factor": FACTORS,
            "original_max_position_embeddings": st.just(64),
            "mscale": st.floats(0.1, 2.0),
            "mscale_all_dim": st.floats(0.1, 2.0),
        }
    ),
    "llama3": st.fixed_dictionaries(
        {
            "factor": FACTORS,
            "original_max_position_embeddings": st.sampled_from([64, 8192]),
            "low_freq_factor": st.floats(0.5, 2.0),
            "high_freq_factor": st.floats(2.5, 8.0),
        }
    ),
}


@pytest.mark.parametrize("kind", SCALINGS)
@settings(max_examples=25)
@given(st.data())
def test_angles_are_theirs(kind: str, data: st.DataObject) -> None:
    """Cosines and sines, with what queries and keys are multiplied by, at every position.

    Theirs is computed in float64 here, since its float32 loses the angles of far positions.
    """
    head_dim = data.draw(st.sampled_from([4, 6, 16, 64]))
    length = data.draw(st.sampled_from([5, 100]))
    base = data.draw(st.floats(50.0, 1e6))
    drawn = data.draw(SCALINGS[kind])
    config = LlamaConfig(
        hidden_size=head_dim,
        num_attention_heads=1,
        max_position_embeddings=32,
        rope_parameters={"rope_type": kind.removesuffix(" by mscale"), "rope_theta": base, **drawn},
    )
    x = torch.zeros(1, length, head_dim, dtype=torch.float64)
    with computing_in(torch.float64):
        theirs = LlamaRotaryEmbedding(config)
        cos, sin = theirs(x, torch.arange(length)[None])
    ours = rotary(config.to_dict()).make_rotation(head_dim).angles(range(length), x)
    half = head_dim // 2
    torch.testing.assert_close(ours.cos_Lp, cos[0, :, :half], rtol=0, atol=1e-9)
    torch.testing.assert_close(ours.sin_Lp, sin[0, :, :half], rtol=0, atol=1e-9)
