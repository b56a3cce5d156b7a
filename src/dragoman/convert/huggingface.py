"""A model as a Marian-shaped folder, which Hugging Face's transformers loads.

Marian (Junczys-Dowmunt et al., 2018) is the paper's model; `models/foreign` reads such folders, and
its tables serve here in the other direction. Pegasus (Zhang et al., 2020) is in transformers the
same with pre-norm, under the same names, so that pre-norm models become it. This file alone imports
transformers.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from tokenizers.processors import TemplateProcessing
from torch import Tensor

from dragoman.convert.limits import check_installed, check_limits, common_limits, num_positions
from dragoman.convert.probe import Answer, Answers
from dragoman.errors import DragomanError, InputError
from dragoman.models import EncoderDecoder, EncoderDecoderConfig
from dragoman.models.foreign.bart import MARIAN
from dragoman.models.foreign.reading import ACTIVATIONS
from dragoman.models.foreign.weights import invert
from dragoman.nn import Sinusoidal
from dragoman.tasks.folders import Folder
from dragoman.tasks.translate.translator import Translator

WRITES_THE_STREAM = {"out_proj", "down", "norm", "final_norm"}
"""Modules whose outputs are channels of the residual stream; all others read them."""
HEADLESS = ("lm_head.", "final_logits_bias")
"""Their names without the prefix of the model."""


class HuggingFace:
    """The target "huggingface"."""

    name = "Hugging Face's Marian or Pegasus"

    def check(self, folder: Folder) -> None:
        """Raise InputError for what neither can express, or without transformers."""
        config = cast("EncoderDecoderConfig", folder.config.model)
        limits = {
            **common_limits(config),
            "tgt_vocab_size": lambda size: (
                config.norm_position == "post" or size == config.src_vocab_size
            ),
            "norm": ("layer",),
            "norm_eps": (1e-5,),
            "embedding_norm": (False,),
            "gated": (False,),
            "activation": tuple(ACTIVATIONS.values()),
            "positions": (Sinusoidal(), Sinusoidal(layout="halves")),
        }
        check_limits(config, limits, self.name)
        if folder.src_tokenizer is not folder.tgt_tokenizer:
            raise InputError(
                "tokenizer.src.json and tokenizer.tgt.json cannot be one tokenizer of "
                "transformers; convert a model that is trained with tokenizer.joint = true"
            )
        check_installed("transformers")

    def write(self, folder: Folder, out: Path) -> None:
        """Write config.json, generation_config.json, the weights and the tokenizer."""
        import transformers

        _be_quiet()
        if cast("EncoderDecoderConfig", folder.config.model).norm_position == "pre":
            make, config = transformers.PegasusForConditionalGeneration, transformers.PegasusConfig
        else:
            make, config = transformers.MarianMTModel, transformers.MarianConfig
        model = make(config(**_hf_config(folder))).eval()
        model.load_state_dict(_hf_weights(folder, model.state_dict()))
        model.generation_config = transformers.GenerationConfig(**_generation(folder))
        try:
            model.save_pretrained(out)
        except SafetensorError as error:  # a full disk
            raise DragomanError(f"writing the weights to {out} failed: {error}") from error
        _hf_tokenizer(folder).save_pretrained(out)

    def open(self, folder: Folder, out: Path) -> Answers:  # noqa: ARG002 (the protocol's form)
        """Load the folder by the classes that users call."""
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(out, local_files_only=True)
        model = AutoModelForSeq2SeqLM.from_pretrained(out, local_files_only=True).eval()
        first, end = model.config.decoder_start_token_id, model.config.eos_token_id

        def answer(text: str, limit: int) -> Answer:
            inputs = tokenizer(text, return_tensors="pt")
            found = model.generate(
                **inputs,
                num_beams=1,
                max_length=None,
                max_new_tokens=limit,
                output_logits=True,
                return_dict_in_generate=True,
            )
            (sequence,) = found.sequences.tolist()
            ids = tuple(id_ for id_ in sequence if id_ not in (first, end))
            written = tokenizer.decode(sequence, skip_special_tokens=True)
            return Answer(text=written, ids=ids, logits_TV=torch.cat(found.logits))

        return answer


def _be_quiet() -> None:
    """Keep the bars of transformers from standard error."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()


def _hf_config(folder: Folder) -> dict[str, Any]:
    """Their config: the table of `models/foreign`, read backwards, and what it computes."""
    config = cast("EncoderDecoderConfig", folder.config.model)
    named = {
        key: getattr(config, ours) for ours, key in MARIAN.fields.items() if isinstance(key, str)
    }
    all_tied, tied_output = (config.tie_embeddings == tying for tying in ("all", "target-output"))
    return {
        **named,
        "decoder_vocab_size": config.tgt_vocab_size,  # Marian alone
        "encoder_attention_heads": config.num_heads,
        "decoder_attention_heads": config.num_heads,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": config.d_ff,
        "activation_function": next(k for k, v in ACTIVATIONS.items() if v == config.activation),
        "encoder_layerdrop": config.layer_drop,
        "decoder_layerdrop": config.layer_drop,
        "max_position_embeddings": num_positions(folder.config.decoding),
        "share_encoder_decoder_embeddings": all_tied,
        "tie_word_embeddings": all_tied or (tied_output and config.norm_position == "post"),
        "pad_token_id": config.pad_id,
        "bos_token_id": config.bos_id,
        "eos_token_id": config.eos_id,
        "decoder_start_token_id": config.bos_id,
        "forced_eos_token_id": None,
    }


def _hf_weights(folder: Folder, empty: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Their state dict; `empty` has what ours lacks: tables of positions, and biases as zeros."""
    config = cast("EncoderDecoderConfig", folder.config.model)
    state = folder.model_of(EncoderDecoder).state_dict()
    if config.positions == Sinusoidal():
        state = sines_before_cosines(state, config.d_model)
    theirs = invert(MARIAN.modules, state)
    if f"{MARIAN.prefix}shared.weight" in empty:
        theirs["shared.weight"] = state["src_embedding.weight"]
    if "final_logits_bias" in theirs:
        theirs["final_logits_bias"] = theirs["final_logits_bias"][None]
    named = {n if n.startswith(HEADLESS) else f"{MARIAN.prefix}{n}": t for n, t in theirs.items()}
    missing = {name: tensor for name, tensor in empty.items() if name not in named}
    return missing | named


def sines_before_cosines(state: Mapping[str, Tensor], d_model: int) -> dict[str, Tensor]:
    """Renumber the channels of the residual stream as Marian's positions are laid out.

    Ours stand as sine, cosine, sine, cosine, ...; Marian has all sines, then all cosines. One
    permutation of what every module writes to the stream or reads from it changes no output: a norm
    takes its mean over all channels, and what is inside heads and networks stays where it is.
    """
    order = torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])

    def moved(name: str, tensor: Tensor) -> Tensor:
        module, leaf = name.split(".")[-2:]
        if module in WRITES_THE_STREAM:
            return tensor[order]
        return tensor[:, order] if leaf == "weight" else tensor

    return {name: moved(name, tensor) for name, tensor in state.items()}


def _generation(folder: Folder) -> dict[str, Any]:
    """Their default decoding; what our search never writes is suppressed there too."""
    config = cast("EncoderDecoderConfig", folder.config.model)
    decoding = folder.config.decoding
    return {
        "pad_token_id": config.pad_id,
        "bos_token_id": config.bos_id,
        "eos_token_id": config.eos_id,
        "decoder_start_token_id": config.bos_id,
        "num_beams": decoding.beam_size,
        "length_penalty": decoding.length_penalty,
        "max_length": num_positions(decoding) - 1,
        "suppress_tokens": list(Translator.of(folder).forbidden),
        "renormalize_logits": True,  # after that, as ours
    }


def _hf_tokenizer(folder: Folder) -> Any:  # noqa: ANN401 (their class)
    """Our tokenizer, which ends a text by eos and never takes a text for a special token."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = folder.src_tokenizer
    backend = tokenizer.copy_backend()
    end = ("</s>", tokenizer.eos_id)
    backend.post_processor = TemplateProcessing(single="$A </s>", special_tokens=[end])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="<pad>",  # noqa: S106
        unk_token="<unk>",  # noqa: S106
        bos_token="<s>",  # noqa: S106
        eos_token="</s>",  # noqa: S106
        split_special_tokens=True,
        clean_up_tokenization_spaces=False,
        padding_side="right",
        model_max_length=folder.config.decoding.max_src_tokens + 1,
    )
