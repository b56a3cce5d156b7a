"""Small Hugging Face models with random weights, and ours with the same weights.

Nothing is downloaded: their classes are built from configs, and every weight is drawn here.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedConfig, PreTrainedModel

from dragoman.folder.foreign import family
from dragoman.models import Model, build, count_parameters

DTYPES = {"float32": torch.float32, "float64": torch.float64}
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


class AllInFloat64(TorchFunctionMode):
    """Replaces the float32 that their code requests by float64.

    Parts of their code compute in float32 whatever the model's dtype (RMSNorm, rotary angles,
    tables of sines, the softmax of Llama): right for bfloat16, but float64 logits then agree to
    only 1e-6. Their formulas are unchanged.
    """

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        if func is Tensor.float:
            func = Tensor.double
        wide = {key: _wide(value) for key, value in (kwargs or {}).items()}
        return func(*(_wide(arg) for arg in args), **wide)


def _wide(value: object) -> object:
    return torch.float64 if value is torch.float32 else value


@contextmanager
def computing_in(dtype: torch.dtype) -> Iterator[None]:
    """Build and run their models in this dtype only, inside the context."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        if dtype is torch.float64:
            with AllInFloat64():
                yield
        else:
            yield
    finally:
        torch.set_default_dtype(before)


def make_theirs(
    kind: type[PreTrainedModel], config: PreTrainedConfig, dtype: torch.dtype = torch.float64
) -> PreTrainedModel:
    """Build one of their models with no bias zero, no norm one and no row empty."""
    torch.manual_seed(0)
    config._attn_implementation = "eager"
    with computing_in(dtype):
        model = kind(config).eval()
        for name, module in model.named_modules():
            if config.model_type == "marian" and name.endswith("embed_positions"):
                module.weight.data = sines_before_cosines(*module.weight.shape).to(dtype)
            if config.model_type == "fsmt" and name.endswith("embed_positions"):
                module.weight.requires_grad = False  # sines too, which no published file holds
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data += 0.3 * torch.randn_like(parameter)
    for name, buffer in model.named_buffers():
        if name == "final_logits_bias":
            buffer.data += torch.randn_like(buffer)
    return model


def make_named(
    name: str, keys: Mapping[str, Any], dtype: torch.dtype = torch.float64
) -> PreTrainedModel:
    """Build one of their models from the name of its class and the keys of its config."""
    kind = getattr(transformers, name)
    return make_theirs(kind, kind.config_class(**keys), dtype)


def sines_before_cosines(num_positions: int, d_model: int) -> Tensor:
    """Return Marian's table; their class would round it to float32."""
    angles = np.arange(num_positions)[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
    return torch.from_numpy(np.concatenate([np.sin(angles), np.cos(angles)], axis=1))


def run(theirs: PreTrainedModel, **inputs: Tensor | None) -> Tensor:
    """Return their logits, or hidden states if the class has no head."""
    with computing_in(theirs.dtype):
        out = theirs(**inputs)
    for name in ("logits", "prediction_logits", "last_hidden_state"):
        if name in out:
            result: Tensor = out[name]
            return result
    raise AssertionError(out.keys())


def config_file(theirs: PreTrainedModel) -> dict[str, Any]:
    """Return the `config.json` that they would save."""
    text = theirs.config.to_json_string()
    return {**json.loads(text), "architectures": [type(theirs).__name__]}


def fill_ours(theirs: PreTrainedModel, hf: Mapping[str, Any]) -> Model:
    """Build our model from a `config.json` and fill it with their weights, by the family's map.

    Every weight is set once, and their number is the one that the config gives.
    """
    kind, state = family(hf), theirs.state_dict()
    config = kind.config(kind.stored(hf, state))
    weights = dict(kind.each_weight(state, config))
    model = build(config).to(theirs.dtype).eval()
    parameters = dict(model.named_parameters())
    assert set(weights) == set(parameters)
    assert sum(count_parameters(config).values()) == sum(w.numel() for w in weights.values())
    with torch.no_grad():
        for name, parameter in parameters.items():
            assert parameter.shape == weights[name].shape
            parameter.copy_(weights[name])
    return model


def assert_same_logits(ours: Tensor, theirs: Tensor) -> None:
    """Assert that numbers agree, relative to the greatest, and so does each position's argmax."""
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    ours, theirs = ours.detach(), theirs.detach()
    assert float((ours - theirs).abs().max() / theirs.abs().max()) < TOLERANCE[theirs.dtype]
    assert torch.equal(ours.argmax(-1), theirs.argmax(-1))


def assert_same_gradients(
    ours: tuple[Model, Tensor],
    theirs: tuple[PreTrainedModel, Tensor],
    *,
    except_row: int | None = None,
) -> None:
    """Assert that a loss of both logits has the same gradients, theirs mapped like weights.

    Tensors that they do not train (such as a buffer for a bias) are skipped, and so is an embedding
    row that only one of the two looks up as padding without a gradient.
    """
    for model, logits in (ours, theirs):
        model.zero_grad()
        logits.log_softmax(-1)[..., 1].sum().backward()
    zeros = {name: torch.zeros_like(tensor) for name, tensor in theirs[0].state_dict().items()}
    learned = {n: p.grad for n, p in theirs[0].named_parameters(remove_duplicate=False)}
    hf = config_file(theirs[0])
    kind, config = family(hf), family(hf).config(hf)
    nothing = dict(kind.each_weight(zeros, config))  # what the map itself adds: Gemma's ones
    given = zeros | {n: g for n, g in learned.items() if g is not None}
    grads = dict(kind.each_weight(given, config))
    grads = {name: grad - nothing[name] for name, grad in grads.items()}
    for name, parameter in ours[0].named_parameters():
        if name == "output.bias":
            continue
        got, wanted = parameter.grad, grads[name].clone()
        assert got is not None
        if name.endswith("embedding.weight") and except_row is not None:
            got[except_row] = wanted[except_row] = 0.0
        assert bool(wanted.any()), name
        assert float((got - wanted).abs().max() / wanted.abs().max()) < 1e-10, name


def random_ids(low: int, high: int, *shape: int, seed: int = 1) -> Tensor:
    """Draw ids from `low` to `high - 1`."""
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))
