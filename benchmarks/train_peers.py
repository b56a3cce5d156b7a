"""Tokens per second of training, and peak memory: ours, torch, Hugging Face and JoeyNMT.

The same sizes, batches (lengths of image captions, planned as a run plans them), dropout in the
same places, label smoothing, clipping and fused Adam; each engine and mode in a process of its own,
and they take turns. Peers are also measured through `torch.compile`. Tokens are those of sources
and targets without padding. JoeyNMT takes part where it is installed.
"""

import argparse
import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from time import sleep

from benchmarks.paired import BUILT, Figures, environment, save
from benchmarks.processes import running

PEERS_MODES = ("bf16", "bf16+compiled", "fp32")
MODES = {
    "dragoman": ("bf16", "fp32"),
    **dict.fromkeys(("torch", "huggingface", "joeynmt"), PEERS_MODES),
}
NEEDS = {"huggingface": "transformers", "joeynmt": "joeynmt"}
QUIET = 0.3
"""Seconds after which the threads of the engine before no longer spin."""


def measure(size: str, chosen: argparse.Namespace) -> Figures:
    """Run all engines in turn."""
    with ExitStack() as stack:
        engines = {
            f"{name} {mode}": stack.enter_context(
                running(
                    "benchmarks.train_engines",
                    [name, mode, size, str(chosen.threads), str(chosen.max_tokens)],
                )
            )
            for name, modes in MODES.items()
            for mode in modes
            if mode in chosen.modes and (name not in NEEDS or find_spec(NEEDS[name]))
        }
        rates: dict[str, list[float]] = {name: [] for name in engines}
        for _ in range(chosen.rounds + 1):
            for name, engine in engines.items():
                sleep(QUIET)
                answer = engine.ask({"batches": chosen.batches})
                rates[name].append(answer["tokens"] / answer["seconds"])
        found = {name: statistics.median(each[1:]) for name, each in rates.items()}
        peaks = {name: engine.peak() for name, engine in engines.items()}
    ours, peers = (
        {name for name in found if name.startswith("dragoman") is is_ours}
        for is_ours in (True, False)
    )
    best, rival = (max(names, key=found.__getitem__) for names in (ours, peers))
    smallest = min(peaks[name] for name in peers)
    ratios = sorted(a / b for a, b in zip(rates[best][1:], rates[rival][1:], strict=True))
    figures: Figures = {
        "rates": found,
        "peaks": peaks,
        "best": best,
        "rival": rival,
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "memory": peaks[best] / smallest,
        "memory of the rival": peaks[best] / peaks[rival],
    }
    for name, rate in found.items():
        print(f"{size} {name:<20}{rate:>9,.0f} tokens/s{peaks[name] / 2**20:>9,.0f} MiB")
    print(
        f"{size}: {best} / {rival} = {figures['ratio']:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}); "
        f"memory {figures['memory of the rival']:.2f} of its, {figures['memory']:.2f} of the least",
        flush=True,
    )
    return figures


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Measure each size, print a line for each engine and return the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks train-peers", description=__doc__)
    parser.add_argument("sizes", nargs="*", default=["tiny", "base"], metavar="tiny|base")
    parser.add_argument("--modes", nargs="+", default=PEERS_MODES, choices=PEERS_MODES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=9, help="of each engine in each round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--max-tokens", type=int, default=4096, help="of a batch")
    chosen = parser.parse_args(arguments)
    found = {}
    for size in chosen.sizes:
        name, machine = f"train-peers-{size}", environment(["transformers", "joeynmt"])
        options = vars(chosen) | {"sizes": [size]}
        found[name] = measure(size, chosen) | {"options": options, "environment": machine}
        save(name, found[name], BUILT)  # a run of many minutes may be cut short
    return found
