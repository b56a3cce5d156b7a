"""Laws of documents: everything except text comes back byte for byte, whatever the bytes.

`DRAGOMAN_FUZZ=100000` mutates that many files of each format.
"""

import os
import sysconfig
from collections.abc import Callable
from functools import cache
from pathlib import Path, PurePath
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import office
from tests.document_oracles import ORACLES
from tests.word_translator import WordTranslator

from dragoman.documents.characters import _is_not_utf8, decoded
from dragoman.documents.formats import read_document
from dragoman.documents.translate import translate_document
from dragoman.errors import InputError

TEXTS = sorted((Path(__file__).parents[1] / "samples").iterdir())
SAMPLES: dict[str, Callable[[], bytes]] = {
    **{file.name: file.read_bytes for file in TEXTS},
    **office.SAMPLES,
}
SUFFIXES = dict.fromkeys(
    [*(PurePath(name).suffix for name in SAMPLES), *(".ott", ".ots", ".otp", ".otg", ".pot")]
)
samples = pytest.mark.parametrize("name", SAMPLES)
PIECES = [
    *("<", ">", "</b>", "<p ", "<!--", "<script>", "<svg>", "<br><br>", " translate=no>", "&"),
    *("&#99999999999;", '"', "'", "\x00", "\ufeff", "\r", "\n\n", "\t", "\\", "\\u", "{", "[", "]"),
    *("}", "--", "-->", "```", "*", "_", "|", "$", "~~", "- ", ": ", "#", "!", ",", "你好", "🙂"),
    *("\udc80", "\udce9", "\ue000", "\u2028", "00:00:01,000 --> 00:00:02,000\n"),
]


@cache
def sample(name: str) -> bytes:
    """Return a document of this kind."""
    return SAMPLES[name]()


def mutated(data: bytes, draw: Random) -> bytes:
    """Return the bytes with some changes: of bits, of positions, of meaningful pieces."""
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
    """Swap the case of the word's ASCII letters."""
    return "".join(c.swapcase() if c.isascii() else c for c in word)


def disordered(numbers: list[int]) -> list[int]:
    """Return the words in another order."""
    return numbers[::2] + numbers[1::2]


def looks_like_utf8(data: bytes) -> bool | None:
    """Return what a reader without a given encoding decides, or None if it refuses.

    Lost spaces and other words may change the decision.
    """
    try:
        decoded(data, "x")
    except InputError:
        return None
    return not _is_not_utf8(data.decode(errors="surrogateescape"))


def was_read(data: bytes, name: str) -> bool:
    """Assert the laws: one sentence; or the same bytes if no text changes, else only text differs.

    If there is no other reader, the changed document can be read again.
    """
    oracle = ORACLES.get(PurePath(name).suffix[1:])
    languages = (None, None) if oracle else ("en", "de")  # those of the samples
    try:
        document = read_document(data, name, languages=languages)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 -- it may raise or not
        return False
    assert document.written(lambda _: None) == data
    assert translate_document(document, WordTranslator())[0] == data
    disordering = WordTranslator(lambda word: f"{word}x", disordered)
    try:
        changed, _ = translate_document(document, WordTranslator(swapped))
        made, told = translate_document(document, disordering)
    except InputError as error:  # letters that were written as escapes
        assert "which lacks letters" in str(error)  # noqa: PT017 -- it may raise or not
        return False
    assert told.segments >= told.translated
    if oracle is None:
        read_document(made, name, languages=languages)
        return True
    known = not name.endswith(".md") or b"\r" not in data.replace(b"\r\n", b"")
    if known and looks_like_utf8(data) == looks_like_utf8(changed):
        before, after = oracle(data), oracle(changed)
        assert None in (before, after) or before == after
    return True


@samples
def test_only_text_changes(name: str) -> None:
    """Only text changes in the samples of all formats."""
    assert was_read(sample(name), name)


@samples
@given(seed=st.integers(0, 2**32))
@settings(max_examples=int(os.environ.get("DRAGOMAN_FUZZ", "50")), deadline=None)
def test_only_text_changes_in_mutated_files(name: str, seed: int) -> None:
    """Or the reader says in a sentence what is wrong."""
    mutate = office.mutated if name in office.SAMPLES else mutated
    assert was_read(mutate(sample(name), Random(seed)), name) in (True, False)


@pytest.mark.parametrize("name", [file.name for file in TEXTS])
@given(data=st.binary(max_size=200))
@settings(max_examples=20, deadline=None)
def test_only_text_changes_in_any_bytes(name: str, data: bytes) -> None:
    """Whatever they are."""
    assert was_read(data, name) in (True, False)


@cache
def real_files() -> list[Path]:
    """Return files of installed packages and of the system's documentation."""
    folders = ["/usr/share/doc", "/usr/share/i18n", "/usr/lib/python3"]
    roots = map(Path, [sysconfig.get_path("purelib"), *folders])
    found = (file for root in roots for file in root.rglob("*.*") if file.suffix in SUFFIXES)
    return sorted(file for file in found if file.is_file() and file.stat().st_size < 40_000)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_only_text_changes_in_real_files(suffix: str) -> None:
    """Only text changes in the files that this machine has."""
    files = [file for file in real_files() if file.suffix == suffix]
    if not files:
        pytest.skip(f"no *{suffix} is installed")
    files = Random(1).sample(files, min(len(files), 20))
    read = [was_read(file.read_bytes(), str(file)) for file in files]
    assert sum(read) >= (0.7 if suffix[1:] in ORACLES else 1) * len(files)


@pytest.mark.parametrize("name", [n for n in office.SAMPLES if n[2:] not in {"xlf", "tmx", "po"}])
def test_texts_written_as_they_are_are_read_as_they_were(name: str) -> None:
    """All texts and tags are the same, even if paragraphs are written anew."""
    document = read_document(sample(name), name)
    texts = [segment.write(segment.source) for segment in document.segments]
    again = read_document(document.written(texts.__getitem__), name)
    assert [each.source for each in again.segments] == [each.source for each in document.segments]
