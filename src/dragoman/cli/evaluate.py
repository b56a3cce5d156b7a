"""``dragoman evaluate``: how good a model is, by what its kind is for."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dragoman.cli.evaluate_encoder import evaluate_labelled, evaluate_tagged
from dragoman.cli.evaluate_text import evaluate_text
from dragoman.cli.evaluate_translation import Decoding, evaluate_translations
from dragoman.errors import InputError


def _option(text: str) -> Any:  # noqa: ANN401 -- as typer's own
    return typer.Option(help=text)


def evaluate(  # noqa: PLR0913 -- the options of the verb
    model: Annotated[Path, typer.Argument(help="The model folder.")],
    *,
    src: Annotated[Path | None, _option("Source lines (.gz, .xz, .zst too).")] = None,
    ref: Annotated[Path | None, _option("Reference translations, line by line.")] = None,
    hyp: Annotated[Path | None, _option("Keep the translations in this file.")] = None,
    tokenize: Annotated[str | None, _option("BLEU's tokenizer; else by the language.")] = None,
    beam_size: Annotated[int | None, _option("Hypotheses kept; 1 is greedy.")] = None,
    length_penalty: Annotated[float | None, _option("Above 0 favours length.")] = None,
    max_batch_tokens: Annotated[int | None, _option("Less needs less memory.")] = None,
    text: Annotated[Path | None, _option("A text that a generator predicts.")] = None,
    split: Annotated[
        Literal["file", "line", "blank-line"], _option("What a document of the text is.")
    ] = "file",
    data: Annotated[Path | None, _option("Labelled texts, or words with tags.")] = None,
    layout: Annotated[list[str] | None, _option("KEY=VALUE of the data's layout.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One object with all figures.")] = False,
    device: Annotated[str, _option("cpu, cuda or auto.")] = "auto",
) -> None:
    """Measure a model on a test set: translations, texts to predict, labels or tags.

    A translator by BLEU and chrF, with signatures:

    dragoman evaluate runs/en-zh --src test.en --ref test.zh --hyp test.out

    A generator by the perplexity of a text, and its nats per token and per character:

    dragoman evaluate runs/shakespeare --text test.txt

    A classifier or a tagger by accuracy, precision, recall and F1:

    dragoman evaluate runs/sst2 --data test.tsv
    """
    kind = _kind(model)
    _check_files(model, kind, {"--src": src, "--ref": ref, "--text": text, "--data": data})
    if src is not None and ref is not None:
        decoding = Decoding(
            beam_size=beam_size,
            length_penalty=length_penalty,
            max_batch_tokens=max_batch_tokens,
            device=device,
        )
        evaluate_translations(
            model, (src, ref), decoding, hyp=hyp, tokenize=tokenize, as_json=as_json
        )
    elif text is not None:
        evaluate_text(model, text, split=split, as_json=as_json, device=device)
    elif data is not None:
        measure = evaluate_tagged if kind == "tag" else evaluate_labelled
        measure(model, data, layout=layout or (), as_json=as_json, device=device)


FILES = {
    "encoder-decoder": ("--src", "--ref"),
    "decoder-only": ("--text",),
    "classify": ("--data",),
    "tag": ("--data",),
}
"""What a model of each kind is measured on."""


def _kind(model: Path) -> str:
    """The kind of a folder's model; of an encoder that of its head."""
    from dragoman.models import EncoderOnlyConfig
    from dragoman.models.folder import read_config

    config = read_config(model).model
    return config.head.kind if isinstance(config, EncoderOnlyConfig) else config.kind


def _check_files(model: Path, kind: str, given: dict[str, Path | None]) -> None:
    """Raise InputError unless the files that the kind is measured on are given, and no others."""
    if kind not in FILES:
        raise InputError(f"{model} holds an encoder that answers nothing, so nothing is measured.")
    if [name for name, file in given.items() if file is not None] != list(FILES[kind]):
        files = " and ".join(FILES[kind])
        raise InputError(f"{model} is measured on {files}; give {files} and nothing else.")
