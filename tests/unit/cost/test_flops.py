"""FLOPs of dry runs, compared with torch's counter on the real passes."""

from dataclasses import replace

import pytest
import torch
from tests.unit.cost.counted import counted, counted_training, make, step_of, variants

from dragoman.cost.counting import decoding_step
from dragoman.data.shape import Shape
from dragoman.models import DecoderOnly, EncoderDecoder, ModelConfig, count_parameters
from dragoman.models.heads import ClassificationHead, MaskedLanguageHead, TaggingHead
from dragoman.nn import (
    ALiBi,
    AttentionPattern,
    Fixed,
    LinearAttention,
    Longformer,
    RelativeBias,
    SlidingWindow,
    Strided,
)

V = 300
PAIRS, DECODER, ENCODER = variants(V, d_model=64, d_ff=128, num_encoder_layers=2)
SENTENCES = Shape(rows=6, src_length=30, length=24)
TEXTS = Shape(rows=2, length=200)
LABELS = ("no", "perhaps", "yes")

CASES: dict[str, tuple[ModelConfig, Shape]] = {
    "paper": (PAIRS, SENTENCES),
    "targets": (PAIRS, replace(SENTENCES, targets=90)),
    "relative-bias": (replace(PAIRS, positions=RelativeBias()), SENTENCES),
    "capped-pairs": (replace(PAIRS, logit_soft_cap=9.0), SENTENCES),
    "capped": (replace(DECODER, score_soft_cap=5.0, logit_soft_cap=9.0), TEXTS),
    "fused": (DECODER, Shape(rows=1, length=600)),
    "fused-gqa": (replace(DECODER, num_kv_heads=1), Shape(rows=1, length=600)),
    "blocks": (replace(DECODER, positions=ALiBi()), Shape(rows=1, length=2100)),
    "blocks-dropout": (replace(DECODER, attention_dropout=0.1), Shape(rows=1, length=2100)),
    "packed": (DECODER, Shape(rows=1, length=300, documents=(90, 33, 40, 38, 37, 62))),
    "packed-window": (
        replace(DECODER, patterns=(SlidingWindow(size=20),)),
        Shape(rows=1, length=340, documents=(140, 33, 29, 138)),
    ),
    "masked": (replace(ENCODER, head=MaskedLanguageHead()), replace(TEXTS, targets=60)),
    "classes": (replace(ENCODER, head=ClassificationHead(labels=LABELS, pooler=True)), TEXTS),
    "tags": (replace(ENCODER, head=TaggingHead(labels=LABELS)), TEXTS),
    "padded-fused": (replace(ENCODER, head=TaggingHead(labels=LABELS)), Shape(rows=1, length=2100)),
}
CAUSAL: list[AttentionPattern] = [  # the last two compute no scores
    SlidingWindow(size=40),
    SlidingWindow(size=2000),
    Longformer(window=30, global_positions=(0, 7), causal=True),
    Strided(stride=20),
    Fixed(stride=40, summary=6),
    Fixed(stride=20, summary=20),
    LinearAttention(),
    LinearAttention(decay="retnet"),
]
TWO_SIDED: list[AttentionPattern] = [
    SlidingWindow(size=40, causal=False),
    Longformer(window=30, global_positions=(0, 7)),
    LinearAttention(causal=False),
]


def near(flops: int, counted: int) -> bool:
    """Whether two counts agree within 0.1%."""
    return abs(flops - counted) < 1e-3 * counted


AGAIN = ("paper", "fused", "blocks-dropout", "packed")


@pytest.mark.parametrize(
    ("name", "checkpointing"), [(name, False) for name in CASES] + [(name, True) for name in AGAIN]
)
def test_a_training_step_is_what_torch_counts(name: str, *, checkpointing: bool) -> None:
    """Forward and backward FLOPs of every variant are exact, also with activation checkpointing."""
    config, shape = CASES[name]
    expected = counted_training(config, shape, checkpointing=checkpointing)
    found = step_of(config, shape, activation_checkpointing=checkpointing).flops
    assert near(found, expected)


@pytest.mark.parametrize(("length", "checkpointing"), [(700, True), (1300, False)], ids=str)
@pytest.mark.parametrize("pattern", [*CAUSAL, *TWO_SIDED], ids=repr)
def test_a_pattern_costs_what_torch_counts(
    pattern: AttentionPattern, length: int, *, checkpointing: bool
) -> None:
    """Texts that are cut into blocks and segments are counted as torch does."""
    shape = Shape(rows=1, length=length)
    config: ModelConfig = replace(ENCODER, patterns=(pattern,), head=TaggingHead(labels=LABELS))
    if pattern.is_causal:
        config = replace(DECODER, patterns=(pattern,))
    expected = counted_training(config, shape, checkpointing=checkpointing)
    found = step_of(config, shape, activation_checkpointing=checkpointing).flops
    assert near(found, expected)


@pytest.mark.parametrize("length", [40, 700])
def test_reading_and_steps_are_what_torch_counts_of_translating(length: int) -> None:
    """The encoder and its keys are counted once, then each token with those before it."""
    config = replace(PAIRS, num_kv_heads=2)
    model = make(config).eval()
    assert isinstance(model, EncoderDecoder)
    src_BS = torch.full((3, length), 5)
    with torch.no_grad():
        reading = counted(lambda: model.start(src_BS, 2))
        state = model.start(src_BS, 2)
        model.extend(torch.full((6, 30), 5), state)
        step = counted(lambda: model.step(torch.full((6,), 5), state))
    found = decoding_step(config, Shape(rows=3, src_length=length), beam_size=2, cached=30)
    assert near(found.prefill, reading)
    assert near(found.flops, step)


@pytest.mark.parametrize("length", [60, 300])
@pytest.mark.parametrize("pattern", [None, *CAUSAL], ids=repr)
def test_reading_and_steps_are_what_torch_counts_of_generating(
    pattern: AttentionPattern | None, length: int
) -> None:
    """The prompt is counted without its last token, then each token with the pattern's cache."""
    config = replace(DECODER, patterns=() if pattern is None else (pattern,))
    model = make(config).eval()
    assert isinstance(model, DecoderOnly)
    ids_NL = torch.full((4, length), 5)
    with torch.no_grad():
        reading = counted(lambda: model.start(ids_NL, 1))
        state = model.start(ids_NL, 1)
        step = counted(lambda: model.step(ids_NL[:, -1], state))
    found = decoding_step(config, Shape(rows=4, length=length), cached=length - 1)
    assert near(found.prefill, reading)
    assert near(found.flops, step)


def test_a_step_is_six_times_the_matrices_and_the_scores() -> None:
    """A step takes `6 N` per token (Kaplan et al., 2020; `N` weights in products) plus scores."""
    config = replace(DECODER, bias=False, norm="rms", num_layers=3)
    step = step_of(config, TEXTS)
    norms = 2 * 3 * config.d_model
    matrices = count_parameters(config)["decoder"] - norms + V * config.d_model
    tokens = TEXTS.rows * TEXTS.length
    assert step.flops - step.scores == 6 * matrices * tokens
    assert step.scores == 12 * config.d_model * 3 * tokens * TEXTS.length
    assert step.output == 6 * V * config.d_model * tokens


@pytest.mark.parametrize("name", ["paper", "targets", "capped", "masked", "tags"])
def test_the_output_is_three_products_for_each_target(name: str) -> None:
    """The output layer takes three products per target, in one chunk or in several."""
    config, shape = CASES[name]
    targets = shape.rows * shape.length if shape.targets is None else shape.targets
    columns = {"masked": config.d_model + V, "tags": len(LABELS)}.get(name, V)
    assert step_of(config, shape).output == 6 * config.d_model * columns * targets
