"""A translator as Marian (Junczys-Dowmunt et al., 2018), the paper's model, or as Pegasus.

`folder/foreign` reads such folders, and its tables serve here in the other direction. Pegasus
(Zhang et al., 2020) is in transformers the same with pre-norm, under the same names, so that
pre-norm models become it.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from dragoman.convert.limits import check_limits, common_limits, num_positions
from dragoman.convert.shapes import Counterpart, named, token_ids
from dragoman.errors import InputError
from dragoman.folder.foreign.bart import MARIAN
from dragoman.folder.foreign.reading import ACTIVATIONS
from dragoman.folder.opening import ModelFolder
from dragoman.models import EncoderDecoderConfig
from dragoman.nn import Sinusoidal
from dragoman.tasks.translate.translator import Translator

WRITES_THE_STREAM = {"out_proj", "down", "norm", "final_norm"}
"""Modules whose outputs are channels of the residual stream; all others read them."""


def marian(folder: ModelFolder, config: EncoderDecoderConfig) -> Counterpart:
    """Return the class for a translator. Raises InputError for what neither can express."""
    name = "Hugging Face's Marian or Pegasus"
    limits = {
        **common_limits(config),
        "head_dim": (None, config.d_model / config.num_heads),
        "attention_scale": (None,),
        "logit_scale": (1.0,),
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
    check_limits(config, limits, name)
    if folder.src_tokenizer is not folder.tgt_tokenizer:
        raise InputError(
            "tokenizer.src.json and tokenizer.tgt.json cannot be one tokenizer of "
            "transformers; convert a model that is trained with tokenizer.joint = true"
        )
    pre = config.norm_position == "pre"
    return Counterpart(
        family=MARIAN,
        model="PegasusForConditionalGeneration" if pre else "MarianMTModel",
        config=_hf_config(folder, config),
        generation=_generation(folder, config),
        weights=(
            partial(sines_before_cosines, d_model=config.d_model)
            if config.positions == Sinusoidal()
            else dict
        ),
    )


def _hf_config(folder: ModelFolder, config: EncoderDecoderConfig) -> dict[str, Any]:
    """Their config: the table of `folder/foreign`, read backwards, and what it computes."""
    all_tied, tied_output = (config.tie_embeddings == tying for tying in ("all", "target-output"))
    return {
        **named(MARIAN, config),
        "decoder_vocab_size": config.tgt_vocab_size,  # Marian alone
        "encoder_attention_heads": config.num_heads,
        "decoder_attention_heads": config.num_heads,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": config.d_ff,
        "activation_function": next(k for k, v in ACTIVATIONS.items() if v == config.activation),
        "encoder_layerdrop": config.layer_drop,
        "decoder_layerdrop": config.layer_drop,
        "max_position_embeddings": num_positions(folder.config.translating),
        "share_encoder_decoder_embeddings": all_tied,
        "tie_word_embeddings": all_tied or (tied_output and config.norm_position == "post"),
        "decoder_start_token_id": config.bos_id,
        "forced_eos_token_id": None,
    }


def sines_before_cosines(state: Mapping[str, Tensor], d_model: int) -> dict[str, Tensor]:
    """Renumber the channels of the residual stream as Marian's positions are laid out.

    Ours alternate sines and cosines; Marian has all sines, then all cosines. One
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


def _generation(folder: ModelFolder, config: EncoderDecoderConfig) -> dict[str, Any]:
    """Their default decoding; what our search never writes is suppressed there too."""
    decoding = folder.config.translating
    return {
        **token_ids(config),
        "decoder_start_token_id": config.bos_id,
        "num_beams": decoding.beam_size,
        "length_penalty": decoding.length_penalty,
        "max_length": num_positions(decoding) - 1,
        "suppress_tokens": list(Translator.of(folder).specials.forbidden),
        "renormalize_logits": True,  # after that, as ours
    }
