"""A text in the language that it is to be in: given back as it is, never translated into itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.serve.live import Live, serving, until
from tests.system.serve.test_documents import filed, sent

ENGLISH = "the cat\n sees a dog"
CHINESE = "我喜欢学习吗。"
POLISH = "Gdzie jest najbliższa biblioteka publiczna?"


@pytest.fixture(scope="module")
def several(several_folder: Path) -> Iterator[Live]:
    """A server of a model of several languages."""
    with serving(several_folder) as live:
        yield live


@pytest.mark.parametrize("kind", ["text", "html"])
@pytest.mark.parametrize("source", ["en", "auto"])
def test_libretranslate_gives_it_back(several: Live, source: str, kind: str) -> None:
    """Whether its language is given or detected; another text is translated."""
    asked = {"source": source, "target": "en", "format": kind}
    answer = several.post("/translate", asked | {"q": [ENGLISH], "alternatives": 1}).json
    assert (answer["translatedText"], answer["alternatives"]) == ([ENGLISH], [[]])
    other = {"q": ENGLISH, "target": "zh"}
    assert several.post("/translate", asked | other).json["translatedText"] != ENGLISH


@pytest.mark.parametrize("more", [{}, {"tag_handling": "xml"}])
def test_deepl_gives_back_each_text_of_its_own(several: Live, more: dict[str, str]) -> None:
    """By the language that is detected in it, or given for all."""
    asked = {"text": [ENGLISH, CHINESE], "target_lang": "EN-GB", "show_billed_characters": True}
    kept, translated = several.post("/v2/translate", asked | more).json["translations"]
    assert (kept["text"], kept["detected_source_language"]) == (ENGLISH, "EN")
    assert [kept["billed_characters"], translated["billed_characters"]] == [0, len(CHINESE)]
    assert translated["text"] != CHINESE
    answer = several.post("/v2/translate", asked | more | {"source_lang": "EN"}).json
    assert [each["text"] for each in answer["translations"]] == [ENGLISH, CHINESE]


def test_a_text_in_what_is_only_written_is_given_back(live: Live) -> None:
    """By a server that reads English alone."""
    asked = {"text": [ENGLISH, CHINESE], "target_lang": "ZH"}
    translated, kept = live.post("/v2/translate", asked).json["translations"]
    assert (kept["text"], kept["detected_source_language"]) == (CHINESE, "ZH")
    assert translated["text"] != ENGLISH
    answer = live.post("/translate", {"q": CHINESE, "source": "auto", "target": "zh"}).json
    assert answer["translatedText"] == CHINESE


def test_our_own_api_refuses_it(several: Live) -> None:
    """As any other pair that no model has."""
    languages = {"src_lang": "en", "tgt_lang": "en_US"}
    answer = several.post("/v1/translate", {"text": ENGLISH} | languages)
    assert answer.status == 400
    assert answer.json["error"]["what"] == "No model translates en to en_US."
    assert sent(several, "/v1/documents", languages).status == 400


def test_a_document_is_given_back(several: Live) -> None:
    """Byte for byte, and counts nowhere; by our own API where its language is detected."""
    content, used = ENGLISH.encode(), several.service.characters
    detected = sent(several, "/v1/documents", {"tgt_lang": "en"}, content)
    assert (detected.status, detected.body) == (200, content)
    path = filed(several, {"source": "en", "target": "en"}, content)
    assert several.get(path).body == content
    upload = {"source_lang": "EN", "target_lang": "EN-US"}
    handle = sent(several, "/v2/document", upload, content).json
    asked, key = f"/v2/document/{handle['document_id']}", {"document_key": handle["document_key"]}
    until(lambda: several.post(asked, key).json["status"] == "done")
    assert several.post(asked, key).json["billed_characters"] == 0
    assert several.post(f"{asked}/result", key).body == content
    assert several.service.characters == used


def test_a_document_needs_a_target_that_a_model_writes(live: Live) -> None:
    """By the doors that say so before its language is detected; texts and another do not."""
    content, text = ENGLISH.encode(), {"text": [ENGLISH], "target_lang": "EN"}
    assert sent(live, "/v2/document", {"target_lang": "EN"}, content).status == 400
    assert sent(live, "/v1/documents", {"tgt_lang": "en"}, content).status == 400
    assert live.post("/v2/translate", text).json["translations"][0]["text"] == ENGLISH
    fields = {"source": "auto", "target": "en"}
    assert sent(live, "/translate_file", fields, content).status == 200


def test_a_variant_that_is_not_told_is_refused(several: Live) -> None:
    """A Chinese text need not be traditional; a traditional one is Chinese."""
    asked = {"q": CHINESE, "source": "zh", "target": "zt"}
    assert "zt" in several.post("/translate", asked).json["error"]
    form = {"text": [CHINESE], "source_lang": "ZH", "target_lang": "ZH-HANT"}
    assert several.post("/v2/translate", form).status == 400
    turned = asked | {"source": "zt", "target": "zh"}
    assert several.post("/translate", turned).json["translatedText"] == CHINESE


@pytest.mark.parametrize("code", ["zt", "zh-TW", "ZH-HANT", "zho_Hant"])
def test_another_script_than_a_model_writes_is_refused(several: Live, code: str) -> None:
    """At every door, instead of giving simplified Chinese for it; read it is."""
    libre = {"q": ENGLISH, "source": "en", "target": code}
    assert several.post("/translate", libre).json == {"error": f"{code} is not supported"}
    form = {"text": [ENGLISH], "source_lang": "EN", "target_lang": code}
    assert "target_lang" in several.post("/v2/translate", form).json["message"]
    own = {"text": ENGLISH, "src_lang": "en", "tgt_lang": code}
    refused = several.post("/v1/translate", own).json["error"]["what"]
    assert refused == f"No model translates en to {code}."
    turned = {"q": CHINESE, "source": code, "target": "en"}
    assert several.post("/translate", turned).status == 200


def test_what_no_model_reads_is_refused(several: Live) -> None:
    """Though it is to stay as it is."""
    answer = several.post("/translate", {"q": "a", "source": "fr", "target": "fr"})
    assert answer.json == {"error": "fr is not supported"}


def test_what_is_only_written_is_named_where_it_is_told_by_the_text(live: Live) -> None:
    """With the languages that are read, and nothing about the target."""
    answer = live.post("/translate", {"q": CHINESE, "source": "auto", "target": "en"})
    sentence = "The text seems to be in Chinese (simplified) (zh-Hans), which is not available as "
    assert answer.json == {"error": f"{sentence}a source language. Available: en."}
    given = live.post("/translate", {"q": CHINESE, "source": "zh", "target": "en"})
    assert given.json == {"error": "zh is not supported"}


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/translate", {"q": POLISH, "source": "auto", "target": "zh"}),
        ("/v2/translate", {"text": [POLISH], "target_lang": "ZH"}),
        ("/translate_file", {"source": "auto", "target": "zh"}),
        ("/v1/documents", {"tgt_lang": "zh"}),
    ],
)
def test_what_no_model_has_is_named_and_refused(
    several: Live, path: str, fields: dict[str, str]
) -> None:
    """At every door that detects, instead of being passed off as one of the models' languages."""
    is_file = "q" not in fields and "text" not in fields
    answer = sent(several, path, fields, POLISH.encode()) if is_file else several.post(path, fields)
    assert answer.status == 400
    assert "The text seems to be in Polish (pl), which is not available" in answer.body.decode()
    assert several.post("/detect", {"q": POLISH}).json[0]["language"] == "pl"


def test_a_quotation_that_no_model_reads_stays_among_texts(several: Live) -> None:
    """It is named, and refuses nothing for the others of its request."""
    form = {"text": [ENGLISH, POLISH], "target_lang": "ZH"}
    english, polish = several.post("/v2/translate", form).json["translations"]
    assert (english["detected_source_language"], english["text"] != ENGLISH) == ("EN", True)
    assert (polish["detected_source_language"], polish["text"]) == ("PL", POLISH)
