"""Ensembles that decode by the mean of the models' probabilities."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.unit.tasks.tiny import (
    make_config,
    make_model,
    make_tokenizer,
    make_translator,
    random_lines,
)

from dragoman.decode import mean_log_probs
from dragoman.errors import InputError
from dragoman.tasks.translate.translator import Translator

TOKENIZER = make_tokenizer()


def test_the_mean_is_that_of_the_probabilities() -> None:
    """It equals NumPy's in float64, with tokens that some or all models exclude."""
    logits = [torch.randn(3, 50).mul(5) for _ in range(3)]
    logits[0][:, 7] = -torch.inf
    for each in logits:
        each[:, 9] = -torch.inf
    every = [np.exp(each.double().numpy()) for each in logits]
    mean_NV = np.mean([each / each.sum(1, keepdims=True) for each in every], axis=0)
    found_NV = mean_log_probs(logits).double().exp().numpy()
    np.testing.assert_allclose(found_NV, mean_NV, rtol=2e-6)


def test_a_model_with_itself_is_the_model() -> None:
    """A beam, whose rows every model reorders, finds the same tokens with equal scores."""
    one, lines = make_translator(), random_lines(10)
    both = one.ensemble(one, one)
    expected, found = (each.translate(lines, beam_size=4) for each in (one, both))
    assert [each.tokens for each in found] == [each.tokens for each in expected]
    assert [e.score for e in found] == pytest.approx([e.score for e in expected], rel=1e-4)


@torch.no_grad()
def test_greedy_takes_the_greatest_mean() -> None:
    """The tokens equal those of full passes of both models in float64, and not those of one."""
    models = [make_model(make_config(TOKENIZER), seed).double().eval() for seed in (1, 2)]
    one = make_translator(seed=1)
    both = one.ensemble(make_translator(seed=2))
    options = replace(both.options, beam_size=1, retry=False)
    lines = random_lines(8)
    found = both.translate(lines, options=options)
    alone = one.translate(lines, options=options)
    assert [each.tokens for each in found] != [each.tokens for each in alone]
    for line, each in zip(lines, found, strict=True):
        src_BS = torch.tensor([[*TOKENIZER.encode(line), TOKENIZER.eos_id]])
        ids = [TOKENIZER.bos_id]
        for _ in each.token_log_probs:
            logits = [model(src_BS, torch.tensor([ids]))[0, -1] for model in models]
            mean_V = torch.stack([one.softmax(0) for one in logits]).mean(0)
            mean_V[list(both.specials.forbidden)] = 0.0
            ids.append(int(mean_V.argmax()))
        assert TOKENIZER.tokens(i for i in ids[1:] if i != TOKENIZER.eos_id) == list(each.tokens)


def test_given_translations_are_scored_by_the_mean() -> None:
    """A model with itself gives its own scores; another one changes them."""
    pairs = list(zip(random_lines(6), random_lines(6, seed=1), strict=True))
    one = make_translator(seed=1)
    expected, twice, both = (
        [each.score for each in translator.score(pairs)]
        for translator in (one, one.ensemble(one), one.ensemble(make_translator(seed=2)))
    )
    assert twice == pytest.approx(expected, rel=1e-5)
    assert both != pytest.approx(expected, rel=1e-2)


def test_other_vocabularies_are_refused() -> None:
    """Their probabilities would belong to different tokens."""
    small = make_tokenizer(300)
    other = Translator(make_model(make_config(small)), small, small)
    with pytest.raises(
        InputError, match=r"Model 3 of the ensemble has another vocabulary.*tokenizer\.path"
    ):
        make_translator().ensemble(make_translator(seed=1), other)
