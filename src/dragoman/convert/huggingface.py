"""A model as a folder that Hugging Face's transformers loads with its `Auto` classes.

`counterpart` chooses the class and rejects what it does not support; here its weights are filled in
and the folder is written. Only this file imports transformers.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from tokenizers.processors import TemplateProcessing
from torch import Tensor

from dragoman.convert.counterpart import Counterpart, counterpart, token_ids
from dragoman.convert.limits import check_installed, num_positions
from dragoman.convert.probe import Answer, Answers, labels_of, plain_generator, read_answer
from dragoman.errors import DragomanError, InputError
from dragoman.folder.foreign import family
from dragoman.folder.foreign.files import read_checkpoint
from dragoman.folder.format import CONFIG, GENERATION
from dragoman.folder.opening import ModelFolder
from dragoman.models import DecoderOnlyConfig, EncoderDecoderConfig, EncoderOnlyConfig
from dragoman.models.config import ModelConfig
from dragoman.tasks.translate.translator import Translator
from dragoman.text.tokenizer import MASK

SIZES_ONLY = {"max_position_embeddings", "n_positions"}
"""Keys for the size of their table of positions, if our model computes positions instead."""
TURNS = """
{{- bos_token }}
{%- for message in messages %}
    {%- set turn = loop.index0 % 2 %}
    {%- if message['role'] != ['user', 'assistant'][turn] %}
        {{- raise_exception('user and assistant must take turns, the user first') }}
    {%- endif %}
    {{- roles[turn] + message['content'].splitlines() | join(' ') + eos_token }}
{%- endfor %}
{%- if add_generation_prompt %}{{ roles[1] }}{% endif %}"""
"""Our encoding of a dialogue as a Jinja template; `roles` are the tokens of the two roles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HuggingFace:
    """The target "huggingface"."""

    shard_size: str = "50GB"
    """Maximum size of a weight file; several files are listed in an index."""
    name = "Hugging Face"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[1-9]\d*[KMGT]B", self.shard_size):
            raise InputError(
                f'--shard-size {self.shard_size} is not a file size; give one such as "5GB"'
            )

    def check(self, folder: ModelFolder) -> None:
        """Raise InputError for a model that no class supports, or without transformers."""
        _counterpart(folder)
        check_installed("transformers")

    def write(self, folder: ModelFolder, out: Path) -> None:
        """Write config.json, generation_config.json, the weights and the tokenizer."""
        import transformers

        _be_quiet()
        theirs = _counterpart(folder)
        make = getattr(transformers, theirs.model)
        model = make(make.config_class(**theirs.config)).eval()
        _fill(model.state_dict(), theirs, folder.model.state_dict(), folder.config.model)
        if generation := _generation(folder):
            model.generation_config = transformers.GenerationConfig(**generation)
        try:
            model.save_pretrained(out, max_shard_size=self.shard_size)
        except SafetensorError as error:  # a full disk
            raise DragomanError(f"writing the weights to {out} failed: {error}") from error
        _hf_tokenizer(folder).save_pretrained(out)

    def open(self, folder: ModelFolder, out: Path) -> Answers:
        """Load the folder as users would."""
        import transformers

        _be_quiet()
        tokenizer = transformers.AutoTokenizer.from_pretrained(out, local_files_only=True)
        made = getattr(transformers, _counterpart(folder).model)
        model = made.from_pretrained(out, local_files_only=True, dtype=torch.float32).eval()
        generation = folder.config.generation or GENERATION
        opening, labels = generation.opening or "", labels_of(folder)

        def write(text: str, limit: int) -> Answer:
            inputs = tokenizer(opening + text, return_tensors="pt", split_special_tokens=True)
            found = model.generate(
                **inputs,
                num_beams=1,
                do_sample=False,
                max_length=None,
                max_new_tokens=limit,
                output_logits=True,
                return_dict_in_generate=True,
            )
            (sequence,) = found.sequences.tolist()
            first = 1 if model.config.is_encoder_decoder else inputs.input_ids.shape[1]
            ids = tuple(id_ for id_ in sequence[first:] if id_ != tokenizer.eos_token_id)
            written = tokenizer.decode(sequence, skip_special_tokens=True).removeprefix(opening)
            return Answer(text=written, ids=ids, logits_TV=torch.cat(found.logits))

        def read(text: str, limit: int) -> Answer:  # noqa: ARG001 (an encoder writes nothing)
            inputs = tokenizer(text, return_tensors="pt")
            with torch.inference_mode():
                found = model(**inputs)
            logits = found.logits if "logits" in found else found.last_hidden_state
            names = [model.config.id2label[number] for number in range(len(labels))]
            return read_answer(inputs.input_ids[0].tolist(), logits, names)

        return read if isinstance(folder.config.model, EncoderOnlyConfig) else write


def _fill(
    theirs: Mapping[str, Tensor],
    found: Counterpart,
    weights: Mapping[str, Tensor],
    config: ModelConfig,
) -> None:
    """Write our weights into their state dict; parameters that ours lacks become zero."""
    family = found.family
    for name, tensor in theirs.items():
        computed = "embed_positions" in name and name.removeprefix(family.prefix) in family.ignored
        if not computed:  # sines and cosines, which are not weights
            tensor.zero_()
    state = found.weights(weights)
    family.restore(state, config, theirs)
    unshared = theirs.get(f"{family.prefix}{family.shared}.weight")
    if unshared is not None:
        unshared.copy_(state["src_embedding.weight"])


def load_theirs(folder: Path) -> Any:  # noqa: ANN401 (their class)
    """Return the equivalent model of transformers with the folder's weights, in fp32.

    Its class is the family's first, whatever the config names (which may be a model without its
    output, or an old class name); in a family without a list, it is the one that the config names.
    transformers receives only the supported part of the config and our tensors: it opens no file in
    the folder. Raises InputError if it has no such class.
    """
    import transformers

    _be_quiet()
    hf, state = read_checkpoint(folder)
    kind = family(hf)
    said = kind.known(hf) | {key: hf[key] for key in SIZES_ONLY & hf.keys()}
    named = said.pop("architectures", None) or ["AutoModel"]
    scaling = said.get("rope_scaling") or {}
    if scaling.get("type") == "su":  # the first name of longrope, which their class fails on
        said["rope_scaling"] = {**scaling, "type": "longrope"}
    (name, *_) = kind.classes or named
    cls = getattr(transformers, name, None)
    if cls is None:
        raise InputError(f"transformers has no class {name}, which {folder / CONFIG} names")
    if (made := getattr(cls, "config_class", None)) is None:
        config = transformers.AutoConfig.for_model(hf["model_type"], **said)
    else:  # of the part for text, if the model has others
        config = made(**said)
    model = cls.from_pretrained(
        None,
        config=config,
        state_dict=kind.current(state),
        dtype=torch.float32,
        attn_implementation="eager",
    )
    if hf["model_type"] == "umt5":  # transformers 5 ties and scales whatever the config says
        model.config.tie_word_embeddings = hf.get(
            "scale_decoder_outputs", hf.get("tie_word_embeddings", True)
        )
    return model.eval()


def _counterpart(folder: ModelFolder) -> Counterpart:
    """Return the class equivalent to a model. Raises InputError if there is none."""
    config, length = folder.config.model, num_positions(folder.config.translating)
    if isinstance(config, DecoderOnlyConfig):
        length = plain_generator(folder).context or length
    found = counterpart(config, length)
    if folder.src_tokenizer is not folder.tgt_tokenizer:
        raise InputError(
            "tokenizer.src.json and tokenizer.tgt.json cannot be one tokenizer of "
            "transformers; convert a model that is trained with tokenizer.joint = true"
        )
    return found


def _generation(folder: ModelFolder) -> dict[str, Any]:
    """Return their decoding defaults, if the model generates; our forbidden ids are suppressed."""
    config, decoding = folder.config.model, folder.config.translating
    written: dict[str, Any]
    match config:
        case EncoderOnlyConfig():
            return {}
        case EncoderDecoderConfig():
            never = Translator.of(folder).specials.forbidden
            written = {
                "decoder_start_token_id": config.bos_id,
                "num_beams": decoding.beam_size,
                "length_penalty": decoding.length_penalty,
                "max_length": num_positions(decoding) - 1,
            }
        case DecoderOnlyConfig():
            generator = plain_generator(folder)
            never, options = generator.never, generator.options
            written = {"max_new_tokens": options.max_tokens, "do_sample": options.temperature > 0}
            if options.temperature > 0:
                written["temperature"] = options.temperature
    return {
        **token_ids(config),
        **written,
        "suppress_tokens": list(never),
        "renormalize_logits": True,  # after suppression, as ours
    }


def _be_quiet() -> None:
    """Hide the progress bars of transformers."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()


def _hf_tokenizer(folder: ModelFolder) -> Any:  # noqa: ANN401 (their class)
    """Return our tokenizer as theirs, with the special tokens that the model expects.

    A source ends with eos; a prompt begins with bos (or with its opening text, which the caller
    must add); an encoder's text has both. No text is treated as a special token, except in a
    dialogue model, whose chat template must write them.
    """
    from transformers import PreTrainedTokenizerFast

    tokenizer, config = folder.src_tokenizer, folder.config
    opened = config.generation is not None and config.generation.opening is not None
    backend = tokenizer.copy_backend(rest=opened)
    frames = {"encoder-decoder": "$A </s>", "decoder-only": "<s> $A", "encoder-only": "<s> $A </s>"}
    ends = [("<s>", tokenizer.bos_id), ("</s>", tokenizer.eos_id)]
    frame = "$A" if opened else frames[config.model.kind]
    backend.post_processor = TemplateProcessing(single=frame, special_tokens=ends)
    longest = {
        "encoder-decoder": config.translating.max_src_tokens + 1,
        "encoder-only": (config.reading.max_tokens if config.reading else 256) + 2,
    }
    writes = config.model.kind == "decoder-only"
    named: dict[str, Any] = {"mask_token": MASK} if MASK in tokenizer.specials else {}
    chat = None if config.generation is None else config.generation.chat
    if chat is not None:
        named["extra_special_tokens"] = [chat.user, chat.assistant]
        roles = json.dumps([chat.user, chat.assistant], ensure_ascii=False)
        named["chat_template"] = f"{{%- set roles = {roles} %}}{TURNS}"
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<pad>",  # noqa: S106
        unk_token="<unk>",  # noqa: S106
        bos_token="<s>",  # noqa: S106
        eos_token="</s>",  # noqa: S106
        **named,
        split_special_tokens=chat is None,
        clean_up_tokenization_spaces=False,
        padding_side="left" if writes else "right",
        model_input_names=["input_ids", "attention_mask"],
        model_max_length=longest.get(config.model.kind),
    )
