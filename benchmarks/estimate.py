"""What a run is predicted to take by `dragoman cost --measure`, and what it then takes.

    python -m benchmarks estimate train.max_steps=1250 train.max_minutes=60

The time is that of the whole command, on the wall, with a cache of its own so that nothing is ready
beforehand. Beside it stands the share of it for which the host of a virtual machine withheld the
processors (Linux counts it): which no measurement beforehand can predict.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.paired import Figures, environment

STEAL = 8
"""The column of /proc/stat with the time that the host withheld."""


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Predict, run, compare, print and return the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks estimate", description=__doc__)
    parser.add_argument("--recipe", default="multi30k-en-de")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE")
    chosen = parser.parse_args(arguments)
    rounds = [_round(chosen.recipe, chosen.settings) for _ in range(chosen.rounds)]
    command = shlex.join(["dragoman", "train", chosen.recipe, "out=DIR", *chosen.settings])
    name = f"estimate-{chosen.recipe}-{rounds[0]['training']['steps']}-steps"
    return {name: {"command": command, "environment": environment(), "rounds": rounds}}


def _round(recipe: str, settings: Sequence[str]) -> dict[str, Any]:
    """Predict a run, and run it."""
    with tempfile.TemporaryDirectory() as scratch:
        before = os.environ | {"XDG_CACHE_HOME": scratch}
        ours = [sys.executable, "-m", "dragoman"]
        cost = [*ours, "cost", recipe, *settings, "--measure", "--json"]
        told = subprocess.run(cost, stdout=subprocess.PIPE, text=True, check=True).stdout
        estimate = json.loads(told)
        stolen, start = _stolen(), perf_counter()
        train = [*ours, "train", recipe, f"out={scratch}/run", *settings]
        subprocess.run(train, env=before, check=True)
        taken = perf_counter() - start
        stolen = (_stolen() - stolen) / (taken * len(os.sched_getaffinity(0)))
    predicted = estimate["training"]["bill"]["seconds"]
    print(
        f"predicted {predicted:.0f} s, taken {taken:.0f} s ({taken / predicted - 1:+.1%}); "
        f"the host withheld {stolen:.1%} of the processors' time"
    )
    return {
        "predicted_seconds": predicted,
        "taken_seconds": taken,
        "stolen_share": stolen,
        "measured": estimate["measured"],
        "training": estimate["training"],
    }


def _stolen() -> float:
    """Seconds that the host has withheld from the processors that we may use, since it started."""
    ours = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    lines = map(str.split, Path("/proc/stat").read_text(encoding="utf-8").splitlines())
    ticks = sum(int(line[STEAL]) for line in lines if line[0] in ours)
    return ticks / os.sysconf("SC_CLK_TCK")
