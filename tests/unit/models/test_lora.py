"""LoRA: what a model with adapters computes, learns and restores."""

from dataclasses import replace

import pytest
import torch
from tests.unit.models.family import ENCODER
from tests.unit.models.small import SMALL
from torch import Tensor, nn
from torch.nn.functional import linear

from dragoman.errors import InputError
from dragoman.models import build
from dragoman.models.build import Model
from dragoman.models.heads import TaggingHead
from dragoman.models.lora import Adapted, LoraConfig, adapt, merged

ALL = ("q_proj", "k_proj", "v_proj", "out_proj", "up", "down")


def adapted(modules: tuple[str, ...] = ALL, layers: tuple[int, ...] = ()) -> Model:
    """Return a small model with adapters."""
    torch.manual_seed(3)
    model = build(SMALL).eval()
    adapt(model, LoraConfig(rank=2, alpha=6.0, modules=modules, layers=layers))
    return model


def moved(model: nn.Module, std: float = 1.0) -> None:
    """Give every adapter an effect."""
    for name, parameter in model.named_parameters():
        if name.endswith((".B", "lora_B.default.weight")):
            nn.init.normal_(parameter, std=std)


def logits(model: Model) -> Tensor:
    """Return its logits for some ids."""
    ids = torch.arange(3, 15).view(2, 6)
    found: Tensor = model(ids, ids.flip(1))
    return found


@torch.no_grad()
def test_step_zero_is_the_base_model_to_the_bit() -> None:
    """B is zero, so neither adapters nor merging change a bit."""
    torch.manual_seed(3)
    expected = logits(build(SMALL).eval())
    model = adapted()
    assert torch.equal(logits(model), expected)
    with merged(model):
        assert torch.equal(logits(model), expected)


@torch.no_grad()
def test_merging_is_the_same_function_and_leaves_no_trace() -> None:
    """W + s B A computes what W x + s B A x does; unmerging restores the bits of the weights."""
    model = adapted().double()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    moved(model)
    apart = logits(model)
    with merged(model):
        torch.testing.assert_close(logits(model), apart, rtol=1e-12, atol=1e-12)
        assert not torch.equal(model.state_dict()[WEIGHT], before[WEIGHT])
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]) or name.endswith(".B")


WEIGHT = "encoder.layers.0.self_attn.kv_proj.weight"


@torch.no_grad()
def test_keys_and_values_are_adapted_apart() -> None:
    """An adapter of v_proj changes only the lower half of kv_proj, by alpha / r B A."""
    model = adapted(("v_proj",))
    moved(model)
    module = model.get_submodule("encoder.layers.0.self_attn.kv_proj")
    assert isinstance(module, Adapted)
    low, before = module.lora["v_proj"], module.weight.clone()
    with merged(model):
        after = module.weight.clone()
    assert torch.equal(after[:16], before[:16])
    torch.testing.assert_close(after[16:] - before[16:], 3.0 * low.product())


def test_only_adapters_learn() -> None:
    """Only they have gradients; if layers are chosen, only in those."""
    model = adapted(("cross_attn.q_proj",), (1,))
    learning = [name for name, p in model.named_parameters() if p.requires_grad]
    module = "decoder.layers.1.cross_attn.q_proj.lora.q_proj"
    assert learning == [f"{module}.A", f"{module}.B"]
    logits(model.train()).sum().backward()
    grads = [name for name, p in model.named_parameters() if p.grad is not None]
    assert grads == learning


def test_the_head_of_an_encoder_learns_too() -> None:
    """A whole head and the table of word features, which the base lacks, learn; nothing else."""
    model = build(replace(ENCODER, head=TaggingHead(labels=("a", "b")), word_features=9))
    adapt(model, LoraConfig(rank=2))
    learning = {name for name, p in model.named_parameters() if p.requires_grad}
    names = {name for name, _ in model.named_parameters()}
    ours = {name for name in names if name.startswith(("head.", "words.")) or ".lora." in name}
    assert learning == ours
    assert {name.partition(".")[0] for name in learning} == {"head", "words", "encoder"}


@torch.no_grad()
def test_dropout_is_of_what_an_adapter_reads() -> None:
    """Dropout applies in training only, and scales; the weight itself reads the whole input."""
    torch.manual_seed(3)
    model = build(SMALL)
    adapt(model, LoraConfig(rank=2, alpha=6.0, modules=("out_proj",), dropout=0.25))
    moved(model)
    module = model.get_submodule("encoder.layers.0.self_attn.out_proj")
    assert isinstance(module, Adapted)
    read: list[Tensor] = []
    module.dropout.register_forward_hook(lambda _module, _inputs, output: read.append(output))
    x = torch.rand(5, 16) + 1
    for training, kept in ((True, {0.0, 1 / 0.75}), (False, {1.0})):
        out = module.train(training)(x)
        expected = linear(x, module.weight, module.bias) + 3.0 * module.lora["out_proj"](read[-1])
        torch.testing.assert_close(out, expected)
        assert {round(ratio, 5) for ratio in (read[-1] / x).flatten().tolist()} == {
            round(ratio, 5) for ratio in kept
        }


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"modules": ("q_prj",)}, "did you mean q_proj"),
        ({"layers": (7,)}, "there is no layer 7"),
        ({"rank": 0}, "rank is 0; it must be"),
        ({"rank": SMALL.d_model + 1}, f"give at most {SMALL.d_model}$"),
        ({"rank": None, "alpha": 2.0}, "lora.alpha has no effect without lora.rank"),
    ],
)
def test_settings_that_cannot_be(wrong: dict[str, object], message: str) -> None:
    """Each error is one sentence."""
    with pytest.raises(InputError, match=message):
        adapt(build(SMALL), replace(LoraConfig(rank=2), **wrong))  # type: ignore[arg-type]


def test_a_rank_is_bounded_by_what_the_largest_matrix_has() -> None:
    """Smaller matrices may have fewer rows, such as the values of a few heads."""
    few = replace(SMALL, num_kv_heads=1)
    adapt(build(few), LoraConfig(rank=SMALL.d_model))
    with pytest.raises(InputError, match=f"at most {SMALL.d_model // SMALL.num_heads}$"):
        adapt(build(few), LoraConfig(rank=SMALL.d_model, modules=("v_proj",)))
