"""Recipes that start from a model folder, against which they are compared."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.models.family import DECODERS
from tests.unit.train.made import TINY

from dragoman.errors import InputError
from dragoman.folder.format import ChatTemplate, FolderConfig, GenerationDefaults
from dragoman.nn import Learned
from dragoman.plain import to_plain
from dragoman.tasks.recipes import load_recipe

CONVERSES = FolderConfig(
    format=1,
    model=replace(DECODERS["gpt2"], positions=Learned(max_length=64)),
    generation=GenerationDefaults(max_tokens=9, chat=ChatTemplate()),
)
LEARNED = FolderConfig(format=1, model=replace(TINY, positions=Learned(max_length=64)))


@pytest.mark.parametrize(
    ("config", "text", "refused"),
    [
        (
            CONVERSES,
            'task = "generate"\ndata = {split = "blank-line"}\n'
            'batch = {length = 64, packing = "documents"}\n',
            {
                "data.split=line": r"needs data\.split = .* leave it empty: generation\.chat=$",
                "batch.length=65": r"batch\.length = 65",
            },
        ),
        (LEARNED, "[batch]\nmax_length = 63\n", {"batch.max_length=64": "max_length = 64"}),
    ],
)
def test_a_folder_may_contradict_the_defaults_that_a_recipe_changes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    config: FolderConfig,
    text: str,
    refused: dict[str, str],
) -> None:
    """Only what comes of both is compared: a dialogue model starts its own recipe."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(to_plain(config)), "utf-8")
    (tmp_path / "my.toml").write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    found = load_recipe("my.toml", ["start.model=model"])
    assert found.model == config.model
    for override, message in refused.items():
        with pytest.raises(InputError, match=message):
            load_recipe("my.toml", ["start.model=model", override])
