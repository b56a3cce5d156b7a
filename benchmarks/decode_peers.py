"""Tokens per second of decoding: ours, CTranslate2 and Hugging Face, on the same weights.

A model folder (or a random one of a known size) is converted by `dragoman convert`, which proves
that all three compute the same; `llama` is a decoder-only model (`benchmarks.llama`), with prompts
for sources, and the published shapes are folders that `transformers` writes and ours reads as they
are (`benchmarks.published`). Each engine and arithmetic runs in a process of its own, they take
turns, and every result is forced to one length, so that nobody gains by stopping. In fp32 all
should write the same ids: the share of rows in which they do is told.
"""

import argparse
import json
import math
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from time import sleep
from typing import Any

import torch

from benchmarks.decoding import SIZE
from benchmarks.paired import BUILT, Figures, environment, save
from benchmarks.processes import running
from dragoman.decoding import Decoding
from dragoman.folder.format import FolderConfig, save_model
from dragoman.folder.opening import open_folder
from dragoman.models import EncoderDecoder
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
LAYOUTS = ("", "+1", "+workers")
MODES = {
    "dragoman": ("fp32", "bf16", "int8", "int8+1"),
    "ctranslate2": tuple(
        arithmetic + layout
        for arithmetic in ("float32", "bfloat16", "int8", "int8_bfloat16")
        for layout in LAYOUTS
    ),
    "huggingface": ("float32", "float32+static", "bfloat16", "bfloat16+static"),
}
"""What each engine is measured in, unless `--engines` says otherwise; `benchmarks.engines` has the
meaning of a mode, and modes that are slower or take minutes to compile."""
PUBLISHED = ("opus", "nllb", "t5", "llama100")
KNOWN = (*SIZES, "llama", *PUBLISHED)
SHORTLISTED = "dragoman int8+shortlist"
"""With lists of some hundred tokens for each sentence, drawn by Zipf's law; in a column of its own,
since it decodes something else."""
EXACT = ("dragoman fp32", "ctranslate2 float32", "huggingface float32")
"""Engines that compute the same, up to rounding."""
QUIET = 0.3
"""Seconds after which the threads of the engine before no longer spin."""
CELLS = ("1x1", "1x5", "16x1", "16x5", "64x1", "64x5")
LENGTH = 32


LETTERS = ("abcdefghijklmnopqrstuvwxyz",) * 10


def made_up_tokenizer(
    vocab_size: int, scratch: Path, texts: Sequence[str] = LETTERS, learned: int = 300
) -> Tokenizer:
    """A tokenizer of pieces learned from texts, and so many in all: the rest stand for nothing."""
    known = train_tokenizer(texts, TokenizerConfig(vocab_size=learned))
    file = scratch / "tokenizer.json"
    known.save(file)
    content = json.loads(file.read_text(encoding="utf-8"))
    pieces = {f"piece{id_}": id_ for id_ in range(known.vocab_size, vocab_size)}
    content["model"]["vocab"] |= pieces
    return Tokenizer.from_json(json.dumps(content), "a made-up tokenizer")


def random_folder(size: str, out: Path) -> Path:
    """Save a model of random weights, with a tokenizer of made-up pieces."""
    config = SIZES[size]
    tokenizer = made_up_tokenizer(config.src_vocab_size, out.parent)
    torch.manual_seed(0)
    about = FolderConfig(model=config, decoding=Decoding())
    save_model(out, EncoderDecoder(config), about, tokenizers=(tokenizer, tokenizer))
    return out


def folders_of(model: str, scratch: Path) -> dict[str, Path]:
    """Return the folder of each engine."""
    if model == "llama":
        from benchmarks.llama import SIZE, llama_folders

        return llama_folders(made_up_tokenizer(SIZE.vocab_size, scratch), scratch)
    if model in PUBLISHED:
        from benchmarks.published import published_folders

        return published_folders(model, scratch)
    from dragoman.convert.targets import convert

    ours = random_folder(model, scratch / model) if model in SIZES else Path(model)
    folders = {"dragoman": ours}
    for to in ("ctranslate2", "huggingface"):
        folders[to] = scratch / to
        convert(ours, folders[to], to)
    return folders


def asked_of(cell: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """What an engine is asked to decode for `ROWSxBEAM`."""
    rows, beam = map(int, cell.split("x"))
    asked = {name: getattr(chosen, name) for name in ("length", "output", "seconds")}
    return {"rows": rows, "beam": beam, **asked}


def engines_of(asked: Sequence[str] | None, folder: Path) -> list[str]:
    """Return the engines and modes to measure, without those that cannot run here."""
    import ctranslate2

    known = ctranslate2.get_supported_compute_types("cpu")
    every = [f"{name} {mode}" for name, modes in MODES.items() for mode in modes]
    lists = open_folder(folder).config.model.kind == "encoder-decoder"

    def runs(engine: str) -> bool:
        name, mode = engine.split()
        if name == "ctranslate2" and "+mkl" not in mode:  # which has other types
            return mode.partition("+")[0] in known
        return lists or engine != SHORTLISTED

    return list(filter(runs, asked or [*every, SHORTLISTED]))


def measure(folders: dict[str, Path], chosen: argparse.Namespace) -> Figures:
    """Run all engines in turn."""
    figures: Figures = {"cells": {}, "peak": {}}
    with ExitStack() as stack:
        engines, begun = {}, {}
        for engine in engines_of(chosen.engines, folders["dragoman"]):
            name, mode = engine.split()
            words = [name, mode, str(folders[name]), str(chosen.threads)]
            engines[engine] = stack.enter_context(running("benchmarks.engines", words))
            begun[engine] = engines[engine].begin  # before the next one starts
        for time in ("start", "load", "ready"):
            figures[time] = {name: begin[time] for name, begin in begun.items()}
            seconds = ", ".join(f"{name} {found:.2f}" for name, found in figures[time].items())
            print(f"{time}, in s: {seconds}", flush=True)
        for cell in chosen.cells:
            rates: dict[str, list[float]] = {name: [] for name in engines}
            ids: dict[str, list[list[int]]] = {}
            for _ in range(chosen.rounds + 1):
                for name, engine in engines.items():
                    sleep(QUIET)
                    answer = engine.ask(asked_of(cell, chosen))
                    rates[name].append(answer["tokens"] / answer["seconds"])
                    ids[name] = answer["ids"]
            found = {name: statistics.median(each[1:]) for name, each in rates.items()}
            best = {
                kind: max(
                    rate
                    for name, rate in found.items()
                    if name.startswith(kind) and name != SHORTLISTED
                )
                for kind in MODES
                if any(name.startswith(kind) for name in found)
            }
            ours = best.pop("dragoman", math.nan)
            ratios = {kind: ours / rate for kind, rate in best.items()}
            exact = zip(*(found for name, found in ids.items() if name in EXACT), strict=True)
            same = fmean([all(row == rows[0] for row in rows) for rows in exact] or [0.0])
            if SHORTLISTED in found and "ctranslate2" in best:
                ratios["ctranslate2, with a shortlist"] = found[SHORTLISTED] / best["ctranslate2"]
            figures["cells"][cell] = {"rates": found, "ratios": ratios, "same": same}
            shown = "  ".join(f"{name} {rate:,.0f}" for name, rate in found.items())
            compared = ", ".join(f"{ratio:.2f} of {kind}" for kind, ratio in ratios.items())
            print(f"{cell:<6}{shown}; best {compared}; same ids {same:.0%}", flush=True)
        figures["peak"] = {name: engine.peak() for name, engine in engines.items()}
    return figures


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Measure each model, print a line for each cell and return the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks decode-peers", description=__doc__)
    parser.add_argument(
        "models", nargs="*", default=list(SIZES), help=f"model folders, or {', '.join(KNOWN)}"
    )
    parser.add_argument(
        "--engines",
        nargs="+",
        metavar='"ENGINE MODE"',
        help="such as 'ctranslate2 int8+workers'; those of MODES, if omitted",
    )
    parser.add_argument("--cells", nargs="+", default=CELLS, metavar="ROWSxBEAM")
    parser.add_argument("--length", type=int, default=LENGTH, help="tokens of source or prompt")
    parser.add_argument("--output", type=int, default=LENGTH, help="tokens to write")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each engine in each round")
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args(arguments)
    found = {}
    for model in chosen.models:
        with tempfile.TemporaryDirectory() as scratch:
            figures = measure(folders_of(model, Path(scratch)), chosen)
        short = Path(model).name
        name, machine = f"decode-peers-{short}", environment(["ctranslate2", "transformers"])
        options = vars(chosen) | {"models": [short]}
        found[name] = figures | {"options": options, "environment": machine}
        save(name, found[name], BUILT)  # a run of many minutes may be cut short
    return found
