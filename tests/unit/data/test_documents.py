"""Texts for language models: documents, hold-out, the stream of ids and character counts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from dragoman.data import documents
from dragoman.data.documents import (
    DocumentDataset,
    DocumentTexts,
    HoldOut,
    Split,
    prepare_documents,
    read_documents,
)
from dragoman.errors import InputError
from dragoman.text.train import TokenizerConfig, train_tokenizer

BOS, EOS = 2, 3
TEXT = "one line\nand one\n\n\nthree\n \nfour four\nfive"


class Spacing:
    """A fake tokenizer: code points plus 4, with a space before a text but not before its rest."""

    pad_id, bos_id, eos_id, vocab_size, content_hash = 0, BOS, EOS, 0x110004, "spacing"
    calls = 0

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode a space and the characters."""
        return self.encode_rest([f" {text}" for text in texts])

    def encode_rest(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode the characters."""
        self.calls += 1
        return [[ord(char) + 4 for char in text] for text in texts]


class Ending(Spacing):
    """The same tokenizer with another end of text."""

    eos_id = 1


def written(folder: Path, text: str = TEXT, name: str = "a.txt") -> Path:
    """Write a file with this text."""
    path = folder / name
    path.write_bytes(text.encode())
    return path


def spelt(dataset: DocumentDataset) -> list[str]:
    """Decode the documents, with bos as ( and eos as )."""
    signs = {BOS: "(", EOS: ")"}
    rows = [dataset.texts[i].tolist() for i in range(len(dataset))]
    return ["".join(signs.get(id_) or chr(id_ - 4) for id_ in row) for row in rows]


@pytest.mark.parametrize(
    ("split", "found", "characters"),
    [
        ("file", [f"( {TEXT})"], len(TEXT)),
        (
            "line",
            ["( one line)", "( and one)", "( three)", "( four four)", "( five)"],
            len("one line and one three four four five "),
        ),
        (
            "blank-line",
            ["( one line\nand one)", "( three)", "( four four\nfive)"],
            len("one line\nand one  three  four four\nfive  "),
        ),
    ],
)
def test_documents_stand_between_bos_and_eos(
    tmp_path: Path, split: Split, found: list[str], characters: int
) -> None:
    """Documents are files, lines or paragraphs; line feeds between them count as their ends."""
    train, held = prepare_documents([written(tmp_path)], split, Spacing(), tmp_path / "cache")
    assert spelt(train) == found
    assert train.num_chars == characters
    assert held is None


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
def test_the_end_of_a_file_is_held_out_to_the_character(tmp_path: Path, share: float) -> None:
    """Of n characters the first int(n * (1 - share)) are for training, the rest is held out.

    The first part has no end, and the second begins in the middle of the text.
    """
    paths = [written(tmp_path), written(tmp_path, "zwei\nzeilen\n", "b.txt")]
    train, held = prepare_documents(
        paths, "file", Spacing(), tmp_path / "cache", HoldOut(share=share)
    )
    texts = [TEXT, "zwei\nzeilen\n"]
    cuts = [int(len(text) * (1 - share)) for text in texts]
    assert held is not None
    assert spelt(train) == [f"( {t[:c]}" for t, c in zip(texts, cuts, strict=True) if c]
    assert spelt(held) == [f"({t[c:]})" for t, c in zip(texts, cuts, strict=True)]
    assert train.num_chars + held.num_chars == sum(map(len, texts))


@pytest.mark.parametrize("split", ["line", "blank-line"])
def test_whole_documents_are_held_out_at_the_end(tmp_path: Path, split: Split) -> None:
    """The cut moves to the next document, so that no document is on both sides."""
    parts = list(read_documents([written(tmp_path)], split, HoldOut(share=0.5)))
    cut = int(len(TEXT) * 0.5)
    for part in parts:
        assert part.held == (TEXT.index(part.text) >= cut)
        assert (part.opens, part.inside, part.closes) == (True, False, True)
    assert {part.held for part in parts} == {True, False}
    halves = read_documents([written(tmp_path, "aa\n\nbb\n\n")], split, HoldOut(share=0.5))
    assert [(part.text, part.held) for part in halves] == [("aa", False), ("bb", True)]


def test_a_document_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A paragraph that is too long is refused; a whole file is read in blocks."""
    monkeypatch.setenv("DRAGOMAN_MAX_LINE_BYTES", "9")
    path = written(tmp_path, "aa\n\n" + "bb\n" * 3)
    assert len(list(read_documents([path], "blank-line"))) == 2
    for longer in ("bb\n" * 4, "喜欢\n" * 2):  # 12 and 14 bytes
        path = written(tmp_path, "aa\n\n" + longer)
        with pytest.raises(InputError, match=f"begins with '{longer[:2]}.* has more than 9 bytes"):
            list(read_documents([path], "blank-line"))
    assert "".join(part.text for part in read_documents([path], "file")) == path.read_text("utf-8")


def test_documents_are_drawn_by_their_text(tmp_path: Path) -> None:
    """About the share is held out; equal documents are on the same side, whatever their file."""
    rng = np.random.default_rng(0)
    lines = [f"line {i}" for i in rng.integers(0, 1000, 3000)]
    paths = [written(tmp_path, "\n".join(lines)), written(tmp_path, "\n".join(lines[::-1]), "b")]
    parts = list(read_documents(paths, "line", HoldOut(share=0.2, by="documents")))
    held = {part.text for part in parts if part.held}
    assert held.isdisjoint(part.text for part in parts if not part.held)
    assert 0.15 < sum(part.held for part in parts) / len(parts) < 0.25
    files = [written(tmp_path, f"{line}\nx", f"{i}") for i, line in enumerate(lines[:100])]
    parts = list(read_documents(files, "file", HoldOut(share=0.2, by="documents")))
    assert 8 <= sum(part.held for part in parts) <= 35
    assert all(part.opens and part.closes and not part.inside for part in parts)


def test_a_long_document_comes_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ids do not depend on the block size, with either kind of hold-out."""
    text = "To be,\nor not.\n\n 我 喜欢\n它\n x\ny\nz \nlast\nline" * 9
    tokenizer = train_tokenizer([text], TokenizerConfig(vocab_size=300))
    path = written(tmp_path, text)
    for hold_out in (None, HoldOut(share=0.3)):
        whole = prepare_documents([path], "file", tokenizer, tmp_path / "one", hold_out)
        with monkeypatch.context() as patched:
            patched.setattr(documents, "BLOCK", 5)
            parts = list(read_documents([path], "file", hold_out))
            blocks = prepare_documents([path], "file", tokenizer, tmp_path / "two", hold_out)
        assert len(parts) > 20
        assert sum(part.opens for part in parts) == sum(part.closes for part in parts) + bool(
            hold_out
        )
        for one, two in zip(whole, blocks, strict=True):
            if one is not None and two is not None:
                assert one.texts.ids.tolist() == two.texts.ids.tolist()
                assert one.texts.offsets.tolist() == two.texts.offsets.tolist()
                assert one.num_chars == two.num_chars


def test_the_second_time_nothing_is_tokenised(tmp_path: Path) -> None:
    """The cache is used; another split, hold-out, file or end of text is another entry."""
    encoder, cache, path = Spacing(), tmp_path / "cache", written(tmp_path)
    first, _ = prepare_documents([path], "line", encoder, cache)
    calls = encoder.calls
    again, _ = prepare_documents([path], "line", encoder, cache)
    assert encoder.calls == calls
    assert isinstance(again.texts.ids, np.memmap)
    assert (again.num_chars, again.content_hash) == (first.num_chars, first.content_hash)
    others = [
        prepare_documents([path], "blank-line", encoder, cache),
        prepare_documents([path], "line", encoder, cache, HoldOut(share=0.2)),
        prepare_documents([path], "line", encoder, cache, HoldOut(share=0.3)),
        prepare_documents([path, path], "line", encoder, cache),
        prepare_documents([path], "line", Ending(), cache),
    ]
    hashes = [first.content_hash, *(d.content_hash for both in others for d in both if d)]
    assert len(set(hashes)) == 8


def test_too_little_text_is_refused(tmp_path: Path) -> None:
    """A blank file, or a single document that would be on both sides, is refused."""
    with pytest.raises(InputError, match="no text for"):
        prepare_documents([written(tmp_path, "\n \n")], "line", Spacing(), tmp_path / "cache")
    with pytest.raises(InputError, match=r"no text for .*held out"):
        prepare_documents(
            [written(tmp_path, "one")], "line", Spacing(), tmp_path / "cache", HoldOut()
        )
    with pytest.raises(InputError, match="is empty"):
        prepare_documents([written(tmp_path, "")], "file", Spacing(), tmp_path / "cache")


def test_texts_for_the_tokenizer_are_those_of_training(tmp_path: Path) -> None:
    """The tokenizer sees no held-out text; it does see line feeds."""
    texts = DocumentTexts([written(tmp_path)], "file", HoldOut(share=0.5))
    assert list(texts) == list(texts) == [TEXT[: int(len(TEXT) * 0.5)]]
    assert "\n" in next(iter(texts))


def test_the_report_counts_characters_and_tokens(tmp_path: Path) -> None:
    """The report has the numbers of documents, characters and tokens."""
    path = written(tmp_path, "ab\nc\n")
    dataset, _ = prepare_documents([path], "line", Spacing(), tmp_path / "cache")
    assert list(dataset.report()) == [
        f"{path}: 2 documents, 5 characters, 9 tokens (0.56 characters a token)."
    ]
