"""Multilingual models: recipes, training, and the choice of languages."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.tasks.tiny import save_several, save_translator
from tests.unit.train.made import TINY
from tests.unit.train.made import trained as train

import dragoman
from dragoman.convert.probe import two_languages
from dragoman.convert.targets import convert
from dragoman.data.corpus import CorpusConfig
from dragoman.errors import InputError
from dragoman.folder.opening import open_folder
from dragoman.lens.choices import Choices
from dragoman.lens.contents import contents_of
from dragoman.lens.inspecting import inspect_folder
from dragoman.nn import Learned
from dragoman.serve.admission import AdmissionQueue
from dragoman.serve.metrics import ServeMetrics
from dragoman.serve.refusals import Refusal
from dragoman.serve.settings import ServeSettings
from dragoman.serve.shelf import Served, Shelf
from dragoman.tasks.evaluation import EvaluationData
from dragoman.tasks.hiding import NoisyBatchConfig
from dragoman.tasks.translate.job import assemble
from dragoman.tasks.translate.measuring import evaluate_translator
from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe
from dragoman.tasks.translate.texts import read_texts
from dragoman.tasks.translate.translator import Translator
from dragoman.text.train import TokenizerConfig
from dragoman.train.config import TrainConfig
from dragoman.train.job import Validation
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import start_from

DIGITS = "0123456789"
TRAIN = TrainConfig(
    max_steps=60, validate_every=60, validate_limit=10, device="cpu", precision="fp32"
)


def write_digits(folder: Path) -> None:
    """Write digits and, line by line, the next (up), the one before (down) or two on (far)."""
    for name, step in (("n", 0), ("up", 1), ("down", -1), ("far", 2)):
        digits = "".join(f"{(int(digit) + step) % 10}\n" for digit in DIGITS * 20)
        (folder / name).write_text(digits)


def recipe_of(folder: Path, *languages: str, directions: Sequence[str] = ()) -> TranslateRecipe:
    """Return a recipe from digits to each of these languages, or in these directions."""
    write_digits(folder)
    src = str(folder / "n")
    corpora = tuple(
        CorpusConfig(src=src, tgt=str(folder / name), src_lang="n", tgt_lang=name)
        for name in languages
    )
    cache = str(folder / "cache")
    return TranslateRecipe(
        out=str(folder / "run"),
        data=DataConfig(corpora=corpora, valid=corpora, directions=tuple(directions), cache=cache),
        tokenizer=TokenizerConfig(vocab_size=310),
        batch=NoisyBatchConfig(max_tokens=400),
        model=replace(TINY, src_vocab_size=0, tgt_vocab_size=0, d_model=32, num_heads=4, d_ff=64),
        train=replace(TRAIN, learning_rate=1e-2, warmup_steps=10, label_smoothing=0.0),
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A model that was trained in two directions, and the messages."""
    folder = tmp_path_factory.mktemp("many")
    _, said = train(recipe_of(folder, "up", "down", directions=("n-up", "n-down")))
    return folder / "run", said


@pytest.fixture
def translator(trained: tuple[Path, str]) -> Translator:
    """The translator of the folder."""
    found = dragoman.load(trained[0], device="cpu")
    assert isinstance(found, Translator)
    return found


def assert_learnt(translator: Translator, language: str, step: int) -> list[str]:
    """Check that a translation into the language adds `step`, and return the right answers."""
    found = translator.between("n", language).translate(list(DIGITS))
    right = [str((int(digit) + step) % 10) for digit in DIGITS]
    assert sum(one.text == wanted for one, wanted in zip(found, right, strict=True)) >= 9
    return right


def test_one_model_learns_two_directions(trained: tuple[Path, str], translator: Translator) -> None:
    """The same source gets the requested translation; each direction is scored."""
    for language, step in (("up", 1), ("down", -1)):
        pairs = [*zip(DIGITS, assert_learnt(translator, language, step), strict=True)]
        own, other = (
            sum(scored.log_prob for scored in translator.between("n", lang).score(pairs))
            for lang in (language, "down" if language == "up" else "up")
        )
        assert own > other + 10
    assert "(bleu: n-up 0.00, n-down 0.00)" in trained[1]
    folder = open_folder(trained[0])
    assert folder.config.directions == (("n", "up"), ("n", "down"))
    assert (folder.config.src_lang, folder.config.tgt_lang) == ("n", None)
    assert [*folder.src_tokenizer.languages] == ["down", "n", "up"]


def test_one_direction_more_is_no_default(trained: tuple[Path, str], tmp_path: Path) -> None:
    """A run that continues in one direction keeps the others, and has no default."""
    write_digits(tmp_path)
    src, tgt, cache = (str(tmp_path / name) for name in ("up", "far", "cache"))
    data = DataConfig(src=src, tgt=tgt, src_lang="up", tgt_lang="far", cache=cache)
    recipe = TranslateRecipe(data=data, out=str(tmp_path / "more"))
    recipe = start_from(recipe, open_folder(trained[0]))
    job = assemble(recipe, RunFolder.of(recipe), lambda _: None)
    assert "--src-lang up --tgt-lang far" in job.card(Validation(loss=0.0)).use
    config = job.config
    assert (config.src_lang, config.tgt_lang) == (None, None)
    assert config.directions == (("n", "up"), ("n", "down"), ("up", "far"))


def test_what_is_asked_for_must_be_known(translator: Translator) -> None:
    """A missing, unknown or source-only language is an error that lists the valid ones."""
    with pytest.raises(InputError, match=r"3 languages; say which by --tgt-lang .*: down, n, up"):
        translator.translate("1")
    with pytest.raises(InputError, match=r"no target language upp: it has down, up.*mean up\?"):
        translator.between("n", "upp")
    with pytest.raises(InputError, match=r"no target language n: it has down, up"):
        translator.between("up", "n")
    with pytest.raises(InputError, match=r"no source language x: it has down, n, up"):
        translator.between("x", "up")
    with pytest.warns(UserWarning, match=r"not trained to translate up to down .*zero-shot"):
        zero = translator.between("up", "down")
    assert zero.translate("5") == translator.between("n", "down").translate("5")


def test_who_else_asks_a_folder_for_its_languages(trained: tuple[Path, str]) -> None:
    """The server lists the languages, and an inspection has the tag in its source.

    The model can be converted only for a library that takes tokens.
    """
    served = Served("digits", trained[0])
    served.open("fp32", "cpu")
    assert (served.sources, served.targets) == (("down", "n", "up"), ("down", "up"))
    assert served.pair("n", "up") == ("n", "up")
    assert served.pair("up", "n") is served.pair("n", None) is None
    shelf = Shelf(ServeSettings(models=(trained[0],)), ServeMetrics(AdmissionQueue(1)))
    for src_lang in (None, "n"):
        with pytest.raises(Refusal, match="translates into down, up") as refusal:
            shelf.choose(None, src_lang, None)
        assert refusal.value.where == "tgt_lang"
    folder = open_folder(trained[0])
    found = inspect_folder(folder, "5", Choices(src_lang="n", tgt_lang="down"))
    assert found.src is not None
    assert found.src.tokens[0] == "<2down>"
    assert (found.src_lang, found.tgt_lang) == ("n", "down")
    with pytest.raises(InputError, match="say which by --tgt-lang"):
        inspect_folder(folder, "5", Choices())
    assert "n-up, n-down" in contents_of(trained[0]).facts["kind"]
    with pytest.raises(InputError, match="--to ctranslate2, where it is the first token"):
        convert(trained[0], trained[0].parent / "onnx", "onnx")
    assert two_languages(folder) == ("n", "up")


def test_a_language_is_added(trained: tuple[Path, str], tmp_path: Path) -> None:
    """The tokenizer gets only its tag, and the known languages keep their rows.

    The first validation in a known direction therefore equals that of the start.
    """
    start, out = trained[0], tmp_path / "run"
    recipe = recipe_of(tmp_path, "up", "far", directions=("n-up", "n-far"))
    _, said = train(start_from(recipe, open_folder(start)))
    assert "gets the tokens <2far>" in said
    logs = [RunFolder(folder).metrics.read_text("utf-8").splitlines() for folder in (start, out)]
    (last, *_), (first, *_) = (
        [json.loads(x)["valid"] for x in log if "valid" in x] for log in logs
    )
    assert first["chrf.n-up"] == last["chrf.n-up"] > 80
    old, new = open_folder(start), open_folder(out)
    assert new.config.directions == (("n", "up"), ("n", "down"), ("n", "far"))
    assert new.src_tokenizer.vocab_size == old.src_tokenizer.vocab_size + 1
    texts = ["12 345 <2far>", "déjà vu 我"]
    assert new.src_tokenizer.encode_batch(texts) == old.src_tokenizer.encode_batch(texts)
    translator = dragoman.load(out, device="cpu")
    for language, step in (("up", 1), ("far", 2)):
        assert_learnt(translator, language, step)


def test_a_start_of_several_languages_is_told_which(
    trained: tuple[Path, str], tmp_path: Path
) -> None:
    """One corpus continues in one direction, which the recipe or the corpus names."""
    write_digits(tmp_path)
    start = open_folder(trained[0])
    run = RunFolder(tmp_path / "a", start)
    src, tgt, cache = (str(tmp_path / name) for name in ("n", "down", "cache"))
    recipe = TranslateRecipe(data=DataConfig(src=src, tgt=tgt, cache=cache))
    with pytest.raises(InputError, match=r"several languages \(down, n, up\); say which two"):
        read_texts(recipe, run, print)
    named = CorpusConfig(src=src, tgt=tgt, src_lang="n", tgt_lang="down")
    data = DataConfig(corpora=(named,), cache=cache, hold_out=3)
    texts = read_texts(TranslateRecipe(data=data), run, lambda _: None)
    assert texts.training[0].tags == (start.src_tokenizer.languages["down"],)
    assert texts.languages is not None
    assert texts.languages.directions == (("n", "down"),)


def test_a_doubt_names_the_language_that_was_asked_for(
    trained: tuple[Path, str], tmp_path: Path
) -> None:
    """A multilingual folder names none itself."""
    write_digits(tmp_path)
    (tmp_path / "other").write_text("x\n" * 200)
    test = EvaluationData(src=tmp_path / "n", ref=(tmp_path / "other",), tgt_lang="up")
    assert "translates n to up" in evaluate_translator(open_folder(trained[0]), test).warnings[-1]


def test_both_ways_of_each_corpus_by_default(tmp_path: Path) -> None:
    """The source may have a tag too; held-out texts are in no direction's training data."""
    recipe = recipe_of(tmp_path, "up", "far")
    data = replace(recipe.data, valid=(), tag_source=True, hold_out=1, temperature=2)
    recipe = replace(recipe, data=data, tokenizer=TokenizerConfig(vocab_size=320))
    said: list[str] = []
    texts = read_texts(recipe, RunFolder.of(recipe), said.append)
    for other in ("up", "far"):
        assert any(line.startswith(f"No validation files for n and {other}: 1 ") for line in said)
    directions = [("n", "up"), ("up", "n"), ("n", "far"), ("far", "n")]
    assert [each.languages for each in texts.training] == directions
    assert [each.languages for each in texts.validation] == directions
    specials = texts.tokenizers[0].specials
    assert texts.training[1].tags == (specials["<2n>"], specials["<up>"])
    seen = {
        texts.pair(each, row)[side].strip()
        for each in texts.training
        for row in each.usable(9).nonzero()[0].tolist()
        for side in (0, 1)
    }
    held = {text for each in texts.validation for text in texts.pair(each, 0)}
    assert held
    assert not {*held} & seen


def test_tags_need_places(tmp_path: Path) -> None:
    """Learned positions need one for each tag, next to the tokens and the end."""
    recipe = recipe_of(tmp_path, "up", "far")
    model = replace(recipe.model, positions=Learned(max_length=9))
    with pytest.raises(InputError, match=r"max_length = 8 beside the ids .* up to 10 tokens"):
        train(replace(recipe, batch=replace(recipe.batch, max_length=8), model=model))


CORPUS = CorpusConfig(src="a", tgt="b", src_lang="en", tgt_lang="de")
OTHER = CorpusConfig(src="a", tgt="c", src_lang="en", tgt_lang="fr")
UNNAMED = CorpusConfig(src="a", tgt="c", name="third", tgt_lang="fr")
UNNAMED_TARGET = CorpusConfig(src="a", tgt="c", name="fourth", src_lang="en")
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "direction": (
        {"directions": ("en-de", "de-ne")},
        r"no corpus has de-ne; there are en-de, de-en, en-fr, fr-en.*did you mean de-en\?",
    ),
    "unnamed": ({"corpora": (CORPUS, OTHER, UNNAMED)}, "corpus third does not name its two"),
    "one of two unnamed": ({"corpora": (CORPUS, UNNAMED_TARGET)}, "corpus fourth does not name"),
    "validation": ({"valid_src": "a", "valid_tgt": "b"}, "validation corpora of several languages"),
    "no code": ({"corpora": (CORPUS, replace(OTHER, tgt_lang="中文"))}, "such as zh or pt-BR"),
    "a space": ({"corpora": (CORPUS, replace(OTHER, tgt_lang="e n"))}, '"e n" is not a language'),
    "a special token": (
        {"corpora": (CORPUS, replace(OTHER, tgt_lang="pad")), "tag_source": True},
        "<pad> is a special token already",
    ),
    "temperature": ({"corpora": (CORPUS,), "temperature": 5.0}, r"temperature and data.tag_source"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_recipes_of_several_languages(name: str) -> None:
    """The error says what is available."""
    given, told = WRONG[name]
    with pytest.raises(InputError, match=told):
        TranslateRecipe(data=DataConfig(**{"corpora": (CORPUS, OTHER), **given}))


def test_two_vocabularies_contradict_several_languages() -> None:
    """All languages share one vocabulary."""
    with pytest.raises(InputError, match=r"joint = false contradicts several languages"):
        TranslateRecipe(
            data=DataConfig(corpora=(CORPUS, OTHER)),
            tokenizer=TokenizerConfig(joint=False),
            train=TrainConfig(max_steps=1),
        )


def test_a_validation_corpus_that_is_too_much(tmp_path: Path) -> None:
    """Unknown languages, or a second corpus for the same pair, are refused."""
    recipe = recipe_of(tmp_path, "up", "down")
    corpus, *_ = recipe.data.valid
    for valid in ((corpus, corpus), (replace(corpus, tgt_lang="x"),)):
        changed = replace(recipe, data=replace(recipe.data, valid=valid))
        with pytest.raises(InputError, match=r"data\.valid has a corpus too many"):
            read_texts(changed, RunFolder.of(changed), lambda _: None)


def test_codes_may_be_written_in_any_form(tmp_path: Path) -> None:
    """Codes are accepted as in a server; plain zh is not used for traditional Chinese."""
    several = Translator.load(save_several(tmp_path / "model", "en", "zh"))
    for asked, meant in (("eng_Latn", "zh-CN"), ("en", "zh")), (("zt", "EN"), ("zh", "en")):
        assert several.between(*asked).specials == several.between(*meant).specials
    with pytest.raises(InputError, match="no target language zh-TW: it has zh, en"):
        several.between("en", "zh-TW")


def test_a_model_of_one_pair_takes_its_own_languages(tmp_path: Path) -> None:
    """Any form of their codes is accepted; other languages are refused."""
    one_pair = Translator.load(save_translator(tmp_path / "model"))
    for asked in (("en", "zh"), ("eng_Latn", None), (None, "zh-CN")):
        assert one_pair.between(*asked) is one_pair
    for asked in (("zh", "en"), ("en", "de"), ("de", None), ("en", "zh-TW")):
        with pytest.raises(InputError, match="one pair of languages, en to zh; leave out src_lang"):
            one_pair.between(*asked)
