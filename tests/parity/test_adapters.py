"""Adapters in the form of `peft`: what either library writes, the other computes the same with."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.parity.foreign import assert_same_logits, random_ids, run
from tests.parity.test_foreign_folders import KINDS, saved, theirs
from torch import Tensor, nn

from dragoman.errors import InputError
from dragoman.models.adapters import merge_adapter, save_adapter
from dragoman.models.build import Model
from dragoman.models.folder import load_model
from dragoman.models.lora import LoraConfig, adapt

peft = pytest.importorskip("peft", reason="needs peft")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")  # of peft
MODULES = {
    "marian": (["q_proj", "v_proj", "fc1"], ("q_proj", "v_proj", "up")),
    "llama": (["q_proj", "k_proj", "down_proj"], ("q_proj", "k_proj", "down")),
    "bert": (["query", "value"], ("q_proj", "v_proj")),
    "t5": (["q", "v"], ("q_proj", "v_proj")),
}
"""Names there, and here, of the same matrices."""


def ours(model: Model, encoder_decoder: bool) -> Tensor:  # noqa: FBT001
    """Our logits of some ids."""
    ids = random_ids(6, 28, 2, 9)
    found: Tensor = model(ids, ids) if encoder_decoder else model(ids)
    return found


def other(model: nn.Module, encoder_decoder: bool) -> Tensor:  # noqa: FBT001
    """Their logits of the same."""
    ids = random_ids(6, 28, 2, 9)
    return run(model, input_ids=ids, **({"decoder_input_ids": ids} if encoder_decoder else {}))


def moved(model: nn.Module) -> None:
    """Give every adapter an effect."""
    for name, parameter in model.named_parameters():
        if name.endswith((".B", "lora_B.default.weight")):
            nn.init.normal_(parameter, std=0.3)


@pytest.mark.parametrize("name", MODULES)
@torch.no_grad()
def test_peft_reads_ours(name: str, tmp_path: Path) -> None:
    """Logits with our adapters are theirs with the folder loaded by peft."""
    base = saved(name, tmp_path / "base")
    model, config = load_model(base)
    lora = LoraConfig(rank=3, alpha=5.0, modules=MODULES[name][1])
    adapt(model, lora)
    moved(model)
    save_adapter(tmp_path, model, config, lora, base)
    fresh = KINDS[name][0].from_pretrained(base, dtype=torch.float32).eval()
    wanted = peft.PeftModel.from_pretrained(fresh, tmp_path / "adapter").eval()
    pair = theirs(name).config.is_encoder_decoder
    assert_same_logits(ours(model.eval(), pair), other(wanted, pair))


@pytest.mark.parametrize("name", MODULES)
@torch.no_grad()
def test_ours_reads_peft(name: str, tmp_path: Path) -> None:
    """A folder that peft wrote, merged into our model, gives its logits."""
    base = saved(name, tmp_path / "base")
    fresh = KINDS[name][0].from_pretrained(base, dtype=torch.float32)
    settings = peft.LoraConfig(r=3, lora_alpha=5, target_modules=MODULES[name][0])
    wanted = peft.get_peft_model(fresh, settings).eval()
    moved(wanted)
    wanted.save_pretrained(tmp_path / "adapter")
    model, config = load_model(base)
    merge_adapter(tmp_path / "adapter", model, config)
    pair = theirs(name).config.is_encoder_decoder
    assert_same_logits(ours(model, pair), other(wanted, pair))


def test_adapters_of_another_base(tmp_path: Path) -> None:
    """Other shapes, other names and other kinds are refused, each in one sentence."""
    base = saved("marian", tmp_path / "base")
    model, config = load_model(base)
    lora = LoraConfig(rank=2)
    adapt(model, lora)
    folder = tmp_path / "adapter"
    save_adapter(tmp_path, model, config, lora, base)
    stored, plain = load_file(folder / "adapter_model.safetensors"), folder / "adapter_config.json"
    model, config = load_model(base)
    first = min(stored)
    for tensors, hf, message in (
        ({**stored, first: torch.zeros(2, 99)}, {}, "adapts another model"),
        ({first.replace("layers.0", "layers.7"): stored[first]}, {}, "which the model does not"),
        (stored, {"use_dora": True}, "use_dora = true is not supported"),
        (stored, {"r": 0}, "r must be 1 or more"),
    ):
        save_file(tensors, folder / "adapter_model.safetensors")
        before = plain.read_text("utf-8")
        plain.write_text(json.dumps(json.loads(before) | hf), "utf-8")
        with pytest.raises(InputError, match=message):
            merge_adapter(folder, model, config)
        plain.write_text(before, "utf-8")
