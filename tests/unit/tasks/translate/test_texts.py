"""Reading texts from files, and their tokenizers."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.disk import Disk
from tests.unit.train.encoder_recipes import classify_recipe, masked_recipe, tag_recipe
from tests.unit.train.made import file_size_limit, make_job

from dragoman.data.dataset import format_held_out
from dragoman.errors import DragomanError, InputError
from dragoman.tasks.hiding import NoisyBatchConfig
from dragoman.tasks.task import find_task
from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe
from dragoman.tasks.translate.texts import read_texts
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.train import TokenizerConfig
from dragoman.train.job import unchecked
from dragoman.train.recipe import RunRecipe
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import begin_tokenizer


def make_recipe(
    tmp_path: Path, lines: list[str], valid: list[str] | None = None
) -> TranslateRecipe:
    """Return a recipe for pairs of equal lines."""
    names = {}
    for name, texts in (("train", lines), ("valid", valid)):
        if texts is not None:
            names[name] = str(tmp_path / name)
            (tmp_path / name).write_text("".join(f"{text}\n" for text in texts))
    data = DataConfig(
        src=names["train"],
        tgt=names["train"],
        valid_src=names.get("valid"),
        valid_tgt=names.get("valid"),
        cache=str(tmp_path / "cache"),
    )
    return TranslateRecipe(
        data=data, tokenizer=TokenizerConfig(vocab_size=300), batch=NoisyBatchConfig(max_length=8)
    )


validated = partial(make_recipe, lines=["one two"] * 20, valid=["one"] * 20)


@pytest.mark.parametrize("lines", [["word " * 100], [" ", ""]], ids=["too long", "empty"])
def test_nothing_can_be_held_out(tmp_path: Path, lines: list[str]) -> None:
    """The error does not mention validation files; what was left out is reported before."""
    said: list[str] = []
    told = r"train has no pair with text on both sides and at most 8 tokens"
    with pytest.raises(InputError, match=told):
        read_texts(make_recipe(tmp_path, lines), RunFolder(tmp_path), said.append)
    assert any(" used." in sentence for sentence in said)


def test_a_validation_corpus_needs_a_pair(tmp_path: Path) -> None:
    """The error names the validation corpus."""
    recipe = make_recipe(tmp_path, ["one", "two", "three"], [" ", ""])
    with pytest.raises(InputError, match=r"validation corpus .*valid holds no pair"):
        read_texts(recipe, RunFolder(tmp_path), print)


def test_pairs_like_those_held_out_are_counted(tmp_path: Path) -> None:
    """All pairs that training loses are counted, including those with the same source."""
    recipe = make_recipe(tmp_path, ["one", "two", "three", "four", "five"] * 4)
    said: list[str] = []
    texts = read_texts(recipe, RunFolder(tmp_path), said.append)
    held = len(texts.validation[0])
    lost = 20 - int(texts.training[0].usable(8).sum()) - held
    assert lost >= 2
    assert any(f"held out for it; {lost} more with the source of one of" in s for s in said)
    assert "more" not in format_held_out("a", 2, 0, "pair")


def learn_two(folder: Path, *, joint: bool = False) -> None:
    """Train tokenizers of source and target, or one for both."""
    recipe = make_recipe(folder, ["one two", "two three"])
    tokenizer = replace(recipe.tokenizer, joint=joint)
    model = replace(recipe.model, tie_embeddings="none")
    read_texts(replace(recipe, tokenizer=tokenizer, model=model), RunFolder(folder), lambda _: None)


learn_joint = partial(learn_two, joint=True)


def learn_one(folder: Path) -> None:
    """Train a tokenizer of single texts."""
    begin_tokenizer(
        classify_recipe(folder), ["one two", "three"], RunFolder(folder), lambda _: None
    )


@pytest.mark.parametrize("learn", [learn_two, learn_joint, learn_one])
def test_kept_tokenizers_survive_a_power_failure(
    learn: Callable[[Path], None], tmp_path: Path, disk: Disk
) -> None:
    """They are synced to disk before they get their names, since resuming needs them."""
    learn(tmp_path)
    names = ["tokenizer.src.json", "tokenizer.tgt.json"]
    names = names if learn is learn_two else ["tokenizer.json"]
    assert disk.renamed()[: len(names)] == names
    disk.check()


@pytest.mark.parametrize("learn", [learn_two, learn_joint, learn_one])
def test_a_tokenizer_has_its_name_when_it_is_whole(
    learn: Callable[[Path], None], tmp_path: Path
) -> None:
    """If a run ends while it writes one, here on a full disk, no tokenizer is left."""
    with file_size_limit(2_000), pytest.raises(DragomanError, match="Cannot write"):
        learn(tmp_path)
    assert not list((tmp_path / "training").glob("tokenizer*"))
    learn(tmp_path)
    for path in (tmp_path / "training").glob("tokenizer*"):
        Tokenizer.load(path)
    assert not list((tmp_path / "training").glob(".tokenizer*"))


@pytest.mark.parametrize("make", [classify_recipe, tag_recipe, masked_recipe])
def test_texts_like_those_held_out_are_counted(
    tmp_path: Path, make: Callable[[Path], RunRecipe]
) -> None:
    """This holds in every task that holds out texts; here twenty texts come four times each."""
    recipe = make(tmp_path)
    words = [f"{number} {number}" for number in range(20)] * 4
    labelled = "".join(f"{number % 2}\t{text}\n" for number, text in enumerate(words))
    tagged = "".join(f"{text.split()[0]} O\nAnn B-PER\n\n" for text in words)
    (tmp_path / "texts.tsv").write_text(labelled, encoding="utf-8")
    (tmp_path / "words.conll").write_text(tagged, encoding="utf-8")
    _, said = make_job(recipe)
    assert any("more with the text of one of these" in sentence for sentence in said), said


@pytest.mark.parametrize(
    ("make", "key"), [(validated, "valid_tgt"), (classify_recipe, "valid"), (tag_recipe, "valid")]
)
def test_a_faulty_file_is_found_before_a_tokenizer_is_trained(
    tmp_path: Path, make: Callable[[Path], Any], key: str
) -> None:
    """The validation file is checked as well."""
    wrong = tmp_path / "wrong"
    wrong.write_text("one\nword\n", encoding="utf-8")
    recipe, said = make(tmp_path), list[str]()
    recipe = replace(recipe, data=replace(recipe.data, **{key: str(wrong)}))
    with pytest.raises(InputError, match=r"wrong (line 1|has 2)"):
        find_task(recipe.task).assemble(recipe, RunFolder(tmp_path), said.append, unchecked)
    assert not said
