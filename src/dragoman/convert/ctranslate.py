"""A model as a CTranslate2 folder, through its public specifications.

The weights are written in fp32; the arithmetic is chosen when CTranslate2 loads them
(`compute_type`). Only this file imports ctranslate2.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.convert.limits import Allowed, check_installed, check_limits, is_fixed, num_positions
from dragoman.convert.probe import Answer, Answers, our_side, read_answer, starts_with_language
from dragoman.errors import InputError
from dragoman.files.reading import read_own
from dragoman.folder.format import names_of
from dragoman.folder.opening import ModelFolder
from dragoman.models import EncoderDecoderConfig, EncoderOnlyConfig, Model
from dragoman.models.config import ModelConfig
from dragoman.models.heads import NoHead
from dragoman.nn import (
    Causal,
    Decoder,
    Embedding,
    Full,
    Learned,
    MultiHeadAttention,
    RelativeBias,
    Rotary,
    Sinusoidal,
)
from dragoman.nn.layers import Layer, Stack
from dragoman.nn.position.bias import RelativeBiasTable
from dragoman.nn.position.rotary import RotaryAngles, inverse_frequencies
from dragoman.nn.position.sinusoidal import sinusoidal_table
from dragoman.tasks.task import does

ACTIVATIONS: Mapping[str, str] = {
    "relu": "RELU",
    "gelu": "GELU",
    "gelu_tanh": "GELUTanh",
    "silu": "SWISH",
    "sigmoid": "Sigmoid",
}
CLASSES = {
    "encoder-decoder": ("Translator", "TransformerSpec"),
    "decoder-only": ("Generator", "TransformerDecoderModelSpec"),
    "encoder-only": ("Encoder", "TransformerEncoderModelSpec"),
}
"""The classes that run and describe each kind of model."""
PartT = TypeVar("PartT", bound=nn.Module)
Spec = Any
"""A part of CTranslate2's description of a model."""
Written = tuple[tuple[int, ...], Sequence[Any]]
"""Ids, and the logits from which each was chosen."""


class CTranslate2:
    """The target "ctranslate2"."""

    name = "CTranslate2"

    def check(self, folder: ModelFolder) -> None:
        """Raise InputError for an unsupported model, or if the package is not installed."""
        config = folder.config.model
        if isinstance(config, EncoderOnlyConfig) and not isinstance(config.head, NoHead):
            hint = "" if config.word_features else "; convert it --to onnx"
            raise InputError(
                f"{folder.path} holds a model that {does(folder.config)}, and CTranslate2 runs "
                f"encoders without a head{hint}"
            )
        known: Mapping[str, tuple[type, ...]] = {
            "encoder-decoder": (RelativeBias, Sinusoidal, Learned),
            "decoder-only": (Rotary, Sinusoidal, Learned),
            "encoder-only": (Sinusoidal, Learned),
        }
        alone = config.kind == "decoder-only"
        pattern = Causal() if alone else Full()
        limits: dict[str, Allowed] = {
            "norm_position": ("post", "pre"),
            "final_norm": (None, config.norm_position == "pre"),
            "num_kv_heads": lambda number: alone or number in (None, config.num_heads),
            "encoder_patterns": lambda patterns: {*patterns} <= {Full()},
            "decoder_patterns": lambda patterns: {*patterns} <= {Causal()},
            "patterns": lambda patterns: {*patterns} <= {pattern},
            "qk_norm": (False, alone),
            "embedding_scale": (None,),
            "score_soft_cap": (None,),
            "logit_soft_cap": (None,),
            "positions": lambda p: (
                isinstance(p, known[config.kind])
                and is_fixed(p)
                and not (isinstance(p, Rotary) and (p.before_norm or p.share < 1 or p.unrotated))
                and not (isinstance(p, RelativeBias) and (p.max_length or p.per_layer))
            ),
        }
        check_limits(config, limits, self.name)
        check_installed("ctranslate2")

    def write(self, folder: ModelFolder, out: Path) -> None:
        """Write model.bin, config.json, the vocabularies and the tokenizers."""
        spec = _spec(folder)
        spec.validate()
        spec.optimize(quantization="float32")
        spec.save(str(out))
        if folder.config.published is not None:
            for name in folder.src_tokenizer.files:
                (out / name).write_bytes(read_own(folder.origin / name))
            return
        for name, tokenizer in names_of(folder.tokenizers).items():
            tokenizer.save(out / name)

    def open(self, folder: ModelFolder, out: Path) -> Answers:
        """Load the folder."""
        import ctranslate2

        kind, side = folder.config.model.kind, our_side(folder)
        threads = torch.get_num_threads()
        engine = getattr(ctranslate2, CLASSES[kind][0])(
            str(out), compute_type="float32", intra_threads=threads
        )
        src, tgt = folder.src_tokenizer, folder.tgt_tokenizer
        ids_of = {token: id_ for id_, token in enumerate(_names(folder)[-1])}
        begin = tgt.tokens(side.begin)
        given = len(begin) - starts_with_language(folder)  # it is not part of the output

        def translate(source: Sequence[int], limit: int) -> Written:
            (found,) = engine.translate_batch(
                [src.tokens(source[:-1] if folder.config.published is None else source)],
                target_prefix=[begin],
                beam_size=1,
                max_input_length=0,
                min_decoding_length=0,  # the default allows no empty translation
                max_decoding_length=given + limit,
                return_logits_vocab=True,
            )
            ids = tuple(ids_of[token] for token in found.hypotheses[0])
            return ids[given:], found.logits[0][given:]

        def generate(prompt: Sequence[int], limit: int) -> Written:
            (found,) = engine.generate_batch(
                [tgt.tokens(prompt)],
                max_length=limit,
                end_token=tgt.tokens(side.ends),
                include_prompt_in_result=False,
                return_logits_vocab=True,
            )
            return tuple(found.sequences_ids[0]), found.logits[0]

        def answer(text: str, limit: int) -> Answer:
            given = side.encode(text)
            if kind == "encoder-only":
                states = engine.forward_batch([given]).last_hidden_state
                return read_answer(given, torch.from_numpy(np.array(states)), ())
            ids, logits = (translate if kind == "encoder-decoder" else generate)(given, limit)
            rows_TV = np.stack([np.array(row, dtype=np.float32).ravel() for row in logits])
            text = side.decode(given, ids)
            return Answer(text=text, ids=ids, logits_TV=torch.from_numpy(rows_TV))

        return answer


def _names(folder: ModelFolder) -> list[list[str]]:
    """Return the vocabularies of the embeddings, source first; unused rows get placeholders."""
    found = []
    sides = (folder.src_tokenizer, folder.tgt_tokenizer)
    for side, table in zip(sides, _parts(folder.model, Embedding), strict=False):
        known = side.tokens(range(side.vocab_size))
        found.append(known + [f"<unused {n}>" for n in range(len(known), len(table.weight))])
    return found


def _parts(model: Model, kind: type[PartT]) -> list[PartT]:
    """Return the parts of a kind, those of the source first."""
    return [part for part in model.children() if isinstance(part, kind)]


# ---------------------------------------------------------------- describing it


def _spec(folder: ModelFolder) -> Spec:
    from ctranslate2 import specs

    config, model, names = folder.config.model, folder.model, _names(folder)
    stacks = [_stack(config, stack) for stack in _parts(model, Stack)]
    spec = getattr(specs, CLASSES[config.kind][1])(*stacks)
    for part, embedding in zip(stacks, _parts(model, Embedding), strict=True):
        _embedding(part, embedding, folder)
    if not isinstance(config, EncoderOnlyConfig):
        decoder, output = spec.decoder, model.get_submodule("output")
        _linear(decoder.projection, cast("nn.Linear", output))
        # its config cannot suppress tokens; each call would have to name them
        decoder.projection.bias[list(our_side(folder).never)] = -torch.inf
        if config.logit_scale != 1.0:
            decoder.scale_outputs = config.logit_scale
    if isinstance(config, EncoderDecoderConfig):
        spec.register_source_vocabulary(names[0])
        spec.register_target_vocabulary(names[1])
        spec.config.add_source_eos = folder.config.published is None
        start = None if starts_with_language(folder) else names[1][config.bos_id]
        spec.config.decoder_start_token = start
    else:
        spec.register_vocabulary(names[0])
    tokenizer = folder.tgt_tokenizer
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = (
        names[-1][id_] for id_ in (tokenizer.bos_id, tokenizer.eos_id, tokenizer.unk_id)
    )
    spec.config.layer_norm_epsilon = config.norm_eps
    return spec


def _stack(config: ModelConfig, stack: Stack) -> Spec:
    from ctranslate2.specs import Activation, TransformerDecoderSpec, TransformerEncoderSpec
    from ctranslate2.specs.attention_spec import RotaryScalingType

    layers, positions = stack.each_layer(), config.positions
    options: dict[str, Any] = {
        "pre_norm": config.norm_position == "pre",
        "activation": getattr(Activation, ACTIVATIONS[config.activation]),
        "layernorm_embedding": config.embedding_norm,
        "relative_attention_bias": isinstance(positions, RelativeBias),
        "ffn_glu": config.gated,
        "rms_norm": config.norm == "rms",
        "num_heads_kv": config.num_kv_heads,
        "head_dim": config.head_dim,
        "qk_norm": config.qk_norm,
    }
    if isinstance(positions, Rotary):
        interleave = positions.pairing == "adjacent"
        options |= {"rotary_dim": 0, "rotary_interleave": interleave, "rotary_base": positions.base}
        options["rotary_scaling_type"] = positions.scaling and RotaryScalingType.Su
    if isinstance(stack, Decoder):
        crossing = layers[0].cross_attn is not None
        spec = TransformerDecoderSpec(
            len(layers), config.num_heads, with_encoder_attention=crossing, **options
        )
    else:
        spec = TransformerEncoderSpec(len(layers), config.num_heads, **options)
    for part, layer in zip(spec.layer, layers, strict=True):
        _layer(part, layer, stack)
    if not isinstance(stack.final_norm, nn.Identity):
        _norm(spec.layer_norm, stack.final_norm)
    return spec


def _embedding(spec: Spec, embedding: Embedding, folder: ModelFolder) -> None:
    """Describe the input of a stack; all segments are the first, as in our encoders."""
    table = spec.embeddings[0] if isinstance(spec.embeddings, list) else spec.embeddings
    table.weight = embedding.weight.detach()
    spec.scale_embeddings = folder.config.model.scale_embedding
    if hasattr(spec, "position_encodings"):
        spec.position_encodings.encodings = _positions(folder, embedding)
        if embedding.types is not None:
            spec.position_encodings.encodings += embedding.types.weight[0].detach()
    if folder.config.model.embedding_norm:
        _norm(spec.layernorm_embedding, embedding.norm)


def _positions(folder: ModelFolder, embedding: Embedding) -> Tensor:
    """Return the table of positions; by default CTranslate2 puts all sines before all cosines."""
    config = folder.config.model
    scheme = config.positions
    if not isinstance(scheme, Sinusoidal):
        return cast("nn.Module", embedding.positions).get_parameter("weight").detach().clone()
    table_LD = sinusoidal_table(
        scheme.first + num_positions(folder.config.translating),
        config.d_model,
        layout=scheme.layout,
        exponent=scheme.exponent,
    )
    return table_LD[scheme.first :].float()


def _layer(spec: Spec, layer: Layer, stack: Stack) -> None:
    _norm(spec.self_attention.layer_norm, layer.self_attn_residual.norm)
    _self_attention(spec.self_attention, layer.self_attn, stack)
    if (crossing := layer.cross_attn) is not None and layer.cross_attn_residual is not None:
        _norm(spec.attention.layer_norm, layer.cross_attn_residual.norm)
        spec.attention.queries_scale = crossing.scale
        linears = (crossing.q_proj, crossing.kv_proj, crossing.out_proj)
        for part, linear in zip(spec.attention.linear, linears, strict=True):
            _linear(part, linear)
    _norm(spec.ffn.layer_norm, layer.ffn_residual.norm)
    _linear(spec.ffn.linear_0, layer.ffn.up)
    _linear(spec.ffn.linear_1, layer.ffn.down)
    if layer.ffn.value is not None:
        _linear(spec.ffn.linear_0_noact, layer.ffn.value)


def _self_attention(spec: Spec, attention: MultiHeadAttention, stack: Stack) -> None:
    """Describe self-attention: one matrix for queries, keys and values, and relative positions.

    Any scaling of rotary frequencies is written as a factor for each, for short and long texts.
    """
    _linear(spec.linear[0], attention.q_proj, attention.kv_proj)
    _linear(spec.linear[1], attention.out_proj)
    spec.queries_scale = attention.scale
    if hasattr(spec, "q_norm"):
        _norm(spec.q_norm, attention.q_norm)
        _norm(spec.k_norm, attention.k_norm)
    if isinstance(stack.bias, RelativeBiasTable):
        spec.relative_attention_bias = stack.bias.weight.detach()
        spec.relative_attention_max_distance = np.int32(stack.bias.scheme.max_distance)
    rotary = stack.rotation.scheme if isinstance(stack.rotation, RotaryAngles) else None
    if rotary is not None and rotary.scaling is not None:
        plain, width = inverse_frequencies(rotary.base, attention.head_dim), attention.head_dim
        factors = plain / rotary.scaling.frequencies(rotary.base, width, 0)
        spec.rotary_scaling_long_factor = spec.rotary_scaling_short_factor = factors.float()
        spec.queries_scale *= rotary.scaling.magnitude**2


def _linear(spec: Spec, *linears: nn.Linear) -> None:
    """Describe linear layers as one, with concatenated rows."""
    spec.weight = torch.cat([linear.weight.detach() for linear in linears])
    spec.bias = torch.cat([_bias(linear) for linear in linears])


def _norm(spec: Spec, norm: nn.Module) -> None:
    """Describe a norm: its weight and, unless it is an RMSNorm, its bias."""
    spec.gamma = norm.get_parameter("weight").detach()
    if hasattr(spec, "beta"):
        spec.beta = _bias(norm)


def _bias(module: nn.Module) -> Tensor:
    """Return a module's bias, or zeros if it has none."""
    parameters = dict(module.named_parameters(recurse=False))
    return parameters.get("bias", torch.zeros(len(parameters["weight"]))).detach()
