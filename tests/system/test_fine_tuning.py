"""`dragoman train --from`: a folder, often of Hugging Face, goes on learning, and answers."""

import shutil
from pathlib import Path

import pytest
from tests.foreign_folders import set_keys
from tests.parity.test_foreign_texts import CODES, make_folder
from tests.parity.test_verify import make
from tests.system.conftest import CommandLine
from tests.system.corpora import SMALL, reversed_digits
from tests.unit.train.encoder_recipes import labelled_file

from dragoman.folder.opening import open_folder
from dragoman.tasks.folders import read_folder

RECIPE = """
task = "{task}"
[data]
{data}
[batch]
{batch}
[train]
max_steps = 2
warmup_steps = 1
save_every = 1
device = "cpu"
precision = "fp32"
"""
STARTS = {
    "translate": "bart",
    "generate": "qwen2",
    "pretrain": "bert-words",
    "classify": "bert-words",
}
VERBS = ("translate", "generate", "classify")


def recipe(folder: Path, task: str) -> Path:
    """Write the recipe of a task and its texts."""
    text = folder / "text"
    text.write_text("A man in an orange hat.\nEin Mann.\n" * 30, encoding="utf-8")
    data, batch = f'train = "{text}"', "max_tokens = 200\nmax_length = 40"
    match task:
        case "translate":
            other = shutil.copy(text, folder / "other")
            data = f'src = "{text}"\ntgt = "{other}"'
        case "generate":
            data, batch = f'train = ["{text}"]\nsplit = "line"', "rows = 2\nlength = 16"
        case "pretrain":
            data = f'texts = ["{text}"]'
        case "classify":
            data = f'train = "{labelled_file(folder / "texts.tsv")}"'
    path = folder / f"{task}.toml"
    path.write_text(RECIPE.format(task=task, data=data, batch=batch), encoding="utf-8")
    return path


@pytest.mark.parametrize("task", STARTS)
def test_a_folder_of_hugging_face_goes_on_learning(
    task: str, dragoman: CommandLine, tmp_path: Path
) -> None:
    """With its own tokenizer, which the model folder keeps: it needs the old folder no more."""
    start, out = make(tmp_path / "theirs", STARTS[task]), tmp_path / "run"
    said = dragoman.run("train", recipe(tmp_path, task), "--from", start, "--out", out).succeeded()
    assert "none is trained" in said
    kept = {path.name: path.read_bytes() for path in (out / "huggingface").iterdir()}
    for path in start.glob("*.json"):
        assert kept[path.name] == path.read_bytes()
    for path in start.iterdir():
        path.unlink()
    if task in VERBS:
        lines = tmp_path / "lines"
        lines.write_text("A man in a hat.\n", encoding="utf-8")
        given = ("--file", lines, "--max-tokens", 3) if task == "generate" else (lines,)
        dragoman.run(task, out, *given).succeeded()
    if task in ("translate", "generate"):
        dragoman.run("convert", out, tmp_path / "back", "--to", "huggingface").succeeded()


def test_an_instruct_model_goes_on_learning(dragoman: CommandLine, tmp_path: Path) -> None:
    """Its config names other tokens than its tokenizer; what ended a text of it still does."""
    start, out = make(tmp_path / "theirs", "qwen2"), tmp_path / "run"
    for file in ("config.json", "generation_config.json"):
        set_keys(start, file, bos_token_id=8, eos_token_id=[7, 5])
    said = dragoman.run("train", recipe(tmp_path, "generate"), "--from", start, "--out", out)
    said.succeeded()
    published = open_folder(out).config.published
    assert published is not None
    assert published.ends == (7, 5)


@pytest.mark.parametrize("name", ["m2m100", "mbart"])
def test_a_model_of_many_languages_learns_two(
    name: str, dragoman: CommandLine, tmp_path: Path
) -> None:
    """What is written translates between them, needs no option for it and may be told another."""
    (start := tmp_path / "theirs").mkdir()
    make_folder(start, name)
    src, tgt = CODES[name]
    for side, line in {"en": "A man in an orange hat.", "de": "Ein Mann."}.items():
        (tmp_path / f"a.{side}").write_text(f"{line}\n" * 30, encoding="utf-8")
    command = ("train", "--from", start, "--src", tmp_path / "a.en", "--tgt", tmp_path / "a.de")
    limits = ("train.max_steps=2", "train.save_every=1", "batch.max_tokens=200")
    out, languages = tmp_path / "run", ("--src-lang", src, "--tgt-lang", tgt)
    chosen = () if name == "m2m100" else languages  # whose codes the files' endings are
    dragoman.run(*command, "--out", out, *chosen, *limits).succeeded()
    wrong = dragoman.run(*command, "--out", tmp_path / "x", "--tgt-lang", f"{tgt}x")
    assert "did you mean" in wrong.said
    for path in start.iterdir():
        path.unlink()
    alone, said, other = (
        dragoman.run("translate", out, tmp_path / "a.en", *given)
        for given in ((), languages, ("--tgt-lang", src))
    )
    assert alone.code == other.code == 0, alone.said
    texts = [ended.said.splitlines()[0] for ended in (alone, said, other)]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize("task", ["translate", "classify"])
def test_adapters_of_a_folder_of_hugging_face(
    task: str, dragoman: CommandLine, tmp_path: Path
) -> None:
    """They are a model with the folder that they adapt; the run's folder is one by itself.

    It resumes without the folder that it adapts.
    """
    start, out = make(tmp_path / "theirs", STARTS[task]), tmp_path / "run"
    run = ("train", recipe(tmp_path, task), "--from", start, "--out", out, "start.lora.rank=2")
    dragoman.run(*run).succeeded()
    lines = tmp_path / "lines"
    lines.write_text("A man in a hat.\n", encoding="utf-8")
    merged = dragoman.run(task, out, lines)
    assert merged.code == 0, merged.said
    if task != "classify":  # whose head stands in the run's folder only
        adapted = dragoman.run(task, out / "adapter", lines)
        assert adapted.code == 0, adapted.said
        assert adapted.said.splitlines()[0] == merged.said.splitlines()[0]
    shutil.rmtree(start)
    said = dragoman.run(*run, "train.max_steps=3").succeeded()
    assert "Resuming from step 2." in said


def test_by_adapters(dragoman: CommandLine, tmp_path: Path) -> None:
    """LoRA: resumed, also without its base, it ends with the same bits; adapters are the model."""
    (src, tgt), runs = reversed_digits(tmp_path, 80), (tmp_path / "one", tmp_path / "two")
    steps = ("train.max_steps=3", "train.precision=fp32", "train.device=cpu")
    files, model = ("--src", src, "--tgt", tgt), tmp_path / "model"
    dragoman.run("train", *files, "--out", model, *SMALL, *steps).succeeded()
    rates = ("start.lora.rank=2", "train.deterministic=true", "train.learning_rate=0.05")
    settings = (*rates, "train.warmup_steps=0", "train.schedule=constant", "train.metric=loss")
    command = ("train", "--from", model, *files, *steps, *settings, "train.save_every=1")
    for out, number in ((runs[0], 4), (runs[1], 2), (runs[1], 4)):
        if out.exists():
            model.rename(tmp_path / "gone")
        said = dragoman.run(*command, "--out", out, f"train.max_steps={number}").succeeded()
    (tmp_path / "gone").rename(model)
    assert "of them frozen" in said
    assert "Resuming from step 2" in said
    names = ("model.safetensors", "adapter/adapter_model.safetensors")
    for name in names:
        assert (runs[0] / name).read_bytes() == (runs[1] / name).read_bytes()
    assert (runs[0] / names[0]).read_bytes() != (model / names[0]).read_bytes()
    merged, base = (open_folder(folder).model.state_dict() for folder in (runs[0], model))
    read = read_folder(runs[0] / "adapter", device="cpu").model.state_dict()
    moved = [name for name in base if not merged[name].equal(base[name])]
    assert moved
    assert all("q_proj" in name or "kv_proj" in name for name in moved)
    for name, weight in merged.items():
        assert read[name].allclose(weight, atol=1e-6)
