"""``dragoman generate``: prompts to the texts that go on from them."""

import json
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.pipes import (
    is_typed,
    lines_from,
    progress_of,
    say,
    to_stdout,
)
from dragoman.errors import InputError
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.tasks.generate.generator import Generator
    from dragoman.tasks.options import GenerationOptions
    from dragoman.tasks.results import Generation

WINDOW = 256
"""Prompts taken at a time: bounds the memory, whatever the size of the file."""

ESCAPES = {"\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
"""What may follow a backslash, and what the two stand for."""


def _option(text: str) -> Any:  # noqa: ANN401 -- as typer's own
    return typer.Option(help=text)


def generate(  # noqa: PLR0913 -- the options of the verb
    model: Annotated[Path, typer.Argument(help="The model folder.")],
    prompt: Annotated[
        str | None, typer.Argument(help="What to go on from; unless given, lines of stdin.")
    ] = None,
    *,
    file: Annotated[Path | None, _option("Prompts, one a line (.gz, .xz, .zst too).")] = None,
    max_tokens: Annotated[int | None, _option("Most tokens to generate.")] = None,
    temperature: Annotated[
        float | None, _option("Below 1 is safer, above 1 bolder; 0 draws nothing.")
    ] = None,
    top_k: Annotated[int | None, _option("Draw from the k most probable.")] = None,
    top_p: Annotated[float, _option("Draw from the fewest of this probability.")] = 1.0,
    min_p: Annotated[float, _option("Draw from those of this share of the greatest.")] = 0.0,
    seed: Annotated[int | None, _option("Repeats a text; drawn, and said, unless given.")] = None,
    stop: Annotated[list[str] | None, _option("End before it; may be given again.")] = None,
    samples: Annotated[int, _option("Texts for each prompt.")] = 1,
    beam_size: Annotated[int, _option("With temperature 0: hypotheses kept.")] = 1,
    repetition_penalty: Annotated[float, _option("Above 1 shuns tokens that were there.")] = 1.0,
    no_repeat_ngrams: Annotated[int, _option("No so many tokens come twice in a row.")] = 0,
    max_batch_tokens: Annotated[int | None, _option("Less needs less memory.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="An object a line: text, tokens, scores, flags.")
    ] = False,
    device: Annotated[str, _option("cpu, cuda or auto.")] = "auto",
) -> None:
    r"""Go on from a prompt; the text appears behind it as it grows.

    From a file or a pipe, or with --samples, each text is a line of its own. In such lines, in
    prompts and in stop strings a line break is written \n.

    dragoman generate runs/shakespeare "ROMEO:" --temperature 0.8 --stop "\n\n"

    dragoman generate runs/shakespeare --file prompts.txt --json > texts.jsonl
    """
    if prompt is not None and file is not None:
        raise InputError(f"There is a prompt and --file {file}; give one of them.")
    if samples < 1:
        raise InputError(f"samples is {samples}; it must be 1 or more.")
    from dragoman.tasks.generate.generator import Generator

    generator = Generator.load(model, device=device)
    base = generator.options
    options = replace(
        base,
        max_tokens=base.max_tokens if max_tokens is None else max_tokens,
        temperature=base.temperature if temperature is None else temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        seed=secrets.randbelow(1_000_000) if seed is None else seed,
        stop=tuple(_unescape(string) for string in stop or ()),
        beam_size=beam_size,
        repetition_penalty=repetition_penalty,
        no_repeat_ngrams=no_repeat_ngrams,
        max_batch_tokens=base.max_batch_tokens if max_batch_tokens is None else max_batch_tokens,
    )
    typed = prompt is None and is_typed(file)
    with _prompts(prompt, file) as given:
        if seed is None and options.temperature > 0:
            say(f"seed {options.seed}")
        prompts = (_unescape(text) for text in given for _ in range(samples))
        if samples == 1 and not as_json and (prompt is not None or typed):
            _show(generator, prompts, options)
        else:
            results = generator.each(prompts, options, window=1 if typed else WINDOW)
            _list(results, _to_json if as_json else _to_line, quiet=typed)


@contextmanager
def _prompts(prompt: str | None, file: Path | None) -> Iterator[Iterable[str]]:
    """The one of the command line, or lines."""
    if prompt is not None:
        yield [prompt]
    else:
        with lines_from(file) as lines:
            yield lines


def _show(generator: "Generator", prompts: Iterable[str], options: "GenerationOptions") -> None:
    """Write each prompt and the text as it grows."""
    with to_stdout(end="") as write:
        for prompt in prompts:
            write(prompt)
            for piece in generator.stream(prompt, options):
                write(piece)
            write("\n")


def _list(
    results: Iterator["Generation"], line: Callable[["Generation"], str], *, quiet: bool
) -> None:
    """Write a line for each prompt, then say how many there were and why they ended."""
    start = perf_counter()
    ends: Counter[str] = Counter()
    flags: Counter[str] = Counter()
    with to_stdout() as write, progress_of(results, "texts", quiet=quiet) as shown:
        for result in shown:
            write(line(result))
            ends[f"ended by {result.stopped}"] += 1
            flags.update(result.flags)
    notes = "".join(f", {count:,} {what}" for what, count in sorted((ends + flags).items()))
    say(f"{counted(ends.total(), 'text')} in {perf_counter() - start:.1f} s{notes}")


def _to_json(result: "Generation") -> str:
    return json.dumps(result.to_dict(), ensure_ascii=False)


def _to_line(result: "Generation") -> str:
    return _escape(result.text)


def _escape(text: str) -> str:
    return re.sub(r"[\\\n\r]", lambda found: "\\" + _NAMES[found[0]], text)


def _unescape(text: str) -> str:
    return re.sub(r"\\([\\nrt])", lambda found: ESCAPES[found[1]], text)


_NAMES = {char: name for name, char in ESCAPES.items()}
