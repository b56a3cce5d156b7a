"""A model as a folder of CTranslate2, through its public specifications.

The weights are written in fp32; which arithmetic runs is chosen when CTranslate2 loads them
(`compute_type`). This file alone imports ctranslate2.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.convert.limits import check_installed, check_limits, common_limits, num_positions
from dragoman.convert.probe import Answer, Answers
from dragoman.models import EncoderDecoder, EncoderDecoderConfig
from dragoman.nn import Embedding, FeedForward, Learned, MultiHeadAttention, Sinusoidal
from dragoman.nn.layers import Stack
from dragoman.nn.position.sinusoidal import sinusoidal_table
from dragoman.tasks.folders import Folder
from dragoman.tasks.translate.translator import Translator
from dragoman.text.tokenizer import Tokenizer

ACTIVATIONS: Mapping[str, str] = {
    "relu": "RELU",
    "gelu": "GELU",
    "gelu_tanh": "GELUTanh",
    "silu": "SWISH",
    "sigmoid": "Sigmoid",
}
Spec = Any
"""A part of CTranslate2's description of a model."""


class CTranslate2:
    """The target "ctranslate2"."""

    name = "CTranslate2"

    def check(self, folder: Folder) -> None:
        """Raise InputError for what it cannot express, or where it is not installed."""
        folder.model_of(EncoderDecoder)
        config = cast("EncoderDecoderConfig", folder.config.model)
        limits = {
            **common_limits(config),
            "positions": lambda scheme: isinstance(scheme, Sinusoidal | Learned),
        }
        check_limits(config, limits, self.name)
        check_installed("ctranslate2")

    def write(self, folder: Folder, out: Path) -> None:
        """Write model.bin, config.json, the vocabularies and our tokenizers."""
        spec = _spec(folder)
        spec.validate()
        spec.optimize(quantization="float32")
        spec.save(str(out))
        sides = (folder.src_tokenizer, folder.tgt_tokenizer)
        for name, tokenizer in zip(sorted(folder.config.tokenizers), sides, strict=False):
            tokenizer.save(out / name)

    def open(self, folder: Folder, out: Path) -> Answers:
        """Load the folder."""
        import ctranslate2

        threads = torch.get_num_threads()
        engine = ctranslate2.Translator(str(out), compute_type="float32", intra_threads=threads)
        src, tgt = folder.src_tokenizer, folder.tgt_tokenizer
        ids_of = {token: id_ for id_, token in enumerate(_tokens(tgt, tgt.vocab_size))}

        def answer(text: str, limit: int) -> Answer:
            (found,) = engine.translate_batch(
                [src.tokens(src.encode(text))],
                beam_size=1,
                max_input_length=0,
                min_decoding_length=0,  # by default no translation is empty
                max_decoding_length=limit,
                return_logits_vocab=True,
            )
            ids = tuple(ids_of[token] for token in found.hypotheses[0])
            rows = [np.array(row, dtype=np.float32).ravel() for row in found.logits[0]]
            return Answer(text=tgt.decode(ids), ids=ids, logits_TV=torch.from_numpy(np.stack(rows)))

        return answer


def _tokens(tokenizer: Tokenizer, rows: int) -> list[str]:
    """The vocabulary, with names for rows of the matrix that no token has."""
    known = tokenizer.tokens(range(tokenizer.vocab_size))
    return known + [f"<unused {id_}>" for id_ in range(len(known), rows)]


def _spec(folder: Folder) -> Spec:
    """Describe the whole model."""
    from ctranslate2.specs import Activation, TransformerSpec

    config = cast("EncoderDecoderConfig", folder.config.model)
    model = folder.model_of(EncoderDecoder)
    spec = TransformerSpec.from_config(
        (config.num_encoder_layers, config.num_decoder_layers),
        config.num_heads,
        pre_norm=config.norm_position == "pre",
        activation=getattr(Activation, ACTIVATIONS[config.activation]),
        layernorm_embedding=config.embedding_norm,
        ffn_glu=config.gated,
        rms_norm=config.norm == "rms",
    )
    sides = (
        (spec.encoder, spec.encoder.embeddings[0], model.src_embedding, model.encoder),
        (spec.decoder, spec.decoder.embeddings, model.tgt_embedding, model.decoder),
    )
    for part, table, embedding, stack in sides:
        table.weight = embedding.weight.detach()
        part.scale_embeddings = config.scale_embedding
        part.position_encodings.encodings = _positions(folder, embedding)
        if config.embedding_norm:
            _norm(part.layernorm_embedding, embedding.norm)
        _stack(part, stack)
    _linear(spec.decoder.projection, model.output)
    spec.decoder.projection.bias = _output_bias(folder, model.output)
    spec.register_source_vocabulary(_tokens(folder.src_tokenizer, config.src_vocab_size))
    spec.register_target_vocabulary(_tokens(folder.tgt_tokenizer, config.tgt_vocab_size))
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = config.norm_eps
    return spec


def _positions(folder: Folder, embedding: Embedding) -> Tensor:
    """The table of positions, which CTranslate2 would else compute as halves."""
    config = folder.config.model
    scheme = config.positions
    if not isinstance(scheme, Sinusoidal):
        return cast("nn.Module", embedding.positions).get_parameter("weight").detach()
    table_LD = sinusoidal_table(
        scheme.first + num_positions(folder.config.decoding),
        config.d_model,
        layout=scheme.layout,
        exponent=scheme.exponent,
    )
    return table_LD[scheme.first :].float()


def _output_bias(folder: Folder, output: nn.Linear) -> Tensor:
    """The bias of the logits: minus infinity for what our search never writes.

    CTranslate2's config cannot suppress tokens, only a call can, which would have to know them.
    """
    bias_V = _bias(output, torch.zeros(len(output.weight))).clone()
    bias_V[list(Translator.of(folder).forbidden)] = -torch.inf
    return bias_V


def _stack(spec: Spec, stack: Stack) -> None:
    """Describe the layers of one side."""
    for part, layer in zip(spec.layer, stack.each_layer(), strict=True):
        _norm(part.self_attention.layer_norm, layer.self_attn_residual.norm)
        _self_attention(part.self_attention, layer.self_attn)
        if layer.cross_attn is not None and layer.cross_attn_residual is not None:
            _norm(part.attention.layer_norm, layer.cross_attn_residual.norm)
            _cross_attention(part.attention, layer.cross_attn)
        _norm(part.ffn.layer_norm, layer.ffn_residual.norm)
        _ffn(part.ffn, layer.ffn)
    if not isinstance(stack.final_norm, nn.Identity):
        _norm(spec.layer_norm, stack.final_norm)


def _self_attention(spec: Spec, attention: MultiHeadAttention) -> None:
    """The rows of queries, keys and values are one matrix there."""
    _linear(spec.linear[0], attention.q_proj, attention.kv_proj)
    _linear(spec.linear[1], attention.out_proj)


def _cross_attention(spec: Spec, attention: MultiHeadAttention) -> None:
    for part, linear in zip(
        spec.linear, (attention.q_proj, attention.kv_proj, attention.out_proj), strict=True
    ):
        _linear(part, linear)


def _ffn(spec: Spec, ffn: FeedForward) -> None:
    _linear(spec.linear_0, ffn.up)
    _linear(spec.linear_1, ffn.down)
    if ffn.value is not None:
        _linear(spec.linear_0_noact, ffn.value)


def _linear(spec: Spec, *linears: nn.Linear) -> None:
    """The rows of several, one below another."""
    weights = [linear.weight.detach() for linear in linears]
    spec.weight = torch.cat(weights)
    spec.bias = torch.cat([_bias(linear, torch.zeros(len(linear.weight))) for linear in linears])


def _norm(spec: Spec, norm: nn.Module) -> None:
    """A norm's weight and, unless it is an RMSNorm, its bias."""
    spec.gamma = norm.get_parameter("weight").detach()
    if hasattr(spec, "beta"):
        spec.beta = _bias(norm, torch.zeros_like(spec.gamma))


def _bias(module: nn.Module, without: Tensor) -> Tensor:
    """A module's bias, or what stands for it in a module without one."""
    return dict(module.named_parameters(recurse=False)).get("bias", without).detach()
