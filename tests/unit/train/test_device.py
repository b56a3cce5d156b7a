"""The choice of device and precision for training."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from dragoman.errors import InputError
from dragoman.train.device import as_by_default, choose_device, choose_precision, deterministic

CPU = Path("/proc/cpuinfo")
UseGpus = Callable[..., None]


@pytest.fixture
def use_gpus(monkeypatch: pytest.MonkeyPatch) -> UseGpus:
    """Simulate this number of GPUs, optionally with a driver that is too old for torch."""

    def use(count: int, *, usable: bool = True) -> None:
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0 and usable)

    return use


@pytest.mark.parametrize(
    ("number", "sees", "give"),
    [
        (0, "no GPU", "cpu or auto"),
        (1, "1 GPU", "cpu, cuda or auto"),
        (2, "2 GPUs", "cpu, cuda or auto"),
    ],
)
def test_a_device_that_is_not_there(use_gpus: UseGpus, number: int, sees: str, give: str) -> None:
    """The error lists only available devices; other kinds are not supported at all."""
    use_gpus(number)
    said = dict.fromkeys(("cuda:2", "cuda:x"), 'There is no device "{}" here (torch sees {})')
    unknown = 'dragoman runs on "cpu" and "cuda", not on "{}"'
    for name, sentence in {**said, **dict.fromkeys(("toaster", "mps:0", "meta"), unknown)}.items():
        with pytest.raises(InputError) as caught:
            choose_device(name)
        assert str(caught.value) == f"{sentence.format(name, sees)}; give {give}."


def test_a_gpu_by_number(use_gpus: UseGpus) -> None:
    """Numbers select a GPU, and "cuda" is the current one; unusable GPUs do not count."""
    use_gpus(2)
    assert [choose_device(name).index for name in ("cuda:0", "cuda:1", "cuda")] == [0, 1, None]
    assert choose_device("auto").type == "cuda"
    use_gpus(2, usable=False)
    assert choose_device("auto").type == "cpu"
    with pytest.raises(InputError, match="torch sees no GPU"):
        choose_device("cuda")


@pytest.mark.parametrize(
    ("supported", "chosen"),
    [
        ({True: False, False: False}, "fp16"),
        ({True: True, False: False}, "fp16"),
        ({True: True, False: True}, "bf16"),
    ],
    ids=["none", "emulated", "native"],
)
def test_auto_on_a_gpu(
    supported: dict[bool, bool], chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bf16 is chosen if the GPU computes in it; before Ampere it is only emulated."""

    def is_bf16_supported(*, including_emulation: bool = True) -> bool:
        return supported[including_emulation]

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", is_bf16_supported)
    assert choose_precision("auto", torch.device("cuda", 0)) == chosen


@pytest.mark.skipif(
    not CPU.exists() or "ONEDNN_MAX_CPU_ISA" in os.environ,
    reason="reads from Linux what the processor can do",
)
def test_auto_on_a_cpu() -> None:
    """bf16 is chosen if the processor has instructions for it; unknown devices get fp32."""
    has_units = any(unit in CPU.read_text().split() for unit in ("avx512_bf16", "amx_bf16"))
    assert choose_precision("auto", torch.device("cpu")) == ("bf16" if has_units else "fp32")
    assert choose_precision("auto", torch.device("meta")) == "fp32"


@pytest.mark.parametrize("own", [None, ":16:8"])
@pytest.mark.parametrize("error", [None, ZeroDivisionError])
def test_deterministic_algorithms(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception] | None, own: str | None
) -> None:
    """They are enabled only inside the context and if requested, then restored, even on errors.

    The user's setting for cuBLAS is kept.
    """
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    if own:
        monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", own)
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)

    def settings() -> tuple[bool, bool, str | None]:
        benchmark = torch.backends.cudnn.benchmark
        workspace = os.environ.get("CUBLAS_WORKSPACE_CONFIG")
        return torch.are_deterministic_algorithms_enabled(), benchmark, workspace

    before = settings()
    with deterministic(on=False):
        assert settings() == before
    with pytest.raises(error) if error else nullcontext(), deterministic(on=True):
        assert settings() == (True, False, own or ":4096:8")
        if error:
            raise error
        if own is None:
            del os.environ["CUBLAS_WORKSPACE_CONFIG"]  # other code may change it too
    assert settings() == before


@pytest.mark.parametrize("around", [nullcontext, partial(torch.autocast, "cpu")])
def test_a_step_in_bf16_sees_the_weights_of_the_last_one(
    around: Callable[[], AbstractContextManager[None]],
) -> None:
    """Autocast keeps the casts of weights until the outermost context ends."""
    layer, x = nn.Linear(4, 4, bias=False), torch.ones(1, 4)
    with around(), as_by_default():
        with torch.autocast("cpu", torch.bfloat16):
            before = layer(x)
        layer.weight.data.mul_(2)
        with torch.autocast("cpu", torch.bfloat16):
            after = layer(x)
    assert torch.equal(after, before * 2)
