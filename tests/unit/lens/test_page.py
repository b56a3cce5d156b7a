"""One file that holds everything, in which a text stays a text."""

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.lens.inspections import MADE, classification, continuation, translation

from dragoman.errors import InputError
from dragoman.lens import page as package
from dragoman.lens.inspection import Inspection, Sentence
from dragoman.lens.page import MAX_WEIGHTS, SCRIPTS, as_json, page, write_page

STATIC = Path(package.__file__).parent
LABELS = json.loads((STATIC / "labels.json").read_text(encoding="utf-8"))


def data_of(html: str) -> dict[str, object]:
    """The data that a page holds, found as a browser finds it: up to the first `</script>`."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    read: dict[str, object] = json.loads(found[1])
    return read


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_the_page_holds_the_inspection(make: Callable[[], Inspection]) -> None:
    """What the page holds is the JSON of --json, with whole numbers for weights."""
    inspection = make()
    held = data_of(page(inspection))
    said = inspection.to_dict()
    assert {key: held[key] for key in said if key != "attention"} == {
        key: said[key] for key in said if key != "attention"
    }
    maps = held["attention"]
    assert isinstance(maps, list)
    for kept, original in zip(maps, said["attention"], strict=True):
        weights = np.array(kept["weights"]) / held["one"]
        assert np.abs(weights - np.array(original["weights"])).max() <= 1e-4
        assert kept["summaries"] == original["summaries"]


def test_the_page_asks_no_network() -> None:
    """No address, no import, no file beside it; and a policy that would forbid it anyhow."""
    html = page(translation())
    without_names = html.replace("http://www.w3.org/2000/svg", "")  # a name, never fetched
    assert not re.search(r"https?:|//\w+\.\w|@import|url\(|\bimport\b|fetch\(", without_names)
    assert re.findall(r"<(?:link|img|iframe|object|base)\b", html) == []
    assert re.findall(r'\b(?:src|href)="(?!#)', html) == []
    assert "default-src 'none'" in html


@given(st.text())
def test_any_text_stays_data(text: str) -> None:
    """Whatever a text says, it neither ends the script element nor breaks a line."""
    written = as_json({text: [text]})
    assert not set(written) & set("<>&\u2028\u2029")
    assert json.loads(written) == {text: [text]}


@pytest.mark.parametrize(
    "text",
    ["</script><script>alert(1)</script>", "<!--<script>", "a\u2028b", "%%DATA%%", "\\u003c"],
)
def test_hostile_texts_are_held_as_they_are(text: str) -> None:
    """Tokens that look like markup, or like a place of the template."""
    hostile = dataclasses.replace(continuation(), src=Sentence(text=text, tokens=(text,)))
    html = page(hostile)
    assert data_of(html)["src"] == {"text": text, "tokens": [text]}
    assert html.count("</script>") == page(continuation()).count("</script>")


def test_the_policy_allows_the_script_and_the_style_that_are_there() -> None:
    """The hashes of the policy are those of the elements; a changed byte would stop the page."""
    import base64
    import hashlib

    html = page(translation())
    for kind, element in (("script-src", "script"), ("style-src", "style")):
        content = re.findall(f"<{element}>(.*?)</{element}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content[-1].encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in html


def test_a_page_that_no_browser_would_bear_is_refused(tmp_path: Path) -> None:
    """Too many weights: the message says how many, and how many there may be."""
    whole = translation()
    side = int(MAX_WEIGHTS**0.5) + 1
    large = dataclasses.replace(whole.attention[0], weights_LHTS=np.zeros((1, 1, side, side)))
    with pytest.raises(InputError, match=f"{side * side:,} attention weights, and {MAX_WEIGHTS:,}"):
        write_page(dataclasses.replace(whole, attention=(large,)), tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_numbers_that_are_no_json_are_null() -> None:
    """NaN would leave the browser with nothing to read."""
    broken = dataclasses.replace(classification().attributions[0], scores=(float("nan"),))
    assert '"scores":[null]' in page(dataclasses.replace(classification(), attributions=(broken,)))


def test_every_word_that_the_scripts_ask_for_is_there() -> None:
    """Each literal key exists; each key is asked for, literally or by a pattern (`kind.${}`)."""
    script = "\n".join((STATIC / name).read_text(encoding="utf-8") for name in SCRIPTS)
    assert set(re.findall(r"""\bt\(\s*"([\w.-]+)\"""", script)) - set(LABELS["en"]) == set()
    quoted = set(re.findall(r'"([\w.-]+)"', script))
    patterns = [
        re.sub(r"\\\$\\\{.*?\\\}", ".+", re.escape(template))
        for template in re.findall(r"\bt\(`([^`]+)`", script)
    ]
    asked = re.compile("|".join(patterns))
    assert [key for key in LABELS["en"] if key not in quoted and not asked.fullmatch(key)] == []


def test_no_part_is_forgotten() -> None:
    """Every script of the folder is joined, and none fits in less than a head."""
    assert sorted(SCRIPTS) == sorted(path.name for path in STATIC.glob("*.js"))
    parts = [path for path in STATIC.iterdir() if path.suffix in {".js", ".css", ".html", ".json"}]
    assert max(len(path.read_text(encoding="utf-8").splitlines()) for path in parts) <= 400
