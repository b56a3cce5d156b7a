"""Recipes that define several runs."""

from pathlib import Path

import pytest

from dragoman.data.documents import standard_library
from dragoman.errors import InputError
from dragoman.tasks.generate.recipe import GenerateRecipe, TextFiles
from dragoman.tasks.recipes import load_recipe, load_sweep
from dragoman.train.runfolder import RunFolder

RECIPE = """
task = "generate"
data.train = ["a.txt"]
model = {d_model = 64, num_heads = 4}
train = {max_steps = 10, learning_rate = 1e-3}
[[sweep]]
size.a = {model.d_model = 32}
size.b = {model = {d_model = 48}, train.learning_rate = 2e-3}
length.x = {train.max_steps = 100}
length.y = {train.max_steps = 200}
[[sweep]]
size.c = {model.d_model = 96}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write the sweep to a file."""
    file = tmp_path / "sweep.toml"
    file.write_text(RECIPE, encoding="utf-8")
    return file


def test_a_sweep_is_all_combinations(path: Path) -> None:
    """Each grid is the product of its axes, in order, on top of the shared settings."""
    runs = load_sweep(str(path), ["out=runs/all", "train.seed=7"])
    told = [(r.out, r.model.d_model, r.train.max_steps, r.train.learning_rate) for r in runs]
    assert told == [
        (str(Path("runs/all/a-x")), 32, 100, 1e-3),
        (str(Path("runs/all/a-y")), 32, 200, 1e-3),
        (str(Path("runs/all/b-x")), 48, 100, 2e-3),
        (str(Path("runs/all/b-y")), 48, 200, 2e-3),
        (str(Path("runs/all/c")), 96, 10, 1e-3),
    ]
    assert {(run.model.num_heads, run.train.seed) for run in runs} == {(4, 7)}


def test_what_the_runs_share_is_a_recipe(path: Path) -> None:
    """As a single recipe, the file is the shared part; a recipe without runs is not a sweep."""
    assert load_recipe(str(path)).model.d_model == 64
    assert load_sweep("tinyshakespeare") == []


def test_overrides_of_what_the_sweep_sets_are_refused(path: Path) -> None:
    """The error names the override, a run and the key."""
    for override in ("train.max_steps=5", "model={d_model = 8}"):
        with pytest.raises(InputError, match="contradicts the sweep, whose run a-x sets"):
            load_sweep(str(path), [override])


@pytest.mark.parametrize("sweep", ["sweep = 3", "sweep = [1]", "[[sweep]]\nsize = 3", "sweep = {}"])
def test_a_sweep_of_another_form_is_refused(path: Path, sweep: str) -> None:
    """A table that is not a list of grids is an error that shows the syntax."""
    lines = RECIPE.partition("[[sweep]]")[0]
    path.write_text(lines + sweep, encoding="utf-8")
    with pytest.raises(InputError, match=r"write \[\[sweep\]\]"):
        load_sweep(str(path))


def test_a_run_is_finished_only_as_it_was(path: Path, tmp_path: Path) -> None:
    """A run is finished if it ended with the same settings and limits."""
    run, other = load_sweep(str(path), [f"out={tmp_path / 'runs'}"])[:2]
    folder = RunFolder(Path(run.out))
    assert not folder.is_finished(run)
    with RunFolder.of(run).open(run):
        assert not folder.is_finished(run)
    (folder.training / "finished.json").write_text("{}", encoding="utf-8")
    assert folder.is_finished(run)
    again = load_sweep(str(path), [f"out={tmp_path / 'runs'}", "train.log_every=3"])[0]
    assert folder.is_finished(again)
    assert not folder.is_finished(other)


def test_the_shipped_sweep_grows() -> None:
    """It has twelve runs in a grid, and one with more parameters and tokens than all of them."""
    *grid, larger = load_sweep("scaling-sweep", ["out=runs/sweep"])
    assert len(grid) == 12
    assert larger.model.d_model > max(run.model.d_model for run in grid)
    assert (larger.train.max_steps or 0) > max(run.train.max_steps or 0 for run in grid)
    assert len({run.out for run in grid}) == 12
    assert all(run.train.decays_to_zero for run in (*grid, larger))


def test_the_library_is_there_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own sources are found in a fixed order, none empty, and without tests.

    A Python without sources is told, with what to do.
    """
    files = standard_library()
    assert files == standard_library() == sorted(files)
    assert all(path.stat().st_size for path in files)
    assert {"argparse.py", "typing.py"} <= {path.name for path in files}
    assert not any({"test", "site-packages"} & set(path.parts) for path in files)
    monkeypatch.setattr("sysconfig.get_paths", lambda: {"stdlib": str(tmp_path)})
    with pytest.raises(InputError, match=r"has no sources .*\(data\.train"):
        standard_library()


def test_a_recipe_learns_from_the_library_or_from_files() -> None:
    """`data.library` needs no files, and conflicts with them."""
    recipe = GenerateRecipe(data=TextFiles(library="python"))
    assert recipe.data.training == standard_library()
    recipe.data.check()
    with pytest.raises(InputError, match=r"library contradicts data\.train"):
        TextFiles(library="python", train=("a.txt",))
    for others in ({"library": "python"}, {"train": ("a.txt",)}, {"valid": ("a.txt",)}):
        with pytest.raises(InputError, match="made contradicts data"):
            TextFiles(made="town", **others)
