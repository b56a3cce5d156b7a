"""Runs from random weights with the tokenizer of an earlier run (`tokenizer.path`)."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.train.runs import change, run

from dragoman.errors import InputError
from dragoman.folder.opening import Tokenizers, open_folder
from dragoman.serve.shelf import Served
from dragoman.tasks.folders import arithmetic_of
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.tasks.translate.translator import Translator
from dragoman.text.train import with_specials
from dragoman.train.recipe import given_tokenizers
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import begin_tokenizers


@pytest.fixture
def given(recipe: TranslateRecipe) -> TranslateRecipe:
    """A run of other texts and a larger vocabulary, with the tokenizer of a finished one."""
    run(change(recipe, max_steps=2), 1)
    Path(recipe.data.src or "").write_text("more words than there were\n" * 40, encoding="utf-8")
    tokenizer = replace(recipe.tokenizer, vocab_size=400, path=recipe.out)
    return replace(recipe, out=recipe.out + "-given", tokenizer=tokenizer)


def tokenizers_of(recipe: TranslateRecipe) -> Tokenizers:
    """The tokenizers in the model folder."""
    return open_folder(recipe.out).tokenizers


def test_it_is_taken_and_kept(given: TranslateRecipe) -> None:
    """Both runs have the same tokenizer, and the second resumes when the first is gone."""
    first = given.tokenizer.path or ""
    theirs = given_tokenizers(first)[0]
    assert given.work().vocab_size == given.num_pieces == theirs.vocab_size < 400
    _, said = run(change(given, max_steps=2), 1)
    assert f"The tokenizer is that of {first}; none is trained." in said
    assert "Training a tokenizer" not in said
    assert tokenizers_of(given)[0].content_hash == theirs.content_hash
    shutil.rmtree(first)
    run(given, 2, 3, 0)
    assert tokenizers_of(given)[0].content_hash == theirs.content_hash


def test_tokens_that_it_lacks_are_added(given: TranslateRecipe) -> None:
    """The tokens that are asked for follow the others, from a single file too."""
    path = f"{given.tokenizer.path}/tokenizer.json"
    wanted = replace(given.tokenizer, path=path, specials=("<mask>",))
    run(change(replace(given, tokenizer=wanted), max_steps=2), 1)
    assert tokenizers_of(given)[0].special_id("<mask>") == given_tokenizers(path)[0].vocab_size


def test_tags_of_other_languages_are_no_languages(given: TranslateRecipe, tmp_path: Path) -> None:
    """A run of one pair has none, also with the tokenizer of a multilingual run."""
    tags, path = ["<2en>", "<2fr>"], tmp_path / "tagged.json"
    with_specials(given_tokenizers(given.tokenizer.path or "")[0], tags).save(path)
    tagged = replace(given, tokenizer=replace(given.tokenizer, path=str(path)))
    run(change(tagged, max_steps=2), 1)
    folder = open_folder(tagged.out)
    assert [*folder.src_tokenizer.languages] == ["en", "fr"]
    assert not Translator.of(folder).is_multilingual
    served = Served("m", Path(tagged.out))
    served.open(arithmetic_of("fp32", "cpu"), "cpu")
    assert served.languages == ()


def test_a_token_is_added_once(given: TranslateRecipe, tmp_path: Path) -> None:
    """Also if both the recipe and the task need it: its second id would have no weights."""
    theirs = given_tokenizers(given.tokenizer.path or "")[0]
    wanted = replace(given, tokenizer=replace(given.tokenizer, specials=("<2en>",)))
    folder, said = RunFolder(tmp_path / "new"), list[str]()
    grown, _ = begin_tokenizers(
        wanted, lambda: (theirs, theirs), folder, said.append, ["<2en>", "<2fr>"]
    )
    assert [grown.special_id(name) - theirs.vocab_size for name in ("<2en>", "<2fr>")] == [0, 1]


def test_one_for_each_side(recipe: TranslateRecipe) -> None:
    """Two tokenizers stay two, and do not become a joint vocabulary unnoticed."""
    tied = replace(recipe.model, tie_embeddings="target-output")
    apart = replace(recipe, model=tied, tokenizer=replace(recipe.tokenizer, joint=False))
    run(change(apart, max_steps=2), 1)
    other = replace(apart, out=recipe.out + "-given")
    taken = replace(apart.tokenizer, path=apart.out)
    with pytest.raises(InputError, match=r"for each side; set tokenizer\.joint = false"):
        run(replace(other, tokenizer=replace(taken, joint=True)), 1)
    run(change(replace(other, tokenizer=taken), max_steps=2), 1)
    hashes = [[each.content_hash for each in tokenizers_of(run)] for run in (apart, other)]
    assert hashes[0] == hashes[1]


def test_those_of_others_are_refused(given: TranslateRecipe, tmp_path: Path) -> None:
    """A file that is not ours is refused by name, even with our pieces as added or other ids."""
    ours = Path(given.tokenizer.path or "") / "tokenizer.json"
    state = json.loads(ours.read_text(encoding="utf-8"))
    end = {"id": 3, "content": "</s>", "special": True}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    exported = json.dumps({**state, "added_tokens": [end | flags]})
    vocab = state["model"]["vocab"]
    vocab["<0x00>"], vocab[max(vocab)] = vocab[max(vocab)], vocab["<0x00>"]
    files = {"exported.json": exported, "other.json": json.dumps(state), "spm.model": "\n\5\n<unk>"}
    for name, content in files.items():
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        with pytest.raises(InputError, match=f"^tokenizer.path = {path} is neither .*--from"):
            given_tokenizers(str(path))
    with pytest.raises(InputError, match="There is no file"):
        given_tokenizers(str(tmp_path / "nothing"))
