"""Languages in every API: texts already in the target stay, and each script is a language."""

from collections.abc import Iterator
from pathlib import Path
from threading import current_thread
from typing import Any

import pytest
from tests.system.serve.live import Live, serving, until
from tests.system.serve.test_documents import filed, sent

from dragoman.serve import deepl, libretranslate
from dragoman.text.detection import Detected, LanguageDetector

ENGLISH = "the cat\n sees a dog"
CHINESE = "我喜欢学习吗。"
POLISH = "Gdzie jest najbliższa biblioteka publiczna?"
LATIN, CYRILLIC = "Ovo je rečenica na srpskom jeziku.", "Ово је реченица на српском језику."


@pytest.fixture(scope="module")
def several(several_folder: Path) -> Iterator[Live]:
    """A server with a multilingual model."""
    with serving(several_folder) as live:
        yield live


@pytest.mark.parametrize("kind", ["text", "html"])
@pytest.mark.parametrize("source", ["en", "auto"])
def test_libretranslate_gives_it_back(several: Live, source: str, kind: str) -> None:
    """Whether the source is given or detected; for another target, the text is translated."""
    asked = {"source": source, "target": "en", "format": kind}
    answer = several.post("/translate", asked | {"q": [ENGLISH], "alternatives": 1}).json
    assert (answer["translatedText"], answer["alternatives"]) == ([ENGLISH], [[]])
    other = {"q": ENGLISH, "target": "zh"}
    assert several.post("/translate", asked | other).json["translatedText"] != ENGLISH


@pytest.mark.parametrize("more", [{}, {"tag_handling": "xml"}])
def test_deepl_gives_back_each_text_of_its_own(several: Live, more: dict[str, str]) -> None:
    """By the language detected in each text, or given for all."""
    asked = {"text": [ENGLISH, CHINESE], "target_lang": "EN-GB", "show_billed_characters": True}
    kept, translated = several.post("/v2/translate", asked | more).json["translations"]
    assert (kept["text"], kept["detected_source_language"]) == (ENGLISH, "EN")
    assert [kept["billed_characters"], translated["billed_characters"]] == [0, len(CHINESE)]
    assert translated["text"] != CHINESE
    answer = several.post("/v2/translate", asked | more | {"source_lang": "EN"}).json
    assert [each["text"] for each in answer["translations"]] == [ENGLISH, CHINESE]


def test_a_text_in_what_is_only_written_is_given_back(live: Live) -> None:
    """Even by a server that reads only English."""
    asked = {"text": [ENGLISH, CHINESE], "target_lang": "ZH"}
    translated, kept = live.post("/v2/translate", asked).json["translations"]
    assert (kept["text"], kept["detected_source_language"]) == (CHINESE, "ZH")
    assert translated["text"] != ENGLISH
    answer = live.post("/translate", {"q": CHINESE, "source": "auto", "target": "zh"}).json
    assert answer["translatedText"] == CHINESE


def test_other_requests_go_on_while_a_language_is_detected(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for a short text: the first one loads the identifier."""
    threads = list[str]()

    def detect(self: LanguageDetector, text: str) -> Detected:
        threads.append(current_thread().name)
        return detecting(self, text)

    detecting = LanguageDetector.detect
    monkeypatch.setattr(LanguageDetector, "detect", detect)
    assert live.post("/v1/detect", {"text": "a cat"}).status == 200
    assert [name.partition("_")[0] for name in threads] == ["price"]


def test_a_document_is_given_back(several: Live) -> None:
    """It is returned byte for byte and not counted; in our own API if its language is detected."""
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
    """In the APIs that check it before detection; LibreTranslate's, and texts, do not need it."""
    content, text = ENGLISH.encode(), {"text": [ENGLISH], "target_lang": "EN"}
    assert sent(live, "/v2/document", {"target_lang": "EN"}, content).status == 400
    assert sent(live, "/v1/documents", {"tgt_lang": "en"}, content).status == 400
    assert live.post("/v2/translate", text).json["translations"][0]["text"] == ENGLISH
    fields = {"source": "auto", "target": "en"}
    assert sent(live, "/translate_file", fields, content).status == 200


@pytest.mark.parametrize("source", ["zt", "zh-TW", "ZH-HANT", "zho_Hant"])
@pytest.mark.parametrize("target", ["zh", "en"])
def test_another_script_than_a_model_writes_is_read(
    several: Live, source: str, target: str
) -> None:
    """Traditional Chinese is Chinese, but Chinese need not be traditional."""
    answer = several.post("/translate", {"q": CHINESE, "source": source, "target": target}).json
    assert (answer["translatedText"] == CHINESE) == (target == "zh")


SEEMS = "The text seems to be in Polish (pl), which is not available"
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("/v1/translate", {"src_lang": "en", "tgt_lang": "en_US"}, "No model translates en to en_US."),
    ("/translate", {"source": "zh", "target": "zt", "q": CHINESE}, "zt is not supported"),
    ("/v2/translate", {"source_lang": "ZH", "target_lang": "ZH-HANT"}, "'target_lang'"),
    ("/translate", {"source": "fr", "target": "fr"}, "fr is not supported"),
    ("/translate", {"source": "auto", "target": "zh", "q": POLISH}, SEEMS),
    ("/v2/translate", {"target_lang": "ZH", "text": [POLISH]}, SEEMS),
]
for code in ("zt", "zh-TW", "ZH-HANT", "zho_Hant"):  # instead of answering in simplified Chinese
    REFUSED += [
        ("/translate", {"source": "en", "target": code}, f"{code} is not supported"),
        ("/v2/translate", {"source_lang": "EN", "target_lang": code}, "'target_lang'"),
        ("/v1/translate", {"src_lang": "en", "tgt_lang": code}, f"translates en to {code}."),
    ]


@pytest.mark.parametrize(("path", "ask", "why"), REFUSED)
def test_a_pair_that_no_model_has_is_refused(
    several: Live, path: str, ask: dict[str, Any], why: str
) -> None:
    """Every API refuses it in its own words, even if the text would stay unchanged."""
    name = "q" if path == "/translate" else "text"
    answer = several.post(path, {name: [ENGLISH]} | ask)
    assert (answer.status, why in answer.body.decode()) == (400, True)


@pytest.mark.parametrize(
    ("path", "fields", "content", "why"),
    [
        ("/translate_file", {"source": "auto", "target": "zh"}, POLISH, SEEMS),
        ("/v1/documents", {"tgt_lang": "zh"}, POLISH, SEEMS),
        ("/v1/documents", {"src_lang": "en", "tgt_lang": "en_US"}, ENGLISH, "en to en_US."),
    ],
)
def test_so_is_that_of_a_document(
    several: Live, path: str, fields: dict[str, str], content: str, why: str
) -> None:
    """It is not taken for one of the models' languages instead."""
    answer = sent(several, path, fields, content.encode())
    assert (answer.status, why in answer.body.decode()) == (400, True)


def test_what_is_only_written_is_named_where_it_is_told_by_the_text(live: Live) -> None:
    """The error lists the languages that are read, and says nothing about the target."""
    answer = live.post("/translate", {"q": CHINESE, "source": "auto", "target": "en"})
    sentence = "The text seems to be in Chinese (simplified) (zh-Hans), which is not available as "
    assert answer.json == {"error": f"{sentence}a source language. Available: en."}
    given = live.post("/translate", {"q": CHINESE, "source": "zh", "target": "en"})
    assert given.json == {"error": "zh is not supported"}


def test_a_detected_language_is_named_if_no_model_has_the_pair(
    translator_folder: Path, scripts_folder: Path
) -> None:
    """The client has not sent the source that DeepL's words complain about."""
    with serving(translator_folder, scripts_folder) as live:
        answer = live.post("/v2/translate", {"text": [LATIN], "target_lang": "ZH"})
    assert answer.status == 400
    assert answer.json["detail"].startswith("No model translates sr-Latn to ZH.")


def test_a_quotation_that_no_model_reads_stays_among_texts(several: Live) -> None:
    """Its language is reported, and the other texts of the request are translated."""
    form = {"text": [ENGLISH, POLISH], "target_lang": "ZH"}
    english, polish = several.post("/v2/translate", form).json["translations"]
    assert (english["detected_source_language"], english["text"] != ENGLISH) == ("EN", True)
    assert (polish["detected_source_language"], polish["text"]) == ("PL", POLISH)


@pytest.fixture(scope="module")
def scripts(scripts_folder: Path) -> Iterator[Live]:
    """A server with one model that writes both."""
    with serving(scripts_folder) as live:
        yield live


@pytest.mark.parametrize("code", ["sr_Latn", "SR-LATN", "sr-Latn-RS", "srp_Latn"])
def test_a_script_is_asked_for_in_any_form(scripts: Live, code: str) -> None:
    """Every API understands each form of the code, and distinguishes the scripts."""
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
    """The error lists both scripts, whether it is the source or the target."""
    both = "Serbian (sr) is written in several scripts here. Say which: sr-Cyrl, sr-Latn."
    for src, tgt, where in ("en", "sr", "tgt_lang"), ("sr", "en", "src_lang"):
        own = scripts.post("/v1/translate", {"text": ENGLISH, "src_lang": src, "tgt_lang": tgt})
        assert (own.status, own.json["error"]["where"]) == (400, where)
        libre = scripts.post("/translate", {"q": ENGLISH, "source": src, "target": tgt})
        assert (libre.status, libre.json["error"]) == (400, both)
        asked = {"text": [ENGLISH], "source_lang": src, "target_lang": tgt}
        assert scripts.post("/v2/translate", asked).json["detail"] == both
    upload = sent(scripts, "/v2/document", {"target_lang": "SR"}, ENGLISH.encode())
    assert (upload.status, upload.json.get("detail")) == (400, both.replace("(sr)", "(SR)"))


def test_lists_show_both(scripts: Live) -> None:
    """Both scripts are listed, and detection distinguishes them."""
    libre = {one["code"]: one["name"] for one in scripts.get("/languages").json}
    assert libre == {"en": "English", "sr-Cyrl": "Serbian (Cyrillic)", "sr-Latn": "Serbian (Latin)"}
    for kind in "source", "target":
        listed = [one["language"] for one in scripts.get(f"/v2/languages?type={kind}").json]
        assert listed[-2:] == ["SR-CYRL", "SR-LATN"]
    found = scripts.post("/v1/detect", {"text": [LATIN, CYRILLIC]}).json["detections"]
    assert [each["language"] for each in found] == ["sr-Latn", "sr-Cyrl"]
