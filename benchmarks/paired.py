"""Two things measured fairly on a machine that is not quiet, and the figures written down."""

import json
import platform
import statistics
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from dragoman.files.writing import replacing

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "build" / "benchmarks"
"""Where figures are written unless told otherwise: git ignores it."""
Figures = dict[str, Any]


def paired(ours: Callable[[], int], peers: Callable[[], int], rounds: int) -> dict[str, Any]:
    """Run both in turn, `rounds` times after a first one that does not count.

    Each returns the tokens that it processed. What else the machine does hits both of a round
    alike, so the ratio is taken within the round, and its median over the rounds.
    """
    pairs = [(_rate(ours), _rate(peers)) for _ in range(rounds + 1)][1:]
    ratios = sorted(mine / theirs for mine, theirs in pairs)
    return {
        "ours": statistics.median(mine for mine, _ in pairs),
        "peer": statistics.median(theirs for _, theirs in pairs),
        "ratio": statistics.median(ratios),
        "ratios": ratios,
    }


def _rate(work: Callable[[], int]) -> float:
    start = perf_counter()
    tokens = work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return tokens / (perf_counter() - start)


def show(what: str, found: dict[str, Any]) -> None:
    """A line: both rates, the ratio and its range."""
    lowest, highest = found["ratios"][0], found["ratios"][-1]
    print(
        f"{what:<28} ours {found['ours']:>9,.0f} tokens/s   peer {found['peer']:>9,.0f} tokens/s   "
        f"ratio {found['ratio']:.2f} ({lowest:.2f} to {highest:.2f})"
    )


def environment(packages: Sequence[str] = ()) -> dict[str, Any]:
    """The machine and the versions, which a figure means nothing without."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else _processor()
    versions = {name: _version(name) for name in ("dragoman", "torch", *packages)}
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": device,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "versions": versions,
    }


def save(name: str, figures: Figures, folder: Path) -> None:
    """Write the figures to `NAME.json` in a folder."""
    path = folder / f"{name}.json"
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(path, "figures") as part:
        part.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    print(f"written: {path}", file=sys.stderr)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} processors" if names else platform.processor()
