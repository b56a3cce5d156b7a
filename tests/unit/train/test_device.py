"""Which device trains, and in which precision."""

import pytest
import torch

from dragoman.errors import InputError
from dragoman.train.device import choose_device, choose_precision


def test_names() -> None:
    """A name is that device; auto is a GPU where torch sees one."""
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


def test_unknown_device() -> None:
    """A name that torch does not know is one sentence."""
    with pytest.raises(InputError, match=r'device = "gpu" is unknown; use cpu, cuda or auto'):
        choose_device("gpu")
    with pytest.raises(InputError, match=r'device = "mps" is unknown; use cpu, cuda or auto'):
        choose_device("mps")  # torch knows it, and we have never run on it


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_missing_gpu() -> None:
    """A GPU that is not there is one sentence."""
    with pytest.raises(InputError, match="torch sees no GPU here"):
        choose_device("cuda:1")


def test_a_gpu_beyond_the_last() -> None:
    """Of two GPUs a third is one sentence; the first two are themselves."""
    assert [choose_device(name, 2).index for name in ("cuda:0", "cuda:1", "cuda")] == [0, 1, None]
    assert choose_device("auto", 2).type == "cuda"
    with pytest.raises(InputError, match='device = "cuda:2", but torch sees GPUs up to cuda:1'):
        choose_device("cuda:2", 2)


def test_a_gpu_that_torch_cannot_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is counted, but whose driver is too old, is none."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto").type == "cpu"
    with pytest.raises(InputError, match="torch sees no GPU here"):
        choose_device("cuda")


def test_precision() -> None:
    """A precision that was asked for is taken; auto chooses one of the two."""
    cpu = torch.device("cpu")
    assert choose_precision("fp32", cpu) == "fp32"
    assert choose_precision("bf16", cpu) == "bf16"
    assert choose_precision("auto", cpu) in {"fp32", "bf16"}
    assert choose_precision("auto", torch.device("meta")) == "fp32"
