"""The contents of a model folder: its settings in words, and its parameters."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.files.reading import read_object
from dragoman.folder.format import FolderConfig, as_saved
from dragoman.folder.opening import ModelFolder, open_folder
from dragoman.folder.tokenizers.files import TokenizerFolder
from dragoman.models import DecoderOnlyConfig, EncoderDecoderConfig, count_parameters
from dragoman.models.heads import ClassificationHead, TaggingHead
from dragoman.plain import Plain
from dragoman.wording import counted


@dataclass(frozen=True, slots=True)
class Contents(Plain):
    """A model folder that loads: all of its weights are used, and all parameters are set."""

    folder: ModelFolder
    config: FolderConfig
    """The folder's config, with the languages that its tokenizer's settings name."""

    @property
    def parameters(self) -> dict[str, int]:
        """Number of parameters of each part."""
        return count_parameters(self.config.model)

    @property
    def facts(self) -> dict[str, str]:
        """What is known about the folder, in words."""
        config, folder = self.config, self.folder.path
        made = f"format {config.format}, dragoman {config.dragoman}"
        if config.as_it_is and config.published is not None:
            made = f"a folder of Hugging Face ({config.published.family}), read as it is"
        facts = {"folder": f"{folder} ({made})", **_architecture(config)}
        if config.published is not None:
            from dragoman.folder.tokenizers.template import find_template  # it loads Jinja

            tokenizer = TokenizerFolder.of(self.folder.origin, {}, {})
            if template := find_template(tokenizer):
                facts["chat template"] = template[1].name
        return facts | {"files": ", ".join(sorted(path.name for path in folder.iterdir()))}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: the config, number of parameters and shapes of weights."""
        sizes = self.parameters | {"total": sum(self.parameters.values())}
        weights = {name: list(value.shape) for name, value in self.folder.model.named_parameters()}
        return as_saved(self.config) | {"parameters": sizes, "weights": weights}


def contents_of(folder: Path) -> Contents:
    """Load a model folder and return its contents."""
    opened = open_folder(folder)
    opened.model  # noqa: B018 -- read here, and the config may change with it
    return Contents(opened, _with_languages(opened))


def _with_languages(folder: ModelFolder) -> FolderConfig:
    """Return the config with the languages that a tokenizer's settings name, as Marian's do."""
    config = folder.config
    if config.published is None or config.src_lang:
        return config
    file = folder.origin / "tokenizer_config.json"
    said = read_object(file) if file.is_file() else {}
    src, tgt = (said.get(key) for key in ("source_lang", "target_lang"))
    return replace(config, src_lang=src and str(src), tgt_lang=tgt and str(tgt))


def _architecture(config: "FolderConfig") -> dict[str, str]:
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
                several = ", ".join(map("-".join, config.directions))
                facts["kind"] += f", {several or langs}"
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
