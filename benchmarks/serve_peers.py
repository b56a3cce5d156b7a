"""`dragoman serve` under load, against two servers around CTranslate2 with the same weights.

The peers are Flask under waitress, which is LibreTranslate's way, and FastAPI under uvicorn; both
call CTranslate2 once a text, each in the fastest of the modes that are tried. Texts are those of
Multi30k and MSCTD, read from DRAGOMAN_DATA and drawn anew in each run of load; a random model
has a tokenizer learned from them, and writes as many tokens as it reads.

Load is open: texts are due at random moments (a Poisson process), and a reply's time begins when
its text was due. `capacity` is what clients get that send as soon as they are answered; `rate` the
highest of some shares of it at which 99 % of the replies come within --p99 seconds.
"""

import argparse
import lzma
import os
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import torch

from benchmarks.decode_peers import SIZES, made_up_tokenizer
from benchmarks.http_load import SOON, load, summary
from benchmarks.paired import Figures, environment
from benchmarks.processes import running
from benchmarks.servers import Launcher, MemoryWatch, Server
from dragoman.decoding import Decoding
from dragoman.folder.format import FolderConfig, save_model
from dragoman.models import EncoderDecoder

FILES = ("multi30k/train.en.xz", "msctd-de-en/train.en.xz")
PEERS = ("flask", "fastapi")
MODES = ("float32", "float32+workers", "int8", "int8+1", "int8+workers")
SHARES = (0.95, 0.85, 0.7, 0.5)
"""Of the capacity: the rates that are tried."""
OVERLOAD = ("--queue-tokens", "1024")
"""A queue that is full at once: what is accepted is answered soon."""


def corpus() -> list[str]:
    """Return sentences of captions and of dialogues, as many of each."""
    data = Path(os.environ["DRAGOMAN_DATA"])
    each = [lzma.decompress((data / name).read_bytes()).decode().splitlines() for name in FILES]
    return [line for pair in zip(*each, strict=False) for line in pair if line.strip()]


def random_folder(size: str, texts: Sequence[str], beam: int, scratch: Path) -> Path:
    """Save a model of random weights whose translations are as long as their sources."""
    config = SIZES[size]
    tokenizer = made_up_tokenizer(config.src_vocab_size, scratch, texts, learned=8000)
    torch.manual_seed(0)
    as_long = Decoding(max_length_factor=1.0, max_length_constant=1)
    decoding = replace(as_long, beam_size=beam, retry=False, split_sentences=False)
    about = FolderConfig(model=config, decoding=decoding)
    save_model(scratch / size, EncoderDecoder(config), about, tokenizers=(tokenizer, tokenizer))
    return scratch / size


Chosen = argparse.Namespace


def drawn(texts: Sequence[str], seed: int) -> list[str]:
    """Return texts, the same for all servers."""
    return Random(seed).choices(texts, k=2000)


def measure_load(launcher: Launcher, texts: Sequence[str], chosen: Chosen) -> Figures:
    """All servers in turn, with each number of clients."""
    modes = {
        name: _capacity(launcher, name, texts, chosen)
        for name in (f"{peer} {mode}" for peer in chosen.peers for mode in chosen.modes)
    }
    best = [
        max((name for name in modes if name.startswith(peer)), key=lambda name: modes[name])
        for peer in chosen.peers
    ]
    cells: Figures = {}
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(launcher.started(name)) for name in ("dragoman", *best)
        }
        for clients in chosen.clients:
            rounds = [
                {
                    name: _sustained(server, drawn(texts, seed), clients, chosen)
                    for name, server in servers.items()
                }
                for seed in range(chosen.rounds + 1)
            ][1:]
            cell: Figures = {
                name: {key: statistics.median(each[name][key] for each in rounds) for key in keys}
                for name, keys in rounds[0].items()
            }
            for name, found in cell.items():
                shown = ", ".join(f"{key} {value:,.1f}" for key, value in found.items())
                print(f"{clients:>3} clients  {name:<24}{shown}", flush=True)
            for key in ("capacity", "rate") if best else ():
                ratios = [
                    each["dragoman"][key] / max(each[n][key] for n in best) for each in rounds
                ]
                cell[f"{key}_ratio"] = ratio = statistics.median(ratios)
                print(f"{clients:>3} clients  {key}: {ratio:.2f} of the best peer's", flush=True)
            cells[str(clients)] = cell
    return {"modes": modes, "cells": cells}


def _capacity(launcher: Launcher, name: str, texts: Sequence[str], chosen: Chosen) -> float:
    """Answers a second of a server that was just started, with the most clients."""
    with launcher.started(name) as server:
        sent = load(server.target, drawn(texts, 0), max(chosen.clients), seconds=chosen.seconds)
    rate = float(summary(*sent)["rate"])
    print(f"{name:<24}{rate:,.1f} sentences/s", flush=True)
    return rate


def _sustained(
    server: Server, texts: Sequence[str], clients: int, chosen: Chosen
) -> dict[str, float]:
    """The capacity, and the highest rate that is answered in time."""
    full = summary(*load(server.target, texts, clients, seconds=chosen.seconds))
    found = dict[str, Any]()
    for share in SHARES:
        rate = share * full["rate"]
        sent = load(server.target, texts, clients, seconds=chosen.seconds, rate=rate)
        found = summary(*sent)
        if found["p99"] <= 1000 * chosen.p99:
            break
    assert {*full["status"], *found["status"]} == {"200"}
    times = {key: found[key] for key in ("rate", "p50", "p99")}
    return {"capacity": full["rate"], "capacity_p99": full["p99"], **times}


def measure_alone(launcher: Launcher, texts: Sequence[str], chosen: Chosen) -> Figures:
    """One client, against the same calls without a server."""
    words = ["bare", str(launcher.folders["dragoman"]), launcher.mode]
    pairs = []
    with (
        launcher.started("dragoman") as server,
        running("benchmarks.serve_engines", words) as engine,
    ):
        for seed in range(chosen.rounds + 1):
            some = drawn(texts, seed)[: chosen.calls]
            bare = 1000 * statistics.median(engine.ask({"texts": some})["seconds"])
            served = summary(*load(server.target, some, 1, most=len(some)))["p50"]
            pairs.append((served, bare))
    served, bare = (statistics.median(side) for side in zip(*pairs[1:], strict=True))
    ratio = statistics.median(mine / theirs for mine, theirs in pairs[1:])
    print(f"one client: p50 {served:.1f} ms, bare call {bare:.1f} ms, ratio {ratio:.2f}")
    return {"served": served, "bare": bare, "ratio": ratio}


def measure_overload(launcher: Launcher, texts: Sequence[str], chosen: Chosen) -> Figures:
    """Ten times what can be answered: all that is accepted is, the rest refused at once."""
    with launcher.started("dragoman", OVERLOAD) as server:
        full = summary(*load(server.target, texts, max(chosen.clients), seconds=chosen.seconds))
        rate = 10 * float(full["rate"])
        with MemoryWatch(server) as memory:
            sent = load(server.target, texts, chosen.senders, seconds=chosen.overload, rate=rate)
        found = summary(*sent) | {"slope": memory.slope, "memory": server.memory()}
    found |= {"capacity": full["rate"], "sent": len(sent[0]) / sent[1]}
    statuses = found["status"]
    found["lost"] = sum(statuses.values()) - statuses.get("200", 0) - statuses.get("429", 0)
    print(
        f"overload: {found['sent']:,.0f} a second sent for {sent[1]:,.0f} s, "
        f"{found['sent'] / found['capacity']:.1f} times the {found['capacity']:,.0f} that can be "
        f"answered, {found['late_p99']:.1f} ms late at p99\n"
        f"  {statuses.get('200', 0):,} answered, p99 {found['p99']:,.0f} ms; {found['lost']} lost\n"
        f"  {statuses.get('429', 0):,} refused, p50 {found['refused_p50']:.1f} ms, p99 "
        f"{found['refused_p99']:.1f} ms, {found['refused_soon']:.2%} within {1000 * SOON:.0f} ms\n"
        f"  memory {found['memory']:,.0f} MiB, {found['slope']:+.2f} a minute in the second half",
        flush=True,
    )
    return found


def measure_restart(launcher: Launcher, _texts: Sequence[str], chosen: Chosen) -> Figures:
    """Seconds from a start after `kill -9` until the server is ready."""
    seconds = []
    for _ in range(chosen.rounds + 1):
        with launcher.started("dragoman") as server:
            seconds.append(server.ready)
    print(f"restart: ready after {statistics.median(seconds[1:]):.2f} s", flush=True)
    return {"ready": seconds[1:]}


def measure_soak(launcher: Launcher, texts: Sequence[str], chosen: Chosen) -> Figures:
    """Many short requests, and the memory before and after them."""
    short = [" ".join(text.split()[:2]) for text in drawn(texts, 0)]
    clients, first = max(chosen.clients), chosen.requests // 10
    with launcher.started("dragoman") as server:
        load(server.target, short, clients, most=first)
        before = server.memory()
        found = summary(*load(server.target, short, clients, most=chosen.requests))
        after = server.memory()
    assert found["status"] == {"200": chosen.requests}
    print(
        f"soak: {chosen.requests:,} requests, {found['rate']:,.0f} a second, memory "
        f"{before:,.0f} MiB before, {after:,.0f} after",
        flush=True,
    )
    return found | {"before": before, "after": after}


PARTS = {
    "load": measure_load,
    "alone": measure_alone,
    "overload": measure_overload,
    "restart": measure_restart,
    "soak": measure_soak,
}


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Measure a model, print lines and return the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks serve-peers", description=__doc__)
    parser.add_argument("model", nargs="?", default="base", choices=SIZES)
    parser.add_argument("--parts", nargs="+", default=[*PARTS], choices=PARTS)
    parser.add_argument("--peers", nargs="*", default=PEERS, choices=PEERS)
    parser.add_argument("--modes", nargs="+", default=MODES, help="of CTranslate2")
    parser.add_argument("--compute", default="int8", help="our arithmetic")
    parser.add_argument("--clients", nargs="+", type=int, default=[1, 8, 32])
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--p99", type=float, default=1.0, help="seconds that are in time")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each run of load")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=50, help="of one client in a round")
    parser.add_argument("--overload", type=float, default=30.0, help="seconds of overload")
    parser.add_argument("--senders", type=int, default=200, help="connections of overload")
    parser.add_argument("--requests", type=int, default=20_000, help="of the soak")
    chosen = parser.parse_args(arguments)
    texts = corpus()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        folders = {"dragoman": random_folder(chosen.model, texts, chosen.beam, scratch)}
        if chosen.peers and "load" in chosen.parts:
            from dragoman.convert.targets import convert

            folders["ctranslate2"] = scratch / "ctranslate2"
            convert(folders["dragoman"], folders["ctranslate2"], "ctranslate2")
        launcher = Launcher(folders, chosen.beam, chosen.compute, scratch / "log")
        found = {part: PARTS[part](launcher, texts, chosen) for part in chosen.parts}
    machine = environment(["ctranslate2", "fastapi", "flask", "uvicorn", "waitress"])
    figures = found | {"options": vars(chosen), "environment": machine}
    return {f"serve-peers-{chosen.model}": figures}
