"""Translation with a memory: matches are used and flagged, the model does the rest."""

from pathlib import Path

import pytest
from tests.office import TMX

from dragoman import Glossary
from dragoman.data import memory
from dragoman.data.memory import load_memory
from dragoman.documents.formats import read_document
from dragoman.documents.translate import translate_document
from dragoman.errors import InputError
from dragoman.tasks.translate.translator import Translator


def test_what_a_memory_has_is_taken_over(translator: Translator) -> None:
    """White space is ignored; other lines, and lines with a prefix, are unaffected."""
    remembering = translator.remembering({"the cat": "a tree", "": "nothing"})
    lines = ["the cat", " the\tcat ", "the cats", "the cat.", ""]
    found = remembering.translate(lines)
    assert [one.text for one in found[:2]] == ["a tree", "a tree"]
    assert [one.flags for one in found[:2]] == [("memory",), ("memory",)]
    assert found[2:] == translator.translate(lines[2:])
    assert [*remembering.stream(lines, window=2)] == found
    prefixed = remembering.translate("the cat", prefix="sees")
    assert prefixed == translator.translate("the cat", prefix="sees")


def test_what_is_taken_over_is_one_line(translator: Translator) -> None:
    """Line breaks are removed as in every translation; a value that is not text is an error."""
    found = translator.remembering({"the cat": "a\ntree\r\n"}).translate("the cat")
    assert (found.text, found.flags) == ("a tree", ("memory",))
    with pytest.raises(TypeError, match="The memory has nan for 'the  cat'; give a str"):
        translator.remembering({"the cat": float("nan")}).translate("the  cat")  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="The memory is 'x'; give a mapping"):
        translator.remembering("x")  # type: ignore[arg-type]


def test_what_is_taken_over_is_judged(translator: Translator) -> None:
    """Terms that it lacks are missed; capitals are those of the memory."""
    remembering = translator.remembering({"the cat": "a tree", "THE CAT": "Tree"})
    found = remembering.translate("the cat", glossary=Glossary({"the": "x", "cat": "tree"}))
    assert [term.outcome for term in found.terms] == ["missed", "applied"]
    assert found.flags == ("memory", "terms_missed")
    assert remembering.translate("THE CAT").text == "Tree"


def test_what_is_taken_over_has_links(translator: Translator) -> None:
    """The model aligns it, so that tags can be restored, unless it is too long."""
    found = translator.remembering({"the cat": "a tree"}).translate("the cat")
    assert "".join(found.tokens).split() == ["a", "tree"]
    assert {found.text[a:b] for _, _, a, b in found.text_links} <= {"a", "tree", *"atre"}
    assert found.text_links
    assert found.linked()["src_tokens"]
    long = " ".join(["cat"] * 5000)
    assert translator.remembering({long: "a"}).translate(long).text_links == ()
    page = read_document(b"<p>the <b>cat</b></p>", "a.html")
    data, report = translate_document(page, translator.remembering({"the cat": "a tree"}))
    assert data.decode().replace("<b>", "").replace("</b>", "") == "<p>a tree</p>"
    assert not report.flagged


def test_a_memory_is_held_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last translation of a source counts; too many pairs are refused."""
    path = tmp_path / "a.tmx"
    again = TMX.replace("</body>", TMX[TMX.index(" <tu><tuv") : TMX.index("</body>")] + "</body>")
    path.write_text(again.replace("fünf", "FÜNF").replace("FÜNF", "fünf", 1), "utf-8")
    assert load_memory(path, ("en", "de")) == {"Five": "FÜNF"}
    monkeypatch.setattr(memory, "MOST", 1)
    with pytest.raises(InputError, match="has more than 1 pairs; give a part of it"):
        load_memory(path, ("en", "de"))
