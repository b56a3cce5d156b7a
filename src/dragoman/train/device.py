"""Choice of the device and of the training precision, based on measurements."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

import torch

from dragoman.errors import InputError
from dragoman.nn.cpu.native import native
from dragoman.nn.cpu.products import cpu_by_default, has_bf16_units
from dragoman.train.config import PrecisionSetting
from dragoman.wording import counted

Precision = Literal["fp32", "bf16", "fp16"]

STATE_BYTES = 16
"""Bytes of a float32 parameter, its gradient and Adam's two moments."""
SHARE = 0.5
"""Share of a device's memory for them; activations and libraries need the rest."""


def choose_device(name: str | torch.device) -> torch.device:
    """Return the device that a setting or option names; `auto` is a GPU if there is one.

    Raises InputError for a device that does not exist or that this package does not run on.
    """
    # device_count includes GPUs whose driver is too old for torch
    num_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not isinstance(name, str | torch.device):
        raise TypeError(f'The device is {name!r:.40}; give "cpu", "cuda" or "auto".')
    name = str(name)
    if name == "auto":
        return torch.device("cuda" if num_gpus else "cpu")
    choices = "cpu, cuda or auto" if num_gpus else "cpu or auto"
    if name.partition(":")[0] not in ("cpu", "cuda"):
        raise InputError(f'dragoman runs on "cpu" and "cuda", not on "{name}"; give {choices}.')
    with suppress(RuntimeError):
        device = torch.device(name)
        if device.type == "cpu" or (device.index or 0) < num_gpus:
            return device
    seen = counted(num_gpus, "GPU") if num_gpus else "no GPU"
    raise InputError(f'There is no device "{name}" here (torch sees {seen}); give {choices}.')


def own_gpu(device: torch.device, size: int) -> torch.device:
    """Return the GPU of one of several ranks, or the CPU; raises InputError for too few GPUs."""
    if device.type != "cuda" or size == 1:
        return device
    gpu, count = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if ":" in str(device) or gpu >= count:
        raise InputError(
            f"{size} processes take a GPU each: torch sees {count} here, and the recipe chooses "
            f"{device}; start as many, with train.device=cuda, or give train.device=cpu"
        )
    torch.cuda.set_device(gpu)
    return torch.device("cuda", gpu)


def choose_precision(name: PrecisionSetting, device: torch.device) -> Precision:
    """Return the precision of the forward and backward pass.

    `auto` is bf16 if its products are faster than those of float32: on GPUs from Ampere on, and on
    processors with bf16 instructions (AVX-512 BF16, AMX: two to eight times as fast, measured).
    Elsewhere bf16 is emulated and slower; GPUs then get fp16 with loss scaling.
    """
    if name != "auto":
        return name
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
    if device.type == "cpu" and has_bf16_units():
        return "bf16"
    return "fp32"


def needs_shards(parameters: int, memory: int) -> bool:
    """Return whether the training state of all parameters takes too much of a device's memory."""
    return STATE_BYTES * parameters > SHARE * memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The device and the precision of one process of a run."""

    device: torch.device
    precision: Precision
    processes: int = 1
    sharded: bool = False
    """Whether each process keeps a share of the model."""

    @property
    def machine(self) -> dict[str, str]:
        """What the exact result of a run depends on besides its settings."""
        if self.device.type == "cuda":
            name = torch.cuda.get_device_name(self.device)
        else:
            name = f"{self.device} ({torch.backends.cpu.get_cpu_capability()})"
        return {
            "device": name,
            "precision": self.precision,
            "loops": "torch" if native() is None else "compiled",
            "threads": str(torch.get_num_threads()),
            "processes": f"{self.processes} (sharded)" if self.sharded else str(self.processes),
            "torch": torch.__version__,
        }

    def describe(self, accumulate: int) -> str:
        """Return the number of processes, their backend and the number of batches per step."""
        if self.processes == 1:
            return ""
        how = "nccl" if self.device.type == "cuda" else "gloo"
        each = "Each has a share of every layer" if self.sharded else "Each has the whole model"
        batches = f"{self.processes * accumulate:,} batches a step"
        return f" {self.processes} processes ({how}), {batches}. {each}."


@contextmanager
def variables(ours: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the block, except those that are already set."""
    new = {variable: value for variable, value in ours.items() if variable not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for variable in new:
            os.environ.pop(variable, None)


@contextmanager
def deterministic(*, on: bool) -> Iterator[None]:
    """Use only deterministic algorithms if `on`, and restore torch's settings afterwards.

    cuBLAS is deterministic if an environment variable says so before its first call.
    """
    if not on:
        yield
        return
    enabled = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    benchmark = torch.backends.cudnn.benchmark
    try:
        torch.backends.cudnn.benchmark = False
        torch.use_deterministic_algorithms(mode=True)
        with variables({"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}):
            yield
    finally:
        torch.use_deterministic_algorithms(enabled, warn_only=warn_only)
        torch.backends.cudnn.benchmark = benchmark


@contextmanager
def as_by_default() -> Iterator[None]:
    """Compute as in a new process: float32, CPU unless named, gradients, and no autocast.

    Afterwards torch's default dtype and random state are as before.
    """
    before = torch.get_default_dtype()
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    kinds = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
    torch.autocast_increment_nesting()
    is_nested = torch.autocast_decrement_nesting() > 0
    with ExitStack() as stack:
        stack.enter_context(cpu_by_default())
        stack.enter_context(torch.inference_mode(mode=False))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(torch.random.fork_rng(gpus))
        for kind in kinds if is_nested else ():  # which would keep old weights
            stack.enter_context(torch.autocast(kind, enabled=False, cache_enabled=False))
        stack.callback(torch.set_default_dtype, before)
        torch.set_default_dtype(torch.float32)
        yield
