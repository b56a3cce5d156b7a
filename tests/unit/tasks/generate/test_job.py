"""Training a language model."""

import gzip
import math
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.unit.models.family import DECODER, DECODERS, make_decoder
from tests.unit.models.small import V
from tests.unit.tasks.generate.test_batches import documents_of
from tests.unit.train.made import make_job

from dragoman.data.documents import DocumentDataset
from dragoman.errors import InputError
from dragoman.folder.format import GENERATION, FolderConfig, GenerationDefaults
from dragoman.tasks.generate.batches import PackConfig
from dragoman.tasks.generate.recipe import GenerateRecipe, TextFiles
from dragoman.tasks.generate.task import text_loss
from dragoman.text.train import TokenizerConfig
from dragoman.train.config import TrainConfig
from dragoman.train.job import Validation

PACKING = Literal["stream", "documents"]


def made(count: int = 9, longest: int = 20) -> DocumentDataset:
    """Return documents of random ids."""
    rng = np.random.default_rng(count)
    rows = [[2, *rng.integers(4, V, rng.integers(1, longest)), 3] for _ in range(count)]
    return documents_of(rows, num_chars=1234)


@pytest.mark.parametrize("stride", [1, 5, 16])
def test_the_text_loss_gives_each_token_its_context(stride: int) -> None:
    """Every token is scored once, with at most a window and at least what the stride leaves."""
    model, dataset = make_decoder(DECODERS["llama"]), made()
    ids = dataset.texts.ids.astype(np.int64)
    config = PackConfig(length=16, rows=4, stride=stride)
    found = text_loss(model, dataset, config)
    model.eval()
    nats, count = 0.0, 0
    for place in range(1, len(ids)):
        window = -(-max(0, place - 16) // stride)
        first = max(0, min(window * stride, len(ids) - 1 - 16)) if window else 0
        if ids[place] != 2:
            logits_LV = model(torch.from_numpy(ids[None, first:place]))[0]
            nats += F.cross_entropy(logits_LV[-1], torch.tensor(int(ids[place]))).item()
            count += 1
    assert found.num_tokens == count
    if stride == 16 or (len(ids) - 17) % stride == 0:
        assert found.nats == pytest.approx(nats, rel=1e-9)
    assert found.per_char == pytest.approx(found.nats / 1234)
    assert found.perplexity == pytest.approx(math.exp(found.per_token))


# ---------------------------------------------------------------- recipe and job


@pytest.fixture
def recipe(tmp_path: Path) -> GenerateRecipe:
    """A recipe of a repeated refrain."""
    song = "row row row your boat\ngently down the stream\n" * 40
    (tmp_path / "song.txt").write_text(song, encoding="utf-8")
    return GenerateRecipe(
        description="A refrain.",
        out=str(tmp_path / "run"),
        data=TextFiles(train=(str(tmp_path / "song.txt"),), cache=str(tmp_path / "cache")),
        tokenizer=TokenizerConfig(model="characters", vocab_size=300),
        batch=PackConfig(length=24, rows=4),
        model=replace(DECODERS["llama"], vocab_size=0, d_model=32),
        train=TrainConfig(max_steps=1, device="cpu", precision="fp32"),
    )


def test_the_end_of_the_text_is_held_out(recipe: GenerateRecipe) -> None:
    """A tenth of the text is held out unless files are given, as messages and the card say."""
    job, said = make_job(recipe)
    assert job.validation.num_chars == 180
    assert any("1 document, 1,620 characters" in words for words in said)
    other = Path(recipe.data.train[0]).with_name("other.txt")
    other.write_text("merrily merrily\n", encoding="utf-8")
    data = replace(recipe.data, valid=(str(other),))
    job, _ = make_job(replace(recipe, data=data, out=recipe.out + "2"))
    assert job.validation.num_chars == 16
    card = job.card(Validation(loss=1.0))
    assert any(str(other) in line for line in card.data)
    assert "at least 12 tokens before each" in card.judged
    assert "2 layers, d_model 32" in card.architecture
    assert "dragoman generate" in card.use


@pytest.mark.parametrize(
    ("name", "warned"), [("a.jsonl", True), ("a.jsonl.gz", True), ("a", False)]
)
def test_records_are_learned_as_text_with_a_warning(
    recipe: GenerateRecipe, name: str, *, warned: bool
) -> None:
    """Keys and braces are learned too, which is not intended for chat messages."""
    song = Path(recipe.data.train[0]).read_bytes()
    path = Path(recipe.out).with_name(name)
    path.write_bytes(gzip.compress(song) if name.endswith("gz") else song)
    _, said = make_job(replace(recipe, data=replace(recipe.data, train=(str(path),))))
    assert any(f"{path} is learned as it is, braces" in words for words in said) == warned


def test_a_run_without_text_is_refused(recipe: GenerateRecipe) -> None:
    """Missing texts are reported before a folder is created."""
    with pytest.raises(InputError, match=r"set data\.train"):
        TextFiles().check()
    with pytest.raises(InputError, match=r"nowhere\.txt"):
        replace(recipe.data, valid=("nowhere.txt",)).check()


@pytest.mark.parametrize(
    ("split", "packing", "opening"),
    [("file", "stream", "\n"), ("file", "documents", None), ("line", "stream", None)],
)
def test_prompts_stand_where_training_has_seen_texts(
    recipe: GenerateRecipe, split: Literal["file", "line"], packing: PACKING, opening: str | None
) -> None:
    """Prompts continue whole files, else start documents, unless the recipe says otherwise."""
    data, batch = replace(recipe.data, split=split), replace(recipe.batch, packing=packing)
    changed = replace(recipe, data=data, batch=batch)
    assert changed.generating.opening == opening
    assert changed.generating.context == 24
    chosen = replace(GENERATION, context=99, opening="* ", temperature=0.5)
    assert replace(changed, generation=chosen).generating == chosen


def test_fine_tuning_keeps_the_way_of_generating(recipe: GenerateRecipe) -> None:
    """The generation options are kept, except the context, which is that of the new run."""
    theirs = GenerationDefaults(context=512, opening=None, temperature=0.3)
    folder = FolderConfig(model=DECODER, generation=theirs)
    taken = recipe.taking_over(folder)
    assert taken.generation == replace(theirs, context=None)
    assert taken.generating.context == 24
