"""The files of the server's page: texts in both languages, and nothing that is forbidden."""

import json
import re
from collections import Counter
from importlib.resources import files

import pytest

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")

from dragoman.cli.output import FLAGS
from dragoman.lens import page as lens_page
from dragoman.serve import page
from dragoman.serve.page import LENS_SCRIPTS, SCRIPTS, contents

PATHS = ("/", "/page/page.js", "/page/page.css", "/page/icon.svg")


def labels() -> dict[str, dict[str, str]]:
    """Return all texts of the page by language."""
    _, labels = contents()["/"][1].decode().split(' id="labels">')
    found: dict[str, dict[str, str]] = json.loads(labels.split("</script>")[0])
    return found


def scripts() -> str:
    """Return all scripts of the page."""
    parts = [(lens_page, name) for name in LENS_SCRIPTS] + [(page, name) for name in SCRIPTS]
    return "\n".join(files(part).joinpath(name).read_text("utf-8") for part, name in parts)


def test_every_word_is_there_in_both_languages() -> None:
    """Keys and placeholders are equal, no text is empty, and every key in the scripts exists."""
    words = labels()
    assert set(words) == {"en", "zh"}
    assert set(words["en"]) == set(words["zh"])
    for key, text in words["en"].items():
        other = words["zh"][key]
        assert text.strip()
        assert other.strip()
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", other)), key
    assert set(re.findall(r"""\bt\(\s*"([\w.-]+)\"""", scripts())) - set(words["en"]) == set()


def test_flags_are_named_as_the_command_line_names_them() -> None:
    """The flags of a translation have the same names; that of an empty text is not shown."""
    english = labels()["en"]
    for flag, words in FLAGS.items():
        assert flag == "empty" or english[f"flag.{flag}"] == words


def test_scripts_of_both_pages_share_no_name() -> None:
    """They are joined into one script, where a second definition would replace the first."""
    named = re.findall(
        r"^(?:async )?(?:function|const|let|class) (\w+)", scripts(), flags=re.MULTILINE
    )
    assert [name for name, count in Counter(named).items() if count > 1] == []


def test_the_page_needs_no_exception_from_its_policy() -> None:
    """The HTML has no inline scripts or styles, no external addresses, and only known files."""
    assert tuple(contents()) == PATHS
    html = contents()["/"][1].decode()
    assert re.findall(r"<style|\bstyle=|\bon\w+=|https?:", html) == []
    loaded = re.findall(r'<script(?! type="application/json")([^>]*)>([^<]*)', html)
    assert loaded == [(' src="page/page.js"', "")]
    assert {f"/{path}" for path in re.findall(r'(?:src|href)="(?!#)([^"]*)"', html)} == {*PATHS[1:]}
    for path in PATHS[1:3]:
        text = contents()[path][1].decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|@import|url\(|\beval\(|innerHTML|\{ style: ", text)
