"""Small files that could become slow or large: content that is repeated with each text."""

import json
import re
import tracemalloc
from time import thread_time

import pytest
from tests.unit.documents.test_runs import document_of
from tests.word_translator import WordTranslator, translated

from dragoman.documents.dialects import with_plain_code
from dragoman.documents.formats import read_document
from dragoman.documents.translate import Draft

LONG, MANY = "k" * 20_000, 500
TMX = (
    f'<!DOCTYPE tmx [<!ATTLIST ph a CDATA "{LONG}">]><tmx><header srclang="en"/><tu>'
    f'<tuv xml:lang="en"><seg>a b {"<ph/>" * MANY}</seg></tuv></tu></tmx>'
)
UNITS = "<trans-unit><source>a b</source></trans-unit>" * MANY
TABS = "<text:tab/>".join(["a b"] * MANY)
STYLED = f'<w:r><w:rPr><w:x w:val="{LONG}"/></w:rPr>%s</w:r>'
SPACES = "<w:r><w:t> </w:t></w:r><w:bookmarkEnd/>" * MANY
SENTENCES = "".join(
    f"<p>{n} words of a sentence that is neither long nor short, and of its kind.</p>\n\n"
    for n in range(600)
)
CELLS = "<w:tab/>".join(["<w:t>a b</w:t>"] * MANY)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.json", json.dumps({LONG: ["a b"] * MANY}).encode()),
        ("a.csv", (f"a,{LONG}\n" + "1,a b\n" * MANY).encode()),
        ("a.xlf", f'<xliff><file id="{LONG}">{UNITS}</file></xliff>'.encode()),
        ("a.tmx", TMX.encode()),
        ("a.fodt", f'<a xmlns:text="t"><text:p><text:span text:style-name="{LONG}">{TABS}'
         "</text:span> c</text:p></a>".encode()),
        ("a.docx", document_of(STYLED % "<w:t>a b c</w:t>" + SPACES + STYLED % "<w:t>d</w:t>")),
        ("a.docx", document_of(STYLED % CELLS)),
        ("a.docx", document_of(f"<w:r><w:t>{'a b ' * MANY}</w:t></w:r>" + STYLED % CELLS)),
        ("a.html", SENTENCES.encode()),
        ("a.md", re.sub("</?p>", "", SENTENCES).encode()),
    ],
    ids=["key", "column", "id", "default", "span", "spaces", "tabs", "styled tabs", "html", "md"],
)  # fmt: skip
def test_no_text_and_no_long_name_is_held_twice(name: str, data: bytes) -> None:
    """As objects the texts alone took five to ten times the file, and copied names 10 MB."""
    translated(data, name)  # which imports what it needs
    translator = WordTranslator(str.upper)
    tracemalloc.start()
    try:
        draft = Draft(read_document(data, name, languages=("en", "de")))
        for _ in draft.stream(translator):
            translator.lines.clear()
            translator.kept.clear()
        made = draft.written()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert draft.report().translated
    assert len(made) < len(data) + 200_000
    assert peak < (8.5 * len(data) if data.count(b"words") else 4_000_000)


def test_ticks_without_partners_are_read_in_linear_time() -> None:
    """Each run of them is longer than the one before, so that none is the end of another."""
    ticks = " ".join("`" * count for count in range(1, 1000))
    begin = thread_time()
    assert with_plain_code(f"{ticks} {{{{ a }}}}") == f"{ticks} xxxxxxx"
    assert thread_time() - begin < 3
