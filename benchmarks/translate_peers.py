"""Whole commands on a file of text: `dragoman translate`, and a script with CTranslate2.

    python -m benchmarks translate-peers runs/en-de test.en --references test.de

The model is converted by `dragoman convert`. The script is what its documentation would have one
write: lines read by the same tokenizer, streamed in batches by tokens (`translate_iterable`),
results in order, by one worker or by several. All take turns; start-up counts. The length penalties
are other formulas, so the script's exponent can be given.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.paired import Figures, environment

THEIRS = """
import sys
import ctranslate2
from tokenizers import Tokenizer

folder, mode, beam, alpha = sys.argv[1:]
arithmetic, _, workers = mode.partition("+")
tokenizer = Tokenizer.from_file(folder + "/tokenizer.json")
threads = {"inter_threads": 2, "intra_threads": 1} if workers else {"intra_threads": 2}
engine = ctranslate2.Translator(folder, compute_type=arithmetic, **threads)
lines = (line.rstrip("\\n") for line in sys.stdin)
encoded = (tokenizer.encode(line, add_special_tokens=False).tokens for line in lines)
found = engine.translate_iterable(encoded, max_batch_size=1024, batch_type="tokens",
                                  beam_size=int(beam), length_penalty=float(alpha))
for result in found:
    ids = [tokenizer.token_to_id(piece) for piece in result.hypotheses[0]]
    print(tokenizer.decode(ids, skip_special_tokens=False))
"""
"""`MODE+workers` translates two batches side by side, with one thread each."""
LAUNCHER = (
    sys.executable,
    "-c",
    "import resource, subprocess, sys; subprocess.run(sys.argv[2:], check=True); "
    "used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss; "
    "open(sys.argv[1], 'w').write(str(used))",
)
"""Runs a command and writes its peak memory in KiB to a file; a process begins with the peak of the
one that starts it, so that is a small one."""


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Time both, print a line for each and return the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks translate-peers", description=__doc__)
    parser.add_argument("model", type=Path, help="a model folder")
    parser.add_argument("source", type=Path, help="lines to translate")
    parser.add_argument("--references", type=Path, help="their translations, for BLEU")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--alpha", type=float, default=1.0, help="length penalty of CTranslate2")
    parser.add_argument("--ours", nargs="*", default=["int8"], help="our arithmetics")
    parser.add_argument(
        "--theirs", nargs="*", default=["float32", "int8", "float32+workers", "int8+workers"]
    )
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    from dragoman.convert.targets import convert

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "ctranslate2"
        convert(chosen.model, folder, "ctranslate2")
        beam = str(chosen.beam)
        ours = [sys.executable, "-m", "dragoman", "--quiet", "translate", str(chosen.model)]
        theirs = [sys.executable, "-c", THEIRS, str(folder)]
        commands = {
            f"dragoman {mode}": [*ours, "--compute", mode, "--beam-size", beam]
            for mode in chosen.ours
        } | {
            f"ctranslate2 {mode}": [*theirs, mode, beam, str(chosen.alpha)]
            for mode in chosen.theirs
        }
        rounds = [
            {name: _run(command, chosen.source) for name, command in commands.items()}
            for _ in range(chosen.rounds)
        ]
    found = {
        name: {
            "seconds": statistics.median(each[name]["seconds"] for each in rounds),
            "peak": max(each[name]["peak"] for each in rounds),
            "bleu": _bleu(rounds[0][name]["lines"], chosen.references),
        }
        for name in commands
    }
    for name, each in found.items():
        print(
            f"{name:<22} {each['seconds']:8.2f} s  {each['peak'] >> 20:6,} MiB  BLEU {each['bleu']}"
        )
    options = vars(chosen) | {"model": chosen.model.name, "source": chosen.source.name}
    options["references"] = chosen.references and chosen.references.name
    machine = environment(["ctranslate2"])
    return {"translate-peers": {"options": options, "environment": machine, "found": found}}


def _run(command: Sequence[str], source: Path) -> dict[str, Any]:
    """Give the file to a command: its lines, its seconds and its peak memory in bytes."""
    with tempfile.TemporaryDirectory() as scratch, source.open("rb") as lines:
        out, peak = Path(scratch) / "out", Path(scratch) / "peak"
        start = perf_counter()
        with out.open("wb") as stream:
            subprocess.run([*LAUNCHER, str(peak), *command], stdin=lines, stdout=stream, check=True)
        seconds = perf_counter() - start
        return {
            "seconds": seconds,
            "peak": int(peak.read_text("utf-8")) * 1024,
            "lines": out.read_text("utf-8").splitlines(),
        }


def _bleu(translations: Sequence[str], references: Path | None) -> float | None:
    if references is None:
        return None
    from dragoman.evaluate import evaluate

    return round(evaluate(translations, references.read_text("utf-8").splitlines()).bleu, 2)
