"""The rates of a device of the table, or of this machine, where they are measured.

rates = rates_of(device_named("l4", table), table, "auto")
rates = rates_here(table, "auto")          # a fraction of a second
"""

import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch.utils.benchmark import Timer

from dragoman.cost.devices import GIGA, Device, DeviceTable, Figure, device_named, device_table
from dragoman.engine import freeze
from dragoman.models import DecoderOnly, DecoderOnlyConfig
from dragoman.nn import Rotary, autocast, inference, row_invariant_products
from dragoman.nn.cpu.products import HALVES, Precision, training_products
from dragoman.process import control_groups, lines_of, values_of
from dragoman.train.config import PrecisionSetting, TrainConfig
from dragoman.train.device import choose_device, choose_precision
from dragoman.wording import counted

# Sides of the matrices whose product is timed, and floats that are read to time the memory; a GPU
# is done with a CPU's in less time than it takes to start it. Then the least time to measure.
SIDE, GPU_SIDE = 768, 4096
READ, GPU_READ = 16 * 1024 * 1024, 128 * 1024 * 1024
ENOUGH_SECONDS = 0.05
LAYERS = 4
"""Layers of the model whose decoding step is timed."""
SYSTEM = Path("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How fast a device is, how much it stores and what it costs: all that an estimate needs."""

    device: str
    how: str
    """Where the rates come from, in a clause."""
    precision: Precision
    """The precision of training."""
    training: float
    """Operations a second of a training step."""
    decoding: float
    """Operations a second of decoding, which is in float32."""
    reading: float
    """Bytes a second that decoding reads."""
    layer_seconds: float
    """Seconds to start the operations of one layer once in training."""
    decoding_layer_seconds: float
    """The same in decoding."""
    memory: int | None = None
    """Bytes, if known."""
    watts: float | None = None
    price_per_hour: float | None = None
    """Rent, if there is one."""
    price_per_kwh: float | None = None
    currency: str | None = None
    """Currency of these prices; None for the user's own."""

    def priced(self, *, per_hour: float | None, per_kwh: float | None) -> "Rates":
        """Return the rates with the user's own prices, if any, instead of the table's.

        A price of electricity alone means that the device is the user's own, which has no rent.
        """
        if per_hour is None and per_kwh is None:
            return self
        electricity = self.price_per_kwh if per_kwh is None else per_kwh
        return replace(self, price_per_hour=per_hour, price_per_kwh=electricity, currency=None)


def find_rates(train: TrainConfig, name: str | None = None, own: Path | None = None) -> Rates:
    """Return the rates of a device of the table, or measure those of this machine.

    `own` is the user's table, as in `device_table`. Raises InputError for an unknown name.
    """
    table = device_table(own)
    if name is None:
        return rates_here(table, train.precision, train.device)
    return rates_of(device_named(name, table), table, train.precision)


def rates_of(device: Device, table: DeviceTable, precision: PrecisionSetting) -> Rates:
    """Return what the table says about a device, with the assumptions for its kind."""
    assumed = table.cpu if device.kind == "cpu" else table.gpu
    if precision == "auto":
        precision = "fp32" if device.bf16_tflops is None else "bf16"
    products, training = assumed.products.value, assumed.training.value
    return Rates(
        device=device.name,
        how=f"assumed: {products * training:.0%} of the peak rate in training",
        precision=counted_as(precision),
        training=device.peak(counted_as(precision)) * products * training,
        decoding=device.peak("fp32") * products * assumed.decoding.value,
        reading=device.bandwidth_gb.value * GIGA * assumed.decoding.value,
        layer_seconds=assumed.layer_seconds.value,
        decoding_layer_seconds=assumed.layer_seconds.value,
        memory=None if device.memory_gb is None else round(device.memory_gb.value * GIGA),
        watts=_value(device.watts),
        price_per_hour=_value(device.price_per_hour),
        currency=device.price_per_hour.currency if device.price_per_hour else None,
    )


def rates_here(table: DeviceTable, precision: PrecisionSetting, device: str = "auto") -> Rates:
    """Measure a product and a read on this machine; power and price come from the table.

    No random numbers are drawn, so a training run that begins afterwards is unchanged.
    """
    place, threads = choose_device(device), torch.get_num_threads()
    chosen = choose_precision(precision, place)
    with training_products(chosen, place):
        product = _product_rate(place, HALVES.get(chosen, torch.float32))
    with row_invariant_products():  # as decoding multiplies: perhaps with another library
        single = _product_rate(place, torch.float32)
    name = _reported_name(place)
    starting, starting_to_decode = _layer_seconds(place, chosen)
    here, known, assumed = table.here, table.known_as(name), table.gpu
    rent, watts = here.price_per_hour, _value(here.watts or (known.watts if known else None))
    if known and rent is None and here.price_per_kwh is None:  # else the machine is the user's
        rent = known.price_per_hour
    if place.type == "cpu":
        assumed, name = table.cpu, f"{name}, {counted(threads, 'thread')}"
        watts = watts or assumed.watts_per_thread.value * threads
    price = rent or here.price_per_kwh
    return Rates(
        device=f"this machine ({name})",
        how=f"measured: products in {chosen} at {product / GIGA:,.0f} GFLOP/s; assumed: training "
        f"reaches {assumed.training.value:.0%} of that",
        precision=counted_as(chosen),
        training=product * assumed.training.value,
        decoding=single * assumed.decoding.value,
        reading=_read_rate(place) * assumed.decoding.value,
        layer_seconds=starting,
        decoding_layer_seconds=starting_to_decode,
        memory=memory_limit(place),
        watts=watts,
        price_per_hour=_value(rent),
        price_per_kwh=_value(here.price_per_kwh),
        currency=price.currency if price else None,
    )


def counted_as(precision: Literal["fp32", "bf16", "fp16"]) -> Precision:
    """Return which of the two counted precisions has numbers of the same width."""
    return "bf16" if precision == "fp16" else precision


def _value(figure: Figure | None) -> float | None:
    return None if figure is None else figure.value


def _product_rate(device: torch.device, dtype: torch.dtype) -> float:
    side = GPU_SIDE if device.type == "cuda" else SIDE
    a = torch.full((side, side), 0.5, dtype=dtype, device=device)
    return 2 * side**3 / _seconds_of(lambda: a @ a)


def _read_rate(device: torch.device) -> float:
    size = GPU_READ if device.type == "cuda" else READ
    a = torch.full((size,), 0.5, device=device)
    return a.nbytes / _seconds_of(a.sum)


def _layer_seconds(
    device: torch.device, precision: Literal["fp32", "bf16", "fp16"]
) -> tuple[float, float]:
    """Time steps with layers too small to compute anything; draws no random number.

    Returns the seconds of a layer in each of the three passes of a training step (forward once,
    backward twice), and in a decoding step.
    """
    config = DecoderOnlyConfig(
        d_model=16,
        num_heads=1,
        d_ff=16,
        num_layers=LAYERS,
        vocab_size=300,
        positions=Rotary(),
        dropout=0.0,
    )
    with torch.random.fork_rng(devices=[]):
        model = DecoderOnly(config).to(device)
    ids_N = torch.full((1,), config.eos_id, device=device)

    def learn() -> None:
        with autocast(precision, device):
            logits = model(ids_N[:, None])
        logits.sum().backward()

    with training_products(precision, device):
        training = _seconds_of(learn) / (3 * LAYERS)
    decoder: Any = freeze(model.eval(), "fp32")
    with inference(model):
        state = decoder.start(ids_N[:, None], 1)
        return training, _seconds_of(lambda: decoder.step(ids_N, state)) / LAYERS


def _seconds_of(run: Callable[[], object]) -> float:
    """Return the shortest time of several runs, not the mean, to ignore other processes."""
    timer = Timer("run()", globals={"run": run}, num_threads=torch.get_num_threads())
    return min(timer.blocked_autorange(min_run_time=ENOUGH_SECONDS).times)


# ---------------------------------------------------------------- what the system says


def _reported_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    said = values_of("model name", SYSTEM / "proc/cpuinfo")
    return said[0] if said else platform.processor() or platform.machine()


def memory_limit(device: torch.device, system: Path = SYSTEM) -> int | None:
    """Return the bytes that a process may use: the GPU's, or the machine's with swap and cgroup.

    None if the system does not say. It is an upper bound: what others use is not subtracted.
    `system` is the folder that contains `proc` and `sys`.
    """
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[1])
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    swap = 1024 * sum(
        int(said.split()[0]) for said in values_of("SwapTotal", system / "proc/meminfo")
    )
    return min([total, *_group_limits(system)]) + swap


def _group_limits(system: Path) -> Iterator[int]:
    """Yield the memory limits of the control groups around this process."""
    for group in control_groups("memory", str(system)):
        for name in ("memory.max", "memory.limit_in_bytes"):
            numbers = map(str.strip, lines_of(group / name))
            yield from (int(number) for number in numbers if number.isdecimal())
