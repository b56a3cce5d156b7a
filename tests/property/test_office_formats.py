"""Laws of documents in XML and in archives: unchanged text is the same file, whatever it is.

`DRAGOMAN_FUZZ=100000` mutates so many files of each format.
"""

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.office import SAMPLES, mutated
from tests.word_translator import WordTranslator

from dragoman.documents.document import Document
from dragoman.documents.formats import read_document
from dragoman.documents.translate import translate_document
from dragoman.errors import InputError

INSTALLED = {"docx": "templates", "pptx": "templates", "odfdo": "templates", "translate": "."}
"""Packages with documents, and their folders."""


def real_files() -> list[Path]:
    """The documents inside installed packages, and what Debian's packages have."""
    folders = [Path("/usr/share/doc"), Path("/usr/share/i18n")]
    for package, folder in INSTALLED.items():
        if (found := find_spec(package)) is not None and found.origin is not None:
            folders.append(Path(found.origin).parent / folder)
    suffixes = {*map(Path, SAMPLES)}
    endings = {each.suffix for each in suffixes} | {".ott", ".ots", ".otp", ".otg", ".pot"}
    return [path for each in folders for path in sorted(each.rglob("*")) if path.suffix in endings]


@cache
def sample(name: str) -> bytes:
    """A document of a kind."""
    return SAMPLES[name]()


def read(data: bytes, name: str) -> Document:
    """The document; the languages are those of the samples."""
    return read_document(data, name, languages=("en", "de"))


def assert_unchanged(document: Document, data: bytes) -> None:
    """Neither nothing nor what an engine returns as it was changes a byte."""
    assert document.written(lambda _: None) == data
    assert translate_document(document, WordTranslator())[0] == data


def assert_readable_when_changed(document: Document, name: str) -> Document:
    """What is written with other words, in any order, is a document that can be read."""
    made, _ = translate_document(document, WordTranslator(str.upper, lambda order: order[::-1]))
    return read(made, name)


@pytest.mark.parametrize("name", SAMPLES)
def test_unchanged_texts_are_the_same_file(name: str) -> None:
    """Of all formats."""
    document = read(sample(name), name)
    assert_unchanged(document, sample(name))
    assert_readable_when_changed(document, name)


def test_unchanged_real_files_are_the_same() -> None:
    """As they lie in packages that are installed."""
    files = real_files()
    if not files:
        pytest.skip("no package with documents is installed")
    for path in files:
        document = read(path.read_bytes(), path.name)
        assert_unchanged(document, path.read_bytes())
        assert_readable_when_changed(document, path.name)


@pytest.mark.parametrize("name", [name for name in SAMPLES if name[2:] not in {"xlf", "tmx", "po"}])
def test_texts_written_as_they_are_are_read_as_they_were(name: str) -> None:
    """Also where paragraphs are written anew, all have the same texts and tags."""
    document = read(sample(name), name)
    texts = [segment.write(segment.source) for segment in document.segments]
    again = read(document.written(texts.__getitem__), name)
    assert [segment.source for segment in again.segments] == [
        segment.source for segment in document.segments
    ]


@pytest.mark.parametrize("name", SAMPLES)
@settings(max_examples=int(os.environ.get("DRAGOMAN_FUZZ", "40")), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_damaged_file_has_a_sentence_or_a_result(name: str, seed: int) -> None:
    """And a result is the same file where nothing is changed, and one that can be read if not."""
    data = mutated(sample(name), Random(seed))
    try:
        document = read(data, name)
    except InputError:
        return
    assert_unchanged(document, data)
    assert_readable_when_changed(document, name)
