"""Invalid settings of batches, of training and of decoding."""

import re
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from tests.unit.tasks.complete import generating, translating
from tests.unit.tasks.tiny import make_translator, random_lines
from tests.unit.tasks.tiny_generator import make_generator
from torch import Tensor

from dragoman.corpus.config import CleaningConfig
from dragoman.data.batches import BatchConfig
from dragoman.data.corpus import CorpusConfig
from dragoman.data.documents import HoldOut
from dragoman.data.labelled import LabelledLayout
from dragoman.data.tagged import TaggedLayout
from dragoman.decode import Prefixes
from dragoman.decoding import GENERATING, TRANSLATING, Decoding, merged
from dragoman.errors import InputError
from dragoman.folder.format import GenerationDefaults, ReadingDefaults
from dragoman.models import DecoderOnlyConfig, EncoderDecoderConfig, EncoderOnlyConfig
from dragoman.models.heads import ClassificationHead, Head, TaggingHead
from dragoman.models.lora import LoraConfig
from dragoman.nn import Learned
from dragoman.plain import to_plain
from dragoman.ranges import ranges_of
from dragoman.settings import parse_settings
from dragoman.tasks.classify.task import ClassifyRecipe
from dragoman.tasks.generate.batches import PackConfig
from dragoman.tasks.generate.recipe import GenerateRecipe
from dragoman.tasks.hiding import NoisyBatchConfig
from dragoman.tasks.pretrain.task import MaskConfig
from dragoman.tasks.task import find_task
from dragoman.tasks.translate.recipe import DataConfig, TranslateRecipe
from dragoman.tasks.translate.translator import Translator
from dragoman.text.judging import exact
from dragoman.text.train import TokenizerConfig
from dragoman.train.config import TrainConfig

SETTINGS = (
    *(Decoding, GenerationDefaults, ReadingDefaults),
    *(BatchConfig, NoisyBatchConfig, PackConfig, MaskConfig, HoldOut, DataConfig),
    *(EncoderDecoderConfig, DecoderOnlyConfig, EncoderOnlyConfig, LoraConfig),
    *(TokenizerConfig, CleaningConfig, TrainConfig),
)
OF_THE_TEXTS = {"pad_id", "bos_id", "eos_id", "src_vocab_size", "tgt_vocab_size", "vocab_size"}
"""Numbers that are properties of the tokenizer."""
BY_HAND = {"num_token_types", "layers", "hold_out", "min_relation", "validate_limit"}
"""Numbers whose bounds depend on other settings."""


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_number_has_a_range(settings: type[Any]) -> None:
    """Otherwise its bounds depend on other settings; tests/unit/test_ranges.py exceeds each one."""
    ranges = ranges_of(settings)  # type: ignore[arg-type]  # it is hashable
    numbers = {each.name for each in fields(settings) if re.search("int|float", str(each.type))}
    assert numbers - ranges.keys() <= OF_THE_TEXTS | BY_HAND


WRONG = [
    (PackConfig, {"length": 8, "stride": 9}, r"stride \(9\) is above length \(8\)"),
    (MaskConfig, {"masked": 0.8, "random": 0.3}, "are more than 1 together"),
    (generating, {"beam_size": 2}, "beam_size is 2 with temperature 0.8"),
    (translating, {"temperature": 1.0, "beam_size": 5}, "beam_size is 5 with temperature 1.0"),
    (
        translating,
        {"stop": ("a",)},  # and Python-only options are not listed
        "stop is not an option of this task; its .*seed, forbidden_words, terms, shortlist",
    ),
    (generating, {"n_best": 2}, "n_best is not an option of this task; its options are beam_size"),
    (translating, {"n_best": 6}, "n_best is 6 with beam_size 5"),
    (translating, {"mbr": 6}, "mbr is 6 with beam_size 5"),
    (translating, {"mbr": 2, "n_best": 3}, "n_best is 3 with mbr 2"),
    (translating, {"beam_groups": 2}, "beam_size is 5 with beam_groups 2"),
    (translating, {"diversity": 0.7}, "diversity is 0.7 with beam_groups 1"),
    (
        translating,
        {"temperature": 1.0, "beam_size": 1, "beam_groups": 2},
        "beam_groups is 2 with temperature 1.0",
    ),
    (generating, {"stop": ("",)}, "a stop string is empty"),
    (generating, {"stop": 5}, "stop is 5; give a tuple of strings"),
    (translating, {"processors": [1]}, r"processors is \[1\]; give a tuple of functions"),
    (Decoding, {"length_norm": "foo"}, "length_norm is 'foo'; it must be one of gnmt, power"),
    (Decoding, {"early_stopping": True}, "early_stopping is True; it must be one of estimate, f"),
    (Decoding, {"retry": "no"}, "retry is 'no'; it must be one of False, True"),
    (Decoding, {"split_sentences": "no"}, "it must be one of False, True, None"),
    (translating, {"shortlist": True, "forbidden_words": ("word",)}, "shortlist"),
    *(
        (options, {"forbidden_words": words}, "give a tuple of words")
        for options in (translating, generating)
        for words in (("a", " "), "word")
    ),
    (TrainConfig, {}, "a run needs an end: set max_steps, max_minutes or patience"),
    (TrainConfig, {"patience": 3}, 'schedule = "linear" falls to 0'),
    (TrainConfig, {"patience": 3, "schedule": "cosine"}, 'schedule = "cosine" falls to 0'),
    (TrainConfig, {"max_steps": 9, "weight_decay": 0.1}, 'weight_decay needs optimizer = "adamw"'),
    (ClassifyRecipe, {"train": TrainConfig(max_steps=1, metric="accurcy")}, "mean accuracy"),
    (
        ClassifyRecipe,
        {"train": TrainConfig(max_steps=1, metric="bleu")},
        'train.metric = "bleu" is not measured .*accuracy, .*loss',
    ),
    (
        GenerateRecipe,
        {"train": TrainConfig(max_steps=1, r_drop=5.0)},
        r'r_drop = 5.0 is for translation.*"generate"',
    ),
    *(
        (PackConfig, {"packing": "documents", "fill_in_middle": 0.5, **wrong}, "fill_in_middle")
        for wrong in ({"packing": "stream"}, {"length": 3})
    ),
    *(
        (CorpusConfig, layout, r"src and tgt(, or tsv, or jsonl| \(--src and --tgt\))")
        for layout in (
            *({}, {"src": "a"}, {"tgt": "a"}),
            *({"src": "a", "tgt": "b", "tsv": "c"}, {"tsv": "a", "jsonl": "b"}),
        )
    ),
    (LabelledLayout, {"label_column": 0}, "label_column"),
    (LabelledLayout, {"text_column": 1}, "label_column"),
    (TaggedLayout, {"word_column": 0}, "word_column"),
    (TaggedLayout, {"tag_column": 1}, "word_column"),
    (CleaningConfig, {"skip": ("copies",)}, "copies is not a rule.* did you mean"),
]


@pytest.mark.parametrize(("config", "change", "message"), WRONG)
def test_impossible_settings_are_refused(
    config: Callable[..., object], change: dict[str, Any], message: str
) -> None:
    """One sentence names the setting and what it contradicts."""
    with pytest.raises(InputError, match=message):
        config(**change)


def test_a_list_of_words_is_as_good_as_a_tuple() -> None:
    """A single stop string is one string, not its letters."""
    words: Any = ["a", "b"]
    found = Decoding(stop="END", forbidden_words=words)  # type: ignore[arg-type]
    assert found == Decoding(stop=("END",), forbidden_words=("a", "b"))
    make_translator().translate("the cat", options=Decoding(forbidden_words=words))


@pytest.mark.parametrize("option", [{"top_k": 5}, {"top_p": 0.5}, {"min_p": 0.5}])
def test_sampling_needs_a_temperature(option: dict[str, Any]) -> None:
    """An option without effect is refused."""
    with pytest.raises(InputError, match=f"{next(iter(option))} is .* with temperature 0"):
        make_translator().translate("the cat", options=Decoding(**option))


def test_a_recipe_that_samples_needs_no_more_words() -> None:
    """A temperature alone disables the default beam; an explicit beam contradicts it."""
    given: dict[str, Any] = {"temperature": 0.7}
    recipe = parse_settings(TranslateRecipe, {"decoding": given}, "r.toml")
    assert (recipe.decoding.temperature, recipe.decoding.beam_size) == (0.7, 1)
    assert parse_settings(TranslateRecipe, to_plain(recipe), "again") == recipe
    with pytest.raises(InputError, match=r"beam_size is 4 with temperature 0\.7"):
        parse_settings(TranslateRecipe, {"decoding": given | {"beam_size": 4}}, "r.toml")


def test_what_is_set_earlier_goes_before() -> None:
    """A call overrides a folder, a publisher and the task, in this order; unset options do not."""
    publisher, folder = Decoding(min_length=4, top_k=9), Decoding(min_length=3, seed=1)
    found = merged(Decoding(seed=2), folder, publisher, GENERATING)
    assert (found.seed, found.min_length, found.top_k) == (2, 3, 9)
    assert merged(Decoding(), TRANSLATING) == TRANSLATING
    narrow = merged(Decoding(beam_size=2), Decoding(n_best=3, mbr=4), TRANSLATING)
    assert (narrow.n_best, narrow.mbr) == (2, 2)
    assert Decoding.of({"seed": None, "top_k": 5}).given() == {"top_k": 5}


def test_who_samples_has_no_beam_and_who_limits_a_text_counts_no_prompt() -> None:
    """The same layer may still set them, and a layer above a sampling one may use a beam again."""
    assert merged(Decoding(temperature=1.0), TRANSLATING).beam_size == 1
    groups = Decoding(beam_size=4, beam_groups=2, diversity=0.7)
    assert merged(Decoding(temperature=1.0), groups, TRANSLATING).beam_groups == 1
    both = merged(Decoding(temperature=0.0, beam_size=4), Decoding(temperature=1.0), TRANSLATING)
    assert both.beam_size == 4
    counting = Decoding(max_tokens=8, count_prompt=True)
    assert merged(counting, GENERATING).count_prompt
    assert not merged(Decoding(max_tokens=9), counting, GENERATING).count_prompt


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (make_translator, {"beam_size": 3}),
        (make_translator, {"beam_size": 4, "beam_groups": 2}),
        (make_translator, {"beam_size": 2, "length_norm": "power"}),
        (make_generator, {"temperature": 0.0, "max_tokens": 20}),
        (make_generator, {"temperature": 1.0, "max_tokens": 20, "seed": 3}),
    ],
)
def test_a_forbidden_word_is_written_by_no_search(
    make: Callable[[], Any], options: dict[str, Any]
) -> None:
    """This holds for any tokenization of the word."""
    model, lines, chosen = make(), random_lines(4, seed=2), Decoding(**options)
    run = model.translate if isinstance(model, Translator) else model.generate
    plain = " ".join(each.text for each in run(lines, options=chosen))
    words = tuple(sorted({*re.findall(r"[a-z]+|[一-龥]", plain)}))[::2]
    assert any(_has(plain, word) for word in words)
    found = run(lines, options=replace(chosen, forbidden_words=words))
    assert not any(_has(each.text, word) for each in found for word in words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda logits: logits * torch.nan, "<lambda> makes NaN or infinite logits; correct it"),
        (lambda logits: logits + torch.inf, "<lambda> makes NaN or infinite logits; .*forbids"),
        (lambda _: None, r"<lambda> returns <class 'NoneType'>; .* floats of shape \(\d"),
        (lambda logits: logits[:, :10], r"<lambda> returns torch.float32 \(\d, 10\); it must"),
        (lambda logits: logits > 0, r"<lambda> returns torch.bool \(\d"),
    ],
)
@pytest.mark.parametrize("beam_size", [1, 2])
def test_a_fault_of_a_processor_is_its_own(
    change: Callable[[Tensor], Any], words: str, beam_size: int
) -> None:
    """The error names the processor and does not blame the weights."""
    options = Decoding(beam_size=beam_size, temperature=0.0, processors=(lambda x, _: change(x),))
    for call in (make_translator().translate, make_generator().generate):
        with pytest.raises(InputError, match=f"^The processor {words}"):
            call("the cat", options=options)


def _has(text: str, word: str) -> bool:
    """Whether a text contains a word as a whole word."""
    return any(True for _ in exact(text, word))


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_processor_sees_each_step(beam_size: int) -> None:
    """What a processor forbids is never written."""
    translator = make_translator()

    def only_one(logits_NV: Tensor, prefixes: Prefixes) -> Tensor:
        assert len(logits_NV) == len(prefixes.ids_NL)
        return logits_NV.index_fill(1, torch.tensor([300]), 1e4)

    options = Decoding(beam_size=beam_size, retry=False, processors=(only_one,))
    forced = translator.translate(random_lines(12, seed=4), options=options)
    piece = translator.tgt_tokenizer.tokens([300])[0]
    assert all(result.tokens and {*result.tokens} == {piece} for result in forced)


@pytest.mark.parametrize("options", [{"beam_size": 4}, 4])
def test_options_of_another_type_are_one_sentence(options: Any) -> None:  # noqa: ANN401
    """In every class, calls and streams report it in one sentence."""
    for ask in make_translator().translate, make_translator().stream, make_generator().generate:
        with pytest.raises(TypeError, match=r"The options are .*4.*; give a Decoding"):
            list(ask(["the cat"], options=options))


@pytest.mark.parametrize(
    ("task", "more"), [("classify", 2), ("tag", 2), ("pretrain", 2), ("translate", 1)]
)
def test_batches_fit_into_learned_positions(task: str, more: int) -> None:
    """The longest text plus its special tokens must have positions; otherwise it is refused."""
    recipe: Any = find_task(task).recipe()  # type: ignore[call-arg]  # all have defaults
    recipe = replace(recipe, batch=replace(recipe.batch, max_length=40))
    replace(recipe, model=replace(recipe.model, positions=Learned(max_length=40 + more)))
    with pytest.raises(InputError, match=r"batch.max_length = 40.*positions.max_length = "):
        replace(recipe, model=replace(recipe.model, positions=Learned(max_length=39 + more)))


@pytest.mark.parametrize(
    ("task", "head"),
    [
        ("classify", TaggingHead()),
        ("tag", ClassificationHead()),
        ("pretrain", ClassificationHead()),
    ],
)
def test_another_head_is_refused(task: str, head: Head) -> None:
    """The error names both settings."""
    recipe: Any = find_task(task).recipe
    with pytest.raises(InputError, match=f'contradicts model.head.kind = "{head.kind}"'):
        recipe(model=EncoderOnlyConfig(head=head))
