"""The work of a recipe; its time, energy and cost; and the robust sum of step times."""

import re
from dataclasses import fields, replace
from io import StringIO
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from dragoman.cost.counting import BATCH_TOKENS, FLOAT, decoding_step, step_of
from dragoman.cost.estimate import (
    HOUR,
    Timings,
    bill_of,
    estimate_texts,
    estimate_training,
)
from dragoman.cost.machine import Rates
from dragoman.cost.measure import measure, typical
from dragoman.cost.options import CostOptions
from dragoman.cost.recipes import MODELS, find_recipe
from dragoman.cost.report import cost_of
from dragoman.data.shape import Shape
from dragoman.decoding import Decoding
from dragoman.engine.assemblies import ALIGNED
from dragoman.errors import InputError
from dragoman.folder.format import GenerationDefaults
from dragoman.models import DecoderOnlyConfig, EncoderDecoderConfig, count_parameters
from dragoman.tasks.recipes import shipped_recipes
from dragoman.train.config import TrainConfig
from dragoman.train.recipe import LENGTH, Work

RATES = Rates(
    device="made up",
    how="by nobody",
    precision="fp32",
    training=1e12,
    decoding=1e12,
    reading=1e11,
    layer_seconds=1e-4,
    decoding_layer_seconds=2e-4,
    memory=10**10,
    watts=100.0,
    price_per_hour=2.0,
    currency="USD",
)
MEASURED = Timings(
    step_seconds=2.0,
    step_tokens=1000.0,
    prepare_seconds=10.0,
    validation_seconds=20.0,
    save_seconds=0.5,
    export_seconds=0.5,
    tokens_per_second=100.0,
    how="by nobody",
)
TINY = ("model.d_model=32", "model.num_heads=2", "model.d_ff=64", "tokenizer.vocab_size=400")
ONE_LAYER = ("model.num_encoder_layers=1", "model.num_decoder_layers=1")
TINY_LM = (*TINY, "model.num_layers=1", "batch.length=16", "batch.rows=4", "train.device=cpu")

LAYERS = re.compile("num_(encoder_|decoder_)?layers")


def _work(name: str, *overrides: str) -> Work:
    return find_recipe(name, overrides).work()


@pytest.mark.parametrize("name", [*shipped_recipes(), *MODELS])
def test_every_recipe_and_preset_has_an_estimate(name: str) -> None:
    """Every name alone gives an estimate with a vocabulary, full batches and positive figures.

    Configs are reduced to one layer of each kind, since more of them only take longer.
    """
    work = _work(name)
    layers: dict[str, Any] = {
        field.name: 1 for field in fields(work.config) if LAYERS.fullmatch(field.name)
    }
    work = replace(work, config=replace(work.config, **layers))
    assert work.shape.tokens > 0
    assert count_parameters(work.config)[next(iter(count_parameters(work.config)))] > 0
    run = estimate_training(work, RATES)
    assert run.bill is not None
    assert run.bill.seconds > 0
    assert estimate_texts(work, RATES).tokens_per_second > 0


@given(
    seconds=st.floats(1e-3, 1e9),
    watts=st.floats(1, 1e4),
    price=st.floats(0.01, 100),
    kwh=st.floats(0.01, 2),
)
def test_a_bill_is_power_rent_and_electricity_times_time(
    seconds: float, watts: float, price: float, kwh: float
) -> None:
    """Energy and money grow with the time; electricity alone is paid by who owns the device.

    The table's price is in dollars, one that is given in the user's own currency.
    """
    rates = replace(RATES, watts=watts, price_per_hour=price)
    rented = bill_of(seconds, rates)
    owned = bill_of(seconds, rates.priced(per_hour=None, per_kwh=kwh))
    both = bill_of(seconds, rates.priced(per_hour=price, per_kwh=kwh))
    assert (rented.currency, owned.currency, both.currency) == ("USD", None, None)
    assert rented.kwh == pytest.approx(watts / 1000 * seconds / HOUR)
    assert rented.money == pytest.approx(price * seconds / HOUR)
    assert rented.kwh is not None
    assert owned.money == pytest.approx(kwh * rented.kwh)
    assert rented.money is not None
    assert owned.money is not None
    assert both.money == pytest.approx(rented.money + owned.money)
    assert bill_of(2 * seconds, rates).money == pytest.approx(2 * rented.money)
    assert bill_of(seconds, replace(rates, price_per_kwh=kwh)).money == both.money


def test_what_is_not_known_is_not_made_up() -> None:
    """Without a known power there is no energy; without a known price there is no cost."""
    bill = bill_of(1.0, replace(RATES, watts=None, price_per_hour=None, price_per_kwh=0.3))
    assert (bill.kwh, bill.money) == (None, None)


@settings(max_examples=20)
@given(steps=st.integers(1, 10**6), factor=st.integers(2, 8))
def test_time_follows_arithmetic_and_rate(steps: int, factor: int) -> None:
    """Without the time to start layers a step is FLOPs by rate, and twice the rate half of it."""
    work = _work("tiny", f"train.max_steps={steps}")
    rates = replace(RATES, layer_seconds=0.0)
    slow = estimate_training(work, rates)
    fast = estimate_training(work, replace(rates, training=factor * rates.training))
    flops = step_of(work, "fp32").flops
    assert slow.step_seconds == pytest.approx(flops / rates.training)
    assert fast.step_seconds == pytest.approx(slow.step_seconds / factor)
    assert slow.steps == steps
    assert slow.tokens == steps * work.step_tokens


def test_the_first_limit_ends_the_run() -> None:
    """The first limit ends a run; minutes include steps, validations, checkpoints and startup."""
    by_time = estimate_training(_work("multi30k-en-de"), RATES, MEASURED)
    assert by_time.limited_by == "9 minutes"
    assert by_time.steps is not None
    assert by_time.steps * 2.0 < 9 * 60 - 10.0
    by_steps = estimate_training(_work("multi30k-en-de", "train.max_steps=30"), RATES, MEASURED)
    assert by_steps.limited_by == "30 steps"
    assert by_steps.bill is not None
    assert by_steps.bill.seconds == pytest.approx(10.0 + 30 * 2.0 + 20.5 + 0.5)
    settings = ("train.max_steps=30", "train.save_every=10", "train.average_last=2")
    averaged = estimate_training(_work("multi30k-en-de", *settings), RATES, MEASURED)
    assert averaged.bill is not None  # the final average is validated once more
    assert averaged.bill.seconds == pytest.approx(10.0 + 30 * 2.0 + 2 * 20.5 + 3 * 0.5)
    patience = replace(_work("sst2").recipe, train=TrainConfig(patience=3, schedule="constant"))
    endless = estimate_training(patience.work(), RATES)
    assert (endless.steps, endless.bill) == (None, None)


@pytest.mark.parametrize(
    ("setting", "passes"), [("activation_checkpointing=true", 4), ("accumulate=4", 4 * 3)]
)
def test_a_step_starts_each_layer_once_a_pass(setting: str, passes: int) -> None:
    """A step launches each layer once forward, twice backward, once more with checkpointing."""
    work, usual = _work("tiny", f"train.{setting}"), _work("tiny")
    rates = replace(RATES, training=1e30)
    one, many = (estimate_training(each, rates).step_seconds for each in (usual, work))
    assert one == pytest.approx(3 * work.config.depth * rates.layer_seconds)
    assert many == pytest.approx(passes / 3 * one)
    assert work.step_tokens == work.recipe.train.accumulate * usual.step_tokens


@pytest.mark.parametrize("name", ["base", "llama-small"])
def test_decoding_waits_for_the_memory(name: str) -> None:
    """The time of decoding is the sum of reading the weights and of computing the products."""
    work = _work(name)
    rates = replace(RATES, decoding=1e30, decoding_layer_seconds=0.0)
    found = estimate_texts(work, rates).tokens_per_second
    slower = replace(rates, reading=rates.reading / 3)
    assert estimate_texts(work, slower).tokens_per_second == pytest.approx(found / 3)
    products = replace(rates, decoding=RATES.decoding, reading=1e30)
    computing = 1 / estimate_texts(work, products).tokens_per_second
    both = estimate_texts(work, replace(rates, decoding=RATES.decoding))
    assert 1 / both.tokens_per_second == pytest.approx(1 / found + computing)


@pytest.mark.parametrize("name", ["small", "llama-small"])
def test_a_token_starts_the_layers_of_the_decoder(name: str) -> None:
    """A token launches the decoder's layers; the encoder's are launched once per answer."""
    work = _work(name, "decoding.beam_size=1") if name == "small" else _work(name)
    rates = replace(RATES, decoding=1e30, reading=1e30)
    layers = work.config.depth
    if isinstance(work.config, EncoderDecoderConfig):
        layers = work.config.num_decoder_layers
    started = work.config.depth + work.answer * layers
    rows = BATCH_TOKENS // work.length
    found = estimate_texts(work, rates).tokens_per_second
    assert found == pytest.approx(rows * work.answer / (started * rates.decoding_layer_seconds))


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        (
            "numbers",
            (*TINY, "data.made.train=60", "data.made.valid=10", "tokenizer.vocab_size=400"),
        ),
        ("tinyshakespeare", (*TINY_LM, "data.root=nowhere")),
        ("tatoeba-en-zh", (*TINY, *ONE_LAYER, "data.root=nowhere")),
    ],
)
def test_measuring_times_what_there_is(name: str, overrides: tuple[str, ...]) -> None:
    """The job's own texts are used if available, else rows of its shape; the result says which."""
    work = _work(name, *overrides, "train.device=cpu")
    measured = measure(work, Console(file=StringIO()), least_seconds=0.0)
    assert ("own job" in measured.how) is (name == "numbers")
    times = (measured.step_seconds, measured.validation_seconds, measured.save_seconds)
    assert min(times) > 0
    assert measured.tokens_per_second is not None
    assert measured.step_tokens > 0
    run = estimate_training(work, RATES, measured)
    assert run.step_seconds == measured.step_seconds


def test_all_figures_are_plain_data() -> None:
    """All parts are reported; the largest batch fits into memory, and one 10% larger does not."""
    work = _work("tinyshakespeare", *TINY_LM)
    rates = replace(RATES, memory=50_000_000)
    found = cost_of("it", work, rates, CostOptions(tokens_per_month=1e6), MEASURED).to_dict()
    rows = found["memory"]["largest_rows"]
    fits, over = (
        step_of(work, "fp32", shape=replace(work.shape, rows=count)).memory.total
        for count in (rows, round(1.1 * rows))
    )
    assert fits <= 50_000_000 < over
    assert found["parameters"]["total"] == sum(count_parameters(work.config).values())
    assert found["memory"]["training"]["total"] == step_of(work, "fp32").memory.total
    decoding = found["memory"]["decoding"]
    assert decoding["weights"] == found["memory"]["training"]["weights"]
    assert decoding["cache"] >= BATCH_TOKENS // work.length * found["memory"]["cache"]
    assert decoding["total"] > found["memory"]["bf16_decoding"]["total"]
    assert found["texts"]["month"]["seconds"] == pytest.approx(1e6 / 100.0)
    assert found["flops_per_token"]["training"] > 3 * found["flops_per_token"]["prefill"] > 0


def test_beams_share_what_cross_attention_keeps() -> None:
    """Cross-attention memory is held once per sentence, the cache once per beam."""
    work = _work("tiny")
    assert isinstance(work.config, EncoderDecoderConfig)
    found = cost_of("it", work, replace(RATES, memory=None)).memory.decoding
    assert found is not None
    rows = BATCH_TOKENS // (work.length * work.beam_size)
    token = 2 * FLOAT * work.config.d_model * work.config.num_decoder_layers
    padded = -(-work.length // ALIGNED) * ALIGNED
    assert found.memory == rows * padded * token
    assert found.cache >= rows * work.beam_size * work.answer * token


def test_a_prompt_is_divided_by_the_tokens_that_are_read() -> None:
    """FLOPs are per token that is read: a prompt's last token is part of the first step."""
    work = _work("tinyshakespeare", *TINY_LM)
    assert isinstance(work.config, DecoderOnlyConfig)
    read = cost_of("it", work, RATES).flops_per_token.prefill
    prompts = Shape(rows=64, length=work.length + 1)
    prefill = decoding_step(work.config, prompts, cached=work.length).prefill
    assert read == prefill / 64 / work.length


def test_shares_of_training_are_those_of_its_flops() -> None:
    """The output layer's share is three products per target, divided by all FLOPs per token."""
    work = _work("numbers", *TINY, *ONE_LAYER)
    found = cost_of("it", work, RATES).flops_per_token
    each_target = 3 * 2 * work.config.d_model * work.vocab_size
    assert found.output == pytest.approx(each_target / 2 / found.training)
    assert 0 < found.scores < 1


# ---------------------------------------------------------------- the robust sum of step times


TIMES = st.lists(st.floats(1e-3, 10.0), min_size=1, max_size=40).map(np.array)


@given(TIMES)
def test_between_the_fastest_and_the_mean(times: np.ndarray) -> None:
    """The result is between the minimum and the mean, and scales with the times."""
    found = typical(times)
    assert times.min() * (1 - 1e-12) <= found <= times.mean() * (1 + 1e-12)
    assert typical(3 * times) == pytest.approx(3 * found)


@given(st.lists(st.floats(0.8, 1.19), min_size=1, max_size=40).map(np.array))
def test_the_mean_of_ordinary_steps(times: np.ndarray) -> None:
    """Steps of up to 1.5 times the median count in full."""
    assert typical(times) == pytest.approx(times.mean())


def test_a_burst_counts_little() -> None:
    """A single outlier of any length counts as 1.5 times the median."""
    assert typical(np.array([1.0] * 39 + [60.0])) == pytest.approx((39 + 1.5) / 40)


ROOM = [
    ("tinyshakespeare", "batch.length"),
    ("multi30k-en-de", "batch.max_length"),
    ("sst2", "batch.max_length"),
    ("conll2003", "batch.max_length"),
    ("pretrain-en", "batch.max_length"),
]


@pytest.mark.parametrize(("name", "key"), ROOM)
def test_a_sentence_is_as_long_as_asked_for_or_refused(name: str, key: str) -> None:
    """Every task uses the requested length, or refuses one beyond the recipe's limit.

    The default length is thirty tokens, or that limit if it is smaller.
    """
    recipe = find_recipe(name, [f"{key}=50"])
    for length in (1, 49, 50):
        assert recipe.work(length).length == length
    said = rf"length = 51 is over the recipe's {key} = 50: ask for 50 or less, or add {key}=51"
    with pytest.raises(InputError, match=said):
        recipe.work(51)
    assert find_recipe(name).work().length == LENGTH
    assert find_recipe(name, [f"{key}=16"]).work().length == 16


@pytest.mark.parametrize(
    ("name", "unset"),
    [
        ("tinyshakespeare", {"generation": GenerationDefaults()}),
        ("multi30k-en-de", {"decoding": Decoding()}),
    ],
)
def test_options_that_nobody_set_are_those_of_the_task(name: str, unset: dict[str, Any]) -> None:
    """Recipes that are built in Python or inherit from a folder use the task's defaults."""
    recipe = find_recipe(name)
    work = replace(recipe, **unset).work()
    assert (work.answer, work.beam_size) == (recipe.work().answer, recipe.work().beam_size)
