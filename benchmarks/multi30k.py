"""Train by a Multi30k recipe, translate test_2016_flickr, and print BLEU with what it came from.

    python -m benchmarks multi30k
    python -m benchmarks multi30k --recipe multi30k-en-de train.max_minutes=45

The commands are those that a user types; the texts are found as the recipe finds its own.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sacrebleu.metrics.bleu import BLEU

from benchmarks.paired import Figures, environment
from dragoman.data.corpus import CorpusConfig
from dragoman.tasks.recipes import load_recipe
from dragoman.tasks.translate.recipe import TranslateRecipe

TEST = "multi30k/test_2016_flickr"


def run(command: Sequence[str]) -> str:
    """Run our program; its talk goes through, its output comes back."""
    print("$", shlex.join(command), file=sys.stderr)
    program = [sys.executable, "-m", *command]
    return subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True).stdout


def translation_recipe(name: str, settings: Sequence[str]) -> TranslateRecipe:
    """A recipe for translation, with settings."""
    recipe = load_recipe(name, tuple(settings))
    assert isinstance(recipe, TranslateRecipe)
    return recipe


def test_set(recipe: TranslateRecipe) -> CorpusConfig:
    """The test set in the languages of a recipe, where the recipe finds its texts."""
    src, tgt = (f"{TEST}.{code}" for code in (recipe.data.src_lang, recipe.data.tgt_lang))
    (test,) = replace(recipe.data, valid_src=src, valid_tgt=tgt).validation
    return test


def tokenised_bleu(
    hypotheses: Sequence[str], references: Sequence[str], language: str
) -> tuple[float, str]:
    """BLEU of lower-cased texts in the tokens of Moses, as papers on Multi30k report it, and how.

    Punctuation is normalised first, as for the tokenised texts that come with the corpus. Without
    sacremoses the tokens are those of sacreBLEU (13a).
    """
    sides = [[line.lower() for line in side] for side in (hypotheses, references)]
    if find_spec("sacremoses") is None:
        how, tokenize = "lower-cased, 13a", "13a"
    else:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer

        how, tokenize = "lower-cased, tokens of Moses", "none"
        normalizer, tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)
        sides = [
            [tokenizer.tokenize(normalizer.normalize(line), return_str=True) for line in side]
            for side in sides
        ]
    score = BLEU(tokenize=tokenize, force=True).corpus_score(sides[0], [sides[1]])
    return float(score.score), how


def train_and_score(name: str, settings: Sequence[str], out: Path) -> dict[str, Any]:
    """The figures of a recipe: its run, and the test set translated by its model."""
    test = test_set(translation_recipe(name, settings))
    run(["dragoman", "train", name, f"out={out}", *settings])
    scores = json.loads(
        run(
            [
                "dragoman",
                "evaluate",
                str(out),
                "--src",
                f"{test.src}",
                "--ref",
                f"{test.tgt}",
                "--json",
            ]
        )
    )
    finished = json.loads((out / "training" / "finished.json").read_text(encoding="utf-8"))
    return {"test": scores, "validation": finished["valid"], "steps": finished["step"]} | {
        "ended_by": finished["reason"]
    }


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Train, score, print and return the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks multi30k", description=__doc__)
    parser.add_argument("--recipe", default="multi30k-en-de")
    parser.add_argument("--out", type=Path, help="keep the run in this folder")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        out = chosen.out or Path(scratch) / "run"
        figures = train_and_score(chosen.recipe, chosen.settings, out)
    command = shlex.join(["dragoman", "train", chosen.recipe, "out=DIR", *chosen.settings])
    machine = environment(["sacrebleu", "tokenizers"])
    scores = figures["test"]
    print(f"{command}\n{TEST}: BLEU {scores['bleu']:.2f}  {scores['bleu_signature']}")
    print(f"chrF2 {scores['chrf']:.2f}  {scores['chrf_signature']}")
    print(f"{figures['steps']:,} steps, {machine['device']}, {machine['versions']}")
    moment = re.sub(r"\W", "", machine["time"].partition("+")[0])
    name = f"{chosen.recipe}-{moment}"  # settings may be long, and hold what no file name can
    return {name: {"command": command, "environment": machine, **figures}}
