"""A language in two scripts is two languages, at every door."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.serve.live import Live, serving

from dragoman.serve import deepl, libretranslate

LATIN, CYRILLIC = "Ovo je rečenica na srpskom jeziku.", "Ово је реченица на српском језику."
TEXT = "the cat sees a dog"


@pytest.fixture(scope="module")
def scripts(scripts_folder: Path) -> Iterator[Live]:
    """A server of one model that writes both."""
    with serving(scripts_folder) as live:
        yield live


@pytest.mark.parametrize("code", ["sr_Latn", "SR-LATN", "sr-Latn-RS", "srp_Latn"])
def test_a_script_is_asked_for_in_any_form(scripts: Live, code: str) -> None:
    """At each door; the other one is another."""
    service = scripts.service
    for asked, written in (code, "sr-Latn"), (code.lower().replace("latn", "Cyrl"), "sr-Cyrl"):
        for chosen in (
            service.shelf.choose(None, "en", asked),
            libretranslate.choose(service.shelf, "en", asked),
            deepl.chosen_for(service, "en", asked),
        ):
            assert chosen is not None
            assert chosen[1] == ("en", written)


def test_a_language_without_its_script_is_refused(scripts: Live) -> None:
    """With both of them, wherever it stands."""
    both = "Serbian (sr) is written in several scripts here. Say which: sr-Cyrl, sr-Latn."
    for src, tgt, where in ("en", "sr", "tgt_lang"), ("sr", "en", "src_lang"):
        own = scripts.post("/v1/translate", {"text": TEXT, "src_lang": src, "tgt_lang": tgt})
        assert (own.status, own.json["error"]["where"]) == (400, where)
        libre = scripts.post("/translate", {"q": TEXT, "source": src, "target": tgt})
        assert (libre.status, libre.json["error"]) == (400, both)
        asked = {"text": [TEXT], "source_lang": src, "target_lang": tgt}
        assert scripts.post("/v2/translate", asked).json["detail"] == both


def test_lists_show_both(scripts: Live) -> None:
    """And what is written in one of them is told from the other."""
    libre = {one["code"]: one["name"] for one in scripts.get("/languages").json}
    assert libre == {
        "en": "English",
        "sr-Cyrl": "Serbian (Cyrillic)",
        "sr-Latn": "Serbian (Latin)",
    }
    for kind in "source", "target":
        listed = [one["language"] for one in scripts.get(f"/v2/languages?type={kind}").json]
        assert listed[-2:] == ["SR-CYRL", "SR-LATN"]
    found = scripts.post("/v1/detect", {"text": [LATIN, CYRILLIC]}).json["detections"]
    assert [each["language"] for each in found] == ["sr-Latn", "sr-Cyrl"]
