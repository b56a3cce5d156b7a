"""Tokens per second of decoding: ours, CTranslate2 and Hugging Face, on the same weights.

A model folder (or a random one of a known size) is converted by `dragoman convert`, which proves
that all three compute the same. Each engine and arithmetic runs in a process of its own, they take
turns, and every result is forced to the length of its source, so that nobody gains by stopping.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from time import sleep
from typing import IO, Any, cast

import torch

from benchmarks.decoding import SIZE
from benchmarks.paired import BUILT, Figures, environment, save
from dragoman.models import EncoderDecoder
from dragoman.models.defaults import DecodingDefaults
from dragoman.models.folder import FolderConfig, save_model
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.train import TokenizerConfig, train_tokenizer

SIZES = {
    "tiny": SIZE,
    "base": replace(
        SIZE,
        d_model=512,
        num_heads=8,
        d_ff=2048,
        num_decoder_layers=6,
        src_vocab_size=32000,
        tgt_vocab_size=32000,
    ),
}
MODES = {
    "dragoman": ("fp32", "bf16", "int8"),
    "ctranslate2": ("float32", "bfloat16", "int8", "int8_bfloat16"),
    "huggingface": ("float32",),
}
QUIET = 0.3
"""Seconds after which the threads of the engine before no longer spin."""
CELLS = ("1x1", "1x5", "16x1", "16x5", "64x1", "64x5")


class Engine:
    """A running process of `benchmarks.engines`."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._stdin, self._stdout = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)
        self.start = self._answer()["start"]

    def rate(self, cell: str, length: int, seconds: float) -> float:
        """Return the tokens per second of `ROWSxBEAM`."""
        rows, beam = map(int, cell.split("x"))
        asked = {"rows": rows, "beam": beam, "length": length, "seconds": seconds}
        print(json.dumps(asked), file=self._stdin, flush=True)
        found = self._answer()
        return float(found["tokens"] / found["seconds"])

    def peak(self) -> int:
        """End it; return the most memory that it held, in bytes."""
        self._stdin.close()
        return int(self._answer()["peak"])

    def _answer(self) -> dict[str, Any]:
        return dict(json.loads(self._stdout.readline() or "{}"))


@contextmanager
def running(name: str, mode: str, folder: Path, threads: int) -> Iterator[Engine]:
    """Start an engine, and leave no process behind."""
    command = [sys.executable, "-m", "benchmarks.engines", name, mode, str(folder), str(threads)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield Engine(process)
        finally:
            process.kill()


def random_folder(size: str, out: Path) -> Path:
    """Save a model of random weights, with a tokenizer of made-up pieces."""
    config = SIZES[size]
    lines = ["abcdefghijklmnopqrstuvwxyz"] * 10
    known = train_tokenizer(lines, TokenizerConfig(vocab_size=300))
    known.save(out.with_suffix(".json"))
    content = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    vocabulary = content["model"]["vocab"]
    for id_ in range(known.vocab_size, config.src_vocab_size):
        vocabulary[f"piece{id_}"] = id_
    tokenizer = Tokenizer.from_json(json.dumps(content), "a made-up tokenizer")
    torch.manual_seed(0)
    about = FolderConfig(model=config, decoding=DecodingDefaults())
    save_model(out, EncoderDecoder(config), about, tokenizers=(tokenizer, tokenizer))
    return out


def measure(model: Path, scratch: Path, chosen: argparse.Namespace) -> Figures:
    """Convert the model and run all engines in turn."""
    import ctranslate2

    from dragoman.convert.targets import convert

    folders = {"dragoman": model}
    for to in ("ctranslate2", "huggingface"):
        folders[to] = scratch / to
        convert(model, folders[to], to)
    figures: Figures = {"cells": {}, "start": {}, "peak": {}}
    with ExitStack() as stack:
        engines = {
            f"{name} {mode}": stack.enter_context(
                running(name, mode, folders[name], chosen.threads)
            )
            for name, modes in MODES.items()
            for mode in modes
            if name != "ctranslate2" or mode in ctranslate2.get_supported_compute_types("cpu")
        }
        figures["start"] = {name: engine.start for name, engine in engines.items()}
        for cell in chosen.cells:
            rates: dict[str, list[float]] = {name: [] for name in engines}
            for _ in range(chosen.rounds + 1):
                for name, engine in engines.items():
                    sleep(QUIET)
                    rates[name].append(engine.rate(cell, chosen.length, chosen.seconds))
            found = {name: statistics.median(each[1:]) for name, each in rates.items()}
            best = {
                kind: max(rate for name, rate in found.items() if name.startswith(kind))
                for kind in MODES
            }
            ratios = {kind: best["dragoman"] / best[kind] for kind in MODES if kind != "dragoman"}
            figures["cells"][cell] = {"rates": found, "ratios": ratios}
            shown = "  ".join(f"{name} {rate:,.0f}" for name, rate in found.items())
            compared = ", ".join(f"{ratio:.2f} of {kind}" for kind, ratio in ratios.items())
            print(f"{cell:<6}{shown}; best {compared}", flush=True)
        figures["peak"] = {name: engine.peak() for name, engine in engines.items()}
    return figures


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Measure each model, print a line for each cell and return the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks decode-peers", description=__doc__)
    parser.add_argument(
        "models", nargs="*", default=list(SIZES), help=f"model folders, or {' or '.join(SIZES)}"
    )
    parser.add_argument("--cells", nargs="+", default=CELLS, metavar="ROWSxBEAM")
    parser.add_argument("--length", type=int, default=32, help="tokens of source and of output")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each engine in each round")
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args(arguments)
    found = {}
    for model in chosen.models:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(model)
            if model in SIZES:
                folder = random_folder(model, Path(scratch) / model)
            figures = measure(folder, Path(scratch), chosen)
        name, machine = f"decode-peers-{folder.name}", environment(["ctranslate2", "transformers"])
        options = vars(chosen) | {"models": [folder.name]}
        found[name] = figures | {"options": options, "environment": machine}
        save(name, found[name], BUILT)  # a run of many minutes may be cut short
    return found
