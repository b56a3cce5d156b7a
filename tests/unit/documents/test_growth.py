"""What small files could make slow or large: what comes again with each text."""

import json
import tracemalloc

import pytest
from tests.unit.documents.test_runs import document_of
from tests.word_translator import translated

LONG, MANY = "k" * 20_000, 500
TMX = (
    f'<!DOCTYPE tmx [<!ATTLIST ph a CDATA "{LONG}">]><tmx><header srclang="en"/><tu>'
    f'<tuv xml:lang="en"><seg>a b {"<ph/>" * MANY}</seg></tuv></tu></tmx>'
)
UNITS = "<trans-unit><source>a b</source></trans-unit>" * MANY
TABS = "<text:tab/>".join(["a b"] * MANY)
STYLED = f'<w:r><w:rPr><w:x w:val="{LONG}"/></w:rPr>%s</w:r>'
SPACES = "<w:r><w:t> </w:t></w:r><w:bookmarkEnd/>" * MANY
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
    ],
    ids=["key", "column", "id", "default", "span", "spaces", "tabs", "styled tabs"],
)  # fmt: skip
def test_a_long_name_or_property_is_not_copied_for_each_text(name: str, data: bytes) -> None:
    """Each would take ten megabytes."""
    translated(data, name)  # which imports what it needs
    tracemalloc.start()
    try:
        made, _, report = translated(data, name)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert report.translated
    assert len(made) < len(data) + 200_000
    assert peak < 4_000_000
