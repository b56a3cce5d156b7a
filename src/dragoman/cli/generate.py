"""`dragoman generate`: prompts to their continuations."""

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.loading import Loading, decoding_options, say_seed, with_loading
from dragoman.cli.output import Lines, ModelFolder, option, to_json
from dragoman.cli.pipes import is_typed, lines_from, say, to_stdout
from dragoman.decoding import GENERATING, Decoding, with_seed
from dragoman.errors import InputError
from dragoman.files.arriving import InputLines
from dragoman.ranges import UNSET, Count, check_range
from dragoman.wording import as_one_line, unescaped

if TYPE_CHECKING:
    from dragoman.tasks.generate.generator import Generator
    from dragoman.tasks.results import Generation

WINDOW = 256
"""Prompts processed at a time: bounds the memory, whatever the size of the file."""


@decoding_options(GENERATING)
@with_loading
def generate(  # noqa: PLR0913 -- the options of the verb
    model: ModelFolder,
    prompt: Annotated[
        str | None, typer.Argument(help="Text to continue; lines of standard input if omitted.")
    ] = None,
    *,
    file: Annotated[
        Path | None, option("Prompts, one per line (.gz, .bz2, .xz, .zst too).")
    ] = None,
    samples: Annotated[int, option("Number of texts per prompt.")] = 1,
    decoding: Decoding,
    as_json: Annotated[
        bool, option("Print a JSON object per text: tokens, scores, flags.", "--json")
    ] = False,
    loading: Loading,
) -> None:
    r"""Continue a prompt. The text is printed as it is generated.

    With prompts from a file or a pipe, or with --samples, each text is printed on a line of its
    own. In these lines, in prompts and in stop strings, \n is a line break.

    dragoman generate runs/shakespeare "ROMEO:" --temperature 0.8 --stop "\n\n"

    dragoman generate runs/shakespeare --file prompts.txt --json > texts.jsonl
    """
    if prompt is not None and file is not None:
        raise InputError(f"Both a prompt and --file {file} are given; give one of them.")
    check_range("--samples", samples, Count)
    loading.check(model)
    from dragoman.tasks.generate.generator import Generator

    generator = Generator.load(model, device=loading.device, precision=loading.precision)
    if decoding.stop is not UNSET:
        decoding = replace(decoding, stop=tuple(map(unescaped, decoding.stop)))
    options = with_seed(decoding, generator.options)
    typed = prompt is None and is_typed(file)
    alone = None if prompt is None else nullcontext(InputLines(iter([prompt])))
    with alone or lines_from(file, strict=False) as given:
        say_seed(decoding, options)
        prompts = given.through(partial(_repeated, samples))
        if samples == 1 and not as_json and (prompt is not None or typed):
            _show(generator, prompts, options)
        else:
            results = generator.each(prompts, options, window=1 if typed else WINDOW)
            show = to_json if as_json else lambda result: as_one_line(result.text)
            Lines(prompts, typed).write(results, show, _endings, what="text")


def _show(generator: "Generator", prompts: Iterable[str], options: Decoding) -> None:
    """Write each prompt, and its text as it grows."""
    with to_stdout(end="") as write:
        for prompt in prompts:
            _say_cut(generator, prompt, options)
            write(prompt if generator.dialogues is None else f"{prompt}\n")
            for piece in generator.stream(prompt, options):
                write(piece)
            write("\n")


def _say_cut(generator: "Generator", prompt: str, options: Decoding) -> None:
    """Say that a prompt is longer than the model's context."""
    length, context = len(generator.encode(prompt, options)), generator.context
    if context is not None and length > context:
        say(f"The prompt has {length:,} tokens, and the model sees the last {context:,} alone.")


def _endings(result: "Generation") -> tuple[str, ...]:
    return (f"ended by {result.stopped}", *result.flags)


def _repeated(samples: int, texts: Iterable[str]) -> Iterator[str]:
    return (unescaped(text) for text in texts for _ in range(samples))
