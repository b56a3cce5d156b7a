"""The translation job: the results of validation, and what its recipe refuses."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.unit.train.made import (
    EOS,
    TINY,
    VOCAB,
    make_batch,
    make_job,
    make_model,
    make_stepper,
    random_pairs,
)
from torch import Tensor

from dragoman.models import EncoderDecoder
from dragoman.tasks.recipes import load_recipe
from dragoman.tasks.results import Translation
from dragoman.tasks.translate.job import (
    ALIKE,
    COLLAPSED,
    COPYING,
    DIVERGED,
    FREQUENT,
    LOOPING,
    faults,
    validate,
)
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.tasks.translate.translator import Translator
from dragoman.train.job import Validation


class Deaf(EncoderDecoder):
    """A model whose hidden states ignore the source, and that refuses to compute all logits."""

    def forward(self, src_BS: Tensor, tgt_BT: Tensor) -> Tensor:
        """Fail: the loss is computed a chunk at a time."""
        raise AssertionError(f"all logits of {tuple(src_BS.shape)} and {tuple(tgt_BT.shape)}")

    def hidden(self, src_BS: Tensor, tgt_BT: Tensor) -> Tensor:
        """Return the hidden states of an empty source."""
        return super().hidden(torch.full_like(src_BS[:, :1], EOS), tgt_BT)


def unjudged() -> Validation:
    """Return a validation without translations."""
    return Validation(loss=0.0, scores={})


def stories(folder: Path, *settings: str) -> TranslateRecipe:
    """Return a small recipe with generated texts."""
    small = (
        *("data.made.train=60", "data.made.valid=5", f"data.cache={folder}"),
        *("tokenizer.vocab_size=300", "model.d_model=32", "model.num_heads=2", "train.device=cpu"),
    )
    recipe = load_recipe("stories", (*small, f"out={folder / 'run'}", *settings))
    assert isinstance(recipe, TranslateRecipe)
    return recipe


@pytest.mark.parametrize("split", ["true", "false"])
def test_lines_are_scored_as_the_model_will_translate_them(split: str, tmp_path: Path) -> None:
    """They are split into sentences or not, as the recipe or its texts decide."""
    job, _ = make_job(stories(tmp_path, f"decoding.split_sentences={split}"))
    sources, _ = job.texts.first_lines(job.texts.validation[0], 3)
    found = job.measure()
    greedy = Translator(job.model, *job.tokenizers, decoding=job.config.decoding)
    options = replace(greedy.options, beam_size=1, retry=False)
    wanted = [line.text for line in greedy.translate(sources, options=options)]
    assert [text for text, _ in found.examples] == wanted
    assert greedy.options.split_sentences is (split == "true")


def test_nothing_is_translated_for_the_loss_alone(tmp_path: Path) -> None:
    """If no translations are requested, the card mentions none."""
    job, _ = make_job(stories(tmp_path, "train.metric=loss", "train.validate_limit=0"))
    found = job.measure()
    assert found.loss > 0
    assert (found.scores, found.examples) == ({}, ())
    assert job.card(found).judged == "The loss is in nats per target token."


def test_the_model_goes_on_learning() -> None:
    """Validation runs in evaluation mode, restores training mode, and draws no random numbers.

    Sentences longer than any in training must not leave inference tensors behind.
    """
    model = make_model(replace(TINY, dropout=0.5), dtype=torch.float32)
    stepper, modes = make_stepper(model), list[tuple[bool, bool]]()

    def score() -> Validation:
        modes.append((model.training, torch.is_inference_mode_enabled()))
        return unjudged()

    before = torch.get_rng_state()
    long = ([5] * 300, [6] * 300)
    validate(model, [make_batch([*random_pairs(3), long])], score)
    assert modes == [(False, True)]
    assert model.training
    assert torch.equal(torch.get_rng_state(), before)
    assert stepper([make_batch([long])], 1e-3).loss > 0


def test_a_deaf_model_is_collapsed() -> None:
    """A model that ignores its source has no gain from the right one, and is reported."""
    validation = validate(Deaf(TINY).double(), [make_batch(random_pairs(9))], unjudged)
    assert validation.diagnostics["source_gain"] == pytest.approx(0.0, abs=1e-12)
    assert validation.warnings == (COLLAPSED,)


def test_a_model_that_copies_is_not_collapsed() -> None:
    """A model that starts to use its source is not reported."""
    model = make_model(dtype=torch.float32)
    stepper = make_stepper(model)
    pairs = [([token], [token]) for token in range(4, VOCAB)]
    for _ in range(60):
        stepper([make_batch(pairs)], 1e-2)
    validation = validate(model, [make_batch(pairs)], unjudged)
    assert validation.diagnostics["source_gain"] > 0.5
    assert not validation.warnings


def test_one_pair_has_no_other_source() -> None:
    """With a single validation pair there is no warning about the source."""
    validation = validate(make_model(), [make_batch(random_pairs(1))], unjudged)
    assert not validation.diagnostics
    assert not validation.warnings


def test_a_model_of_frequencies_is_reported() -> None:
    """It is reported if the loss is at least the unigram entropy, given enough tokens."""
    batch = make_batch(random_pairs(300))
    assert batch.num_targets > 1000
    assert FREQUENT in validate(make_model(), [batch], unjudged).warnings
    wild = make_model()
    with torch.no_grad():
        wild.output.weight *= 20
    diverged = validate(wild, [batch], unjudged).warnings
    assert DIVERGED in diverged
    assert FREQUENT not in diverged
    counted = [([4], [4]), ([5], [5])] * 300
    model = make_model(dtype=torch.float32)
    stepper = make_stepper(model)
    for _ in range(40):
        stepper([make_batch(counted[:20])], 1e-2)
    assert not validate(model, [make_batch(counted)], unjudged).warnings


SOURCES = [f"{word} dog" for word in "abcdefghijklmnopqrstuvwxyz"]


def told(texts: list[str], *, flag: str = "", sources: list[str] = SOURCES) -> list[str]:
    """Return the warnings about these translations of the sources."""
    found = [Translation(text=text, flags=(flag,) if flag else ()) for text in texts]
    references = [f"{source}!" for source in sources]
    return [*faults(sources, found, references)]


def test_outputs_that_are_alike_loop_or_copy_are_reported() -> None:
    """Most outputs must be affected; few lines are not enough, and correct ones may be equal."""
    right = [f"{source}!" for source in SOURCES]
    assert told(right) == []
    assert told([*right[:11], *["one dog"] * 15]) == [ALIKE]
    assert told([*right[:12], *["one dog"] * 14]) == []
    assert told(right, flag="loop") == [LOOPING]
    assert told(SOURCES) == [COPYING]
    assert told(["one dog"] * 19, sources=SOURCES[:19]) == []
    assert told(["one dog!"] * 26, sources=["one dog"] * 26) == []
