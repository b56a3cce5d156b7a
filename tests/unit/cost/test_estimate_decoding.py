"""How fast a model writes follows from what a step of decoding computes, reads and starts."""

from dataclasses import replace

import pytest
from tests.unit.cost.test_estimate import RATES, _work

from dragoman.cost.decoding import cache_read, decoder_of
from dragoman.cost.estimate import BATCH_TOKENS, FLOAT, estimate_texts
from dragoman.models import DecoderOnlyConfig, EncoderDecoderConfig, count_parameters


@pytest.mark.parametrize("name", ["base", "llama-small"])
def test_decoding_waits_for_the_memory(name: str) -> None:
    """Where products take no time, a step is the bytes of its weights and caches by the rate.

    Else it waits for both, one after the other.
    """
    work = _work(name)
    rates = replace(RATES, decoding=1e30, layer_seconds=0.0)
    assert isinstance(work.config, EncoderDecoderConfig | DecoderOnlyConfig)
    paired = isinstance(work.config, EncoderDecoderConfig)
    rows = BATCH_TOKENS // (work.length * work.beam_size)
    kept = cache_read(
        work.config,
        src_length=work.length if paired else 0,
        length=work.answer // 2 + (0 if paired else work.length),
    )
    read = count_parameters(work.config)["decoder"] + work.vocab_size * work.config.d_model
    seconds = (FLOAT * read + rows * work.beam_size * kept) / rates.reading
    found = estimate_texts(work, rates).tokens_per_second
    assert found == pytest.approx(rows / seconds)
    slower = replace(rates, reading=rates.reading / 3)
    assert estimate_texts(work, slower).tokens_per_second == pytest.approx(found / 3)
    products = replace(rates, decoding=RATES.decoding, reading=1e30)
    computing = 1 / estimate_texts(work, products).tokens_per_second
    both = estimate_texts(work, replace(rates, decoding=RATES.decoding))
    assert 1 / both.tokens_per_second == pytest.approx(1 / found + computing)


@pytest.mark.parametrize("name", ["small", "llama-small"])
def test_a_token_starts_the_layers_of_the_decoder(name: str) -> None:
    """Those of the encoder are started once for the whole answer."""
    work = _work(name, "decoding.beam_size=1") if name == "small" else _work(name)
    rates = replace(RATES, decoding=1e30, reading=1e30)
    assert isinstance(work.config, EncoderDecoderConfig | DecoderOnlyConfig)
    started = work.config.depth + work.answer * len(decoder_of(work.config).layers)
    rows = BATCH_TOKENS // work.length
    found = estimate_texts(work, rates).tokens_per_second
    assert found == pytest.approx(rows * work.answer / (started * rates.layer_seconds))
