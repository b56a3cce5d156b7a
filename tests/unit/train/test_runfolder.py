"""The folder of a run."""

import fcntl
import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Timer

import pytest
from tests.disk import Disk
from tests.unit.train.made import file_size_limit

from dragoman.errors import DragomanError, InputError
from dragoman.files.writing import locked
from dragoman.settings import override_settings
from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe
from dragoman.train.config import TrainConfig
from dragoman.train.progress import Progress
from dragoman.train.runfolder import LOCK, RunFolder

TRAIN = TrainConfig(max_steps=10)


@pytest.fixture
def recipe(tmp_path: Path) -> TranslateRecipe:
    """A recipe whose run folder does not exist yet."""
    return TranslateRecipe(
        out=str(tmp_path / "run"), data=DataConfig(src="a", tgt="b"), train=TRAIN
    )


def begin(recipe: TranslateRecipe, *, learned: bool = True) -> RunFolder:
    """Open the folder as a run does, and save a checkpoint."""
    with RunFolder.of(recipe).open(recipe) as folder:
        if learned:
            (folder.checkpoints / "step-00000005").mkdir(parents=True, exist_ok=True)
    return folder


def test_changed_settings_are_named(recipe: TranslateRecipe) -> None:
    """Changes to settings that affect the numbers are refused by name."""
    begin(recipe)
    other = replace(recipe, train=replace(TRAIN, seed=2), model=replace(recipe.model, d_model=256))
    with pytest.raises(InputError, match=r"\(model.d_model, train.seed; model.d_model was 512, is"):
        begin(other)
    begin(recipe)


def test_free_settings(recipe: TranslateRecipe) -> None:
    """Limits, settings without effect on the numbers, saving and batches may change."""
    begin(recipe)
    train = replace(TRAIN, max_steps=20, max_minutes=3.0, patience=2, log_every=1, tracker="wandb")
    data = replace(recipe.data, cache="/c", root="/r")
    begin(replace(recipe, train=train, data=data, description="Other words."))
    train, batch = replace(train, save_every=7, accumulate=3), replace(recipe.batch, max_tokens=9)
    folder = begin(replace(recipe, train=train, batch=batch))
    saved = json.loads((folder.training / "recipe.json").read_text(encoding="utf-8"))
    assert saved["train"]["max_steps"] == 20
    assert [path.name for path in folder.training.glob(".*")] == [".lock"]


def test_a_run_that_learned_nothing_begins_anew(
    recipe: TranslateRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the first command had a wrong path, the corrected one works in the same folder.

    If it is killed at any moment, another run can still start in the folder.
    """
    training = begin(recipe, learned=False).training
    (training / "tokenizer.json").write_text("of the wrong text", encoding="utf-8")
    unlink, known = Path.unlink, list[bool]()

    def watched(path: Path) -> None:
        unlink(path)
        known.append((training / "recipe.json").exists())

    monkeypatch.setattr(Path, "unlink", watched)
    begin(replace(recipe, data=DataConfig(src="right", tgt="b")), learned=False)
    assert known == [True]
    assert {path.name for path in training.iterdir()} == {".lock", "recipe.json"}


def test_a_folder_with_a_model_has_learned(recipe: TranslateRecipe) -> None:
    """A model saved before the first checkpoint is not deleted."""
    folder = begin(recipe, learned=False)
    (folder.path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="other settings"):
        begin(replace(recipe, train=replace(TRAIN, seed=2)))


def test_foreign_folder(recipe: TranslateRecipe, tmp_path: Path) -> None:
    """A file, or a folder with other contents, is not changed."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("years of work", encoding="utf-8")
    with pytest.raises(InputError, match="is not the folder of a training run"):
        begin(recipe)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.tex"]
    with pytest.raises(InputError, match="is not the folder of a training run"):
        begin(replace(recipe, out=str(tmp_path / "run" / "thesis.tex")))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("file/run", "Not a directory"),
        ("n" * 300, "File name too long"),
        ("run/" + "n" * 300, "File name too long"),
    ],
)
def test_where_no_folder_can_be(
    recipe: TranslateRecipe, tmp_path: Path, name: str, reason: str
) -> None:
    """A path below a file, an invalid name or no name is reported in one sentence."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=f"Cannot write to .*: {reason}; give another --out"):
        begin(replace(recipe, out=str(tmp_path / name)))
    with pytest.raises(InputError, match="give --out DIR"):
        begin(replace(recipe, out=""))


def test_a_finished_run(recipe: TranslateRecipe) -> None:
    """The message says that the run is finished and what to do next, for any task."""
    begin(recipe).mark_finished("10 steps", Progress(step=10, best={"loss": 1.0}))
    with pytest.raises(
        InputError, match=r"is finished \(step 10, 10 steps\); look .* dragoman inspect"
    ):
        begin(recipe)


@pytest.mark.parametrize(
    "change", [["train.max_steps=20"], ["train.max_minutes=1"], ["train.patience=3"]]
)
def test_a_finished_run_goes_on(recipe: TranslateRecipe, change: list[str]) -> None:
    """With another limit a finished run continues, and is unfinished until it ends again."""
    begin(recipe).mark_finished("10 steps", Progress(step=10))
    more = override_settings(recipe, change)
    folder = begin(more)
    assert not (folder.training / "finished.json").exists()
    assert begin(more) == folder


def test_the_exported_model_is_remembered(recipe: TranslateRecipe) -> None:
    """The score of the finished run's model is restored on resuming, also the second time."""
    assert begin(recipe).exported is None
    begin(recipe).mark_finished("10 steps", Progress(step=10, best={"loss": 1.0}))
    more = override_settings(recipe, ["train.max_steps=20"])
    assert begin(more).exported == {"loss": 1.0}
    assert begin(more).exported == {"loss": 1.0}
    before = begin(more).training / "finished.before.json"
    before.write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match=r"finished\.before\.json is damaged"):
        _ = begin(more).exported


def test_damaged_files(recipe: TranslateRecipe) -> None:
    """A recipe or marker that is not valid is reported in one sentence."""
    folder = begin(recipe, learned=False)
    for text in ("{", "{}", "[]"):
        (folder.training / "finished.json").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=r"finished\.json is damaged"):
            begin(recipe)
    for text in ("{", "[]", ""):
        (folder.training / "recipe.json").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=r"recipe\.json is damaged .*give another --out"):
            begin(recipe)


def test_the_files_of_a_run_survive_a_power_failure(recipe: TranslateRecipe, disk: Disk) -> None:
    """The recipe and the marker are synced to disk before they get their names."""
    begin(recipe).mark_finished("10 steps", Progress(step=10))
    begin(override_settings(recipe, ["train.max_steps=20"]))
    disk.assert_renamed("recipe.json", "finished.json", "finished.before.json", "recipe.json")


def test_full_disk_at_the_end(recipe: TranslateRecipe) -> None:
    """A marker that cannot be written is reported in one sentence, and no part of it is left."""
    folder = begin(recipe)
    with file_size_limit(5), pytest.raises(DragomanError, match="Cannot write to"):
        folder.mark_finished("10 steps", Progress(step=10))
    assert not (folder.training / "finished.json").exists()
    begin(recipe)


def test_one_run_at_a_time(recipe: TranslateRecipe) -> None:
    """While a run has a folder open, another is refused and changes nothing."""
    with RunFolder.of(recipe).open(recipe) as folder:
        (folder.training / "tokenizer.json").write_text("mine", encoding="utf-8")
        other = replace(recipe, train=replace(TRAIN, seed=2))
        with pytest.raises(InputError, match=r"another process is training in .*run; wait"):
            begin(other)
        assert (folder.training / "tokenizer.json").exists()
    assert begin(other) == folder


def test_a_listing_refuses_no_run(recipe: TranslateRecipe) -> None:
    """A listing holds the lock briefly, and a run that starts then waits for it."""
    training = begin(recipe).training
    with ExitStack() as listing:
        listing.enter_context(locked(training / LOCK, wait=False, shared=True))
        Timer(0.1, listing.close).start()
        assert begin(recipe).training == training


def test_what_is_there_is_known_under_the_lock(
    recipe: TranslateRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that another process starts just before the lock is taken is not overwritten."""
    other, flock = replace(recipe, train=replace(TRAIN, seed=2)), fcntl.flock

    def begun_meanwhile(descriptor: int, operation: int) -> None:
        monkeypatch.undo()
        begin(other)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", begun_meanwhile)
    with pytest.raises(InputError, match=r"other settings \(train\.seed"):
        begin(recipe)
    begin(other)


@pytest.mark.parametrize("there", [False, True])
def test_a_refused_run_leaves_no_folder(recipe: TranslateRecipe, *, there: bool) -> None:
    """A run that is refused before its first step leaves the folder as it found it."""
    out = Path(recipe.out)
    if there:
        out.mkdir()
    with pytest.raises(InputError, match="no text"), RunFolder.of(recipe).open(recipe):
        raise InputError("no text")
    assert out.exists() == there
    assert not there or not list(out.iterdir())
    for learned in (False, True):
        training = begin(recipe, learned=learned).training
        before = list(training.iterdir())
        with pytest.raises(InputError, match="no text"), RunFolder.of(recipe).open(recipe):
            raise InputError("no text")
        assert list(training.iterdir()) == before


def test_settings_younger_than_the_run(recipe: TranslateRecipe) -> None:
    """Runs of older versions, which had fewer settings, can be resumed."""
    path = begin(recipe).training / "recipe.json"
    old = json.loads(path.read_text(encoding="utf-8"))
    del old["start"], old["train"]["activation_checkpointing"]
    old["train"]["metric"] = "bleu"  # today the task's own default
    path.write_text(json.dumps(old), encoding="utf-8")
    begin(recipe)
    path.write_text(json.dumps(old), encoding="utf-8")
    with pytest.raises(InputError, match=r"train\.metric was 'bleu', is 'chrf'"):
        begin(replace(recipe, train=replace(TRAIN, metric="chrf")))


def test_a_path_that_is_not_utf8_is_refused(recipe: TranslateRecipe) -> None:
    """At once: the model could be written there, but not loaded."""
    with pytest.raises(InputError, match="is not UTF-8"):
        begin(replace(recipe, out=f"{recipe.out}-caf\udce9"))


def test_a_run_of_another_task(recipe: TranslateRecipe) -> None:
    """The error says that the folder has a run of another task."""
    path = begin(recipe).training / "recipe.json"
    path.write_text('{"task": "classify"}', encoding="utf-8")
    with pytest.raises(InputError, match='run of task = "classify", not "translate"'):
        begin(recipe)
