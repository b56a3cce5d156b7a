"""One model of six directions beside a model of each, and beside a pivot where none was learned.

    python -m benchmarks many --out runs/many
    python -m benchmarks many --steps 1000 --beam 1 --out runs/many model.d_model=128

By the recipe multi30k-many, with as many steps each: `all` learns six directions, `around` the four
with English, and each direction has a model of its own, of the same size, whose vocabulary is made
of its two languages. All are scored on test_2016_flickr, whose captions no training has; `around`
also between German and French, at once (zero-shot) and by English in between (pivot). What is
finished in --out is not done again, and what was interrupted goes on.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from itertools import permutations
from pathlib import Path
from typing import Any

from benchmarks.multi30k import TEST, run
from benchmarks.paired import Figures, environment
from dragoman.data.corpus import CorpusConfig
from dragoman.tasks.recipes import load_recipe
from dragoman.tasks.translate.recipe import TranslateRecipe

DIRECTIONS = [f"{src}-{tgt}" for src, tgt in permutations(("en", "de", "fr"), 2)]
AROUND = [direction for direction in DIRECTIONS if "en" in direction]
RUNS = {"all": DIRECTIONS, "around": AROUND} | {name: [name] for name in DIRECTIONS}
"""The directions that each model learns."""


def learning(directions: Sequence[str]) -> list[str]:
    """Settings of the recipe: its corpora of these directions alone."""
    recipe = load_recipe("multi30k-many")
    assert isinstance(recipe, TranslateRecipe)
    pairs = [{*direction.split("-")} for direction in directions]

    def named(corpora: Sequence[CorpusConfig]) -> str:
        keys = ("name", "src", "tgt", "src_lang", "tgt_lang")
        kept = [asdict(each) for each in corpora if {each.src_lang, each.tgt_lang} in pairs]
        tables = (", ".join(f"{key} = {json.dumps(each[key])}" for key in keys) for each in kept)
        return f"[{', '.join(f'{{{table}}}' for table in tables)}]"

    return [
        f"data.corpora={named(recipe.data.corpora)}",
        f"data.valid={named(recipe.data.valid)}",
        f"data.directions={json.dumps(directions)}",
    ]


def languages(direction: str) -> list[str]:
    """The options that choose a direction."""
    src, tgt = direction.split("-")
    return ["--src-lang", src, "--tgt-lang", tgt]


def test_file(language: str) -> str:
    """A side of the test set."""
    return f"{os.environ['DRAGOMAN_DATA']}/{TEST}.{language}"


def score(model: Path, direction: str, beam: int, pivot: str = "") -> dict[str, float]:
    """BLEU, chrF and seconds of a direction, at once or by another language in between."""
    src, tgt = direction.split("-")
    beam_size = f"--beam-size={beam}"
    with tempfile.TemporaryDirectory() as scratch:
        source, seconds = test_file(src), 0.0
        if pivot:
            command = ["dragoman", "evaluate", str(model), "--src", source, beam_size, "--json"]
            command += ["--ref", test_file(pivot), *languages(f"{src}-{pivot}")]
            source, src = f"{scratch}/{pivot}", pivot
            seconds = json.loads(run([*command, "--hyp", source]))["seconds"]
        command = ["dragoman", "evaluate", str(model), "--src", source, beam_size, "--json"]
        found = json.loads(run([*command, "--ref", test_file(tgt), *languages(f"{src}-{tgt}")]))
    return {"bleu": found["bleu"], "chrf": found["chrf"], "seconds": seconds + found["seconds"]}


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Train what is not trained yet, score, print a table and return the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks many", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="keep the runs in this folder")
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--runs", nargs="+", choices=RUNS, default=list(RUNS), metavar="RUN")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE")
    chosen = parser.parse_args(arguments)
    limits = [f"train.max_steps={chosen.steps}", "train.max_minutes=100000"]
    scores: dict[str, Any] = {}
    for name in chosen.runs:
        out = chosen.out / name
        if not (out / "training" / "finished.json").exists():
            settings = [*learning(RUNS[name]), *limits, *chosen.settings]
            run(["dragoman", "train", "multi30k-many", f"out={out}", *settings])
        kept = chosen.out / f"{name}-beam-{chosen.beam}.json"
        if not kept.exists():
            found = {each: score(out, each, chosen.beam) for each in RUNS[name]}
            for each in DIRECTIONS if name == "around" else ():
                if each not in found:
                    found[f"{each}, zero-shot"] = score(out, each, chosen.beam)
                    found[f"{each}, pivot"] = score(out, each, chosen.beam, "en")
            kept.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        scores[name] = json.loads(kept.read_text(encoding="utf-8"))
    print(f"BLEU on {TEST} after {chosen.steps:,} steps each, beam {chosen.beam}")
    columns = ("own model", "all", "around", "zero-shot", "pivot")
    print("\t".join(("direction", *columns)))
    for each in DIRECTIONS:
        around = scores.get("around", {})
        row = [scores.get(name, {}).get(each) for name in (each, "all", "around")]
        row += [around.get(f"{each}, {how}") for how in columns[3:]]
        cells = (
            "-" if one is None else f"{one['bleu']:.2f} ({one['seconds']:.0f} s)" for one in row
        )
        print("\t".join((each, *cells)))
    figures = {"steps": chosen.steps, "beam": chosen.beam, "settings": chosen.settings}
    return {"many": {"environment": environment(["sacrebleu"]), "scores": scores, **figures}}
