"""What each attention pattern costs against the length of the text, measured and drawn.

    python -m benchmarks attention-cost
    python -m benchmarks attention-cost --lengths 256 1024 4096 --plot cost.png

One row, two heads of 64, float32, forward, no gradients. Time is the best of several runs. Memory
is the peak of what a run allocates beyond its inputs, from the allocations that torch's profiler
records. The exponents are slopes of straight lines through the logarithms from 1,024 positions on,
below which fixed costs rule. The reference is the paper's formula with its `L x L` matrix.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.paired import BUILT, Figures, environment
from dragoman.nn import (
    Causal,
    Fixed,
    Full,
    KeyValue,
    LinearAttention,
    Longformer,
    Pattern,
    Scoring,
    SlidingWindow,
    Strided,
    reference_attention,
)
from dragoman.nn.cache import Storage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEADS, HEAD_DIM = 2, 64
LENGTHS = [2**power for power in range(8, 15)]
FITTED_FROM = 1024
SCORING = Scoring(scale=HEAD_DIM**-0.5)
PATTERNS: dict[str, Pattern] = {
    "full": Full(),
    "causal": Causal(),
    "window of 128": SlidingWindow(size=128),
    "window of 256": SlidingWindow(size=256),
    "Longformer": Longformer(window=256, global_positions=(0, 1, 2, 3), causal=True),
    "strided": Strided(stride=128),
    "fixed": Fixed(stride=128, summary=8),
    "linear": LinearAttention(),
}
REFERENCE = "reference"
Measured = dict[str, dict[int, dict[str, float]]]


def inputs(length: int, num_kv_heads: int = HEADS) -> tuple[Tensor, KeyValue]:
    """Random queries, keys and values."""
    q_BHTd = torch.randn(1, HEADS, length, HEAD_DIM)
    k_BKSd, v_BKSd = torch.randn(2, 1, num_kv_heads, length, HEAD_DIM).unbind(0)
    return q_BHTd, KeyValue(k_BKSd, v_BKSd)


def by_reference(q_BHTd: Tensor, kv: KeyValue) -> Tensor:
    """The paper's formula with a causal mask."""
    length = q_BHTd.shape[2]
    mask = Causal().mask(length, length, q_BHTd.device)
    return reference_attention(q_BHTd, *kv[:2], mask, SCORING)[0]


def by_pattern(pattern: Pattern, q_BHTd: Tensor, kv: KeyValue) -> Tensor:
    """The pattern's own way."""
    return pattern.attend(q_BHTd, kv, None, SCORING)


def seconds(work: Callable[[], object], budget: float) -> float:
    """The best time of as many runs as the budget holds, one at least after a first."""
    work()
    best, spent = float("inf"), 0.0
    while spent < budget:
        start = perf_counter()
        work()
        taken = perf_counter() - start
        best, spent = min(best, taken), spent + taken
    return best


def allocations(work: Callable[[], object]) -> tuple[int, int]:
    """The most bytes that were allocated at one time, and those that are left at the end."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        kept = work()
    del kept
    assert profiler.profiler is not None
    events = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    sizes = np.array([e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())])
    held = np.cumsum(sizes) if len(sizes) else np.zeros(1)
    return int(held.max(initial=0)), int(held[-1])


def measure(lengths: Sequence[int], budget: float) -> Measured:
    """Time and peak memory of every pattern at every length."""
    attends: dict[str, Callable[[Tensor, KeyValue], Tensor]] = {REFERENCE: by_reference}
    attends |= {name: partial(by_pattern, pattern) for name, pattern in PATTERNS.items()}
    found: Measured = {name: {} for name in attends}
    for length in lengths:
        q_BHTd, kv = inputs(length)
        for name, attend in attends.items():
            work = partial(attend, q_BHTd, kv)
            found[name][length] = {"seconds": seconds(work, budget), "bytes": allocations(work)[0]}
        words = (f"{name} {one[length]['seconds'] * 1e3:.1f} ms" for name, one in found.items())
        print(f"{length:>6}: {', '.join(words)}", flush=True)
    return found


def exponents(found: Measured) -> dict[str, dict[str, float]]:
    """By which power of the length each cost grows."""
    fitted = {}
    for name, by_length in found.items():
        long = {length: one for length, one in by_length.items() if length >= FITTED_FROM}
        if len(long) > 1:
            x = np.log(list(long))
            fitted[name] = {
                what: float(np.polyfit(x, np.log([one[what] for one in long.values()]), 1)[0])
                for what in ("seconds", "bytes")
            }
    return fitted


def decoding(lengths: Sequence[int]) -> dict[str, dict[int, int]]:
    """The most bytes that one of eight decoding steps allocates after a prefix of each length.

    A storage that grows is full behind the prefix, so the first step moves all of it.
    """
    found: dict[str, dict[int, int]] = {}
    for name in ("causal", "window of 256", "linear"):
        found[name] = {}
        for length in lengths:
            storage = PATTERNS[name].make_storage()
            q_BHTd, kv = inputs(length)
            storage.extend(kv)

            def step(
                storage: Storage = storage, q: Tensor = q_BHTd, kv: KeyValue = kv, name: str = name
            ) -> Tensor:
                new = KeyValue(kv.k_BKSd[:, :, :1], kv.v_BKSd[:, :, :1])
                return by_pattern(PATTERNS[name], q[:, :, :1], storage.extend(new))

            found[name][length] = max(allocations(step)[0] for _ in range(8))
    return found


def cache_bytes(num_kv_heads: int, length: int = 4096) -> int:
    """What a cache of full attention holds for one layer."""
    storage = Causal().make_storage()
    _, kv = inputs(length, num_kv_heads)

    def fill() -> tuple[KeyValue, Storage]:
        return storage.extend(kv), storage

    return allocations(fill)[1]


def drawn(found: Measured) -> "Figure":
    """Time and memory against length, both axes logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 4.2), dpi=120, layout="constrained")
    panels = zip(figure.subplots(1, 2), (("seconds", 1e3), ("bytes", 2**-20)), strict=True)
    for axes, (what, unit) in panels:
        for name, by_length in found.items():
            values = [one[what] * unit for one in by_length.values()]
            axes.loglog(list(by_length), values, marker="o", markersize=3, label=name, base=2)
        axes.set_xlabel("length")
        axes.set_ylabel("ms" if what == "seconds" else "MiB beyond the inputs")
        axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8)
    return figure


@torch.inference_mode()
def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Measure, print the exponents and ratios, draw, and return the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks attention-cost", description=__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--plot", type=Path, default=BUILT / "attention-cost.png")
    parser.add_argument("--seconds", type=float, default=1.5, help="for each time")
    options = parser.parse_args(arguments)
    found = measure(options.lengths, options.seconds)
    longest = max(options.lengths)
    fitted = exponents(found)
    reference, full, causal = (found[n][longest] for n in (REFERENCE, "full", "causal"))
    ratios = {}
    for name, by_length in found.items():
        one = by_length[longest]
        ratios[name] = {
            "times faster than full": full["seconds"] / one["seconds"],
            "times faster than causal": causal["seconds"] / one["seconds"],
            "times less memory than the reference": reference["bytes"] / one["bytes"],
        }
        powers = fitted.get(name, {"seconds": float("nan"), "bytes": float("nan")})
        print(
            f"{name:<16} time ~ L^{powers['seconds']:.2f}, memory ~ L^{powers['bytes']:.2f}; at "
            f"{longest:,}: {full['seconds'] / one['seconds']:.1f} times as fast as full, "
            f"{causal['seconds'] / one['seconds']:.1f} as causal, "
            f"{reference['bytes'] / one['bytes']:.1f} times less memory than the reference"
        )
    steps = decoding([n for n in options.lengths if n >= FITTED_FROM])
    grouped = cache_bytes(2) / cache_bytes(8)
    print(f"bytes of a decoding step: {steps}; K = H / 4 keeps {grouped:.2f} of the cache")
    options.plot.parent.mkdir(parents=True, exist_ok=True)
    drawn(found).savefig(options.plot)
    return {
        "attention-cost": {
            "environment": environment(),
            "measured": found,
            "exponents": fitted,
            "ratios": ratios,
            "decoding step bytes": steps,
            "share of the cache with K = H / 4": grouped,
        }
    }
