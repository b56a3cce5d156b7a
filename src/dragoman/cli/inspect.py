"""`dragoman inspect`: what a model folder contains, what the model does with a text, two runs."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import with_options
from dragoman.cli.output import Item, ModelFolder, option, print_found
from dragoman.cli.pipes import check_spares_model, lines_from, say
from dragoman.errors import InputError, escaped
from dragoman.languages import LanguagePair
from dragoman.lens.choices import Choices

if TYPE_CHECKING:
    from dragoman.lens.contents import Contents
    from dragoman.lens.inspection import Inspection


AlignmentTexts = Annotated[
    tuple[Path, Path] | None,
    option(
        "Choose the attention head that aligns words best in these source texts and their "
        "translations, and record it in the model folder."
    ),
]
Film = Annotated[
    Path | None,
    option("For translation: draw the alignment at checkpoints of the run to this PNG file."),
]


@with_options("choices", Choices())
def inspect(  # noqa: PLR0913 -- the options of the verb
    model: ModelFolder,
    text: Annotated[
        str | None,
        typer.Argument(help="Input text; - reads standard input. Or a run to compare with."),
    ] = None,
    *,
    choices: Choices,
    png: Annotated[
        Path | None, option("Draw the attention of every head to this PNG file.")
    ] = None,
    html: Annotated[Path | None, option("Write an interactive page to this HTML file.")] = None,
    film: Film = None,
    as_json: Annotated[bool, option("Print one JSON object with everything.", "--json")] = False,
    choose_alignment: AlignmentTexts = None,
) -> None:
    """Show what a model folder contains. With a TEXT, show what the model does with it.

    For a translation: its alignment, the alternatives at each position, what each logit is made
    of, where the attention heads look, and the beam search. For a generated text: the same without
    the search. For a label: the attribution of each token. For tags: the tag of each word.

    With the folder of another run instead of the TEXT (an existing folder that contains training/),
    compare the two runs: the first step and the first setting that differ.

    dragoman inspect runs/en-zh

    dragoman inspect runs/en-zh "I like green tea." --png heads.png --html look.html

    dragoman inspect runs/en-zh "I like green tea." --switch-off

    dragoman inspect runs/shakespeare - --max-tokens 30 --json < prompt.txt

    dragoman inspect runs/seed-1 runs/seed-2
    """
    if choose_alignment is not None:
        say(_choose_alignment(model, choose_alignment, choices))
        return
    pictures = {"png": png, "html": html, "film": film}
    files = {name: file for name, file in pictures.items() if file is not None}
    if text is None or is_run(text):
        for name in [*files, *choices.given()]:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} needs a TEXT: dragoman inspect {model} TEXT {option}.")
        if text is None:
            from dragoman.lens.contents import contents_of

            contents = contents_of(model)
            print_found(contents, _contents(contents), as_json=as_json)
        else:
            from dragoman.tasks.runs import compare_runs, tables_of

            found = compare_runs(model, Path(text))
            print_found(found, [found["verdict"], *tables_of(found)], as_json=as_json)
        return
    from dragoman.lens.terminal import lines_of

    inspection = _inspected(model, text, choices, files)
    _write_pictures(inspection, files)
    print_found(inspection, lines_of(inspection), as_json=as_json)


def _inspected(model: Path, text: str, choices: Choices, files: Mapping[str, Path]) -> "Inspection":
    """Return what the model of a folder does with a text; the files are written later."""
    for name, file in files.items():
        check_spares_model(file, model, f"--{name}")
    given = _read(text)
    from dragoman.lens.inspecting import inspect_folder
    from dragoman.tasks.folders import read_folder

    return inspect_folder(read_folder(model, device="cpu"), given, choices)


def _choose_alignment(model: Path, texts: tuple[Path, Path], pair: LanguagePair) -> str:
    """Record in a model folder what aligns words best; return a sentence about it."""
    from dragoman.data.corpus import CorpusConfig
    from dragoman.folder.format import record_alignment
    from dragoman.folder.opening import open_folder
    from dragoman.tasks.translate.heads import choose_by_texts

    folder = open_folder(model)
    if folder.config.as_it_is:
        raise InputError(
            f"{model} is a folder of another library, which is left as it is; convert it first: "
            f"dragoman convert {model} NEW_FOLDER."
        )
    src, tgt = map(str, texts)
    corpus = CorpusConfig(src=src, tgt=tgt, src_lang=pair.src_lang, tgt_lang=pair.tgt_lang)
    head = choose_by_texts(folder, corpus)
    record_alignment(model, head)
    if head is None:
        return "No head is better than the mean over the heads of the last layer, which aligns."
    return f"Head {head[1]} of layer {head[0]} of the decoder aligns words; {model} says so now."


def is_run(text: str) -> bool:
    """Return whether an argument is a run's folder and not a text: it contains training/."""
    return text not in ("", "-") and os.path.isdir(f"{text}/training")  # noqa: PTH112


def _contents(contents: "Contents") -> Iterator[Item]:
    """Yield what a model folder contains: facts, then a table of parameters."""
    from dragoman.lens.terminal import table

    yield from table([(name, escaped(value)) for name, value in contents.facts.items()])
    total = sum(contents.parameters.values())
    parts = {**contents.parameters, "total": total}
    rows = [(name, f"{count:,}", f"{count / total:.1%}") for name, count in parts.items()]
    yield [("part", "parameters", "share"), *rows]


def _read(text: str) -> str:
    """Return the text, or all of standard input for `-`. Raises InputError if it is empty."""
    if text == "-":
        with lines_from(None) as lines:
            text = "\n".join(lines)
    if not text.strip():
        raise InputError("The text is empty; give a sentence.")
    return text


def _write_pictures(inspection: "Inspection", files: Mapping[str, Path]) -> None:
    """Write the requested files and print their paths.

    The film comes first, because its checkpoints may be missing.
    """
    if film := files.get("film"):
        from dragoman.lens import plot_film

        say(f"wrote {plot_film(inspection, film)}")
    if png := files.get("png"):
        from dragoman.lens import plot_heads  # which needs matplotlib, as the film does

        say(f"wrote {plot_heads(inspection, png)}")
    if html := files.get("html"):
        from dragoman.lens.page import write_page

        say(f"wrote {write_page(inspection, html)}")
