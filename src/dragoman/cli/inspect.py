"""`dragoman inspect`: what a model folder contains, what the model does with a text, two runs."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.inspect_runs import is_run, print_comparison
from dragoman.cli.inspect_text import Choices, inspect_folder
from dragoman.cli.output import ModelFolder, option, print_items, to_json
from dragoman.cli.pipes import check_spares_model, lines_from, say
from dragoman.errors import InputError, escaped
from dragoman.files.reading import read_object
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.folder.format import FolderConfig
    from dragoman.folder.opening import ModelFolder as Opened
    from dragoman.lens.inspection import Inspection


def inspect(  # noqa: PLR0913 -- the options of the verb
    model: ModelFolder,
    text: Annotated[
        str | None,
        typer.Argument(help="Input text; - reads standard input. Or a run to compare with."),
    ] = None,
    *,
    beam_size: Annotated[int | None, option("For translation: beam size.")] = None,
    max_tokens: Annotated[
        int | None, option("For generation: maximum number of tokens; 16 by default.")
    ] = None,
    temperature: Annotated[
        float | None, option("For generation: sampling temperature; 0 is greedy.")
    ] = None,
    seed: Annotated[int | None, option("For generation: random seed.")] = None,
    layers: Annotated[
        str | None,
        option(
            "Layers to show the attention of, counted from 0, such as 0,5; by default all that fit."
        ),
    ] = None,
    heads: Annotated[
        str | None,
        option("Heads to average and show, counted from 0, such as 0,5; all by default."),
    ] = None,
    png: Annotated[
        Path | None, option("Draw the attention of every head to this PNG file.")
    ] = None,
    html: Annotated[Path | None, option("Write an interactive page to this HTML file.")] = None,
    as_json: Annotated[bool, option("Print one JSON object with everything.", "--json")] = False,
) -> None:
    """Show what a model folder contains. With a TEXT, show what the model does with it.

    For a translation: its alignment, the alternatives at each position, what the attention heads
    do, and the beam search. For a generated text: the same without the search. For a label: the
    attribution of each token. For tags: the tag of each word.

    With the folder of another run in place of the TEXT (an existing folder that contains
    training/), compare the two runs: the first step and the first setting that differ.

    dragoman inspect runs/en-zh

    dragoman inspect runs/en-zh "I like green tea." --png heads.png --html look.html

    dragoman inspect runs/shakespeare - --max-tokens 30 --json < prompt.txt

    dragoman inspect runs/seed-1 runs/seed-2
    """
    choices = Choices(
        beam_size=beam_size,
        max_tokens=max_tokens,
        temperature=temperature,
        seed=seed,
        layers=_numbers("--layers", layers),
        heads=_numbers("--heads", heads),
    )
    files = {"png": png, "html": html}
    if text is None or is_run(text):
        _check_needs_no_text(model, {**files, **asdict(choices)})
        if text is None:
            _inspect_folder(model, as_json=as_json)
        else:
            print_comparison(model, Path(text), as_json=as_json)
        return
    for name, file in files.items():
        if file is not None:
            check_spares_model(file, model, f"--{name}")
    given_text = _read(text)
    from dragoman.lens.terminal import lines_of
    from dragoman.tasks.folders import read_folder

    inspection = inspect_folder(read_folder(model, device="cpu"), given_text, choices)
    _write_pictures(inspection, png, html)
    print_items([to_json(inspection.to_dict())] if as_json else lines_of(inspection))


def _check_needs_no_text(model: Path, options: Mapping[str, object]) -> None:
    """Raise InputError for an option that is given and needs a TEXT."""
    for name, value in options.items():
        if value is not None:
            given = f"--{name.replace('_', '-')}"
            raise InputError(f"{given} needs a TEXT: dragoman inspect {model} TEXT {given}.")


def _read(text: str) -> str:
    """The text, or all of standard input for `-`. Raises InputError if it is empty."""
    if text == "-":
        with lines_from(None) as lines:
            text = "\n".join(lines)
    if not text.strip():
        raise InputError("The text is empty; give a sentence.")
    return text


def _numbers(option: str, text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(map(int, text.split(",")))
    except ValueError:
        message = f'{option} "{text}" is not a list of numbers; write it as 0,2,5.'
        raise InputError(message) from None


def _write_pictures(inspection: "Inspection", png: Path | None, html: Path | None) -> None:
    """Write the requested files, and print their paths."""
    if png is not None:
        from dragoman.lens import plot_heads

        say(f"wrote {plot_heads(inspection, png)}")
    if html is not None:
        from dragoman.lens.page import write_page

        say(f"wrote {write_page(inspection, html)}")


def _inspect_folder(model: Path, *, as_json: bool) -> None:
    """Validate a model folder and print what it contains."""
    from dragoman.folder.format import as_saved
    from dragoman.folder.opening import open_folder
    from dragoman.models import count_parameters

    folder = open_folder(model)
    loaded = folder.model
    config = _with_languages(folder)
    parts = count_parameters(config.model)
    if as_json:
        weights = {name: list(value.shape) for name, value in loaded.named_parameters()}
        sizes = parts | {"total": sum(parts.values())}
        print_items([to_json(as_saved(config) | {"parameters": sizes, "weights": weights})])
    else:
        print_items([_shown(folder, config, parts)])


def _with_languages(folder: "Opened") -> "FolderConfig":
    """The config with the languages that a tokenizer's settings name, as those of Marian do."""
    config = folder.config
    if config.published is None or config.src_lang:
        return config
    file = folder.origin / "tokenizer_config.json"
    said = read_object(file) if file.is_file() else {}
    src, tgt = (said.get(key) for key in ("source_lang", "target_lang"))
    return replace(config, src_lang=src and str(src), tgt_lang=tgt and str(tgt))


def _shown(folder: "Opened", config: "FolderConfig", parts: dict[str, int]) -> str:
    """The facts and the table of parameters."""
    from rich.console import Console
    from rich.table import Table

    facts = Table.grid(padding=(0, 2))
    made = f"format {config.format}, dragoman {config.dragoman}"
    if config.as_it_is and config.published is not None:
        made = f"a folder of Hugging Face ({config.published.family}), read as it is"
    facts.add_row("folder", escaped(f"{folder.path} ({made})"))
    for name, value in _architecture(config).items():
        facts.add_row(name, escaped(value))
    if config.published is not None:
        from dragoman.folder.tokenizers.files import TokenizerFolder
        from dragoman.folder.tokenizers.template import find_template

        if template := find_template(TokenizerFolder.of(folder.origin, {}, {})):
            facts.add_row("chat template", escaped(template[1].name))
    facts.add_row("files", escaped(", ".join(sorted(path.name for path in folder.path.iterdir()))))
    table = Table("part", "parameters", "share")
    table.columns[1].justify = table.columns[2].justify = "right"
    total = sum(parts.values())
    for name, count in parts.items():
        table.add_row(name, f"{count:,}", f"{count / total:.1%}")
    table.add_section()
    table.add_row("total", f"{total:,}", "100.0%")
    console = Console(highlight=False, soft_wrap=True)
    with console.capture() as shown:
        console.print(facts, table, sep="", end="", markup=False)
    return shown.get().removesuffix("\n")


def _architecture(config: "FolderConfig") -> dict[str, str]:
    """The kind and the size of the model, in words."""
    from dragoman.models import DecoderOnlyConfig, EncoderDecoderConfig
    from dragoman.models.heads import ClassificationHead, TaggingHead

    model, decoding = config.model, config.translating
    style = f"{model.norm_position}-norm, {model.positions.kind} positions"
    facts = {
        "kind": model.kind,
        "layers": style,
        "width": f"d_model {model.d_model}, d_ff {model.d_ff}, {counted(model.num_heads, 'head')}",
    }
    match model:
        case EncoderDecoderConfig():
            if config.published is None or config.src_lang or config.tgt_lang:
                langs = f"{config.src_lang or 'unknown'} to {config.tgt_lang or 'unknown'}"
                facts["kind"] += f", {langs}"
            layers = f"{model.num_encoder_layers} encoder, {model.num_decoder_layers} decoder"
            facts["vocabulary"] = (
                f"{model.src_vocab_size:,} source, {model.tgt_vocab_size:,} target, tied: "
                f"{model.tie_embeddings}"
            )
            facts["decoding"] = (
                f"beam {decoding.beam_size}, length penalty {decoding.length_penalty}, lines of up "
                f"to {counted(decoding.max_src_tokens, 'token')} at once"
            )
        case DecoderOnlyConfig():
            layers = f"{model.num_layers}"
            tied = "tied to the output" if model.tie_embeddings else "output apart"
            facts["vocabulary"] = f"{model.vocab_size:,}, {tied}"
            generation = config.generating
            facts["generation"] = (
                f"{generation.context or 'all'} tokens seen at once, temperature "
                f"{generation.temperature}, at most {counted(generation.max_tokens, 'token')}"
            )
        case reader:
            layers, head = f"{reader.num_layers}", reader.head
            facts["kind"] += f", head: {head.kind}"
            facts["vocabulary"] = f"{reader.vocab_size:,}"
            if isinstance(head, ClassificationHead | TaggingHead) and head.labels:
                facts["labels"] = ", ".join(head.labels)
    facts["layers"] = f"{layers}, {style}"
    return facts
