"""The machine as measured and as the system reports it, and the table of devices."""

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.calls import Call, OperatorCalls

from dragoman.cost.devices import (
    Assumptions,
    Device,
    Figure,
    Price,
    default_devices_file,
    device_named,
    device_table,
)
from dragoman.cost.machine import SIDE, memory_limit, rates_here, rates_of
from dragoman.errors import InputError
from dragoman.nn.cpu.products import onednn_setting, uses_onednn

CPU = torch.device("cpu")
INSTALLED = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
VERSION_2 = ("0::", "sys/fs/cgroup", "memory.max")
VERSION_1 = ("7:cpu:/\n4:freezer,memory:", "sys/fs/cgroup/memory", "memory.limit_in_bytes")
SWAP = 1024
LIMITS = st.integers(1, 2 * INSTALLED).map(str) | st.just("max")


def write(system: Path, files: Mapping[str, str]) -> Path:
    """Write the files of a system that has one kibibyte of swap."""
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
    """In a container the root's limit applies: the path of the cgroup is the host's."""
    files = {"proc/self/cgroup": "4:memory:/docker/1f", "sys/fs/cgroup/memory/x": ""}
    files["sys/fs/cgroup/memory/memory.limit_in_bytes"] = "4096"
    assert memory_limit(CPU, write(tmp_path, files)) == 4096 + SWAP


class Products(OperatorCalls):
    """Records which products go to oneDNN."""

    def __init__(self) -> None:
        super().__init__()
        self.to_onednn = set[tuple[torch.dtype, bool]]()

    def see(self, call: Call) -> None:
        """Record the product if both matrices are large."""
        if call.function is torch.ops.aten.mm.default and len(call.arguments[0]) == SIDE:
            dtype = call.arguments[0].dtype
            self.to_onednn.add((dtype, uses_onednn(dtype)))


def test_this_machine_is_measured() -> None:
    """Products and a layer are measured as training and decoding run them, without random draws."""
    onednn_setting()  # makes a product of its own on the first call
    before = torch.get_rng_state()
    table = device_table()
    with Products() as products:
        rates = rates_here(table, "bf16", "cpu")
    assert products.to_onednn == {(torch.bfloat16, True), (torch.float32, True)}
    assert torch.equal(torch.get_rng_state(), before)
    assert 0 < rates.layer_seconds != table.cpu.layer_seconds.value
    assert 0 < rates.decoding_layer_seconds != rates.layer_seconds


def test_one_thread_is_no_threads() -> None:
    """The device is named with the number of PyTorch's threads, in the singular for one."""
    before = torch.get_num_threads()
    try:
        for threads, said in ((1, "1 thread)"), (2, "2 threads)")):
            torch.set_num_threads(threads)
            assert rates_here(device_table(), "fp32", "cpu").device.endswith(said)
    finally:
        torch.set_num_threads(before)


# ---------------------------------------------------------------- the table


def _own(folder: Path, text: str) -> Path:
    path = folder / "devices.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _no_own_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Isolate the tests from the user's own table."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_every_shipped_figure_has_a_source_and_a_date() -> None:
    """Each figure has a source, a date and, for prices, a currency; otherwise it is "assumed"."""
    table = device_table()
    assert 10 <= len(table.devices) <= 20
    sections: list[Device | Assumptions] = [*table.devices.values(), table.cpu, table.gpu]
    for section in sections:
        for field in fields(section):
            figure = getattr(section, field.name)
            if isinstance(figure, Figure):
                assert figure.value >= 0
                assert len(figure.source) > 10, (section, field.name)
                assert figure.date, (section, field.name)
            if isinstance(figure, Price):
                assert figure.currency == "USD", (section, field.name)


def test_a_device_without_bfloat16_computes_in_float32() -> None:
    """`auto` is the best precision that the device supports."""
    table = device_table()
    assert rates_of(device_named("t4", table), table, "auto").precision == "fp32"
    assert rates_of(device_named("a100-40gb", table), table, "auto").precision == "bf16"


def test_an_own_file_adds_and_replaces(tmp_path: Path) -> None:
    """A plain number is a valid figure; a replaced figure loses the source of the old one."""
    own = _own(
        tmp_path,
        """
        here = {price_per_kwh = 0.3}
        cpu = {training = 0.25}
        devices.t4 = {price_per_hour = 0.1}
        [devices.mine]
        name = "The machine under my desk"
        kind = "cpu"
        fp32_tflops = {value = 1.5, source = "measured", date = "2026-11"}
        bandwidth_gb = 60
        """,
    )
    shipped, table = device_table(), device_table(own)
    assert set(table.devices) == {*shipped.devices, "mine"}
    assert device_named("mine", table).peak("fp32") == 1.5e12
    price = table.devices["t4"].price_per_hour
    assert price is not None
    assert (price.value, price.source, price.currency) == (0.1, "your file", None)
    assert table.devices["t4"].watts == shipped.devices["t4"].watts
    assert table.cpu.training.value == 0.25
    assert table.cpu.products == shipped.cpu.products
    assert table.here.price_per_kwh == Price(value=0.3)


def test_the_default_place_is_read_when_there_is_a_file(tmp_path: Path) -> None:
    """The user's table is read from the XDG config folder, if it exists."""
    assert "mine" not in device_table().devices
    path = default_devices_file()
    assert path.is_relative_to(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text('devices.mine = {name = "", kind = "gpu", fp32_tflops = 1, bandwidth_gb = 1}')
    assert "mine" in device_table().devices


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[devices.t4]\nwats = 70", "line 2: unknown key devices.t4.wats; did you mean"),
        ('[devices.t4]\nkind = "tpu"', 'must be one of "cpu", "gpu"'),
        ("[devices.t4]\nwatts = {value = 70, sauce = 'me'}", "devices.t4.watts.source?"),
        (
            'here = {price_per_kwh = "x"}',
            'line 1: here.price_per_kwh must be a number or {value = ..., source = "..."}, not "x"',
        ),
        ("[devices.t4]\nwatts = [70]", "line 2: devices.t4.watts must be a number or"),
        ("cpu = 3", "line 1: cpu must be a section, not 3"),
        ("devices.t4.fp32_tflops = 0", "line 1: section devices.t4.fp32_tflops: value is 0"),
        ("devices.t4.memory_gb = nan", "it must be above 0"),
        ("gpu.layer_seconds = -1", "it must be at least 0"),
        ("cpu.training = 0", "it must be above 0 and at most 1: it is a share"),
        ("gpu.products = 1.01", "it must be above 0 and at most 1"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    """Errors name the file, the line, the key and the nearest valid name."""
    with pytest.raises(InputError, match=r"devices\.toml") as error:
        device_table(_own(tmp_path, text))
    assert said in str(error.value)


def test_a_machine_is_known_by_what_it_reports(tmp_path: Path) -> None:
    """Device names are matched regardless of case; the user's entries go first."""
    table = device_table()
    assert table.known_as("NVIDIA L4") is table.devices["l4"]
    assert table.known_as("an abacus") is None
    own = device_table(
        _own(
            tmp_path,
            'devices.mine = {name = "m", kind = "gpu", fp32_tflops = 1, bandwidth_gb = 1, '
            'matches = ["nvidia l4"]}',
        )
    )
    assert own.known_as("NVIDIA L4") is own.devices["mine"]


REPORTED = {
    "h200": "NVIDIA H200",
    "h100": "NVIDIA H100 80GB HBM3",
    "a100-80gb": "NVIDIA A100-SXM4-80GB",
    "a100-40gb": "A100-SXM4-40GB",
    "l40s": "NVIDIA L40S",
    "l4": "NVIDIA L4",
    "t4": "Tesla T4",
    "rtx4090": "NVIDIA GeForce RTX 4090",
    "rtx3090": "GeForce RTX 3090",
    "epyc9654": "AMD EPYC 9654 96-Core Processor",
    "xeon8380": "Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz",
    "ryzen7950x": "AMD Ryzen 9 7950X 16-Core Processor",
    "ryzen7840u": "AMD Ryzen 7 PRO 7840U w/ Radeon 780M Graphics",
    "apple-m2": "Apple M2",
}


def test_every_shipped_device_is_known_by_its_own_name() -> None:
    """Names are matched as drivers and systems report them, also without the NVIDIA prefix."""
    table = device_table()
    assert {name: table.known_as(reported) for name, reported in REPORTED.items()} == table.devices


@pytest.mark.parametrize(
    "reported",
    [
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA H100 PCIe",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        "NVIDIA GH200 480GB",
        "NVIDIA L40",
        "AMD EPYC 9654P 96-Core Processor",
        "Intel(R) Xeon(R) Platinum 8380H CPU @ 2.90GHz",
        "Apple M2 Ultra",
    ],
)
def test_a_variant_of_a_device_is_another_device(reported: str) -> None:
    """A variant has other rates, power and price, so no figures of the base device are used."""
    assert device_table().known_as(reported) is None


@pytest.mark.parametrize(
    ("here", "rent", "kwh", "currency"),
    [
        ("{}", 2.0, None, "USD"),
        ("{price_per_hour = 0}", 0.0, None, None),
        ("{price_per_hour = 3, price_per_kwh = 0.3, watts = 95}", 3.0, 0.3, None),
        ('{price_per_kwh = {value = 0.3, currency = "EUR"}}', None, 0.3, "EUR"),
    ],
)
def test_the_owner_says_what_an_hour_costs(
    tmp_path: Path, here: str, rent: float | None, kwh: float | None, currency: str | None
) -> None:
    """The user's price replaces the table's; with electricity alone there is no rent.

    It is in the user's currency. A power that the user gives replaces the table's too.
    """
    price = 'price_per_hour = {value = 2, currency = "USD"}'
    this = f'name = "", kind = "cpu", fp32_tflops = 1, bandwidth_gb = 1, {price}'
    own = f'here = {here}\ndevices.mine = {{{this}, matches = ["*"]}}'
    rates = rates_here(device_table(_own(tmp_path, own)), "fp32", "cpu")
    assert (rates.price_per_hour, rates.price_per_kwh, rates.currency) == (rent, kwh, currency)
    assert (rates.watts == 95) == ("watts" in here)
