"""How much other work on the machine slows training and translating down.

    python -m benchmarks busy

Whole commands, start-up included: some steps of the recipe `demo`, and its sentences translated
with beam search, with 0, 1 and 2 processes beside them that keep a core busy. Each is run as the
command line sets itself up (idle threads sleep) and as PyTorch does by itself (idle threads spin).
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.paired import Figures, environment
from dragoman.data.made import demo_corpus

SPINNING = {"GOMP_SPINCOUNT": "300000"}
"""What libgomp does where nobody has chosen: spin so often, then sleep."""
DRAGOMAN = (sys.executable, "-m", "dragoman")


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Measure, print and return the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks busy", description=__doc__)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 1, 2], help="busy processes")
    parser.add_argument("--steps", type=int, default=100, help="steps of training")
    parser.add_argument("--lines", type=int, default=300, help="sentences to translate")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _write_texts(folder, chosen.lines)
        found = [
            _measure(folder, busy, chosen.steps, chosen.rounds) for busy in sorted(chosen.busy)
        ]
    return {"busy": {"options": vars(chosen), "environment": environment(), "found": found}}


def _write_texts(folder: Path, lines: int) -> None:
    corpus = demo_corpus()
    parts = {"train": corpus.train[: max(2000, lines)], "valid": corpus.valid[:50]}
    parts["test"] = corpus.test[:lines]
    for name, pairs in parts.items():
        for side in ("src", "tgt"):
            text = "".join(f"{getattr(pair, side)}\n" for pair in pairs)
            (folder / f"{name}.{side}").write_text(text, encoding="utf-8")


def _measure(folder: Path, busy: int, steps: int, rounds: int) -> dict[str, Any]:
    """The medians of both commands with `busy` processes beside them, in seconds."""
    seconds: dict[str, list[float]] = {}
    with _busy_processes(busy):
        for number in range(rounds):
            model = folder / f"run-{busy}-{number}"
            for policy, setting in (("sleeping", {}), ("spinning", SPINNING)):
                out = model.with_name(f"{model.name}-{policy}")
                train = _train(folder, out, steps)
                translate = ("translate", str(out), str(folder / "test.src"), "--beam-size", "5")
                for verb, command in (("train", train), ("translate", translate)):
                    seconds.setdefault(f"{verb} {policy}", []).append(_run(command, setting))
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    for verb in ("train", "translate"):
        sleeping, spinning = medians[f"{verb} sleeping"], medians[f"{verb} spinning"]
        print(
            f"{verb:<10} {busy} busy   sleeping {sleeping:6.1f} s   spinning {spinning:6.1f} s   "
            f"ratio {spinning / sleeping:.2f}",
            flush=True,
        )
    return {"busy": busy, "seconds": seconds, "medians": medians}


def _train(folder: Path, out: Path, steps: int) -> tuple[str, ...]:
    texts = {"src": "train.src", "tgt": "train.tgt"}
    texts |= {"valid_src": "valid.src", "valid_tgt": "valid.tgt"}
    data = [f"data.{key}={folder / name}" for key, name in texts.items()]
    cache = f"data.cache={folder / 'cache'}"
    every = [f"train.{name}={steps}" for name in ("max_steps", "validate_every", "save_every")]
    every.append("train.max_minutes=1000")  # or else the learning rate would follow the clock
    return ("train", "demo", f"out={out}", *data, cache, *every)


def _run(command: Sequence[str], setting: dict[str, str]) -> float:
    inherited = {name: value for name, value in os.environ.items() if name not in SPINNING}
    start = perf_counter()
    subprocess.run([*DRAGOMAN, *command], env=inherited | setting, check=True, capture_output=True)
    return perf_counter() - start


@contextmanager
def _busy_processes(number: int) -> Iterator[None]:
    loop = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(loop) for _ in range(number)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
