"""An unconverted Hugging Face folder: the texts of its own classes, greedily and with a beam."""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from sentencepiece import SentencePieceTrainer
from tests.foreign_folders import FAMILIES, SENTENCES, noisy, set_keys, without_special
from tests.unit.tasks.tiny_generator import save_generator
from tokenizers import Tokenizer

import dragoman
from dragoman.cli.app import make_app
from dragoman.convert.published import take_over
from dragoman.errors import InputError
from dragoman.folder.opening import open_folder
from dragoman.tasks.lines import one_line

transformers = pytest.importorskip("transformers", reason="needs transformers")

SMALL = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 512,
    "scale_embedding": True,
}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
CODES = {
    "m2m100": ("en", "de"),
    "nllb": ("eng_Latn", "deu_Latn"),
    "mbart50": ("en_XX", "de_DE"),
    "mbart": ("en_XX", "de_DE"),
}
"""Source and target of models with several languages."""
CASES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "marian": ("MarianMTModel", SMALL),
    "bart": ("BartForConditionalGeneration", SMALL | {"scale_embedding": False}),
    "mbart": ("MBartForConditionalGeneration", SMALL),
    "mbart50": ("MBartForConditionalGeneration", SMALL),
    "m2m100": ("M2M100ForConditionalGeneration", SMALL),
    "nllb": ("M2M100ForConditionalGeneration", SMALL),
    "fsmt": ("FSMTForConditionalGeneration", SMALL),
    "t5": ("T5ForConditionalGeneration", T5),
    "umt5": ("UMT5ForConditionalGeneration", T5 | {"model_type": "umt5"}),
}
LINES = [one_line(line) for line in without_special(noisy(SENTENCES, 20))]
LINES = [line for line in LINES if line]


def make_folder(
    folder: Path, name: str, sizes: Mapping[str, Any] | None = None, **generation: object
) -> Any:  # noqa: ANN401 -- theirs
    """Write a model of random weights with a tokenizer of its family; return their model."""
    folder.mkdir(exist_ok=True)
    said = FAMILIES[name.removeprefix("um")](folder)  # umT5's tokenizer is of T5's class
    cls, usual = CASES[name]
    kind = getattr(transformers, cls)
    tokenizer = read_tokenizer(folder)
    starts = {"marian": tokenizer.pad_token_id, "mbart": None, "t5": 0, "umt5": 0}
    ids = {
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "decoder_start_token_id": starts.get(name, tokenizer.eos_token_id),
    }
    torch.manual_seed(0)
    keys = {
        **said,
        **usual,
        **(sizes or {}),
        **ids,
        "vocab_size": len(tokenizer),
        "max_length": None,
    }
    if name == "fsmt":
        keys["src_vocab_size"] = keys["tgt_vocab_size"] = keys.pop("vocab_size")
        keys["max_length"] = 16
    model = kind(kind.config_class(**keys)).eval()
    with torch.no_grad():
        for place, parameter in model.named_parameters():
            if parameter.requires_grad and not (name == "fsmt" and "positions" in place):  # sines
                parameter.add_(0.2 * torch.randn_like(parameter))
            if "encoder_attn." in place:
                parameter.mul_(3)  # so that the output depends on the source
        if "final_logits_bias" in dict(model.named_buffers()):
            model.final_logits_bias.normal_()
            model.final_logits_bias[0, tokenizer.eos_token_id] = 2.0
    ids = {key: value for key, value in ids.items() if value is not None}
    model.generation_config = transformers.GenerationConfig(max_length=16, **ids, **generation)
    model.save_pretrained(folder)
    return model


def read_tokenizer(folder: Path) -> Any:  # noqa: ANN401 -- theirs
    """Return their tokenizer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


def their_texts(
    folder: Path,
    name: str,
    model: Any,  # noqa: ANN401 -- theirs
    lines: Sequence[str],
    tidy: Callable[[str], str] = one_line,
    **chosen: object,
) -> list[str]:
    """Return what their classes write, line by line."""
    tokenizer = read_tokenizer(folder)
    if name in CODES:
        tokenizer.src_lang, tgt = CODES[name]
        key = "decoder_start_token_id" if name == "mbart" else "forced_bos_token_id"
        code = f"__{tgt}__" if name == "m2m100" else tgt
        chosen[key] = tokenizer.convert_tokens_to_ids(code)
    texts = []
    for line in lines:
        ids = tokenizer(line, return_tensors="pt")
        with torch.no_grad():
            (found,) = model.generate(
                input_ids=ids["input_ids"], attention_mask=ids["attention_mask"], **chosen
            )
        texts.append(tidy(tokenizer.decode(found, skip_special_tokens=True)))
    return texts


@pytest.mark.parametrize("name", CASES)
def test_a_folder_translates_as_its_own_classes(name: str, tmp_path: Path) -> None:
    """All lines in one padded batch with a cache, with the publisher's settings; and greedily."""
    words: dict[str, Any] = {"bad_words_ids": [[5]]} if name == "marian" else {}
    model = make_folder(tmp_path, name, num_beams=4, length_penalty=1.3, **words)
    translator = dragoman.load(tmp_path, device="cpu")
    assert translator.options.beam_size == 4
    if name in CODES:
        translator = translator.between(*CODES[name])
    plain = replace(translator.options, retry=False, split_sentences=False)
    for num_beams in (4, 1):
        options = replace(plain, beam_size=num_beams)
        lines = LINES[::3] if num_beams > 1 else LINES  # their beam search is slow
        ours = [found.text for found in translator.translate(lines, options=options)]
        chosen: Any = {} if num_beams > 1 else {"num_beams": 1, "length_penalty": 1.0}
        assert list(map(one_line, ours)) == their_texts(tmp_path, name, model, lines, **chosen)
        assert len(set(ours)) > 1


def test_as_published_returns_the_texts_of_the_class(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One flag is enough, even for lines whose translations mostly loop or are cut."""
    folder, own = tmp_path / "theirs", tmp_path / "own"
    model = make_folder(folder, "marian", num_beams=3)
    lines = [f"{one} {other}" for one, other in zip(LINES, LINES[3:9], strict=False)]
    theirs = their_texts(folder, "marian", model, lines)
    translator = dragoman.load(folder, device="cpu", as_published=True)
    assert [found.text for found in translator.translate(lines)] == theirs
    assert [found.text for found in translator.between(None, "deu").translate(lines)] != theirs
    assert [found.text for found in dragoman.load(folder).translate(lines)] != theirs
    file = tmp_path / "lines"
    file.write_text("".join(f"{line}\n" for line in lines))
    command = ["translate", str(folder), str(file), "--as-published", "--device", "cpu"]
    make_app()(command, standalone_mode=False)
    assert capfd.readouterr().out == "".join(f"{text}\n" for text in theirs)
    save_generator(own)
    with pytest.raises(InputError, match=r"not a model of Hugging Face.*leave out --as-published"):
        dragoman.load(own, as_published=True)


@pytest.mark.parametrize("name", ["bart", "t5"])
def test_space_at_the_beginning_is_read_and_written_as_theirs(name: str, tmp_path: Path) -> None:
    """BART's bytes distinguish " A man" from "A man", in the source and in its output."""
    model = make_folder(tmp_path, name)
    if name == "bart":
        first = read_tokenizer(tmp_path)(" a").input_ids[1]
        model.final_logits_bias[0, first] += 4  # half of the texts begin with it
        model.save_pretrained(tmp_path)
    translator = dragoman.load(tmp_path, device="cpu")
    options = replace(translator.options, retry=False, split_sentences=False, beam_size=1)
    lines = [f"{space}{line}" for line in LINES[:6] for space in ("", " ", "  ")]
    ours = [found.text for found in translator.translate(lines, options=options)]
    raw = their_texts(tmp_path, name, model, lines, tidy=str)
    theirs = [(" " if text.startswith(" ") else "") + one_line(text) for text in raw]
    assert ours == theirs
    assert any(text.startswith(" ") for text in ours) == (name == "bart")


@pytest.mark.parametrize("name", ["bart", "t5"])
def test_space_at_the_beginning_is_scored_and_forced_as_theirs(name: str, tmp_path: Path) -> None:
    """This holds for sources, given translations and prefixes of translations."""
    model = make_folder(tmp_path, name, num_beams=1)
    tokenizer, translator = read_tokenizer(tmp_path), dragoman.load(tmp_path, device="cpu")
    options = replace(translator.options, retry=False, split_sentences=False)
    start = model.config.decoder_start_token_id
    pairs = [(f"{a}A man.", f"{b}a dog") for a in ("", " ") for b in ("", " ")]
    for (src, tgt), scored in zip(pairs, translator.score(pairs), strict=True):
        src_ids = tokenizer(src, return_tensors="pt").input_ids
        tgt_ids = [*tokenizer(tgt, add_special_tokens=False).input_ids, tokenizer.eos_token_id]
        before = torch.tensor([[start, *tgt_ids]])
        with torch.no_grad():
            logits = model(input_ids=src_ids, decoder_input_ids=before[:, :-1]).logits[0]
            (found,) = model.generate(src_ids, decoder_input_ids=before[:, :-1])
        log_probs = logits.log_softmax(-1).gather(1, before[0, 1:, None])
        assert scored.log_prob == pytest.approx(float(log_probs.sum()), abs=1e-3)
        ours = translator.translate(src, prefix=tgt, options=options).text
        text = tokenizer.decode(found, skip_special_tokens=True)
        assert ours == " " * text.startswith(" ") + one_line(text)


def test_a_model_of_many_languages_asks_which(tmp_path: Path) -> None:
    """Without a choice there is no text; for a wrong code the error proposes the nearest one."""
    make_folder(tmp_path, "mbart50")
    translator = dragoman.load(tmp_path, device="cpu")
    with pytest.raises(InputError, match="--tgt-lang"):
        translator.translate("A man.")
    src, tgt = CODES["mbart50"]
    with pytest.raises(InputError, match=f"no target language {tgt}x: .*; did you mean {tgt}"):
        translator.between(src, f"{tgt}x")
    with pytest.raises(InputError, match=r"no source language qqq"):
        translator.between("qqq", tgt)
    scored = translator.between(src, tgt).score([("A man.", "Ein Mann.")])
    assert len(scored[0].tokens) == len(scored[0].token_log_probs)


@pytest.mark.parametrize("name", ["marian", "t5"])
def test_a_line_of_unknown_characters_is_one_line(name: str, tmp_path: Path) -> None:
    """It is copied; if copying is disabled it is flagged; other lines do not change."""
    make_folder(tmp_path, name)
    translator = dragoman.load(tmp_path, device="cpu")
    lines = ["A man.", "😀 😀 😀 😀 😀 😀 😀 😀", "\u200b", "A dog runs."]
    options = replace(translator.options, max_length_factor=0.0, max_length_constant=2)  # all fail
    before, unknown, empty, after = translator.translate(lines, options=options)
    assert (unknown.text, unknown.flags) == (lines[1], ())
    (plain,) = translator.translate([lines[1]], options=replace(options, retry=False))
    assert "unknown_characters" in plain.flags
    assert (empty.text, empty.flags) == ("", ("empty",))
    assert [before, after] == translator.translate([lines[0], lines[3]], options=options)


def test_a_mark_of_marian_is_that_of_the_whole_line(tmp_path: Path) -> None:
    """Each sentence and each chunk is translated into the language that begins the line."""
    make_folder(tmp_path, "marian")
    translator = dragoman.load(tmp_path, device="cpu")
    chosen = translator.between(None, "deu")
    for options in (translator.options, replace(translator.options, max_src_tokens=6)):
        marked = translator.translate(">>deu<< A man. A dog runs.", options=options)
        asked = chosen.translate("A man. A dog runs.", options=options)
        assert len(marked.sentences) == 2
        assert marked.text == asked.text or options.max_src_tokens == 6
    alone = chosen.translate(">>fra<< A man.")
    assert alone.text != translator.translate(">>fra<< A man.").text


def make_small100(folder: Path) -> tuple[Any, Callable[[str], list[int]]]:
    """Write an M2M100 whose sources name the target; return their model and encoder for German."""
    model = make_folder(folder, "m2m100")
    tokenizer = transformers.M2M100Tokenizer.from_pretrained(folder, src_lang="de")
    set_keys(folder, "tokenizer_config.json", tokenizer_class="SMALL100Tokenizer")
    return model, lambda text: tokenizer(text).input_ids


def make_madlad(folder: Path) -> tuple[Any, Callable[[str], list[int]]]:
    """Write a T5 with pieces for languages; return their model and encoder for German."""
    model = make_folder(folder, "t5")
    spiece = folder / "spiece.model"
    SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 20),
        model_prefix=str(spiece.with_suffix("")),
        vocab_size=600,
        hard_vocab_limit=False,
        user_defined_symbols=["<2de>", "<2zh_Latn>"],
        minloglevel=2,
        unk_id=0,
        bos_id=1,
        eos_id=2,
        pad_id=-1,
    )
    (folder / "tokenizer.json").unlink()
    names = {"pad_token": "<s>", "unk_token": "<unk>", "eos_token": "</s>"}
    tokenizer = transformers.T5Tokenizer.from_pretrained(folder, extra_ids=0, legacy=False, **names)
    tokenizer.save_pretrained(folder)
    made = json.loads((folder / "tokenizer.json").read_bytes())
    made["model"]["unk_id"] = 0  # as published; their class writes T5's
    (folder / "tokenizer.json").write_text(json.dumps(made))
    backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
    model.generation_config.eos_token_id = 2
    model.config.update({"eos_token_id": 2, "pad_token_id": 1})
    model.save_pretrained(folder)
    return model, lambda text: backend.encode(f"<2de> {text}").ids


@pytest.mark.parametrize("make", [make_small100, make_madlad])
@torch.no_grad()
def test_a_source_names_its_target(
    make: Callable[[Path], tuple[Any, Callable[[str], list[int]]]], tmp_path: Path
) -> None:
    """SMaLL-100 puts the token of the target before a source, MADLAD-400 a piece of the text."""
    model, encode = make(tmp_path)
    translator = dragoman.load(tmp_path, device="cpu").between(None, "de")
    options = replace(translator.options, retry=False, split_sentences=False, beam_size=1)
    frame, tokenizer = translator.specials.src_frame, open_folder(tmp_path).src_tokenizer
    for line, ours in zip(LINES, translator.translate(LINES, options=options), strict=True):
        ids = [*frame.before, *tokenizer.encode(line), *frame.after]
        assert ids == encode(line)
        given = torch.tensor([ids])
        (found,) = model.generate(given, attention_mask=torch.ones_like(given))
        assert ours.text == one_line(tokenizer.decode(found.tolist()))
    if make is make_small100:
        with pytest.raises(InputError, match="--tgt-lang"):
            dragoman.load(tmp_path, device="cpu").translate("A man.")


@pytest.mark.parametrize("name", ["mbart50", "t5"])
def test_a_converted_folder_translates_the_same(name: str, tmp_path: Path) -> None:
    """It does not need its old folder, and stores how its tokenizers are read."""
    theirs, out = tmp_path / "theirs", tmp_path / "ours"
    make_folder(theirs, name, num_beams=3)
    worst = take_over(theirs, out)
    assert worst is not None
    assert worst <= 1e-5
    before, after = (dragoman.load(folder, device="cpu") for folder in (theirs, out))
    if name in CODES:
        before, after = (each.between(*CODES[name]) for each in (before, after))
    assert before.options == after.options
    ours, again = ([r.text for r in each.translate(LINES[:4])] for each in (before, after))
    assert ours == again
    with pytest.raises(InputError, match="is a dragoman folder already"):
        take_over(out, tmp_path / "third")
