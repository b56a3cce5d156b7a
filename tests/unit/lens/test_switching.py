"""A head that is switched off gives zero, and its model stays whole."""

import pytest
import torch
from tests.unit.models.small import VARIANTS, distance, make_model, random_ids
from torch import Tensor, nn

from dragoman.lens.inspection import MapName
from dragoman.lens.switching import without_head
from dragoman.lens.trace import attentions


@pytest.mark.parametrize("name", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("variant", ["paper", "gqa", "head-dim"])
@torch.no_grad()
def test_the_output_of_one_head_is_zero(name: MapName, variant: str) -> None:
    """As if what the head gives were replaced by zeros before the output projection."""
    model = make_model(VARIANTS[variant])
    src_BS, tgt_BT = random_ids(1, 1, 5), random_ids(2, 1, 4)
    whole_BTV = model(src_BS, tgt_BT)
    for layer, head in ((0, 0), (1, 2)):
        part_BTV = without_head(model, name, layer, head)(src_BS, tgt_BT)
        attention = attentions(model)[name][layer]
        d = attention.head_dim

        def silence(_: nn.Module, read: tuple[Tensor, ...], d: int = d, head: int = head) -> Tensor:
            (z_BTZ,) = read
            z_BTZ = z_BTZ.clone()
            for column in range(head * d, (head + 1) * d):
                z_BTZ[..., column] = 0.0
            return z_BTZ

        handle = attention.out_proj.register_forward_pre_hook(silence)
        expected_BTV = model(src_BS, tgt_BT)
        handle.remove()
        assert distance(part_BTV, expected_BTV) < 1e-13
        assert distance(part_BTV, whole_BTV) > 1e-3
        assert torch.equal(model(src_BS, tgt_BT), whole_BTV)
