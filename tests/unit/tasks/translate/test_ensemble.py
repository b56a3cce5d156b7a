"""Several models that decode by the mean of their probabilities."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
import torch
from tests.processors import needs_independent_rows
from tests.unit.tasks.tiny import DECODING, make_config, make_model, make_tokenizer, random_lines

from dragoman.decode import mean_log_probs
from dragoman.errors import InputError
from dragoman.tasks.translate.translator import Translator
from dragoman.text.tokenizer import Tokenizer

TOKENIZER = make_tokenizer()


def make(seed: int, tokenizer: Tokenizer = TOKENIZER) -> Translator:
    """A translator of random weights."""
    model = make_model(make_config(tokenizer), seed)
    return Translator(model, tokenizer, tokenizer, decoding=DECODING)


def test_the_mean_is_that_of_the_probabilities() -> None:
    """Against NumPy in float64, with tokens that one or all models exclude."""
    logits = [torch.randn(3, 50).mul(5) for _ in range(3)]
    logits[0][:, 7] = -torch.inf
    for each in logits:
        each[:, 9] = -torch.inf
    every = [np.exp(each.double().numpy()) for each in logits]
    mean_NV = np.mean([each / each.sum(1, keepdims=True) for each in every], axis=0)
    found_NV = mean_log_probs(logits).double().exp().numpy()
    np.testing.assert_allclose(found_NV, mean_NV, rtol=2e-6)


def test_a_model_with_itself_is_the_model() -> None:
    """The same tokens for any beam, with scores alike."""
    one, lines = make(0), random_lines(10)
    both = one.ensemble(one, one)
    for beam_size in (1, 4):
        expected = one.translate(lines, beam_size=beam_size)
        found = both.translate(lines, beam_size=beam_size)
        assert [each.tokens for each in found] == [each.tokens for each in expected]
        assert [e.score for e in found] == pytest.approx([e.score for e in expected], rel=1e-4)


@torch.no_grad()
def test_greedy_takes_the_greatest_mean() -> None:
    """Token for token what whole passes of both models say, in float64; and it is not one's own."""
    models = [make_model(make_config(TOKENIZER), seed).double().eval() for seed in (1, 2)]
    both = make(1).ensemble(make(2))
    options = replace(both.options, beam_size=1, retry=False)
    lines = random_lines(8)
    found = both.translate(lines, options=options)
    assert [each.tokens for each in found] != [
        each.tokens for each in make(1).translate(lines, options=options)
    ]
    for line, each in zip(lines, found, strict=True):
        src_BS = torch.tensor([[*TOKENIZER.encode(line), TOKENIZER.eos_id]])
        ids = [TOKENIZER.bos_id]
        for _ in each.token_log_probs:
            logits = [model(src_BS, torch.tensor([ids]))[0, -1] for model in models]
            mean_V = torch.stack([one.softmax(0) for one in logits]).mean(0)
            mean_V[list(both.specials.forbidden)] = 0.0
            ids.append(int(mean_V.argmax()))
        assert TOKENIZER.tokens(i for i in ids[1:] if i != TOKENIZER.eos_id) == list(each.tokens)


@needs_independent_rows
def test_neighbours_change_no_bit() -> None:
    """The same to the bit in any order and batch size."""
    both, lines = make(1).ensemble(make(2)), list(dict.fromkeys(random_lines(12)))
    expected = both.translate(lines)
    order = list(range(len(lines)))
    Random(1).shuffle(order)
    found = both.translate([lines[index] for index in order], max_batch_tokens=60)
    assert found == [expected[index] for index in order]


def test_given_translations_are_scored_by_the_mean() -> None:
    """Twice the same model is that model; another one changes the scores."""
    pairs = list(zip(random_lines(6), random_lines(6, seed=1), strict=True))
    one = make(1)
    expected, twice, both = (
        [each.score for each in translator.score(pairs)]
        for translator in (one, one.ensemble(one), one.ensemble(make(2)))
    )
    assert twice == pytest.approx(expected, rel=1e-5)
    assert both != pytest.approx(expected, rel=1e-2)


def test_other_vocabularies_are_refused() -> None:
    """They would add up probabilities of different tokens."""
    with pytest.raises(InputError, match="Model 3 of the ensemble has another vocabulary"):
        make(0).ensemble(make(1), make(2, make_tokenizer(300)))
