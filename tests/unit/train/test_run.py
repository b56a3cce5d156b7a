"""A whole run in one process: the final folder, and resuming."""

import json
import signal
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.unit.train.made import make_console
from tests.unit.train.runs import (
    Scorer,
    assert_goes_on_the_same,
    assert_same_runs,
    change,
    exported,
    interrupt,
    run,
    same,
    saved,
    train_scored,
)
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

from dragoman.data.corpus import CorpusConfig
from dragoman.errors import DragomanError, InputError
from dragoman.nn import FeedForward
from dragoman.tasks.recipes import load_recipe
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.train.checkpoint import average_weights, moving_average
from dragoman.train.device import Place, choose_precision


def test_best_step_is_the_model(recipe: TranslateRecipe) -> None:
    """If the average of the last checkpoints is no better, the best step's weights are kept."""
    result, said = run(recipe, 10, 30, 20, 29)
    assert "step 4 is better" in said
    assert same(exported(recipe), load_file(saved(recipe)[1] / "weights.safetensors"))
    assert (result.progress.best or {})["bleu"] == 30
    assert (result.reason, result.interrupted, result.progress.step) == ("6 steps", False, 6)


def test_a_run_is_that_of_a_new_process(recipe: TranslateRecipe) -> None:
    """Whatever the program around it has set in torch, whose random state stays, too."""
    run(recipe, 10, 30, 20, 29)
    other, before = replace(recipe, out=f"{recipe.out}-other"), torch.get_rng_state()
    with ExitStack() as around:
        around.callback(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(torch.float64)
        around.enter_context(torch.device("meta"))
        around.enter_context(torch.inference_mode())
        around.enter_context(torch.autocast("cpu", torch.bfloat16))
        run(other, 10, 30, 20, 29)
        assert torch.get_default_dtype() is torch.float64
    assert same(exported(other), exported(recipe))
    assert torch.equal(torch.get_rng_state(), before)


def test_average_is_the_model_where_it_is_better(recipe: TranslateRecipe) -> None:
    """If the average of the last checkpoints is better, it becomes the model, to the bit.

    The model card mentions it and the training data; no temporary files are left.
    """
    result, said = run(recipe, 10, 30, 20, 31)
    assert "it is the model" in said
    assert same(exported(recipe), average_weights(saved(recipe)))
    assert (result.progress.best or {})["bleu"] == 31
    card = (Path(recipe.out) / "README.md").read_text(encoding="utf-8")
    assert all(part in card for part in ("- bleu: 31", "a.src", "held out"))
    hidden = {path.name for path in Path(recipe.out).rglob(".*")}
    assert hidden <= {".gitignore", ".lock"}


def test_a_moving_average_is_the_model_where_it_is_better(recipe: TranslateRecipe) -> None:
    """It does not change the training weights."""
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
    assert (result.progress.best or {})["bleu"] == 31
    assert "The moving average of the weights: loss" in said
    assert "it is the model" in said


def test_a_longer_run_keeps_the_better_average(recipe: TranslateRecipe) -> None:
    """A finished run that is extended without improvement keeps the average it wrote."""
    run(recipe, 10, 20, 30, 99)
    before = exported(recipe)
    with pytest.raises(InputError, match="is finished"):
        run(recipe)
    result, said = run(change(recipe, max_steps=8), 50, 60)
    assert "Resuming from step 6." in said
    assert result.progress.step == 8
    assert same(exported(recipe), before)
    assert (result.progress.best or {})["bleu"] == 99


def test_only_the_last_k_are_averaged(recipe: TranslateRecipe) -> None:
    """The last `average_last` checkpoints are averaged; a single one is not."""
    run(change(recipe, average_last=2), 10, 30, 20, 31)
    assert [path.name for path in saved(recipe)] == ["step-00000004", "step-00000006"]
    assert same(exported(recipe), average_weights(saved(recipe)))
    alone = replace(change(recipe, average_last=1), out=recipe.out + "1")
    _, said = run(alone, 10, 30, 40)
    assert "average" not in said
    assert same(exported(alone), load_file(saved(alone)[-1] / "weights.safetensors"))


def test_other_batches_and_intervals(recipe: TranslateRecipe) -> None:
    """Batch size and saving interval may change on resuming, with a warning about the effects."""
    bleu = [10, 30, 20, 31]
    interrupt(recipe, 3, bleu)
    other = replace(recipe, batch=replace(recipe.batch, max_tokens=60))
    _, said = run(change(other, save_every=5), *bleu[1:])
    changes = "batch.max_tokens is 60 (was 100), and train.save_every is 5 (was 2)"
    assert f"Warning: {changes}, so the run will not end with the bits" in said
    assert "The epoch begins again with the new batches." in said
    assert [path.name[-1] for path in saved(recipe)] == ["5", "6"]
    source = Path(recipe.data.src or "")
    source.write_text(source.read_text("utf-8").replace("1", "2"), "utf-8")
    with pytest.raises(InputError, match="training data or its batch settings have changed"):
        run(change(recipe, max_steps=8), *bleu)


@pytest.mark.parametrize(
    ("at", "data"), [(1, {}), (2, {}), (5, {"guided_alignment": 0.5, "placeholders": 0.5})]
)
def test_interrupted_run_ends_the_same(
    recipe: TranslateRecipe, at: int, data: dict[str, Any]
) -> None:
    """A run that is stopped by Ctrl-C at any step and resumed ends with the same bits."""
    recipe = replace(recipe, data=replace(recipe.data, **data))
    assert_goes_on_the_same(recipe, at, [10, 30, 20, 31])


def test_a_folder_that_goes_while_a_run_begins(recipe: TranslateRecipe) -> None:
    """The run stops instead of starting over, and can be resumed in the folder's new place."""
    interrupt(recipe, 3, [10])
    other = replace(recipe, out=recipe.out + "-moved")

    def move(*_: object) -> None:
        Path(recipe.out).rename(other.out)

    with pytest.raises(DragomanError, match="run was moved or removed while its run was going on"):
        train_scored(recipe, Scorer(iter([])), check=move)
    assert not Path(recipe.out).exists()
    assert "Resuming from step 3." in run(other, 30, 20, 31)[1]


def test_ctrl_c_during_the_last_validation(recipe: TranslateRecipe) -> None:
    """A Ctrl-C while the average is scored is delayed until the model is saved."""
    calls: list[int] = []

    def press() -> None:
        calls.append(1)
        if len(calls) == 4:
            signal.raise_signal(signal.SIGINT)

    result = train_scored(recipe, Scorer(iter([1, 2, 3, 4]), before=press))
    assert not result.interrupted
    assert (Path(recipe.out) / "training" / "finished.json").exists()


def test_validation_files_and_limit(recipe: TranslateRecipe) -> None:
    """Validation files are used unchanged; at most `validate_limit` pairs are translated."""
    data = replace(recipe.data, valid_src=recipe.data.src, valid_tgt=recipe.data.tgt)
    scorer = Scorer(iter([1, 2, 3, 4]))
    console, file = make_console(terminal=False)
    limited = replace(change(recipe, validate_limit=7), data=data)
    train_scored(limited, scorer, console)
    assert scorer.sources == [f"{i} {i + 1} {i + 2}" for i in range(7)]
    assert "held out" not in file.getvalue()


def test_checkpointing_changes_no_bit(recipe: TranslateRecipe) -> None:
    """Recomputing activations, dropout included, gives the same weights as keeping them."""
    setting = replace(recipe.train, activation_checkpointing=True)
    again = replace(recipe, out=recipe.out + "-again", train=setting)
    calls = [0, 0]
    for number, each in enumerate((recipe, again)):

        def count(module: nn.Module, *_: object, number: int = number) -> None:
            calls[number] += isinstance(module, FeedForward) and module.training

        hook = register_module_forward_hook(count)
        run(each, 1, 2, 3, 4)
        hook.remove()
    assert calls[1] == 2 * calls[0] > 0
    assert_same_runs(again, recipe)


@pytest.mark.parametrize("differs", [{"threads": "another"}, {}])
def test_another_machine_is_told(recipe: TranslateRecipe, differs: dict[str, str]) -> None:
    """What affects the bits is saved; a difference causes a message, and the run continues."""
    recipe = replace(recipe, train=replace(recipe.train, precision="auto"))
    interrupt(recipe, 3, [1, 2])
    file = saved(recipe)[-1] / "state.json"
    state = json.loads(file.read_text(encoding="utf-8"))
    machine = state["machine"]
    cpu = torch.device("cpu")
    assert machine == Place(device=cpu, precision=choose_precision("auto", cpu)).machine
    state["machine"] = machine | differs
    file.write_text(json.dumps(state), encoding="utf-8")
    result, said = run(recipe, 2, 3, 4)
    assert not result.interrupted
    changed = f"this machine has threads {machine['threads']} (was another), so"
    assert ("this machine has" in said) == (changed in said) == bool(differs)


def test_a_run_keeps_the_sizes_that_it_began_with(recipe: TranslateRecipe, tmp_path: Path) -> None:
    """A recipe without sizes resumes its run, even if other sizes would be chosen now."""
    run(change(recipe, max_steps=2), 1, 2)
    path = tmp_path / "own.toml"
    data = f'src = "{recipe.data.src}"\ntgt = "{recipe.data.tgt}"\ncache = "{recipe.data.cache}"'
    path.write_text(f"[data]\n{data}\n[train]\nmax_steps = 4\n", encoding="utf-8")
    resumed = load_recipe(str(path), [f"out={recipe.out}"])
    assert resumed == change(recipe, max_steps=4)
    assert load_recipe(str(path)).model.d_model == 128


def test_the_card_says_that_a_run_is_unfinished(recipe: TranslateRecipe) -> None:
    """The card shows the progress until the run ends, and is otherwise the same."""
    card = Path(recipe.out) / "README.md"
    limited = replace(recipe, train=replace(recipe.train, max_minutes=45.0))
    interrupt(limited, 3, [1])
    unfinished = card.read_text(encoding="utf-8")
    line = "**Unfinished:** the best model so far of a run that has not ended, at step 2 of 6,"
    assert f"\n\n{line} minute 0 of 45.\n\n" in unfinished
    run(limited, 0, 0, 0)
    assert card.read_text(encoding="utf-8").split("\n\n") == [
        block for block in unfinished.split("\n\n") if "Unfinished" not in block
    ]
    card.unlink()
    run(change(limited, max_steps=7), 0, 0)  # not better, so no card is written
    assert not card.exists()


def test_a_deterministic_run(recipe: TranslateRecipe) -> None:
    """Torch's deterministic algorithms are enabled during the run, and only then."""
    used: list[bool] = []
    scorer = Scorer(
        iter([1, 2, 3, 4]), before=lambda: used.append(torch.are_deterministic_algorithms_enabled())
    )
    handle = register_optimizer_step_post_hook(
        lambda *_: used.append(torch.are_deterministic_algorithms_enabled())
    )
    train_scored(replace(recipe, train=replace(recipe.train, deterministic=True)), scorer)
    handle.remove()
    assert used == [True] * 12
    assert not torch.are_deterministic_algorithms_enabled()


def test_held_out_sources_leave_every_corpus(recipe: TranslateRecipe) -> None:
    """No corpus may teach what another one holds out."""
    same_again = CorpusConfig(src=recipe.data.src, tgt=recipe.data.tgt)
    _, said = run(replace(recipe, data=replace(recipe.data, corpora=(same_again,))), 1, 2, 3, 4)
    assert said.count("36 of 40 pairs are used") == 2
