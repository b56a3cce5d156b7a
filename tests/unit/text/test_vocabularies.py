"""Files of tokenizers: those of Marian and SentencePiece, and those that would fill the memory."""

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
from dragoman.folder.tokenizers.vocabularies import (
    find_vocabularies,
    read_decoding,
    read_options,
    read_vocabulary,
)
from dragoman.text.tokenizer import Tokenizer


def test_vocabularies_and_options_of_marian_are_read(tmp_path: Path) -> None:
    """Quotes, escapes, colons in tokens; flags, numbers, lists."""
    text = '</s>: 0\n"\\"a\\": b": 1\n\'it\'\'s\': 2\n"\\x85": 3\n"\\u2028": 4\n▁x: 5\n'
    text += '"\\U0001F600\\xE9": 6\n"\\n\\t\\r\\e\\0\\_\\N\\\\": 7\n'
    (tmp_path / "v.yml").write_text(text, "utf-8")
    tokens = ["</s>", '"a": b', "it's", "\x85", "\u2028", "▁x"]
    tokens += ["😀é", "\n\t\r\x1b\0\xa0\x85\\"]
    assert read_vocabulary(tmp_path / "v.yml") == {token: i for i, token in enumerate(tokens)}
    found = read_options("a: true\nb: -3\nc:\n  - 1\n  - x\nd: ''\ne: []\n\0")
    assert found == {"a": True, "b": -3, "c": [1, "x"], "d": "", "e": []}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.yml", b"a: 1\n- b\n", "line 2: '- b' is not TOKEN: ID"),
        ("v.spm", b"\x0a\x05abc", "it ends too early"),
        ("v.spm", b"\x0a\x02\x18\x01", "v.spm is damaged"),
        ("v.spm", b"\x80", "v.spm is damaged"),
    ],
)
def test_a_damaged_vocabulary_is_one_sentence(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    """Another form, a message that is cut off, a piece without a name."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_vocabulary(tmp_path / name)


def test_vocabularies_are_those_that_decoding_names(tmp_path: Path) -> None:
    """By their names alone, wherever they lay; one that is not named must be the only one."""
    assert find_vocabularies(tmp_path) is None
    for name in ("a.vocab.yml", "b.vocab.yml", "vocab.spm"):
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=r"several vocabularies, a.vocab.yml, b.vocab.yml; name"):
        find_vocabularies(tmp_path)
    said = tmp_path / "model.npz.decoder.yml"
    said.write_text("vocabs:\n  - /far/b.vocab.yml\n  - ./a.vocab.yml\n", "utf-8")
    assert find_vocabularies(tmp_path) == (tmp_path / "b.vocab.yml", tmp_path / "a.vocab.yml")
    (tmp_path / "a.vocab.yml").unlink()
    with pytest.raises(InputError, match=r"lacks a.vocab.yml, which its decoder.yml names"):
        find_vocabularies(tmp_path)
    said.write_text("vocabs: [a.vocab.yml]\n", "utf-8")
    with pytest.raises(InputError, match=r"write the vocabs of decoder.yml as a list"):
        find_vocabularies(tmp_path)
    said.unlink()
    assert find_vocabularies(tmp_path) == (tmp_path / "b.vocab.yml",) * 2


def test_options_are_those_of_the_model_that_is_there(tmp_path: Path) -> None:
    """Training leaves those of other models beside; one that cannot be read is named."""
    for name in ("model.npz", "model.npz.best.npz.decoder.yml", "model.npz.decoder.yml"):
        (tmp_path / name).write_text(f"beam-size: {len(name)}\n", "utf-8")
    assert read_decoding(tmp_path) == {"beam-size": len("model.npz.decoder.yml")}
    (tmp_path / "model.npz.decoder.yml").unlink()
    (tmp_path / "model.npz.decoder.yml").mkdir()
    with pytest.raises(InputError, match=r"Cannot read .*model.npz.decoder.yml"):
        read_decoding(tmp_path)


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


REFUSED: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "a number without an end": (
        lambda folder: (folder / "spiece.model").write_bytes(b"\xff" * 10**6),
        *("t5", "a number without an end"),
    ),
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
