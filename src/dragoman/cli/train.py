"""`dragoman train`: from texts to a model folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.models import EncoderDecoder
    from dragoman.train.job import Check
    from dragoman.train.recipe import RunRecipe
    from dragoman.train.run import TrainResult
    from dragoman.train.texts import Tokenizers

INTERRUPTED = 130

KEYS = {"--out": "out", "--from": "start.model", "--src": "data.src", "--tgt": "data.tgt"}
"""The settings that options stand for."""
SHOWN = 3
"""Translations that are shown after each validation."""

NEXT = {
    "translate": "dragoman translate {folder} < FILE",
    "generate": "dragoman generate {folder} PROMPT",
    "pretrain": "dragoman train RECIPE --from {folder}",
    "classify": "dragoman classify {folder} < FILE",
    "tag": "dragoman tag {folder} < FILE",
}
"""What a model of each task is trained for."""


def train(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RECIPE] [KEY=VALUE ...]",
            help="A shipped recipe or a TOML file, and settings laid over it.",
        ),
    ] = None,
    src: Annotated[Path | None, typer.Option(help="Source sentences, one a line.")] = None,
    tgt: Annotated[Path | None, typer.Option(help="Target sentences, one a line.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder, which becomes the model.")
    ] = None,
    start: Annotated[
        Path | None, typer.Option("--from", help="Model folder to start from: fine-tuning.")
    ] = None,
) -> None:
    """Train a model, or go on with the unfinished run in its folder.

    dragoman train multi30k-en-de out=runs/en-de train.max_minutes=45

    dragoman train sst2 --out runs/sst2

    dragoman train --src a.en --tgt a.zh --out runs/en-zh

    dragoman train --from runs/en-zh --src b.en --tgt b.zh --out runs/en-zh-news

    dragoman train scaling-sweep --out runs/sweep
    """
    from dragoman.cli.talk import talk
    from dragoman.train.sweep import load_sweep

    words = arguments or []
    names = [word for word in words if "=" not in word]
    overrides = [word for word in words if "=" in word]
    console = talk()
    _lay_over(overrides, {"--out": out, "--from": start, "--src": src, "--tgt": tgt})
    recipe = _choose(names, overrides)
    if recipe.description:
        console.print(recipe.description)
    if recipe.expect:
        console.print(f"To expect: {recipe.expect}")
    if names and (runs := load_sweep(names[0], overrides)):
        _run_sweep(runs, console)
        return
    result = _run(recipe, console)
    use = NEXT[recipe.task].format(folder=result.folder)
    console.print(
        f"The model is in {result.folder}. Next:\n{use}\ndragoman inspect {result.folder}"
    )


def _lay_over(overrides: list[str], options: Mapping[str, Path | None]) -> None:
    """Add the options to the overrides; InputError for a setting that both of them give."""
    given = {word.partition("=")[0].strip(): word for word in overrides}
    for option, path in options.items():
        if path is not None:
            if word := given.get(KEYS[option]):
                raise InputError(f"{option} {path} and {word} set the same key; give one of them")
            overrides.append(f"{KEYS[option]}={path}")


def _run(recipe: "RunRecipe", console: "Console") -> "TrainResult":
    """Run a recipe, its estimate first; ends the command where the run was interrupted."""
    from dragoman.cli.cost_train import tell_estimate

    result = run_recipe(recipe, console, tell_estimate(recipe, console))
    if result.interrupted:
        console.print(
            f"Saved at step {result.progress.step:,}. The same command goes on from there."
        )
        if (result.folder / "config.json").exists():
            use = NEXT[recipe.task].format(folder=result.folder)
            console.print(f"The best model so far can be used already:\n{use}")
        raise typer.Exit(INTERRUPTED)
    return result


def _run_sweep(runs: Sequence["RunRecipe"], console: "Console") -> None:
    """Run one after the other those that are not finished yet."""
    from dragoman.train.runfolder import RunFolder

    for number, run in enumerate(runs, start=1):
        console.print(f"\nRun {number} of {len(runs)}: {run.out}")
        if RunFolder(Path(run.out)).is_finished(run):
            console.print("It is finished.")
        else:
            _run(run, console)
    folder = Path(runs[0].out).parent
    console.print(f"\nThe runs are in {folder}. Next:\ndragoman cost --fit {folder}")


def run_recipe(
    recipe: "RunRecipe", console: "Console", check: "Check | None" = None
) -> "TrainResult":
    """Train with validation by decoding, which the floor of training cannot reach itself.

    `check` may refuse the model once its batches are known.
    """
    from dragoman.train.job import unchecked
    from dragoman.train.run import train as run

    score = _score_of(recipe, console)
    return run(recipe, score=score, console=console, check=check or unchecked)


def _score_of(recipe: "RunRecipe", console: "Console") -> object:
    """What judges a task by decoding; None for tasks that are judged without."""
    from dragoman.evaluate import bleu_tokenizer, tag_scores
    from dragoman.train.recipe import TranslateRecipe
    from dragoman.train.recipes.tag import TagRecipe

    match recipe:
        case TranslateRecipe():
            return _Score(bleu_tokenizer(recipe.data.tgt_lang), console)
        case TagRecipe():
            return lambda right, predicted: tag_scores(right, predicted).figures
    return None


@dataclass(slots=True)
class _Score:
    """Translates the validation sources greedily, compares, and shows some."""

    tokenize: str
    """BLEU's tokenizer."""
    console: "Console"
    """Where they are shown."""
    signature: str = ""
    """BLEU's signature, once it was computed."""

    def __call__(
        self,
        model: "EncoderDecoder",
        tokenizers: "Tokenizers",
        sources: list[str],
        references: list[str],
    ) -> Mapping[str, float]:
        from dragoman.evaluate import evaluate
        from dragoman.tasks.translation import Translator

        translator = Translator(model, tokenizers.src, tokenizers.tgt)
        hypotheses = [t.text for t in translator.translate(sources, beam_size=1)]
        scores = evaluate(hypotheses, references, tokenize=self.tokenize)
        self.signature = scores.bleu_signature
        self._show(hypotheses[:SHOWN], references[:SHOWN])
        return {"bleu": scores.bleu, "chrf": scores.chrf, "exact": scores.exact}

    def _show(self, hypotheses: Sequence[str], references: Sequence[str]) -> None:
        """Print translations beside their references, a line each, cut to the width."""
        from rich.text import Text

        half = max(1, self.console.width // 2 - 4)
        shown = zip(("translation", *hypotheses), ("reference", *references), strict=True)
        for columns in shown:
            left, right = map(Text, columns)
            left.truncate(half, overflow="ellipsis", pad=True)
            right.truncate(half, overflow="ellipsis")
            self.console.print(Text.assemble("   ", left, "  ", right))


def _choose(names: Sequence[str], overrides: Sequence[str]) -> "RunRecipe":
    """Find the recipe, or choose one from two files."""
    from dragoman.settings import override_settings
    from dragoman.train.auto import auto_recipe
    from dragoman.train.recipe import DataConfig, TranslateRecipe, load_recipe

    texts = [name for name in names if Path(name).is_file() and not name.endswith(".toml")]
    if texts:
        one, other = texts if len(texts) == 2 else ("FILE", "FILE")
        raise InputError(
            f"{' and '.join(texts)}: not a recipe, whose name ends in .toml; to learn from text "
            f"files give --src {one} --tgt {other} --out DIR"
        )
    if len(names) > 1:
        raise InputError(
            f"one recipe at a time, not {', '.join(names)}; settings are written KEY=VALUE"
        )
    if names:
        return load_recipe(names[0], overrides)
    given = dict(override.split("=", 1) for override in overrides)
    src, tgt = given.get("data.src"), given.get("data.tgt")
    if src is None or tgt is None:
        override_settings(TranslateRecipe(data=DataConfig()), overrides)  # refuses unknown keys
        if given_one := src or tgt:
            side = "--tgt" if tgt is None else "--src"
            raise InputError(
                f"{side} is missing: give the file with the translations of {given_one}"
            )
        raise InputError(
            "there is nothing to train: give a recipe (dragoman train multi30k-en-de), or --src "
            "and --tgt with --out"
        )
    recipe = auto_recipe(DataConfig(src=src, tgt=tgt), "", given.get("start.model"))
    return override_settings(recipe, overrides)
