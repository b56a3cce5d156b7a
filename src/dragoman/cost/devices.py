"""Devices and their figures: a shipped table, with the user's own file laid over it.

    h100 = device_named("h100", device_table())
    h100.peak("bf16")           # operations a second, as its maker says

A figure in the user's file replaces the shipped one; `fp32_tflops = 2.5` is short for
`{value = 2.5}`.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from dragoman.errors import InputError, did_you_mean
from dragoman.nn.cpu.products import Precision
from dragoman.ranges import Range, check_range
from dragoman.settings import Given, read_settings

TERA, GIGA = 1e12, 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number and its source."""

    bounds: ClassVar = Range(least=0)

    value: float
    source: str = "your file"
    date: str = ""
    """When it was published, measured or read."""

    def __post_init__(self) -> None:
        check_range("value", self.value, Annotated[float, self.bounds])


class Quantity(Figure):
    """A rate, a memory size or a power."""

    bounds = Range(above=0)


class Share(Figure):
    """A part of a whole."""

    bounds = Range(above=0, most=1, why="it is a share, 0.4 for 40 %")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price(Figure):
    """A price in a currency such as USD; None for the user's own currency, whatever it is."""

    currency: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """The assumptions about every device of a kind."""

    products: Share
    """Share of the peak rate that large products reach."""
    training: Share
    """Share of that rate that a whole training step reaches."""
    decoding: Share
    """Share of the bound by products and memory that a decoding step reaches."""
    layer_seconds: Figure
    """Seconds to start the operations of one layer once, forward, however little they compute."""
    watts_per_thread: Figure
    """Power per thread of a processor that is not in the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A processor or a GPU as its maker describes it."""

    name: str
    kind: Literal["cpu", "gpu"]
    """Which assumptions apply."""
    matches: tuple[str, ...] = ()
    """Full names under which a machine reports it; `*` matches any part."""
    fp32_tflops: Quantity
    """Peak rate of float32 products, in 1e12 operations a second."""
    bf16_tflops: Quantity | None = None
    """The same for bfloat16 products; None if the device has no bfloat16."""
    bandwidth_gb: Quantity
    """Bytes that it reads from its memory in a second, in 1e9."""
    memory_gb: Quantity | None = None
    """Memory size in 1e9 bytes."""
    watts: Quantity | None = None
    """Power draw at full load."""
    price_per_hour: Price | None = None
    """Rent per hour."""

    def peak(self, precision: Precision) -> float:
        """Return the operations a second; a device without bfloat16 computes it as float32."""
        figure = self.bf16_tflops if precision == "bf16" else None
        return TERA * (figure or self.fp32_tflops).value


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """Figures of the machine that dragoman runs on, which only its owner knows."""

    watts: Quantity | None = None
    """Power draw while it computes; default: the table's, or that of its threads."""
    price_per_hour: Price | None = None
    """Rent per hour."""
    price_per_kwh: Price | None = None
    """Electricity, per kWh."""


FIGURES = {field.name for section in (Assumptions, Device, Here) for field in fields(section)}
FIGURES -= {"name", "kind", "matches"}
"""Keys whose value may be a plain number, for short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTable:
    """Everything that the files define."""

    here: Here = field(default_factory=Here)
    cpu: Assumptions
    gpu: Assumptions
    devices: dict[str, Device]
    """Devices by the name that `--device` takes."""

    def known_as(self, reported: str) -> Device | None:
        """Return the device that a machine reports by this name; the user's own come first."""
        for device in reversed(self.devices.values()):
            for name in device.matches:  # in full: an RTX 4090 Laptop GPU is not an RTX 4090
                if fnmatchcase(reported.lower(), name.lower()):
                    return device
        return None


def default_devices_file() -> Path:
    """Return where the user's own table is expected: in the XDG configuration folder."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111 -- pathlib raises where there is no home
    return Path(base) / "dragoman" / "devices.toml"


def device_table(own: Path | None = None) -> DeviceTable:
    """Read the shipped table and lay the user's file over it.

    The user's file is `own` or, by default, `default_devices_file()`, which may be missing. Raises
    InputError with file, line and the nearest name for mistakes in it.
    """
    shipped = read_settings(Path(str(resources.files("dragoman") / "cost" / "devices.toml")))
    path = own or default_devices_file()
    if own is None and not path.exists():
        return shipped.build(DeviceTable)
    given = read_settings(path)
    return Given(_laid_over(shipped.data, given.data, given), given.origin).build(DeviceTable)


def device_named(name: str, table: DeviceTable) -> Device:
    """Return a device of the table. Raises InputError with the nearest name for an unknown one."""
    if name not in table.devices:
        raise InputError(
            f"there is no device {name!r}: known are {', '.join(table.devices)}; a file of your "
            f"own ({default_devices_file()}, or --devices FILE) adds others"
            f"{did_you_mean(name, table.devices)}"
        )
    return table.devices[name]


def _laid_over(
    shipped: Mapping[str, Any], own: Mapping[str, Any], given: Given, path: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the shipped sections with the user's keys over them; a figure is replaced whole."""
    laid = dict(shipped)
    for key, value in own.items():
        place, known, laid[key] = (*path, key), shipped.get(key, {}), value
        if len(place) > 1 and path != ("devices",) and key in FIGURES:
            if isinstance(value, int | float) and not isinstance(value, bool):
                laid[key] = {"value": value}
            elif not isinstance(value, Mapping):
                raise given.must_be('a number or {value = ..., source = "..."}', place, value)
        elif isinstance(value, Mapping) and isinstance(known, Mapping):
            laid[key] = _laid_over(known, value, given, place)
    return laid
