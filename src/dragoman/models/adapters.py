"""Adapters as the `peft` library keeps them: `adapter_config.json`, `adapter_model.safetensors`.

Tensors have the names of the model in transformers, where it is from there, so that `peft` loads
what is written here; those of a model of our own have our names, with `k_proj` and `v_proj`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

from dragoman.errors import DragomanError, InputError, did_you_mean
from dragoman.files.writing import replacing
from dragoman.models.build import reading
from dragoman.models.config import EncoderOnlyConfig
from dragoman.models.folder import FolderConfig
from dragoman.models.foreign import FAMILIES
from dragoman.models.foreign.files import read_object
from dragoman.models.heads import NoHead
from dragoman.models.lora import Adapted, LoraConfig, targets

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
"""What peft puts before the names of a model."""
ONLY: Mapping[str, tuple[Any, ...]] = {
    "peft_type": ("LORA",),
    "bias": ("none",),
    "use_dora": (False, None),
    "use_rslora": (False, None),
    "rank_pattern": ({}, None),
    "alpha_pattern": ({}, None),
    "modules_to_save": ([], None),
}
"""Keys of peft's config, and the values that are read here."""


def save_adapter(
    run: Path, model: nn.Module, config: FolderConfig, lora: LoraConfig, base: Path
) -> None:
    """Write a model's adapters beside it, in the folder `adapter`; `base` is what they adapt.

    Raises InputError for a family where an adapter of ours is none of theirs (GPT-2 has one matrix
    for queries, keys and values).
    """
    names = _names_there(model, config)
    tensors = dict[str, torch.Tensor]()
    for path, module in model.named_modules():
        if isinstance(module, Adapted):
            for part in module.adapters:
                name = names[f"{path.rpartition('.')[0]}.{part}"]
                for letter in ("A", "B"):
                    tensor = getattr(module.lora[part], letter).detach().cpu().contiguous()
                    tensors[f"{PREFIX}{name}.lora_{letter}.weight"] = tensor
    plain = {
        "peft_type": "LORA",
        "base_model_name_or_path": str(base.absolute()),
        "r": lora.rank,
        "lora_alpha": lora.alpha,
        "lora_dropout": lora.dropout,
        "target_modules": sorted({key[len(PREFIX) :].rpartition(".lora_")[0] for key in tensors}),
        "bias": "none",
        "inference_mode": True,
    }
    folder = run / "adapter"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / WEIGHTS, "adapters") as file:
            save_file(tensors, file, {"format": "pt"})
        with replacing(folder / CONFIG, "adapters") as file:
            file.write_text(json.dumps(plain, indent=2, sort_keys=True) + "\n", "utf-8")
    except (OSError, SafetensorError) as error:
        raise DragomanError(f"cannot write the adapters to {folder}: {error}") from error


def base_of(folder: Path) -> Path | None:
    """Return the folder of what the adapters in `folder` adapt; None for a model folder.

    Raises InputError where it is not on this machine.
    """
    if (folder / "config.json").exists() or not (folder / CONFIG).is_file():
        return None
    named = str(read_object(folder / CONFIG).get("base_model_name_or_path"))
    for base in (Path(named), folder / named):
        if base.is_dir():
            return base
    raise InputError(
        f"{folder} adapts the model {named}, and there is no such folder; write its path as "
        f"base_model_name_or_path into {folder / CONFIG}."
    )


@torch.no_grad()
def merge_adapter(folder: Path, model: nn.Module, config: FolderConfig) -> None:
    """Add the adapters in `folder` to the weights of the model that they adapt.

    Raises InputError for adapters of another kind than plain LoRA, and for those of another base.
    """
    hf = read_object(folder / CONFIG)
    for key, values in ONLY.items():
        if hf.get(key, values[0]) not in values:
            value = json.dumps(hf[key])
            raise InputError(
                f"{folder / CONFIG}: {key} = {value} is not supported; merge it by peft."
            )
    rank, alpha = hf.get("r"), hf.get("lora_alpha", 8)
    if not isinstance(rank, int) or rank < 1 or not isinstance(alpha, int | float):
        raise InputError(f"{folder / CONFIG}: r must be 1 or more, and lora_alpha a number.")
    with reading(folder / WEIGHTS) as stored:
        left = {name.removeprefix(PREFIX): stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 -- no mapping
    names, places = _names_there(model, config), targets(model)
    for ours, theirs in names.items():
        low = [left.pop(f"{theirs}.lora_{letter}.weight", None) for letter in ("A", "B")]
        if low[0] is None or low[1] is None:
            continue
        path, at, parts = places[ours]
        weight = model.get_parameter(f"{path}.weight")
        size = len(weight) // parts
        a, b = (tensor.float() for tensor in low if tensor is not None)
        if a.shape != (rank, weight.shape[1]) or b.shape != (size, rank):
            raise InputError(
                f"{folder / WEIGHTS} adapts another model: {theirs} has adapters of "
                f"{tuple(b.shape)} by {tuple(a.shape)}, but the weight is "
                f"{(size, weight.shape[1])} and r is {rank}."
            )
        weight[at * size : (at + 1) * size] += alpha / rank * (b @ a)
    if left:
        module = min(left).rpartition(".lora_")[0]
        raise InputError(
            f"{folder / WEIGHTS} adapts {module}, which the model does not have"
            f"{did_you_mean(module, names.values()) or '.'}"
        )


def _names_there(model: nn.Module, config: FolderConfig) -> dict[str, str]:
    """Our names of what can have an adapter, and those that the model has elsewhere."""
    ours = targets(model)
    if config.published is None:
        return {name: name for name in ours}
    family = FAMILIES[config.published.family]
    bare = isinstance(config.model, EncoderOnlyConfig) and isinstance(config.model.head, NoHead)
    prefix, names = "" if bare else family.prefix, dict[str, str]()
    for name, (path, at, parts) in ours.items():
        rule = family.rule_of(f"{path}.weight")
        found = rule.names
        if rule.one_suffices:  # T5's first matrix has another name where it is gated
            found = (found[-1] if config.model.gated else found[0],)
        if len(found) != parts:
            raise InputError(
                f"adapters of {config.published.family} are not supported: it keeps {found[0]} as "
                "one matrix; train without start.lora"
            )
        names[name] = prefix + found[at].removesuffix(".weight")
    return names
