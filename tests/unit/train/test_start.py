"""The start of a run: random weights or a model folder, optionally with frozen parts."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
import torch
from tests.unit.models.saved import Words
from tests.unit.tasks.tiny import make_tokenizer
from tests.unit.train.hand import TASKS
from tests.unit.train.made import (
    CONFIG,
    TINY,
    make_batch,
    make_console,
    make_model,
    make_stepper,
    random_pairs,
    weights_of,
)

from dragoman.decoding import Decoding
from dragoman.errors import InputError
from dragoman.folder.format import FolderConfig, save_model
from dragoman.folder.opening import open_folder
from dragoman.models import EncoderDecoder, EncoderOnlyConfig, ModelConfig, build
from dragoman.models.heads import ClassificationHead, Head, MaskedLanguageHead, TaggingHead
from dragoman.models.lora import LoraConfig
from dragoman.tasks.task import train
from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe
from dragoman.train.recipe import DataFiles, RunRecipe, StartConfig
from dragoman.train.runfolder import RunFolder
from dragoman.train.start import (
    begin_model,
    check_start,
    check_tokens,
    copy_weights,
    freeze,
    parameters_of,
    start_from,
)

MASKED = EncoderOnlyConfig(
    vocab_size=20, d_model=16, num_heads=2, d_ff=24, num_layers=2, head=MaskedLanguageHead()
)
CLASSES = ClassificationHead(labels=("no", "yes"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderRecipe(RunRecipe):
    """A recipe that puts a task head on an encoder."""

    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)

    task: Literal["guess"] = "guess"
    data: DataFiles = field(default_factory=DataFiles)
    model: EncoderOnlyConfig = field(default_factory=lambda: EncoderOnlyConfig(head=CLASSES))


def save(folder: Path, config: ModelConfig) -> str:
    """Save a model with random weights."""
    words = Words()
    decoding = Decoding(beam_size=3)
    described = FolderConfig(model=config, decoding=decoding, src_lang="en", tgt_lang="zh")
    save_model(folder, build(config), described, tokenizers=(words, words))
    return str(folder)


@pytest.fixture
def pairs_model(tmp_path: Path) -> str:
    """A translation model folder."""
    return save(tmp_path / "pairs", replace(TINY, dropout=0.3))


@pytest.fixture
def encoder(tmp_path: Path) -> str:
    """A folder of an encoder with a masked-language head."""
    return save(tmp_path / "encoder", MASKED)


def begin(recipe: RunRecipe, config: ModelConfig) -> tuple[torch.nn.Module, list[str]]:
    """Return the initial model of a run, and its messages."""
    model = begin_model(build, config, recipe)
    if recipe.start.model is None:
        return model, []
    start = open_folder(recipe.start.model)
    return model, [copy_weights(start.load(), start.config, model, config, recipe)]


def check(recipe: RunRecipe) -> None:
    """Compare a recipe with the folder that it starts from."""
    check_start(recipe, RunFolder.of(recipe).start)


def test_all_weights_are_taken(pairs_model: str) -> None:
    """All weights of the folder are loaded, and its sizes go into the recipe."""
    recipe = start_from(TranslateRecipe(train=CONFIG), open_folder(pairs_model))
    assert recipe.model == replace(TINY, dropout=0.3)
    assert recipe.start.model == pairs_model
    assert recipe.decoding.beam_size == 3
    assert (recipe.data.src_lang, recipe.data.tgt_lang) == ("en", "zh")
    model, said = begin(recipe, recipe.model)
    assert said == [f"The weights are those of {pairs_model}."]
    own = start_from(TranslateRecipe(data=DataConfig(tgt_lang="de")), open_folder(pairs_model))
    assert (own.data.src_lang, own.data.tgt_lang) == ("en", "de")
    theirs = open_folder(Path(pairs_model)).model.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in model.state_dict().items())


def test_what_follows_the_seed_does_not_depend_on_the_folder(pairs_model: str) -> None:
    """Loading does not advance the generator: dropout is that of a run from random weights."""
    begin(TranslateRecipe(train=CONFIG), replace(TINY, dropout=0.3))
    expected = torch.rand(3)
    recipe = start_from(TranslateRecipe(train=CONFIG), open_folder(pairs_model))
    begin(recipe, recipe.model)
    assert torch.equal(torch.rand(3), expected)


def test_a_contradiction_is_named(pairs_model: str) -> None:
    """A size that differs from the folder's is refused with both values; dropout may differ."""
    recipe = start_from(TranslateRecipe(), open_folder(pairs_model))
    check(replace(recipe, model=replace(recipe.model, dropout=0.5, attention_dropout=0.1)))
    with pytest.raises(InputError, match=r"model\.d_ff = 48 contradicts start\.model = .*it is 24"):
        check(replace(recipe, model=replace(recipe.model, d_ff=48)))


def test_another_kind(encoder: str) -> None:
    """Another kind of model is refused with both kinds and the task."""
    kinds = r"of the kind encoder-only, and task = \"translate\" trains encoder-decoder"
    with pytest.raises(InputError, match=kinds):
        start_from(TranslateRecipe(), open_folder(encoder))
    with pytest.raises(InputError, match=kinds):
        check(TranslateRecipe(start=StartConfig(model=encoder)))


def test_adapters_are_merged_first(pairs_model: str, tmp_path: Path) -> None:
    """They open as the adapted model, but another run would lose the adapters."""
    (tmp_path / "adapter_config.json").write_text(
        json.dumps({"base_model_name_or_path": pairs_model}), encoding="utf-8"
    )
    opened = open_folder(tmp_path)
    assert (str(opened), opened.path) == (str(tmp_path), Path(pairs_model))
    with pytest.raises(InputError, match=r"holds adapters; merge them first \(dragoman convert "):
        start_from(TranslateRecipe(), opened)


TAGS = TaggingHead(labels=("a", "b"))


@pytest.mark.parametrize(("head", "looks"), [(CLASSES, 0), (TAGS, 9)], ids=["classes", "tags"])
def test_what_an_encoder_lacks_is_drawn_anew(encoder: str, head: Head, looks: int) -> None:
    """The encoder is loaded; a new head is random, word features are zeros, and both are named."""
    wanted = EncoderOnlyConfig(head=head, word_features=looks)
    recipe = start_from(EncoderRecipe(train=CONFIG, model=wanted), open_folder(encoder))
    assert recipe.model == replace(MASKED, head=head, word_features=looks)
    check(recipe)
    model, (said,) = begin(recipe, recipe.model)
    theirs = open_folder(Path(encoder)).model.state_dict()
    for name, value in model.state_dict().items():
        anew = name.startswith(("head.", "words."))
        assert anew == (f" {name}" in said)
        assert anew or torch.equal(value, theirs[name])
    assert not looks or not model.get_parameter("words.weight").any()


def test_adapters_are_counted(encoder: str) -> None:
    """Adapters are counted next to a new head: two in each of the two layers."""
    start = StartConfig(model=encoder, lora=LoraConfig(rank=2))
    recipe = EncoderRecipe(train=CONFIG, start=start)
    _, (said,) = begin(recipe, MASKED)
    assert said.endswith("; drawn anew: 4 adapters.")
    _, (said,) = begin(recipe, replace(MASKED, head=CLASSES))
    assert "drawn anew: head." in said
    assert said.endswith(", 4 adapters.")


def test_the_same_head_is_taken(tmp_path: Path) -> None:
    """A classifier with the same labels keeps its head; with others it gets a new one."""
    config = replace(MASKED, head=CLASSES)
    recipe = start_from(
        EncoderRecipe(train=CONFIG), open_folder(save(tmp_path / "classes", config))
    )
    assert "anew" not in begin(recipe, recipe.model)[1][0]
    others = replace(config, head=replace(CLASSES, labels=("yes", "no")))
    assert "anew: head." in begin(recipe, others)[1][0]


@pytest.mark.parametrize(
    ("prefixes", "frozen"),
    [
        (["encoder"], ["encoder."]),
        (["encoder.layers.1"], ["encoder.layers.1."]),
        (["tgt_embedding", "decoder.layers.0.ffn"], ["src_embedding.", "decoder.layers.0.ffn."]),
        (["decoder.layers.0.ffn.down.weight"], ["decoder.layers.0.ffn.down.weight"]),
    ],
)
def test_frozen_parts_stay(prefixes: list[str], frozen: list[str]) -> None:
    """Exactly the named parts are unchanged; a tied matrix may have any of its names."""
    config = replace(TINY, num_encoder_layers=11)
    model = EncoderDecoder(config).double().train()
    total = sum(p.numel() for p in model.parameters())
    assert parameters_of(model, prefixes) == f"{total:,} parameters"
    freeze(model, prefixes)
    before = weights_of(model)
    stepper = make_stepper(model, replace(CONFIG, optimizer="adamw", weight_decay=0.1))
    stepper([make_batch(random_pairs(6))], 1e-2)
    for name, parameter in model.named_parameters():
        stays = torch.equal(parameter, before[name])
        assert stays == name.startswith(tuple(frozen)), name
    count = sum(p.numel() for n, p in model.named_parameters() if n.startswith(tuple(frozen)))
    described = parameters_of(model, prefixes)
    assert described.startswith(f"{total:,} parameters, {count:,} of them frozen")
    assert len(stepper.optimizer.state) == sum(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize(
    ("prefixes", "tie", "described"),
    [
        (("src_embedding",), "all", " frozen (tgt_embedding.weight, output.weight too, being the"),
        (("output", "tgt_embedding"), "all", " frozen (src_embedding.weight too, being the same)"),
        (("src_embedding",), "target-output", " frozen"),
        (("encoder",), "all", " frozen"),
    ],
)
def test_what_shares_frozen_weights_is_described(
    prefixes: tuple[str, ...], tie: Literal["all", "target-output"], described: str
) -> None:
    """Other names of a frozen matrix are listed; with adapters, all is frozen and none is."""
    model = EncoderDecoder(replace(TINY, tie_embeddings=tie))
    freeze(model, prefixes)
    found = parameters_of(model, prefixes)
    assert described in found
    assert ("(" in described) == ("(" in found)
    assert "(" not in parameters_of(model, ())


@pytest.mark.parametrize(
    ("prefixes", "message"),
    [
        ("encodr", "did you mean encoder?"),
        ("encoder.layer", "did you mean encoder.layers?"),
        ("zzz", "the parts are src_embedding, tgt_embedding, encoder, decoder, output"),
        ("", "no weight has a name"),
        ("src_embedding encoder decoder", "leaves nothing to learn"),
    ],
)
def test_what_cannot_be_frozen(prefixes: str, message: str) -> None:
    """Unknown names (with suggestions), all parts and random weights are refused."""
    with pytest.raises(InputError, match=r"start\.freeze") as raised:
        freeze(make_model(), prefixes.split(" "))
    assert message in str(raised.value)


def test_a_model_has_the_special_tokens_of_its_texts() -> None:
    """With other ids, a text piece could act as padding, or the end could go unnoticed.

    The model must have a row for each piece.
    """
    tokenizer = make_tokenizer()
    size = tokenizer.vocab_size
    config = replace(MASKED, vocab_size=size)
    check_tokens(config, tokenizer, tokenizer)
    check_tokens(replace(config, vocab_size=size + 1), tokenizer)
    others = {
        "pad_id": replace(config, pad_id=9),
        "bos_id": replace(config, bos_id=9),
        "eos_id": replace(config, eos_id=9),
    }
    for name, other in others.items():
        with pytest.raises(InputError, match=rf"model\.{name} = 9 contradicts the tokenizer"):
            check_tokens(other, tokenizer)
        check_tokens(other, tokenizer, named=False)
    with pytest.raises(InputError, match=rf"is less than the {size} pieces of the tokenizer"):
        check_tokens(replace(config, vocab_size=size - 1), tokenizer)


@pytest.mark.parametrize("task", TASKS)
def test_every_run_is_held_to_its_tokens(task: str, tmp_path: Path) -> None:
    """The tokens are checked in every task."""
    recipe: Any = TASKS[task](tmp_path).recipe
    console, _ = make_console(terminal=False)
    with pytest.raises(InputError, match=r"model\.pad_id = 9 contradicts the tokenizer"):
        train(replace(recipe, model=replace(recipe.model, pad_id=9)), console=console)


@pytest.mark.parametrize("head", [CLASSES, ClassificationHead(), TaggingHead()])
def test_frozen_parts_are_known_before_the_labels(encoder: str, head: Head) -> None:
    """Names of weights are checked before there are labels or weights."""
    recipe = EncoderRecipe(model=replace(MASKED, head=head), start=StartConfig(model=encoder))
    check(replace(recipe, start=replace(recipe.start, freeze=("encoder", "head.output"))))
    with pytest.raises(InputError, match="did you mean head"):
        check(replace(recipe, start=replace(recipe.start, freeze=("haed",))))
