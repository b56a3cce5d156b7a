"""What a language model of code is worth on modules that it never saw.

    dragoman train code out=runs/code
    python -m benchmarks code runs/code

- nats per byte of the modules that the recipe holds out, beside bz2 and xz: each module by itself,
  all in one, and all behind the training modules (what they add to the compressed size);
- the next line, exactly, from the lines before it, beside a table of which line followed which;
- the same lines with those behind the gap given as well: fill in the middle;
- bodies of functions: the share that `ast.parse` accepts, beside the true bodies cut alike.
"""

import argparse
import ast
import bz2
import lzma
import math
import random
import tempfile
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path

from benchmarks.paired import Figures, environment
from dragoman.data.documents import prepare_documents, read_documents
from dragoman.nn import row_invariant_products
from dragoman.tasks.generate.batches import PackConfig
from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.generate.recipe import GenerateRecipe
from dragoman.tasks.generate.task import ROWS, text_loss
from dragoman.tasks.recipes import load_recipe

LINE, BODY = 48, 96
"""Tokens that a line and the body of a function may have."""


def modules(recipe: GenerateRecipe) -> tuple[list[Path], list[Path]]:
    """The files to learn from, and those that the recipe holds out whole."""
    sides: tuple[list[Path], list[Path]] = [], []
    for path in recipe.data.training:
        (*_, part) = read_documents([path], recipe.data.split, recipe.data.hold_out)
        sides[part.held].append(path)
    return sides


# ---------------------------------------------------------------- bytes


def compressed(train: Sequence[Path], held: Sequence[Path]) -> dict[str, float]:
    """Nats per byte of the held-out modules by two compressors, each in three ways."""
    before, texts = (b"".join(map(Path.read_bytes, paths)) for paths in (train, held))
    large = [{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 1 << 26}]
    pack: dict[str, Callable[[bytes], bytes]] = {
        "bz2": bz2.compress,
        "xz": lambda data: lzma.compress(data, filters=large),
    }
    sizes = {}
    for name, packed in pack.items():
        sizes[f"{name}, each module"] = sum(len(packed(path.read_bytes())) for path in held)
        sizes[f"{name}, all in one"] = len(packed(texts))
        added = len(packed(before + texts)) - len(packed(before))
        sizes[f"{name}, behind the training modules"] = added
    return {name: 8 * size * math.log(2) / len(texts) for name, size in sizes.items()}


def predicted(generator: Generator, held: Sequence[Path]) -> dict[str, float]:
    """The model's nats per byte, from left to right, with at least half of its context."""
    config = PackConfig(length=generator.context or 256, rows=ROWS, packing="documents")
    with tempfile.TemporaryDirectory() as cache, row_invariant_products():
        texts, _ = prepare_documents(held, "file", generator.tokenizer, Path(cache))
        loss = text_loss(generator.model, texts, config)
    return {
        "nats_per_byte": loss.nats / sum(path.stat().st_size for path in held),
        "nats_per_char": loss.per_char,
        "perplexity": loss.perplexity,
    }


# ---------------------------------------------------------------- lines


@dataclass(frozen=True, slots=True)
class Gap:
    """A line of a module, and the lines around it."""

    before: list[str]
    line: str
    behind: list[str]


def gaps(held: Sequence[Path], count: int, rng: random.Random) -> list[Gap]:
    """Lines drawn from all modules; none is blank, nor is the one before it."""
    found = []
    for path in held:
        lines = path.read_text("utf-8").splitlines()
        pairs = pairwise(lines)
        places = [i for i, pair in enumerate(pairs, start=1) if all(map(str.strip, pair))]
        found += [Gap(lines[:i], lines[i], lines[i + 1 :]) for i in places]
    return rng.sample(found, min(count, len(found)))


def near(lines: Sequence[str], generator: Generator, most: int) -> str:
    """As many lines from the beginning as have at most so many tokens; one at least."""
    sizes = [len(ids) for ids in generator.tokenizer.encode_rest([f"\n{x}" for x in lines[:most]])]
    kept = 1
    while kept < len(sizes) and sum(sizes[: kept + 1]) <= most:
        kept += 1
    return "\n".join(lines[:kept])


def last(lines: Sequence[str], generator: Generator, most: int) -> str:
    """The same from the end."""
    turned = near(lines[::-1], generator, most)
    return "\n".join(turned.split("\n")[::-1])


def first_line(text: str) -> str:
    """The first line that is not blank."""
    return next((line for line in text.split("\n") if line.strip()), "")


class FollowingLines:
    """What a table knows: in this module, else in the training modules, what followed the line."""

    def __init__(self, train: Sequence[Path]) -> None:
        self.followed: dict[str, Counter[str]] = defaultdict(Counter)
        for path in train:
            lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
            for line, following in pairwise(lines):
                self.followed[line][following] += 1
        totals = Counter(chain.from_iterable(c.elements() for c in self.followed.values()))
        self.usual = totals.most_common(1)[0][0]

    def guess(self, before: Sequence[str]) -> str:
        """The line that followed the last one of these when it stood here before."""
        *earlier, line = (line for line in before if line.strip())
        if line in earlier:
            place = len(earlier) - 1 - earlier[::-1].index(line)
            return [*earlier, line][place + 1]
        known = self.followed.get(line)
        return known.most_common(1)[0][0] if known else self.usual


def next_lines(generator: Generator, chosen: Sequence[Gap], table: FollowingLines) -> Figures:
    """Shares of lines that are right to the letter."""
    room = (generator.context or 256) - LINE - 3
    options = replace(generator.options, temperature=0.0, max_tokens=LINE)
    can_fill = "<middle>" in generator.tokenizer.specials
    right: Counter[str] = Counter()
    for gap in chosen:
        prefix = last(gap.before, generator, 2 * room // 3)
        going_on = generator.generate(prefix, options=options).text
        right["from the lines before it"] += first_line(going_on) == gap.line
        right["by the table of lines"] += table.guess(gap.before) == gap.line
        if can_fill and gap.behind:
            suffix = "\n" + near(gap.behind, generator, room // 3)
            filled = generator.fill(prefix, suffix, options).text
            right["with the lines behind it"] += first_line(filled) == gap.line
            right["with the lines behind it, ending with the gap"] += filled.strip("\n") == gap.line
    return {name: count / len(chosen) for name, count in right.items()} | {"lines": len(chosen)}


# ---------------------------------------------------------------- functions


@dataclass(frozen=True, slots=True)
class Function:
    """The lines before a function, its header, and its body with what comes behind."""

    before: list[str]
    header: list[str]
    rest: list[str]


def functions(held: Sequence[Path]) -> Iterator[Function]:
    """Functions whose body begins on a line of its own."""
    for path in held:
        text = path.read_text("utf-8")
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.body[0].lineno > node.lineno:
                start, body = node.lineno - 1, node.body[0].lineno - 1
                yield Function(lines[:start], lines[start:body], lines[body:])


def body_of(header: Sequence[str], text: str, *, ended: bool) -> str:
    """The lines of the function in what was written, less a last one that was cut off."""
    indent = len(header[0]) - len(header[0].lstrip())
    written = text.split("\n")[1:] if ended else text.split("\n")[1:-1]
    body = []
    for line in written:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        body.append(line)
    return "\n".join(body)


def parses(header: Sequence[str], body: str) -> bool:
    """Whether Python's own parser accepts header and body."""
    try:
        ast.parse(textwrap.dedent("\n".join([*header, body])))
    except SyntaxError:
        return False
    return True


def completions(generator: Generator, chosen: Sequence[Function], seed: int) -> Figures:
    """Shares of bodies that parse: the most likely ones, sampled ones, the true ones cut alike."""
    room = (generator.context or 256) - BODY - 1
    accepted: Counter[str] = Counter()
    ways = {"most likely": 0.0, "sampled at 0.8": 0.8}
    for function in chosen:
        prompt = last([*function.before, *function.header], generator, room)
        for name, temperature in ways.items():
            options = replace(
                generator.options, max_tokens=BODY, temperature=temperature, seed=seed
            )
            found = generator.generate(prompt, options=options)
            body = body_of(function.header, found.text, ended=found.stopped == "eos")
            accepted[name] += parses(function.header, body)
        (ids,) = generator.tokenizer.encode_rest(["\n" + "\n".join(function.rest)])
        true = generator.tokenizer.decode_rest(ids[:BODY])
        body = body_of(function.header, true, ended=len(ids) <= BODY)
        accepted["true"] += parses(function.header, body)
    shares = {name: count / len(chosen) for name, count in accepted.items()}
    return shares | {"functions": len(chosen)}


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Measure, print and return the figures."""
    parser = argparse.ArgumentParser(
        prog="benchmarks code",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, help="folder of a model that the recipe trained")
    parser.add_argument("--recipe", default="code")
    parser.add_argument("--lines", type=int, default=300, help="lines to predict")
    parser.add_argument("--functions", type=int, default=200, help="functions to complete")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    recipe = load_recipe(chosen.recipe)
    assert isinstance(recipe, GenerateRecipe)
    train, held = modules(recipe)
    generator, rng = Generator.load(chosen.model), random.Random(chosen.seed)
    every = list(functions(held))
    some = rng.sample(every, min(chosen.functions, len(every)))
    found: Figures = {
        "held_out": {"modules": len(held), "bytes": sum(path.stat().st_size for path in held)},
        "model": predicted(generator, held),
        "compressors": compressed(train, held),
        "next_line": next_lines(generator, gaps(held, chosen.lines, rng), FollowingLines(train)),
        "parses": completions(generator, some, chosen.seed),
    }
    for name, figures in found.items():
        print(f"{name}:", *(f"  {what}: {value:.4g}" for what, value in figures.items()), sep="\n")
    return {"code": {"environment": environment(["tokenizers"]), **found}}
