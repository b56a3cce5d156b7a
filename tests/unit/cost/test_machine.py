"""What a process may use is what the system says."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from dragoman.cost.devices import device_table
from dragoman.cost.machine import SIDE, memory_limit, rates_here
from dragoman.nn.cpu.products import onednn_setting, uses_onednn

CPU = torch.device("cpu")
INSTALLED = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
VERSION_2 = ("0::", "sys/fs/cgroup", "memory.max")
VERSION_1 = ("7:cpu:/\n4:freezer,memory:", "sys/fs/cgroup/memory", "memory.limit_in_bytes")
SWAP = 1024
LIMITS = st.integers(1, 2 * INSTALLED).map(str) | st.just("max")


def write(system: Path, files: Mapping[str, str]) -> Path:
    """Write what a system says, and that there is a kibibyte of swap."""
    for name, text in {"proc/meminfo": "MemTotal: 9 kB\nSwapTotal: 1 kB", **files}.items():
        path = system / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")
    return system


@pytest.mark.parametrize("version", [VERSION_2, VERSION_1], ids=["v2", "v1"])
@given(limits=st.lists(LIMITS, min_size=1, max_size=4))
@settings(max_examples=30)
def test_the_smallest_limit_on_the_way_up_counts(
    version: tuple[str, str, str], limits: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A group's own, that of any group around it, the root's; or what is installed; with swap."""
    prefix, root, name = version
    folders = ["", "/user.slice", "/user.slice/some", "/user.slice/some/scope 1"][: len(limits)]
    files = {f"{root}{folder}/{name}": text for folder, text in zip(folders, limits, strict=True)}
    files["proc/self/cgroup"] = f"{prefix}{folders[-1] or '/'}"
    files[f"{root}/user.slice/beside/{name}"] = "0"  # the process is not in it
    files[f"sys/fs/{name}"] = "0"  # nor is this a group
    system = write(tmp_path_factory.mktemp("system"), files)
    numbers = [int(text) for text in limits if text != "max"]
    assert memory_limit(CPU, system) == min([INSTALLED, *numbers]) + SWAP


def test_a_container_sees_its_group_as_the_root(tmp_path: Path) -> None:
    """Its path is that of the world outside, of which there is no folder."""
    files = {"proc/self/cgroup": "4:memory:/docker/1f", "sys/fs/cgroup/memory/x": ""}
    files["sys/fs/cgroup/memory/memory.limit_in_bytes"] = "4096"
    assert memory_limit(CPU, write(tmp_path, files)) == 4096 + SWAP


class Products(TorchDispatchMode):
    """Remembers which products go to oneDNN."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.to_onednn = set[tuple[torch.dtype, bool]]()

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 (torch's protocol)
        types: Any,  # noqa: ANN401
        args: Any = (),  # noqa: ANN401
        kwargs: Any = None,  # noqa: ANN401
    ) -> object:
        """Look at a product of two large matrices."""
        if func is torch.ops.aten.mm.default and len(args[0]) == SIDE:
            self.to_onednn.add((args[0].dtype, uses_onednn(args[0].dtype)))
        return func(*args, **(kwargs or {}))


def test_this_machine_is_measured() -> None:
    """Products as training and as decoding multiply, and a layer; no random number is drawn."""
    onednn_setting()  # asks once with a product of its own
    before = torch.get_rng_state()
    table = device_table()
    with Products() as products:
        rates = rates_here(table, "bf16", "cpu")
    assert products.to_onednn == {(torch.bfloat16, True), (torch.float32, True)}
    assert torch.equal(torch.get_rng_state(), before)
    assert 0 < rates.layer_seconds != table.cpu.layer_seconds.value


def test_one_thread_is_no_threads() -> None:
    """This machine is told with as many threads as PyTorch uses, also in words."""
    before = torch.get_num_threads()
    try:
        for threads, said in ((1, "1 thread)"), (2, "2 threads)")):
            torch.set_num_threads(threads)
            assert rates_here(device_table(), "fp32", "cpu").device.endswith(said)
    finally:
        torch.set_num_threads(before)
