"""What each setting of training brings: variants of a recipe, one change each, at equal steps.

    python -m benchmarks settings --out runs/settings
    python -m benchmarks settings --out DIR --seeds 1 --only plain r-drop-5 -- model.dropout=0.3

`plain` is the recipe without guided alignment, noise in the texts, R-Drop, dropped layers and
averages of weights; its other settings stay. Every other variant is `plain` with what VARIANTS
says, `all` with several at once. More are defined by --add NAME KEY=VALUE ..., and KEY=VALUE after
`--` holds for all. Each variant learns once for each seed, --jobs at a time with one thread each,
in --out/NAME-SEED beside a log, and translates test_2016_flickr. What is finished in --out is not
done again, and what was interrupted goes on; the first seed of all variants comes first.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.multi30k import TEST, test_set, tokenised_bleu, translation_recipe
from benchmarks.paired import Figures, environment, save
from dragoman.files.reading import read_lines
from dragoman.files.writing import replacing
from dragoman.train.progress import handling_ends

PLAIN = (
    "data.guided_alignment=0",
    "batch.subword_sampling=0",
    "batch.token_dropout=0",
    "model.layer_drop=0",
    "train.r_drop=0",
    "train.average_last=1",
)
VARIANTS: dict[str, Sequence[str]] = {
    "plain": (),
    "guided-alignment-0.05": ("data.guided_alignment=0.05",),
    "r-drop-1": ("train.r_drop=1",),
    "r-drop-5": ("train.r_drop=5",),
    "token-dropout-0.05": ("batch.token_dropout=0.05",),
    "token-dropout-0.1": ("batch.token_dropout=0.1",),
    "token-dropout-0.2": ("batch.token_dropout=0.2",),
    "subword-sampling-0.05": ("batch.subword_sampling=0.05",),
    "subword-sampling-0.1": ("batch.subword_sampling=0.1",),
    "subword-sampling-0.2": ("batch.subword_sampling=0.2",),
    "layer-drop-0.1": ("model.layer_drop=0.1",),
    "smoothing-0": ("train.label_smoothing=0",),
    "smoothing-0.2": ("train.label_smoothing=0.2",),
    "ema-0.999": ("train.ema=0.999",),
    "average-4": ("train.average_last=4",),
    "average-10": ("train.average_last=10",),
    "dropout-0.1": ("model.dropout=0.1",),
    "dropout-0.2": ("model.dropout=0.2",),
    "dropout-0.3": ("model.dropout=0.3",),
    "dropout-0.4": ("model.dropout=0.4",),
    "attention-dropout-0.1": ("model.attention_dropout=0.1",),
    "ffn-dropout-0.1": ("model.ffn_dropout=0.1",),
    "all": (  # what guided alignment cannot be combined with, and what it can
        *("batch.subword_sampling=0.1", "batch.token_dropout=0.1"),
        *("train.ema=0.999", "train.average_last=4"),
    ),
    "all-guided": (
        *("data.guided_alignment=0.05", "batch.token_dropout=0.1"),
        *("train.ema=0.999", "train.average_last=4"),
    ),
}
VALIDATIONS = 6
"""Of a run: enough to see how it goes, and a small part of its time."""
COLUMNS = {
    "bleu": "BLEU (13a, cased)",
    "tokenised": "BLEU tokenised",
    "valid_bleu": "BLEU of validation",
    "seconds": "seconds",
    "steps_per_second": "steps/s",
}
SHOWN = 8
"""Lines of the log of a run that failed."""


class StoppedError(Exception):
    """The whole was asked to end."""


@dataclass
class Programs:
    """Our programs, several at a time, on one thread each; they end with this one."""

    running: set["subprocess.Popen[str]"] = field(default_factory=set)
    stopped: bool = False

    def run(self, command: Sequence[str], log: Path) -> str:
        """Run one to its end; its talk goes to the log, its output comes back."""
        if self.stopped:
            raise StoppedError
        program, one = [sys.executable, "-m", "dragoman", *command], {"OMP_NUM_THREADS": "1"}
        pipe = subprocess.PIPE
        with (
            log.open("a", encoding="utf-8") as talk,
            subprocess.Popen(
                program, stdout=pipe, stderr=talk, text=True, env=os.environ | one
            ) as process,
        ):
            self.running.add(process)
            output, _ = process.communicate()
            self.running.discard(process)
        if self.stopped:
            raise StoppedError
        if process.returncode:
            raise RuntimeError(f"dragoman {command[0]} ended with status {process.returncode}")
        return output

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        """Ask all to end: a run of training saves where it is."""
        self.stopped = True
        for process in [*self.running]:
            process.terminate()


@dataclass(frozen=True)
class Run:
    """A variant with a seed, in its place."""

    variant: str
    seed: int
    settings: Sequence[str]
    chosen: argparse.Namespace

    @property
    def out(self) -> Path:
        """Its model folder; the files beside it begin with its name."""
        return Path(self.chosen.out / f"{self.variant}-{self.seed}")

    def beside(self, end: str) -> Path:
        """A file beside its folder."""
        return self.out.with_name(f"{self.out.name}.{end}")

    def measure(self, programs: Programs) -> dict[str, Any]:
        """Train and score it, unless that is done; return its figures.

        Raises ValueError where --out has the figures of other settings, RuntimeError where a
        command fails.
        """
        kept, log = self.beside("json"), self.beside("log")
        if kept.exists():
            found: dict[str, Any] = json.loads(kept.read_text("utf-8"))
            if found["settings"] != [*self.settings]:
                raise ValueError(f"{kept} is of other settings; choose another --out")
            return found
        recipe = self.chosen.recipe
        if not (self.out / "training" / "finished.json").exists():
            programs.run(["train", recipe, f"out={self.out}", *self.settings], log)
        test = test_set(translation_recipe(recipe, self.settings))
        assert test.src is not None
        assert test.tgt is not None
        hyp, beam = self.beside("hyp"), f"--beam-size={self.chosen.beam}"
        command = ["evaluate", f"{self.out}", "--src", test.src, "--ref", test.tgt, beam, "--json"]
        scores = json.loads(programs.run([*command, "--hyp", f"{hyp}", "--overwrite"], log))
        references = [*read_lines(Path(test.tgt))]
        tokenised, how = tokenised_bleu([*read_lines(hyp)], references, test.tgt_lang or "")
        found = {"settings": [*self.settings], "tokenised": tokenised, "tokenised_how": how}
        found |= {key: scores[key] for key in ("bleu", "bleu_signature", "chrf", "chrf_signature")}
        found |= training_figures(self.out / "training")
        with replacing(kept, "figures") as part:
            part.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
        return found

    def why(self, error: BaseException) -> dict[str, Any]:
        """Say why it failed: the error and the end of its log."""
        log = self.beside("log")
        lines = log.read_text("utf-8").splitlines() if log.exists() else []
        return {"error": str(error), "log": lines[-SHOWN:]}


def training_figures(folder: Path) -> dict[str, Any]:
    """What the files of a finished run say: its best validation, its time and its speed.

    The speed is the median over the lines of the log, so validations do not count.
    """
    finished = json.loads((folder / "finished.json").read_text("utf-8"))
    lines = [
        json.loads(line) for line in (folder / "metrics.jsonl").read_text("utf-8").splitlines()
    ]
    steps = [(line["step"], line["seconds"]) for line in lines if "grad_norm" in line]
    rates = [
        (step - before) / (seconds - earlier)
        for (before, earlier), (step, seconds) in pairwise(steps)
        if step > before and seconds > earlier
    ]
    return {
        "valid_bleu": finished["valid"]["bleu"],
        "steps": finished["step"],
        "seconds": lines[-1]["seconds"],
        "steps_per_second": statistics.median(rates) if rates else None,
    }


def summary(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Of the figures of a variant by seed: means, least and greatest."""
    result: dict[str, Any] = {"seeds": [*found]}
    for key in COLUMNS:
        values = [each[key] for each in found.values() if each[key] is not None]
        if values:
            result[key] = [statistics.mean(values), min(values), max(values)]
    return result


def differences(found: dict[str, dict[str, Any]], plain: dict[str, dict[str, Any]]) -> list[float]:
    """BLEU of a variant less that of `plain`, for each seed that both have."""
    return [each["bleu"] - plain[seed]["bleu"] for seed, each in found.items() if seed in plain]


def table(runs: dict[str, dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Print a row for each variant; return what is in it."""
    rows: dict[str, Any] = {}
    print("\t".join(("variant", "seeds", *COLUMNS.values(), "BLEU less plain's")))
    for name, found in runs.items():
        rows[name] = row = summary(found)
        row["differences"] = apart = differences(found, runs.get("plain", {}))
        cells = [
            f"{row[key][0]:.2f} ({row[key][1]:.2f} to {row[key][2]:.2f})" if key in row else "-"
            for key in COLUMNS
        ]
        cells.append(f"{statistics.mean(apart):+.2f}" if apart else "-")
        if len(apart) > 1:
            cells[-1] += f" ({min(apart):+.2f} to {max(apart):+.2f})"
        print("\t".join((name, f"{len(found)}", *cells)), flush=True)
    return rows


def planned(chosen: argparse.Namespace) -> list[Run]:
    """All runs, the first seed of each variant before the second of any."""
    variants = VARIANTS | {name: settings for name, *settings in chosen.add}
    names = chosen.only or [*variants]
    if unknown := [name for name in names if name not in variants]:
        raise SystemExit(f"There is no variant {', '.join(unknown)}, only {', '.join(variants)}.")
    every = max(1, chosen.steps // VALIDATIONS)
    limits = [f"train.max_steps={chosen.steps}", "train.max_minutes=100000"]
    before = [*PLAIN, *limits, f"train.validate_every={every}", *chosen.settings]
    return [
        Run(name, seed, [*before, *variants[name], f"train.seed={seed}"], chosen)
        for seed in chosen.seeds
        for name in names
    ]


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Train what is not trained yet, score, print a table and return the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks settings", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="keep the runs in this folder")
    parser.add_argument("--recipe", default="multi30k-en-de")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="variants; all by default")
    parser.add_argument(
        "--add", nargs="+", action="append", default=[], metavar="NAME", help="NAME KEY=VALUE ..."
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, one thread each")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE")
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    runs, programs = planned(chosen), Programs()
    found: dict[str, dict[str, dict[str, Any]]] = {run.variant: {} for run in runs}
    options = {key: value for key, value in vars(chosen).items() if key != "out"}
    figures: Figures = {"environment": environment(["sacrebleu", "sacremoses"]), "options": options}
    figures |= {"test": TEST, "runs": found, "failed": {}}
    with ThreadPoolExecutor(chosen.jobs) as pool, handling_ends(programs.stop):
        begun = {pool.submit(run.measure, programs): run for run in runs}
        for future in as_completed(begun):
            run, error = begun[future], future.exception()
            if error is None:
                found[run.variant][f"{run.seed}"] = future.result()
                print(f"{run.out.name}\tBLEU {future.result()['bleu']:.2f}", flush=True)
            elif not isinstance(error, StoppedError):
                figures["failed"][run.out.name] = run.why(error)
                print(f"{run.out.name} failed: {error}", flush=True)
            save("settings", figures, chosen.out)
    print(f"{TEST}, beam {chosen.beam}, after {chosen.steps:,} steps: mean (least to greatest)")
    figures["table"] = table(found)
    for name, failed in figures["failed"].items():
        print(f"\n{name} failed: {failed['error']}", *failed["log"], sep="\n  ")
    save("settings", figures, chosen.out)
    return {"settings": figures}
