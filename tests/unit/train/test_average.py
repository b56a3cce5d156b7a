"""The moving average of the weights: the formula, what is saved of it, when it is the model."""

from dataclasses import replace

from safetensors.torch import load_file
from tests.unit.train.made import make_batch, make_model, make_stepper, random_pairs, weights_of
from tests.unit.train.runs import exported, run, same, saved

from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.train.checkpoint import moving_average
from dragoman.train.optimizer import update_averages

FROZEN = "decoder.layers.0.ffn.down.weight"
LATE = "decoder.layers.0.ffn.up.weight"


def test_the_formula() -> None:
    """The average is the sum of all weights so far, each by what the later steps leave of it.

    It begins with the step in which a weight first learns; one that never does has none.
    """
    model = make_model()
    late, frozen = model.get_parameter(LATE), model.get_parameter(FROZEN)
    frozen.requires_grad = False
    stepper = make_stepper(model)
    history = []
    for step in range(1, 13):
        late.requires_grad_(step > 3)
        stepper([make_batch(random_pairs(3))], 1e-2)
        update_averages(stepper.optimizer, 0.15, step)
        history.append(weights_of(model))
    keeps = [min(0.15, (step - 1) / (step + 8)) for step in range(1, 13)]
    for name, weight in model.named_parameters():
        if weight is frozen:
            assert weight not in stepper.optimizer.state
            continue
        first = 3 if weight is late else 0
        expected = history[first][name]
        for keep, then in list(zip(keeps, history, strict=True))[first:]:
            expected = keep * expected + (1 - keep) * then[name]
        average = stepper.optimizer.state[weight]["ema"]
        assert (average - expected).abs().max() < 1e-14


def averaging(recipe: TranslateRecipe) -> TranslateRecipe:
    """With a moving average, and no other."""
    return replace(recipe, train=replace(recipe.train, ema=0.5, average_last=1))


def test_it_is_the_model_where_it_is_better(recipe: TranslateRecipe) -> None:
    """It moves no other weight."""
    plain = replace(recipe, out=recipe.out + "-plain")
    run(plain, 10, 30, 20, 1)
    recipe = replace(recipe, train=replace(recipe.train, ema=0.5, average_last=1))
    result, said = run(recipe, 10, 30, 20, 31)
    average = moving_average(saved(recipe)[-1])
    weights = load_file(saved(recipe)[-1] / "weights.safetensors")
    assert same(weights, load_file(saved(plain)[-1] / "weights.safetensors"))
    assert set(average) == set(weights)
    assert not same(average, weights)
    assert same(exported(recipe), average)
    assert result.progress.best is not None
    assert result.progress.best["bleu"] == 31
    assert "The moving average of the weights: loss" in said
    assert "it is the model" in said
