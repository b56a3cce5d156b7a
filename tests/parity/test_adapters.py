"""Adapters in the format of `peft`: either library computes the same with the other's files."""

import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.foreign_folders import set_keys
from tests.parity.foreign import assert_same_logits
from tests.parity.test_foreign_folders import logits_of, saved, theirs
from tests.unit.models.test_lora import moved

from dragoman.errors import InputError
from dragoman.folder.adapters import merge_adapter, save_adapter
from dragoman.folder.format import FolderConfig
from dragoman.folder.opening import open_folder
from dragoman.models.build import Model
from dragoman.models.lora import LoraConfig, adapt

peft = pytest.importorskip("peft", reason="needs peft")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")  # from peft
MODULES = {
    "marian": (["q_proj", "v_proj", "fc1"], ("q_proj", "v_proj", "up")),
    "llama": (["q_proj", "k_proj", "down_proj"], ("q_proj", "k_proj", "down")),
    "bert": (["query", "value"], ("q_proj", "v_proj")),
    "t5": (["q", "v"], ("q_proj", "v_proj")),
    "gemma3": (["o_proj", "gate_proj"], ("out_proj", "up")),
}
"""Their names, and ours, of the same matrices."""


def opened(folder: Path) -> tuple[Model, FolderConfig]:
    """Open a folder; return its model and config."""
    found = open_folder(folder)
    return found.model, found.config


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The folder of a small Marian."""
    return saved("marian", tmp_path / "base")


@pytest.mark.parametrize("name", MODULES)
@torch.no_grad()
def test_peft_reads_ours(name: str, tmp_path: Path) -> None:
    """Logits with our adapters are theirs with the folder loaded by peft."""
    base = saved(name, tmp_path / "base")
    model, config = opened(base)
    lora = LoraConfig(rank=3, alpha=5.0, modules=MODULES[name][1])
    adapt(model, lora)
    moved(model, std=0.3)
    save_adapter(tmp_path, model, config, lora, base)
    fresh = type(theirs(name)).from_pretrained(base, dtype=torch.float32).eval()
    wanted = peft.PeftModel.from_pretrained(fresh, tmp_path / "adapter").eval()
    assert_same_logits(*logits_of(model.eval(), wanted))


@pytest.mark.parametrize("name", MODULES)
@torch.no_grad()
def test_ours_reads_peft(name: str, tmp_path: Path) -> None:
    """A folder that peft wrote, merged into our model, gives its logits."""
    base = saved(name, tmp_path / "base")
    fresh = type(theirs(name)).from_pretrained(base, dtype=torch.float32)
    settings = peft.LoraConfig(r=3, lora_alpha=5, target_modules=MODULES[name][0])
    wanted = peft.get_peft_model(fresh, settings).eval()
    moved(wanted, std=0.3)
    wanted.save_pretrained(tmp_path / "adapter")
    model, config = opened(base)
    merge_adapter(tmp_path / "adapter", model, config)
    assert_same_logits(*logits_of(model, wanted))


@torch.no_grad()
def test_adapters_have_the_names_of_any_version(tmp_path: Path) -> None:
    """Gemma 3's were renamed in transformers 4.52, and one may adapt the part for images too."""
    base = saved("gemma3", tmp_path / "base")
    model, config = opened(base)
    adapt(model, LoraConfig(rank=3, alpha=5.0, modules=MODULES["gemma3"][1]))
    moved(model, std=0.3)
    save_adapter(tmp_path, model, config, LoraConfig(rank=3, alpha=5.0), base)
    file = tmp_path / "adapter" / "adapter_model.safetensors"
    old = {
        name.replace("model.language_model.", "language_model.model."): tensor
        for name, tensor in load_file(file).items()
    }
    assert old.keys() != load_file(file).keys()
    old["base_model.model.vision_tower.layers.0.q_proj.lora_A.weight"] = torch.ones(3, 8)
    save_file(old, file)
    fresh, config = opened(base)
    merge_adapter(tmp_path / "adapter", fresh, config)
    assert_same_logits(*(each.eval()(torch.arange(6, 15)[None]) for each in (fresh, model)))


def written_by_peft(folder: Path, base: Path, **options: object) -> Any:  # noqa: ANN401 -- theirs
    """Write peft's adapter folder for the small Marian; return its model."""
    fresh = type(theirs("marian")).from_pretrained(base, dtype=torch.float32)
    settings = peft.LoraConfig(
        **{"r": 4, "lora_alpha": 5, "target_modules": ["q_proj", "v_proj"]} | options
    )
    wanted = peft.get_peft_model(fresh, settings).eval()
    moved(wanted, std=0.3)
    wanted.save_pretrained(folder)
    return wanted


@pytest.mark.parametrize(
    "options",
    [
        {"use_rslora": True},
        {"rank_pattern": {"v_proj": 2}, "alpha_pattern": {"encoder_attn.q_proj": 9}},
        {"use_rslora": True, "rank_pattern": {"layers.0.self_attn.q_proj": 3}},
        {"layers_to_transform": [1], "lora_dropout": 0.1, "init_lora_weights": "gaussian"},
    ],
    ids=str,
)
@torch.no_grad()
def test_scales_and_ranks_are_pefts(options: dict[str, object], base: Path, tmp_path: Path) -> None:
    """This covers rsLoRA, and matrices with their own ranks and scales."""
    wanted = written_by_peft(tmp_path / "adapter", base, **options)
    model, config = opened(base)
    merge_adapter(tmp_path / "adapter", model, config)
    assert_same_logits(*logits_of(model, wanted))


@pytest.mark.parametrize(
    "options",
    [
        {"use_dora": True},
        {"bias": "lora_only"},
        {"lora_bias": True},
        {"modules_to_save": ["fc1"]},
        {"trainable_token_indices": {"model.shared": [1, 2]}},
        {"init_lora_weights": "pissa"},
        {"init_lora_weights": "olora"},
        {"alpha_pattern": {".*q_proj": 3}},
        {"layer_replication": [[0, 1], [0, 1]]},
        {"alora_invocation_tokens": [1]},
        {"target_parameters": ["weight"]},
        {"a_key_of_tomorrow": 1},
    ],
    ids=str,
)
def test_other_kinds_are_refused(options: dict[str, object], base: Path, tmp_path: Path) -> None:
    """Anything that the stored adapters alone do not express is refused by the name of its key."""
    (key,) = options
    set_keys(fresh_adapter(base, tmp_path), "adapter_config.json", **options)
    model, config = opened(base)
    with pytest.raises(InputError, match=f"{key} .*by peft.$"):
        merge_adapter(tmp_path / "adapter", model, config)


def fresh_adapter(base: Path, run: Path) -> Path:
    """Write our adapter folder for the small Marian."""
    model, config = opened(base)
    lora = LoraConfig(rank=2)
    adapt(model, lora)
    save_adapter(run, model, config, lora, base)
    return run / "adapter"


def test_an_adapter_knows_its_base(base: Path, tmp_path: Path) -> None:
    """It is refused for another model of the same shapes, but not for a copy of its own."""
    folder = fresh_adapter(base, tmp_path)
    merge_adapter(folder, *opened(base))
    model, config = opened(base)
    with torch.no_grad():
        dict(model.named_parameters())["encoder.layers.0.self_attn.q_proj.weight"][0, 0] += 0.1
    with pytest.raises(InputError, match="adapts other weights than those of the model"):
        merge_adapter(folder, model, config)


def test_adapters_beside_whole_weights_are_not_applied_unsaid(base: Path, tmp_path: Path) -> None:
    """They may be merged already, so a warning says so; in their own folder they are added."""
    adapter = fresh_adapter(base, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opened(adapter)
    for file in adapter.iterdir():
        shutil.copy(file, base)
    with pytest.warns(UserWarning, match="used without the adapters beside them; to add them, "):
        opened(base)


def test_adapters_of_another_base(base: Path, tmp_path: Path) -> None:
    """Other shapes, other names and other numbers are refused, each in one sentence."""
    folder = fresh_adapter(base, tmp_path)
    stored, plain = load_file(folder / "adapter_model.safetensors"), folder / "adapter_config.json"
    model, config = opened(base)
    first = min(stored)
    for tensors, hf, message in (
        ({**stored, first: torch.zeros(2, 99)}, {}, "adapts another model"),
        ({first.replace("layers.0", "layers.7"): stored[first]}, {}, "which the model does not"),
        (stored, {"r": 0}, "r must be 1 or more"),
        (stored, {"lora_alpha": 1e300}, "must be finite numbers"),
        (stored, {"rank_pattern": {"q_proj": "2"}}, "r must be 1 or more"),
        ({k: v for k, v in stored.items() if k != first}, {}, "has lora_B alone"),
        ({}, {}, "holds no adapters"),
        ({**stored, first: stored[first] * float("nan")}, {}, "hold NaN or infinity"),
    ):
        save_file(tensors, folder / "adapter_model.safetensors")
        before = plain.read_text("utf-8")
        set_keys(folder, plain.name, **hf)
        with pytest.raises(InputError, match=message):
            merge_adapter(folder, model, config)
        plain.write_text(before, "utf-8")
