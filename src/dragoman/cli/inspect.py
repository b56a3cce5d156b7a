"""``dragoman inspect``: what a model folder holds."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.pipes import to_file_or_stdout

if TYPE_CHECKING:
    from dragoman.models.folder import FolderConfig


def inspect(
    model: Annotated[Path, typer.Argument(help="The model folder.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One object with everything.")] = False,
) -> None:
    """Check that a model folder is whole, and tell what it holds.

    dragoman inspect runs/en-zh
    """
    from dragoman.models import count_parameters
    from dragoman.models.folder import load_model
    from dragoman.settings import to_plain

    loaded, config = load_model(model)
    parts = count_parameters(config.model)
    if as_json:
        weights = {name: list(value.shape) for name, value in loaded.named_parameters()}
        found = to_plain(config) | {
            "parameters": parts | {"total": sum(parts.values())},
            "weights": weights,
        }
        with to_file_or_stdout(None) as write:
            write(json.dumps(found, ensure_ascii=False))
        return
    _show(model, config, parts)


def _show(folder: Path, config: "FolderConfig", parts: dict[str, int]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
    said = {
        "folder": f"{folder} (format {config.format}, dragoman {config.dragoman})",
        **_architecture(config),
        "files": ", ".join(sorted(path.name for path in folder.iterdir())),
    }
    facts = Table.grid(padding=(0, 2))
    for name, value in said.items():
        facts.add_row(name, value)
    console.print(facts, markup=False)
    table = Table("part", "parameters", "share")
    table.columns[1].justify = table.columns[2].justify = "right"
    total = sum(parts.values())
    for name, count in parts.items():
        table.add_row(name, f"{count:,}", f"{count / total:.1%}")
    table.add_section()
    table.add_row("total", f"{total:,}", "100.0%")
    console.print(table)


def _architecture(config: "FolderConfig") -> dict[str, str]:
    """What the variant is and how large, in words."""
    from dragoman.models import DecoderOnlyConfig, EncoderDecoderConfig, EncoderOnlyConfig
    from dragoman.models.folder import GenerationDefaults
    from dragoman.models.heads import ClassificationHead, TaggingHead

    model, decoding = config.model, config.decoding
    width = f"d_model {model.d_model}, d_ff {model.d_ff}, {model.num_heads} heads"
    style = f"{model.norm_position}-norm, {model.positions.kind} positions"
    match model:
        case EncoderDecoderConfig():
            languages = f"{config.src_lang or 'not said'} to {config.tgt_lang or 'not said'}"
            return {
                "kind": f"{model.kind}, {languages}",
                "layers": f"{model.num_encoder_layers} encoder, {model.num_decoder_layers} "
                f"decoder, {style}",
                "width": width,
                "vocabulary": f"{model.src_vocab_size:,} source, {model.tgt_vocab_size:,} target, "
                f"tied: {model.tie_embeddings}",
                "decoding": f"beam {decoding.beam_size}, length penalty "
                f"{decoding.length_penalty}, lines of up to {decoding.max_src_tokens} tokens at "
                "once",
            }
        case DecoderOnlyConfig():
            tied = "tied to the output" if model.tie_embeddings else "output apart"
            generation = config.generation or GenerationDefaults()
            return {
                "kind": model.kind,
                "layers": f"{model.num_layers}, {style}",
                "width": width,
                "vocabulary": f"{model.vocab_size:,}, {tied}",
                "generation": f"{generation.context or 'all'} tokens seen at once, temperature "
                f"{generation.temperature}, at most {generation.max_tokens} tokens",
            }
        case EncoderOnlyConfig():
            head = model.head
            labels = head.labels if isinstance(head, ClassificationHead | TaggingHead) else ()
            return {
                "kind": f"{model.kind}, head: {head.kind}",
                "layers": f"{model.num_layers}, {style}",
                "width": width,
                "vocabulary": f"{model.vocab_size:,}",
                **({"labels": ", ".join(labels)} if labels else {}),
            }
