"""Memory predicted from a config, compared with torch's allocations during a real step."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.unit.cost.counted import held, loss_of, make, measured_peak, step_of, variants

from dragoman.cost.counting import TrainingMemory, decoding_memory, translated_shape
from dragoman.data.shape import Shape
from dragoman.decode import Beam, Limits, search
from dragoman.engine import freeze
from dragoman.models import (
    DecoderOnly,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    ModelConfig,
    count_parameters,
    decoder_preset,
)
from dragoman.models.heads import ClassificationHead, MaskedLanguageHead
from dragoman.nn import (
    Causal,
    LinearAttention,
    Precision,
    Rotary,
    Rwkv,
    SlidingWindow,
    autocast,
    row_invariant_products,
)
from dragoman.train.config import TrainConfig
from dragoman.train.optimizer import make_optimizer

CPU = torch.device("cpu")
V = 2000
PAIRS, DECODER, ENCODER = variants(V, d_model=128, d_ff=512, num_encoder_layers=1)
LLAMA = replace(
    DECODER, positions=Rotary(), num_kv_heads=1, gated=True, norm="rms", norm_position="pre"
)
CONSTANT = replace(DECODER, num_layers=2, patterns=(SlidingWindow(size=24), LinearAttention()))
WIDE = replace(LLAMA, num_layers=2, patterns=(SlidingWindow(size=400), Causal()))
SENTENCES = Shape(rows=40, src_length=22, length=20)
TEXTS = Shape(rows=4, length=200)
LONG = Shape(rows=1, length=1100)
SEARCHED = Shape(rows=8, src_length=30, length=40)
PROMPTED = replace(SEARCHED, rows=6)
LABELS = ("no", "perhaps", "yes")

CASES: dict[str, tuple[ModelConfig, Shape]] = {
    "pairs": (PAIRS, SENTENCES),
    "some-targets": (PAIRS, replace(SENTENCES, targets=200)),
    "llama": (LLAMA, TEXTS),
    "dropout": (replace(DECODER, attention_dropout=0.1, ffn_dropout=0.1), TEXTS),
    "packed": (DECODER, Shape(rows=1, length=600, documents=(200, 133, 40, 38, 37, 152))),
    "window": (replace(DECODER, patterns=(SlidingWindow(size=100),)), LONG),
    "linear": (replace(DECODER, patterns=(LinearAttention(),)), LONG),
    "rwkv": (replace(DECODER, patterns=(Rwkv(),)), LONG),
    "masked": (replace(ENCODER, head=MaskedLanguageHead()), replace(TEXTS, targets=120)),
    "classes": (replace(ENCODER, head=ClassificationHead(labels=LABELS)), TEXTS),
}


def measured_step(
    config: ModelConfig, shape: Shape, *, precision: Precision, checkpointing: bool
) -> int:
    """Return the peak of a real step, including what is allocated before it."""
    model = make(config, checkpointing=checkpointing)
    optimizer = make_optimizer(model, TrainConfig(max_steps=1))

    def step() -> None:
        with autocast(precision, CPU):
            loss = loss_of(config, model, shape)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    step()  # creates the moments
    return held(model, optimizer) + measured_peak(step)


@pytest.mark.parametrize(
    ("name", "mode"),
    [(name, "fp32") for name in CASES]
    + [(name, "checkpointing") for name in ("pairs", "llama", "window", "rwkv")]
    + [(name, "bf16") for name in ("pairs", "linear", "rwkv")],
)
def test_a_step_takes_what_is_measured(name: str, mode: str) -> None:
    """The prediction is within 5% of torch's allocations, for every variant and pattern."""
    config, shape = CASES[name]
    precision: Precision = "bf16" if mode == "bf16" else "fp32"
    checkpointing = mode == "checkpointing"
    found = step_of(
        config, shape, precision=precision, activation_checkpointing=checkpointing
    ).memory
    expected = measured_step(config, shape, precision=precision, checkpointing=checkpointing)
    assert abs(found.total - expected) < 0.05 * expected


@pytest.mark.parametrize(
    ("config", "shape", "beam_size", "precision"),
    [
        (PAIRS, SEARCHED, 5, "fp32"),
        (LLAMA, PROMPTED, 4, "fp32"),
        (CONSTANT, PROMPTED, 4, "fp32"),
        (WIDE, replace(PROMPTED, rows=3, length=90), 4, "fp32"),
        (LLAMA, PROMPTED, 4, "bf16"),
    ],
    ids=["beam", "llama", "constant", "wide", "llama-bf16"],
)
def test_decoding_takes_what_is_measured(
    config: EncoderDecoderConfig | DecoderOnlyConfig,
    shape: Shape,
    beam_size: int,
    precision: Precision,
) -> None:
    """The prediction is within 10% of the peak of a real beam search."""
    model: Any = make(config).eval()
    decoder: Any = freeze(model, precision)
    src_BS = torch.randint(4, V, (shape.rows, shape.src_length))
    reads_prompt = isinstance(model, DecoderOnly)
    new = shape.length - reads_prompt * (shape.src_length - 1)

    def decode(most: int) -> None:
        limits = Limits(
            bos_id=2,
            eos_id=-1,  # never written, so all texts reach the maximum length
            max_B=torch.full((shape.rows,), most),
            first_B=src_BS[:, -1].clone() if reads_prompt else None,
        )
        with row_invariant_products(), autocast(precision, CPU):
            search(decoder, src_BS, Beam(beam_size=beam_size), limits=limits)

    decode(1)
    found = decoding_memory(config, shape, beam_size=beam_size, precision=precision)
    expected = found.weights + found.packed + measured_peak(lambda: decode(new))
    assert found.weights == 4 * sum(count_parameters(config).values())
    assert (found.packed > 0) == (decoder is not model)
    assert found.working > 0
    assert abs(found.total - expected) < 0.1 * expected


def test_a_dry_run_makes_and_draws_nothing() -> None:
    """It allocates a hundredth of the half gigabyte that the weights would take.

    Nor does it advance the random number generators.
    """
    config = replace(decoder_preset("gpt2-small"), vocab_size=50_257, num_layers=1)
    found: list[TrainingMemory] = []
    taken = measured_peak(lambda: found.append(step_of(config, TEXTS).memory))
    assert taken < found[0].total / 100
    before = torch.random.get_rng_state()
    step_of(replace(DECODER, attention_dropout=0.1, layer_drop=0.2), TEXTS)
    decoding_memory(PAIRS, replace(SENTENCES, rows=2), beam_size=2)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_the_parts_of_a_step() -> None:
    """Weights, gradients and two moments are fp32; activations are smaller in bf16."""
    parameters = sum(count_parameters(PAIRS).values())
    fp32, bf16 = (step_of(PAIRS, SENTENCES, precision=each).memory for each in ("fp32", "bf16"))
    for found in (fp32, bf16):
        assert found.weights == found.gradients == 4 * parameters
        assert 0 <= found.optimizer - 8 * parameters < 1000
        assert found.total > found.weights + found.optimizer + found.activations
    assert bf16.activations < fp32.activations


def test_gradients_are_there_while_a_second_batch_is_learnt_from() -> None:
    """With several batches per step, the gradients stay allocated during the later ones."""
    one, many = (step_of(PAIRS, SENTENCES, accumulate=n).memory for n in (1, 5))
    assert many.total - one.total == pytest.approx(one.gradients, rel=0.1)


def test_checkpointing_keeps_less_the_deeper_the_model() -> None:
    """Checkpointing keeps only the input of a layer: two more layers cost two more inputs."""
    shape = Shape(rows=2, length=200)
    kept = [
        step_of(
            replace(DECODER, num_layers=n), shape, activation_checkpointing=True
        ).memory.activations
        for n in (1, 3)
    ]
    inputs = 2 * 4 * shape.rows * shape.length * DECODER.d_model
    assert kept[1] - kept[0] == pytest.approx(inputs, rel=0.15)
    assert kept[1] < step_of(replace(DECODER, num_layers=3), shape).memory.activations / 2


def test_the_fused_loss_spares_the_logits() -> None:
    """The fused loss avoids the logits of the whole batch, which would dominate the memory."""
    size = 20 * V
    config = replace(PAIRS, src_vocab_size=size, tgt_vocab_size=size)
    logits = 4 * SENTENCES.rows * SENTENCES.length * size
    assert step_of(config, SENTENCES).memory.activations < logits / 2


def test_the_largest_batch_of_a_validation_counts() -> None:
    """A few sentences more than one batch holds do not need less memory than that batch."""
    full = translated_shape([100] * 5000)
    assert full is not None
    assert translated_shape([100] * (full.rows + 1)) == full
