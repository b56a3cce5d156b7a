"""A publisher's decoding settings are applied as by transformers, or named."""

import json
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.parity.test_foreign_answers import SIZES, make
from tests.parity.test_foreign_texts import LINES, SMALL, make_folder, read_tokenizer, their_texts

import dragoman
from dragoman.cli.app import make_app
from dragoman.convert.published import take_over
from dragoman.folder.foreign.settings import APPLIED, IRRELEVANT, NOT_APPLIED, SAMPLING, TRANSLATORS
from dragoman.folder.opening import open_folder

transformers = pytest.importorskip("transformers", reason="needs transformers")


def printed(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Return the output of a command."""
    make_app()([str(argument) for argument in arguments], standalone_mode=False)
    return " ".join(capfd.readouterr().out.split())


def rewrite(folder: Path, **settings: object) -> None:
    """Change the publisher's decoding settings."""
    file = folder / "generation_config.json"
    said = {key: value for key, value in json.loads(file.read_bytes()).items() if value is not None}
    said = {key: value for key, value in {**said, **settings}.items() if value is not None}
    file.write_text(json.dumps(said))


def make_translator(folder: Path, name: str, end: float, **settings: object) -> Any:  # noqa: ANN401
    """Write a translator whose texts end more often with a greater `end`; return their model."""
    model = make_folder(folder, name)
    eos = model.generation_config.eos_token_id
    model.final_logits_bias[0, eos] = end
    model.save_pretrained(folder)
    rewrite(folder, **{"max_length": None, **settings})
    model.generation_config = transformers.GenerationConfig.from_pretrained(folder)
    return model


def make_decoder(folder: Path, **settings: object) -> Any:  # noqa: ANN401 -- theirs
    """Write a small Llama; return their model."""
    model, tokenizer = make(folder, "llama", "LlamaForCausalLM", SIZES), read_tokenizer(folder)
    ids = {"eos_token_id": tokenizer.eos_token_id, "bos_token_id": tokenizer.bos_token_id}
    model.config.update(ids)
    model.save_pretrained(folder)
    (folder / "generation_config.json").write_text(json.dumps(ids | settings))
    model.generation_config = transformers.GenerationConfig(**ids, **settings)
    return model


@pytest.mark.parametrize(
    ("name", "end", "limit"),
    [("marian", 5.0, "max_length"), ("bart", 4.0, "max_new_tokens"), ("bart", 5.0, "max_length")],
)
def test_a_forced_end_cuts_as_their_class(
    name: str, end: float, limit: str, tmp_path: Path
) -> None:
    """Texts that end by themselves and texts that are cut compete in one beam, as in theirs."""
    model = make_translator(tmp_path, name, end, num_beams=4, length_penalty=1.3, **{limit: 6})
    model.generation_config.forced_eos_token_id = model.generation_config.eos_token_id
    rewrite(tmp_path, forced_eos_token_id=model.generation_config.eos_token_id)
    translator = dragoman.load(tmp_path, device="cpu")
    plain = replace(translator.options, retry=False, split_sentences=False)
    cut = 0
    for num_beams in (4, 1):
        found = translator.translate(LINES, options=replace(plain, beam_size=num_beams))
        chosen: dict[str, Any] = {} if num_beams > 1 else {"num_beams": 1, "length_penalty": 1.0}
        assert [one.text for one in found] == their_texts(tmp_path, name, model, LINES, **chosen)
        for one in found:
            is_cut = "max_length" in one.flags
            cut += is_cut
            assert len(one.token_log_probs) == len(one.tokens) + (not is_cut)
    assert cut


@pytest.mark.parametrize(
    "settings",
    [
        {"min_new_tokens": 5},
        {"min_length": 5},
        {"forced_eos_token_id": None},
        {"bad_words_ids": [[5], [7, 9]]},
        {"renormalize_logits": True, "no_repeat_ngram_size": 1},
        {"repetition_penalty": 1.5},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_a_setting_is_applied_as_by_their_class(
    settings: Mapping[str, Any], tmp_path: Path
) -> None:
    """Minimum lengths, no forced end, and forbidden sequences, each of which changes some texts."""
    model = make_translator(tmp_path, "bart", 4.0, num_beams=3, max_new_tokens=8)
    before = their_texts(tmp_path, "bart", model, LINES)
    if "bad_words_ids" in settings:  # two tokens that they write in succession
        given = read_tokenizer(tmp_path)(LINES[2], return_tensors="pt")["input_ids"]
        written = model.generate(given, attention_mask=torch.ones_like(given))[0].tolist()
        settings = {"bad_words_ids": [*settings["bad_words_ids"], written[2:4]]}
    rewrite(tmp_path, **settings)
    for key, value in settings.items():
        setattr(model.generation_config, key, value)
    translator = dragoman.load(tmp_path, device="cpu")
    options = replace(translator.options, retry=False, split_sentences=False)
    ours = [found.text for found in translator.translate(LINES, options=options)]
    assert ours == their_texts(tmp_path, "bart", model, LINES)
    assert (ours != before) == ("forced_eos_token_id" not in settings)


@pytest.mark.parametrize("key", ["eos_token_id", "decoder_start_token_id", "bad_words_ids"])
def test_generation_has_ids_of_its_own(key: str, tmp_path: Path) -> None:
    """Its settings name the end, and the start or else bos; nobody can forbid the end."""
    model = make_translator(tmp_path, "bart", 4.0, max_new_tokens=6)
    eos, other = model.config.eos_token_id, read_tokenizer(tmp_path).mask_token_id
    model.final_logits_bias[0, other] = 4.0
    model.save_pretrained(tmp_path)
    before = their_texts(tmp_path, "bart", model, LINES)
    ids = {"eos_token_id": other, "bad_words_ids": [[eos]], "decoder_start_token_id": None}
    rewrite(tmp_path, **{key: ids[key]})
    model.generation_config = transformers.GenerationConfig.from_pretrained(tmp_path)
    translator = dragoman.load(tmp_path, device="cpu", as_published=True)
    ours = [found.text for found in translator.translate(LINES)]
    assert ours == their_texts(tmp_path, "bart", model, LINES)
    assert (ours == before) == (key == "bad_words_ids")


@pytest.mark.parametrize("key", ["forced_bos_token_id", "force_bos_token_to_be_generated"])
def test_folders_of_2020_say_it_in_their_config(key: str, tmp_path: Path) -> None:
    """The settings are in config.json, as for bart-large-cnn, which had no other file."""
    said: dict[str, Any] = {"num_beams": 4, "length_penalty": 2.0, "early_stopping": True}
    said |= {"max_length": 142, "min_length": 56, "no_repeat_ngram_size": 3}
    said |= {"bad_words_ids": [[16]], "vocab_size": 29}
    said |= {"bos_token_id": 0, "decoder_start_token_id": 2, key: 0 if "id" in key else True}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bart", **SMALL, **said}))
    config = open_folder(tmp_path).config
    decoding, published = config.decoding, config.published
    found = (decoding.beam_size, decoding.length_penalty, decoding.max_length_constant)
    assert found == (4, 2.0, 141)
    assert published is not None
    assert (published.begin, published.forbidden, published.min_length) == ((0,), (16,), 55)
    assert (published.early_stopping, published.no_repeat_ngrams) == ("full", 3)


@pytest.mark.parametrize("settings", [{"max_length": 14}, {"max_new_tokens": 5, "max_length": 14}])
def test_the_length_of_a_decoder_is_that_of_its_class(
    settings: Mapping[str, Any], tmp_path: Path
) -> None:
    """`max_length` counts the prompt; `max_new_tokens` and our own option do not."""
    model = make_decoder(tmp_path, min_new_tokens=3, **settings)
    tokenizer = read_tokenizer(tmp_path)
    generator = dragoman.load(tmp_path, device="cpu")
    for line in ("A man", "A man in a hat"):
        given = tokenizer(line, return_tensors="pt")["input_ids"]
        assert given.shape[1] < 14
        with torch.no_grad():
            (theirs,) = model.generate(given, attention_mask=torch.ones_like(given))
        written = [
            id_ for id_ in theirs[given.shape[1] :].tolist() if id_ != tokenizer.eos_token_id
        ]
        assert list(generator.generate(line).ids) == written
    assert len(generator.generate("A man in a hat", max_tokens=20).ids) == 20


def test_a_decoder_never_writes_a_forbidden_sequence(tmp_path: Path) -> None:
    """Like its class, it chooses another token for the last one."""
    model, line = make_decoder(tmp_path, max_new_tokens=8), "A man"
    given = read_tokenizer(tmp_path)(line, return_tensors="pt")["input_ids"]
    keys = {"attention_mask": torch.ones_like(given)}
    before = model.generate(given, **keys)[0, given.shape[1] :].tolist()
    rewrite(tmp_path, bad_words_ids=[before[1:3]])
    after = model.generate(given, **keys, bad_words_ids=[before[1:3]])[0, given.shape[1] :].tolist()
    assert list(dragoman.load(tmp_path, device="cpu").generate(line).ids) == after != before


def test_the_command_generates_as_the_library(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The publisher's settings apply unless an option is given."""
    sampling = {"do_sample": True, "temperature": 1.5, "top_k": 40, "top_p": 0.6, "min_p": 0.02}
    penalties = {"repetition_penalty": 1.7, "no_repeat_ngram_size": 2, "max_new_tokens": 12}
    make_decoder(tmp_path, **sampling, **penalties)
    options = dragoman.load(tmp_path, device="cpu").options
    assert (options.temperature, options.top_k, options.top_p, options.min_p) == (
        1.5,
        40,
        0.6,
        0.02,
    )
    assert (options.repetition_penalty, options.no_repeat_ngrams) == (1.7, 2)
    prompt = "A man in an orange hat"
    ours = dragoman.load(tmp_path, device="cpu").generate(prompt, seed=3).text
    command = ("generate", tmp_path, prompt, "--seed", "3", "--json", "--device", "cpu")
    assert json.loads(printed(capfd, *command))["text"] == ours
    assert json.loads(printed(capfd, *command, "--top-p", "1"))["text"] != ours


def test_every_field_of_theirs_is_known() -> None:
    """Each is in exactly one table: it is applied, changes no text, or is named."""
    tables = [APPLIED, TRANSLATORS, SAMPLING, IRRELEVANT, NOT_APPLIED.keys()]
    known = [name for table in tables for name in table]
    assert len(known) == len(set(known))
    assert set(vars(transformers.GenerationConfig())) == set(known)


def test_each_setting_that_is_not_applied_is_named(tmp_path: Path) -> None:
    """There is one warning, with unknown keys too; values without effect are ignored."""
    translator, decoder = tmp_path / "translator", tmp_path / "decoder"
    make_folder(translator, "bart")
    make_decoder(decoder)

    def named(folder: Path, **settings: object) -> str:
        rewrite(folder, **settings)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            open_folder(folder).load()
        return " ".join(str(one.message) for one in found)

    without_effect = {key: value for key, value in NOT_APPLIED.items() if value is not None}
    sampling = {"temperature": 0.7, "top_k": 5, "top_p": 0.5, "typical_p": 0.5}
    for folder in (translator, decoder):
        assert named(folder, **without_effect) == ""
        assert named(folder, **sampling) == ""
        assert " sets eta_of_tomorrow, typical_p, which dragoman" not in named(folder)
    message = named(translator, eos_token_id=[2, 5], forced_eos_token_id=5, typical_p=1.0)
    assert " sets eos_token_id, forced_eos_token_id, which dragoman does not apply" in message
    rewrite(translator, eos_token_id=2, forced_eos_token_id=None, typical_p=0.5)
    message = named(translator, do_sample=True, guidance_scale=2.0, eta_of_tomorrow=1)
    names = "do_sample, eta_of_tomorrow, guidance_scale, temperature, top_k, top_p, typical_p"
    assert f"generation_config.json sets {names}, which dragoman does not apply" in message
    message = named(decoder, do_sample=True, min_length=3, forced_eos_token_id=2)
    assert " sets forced_eos_token_id, min_length, typical_p, which" in message


def test_a_converted_folder_names_them_too(tmp_path: Path) -> None:
    """What its publisher set is still not applied."""
    folder, ours = tmp_path / "theirs", tmp_path / "ours"
    make_decoder(folder, guidance_scale=2.0)
    with pytest.warns(UserWarning, match="guidance_scale"):
        take_over(folder, ours)
    with pytest.warns(UserWarning, match="huggingface/generation_config.json sets guidance_scale"):
        open_folder(ours).load()


def test_inspect_says_what_a_published_folder_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It shows the source and the way it is read, but no language that the folder does not name."""
    make_folder(tmp_path, "marian")
    shown = printed(capfd, "inspect", tmp_path)
    assert "a folder of Hugging Face (marian), read as it is" in shown
    assert "format 0" not in shown
    assert "unknown" not in shown
