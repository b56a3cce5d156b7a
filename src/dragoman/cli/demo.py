"""`dragoman demo`: from a small corpus to a translator and its scores, while you watch."""

import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.errors import InputError
from dragoman.process import INTERRUPTED

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.data.made import Pair
    from dragoman.tasks.translate.translator import Translator
    from dragoman.train.recipe import RunRecipe

SHOWN = 5


def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the texts, the training run and the picture.")
    ] = Path("runs/demo"),
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings, as for dragoman train."),
    ] = None,
) -> None:
    """Train a small English-Chinese translator on built-in sentences, score it and use it.

    dragoman demo --out runs/demo
    """
    from dragoman.cli.pipes import talk
    from dragoman.data.made import EXAMPLE, demo_corpus, write_pairs
    from dragoman.tasks.translate.translator import Translator

    console = talk(stderr=False)
    training, validation, test = demo_corpus()
    _say(
        console,
        "1. Sentences.",
        f"A small grammar of English and Chinese wrote {len(training):,} pairs to learn from. "
        "Their word order differs: time and place come before the Chinese verb, a relative clause "
        "before its noun, question words stay where the answer would be.",
    )
    texts = out / "texts"
    for name, pairs in (("train", training), ("valid", validation), ("test", test)):
        write_pairs(pairs, texts / f"{name}.en", texts / f"{name}.zh")
    _show(console, [(pair.src, pair.tgt, "") for pair in training[:3]])

    model = out / "model"
    recipe = _with_more_time(_recipe(texts, model, settings or []), model)
    if recipe is None and settings:
        raise InputError(
            f"the demo in {model} is already trained, so {' '.join(settings)} would have no effect;"
            " choose another --out"
        )
    if recipe is not None:
        _say(
            console,
            "\n2. Learning.",
            "A Transformer of 3 encoder and 2 decoder layers reads them repeatedly. The loss falls "
            "as it gets better at guessing the next piece of Chinese.",
        )
        _train(recipe, console)
    else:
        _say(console, "\n2. Learning", f"was done before: the model is in {model}.")

    translator = Translator.load(model)
    _score(translator, test, console)

    _say(console, "\n4. Translating", f"{SHOWN} of them, and one more:")
    _translate(translator, [*test[:SHOWN], EXAMPLE], console)
    _draw(translator, EXAMPLE.src, out / "attention.png", console)
    command = _command()
    _say(
        console,
        "\nNext.",
        "Your own sentence:\n\n"
        f'    {command} translate {model} "My older sister likes these books."\n\n'
        f"What the folder holds:  {command} inspect {model}\n"
        f"Your own two files:     {command} train --src a.en --tgt a.zh --out runs/en-zh",
    )


def _say(console: "Console", title: str, text: str) -> None:
    from rich.text import Text

    console.print(Text.assemble((title, "bold"), f" {text}"))


def _command() -> str:
    """Return what to type for `dragoman`, which a shell without the environment does not find."""
    if shutil.which("dragoman"):
        return "dragoman"
    started = Path(sys.argv[0])
    words = [str(started)] if started.stem == "dragoman" else [sys.executable, "-m", "dragoman"]
    return shlex.join(words)


def _recipe(texts: Path, model: Path, settings: Sequence[str]) -> "RunRecipe":
    """Return the shipped recipe for these texts and this folder, with the user's settings."""
    from dragoman.tasks.recipes import load_recipe

    paths = {"src": "train.en", "tgt": "train.zh", "valid_src": "valid.en", "valid_tgt": "valid.zh"}
    data = [f"data.{key}={texts / name}" for key, name in paths.items()]
    return load_recipe("demo", (*data, *settings, f"out={model}"))


def _with_more_time(recipe: "RunRecipe", model: Path) -> "RunRecipe | None":
    """Return the recipe, with more time if an earlier demo had too little; None if trained."""
    from dragoman.train.runfolder import FINISHED, RunFolder

    config, folder = recipe.train, RunFolder(model)
    if not (folder.training / FINISHED).exists():
        return recipe
    progress = folder.progress
    if not progress.step or config.max_steps is None or config.max_minutes is None:
        return None
    minutes = config.max_minutes + progress.seconds / 60
    more = replace(recipe, train=replace(config, max_minutes=minutes))
    return more if progress.step < config.max_steps else None


def _train(recipe: "RunRecipe", console: "Console") -> None:
    from dragoman.tasks.task import train

    result = train(recipe, console=console)
    if result.interrupted:
        console.print("Stopped and saved; the same command resumes from there.")
        raise typer.Exit(INTERRUPTED)
    steps, planned = result.progress.step, recipe.train.max_steps
    if planned is not None and steps < planned:
        console.print(
            f"The time was up after {steps:,} of {planned:,} steps: this machine is slow or busy. "
            "The same command trains for as many minutes more."
        )


def _score(translator: "Translator", test: Sequence["Pair"], console: "Console") -> None:
    from dragoman.evaluate import evaluate

    _say(
        console,
        "\n3. Scoring",
        f"on {len(test)} unseen sentences, half of them with combinations of words that training "
        "never showed:",
    )
    outputs = [t.text for t in translator.translate([pair.src for pair in test])]
    scores = evaluate(outputs, [pair.tgt for pair in test], tokenize="zh")
    exact = sum(text == pair.tgt for text, pair in zip(outputs, test, strict=True))
    console.print(
        f"   BLEU {scores.bleu:.1f}, chrF {scores.chrf:.1f}; "
        f"{exact} of {len(test)} are exactly as expected."
    )


def _translate(translator: "Translator", pairs: Sequence["Pair"], console: "Console") -> None:
    """Show translations, and next to an unexpected one what was expected."""
    rows = []
    for pair, output in zip(pairs, translator.translate([p.src for p in pairs]), strict=True):
        note = "" if output.text == pair.tgt else f"(differs; expected: {pair.tgt})"
        rows.append((pair.src, output.text, note))
    _show(console, rows)


def _draw(translator: "Translator", sentence: str, path: Path, console: "Console") -> None:
    alignment = translator.translate(sentence).alignment()
    try:
        from dragoman.lens import plot_alignment

        plot_alignment(
            alignment.weights_TS.numpy(),
            alignment.src_tokens,
            alignment.tgt_tokens,
            path,
            title="Which English word each Chinese piece looks at",
        )
    except InputError as error:
        _say(console, "\n5. No picture:", str(error))
    else:
        _say(console, "\n5. A picture", f"of the attention behind the last one: {path}")


def _show(console: "Console", rows: Sequence[tuple[str, str, str]]) -> None:
    from rich.text import Text

    for src, tgt, note in rows:
        shown = Text.assemble(f"   {src}\n   ", (tgt, "green"), " ", (note, "red"))
        shown.rstrip()
        console.print(shown)
