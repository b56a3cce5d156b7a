"""Hugging Face folders for CTranslate2 and ONNX, against the classes that published them."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.foreign_folders import set_keys
from tests.parity.test_converted_onnx import own_program
from tests.parity.test_foreign_texts import (
    CASES,
    CODES,
    LINES,
    make_folder,
    read_tokenizer,
    their_texts,
)
from tests.parity.test_verify import make

import dragoman
from dragoman.convert.published import take_over
from dragoman.convert.targets import TargetName, convert
from dragoman.errors import InputError
from dragoman.tasks.lines import one_line

ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra `export` is not installed")
pytest.importorskip("transformers", reason="needs transformers")
SOME = LINES[:8]


def folder_for(
    name: str, path: Path, sizes: Mapping[str, Any] | None = None
) -> tuple[Path, object]:
    """Write a Hugging Face folder; for a translator of one language pair, convert it to ours."""
    model = make_folder(path / "theirs", name, sizes)
    if name in CODES:
        return path / "theirs", model
    take_over(path / "theirs", path / "ours")
    return path / "ours", model


@pytest.mark.parametrize("name", [name for name in CASES if name != "umt5"])
def test_ctranslate2_translates_as_we_do(name: str, tmp_path: Path) -> None:
    """The conversion itself compares; `test_foreign_texts` compares us with their class."""
    folder, _ = folder_for(name, tmp_path)
    assert convert(folder, tmp_path / "out", "ctranslate2", SOME).worst < 2e-5


def test_ctranslate2_is_used_by_the_tokenizer_of_the_publisher(tmp_path: Path) -> None:
    """It takes pieces by the tokenizer's names, and the language as a prefix."""
    folder, model = folder_for("nllb", tmp_path)
    convert(folder, tmp_path / "out", "ctranslate2", SOME)
    tokenizer = read_tokenizer(folder)
    tokenizer.src_lang, tgt = CODES["nllb"]
    engine = ctranslate2.Translator(str(tmp_path / "out"), compute_type="float32")
    texts = their_texts(folder, "nllb", model, SOME, num_beams=1)
    for line, text in zip(SOME, texts, strict=True):
        (found,) = engine.translate_batch(
            [tokenizer.convert_ids_to_tokens(tokenizer(line).input_ids)],
            target_prefix=[[tgt]],
            beam_size=1,
            min_decoding_length=0,
            max_decoding_length=15,
        )
        ids = tokenizer.convert_tokens_to_ids(found.hypotheses[0])
        assert one_line(tokenizer.decode(ids, skip_special_tokens=True)) == text


ONE_LAYER = {"encoder_layers": 1, "decoder_layers": 1}


def mbart_of_one_pair(path: Path) -> Path:
    """Write a folder whose decoder starts with a language, like a fine-tuned mBART."""
    make_folder(path, "mbart", ONE_LAYER)
    start = read_tokenizer(path).convert_tokens_to_ids("de_DE")
    for file in ("config.json", "generation_config.json"):
        set_keys(path, file, decoder_start_token_id=start)
    return path


def test_a_language_that_a_decoder_starts_with_is_read_once(tmp_path: Path) -> None:
    """`run.py` reads it once too: see below."""
    path = mbart_of_one_pair(tmp_path / "theirs")
    assert convert(path, tmp_path / "out", "ctranslate2", SOME).worst < 2e-5


@pytest.mark.parametrize("case", ["gpt2", "llama", "qwen2", "bert", "xlm-r"])
def test_ctranslate2_answers_as_we_do(case: str, tmp_path: Path) -> None:
    """Continuations of prompts in their tokenizer's frame agree, and an encoder's hidden states."""
    path = make(tmp_path / "theirs", case)
    assert convert(path, tmp_path / "out", "ctranslate2", SOME).worst < 2e-5


@pytest.mark.parametrize(
    ("case", "to", "message"),
    [
        ("bert-classes", "ctranslate2", r"classifies texts .*encoders without a head; .*--to onnx"),
        ("mistral", "ctranslate2", r"^patterns = .*window.* cannot be expressed in CTranslate2"),
        ("bart", "huggingface", r"is a folder of Hugging Face already"),
    ],
)
def test_what_is_refused_of_theirs(case: str, to: TargetName, message: str, tmp_path: Path) -> None:
    """The error is one sentence, and nothing is written."""
    path = make(tmp_path / "theirs", case)
    with pytest.raises(InputError, match=message):
        convert(path, tmp_path / "out", to)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["marian", "mbart"])
def test_the_program_translates_as_we_do(name: str, tmp_path: Path) -> None:
    """It uses SentencePiece or tokenizers; a decoder may start with one of two languages.

    `test_converted_onnx` tests an encoder.
    """
    pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
    if name == "marian":
        (folder, _), lines = folder_for(name, tmp_path, ONE_LAYER), [">>deu<< A man.", *SOME]
    else:
        folder, lines = mbart_of_one_pair(tmp_path / "theirs"), ["A </s> man", *SOME]
    assert convert(folder, tmp_path / "out", "onnx", lines).worst < 2e-5
    codes = CODES.get(name, ())
    translator = dragoman.load(folder, device="cpu").between(*codes)
    options = replace(translator.options, beam_size=1, retry=False, split_sentences=False)
    ours = [each.text for each in translator.translate(lines, options=options)]
    written = own_program(tmp_path / "out", lines, *codes).split("\n")[:-1]
    assert [one_line(text) for text in written] == ours
    if codes:
        command = [sys.executable, "run.py", "en_XX"]
        done = subprocess.run(command, cwd=tmp_path / "out", capture_output=True, check=False)
        assert b"two of ar_AR, cs_CZ, de_DE" in done.stderr


def test_the_program_continues_as_we_do(tmp_path: Path) -> None:
    """Continuations of a prompt in its publisher's frame agree."""
    pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
    path = make(tmp_path / "theirs", "llama", num_hidden_layers=1, max_position_embeddings=2048)
    assert convert(path, tmp_path / "out", "onnx", SOME).worst < 2e-5
    ours = dragoman.load(path, device="cpu")
    found = [[*ours.encode(each.prompt), *each.ids] for each in ours.generate(SOME)]
    expected = [ours.tokenizer.decode(ids) for ids in found]
    assert own_program(tmp_path / "out", SOME) == "".join(f"{text}\n" for text in expected)
