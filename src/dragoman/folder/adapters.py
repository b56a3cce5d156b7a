"""Adapters in the format of the `peft` library: `adapter_config.json`, `adapter_model.safetensors`.

For a model from transformers, tensors have their names there, so that `peft` loads the files that
are written here; for a model of our own they have our names, with `k_proj` and `v_proj`.
"""

import json
import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

from dragoman.errors import DragomanError, InputError, did_you_mean
from dragoman.files.reading import read_object
from dragoman.files.writing import replacing
from dragoman.folder.foreign import FAMILIES
from dragoman.folder.foreign.weights import look_up
from dragoman.folder.format import FolderConfig
from dragoman.models.build import reading
from dragoman.models.config import EncoderOnlyConfig
from dragoman.models.heads import NoHead
from dragoman.models.lora import Adapted, LoraConfig, targets

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."
"""Prefix that peft adds to a model's parameter names."""
LARGEST = 1e6
"""Largest absolute alpha that is accepted; larger than any useful one."""
BASE = "base_sha256"
"""Metadata key for the hash of the adapted weights; peft ignores it."""
HARMLESS = (
    "alpha_pattern auto_mapping base_model_name_or_path eva_config exclude_modules inference_mode "
    "init_lora_weights layers_pattern layers_to_transform lora_alpha lora_dropout megatron_core "
    "peft_type peft_version qalora_group_size r rank_pattern revision runtime_config "
    "target_modules task_type use_rslora"
)
"""Keys of peft's config that are read or do not change what stored adapters compute."""
OFF: tuple[object, ...] = (None, False, "none", "", [], {})
"""Values that disable a setting."""
PLAIN_INITS = (None, True, False, "gaussian", "orthogonal", "eva")
"""Values of `init_lora_weights` that leave the base weights unchanged."""


def save_adapter(
    run: Path, model: nn.Module, config: FolderConfig, lora: LoraConfig, base: Path
) -> None:
    """Write a model's adapters to the folder `adapter` next to it; `base` is the adapted model.

    Raises InputError for a family in which our adapters have no equivalent (GPT-2 has one matrix
    for queries, keys and values).
    """
    names = _names_there(model, config)
    tensors, adapted = dict[str, torch.Tensor](), set[str]()
    for path, module in model.named_modules():
        if isinstance(module, Adapted):
            adapted.add(path)
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
            save_file(tensors, file, {BASE: _digest(model, adapted)})
        with replacing(folder / CONFIG, "adapters") as file:
            file.write_text(json.dumps(plain, indent=2, sort_keys=True) + "\n", "utf-8")
    except (OSError, SafetensorError) as error:
        raise DragomanError(f"Cannot write the adapters to {folder}: {error}") from error


def base_of(folder: Path) -> Path | None:
    """Return the folder of the model that the adapters in `folder` adapt; None for a model folder.

    Raises InputError if it does not exist.
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


def warn_of_adapter(folder: Path) -> None:
    """Warn about adapters next to full weights: they are not applied, as they may be merged."""
    if (folder / CONFIG).is_file():
        warnings.warn(
            f"{folder} has whole weights, which are used without the adapters beside them; to add "
            f"them, move {CONFIG} and {WEIGHTS} to a folder of their own, and give that (with the "
            "path of the weights as base_model_name_or_path).",
            stacklevel=3,
        )


@torch.no_grad()
def merge_adapter(folder: Path, model: nn.Module, config: FolderConfig) -> None:
    """Add the adapters in `folder` to the weights of the model that they adapt.

    Supports LoRA, including rsLoRA and per-matrix ranks and scales. Raises InputError for other
    kinds of adapters, for incomplete or non-finite ones, and for those of another base.
    """
    ranks, factor = _scaling(folder / CONFIG, read_object(folder / CONFIG))
    file = folder / WEIGHTS
    with reading(file) as stored:
        tensors = {name.removeprefix(PREFIX): stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 -- no mapping
        base = (stored.metadata() or {}).get(BASE)
    names, places = _names_there(model, config), targets(model)
    found = names
    if config.published is not None:  # adapters may be older than the names of the model's class
        kind = FAMILIES[config.published.family]
        tensors = kind.current(tensors)
        found = {ours: kind.current_name(theirs) for ours, theirs in names.items()}
    pairs = _pairs(file, tensors, found)
    if base not in (None, _digest(model, {places[ours][0] for ours in pairs})):
        raise InputError(
            f"{file} adapts other weights than those of the model that base_model_name_or_path of "
            f"{folder / CONFIG} names; write the path of the model that it was trained on."
        )
    for ours, (a, b) in pairs.items():
        path, at, parts = places[ours]
        weight = model.get_parameter(f"{path}.weight")
        size, rank = len(weight) // parts, len(a)
        shapes = (rank, weight.shape[1]), (size, rank)
        if (a.shape, b.shape) != shapes or rank not in ranks:
            raise InputError(
                f"{file} adapts another model: {names[ours]} has adapters of "
                f"{tuple(b.shape)} by {tuple(a.shape)}, but the weight is "
                f"{(size, weight.shape[1])} and r is {ranks[0]}."
            )
        weight[at * size : (at + 1) * size] += factor(names[ours], rank) * (b @ a)


def _pairs(
    file: Path, tensors: Mapping[str, torch.Tensor], names: Mapping[str, str]
) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Return A and B by our names. Raises InputError if they are incomplete, NaN or unknown."""
    left, pairs = dict(tensors), dict[str, tuple[torch.Tensor, torch.Tensor]]()
    for ours, theirs in names.items():
        found = [left.pop(f"{theirs}.lora_{letter}.weight", None) for letter in ("A", "B")]
        match found:
            case [None, None]:
                continue
            case [torch.Tensor() as a, torch.Tensor() as b]:
                pairs[ours] = a.float(), b.float()
            case _:
                half = "AB"[found[0] is None]
                raise InputError(
                    f"{file} is incomplete: {theirs} has lora_{half} alone; download it again."
                )
        if not all(bool(tensor.isfinite().all()) for tensor in pairs[ours]):
            raise InputError(
                f"{file}: the adapters of {theirs} hold NaN or infinity, so the training that "
                "wrote them had failed; use an earlier checkpoint."
            )
    if left:
        module, _, rest = min(left).rpartition(".lora_")
        raise InputError(
            f"{file} adapts {module or rest}, which the model does not have"
            f"{did_you_mean(module, names.values()) or '.'}"
        )
    if not pairs:
        raise InputError(f"{file} holds no adapters; download it again.")
    return pairs


def _scaling(
    file: Path, hf: Mapping[str, Any]
) -> tuple[tuple[int, ...], Callable[[str, int], float]]:
    """Read the ranks and the scale, a function of a matrix's name and rank, from peft's config.

    The scale is alpha over the rank, or over its root (rsLoRA, Kalajdzievski, 2023). A per-matrix
    alpha applies to all names with the given ending; the first match wins. Raises InputError for
    unsupported settings.
    """
    known = HARMLESS.split()
    wrong = {k: value for k, value in hf.items() if k not in known and value not in OFF}
    if hf.get("peft_type") != "LORA":
        wrong["peft_type"] = hf.get("peft_type")
    if (init := hf.get("init_lora_weights")) not in PLAIN_INITS:
        wrong["init_lora_weights"] = init  # PiSSA and others change the base
    for key, value in wrong.items():
        shown = f"{json.dumps(value):.80}"
        raise InputError(f"{file}: {key} = {shown} is not supported; merge it by peft.")
    alphas, patterns = hf.get("alpha_pattern") or {}, hf.get("rank_pattern") or {}
    if not isinstance(alphas, dict) or not isinstance(patterns, dict):
        raise InputError(f"{file}: rank_pattern and alpha_pattern must be tables.")
    if regex := next((key for key in alphas if not re.fullmatch(r"[\w.]+", key)), None):
        raise InputError(
            f"{file}: alpha_pattern has the pattern {regex!r:.80}; only names of modules are "
            "supported: merge it by peft."
        )
    ranks, alpha = (hf.get("r"), *patterns.values()), hf.get("lora_alpha", 8)
    if any(type(rank) is not int or rank < 1 for rank in ranks):
        raise InputError(f"{file}: r must be 1 or more, and so must rank_pattern.")
    for number in (alpha, *alphas.values()):
        if type(number) not in (int, float) or not abs(number) <= LARGEST:
            raise InputError(f"{file}: lora_alpha and alpha_pattern must be finite numbers.")
    stabilized = bool(hf.get("use_rslora"))

    def factor(name: str, rank: int) -> float:
        ends = (value for end, value in alphas.items() if f".{name}".endswith(f".{end}"))
        own: float = next(ends, alpha)
        return own / (math.sqrt(rank) if stabilized else rank)

    return ranks, factor


def _digest(model: nn.Module, paths: Iterable[str]) -> str:
    """Return the SHA-256 of these modules' weights in fp32; call it before adapters are merged."""
    digest = sha256()
    for path in sorted(paths):
        weight = model.get_parameter(f"{path}.weight").detach().float().cpu().contiguous()
        digest.update(path.encode())
        digest.update(weight.numpy().data)
    return digest.hexdigest()


def _names_there(model: nn.Module, config: FolderConfig) -> dict[str, str]:
    """Map our names of adaptable matrices to the names that the model has in peft's files."""
    ours = targets(model)
    if config.published is None:
        return {name: name for name in ours}
    family = FAMILIES[config.published.family]
    bare = isinstance(config.model, EncoderOnlyConfig) and isinstance(config.model.head, NoHead)
    prefix, names = "" if bare else family.outer or family.prefix, dict[str, str]()
    for name, (path, at, parts) in ours.items():
        rule = look_up(family.modules, f"{path}.weight")
        found = rule.names
        if rule.one_suffices:  # T5's first matrix has another name if gated
            found = (found[-1] if config.model.gated else found[0],)
        if len(found) != parts:
            raise InputError(
                f"adapters of {config.published.family} are not supported: it keeps {found[0]} as "
                "one matrix; train without start.lora"
            )
        names[name] = prefix + found[at].removesuffix(".weight")
    return names
