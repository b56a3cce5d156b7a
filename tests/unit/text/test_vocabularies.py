"""What Marian and SentencePiece write, read without their libraries."""

from pathlib import Path

import pytest

from dragoman.errors import InputError
from dragoman.folder.tokenizers.vocabularies import (
    find_vocabularies,
    read_decoding,
    read_options,
    read_vocabulary,
)


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
