"""A family of models of another library, and how the keys of its `config.json` map to ours."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.errors import InputError
from dragoman.folder.foreign.weights import (
    Rule,
    Table,
    fill,
    make_of,
    places_of,
    rule_for,
    starred,
)
from dragoman.folder.tokenizers.files import TokenizerFolder, TokenizerRules
from dragoman.models.build import some
from dragoman.models.config import (
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
)
from dragoman.nn.feedforward import Activation
from dragoman.plain import to_plain
from dragoman.settings import parse_settings
from dragoman.text.tokenizer import Tokenizer

HF = Mapping[str, Any]
"""The contents of a Hugging Face `config.json`.

A missing key has the default of its class, which each family lists.
"""
Reader = Callable[[HF], Any]
"""Computes a field of our config; raises InputError for an unsupported value."""

ACTIVATIONS: Mapping[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
WRONG_TYPE = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""Errors that a reader may raise for a value of the wrong type."""
EVERY_DECODER: HF = {"is_causal": True, "per_layer_config": None}
"""What `Family.only` contains for a decoder: its class reads these keys from any config."""
SIZES = {
    "vocab_size": "vocab_size",
    "d_model": "hidden_size",
    "num_heads": "num_attention_heads",
    "d_ff": "intermediate_size",
    "num_layers": "num_hidden_layers",
}
"""Fields of most models with a single stack."""
UNKNOWN_ID = -1
"""Id of a token that the config does not name; the tokenizer may."""


Weights = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How to convert a family's models to ours: a table of settings and a table of weights."""

    kind: type[EncoderDecoderConfig | DecoderOnlyConfig | EncoderOnlyConfig]
    """The class of our config."""
    defaults: HF
    """Defaults of the keys that a `config.json` may leave out."""
    only: HF = field(default_factory=dict)
    """Keys for which only this value is supported."""
    classes: tuple[str, ...] = ()
    """Supported classes; if empty, a field reads the class."""
    fields: Mapping[str, str | Reader]
    """For each of our fields, the key of its value, or a function that computes it."""
    settings: Mapping[str, Any]
    """Our fields with the same value in the whole family."""
    modules: Table
    """Their modules for each of ours."""
    prefix: str = ""
    """Prefix of their names, missing if a model has no head."""
    shared: str | None = None
    """Another name for a matrix that several of our modules share."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Parts of names in old files, and their current names."""
    ignored: tuple[str, ...] = ()
    """Tensors of theirs that the model does not use."""
    text: Callable[[HF], HF] = lambda hf: hf
    """Returns the config of the part for text, in a model for images too."""
    beside: tuple[str, ...] = ()
    """Prefixes of the tensors of its other parts."""
    outer: str | None = None
    """Prefix of the tensors for text in the class for images too, if it differs."""
    stored: Callable[[HF, Mapping[str, Tensor]], HF] = lambda hf, _: hf
    """Returns the config with the corrections that the class makes when it reads these weights."""
    tokenizers: Mapping[str, TokenizerRules] = field(default_factory=dict)
    """Rules for its kinds of tokenizers."""
    own_tokenizers: Callable[[TokenizerFolder], tuple[Tokenizer, Tokenizer] | None] = lambda _: None
    """Reads the source and target tokenizers in the family's own format, if a folder has it."""
    tokenizer_files: tuple[str, ...] = ()
    """The files that the family's own tokenizer format requires."""
    vocabularies: Callable[[Path], Sequence[str]] = lambda _: ()
    """Returns the files of the family's own format that number the pieces."""
    whole: bool = False
    """Whether a text is read as a whole instead of by sentences: to summarise and answer."""

    def variant(
        self,
        *,
        classes: tuple[str, ...] = (),
        defaults: Mapping[str, Any] = {},
        only: Mapping[str, Any] = {},
        fields: Mapping[str, str | Reader] = {},
        settings: Mapping[str, Any] = {},
        modules: Mapping[str, str | Rule] = {},
    ) -> "Family":
        """Return a family with these rows added to the tables, or in place of theirs.

        A field of ours that one of the two reads and the other sets is as the variant has it.
        """
        read = {key: source for key, source in self.fields.items() if key not in settings}
        fixed = {key: value for key, value in self.settings.items() if key not in fields}
        return replace(
            self,
            classes=classes or self.classes,
            defaults={**self.defaults, **defaults},
            only={**self.only, **only},
            fields={**read, **fields},
            settings={**fixed, **settings},
            modules={**self.modules, **modules},
        )

    def config(self, hf: HF) -> ModelConfig:
        """Return our config. Raises InputError, naming the key, for an unsupported value."""
        return self._config(_Noted({**self.defaults, **self.text(hf)}))

    def known(self, hf: HF) -> dict[str, Any]:
        """Return the part of a `config.json` from which our config is built.

        It is all that another program needs to know about the model: a publisher's complete file
        may name code to load (`auto_map`, `attn_implementation`, `quantization_config`).
        """
        hf = self.text(hf)
        noted = _Noted({**self.defaults, **hf})
        self._config(noted)
        return {key: value for key, value in hf.items() if key in noted.keys_read}

    def _config(self, hf: HF) -> ModelConfig:
        for key, value in self.only.items():
            only(hf, key, value)
        for name in hf.get("architectures") or ():
            if self.classes and name not in self.classes:
                known = f"known are {', '.join(self.classes)}"
                raise InputError(unsupported("architectures", name, known))
        try:
            read = {
                name: required(hf, source) if isinstance(source, str) else source(hf)
                for name, source in self.fields.items()
            }
            plain = to_plain(self.kind(**read, **self.settings))
        except WRONG_TYPE as error:
            raise InputError(f"a value in the model's config has a wrong type ({error})") from error
        return parse_settings(self.kind, plain, "the model's config")

    def each_weight(
        self, state: Mapping[str, Tensor], config: ModelConfig, only: Collection[str] | None = None
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield our weights, or those named in `only`, one by one, each with its first name.

        A yielded tensor may share memory with `state`; only one that is computed or joined from
        several takes new memory. Raises InputError that names tensors which are missing,
        unexpected, of another shape, not floating-point, or different although the config ties
        them; the first two before any weight is yielded.
        """
        state = self._named(state)
        places = places_of(config)
        rules = {
            parameter: rule_for(self.modules, ours, self.shared)
            for parameter, ours in places.items()
        }
        missing, left = list[str](), set(state)
        for rule in rules.values():
            absent = [name for name in rule.names if name not in state]
            if len(absent) == len(rule.names) or (absent and not rule.one_suffices):
                missing += absent
            left.difference_update(rule.names)
        left = {name for name in left if starred(name) not in set(self.ignored)}
        if missing:
            hint = _wrapped(state)
            raise InputError(f"the weights lack {some(missing)}, which the config asks for{hint}")
        if left:
            raise InputError(f"the weights hold {some(left)}, for which the config has no place")
        for parameter, rule in rules.items():
            if only is not None and places[parameter][0] not in only:
                continue
            tensor = make_of(rule, {name: state[name] for name in rule.names if name in state})
            tensor = fill(tensor, rule.padded, parameter.shape)
            if tensor.shape != parameter.shape:
                raise InputError(
                    f"{' with '.join(rule.names)} gives {places[parameter][0]} the shape "
                    f"{tuple(tensor.shape)}, but the config makes it {tuple(parameter.shape)}"
                )
            yield places[parameter][0], tensor

    @torch.no_grad()
    def restore(
        self, weights: Mapping[str, Tensor], config: ModelConfig, theirs: Mapping[str, Tensor]
    ) -> None:
        """Write our weights into their state dict, in place: the inverse of `each_weight`.

        A matrix is written under all its names there. What our model has no place for is unchanged
        (unused rows, buffers), and so are tensors that already give our weights: they may have more
        digits. Every rule either makes a view, which is written to, or has an inverse.
        """
        theirs = self._named(theirs)
        for ours in places_of(config).values():
            rule, tensor = rule_for(self.modules, ours, self.shared), weights[ours[0]]
            found = [theirs[name] for name in rule.names if name in theirs]
            if rule.padded is not None:
                tensor = tensor[tuple(map(slice, found[0].shape))]
            if rule.one_suffices:
                found = found[:1] if rule.first_counts else found
                parts = [tensor] * len(found)
            else:
                parts = list(tensor.split([len(rule.make(each)) for each in found]))
            for each, part in zip(found, parts, strict=True):
                made = rule.make(each)
                if torch.equal(made.to(part.dtype), part):
                    continue
                if rule.back is None:
                    made.copy_(part)
                else:
                    each.copy_(rule.back(part))

    def _named(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return a state dict with current names, without the prefix."""
        state = self.current(state)
        return {name.removeprefix(self.prefix): tensor for name, tensor in state.items()}

    def current(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return a state dict with current names, without the tensors of parts for images."""
        state = {self.current_name(name): tensor for name, tensor in state.items()}
        others = self.beside
        return {
            n: t for n, t in state.items() if not n.removeprefix(self.prefix).startswith(others)
        }

    def current_name(self, name: str) -> str:
        """Return the current name of a tensor or module."""
        for old, new in self.renamed.items():
            name = name.replace(old, new)
        return name


def _wrapped(names: Collection[str]) -> str:
    """Return a hint if the tensors were saved from a wrapper of the model."""
    for prefix in ("module.", "_orig_mod."):
        if names and all(name.startswith(prefix) for name in names):
            return f": every name begins with {prefix}; save the tensors again without it"
    return ""


class _Noted(dict[str, Any]):
    """A config that records which of its keys are read."""

    def __init__(self, hf: HF) -> None:
        super().__init__(hf)
        self.keys_read = set[str]()

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 (JSON)
        self.keys_read.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401 (JSON)
        self.keys_read.add(key)
        return super().get(key, default)


def required(hf: HF, key: str) -> Any:  # noqa: ANN401 (JSON)
    """Return a required value. Raises InputError if it is missing."""
    if hf.get(key) is None:
        raise InputError(f"the model's config lacks {key}, without which no model can be built")
    return hf[key]


def only(hf: HF, key: str, value: object) -> None:
    """Raise InputError for any value but the supported one."""
    if key in hf and hf[key] != value:
        raise InputError(unsupported(key, hf[key], f"only {json.dumps(value)} is"))


def unsupported(key: str, value: object, known: str) -> str:
    """Return the message that a value is not supported, and what is."""
    return f"{key} = {json.dumps(value)} in the model's config is not supported; {known}"


def activation(key: str) -> Reader:
    """Return a reader of an activation by its name there."""

    def read(hf: HF) -> Activation:
        if hf[key] not in ACTIVATIONS:
            raise InputError(unsupported(key, hf[key], f"known are {', '.join(ACTIVATIONS)}"))
        return ACTIVATIONS[hf[key]]

    return read


def activation_name(ours: str) -> str:
    """Return their name of an activation; if they have none, another one, rejected later."""
    return next((theirs for theirs, name in ACTIVATIONS.items() if name == ours), "relu")


def equal(first: str, second: str) -> Reader:
    """Return a reader of two keys that must be equal: they are one setting here."""

    def read(hf: HF) -> object:
        value = required(hf, first)
        if required(hf, second) != value:
            known = f"it must be as {first}, {json.dumps(value)}"
            raise InputError(unsupported(second, hf[second], known))
        return value

    return read


def token_ids(bos: str = "bos_token_id") -> dict[str, Reader]:
    """Return readers of special token ids: the first of several, UNKNOWN_ID if there are none."""
    keys = {"pad_id": "pad_token_id", "bos_id": bos, "eos_id": "eos_token_id"}
    return {name: partial(_token_id, key) for name, key in keys.items()}


def _token_id(key: str, hf: HF) -> int:
    value = hf.get(key)
    if isinstance(value, list):
        value = value[0] if value else None
    id_ = UNKNOWN_ID if value is None else int(value)
    if not UNKNOWN_ID <= id_ < 1 << 31:
        raise InputError(unsupported(key, value, "ids are from 0 to 2^31"))
    return id_
