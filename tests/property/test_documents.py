"""Laws of documents: what is no text comes back byte for byte, whatever the bytes.

`DRAGOMAN_FUZZ=100000` mutates so many files of each format.
"""

import os
import random
import sysconfig
from functools import cache
from pathlib import Path, PurePath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.document_oracles import ORACLES
from tests.word_translator import WordTranslator

from dragoman.documents.characters import _is_not_utf8
from dragoman.documents.formats import read_document
from dragoman.documents.translate import translate_document
from dragoman.errors import InputError

SAMPLES = sorted((Path(__file__).parents[1] / "samples").iterdir())
PIECES = [
    *("<", ">", "</b>", "<p ", "<!--", "<script>", "<svg>", "<br><br>", " translate=no>", "&"),
    *("&#99999999999;", '"', "'", "\x00", "\ufeff", "\r", "\n\n", "\t", "\\", "\\u", "{", "[", "]"),
    *("}", "--", "-->", "```", "*", "_", "|", "$", "~~", "- ", ": ", "#", "!", ",", "你好", "🙂"),
    *("\udc80", "\udce9", "\ue000", "\u2028", "00:00:01,000 --> 00:00:02,000\n"),
]
SUFFIXES = [file.suffix for file in SAMPLES]
samples = pytest.mark.parametrize("sample", SAMPLES, ids=SUFFIXES)


def mutated(data: bytes, draw: random.Random) -> bytes:
    """The bytes with some changes: of bits, of places, of pieces that mean something."""
    changed = bytearray(data)
    for _ in range(draw.randint(1, 6)):
        start = draw.randrange(len(changed) + 1)
        end = min(len(changed), start + draw.choice([0, 1, 1, 5, 40, 400]))
        piece = draw.choice(PIECES).encode(errors="surrogateescape")
        with_what = [b"", changed[end : 2 * end - start], bytes([draw.randrange(256)])]
        changed[start:end] = draw.choice([*with_what, piece, piece * draw.randint(1, 30)])
    if draw.random() < 0.1:
        encoding = draw.choice(["utf-8-sig", "utf-16", "utf-32", "cp1252"])
        return changed.decode(errors="replace").encode(encoding, "replace")
    return bytes(changed)


def swapped(word: str) -> str:
    """The word with capitals for small letters, those of ASCII only."""
    return "".join(c.swapcase() if c.isascii() else c for c in word)


def disordered(numbers: list[int]) -> list[int]:
    """The words in another order."""
    return numbers[::2] + numbers[1::2]


def looks_like_utf8(data: bytes) -> bool:
    """As the reader has it that is told no encoding; lost spaces may change that."""
    return not _is_not_utf8(data.decode(errors="surrogateescape"))


def was_read(data: bytes, name: str) -> bool:
    """Assert the laws: a sentence, or the same bytes where no text changes, and only text else."""
    try:
        document = read_document(data, name)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 -- it may raise or not
        return False
    assert translate_document(document, WordTranslator())[0] == data
    try:
        changed, _ = translate_document(document, WordTranslator(swapped))
    except InputError as error:  # letters that were written as escapes
        assert "which lacks letters" in str(error)  # noqa: PT017 -- it may raise or not
        return False
    oracle = ORACLES[PurePath(name).suffix[1:]]
    known = not name.endswith(".md") or b"\r" not in data.replace(b"\r\n", b"")
    if known and looks_like_utf8(data) == looks_like_utf8(changed):
        before, after = oracle(data), oracle(changed)
        assert None in (before, after) or before == after
    _, told = translate_document(document, WordTranslator(lambda word: f"{word}x", disordered))
    return told.segments >= told.translated


@samples
@given(seed=st.integers(0, 2**32))
@settings(max_examples=int(os.environ.get("DRAGOMAN_FUZZ", "50")), deadline=None)
def test_only_text_changes_in_mutated_files(sample: Path, seed: int) -> None:
    """Or the reader says in a sentence what is wrong."""
    data = sample.read_bytes()
    assert was_read(data, sample.name)
    assert was_read(mutated(data, random.Random(seed)), sample.name) in (True, False)


@samples
@given(data=st.binary(max_size=200))
@settings(max_examples=20, deadline=None)
def test_only_text_changes_in_any_bytes(sample: Path, data: bytes) -> None:
    """Whatever they are."""
    assert was_read(data, sample.name) in (True, False)


@cache
def real_files() -> list[Path]:
    """Files of installed packages and of the system's documentation."""
    roots = [Path(sysconfig.get_path("purelib")), Path("/usr/share/doc"), Path("/usr/lib/python3")]
    found = (file for root in roots for file in root.rglob("*.*") if file.suffix in SUFFIXES)
    return sorted(file for file in found if file.is_file() and file.stat().st_size < 40_000)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_only_text_changes_in_real_files(suffix: str) -> None:
    """Those that are there."""
    files = [file for file in real_files() if file.suffix == suffix]
    if not files:
        pytest.skip(f"no *{suffix} is installed")
    files = random.Random(1).sample(files, min(len(files), 20))
    read = [was_read(file.read_bytes(), str(file)) for file in files]
    assert sum(read) >= 0.7 * len(files)
