"""What `dragoman data clean` finds of faults that are made on purpose, and what they cost.

    python -m benchmarks spoiled
    python -m benchmarks spoiled --train copies cut --settings train.max_minutes=10

Of Multi30k's training pairs (en-de) a share is spoiled in one way; a line of the table says how
many of these pairs are removed, and how many of the others. With --train a model learns from the
clean pairs, from the spoiled ones, and from what `clean` leaves of these, by the same recipe; BLEU
on test_2016_flickr.
"""

import argparse
import json
import os
import string
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.multi30k import train_and_score
from benchmarks.paired import Figures, environment
from dragoman.corpus.checking import Pair, Score, check
from dragoman.corpus.config import CleaningConfig
from dragoman.corpus.scoring import cross_entropies
from dragoman.files.reading import read_lines
from dragoman.tasks.translate.translator import Translator

SHARE = 0.2
"""Of the pairs that are spoiled."""


def read(name: str) -> list[str]:
    """Return the lines of a file of Multi30k."""
    path = Path(os.environ["DRAGOMAN_DATA"]) / "multi30k" / name
    return [*read_lines(path if path.exists() else path.with_name(f"{name}.xz"))]


def misspelt(text: str, rng: Random) -> str:
    """Return the text with a tenth of its letters replaced."""
    letters = string.ascii_lowercase
    return "".join(rng.choice(letters) if c.isalpha() and rng.random() < 0.1 else c for c in text)


def marked_up(text: str, rng: Random) -> str:
    """Return the text with tags around a word."""
    words = text.split()
    place = rng.randrange(len(words))
    words[place] = f'<span class="w{rng.randrange(9)}">{words[place]}</span>'
    return " ".join(words)


Spoil = Callable[[list[Pair], list[int], Random], dict[int, Pair]]
"""Makes other pairs of some, by their numbers."""


def spoilers(french: list[str]) -> dict[str, Spoil]:
    """Return the ways in which pairs are spoiled; `french` has the translations into French."""

    def each(change: Callable[[str, str, Random], Pair]) -> Spoil:
        return lambda pairs, some, rng: {n: change(*pairs[n], rng) for n in some}

    def shuffled(pairs: list[Pair], some: list[int], rng: Random) -> dict[int, Pair]:
        others = rng.sample(some, len(some))
        return {n: (pairs[n][0], pairs[m][1]) for n, m in zip(some, others, strict=True) if n != m}

    def repeated(pairs: list[Pair], some: list[int], rng: Random) -> dict[int, Pair]:
        taken = set(some)
        good = [n for n in range(len(pairs)) if n not in taken]
        return {n: pairs[rng.choice(good)] for n in some}

    def in_french(pairs: list[Pair], some: list[int], _: Random) -> dict[int, Pair]:
        return {n: (pairs[n][0], french[n]) for n in some}

    def cut(src: str, tgt: str, rng: Random) -> Pair:
        words = tgt.split()
        return src, " ".join(words[: max(1, round(len(words) * rng.uniform(0.2, 0.5)))])

    return {
        "copies": each(lambda src, _, __: (src, src)),
        "shuffled": shuffled,
        "language": in_french,
        "cut": each(cut),
        "misspelt": each(lambda src, tgt, rng: (misspelt(src, rng), misspelt(tgt, rng))),
        "markup": each(lambda src, tgt, rng: (src, marked_up(tgt, rng))),
        "duplicates": repeated,
        "case": each(lambda src, tgt, _: (src.lower(), tgt.upper())),
    }


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Measure, print lines and return the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks spoiled", description=__doc__)
    parser.add_argument("--texts", nargs="+", default=["train"], help="names of files of Multi30k")
    parser.add_argument("--pairs", type=int, default=29_000, help="the first so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", help="ways of spoiling; all by default")
    parser.add_argument("--score-by", nargs="+", metavar="MODEL", help="en-de, and perhaps de-en")
    parser.add_argument("--train", nargs="*", default=[], metavar="KIND", help="also train on it")
    parser.add_argument(
        "--settings", nargs="*", default=[], metavar="KEY=VALUE", help="of a recipe"
    )
    parser.add_argument(
        "--earlier", metavar="FILE", help="figures to add to, and not to measure again"
    )
    chosen = parser.parse_args(arguments)
    scorers = [Translator.load(path) for path in chosen.score_by or ()]
    score = partial(cross_entropies, scorers) if scorers else None
    en, de, fr = (
        [line for name in chosen.texts for line in read(f"{name}.{code}")][: chosen.pairs]
        for code in ("en", "de", "fr")
    )
    clean = [*zip(en, de, strict=True)]
    figures: Figures = json.loads(Path(chosen.earlier).read_text()) if chosen.earlier else {}
    bleu = figures.setdefault("bleu", {})
    figures["clean"] = {"lost": _checked(clean, set(), score)[1]}
    print(f"{'clean':<12}{figures['clean']['lost']:>8.2%} removed", flush=True)
    made = {"clean": clean}
    for kind, spoil in spoilers(fr).items():
        if chosen.kinds is None or kind in chosen.kinds:
            rng = Random(chosen.seed)
            some = sorted(rng.sample(range(len(clean)), round(SHARE * len(clean))))
            changed = spoil(clean, some, rng)
            pairs = [changed.get(n, pair) for n, pair in enumerate(clean)]
            found, lost, by_rule, kept = _checked(pairs, {*changed}, score)
            figures[kind] = {"found": found, "lost": lost, "by_rule": by_rule}
            rules = ", ".join(f"{rule} {share:.0%}" for rule, share in by_rule.items())
            print(f"{kind:<12}{found:>8.2%} found, {lost:>6.2%} of the others; {rules}", flush=True)
            made |= {kind: pairs, f"{kind}, cleaned": kept}
    for kind in chosen.train:
        for name in ("clean", kind, f"{kind}, cleaned"):
            if name not in bleu:
                bleu[name] = _bleu(made[name], chosen.settings, chosen.seed)
                print(f"{name:<20}BLEU {bleu[name]:.1f}", flush=True)
    return {"spoiled": figures | {"options": vars(chosen), "environment": environment([])}}


def _checked(
    pairs: list[Pair], spoiled: set[int], score: Score | None
) -> tuple[float, float, dict[str, float], list[Pair]]:
    """The shares of spoiled pairs and of the others that are removed, and what is left."""
    found = check(lambda: pairs, CleaningConfig(), ("en", "de"), score=score)
    bad = np.isin(np.arange(len(pairs)), [*spoiled])
    report = found.report(enumerate(pairs, start=1))
    shares = {each.rule: each.removed / len(pairs) / SHARE for each in report.rules if each.removed}
    kept = [pair for pair, good in zip(pairs, found.kept, strict=True) if good]
    removed = ~found.kept
    share = float(removed[bad].mean()) if len(spoiled) else 0.0
    return share, float(removed[~bad].mean()), shares, kept


def _bleu(pairs: list[Pair], others: Sequence[str], seed: int) -> float:
    """What a model scores that has learned from these pairs by the recipe of ten minutes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side, end in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"train.{end}").write_text(text, encoding="utf-8")
        settings = [f"data.src={folder / 'train.en'}", f"data.tgt={folder / 'train.de'}"]
        settings += [f"train.seed={seed}", *others]
        found = train_and_score("multi30k-en-de", settings, folder / "run")
    return float(found["test"]["bleu"])
