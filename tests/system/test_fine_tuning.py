"""`dragoman train --from`: a model folder goes on learning from other texts."""

import subprocess
from pathlib import Path

import pytest
from tests.system.conftest import CommandLine
from tests.system.corpora import SMALL, reversed_digits

from dragoman.folder.opening import open_folder
from dragoman.tasks.folders import read_folder

STEPS = ("train.max_steps=3", "train.precision=fp32", "train.device=cpu")


@pytest.fixture(scope="module")
def model(server: "subprocess.Popen[str]", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has hardly learnt."""
    folder = tmp_path_factory.mktemp("start")
    texts, out = given(folder, 60), folder / "model"
    CommandLine(server, folder).run("train", *texts, "--out", out, *SMALL, *STEPS).succeeded()
    return out


def given(folder: Path, count: int = 80) -> tuple[object, ...]:
    """Options for texts."""
    src, tgt = reversed_digits(folder, count)
    return ("--src", src, "--tgt", tgt)


def test_a_model_of_several_directions(dragoman: CommandLine, tmp_path: Path) -> None:
    """What is said to come next names the languages that were learned, of all that there are."""
    languages = ("--src-lang", "de", "--tgt-lang", "en")
    both, tuned = tmp_path / "both", tmp_path / "tuned"
    words = (*given(tmp_path), *languages, *STEPS)
    ways = ('data.directions=["en-de", "de-en"]', "tokenizer.vocab_size=320")
    dragoman.run("train", *words, "--out", both, *SMALL, *ways).succeeded()
    said = dragoman.run("train", *words, "--from", both, "--out", tuned).succeeded()
    assert f"translate {tuned} --src-lang de --tgt-lang en < FILE" in " ".join(said.split())


def test_by_adapters(dragoman: CommandLine, model: Path, tmp_path: Path) -> None:
    """LoRA: resumed, also without its base, it ends with the same bits; adapters are the model."""
    files, runs = given(tmp_path), (tmp_path / "one", tmp_path / "two")
    rates = ("start.lora.rank=2", "train.deterministic=true", "train.learning_rate=0.05")
    settings = (*rates, "train.warmup_steps=0", "train.schedule=constant", "train.metric=loss")
    command = ("train", "--from", model, *files, *STEPS, *settings, "train.save_every=1")
    for out, steps in ((runs[0], 4), (runs[1], 2), (runs[1], 4)):
        if out.exists():
            model.rename(tmp_path / "gone")
        said = dragoman.run(*command, "--out", out, f"train.max_steps={steps}").succeeded()
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
