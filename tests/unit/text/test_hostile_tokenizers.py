"""Files of tokenizers that would hang, fill the memory or cut texts are refused, or read whole."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.tasks.tiny import make_tokenizer
from tokenizers.processors import TemplateProcessing

from dragoman.errors import InputError
from dragoman.folder.foreign.tokenizers import read_tokenizers
from dragoman.text.tokenizer import Tokenizer

DOUBLE = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
LONG = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10**6}
BOMBS: dict[str, dict[str, Any]] = {
    "doubled forty times": {"normalizer": {"type": "Sequence", "normalizers": [DOUBLE] * 40}},
    "one for a million": {"normalizer": LONG},
    "put before each text": {"normalizer": {"type": "Prepend", "prepend": "a" * 10**6}},
    "while decoding": {"decoder": {"type": "Sequence", "decoders": [DOUBLE] * 40}},
}


def edited(path: Path, **parts: object) -> Path:
    """A tokenizer of ours with other parts."""
    make_tokenizer().save(path)
    path.write_text(json.dumps(json.loads(path.read_bytes()) | parts))
    return path


@pytest.mark.parametrize("bomb", BOMBS)
def test_replacements_that_fill_the_memory_are_refused(bomb: str, tmp_path: Path) -> None:
    """In a tokenizer of ours and in a published one, before any text is encoded."""
    path = edited(tmp_path / "tokenizer.json", **BOMBS[bomb])
    with pytest.raises(InputError, match=r"times longer; at most 1,000 times is supported"):
        Tokenizer.load(path)
    with pytest.raises(InputError, match=r"times longer; at most 1,000 times is supported"):
        read_tokenizers(tmp_path, {})


def test_no_text_is_cut_or_filled_up(tmp_path: Path) -> None:
    """Lengths that a file was used with are no part of what the tokenizer is."""
    whole, path = make_tokenizer(), tmp_path / "tokenizer.json"
    used = whole.copy_backend()
    used.enable_truncation(3)
    used.enable_padding(length=50)
    used.save(str(path))
    text = "the cat sees a big house"
    assert Tokenizer.load(path).encode(text) == whole.encode(text)
    assert Tokenizer.load(path).content_hash == whole.content_hash
    assert read_tokenizers(tmp_path, {})[0].encode(text) == whole.encode(text)


def number_without_end(folder: Path) -> None:
    """A million bytes that all say that another one follows."""
    (folder / "spiece.model").write_bytes(b"\xff" * 10**6)


def long_piece(folder: Path) -> None:
    """A piece of a million characters, which has as many places to be cut at."""
    size, text = b"\xc4\x84\x3d", b"\xc0\x84\x3d" + b"a" * 1_000_000
    (folder / "tokenizer.model").write_bytes((b"\x0a" + size + b"\x0a" + text) * 4)


def many_sentinels(folder: Path) -> None:
    """T5 with a billion of them."""
    piece = b"\x0a\x03\x0a\x01a"
    (folder / "spiece.model").write_bytes(piece * 4)
    (folder / "tokenizer_config.json").write_text('{"extra_ids": 1000000000}')


def pipe(folder: Path) -> None:
    """Settings that are a named pipe, which nobody writes to."""
    (folder / "vocab.txt").write_text("[CLS]\n[SEP]\n[UNK]\n")
    os.mkfifo(folder / "tokenizer_config.json")


def device(folder: Path) -> None:
    """A vocabulary without an end."""
    (folder / "tokenizer_config.json").symlink_to("/dev/zero")
    (folder / "vocab.txt").write_text("[CLS]\n[SEP]\n[UNK]\n")


def long_frame(folder: Path) -> None:
    """A template of a hundred special tokens."""
    backend = make_tokenizer().copy_backend()
    single = ["$A", *["</s>"] * 100]
    backend.post_processor = TemplateProcessing(single=single, special_tokens=[("</s>", 3)])
    backend.save(str(folder / "tokenizer.json"))


def cut_character(folder: Path) -> None:
    """Pieces without the prefix that is cut off when they are joined, here half of a letter."""
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": "x",
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "vocab": {"\u00a4": 0, "\u00e9": 1},
        "merges": [["\u00a4", "\u00e9"]],
    }
    edited(folder / "tokenizer.json", model=model, added_tokens=[])


REFUSED: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "a number without an end": (number_without_end, "t5", "a number without an end"),
    "a long piece": (long_piece, "llama", "has a piece of 1,000,000 characters"),
    "many sentinels": (many_sentinels, "t5", r"extra_ids is 1000000000; .* from 0 to 10,000"),
    "a pipe": (pipe, "bert", "is not a regular file"),
    "a device": (device, "bert", "is not a regular file"),
    "half a character": (cut_character, "gpt2", "does not begin with 'x'"),
    "a long frame": (long_frame, "gpt2", "puts 100 ids around each text"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_never_ends_is_refused(case: str, tmp_path: Path) -> None:
    """One sentence that names the file, at once."""
    damage, family, message = REFUSED[case]
    damage(tmp_path)
    with pytest.raises(InputError, match=message) as caught:
        read_tokenizers(tmp_path, {"model_type": family})
    assert str(tmp_path) in str(caught.value)


def test_a_vocabulary_of_empty_lines_is_read(tmp_path: Path) -> None:
    """A million of them in linear time; the last line feed begins no line."""
    (tmp_path / "vocab.txt").write_text("[CLS]\n[SEP]\n[UNK]\na" + "\n" * 10**6)
    tokenizer, _ = read_tokenizers(tmp_path, {"model_type": "bert"})
    assert tokenizer.encode("a") == [3]
    assert tokenizer.vocab_size == 10**6 + 3
