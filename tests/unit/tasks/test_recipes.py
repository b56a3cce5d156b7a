"""Recipes: the shipped ones, files, and the lookup of data."""

import io
import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console
from tests.unit.models.family import DECODERS
from tests.unit.train.made import TINY

import dragoman
from dragoman.data.corpus import CorpusConfig
from dragoman.errors import InputError
from dragoman.folder.format import ChatTemplate, FolderConfig, GenerationDefaults
from dragoman.models import EncoderOnlyConfig
from dragoman.models.heads import ClassificationHead, TaggingHead
from dragoman.nn import Learned
from dragoman.plain import to_plain
from dragoman.tasks.recipes import find_runs, load_recipe, load_sweep, shipped_recipes
from dragoman.tasks.translate.auto import auto_recipe
from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import check_start

SHIPPED = sorted(shipped_recipes())


def load_pairs(name: str, overrides: tuple[str, ...] = ()) -> TranslateRecipe:
    """Return a recipe of the translation task."""
    recipe = load_recipe(name, overrides)
    assert isinstance(recipe, TranslateRecipe)
    return recipe


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty folder without DRAGOMAN_DATA."""
    folder = tmp_path / "here" / "repo"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("DRAGOMAN_DATA", raising=False)
    return folder


def write(path: Path, text: str = "x\n") -> Path:
    """Write a file and its parent folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", SHIPPED)
def test_a_run_knows_its_recipe(here: Path, name: str) -> None:
    """It can be trained again elsewhere, or resumed by its folder alone."""
    recipe = load_recipe(name, [f"out={here / 'run'}", "train.max_steps=9", "data.root=r"])
    with RunFolder(here / "run").open(recipe) as folder:
        kept = str(folder.training / "recipe.json")
    assert find_runs([kept], []) == (recipe, [])
    assert find_runs([kept], ["out=other"])[0] == replace(recipe, out="other")
    more, _ = find_runs([], [f"out={here / 'run'}", "train.max_steps=10"])
    assert more == replace(recipe, train=replace(recipe.train, max_steps=10))


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("recipe.json", '{"train": ', r"recipe\.json: not valid JSON"),
        ("recipe.json", "[1]", "not a JSON object"),
        ("recipe.json", '{"train": {"max_stepz": 1}}', r"recipe\.json.*did you mean"),
        ("texts.json", "{}", r"texts\.json: not a recipe"),
    ],
)
def test_a_damaged_recipe_is_refused(here: Path, name: str, text: str, told: str) -> None:
    """Files with other names are taken for texts."""
    with pytest.raises(InputError, match=told):
        find_runs([str(write(here / name, text))], [])


@pytest.mark.parametrize("given", [["data.src=a", "data.tgt=b"], ["start.model=m"]])
def test_other_texts_are_no_run_that_goes_on(here: Path, given: list[str]) -> None:
    """Their recipe is chosen, so that what differs is told."""
    with RunFolder(here / "run").open(load_recipe("sst2", ["out=run"])):
        pass
    with pytest.raises(InputError, match=r"no file a |there are no texts"):
        find_runs([], [f"out={here / 'run'}", *given])


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_recipes_are_complete(name: str) -> None:
    """Each has a description, an expected result and a source; pairs have languages and texts."""
    recipe = load_recipe(name)
    assert recipe.description.endswith(".")
    assert recipe.expect
    assert recipe.data.source
    assert recipe.train.max_steps or recipe.train.max_minutes
    if not isinstance(recipe, TranslateRecipe):
        return
    assert recipe.data.learned or (recipe.data.src_lang and recipe.data.tgt_lang)
    if recipe.data.learned:
        wanted = {frozenset((each.src_lang, each.tgt_lang)) for each in recipe.data.corpora}
        assert {frozenset((each.src_lang, each.tgt_lang)) for each in recipe.data.valid} == wanted
    elif name != "demo" and recipe.data.made is None:  # these generate their texts
        assert recipe.data.named
        assert recipe.data.valid_src
        assert recipe.data.valid_tgt


def test_unknown_recipe() -> None:
    """The error has the nearest name and all of them."""
    with pytest.raises(InputError, match=r"no recipe 'demos': .*did you mean demo") as raised:
        load_recipe("demos")
    assert all(name in str(raised.value) for name in SHIPPED)


@pytest.mark.parametrize("text", ["", 'out = "x"\n', 'description = "A."\nexpect = "B."\n'])
def test_a_file_that_decides_nothing_is_no_recipe(here: Path, text: str) -> None:
    """An output folder and descriptions alone do not select the defaults, even as overrides."""
    write(here / "my.toml", text)
    for overrides in ([], ["out=runs/y"]):
        told = r"my\.toml holds no setting .*data.* data\.src"
        with pytest.raises(InputError, match=told):
            load_recipe("my.toml", overrides)
    assert load_recipe("my.toml", ["data.src=a.en"]).task == "translate"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tokenizer]\njoint = false\n", r"tokenizer.joint = false contradicts model.tie"),
        ("[model]\nd_model = 10\nnum_heads = 4\n", r"d_model = 10 is not a multiple of num_heads"),
        ("[data]\nsrc = 'a'\n", r"src and tgt"),
        ("[train]\nmax_steps = 1\n", r"set data\.src and data\.tgt"),
        ("task = 'translat'", r"my.toml, line 1: task must be .*; did you mean \"translate\"\?"),
        ("task = 3", "task must be"),
        ("[start]\nmodel = 'nowhere'", "There is no model folder nowhere"),
        ("[start]\nfreeze = ['encoder']", 'freeze = \\["encoder", ...\\] without model'),
        ("[train]\nmax_steps = 1\nmetric = 'blue'", 'metric = "blue" .*did you mean bleu'),
        ("[train]\nmax_steps = 1\nvalidate_limit = 0", "nothing would be translated"),
    ],
)
def test_wrong_recipes(here: Path, text: str, message: str) -> None:
    """An unknown key or task, a wrong type or a conflict is one sentence that names the key."""
    write(here / "my.toml", text)
    with pytest.raises(InputError, match=message):
        load_pairs("my.toml").data.training  # noqa: B018 (the property checks)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("early-stopping", "train.patience"),
        ("train.early_stopping", "train.patience"),
        ("max_update", "train.max_steps"),
        ("train.epochs", "train.max_steps"),
        ("train.batch_size", "batch.max_tokens"),
        ("train.steps", "train.max_steps"),
        ("train.dropout", "model.dropout"),
        ("model.layers", "model.num_encoder_layers"),
        ("layers", "model.num_encoder_layers"),
        ("train.beam_size", "decoding.beam_size"),
        ("train.lr", "train.learning_rate"),
        ("train.patiance", "train.patience"),
    ],
)
def test_a_key_of_another_program_or_section(here: Path, given: str, meant: str) -> None:
    """It leads to the key here, also where one that is less alike is nearer."""
    write(here / "my.toml", "")
    with pytest.raises(InputError, match=rf"unknown key {given}; did you mean {meant}\?$"):
        load_pairs("my.toml", (f"{given}=5",))


def test_where_data_is_looked_for(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths are looked up here, then in DRAGOMAN_DATA; otherwise it is an error.

    If a root is set, only the root is searched.
    """
    data = DataConfig(src="a.en", tgt="a.de", source="https://example.org")
    write(here.parent / "shared" / "data" / "a.en")
    missing = r"no file a\.en \(looked in: \.\); set data.root.*DRAGOMAN_DATA.*example\.org\."
    with pytest.raises(InputError, match=missing):
        data.training  # noqa: B018 (the property checks)
    for folder in (here.parent / "set", here):
        write(folder / "a.en")
        write(folder / "a.de")
        if folder.name == "set":
            monkeypatch.setenv("DRAGOMAN_DATA", str(folder))
        found = Path(data.training[0].src or "")
        assert found.resolve() == (folder / "a.en").resolve()
    write(here / "root" / "a.en")
    with pytest.raises(InputError, match=r"There is no file a\.de \(looked in: root\)"):
        replace(data, root="root").training  # noqa: B018


def test_a_pipe_is_refused_before_anything_is_learnt(here: Path) -> None:
    """A pipe such as `<(...)` would be empty when it is tokenized."""
    write(here / "a.de")
    os.mkfifo(here / "a.en")
    data = DataConfig(src="a.en", tgt="a.de")
    for refusing in (data.check, partial(auto_recipe, data, "run")):
        with pytest.raises(InputError, match=r"a\.en is a pipe, .* give a file"):
            refusing()


def test_validation_and_more_corpora(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Validation files and more corpora are looked up in the same way, in any layout."""
    monkeypatch.setenv("DRAGOMAN_DATA", str(here.parent / "data"))
    for name in ("a.en", "a.de", "v.en", "v.de", "b.tsv", "c.jsonl"):
        write(here.parent / "data" / name)
    more = (CorpusConfig(tsv="b.tsv", weight=0.5), CorpusConfig(jsonl="c.jsonl"))
    data = DataConfig(src="a.en", tgt="a.de", valid_src="v.en", valid_tgt="v.de", corpora=more)
    paths = [path for corpus in data.training for path in corpus.paths]
    assert [path.name for path in paths] == ["a.en", "a.de", "b.tsv", "c.jsonl"]
    assert all(path.exists() for path in paths)
    assert [corpus.weight for corpus in data.training] == [1.0, 0.5, 1.0]
    (validation,) = data.validation
    assert [path.name for path in validation.paths] == ["v.en", "v.de"]
    assert not DataConfig(src="a.en", tgt="a.de").validation


@pytest.mark.parametrize("task", ["translate", "classify", "tag", "pretrain"])
def test_something_is_held_out(here: Path, task: str) -> None:
    """A run without a validation text is refused instead of holding out one anyway."""
    write(here / "my.toml", f"task = '{task}'\n")
    with pytest.raises(InputError, match="hold_out is 0; it must be at least 1: validation needs"):
        load_recipe("my.toml", ("data.hold_out=0",))
    load_recipe("my.toml", ("data.hold_out=1",))


@pytest.mark.parametrize("name", ["numbers", "multi30k-en-de", "sst2", "conll2003"])
def test_nothing_is_held_out_beside_texts_for_validation(name: str) -> None:
    """Recipes with validation texts, or with generated ones, may hold out none."""
    found = to_plain(load_recipe(name, ("data.hold_out=0",)).data)
    assert found == to_plain(load_recipe(name).data) | {"hold_out": 0}


def test_a_recipe_that_starts_from_a_model(here: Path) -> None:
    """Model settings come from the folder, overridden by those of the recipe."""
    model = replace(TINY, dropout=0.3)
    config = FolderConfig(format=1, model=model, src_lang="en", tgt_lang="zh")
    write(here / "model" / "config.json", json.dumps(to_plain(config)))
    write(here / "my.toml", "[model]\ndropout = 0.2\n[data]\ntgt_lang = 'de'\n")
    recipe = load_pairs("my.toml", ("start.model=model",))
    assert recipe.model == replace(TINY, dropout=0.2)
    assert (recipe.data.src_lang, recipe.data.tgt_lang) == ("en", "de")
    check_start(recipe, RunFolder.of(recipe).start)


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
    here: Path, config: FolderConfig, text: str, refused: dict[str, str]
) -> None:
    """Only the combined settings are checked, so a dialogue model can start its own recipe."""
    write(here / "model" / "config.json", json.dumps(to_plain(config)))
    write(here / "my.toml", text)
    found = load_recipe("my.toml", ["start.model=model"])
    assert found.model == config.model
    for override, message in refused.items():
        with pytest.raises(InputError, match=message):
            load_recipe("my.toml", ["start.model=model", override])


def test_sizes_of_a_file_give_way_to_a_start_that_is_typed(here: Path) -> None:
    """A shipped recipe's sizes cannot be removed; typed ones are kept and must match.

    Sizes are also kept if the file names the start itself, or if runs of a sweep differ in them.
    """
    model, start = EncoderOnlyConfig(vocab_size=20, d_model=16, num_heads=2), "start.model=model"
    config = json.dumps(to_plain(FolderConfig(format=1, model=model)))
    write(here / "model" / "config.json", config)
    wanted = replace(model, dropout=0.3, head=ClassificationHead())
    assert load_recipe("waimai", [start]).model == wanted
    typed = load_recipe("waimai", [start, "model.num_layers=9", "model.d_ff=99"])
    assert typed.model == replace(wanted, num_layers=9, d_ff=99)
    with pytest.raises(InputError, match=r"model\.d_ff = 99 contradicts start\.model"):
        check_start(typed, RunFolder.of(typed).start)
    own = "task = 'tag'\n[model]\nd_ff = 99\nword_features = 50\n"
    tagging = replace(model, head=TaggingHead(), word_features=50)
    write(here / "tag.toml", own)
    assert load_recipe("tag.toml", [start]).model == tagging
    write(here / "own.toml", f"{own}[start]\nmodel = 'model'\n")
    assert load_recipe("own.toml").model == replace(tagging, d_ff=99)
    write(here / "sweep.toml", f"{own}[[sweep]]\nsize.small.model.d_ff = 9\nsize.big.out = 'x'\n")
    assert [run.model.d_ff for run in load_sweep("sweep.toml", [start])] == [9, 99]
    write(here / "odd.toml", f"{own}d_modle = 9\n")
    with pytest.raises(InputError, match=r"unknown key model\.d_modle"):
        load_recipe("odd.toml", [start])


LAYOUTS = {
    "parallel": "[data]\nsrc = 'a.en'\ntgt = 'a.zh'\n",
    "parallel-corpus": "[[data.corpora]]\nsrc = 'a.en'\ntgt = 'a.zh'\n",
    "tsv": "[[data.corpora]]\ntsv = 'a.tsv'\n",
    "jsonl": "[[data.corpora]]\njsonl = 'a.jsonl'\n",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sizes_follow_the_texts_whatever_their_layout(here: Path, layout: str) -> None:
    """A recipe with texts and no sizes gets the sizes chosen for two parallel files."""
    for folder, text in {"a.en": "x\n", "a.zh": "y\n", "a.tsv": "x\ty\n"}.items():
        write(here / folder, text * 20)
    write(here / "a.jsonl", '{"src": "x", "tgt": "y"}\n' * 20)
    write(here / "my.toml", 'description = "Mine."\n' + LAYOUTS[layout])
    found = load_pairs("my.toml", ("out=run", "model.dropout=0.2", "train.max_minutes=5"))
    chosen = auto_recipe(DataConfig(src="a.en", tgt="a.zh"), "run")
    assert found.description == f"Mine. {chosen.description}".replace("dropout 0.3", "dropout 0.2")
    assert found.model == replace(chosen.model, dropout=0.2)
    assert found.train == replace(chosen.train, max_minutes=5)
    assert (found.tokenizer, found.batch) == (chosen.tokenizer, chosen.batch)
    assert load_pairs("my.toml", ("model.d_model=64",)).model.num_encoder_layers == 6


def test_sizes_of_texts_that_are_not_here(here: Path) -> None:
    """Without the texts the defaults are used, and the run reports the missing file."""
    write(here / "my.toml", LAYOUTS["tsv"])
    recipe = load_pairs("my.toml")
    assert recipe.model.d_model == 512
    with pytest.raises(InputError, match=r"no file a\.tsv"):
        recipe.data.check()


def test_made_texts_need_no_files(here: Path, tmp_path: Path) -> None:
    """Generated data is written when the run requests it, and not before."""
    data = load_pairs("numbers", ("data.made.train=30", "data.made.valid=5")).data
    data.check()
    assert not list(here.iterdir())
    written = data.write(tmp_path / "texts")
    assert written.src is not None
    assert len(Path(written.src).read_text(encoding="utf-8").splitlines()) == 30
    assert written.validation
    assert DataConfig().write(tmp_path / "none") == DataConfig()
    assert not (tmp_path / "none").exists()
    with pytest.raises(InputError, match=r"data\.made contradicts data\.src"):
        load_pairs("numbers", ("data.src=a", "data.tgt=b")).data.check()


@pytest.mark.parametrize("sides", [("src", "tgt"), ("valid_src", "valid_tgt")])
def test_a_text_is_not_its_own_translation(here: Path, sides: tuple[str, str]) -> None:
    """The same file as source and target, under any name, is an error."""
    files = {name: str(write(here / name)) for name in ("src", "tgt", "valid_src", "valid_tgt")}
    DataConfig(**files).check()  # type: ignore[arg-type]
    (here / "link").symlink_to(files[sides[0]])
    with pytest.raises(InputError, match=rf"source and target are the same file, .*{sides[0]};"):
        DataConfig(**files | {sides[1]: "link"}).check()  # type: ignore[arg-type]


def test_training_has_a_public_call(here: Path) -> None:
    """`train_model` takes a recipe or a file with settings, and trains as the command does."""
    lines = "".join(f"w{number} x\n" for number in range(20))
    for name in ("a.src", "a.tgt"):
        (here / name).write_text(lines, encoding="utf-8")
    (here / "r.toml").write_text('[data]\nsrc = "a.src"\ntgt = "a.tgt"\n', encoding="utf-8")
    tiny = ("d_model=16", "num_heads=2", "d_ff=16", "num_encoder_layers=1", "num_decoder_layers=1")
    settings = [*(f"model.{each}" for each in tiny), "tokenizer.vocab_size=300", "out=run"]
    settings += ["train.max_steps=1", "train.device=cpu", "decoding.beam_size=1"]
    said = io.StringIO()
    result = dragoman.train_model("r.toml", settings, console=Console(file=said))
    assert (result.progress.step, str(result.folder)) == (1, "run")
    assert "300 pieces" in said.getvalue()
    recipe = replace(load_recipe("r.toml", settings), out="other")
    assert dragoman.train_model(recipe, ["train.max_steps=2"]).progress.step == 2
    assert dragoman.load("other", device="cpu").translate("w1").text is not None


def test_a_translation_memory_has_no_lines(here: Path) -> None:
    """TMX has both languages: the error says what it is and how to use it."""
    file = str(write(here / "memory.tmx"))
    for corpus in (CorpusConfig(src=file, tgt=file), CorpusConfig(tsv=file)):
        with pytest.raises(InputError, match=r"memory.tmx is a translation memory .* as data.tm"):
            DataConfig(corpora=(corpus,)).check()
    DataConfig(tm=file, src_lang="en", tgt_lang="de").check()
