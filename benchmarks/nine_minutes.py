"""Ours beside Hugging Face's Marian class after equal minutes on one machine: BLEU.

    python -m benchmarks nine-minutes --out runs/nine
    python -m benchmarks nine-minutes --together --peer-rate 1e-3 2e-3

`dragoman train RECIPE`, and MarianMTModel of the same size, from the same text files with the same
tokenizer (each trains its own, which are compared), batches planned in the same way, Adam, label
smoothing and a rate that falls to zero at the end of the minutes. Training the tokenizer and
tokenising count for both, with an empty cache; imports count for neither. Ours validates within its
minutes, the peer does not. In turn with --threads each; --together all at the same time, with one
thread each and twice the minutes. Then test_2016_flickr by beam 5: ours with the length penalty of
the recipe, the peer by `generate`, whose scores are divided by `length ** penalty`, with 1.0 and
with the penalty that is best on the validation texts. What is trained in --out is scored only.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.multi30k import TEST, run, test_set, tokenised_bleu, translation_recipe
from benchmarks.paired import Figures, environment, save
from dragoman.data.corpus import CorpusConfig
from dragoman.evaluate import evaluate
from dragoman.files.reading import read_lines
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.progress import handling_ends

OURS = "dragoman"
PENALTIES = (0.6, 1.0, 1.4, 2.0)
"""Exponents of the length that the peer tries on the validation texts."""


def commands(chosen: argparse.Namespace, out: Path) -> dict[str, list[str]]:
    """What trains each engine, in a folder of its name with a cache of its own."""
    minutes = chosen.minutes * (2 if chosen.together else 1)
    settings = [f"train.max_minutes={minutes}", *chosen.settings]
    mode = "compiled" if chosen.compiled else "eager"
    ours = ["dragoman", "train", chosen.recipe, f"out={out / OURS}"]
    found = {OURS: [*ours, *settings, f"data.cache={out / OURS}.cache"]}
    for rate in chosen.peer_rate:
        name = f"marian-{rate:g}-{mode}"
        peer = ["benchmarks.marian", chosen.recipe, f"{out / name}", f"{rate}", mode]
        found[name] = [*peer, *settings, f"data.cache={out / name}.cache"]
    return found


def train(chosen: argparse.Namespace, out: Path) -> None:
    """Train what is not trained yet: in turn, or all at the same time.

    Raises SystemExit for a folder that is unfinished, and for an engine that fails.
    """
    threads = 1 if chosen.together else chosen.threads
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, command in commands(chosen, out).items():
            if is_trained(out / name):
                continue
            if (out / name).exists():
                raise SystemExit(f"{out / name} is unfinished; choose another --out, or remove it.")
            print(f"training {name}; its log is {out / name}.log", flush=True)
            with (out / f"{name}.log").open("wb") as log:
                running[name] = subprocess.Popen(
                    [sys.executable, "-m", *command],
                    stdout=log,
                    stderr=log,
                    env=os.environ | {"OMP_NUM_THREADS": f"{threads}"},
                )
            if not chosen.together:
                _wait(name, running[name], out)
        for name, process in running.items():
            _wait(name, process, out)
    finally:
        for process in running.values():
            process.kill()


def _wait(name: str, process: "subprocess.Popen[bytes]", out: Path) -> None:
    if process.wait():
        log = (out / f"{name}.log").read_text("utf-8", errors="replace")
        raise SystemExit("\n".join([f"{name} failed:", *log.splitlines()[-8:]]))


def finished(folder: Path) -> Path:
    """What an engine writes at its end."""
    return folder / ("training/finished.json" if folder.name == OURS else "finished.json")


def is_trained(folder: Path) -> bool:
    """Whether an engine came to its end there."""
    return finished(folder).exists()


def our_run(folder: Path) -> dict[str, Any]:
    """What a run of ours did, by its log."""
    text = (folder / "training" / "metrics.jsonl").read_text("utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    steps = [line for line in lines if "grad_norm" in line]
    end = json.loads(finished(folder).read_text("utf-8"))
    return {
        "steps": end["step"],
        "tokens": round(steps[-1]["tokens"] / steps[-1]["step"] * end["step"]),
        "seconds": lines[-1]["seconds"],
        "until the first step": steps[0]["seconds"],
        "validations": sum("valid" in line for line in lines),
        "valid_bleu": end["valid"]["bleu"],
        "losses": [(line["step"], line["loss"]) for line in steps],
    }


def sides(texts: CorpusConfig) -> tuple[Path, Path]:
    """The files of a test or validation set."""
    assert texts.src is not None
    assert texts.tgt is not None
    return Path(texts.src), Path(texts.tgt)


def score_ours(folder: Path, recipe: TranslateRecipe, beam: int) -> dict[str, float | str]:
    """BLEU of `dragoman evaluate`, by the recipe's length penalty."""
    test = test_set(recipe)
    src, tgt = sides(test)
    hyp = folder.with_name(f"{folder.name}.hyp")
    command = ["dragoman", "evaluate", f"{folder}", "--src", f"{src}", "--ref", f"{tgt}", "--json"]
    run([*command, "--hyp", f"{hyp}", "--overwrite", "--beam-size", f"{beam}"])
    return bleu([*read_lines(hyp)], test)


def score_peer(folder: Path, recipe: TranslateRecipe, beam: int, limit: int) -> dict[str, Any]:
    """BLEU by `generate`: with a penalty of 1.0, and with the best on the validation texts."""
    from benchmarks.marian import translate

    (valid,) = recipe.data.validation
    src, tgt = ([*read_lines(path)][:limit] for path in sides(valid))
    by_penalty = {
        penalty: evaluate(translate(folder, src, beam, penalty), tgt, tgt_lang=valid.tgt_lang).bleu
        for penalty in PENALTIES
    }
    best, test = max(by_penalty, key=by_penalty.__getitem__), test_set(recipe)
    lines = [*read_lines(sides(test)[0])]
    found = {penalty: translate(folder, lines, beam, penalty) for penalty in {1.0, best}}
    folder.with_name(f"{folder.name}.hyp").write_text("\n".join([*found[best], ""]), "utf-8")
    return {
        **bleu(found[best], test),
        "penalty": best,
        "bleu, penalty 1.0": bleu(found[1.0], test)["bleu"],
        "valid_bleu by penalty": {str(key): value for key, value in by_penalty.items()},
    }


def bleu(hypotheses: Sequence[str], test: CorpusConfig) -> dict[str, float | str]:
    """Cased BLEU by 13a, and that of lower-cased tokens."""
    references = [*read_lines(sides(test)[1])]
    scores = evaluate(hypotheses, references, tgt_lang=test.tgt_lang)
    tokenised, how = tokenised_bleu(hypotheses, references, test.tgt_lang or "")
    cased: dict[str, float | str] = {"bleu": scores.bleu, "signature": scores.bleu_signature}
    return cased | {"tokenised": tokenised, "tokenised_how": how}


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Train, score, print a line for each engine and return the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks nine-minutes", description=__doc__)
    parser.add_argument("--out", type=Path, help="keep models, logs and translations here")
    parser.add_argument("--recipe", default="multi30k-en-de")
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--threads", type=int, default=2, help="of each, in turn")
    parser.add_argument("--together", action="store_true", help="at the same time; twice as long")
    parser.add_argument("--peer-rate", type=float, nargs="+", default=[1e-3], help="peaks")
    parser.add_argument("--compiled", action="store_true", help="the peer by torch.compile")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--valid-lines", type=int, default=1000, help="to choose a penalty by")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="of the recipe, for all")
    chosen = parser.parse_args(arguments)
    recipe = translation_recipe(chosen.recipe, chosen.settings)
    options = {key: value for key, value in vars(chosen).items() if key != "out"}
    machine = environment(["sacrebleu", "transformers", "sacremoses"])
    figures: Figures = {"environment": machine, "options": options, "test": TEST, "engines": {}}
    with tempfile.TemporaryDirectory() as scratch:
        out = chosen.out or Path(scratch)
        out.mkdir(parents=True, exist_ok=True)
        with handling_ends(lambda *_: sys.exit("ended by a signal")):
            train(chosen, out)
        tokenizers = [
            Tokenizer.load(out / name / "tokenizer.json") for name in commands(chosen, out)
        ]
        figures["same tokenizer"] = len({each.content_hash for each in tokenizers}) == 1
        for name in commands(chosen, out):
            folder = out / name
            if name == OURS:
                found = our_run(folder) | score_ours(folder, recipe, chosen.beam)
            else:
                done = json.loads(finished(folder).read_text("utf-8"))
                found = done | score_peer(folder, recipe, chosen.beam, chosen.valid_lines)
            figures["engines"][name] = found
            print(
                f"{name:<22} BLEU {found['bleu']:.2f}, {found['tokenised_how']} "
                f"{found['tokenised']:.2f}; {found['steps']:,} steps, {found['tokens']:,} tokens "
                f"in {found['seconds']:.0f} s",
                flush=True,
            )
            save("nine-minutes", figures, out)
    scores = {name: found["bleu"] for name, found in figures["engines"].items()}
    figures["difference"] = scores.pop(OURS) - max(scores.values())
    print(f"ours is {figures['difference']:+.2f} to the best peer; {machine['device']}")
    return {"nine-minutes": figures}
