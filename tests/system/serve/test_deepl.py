"""DeepL's official client."""

from pathlib import Path
from unittest.mock import patch

import pytest
from tests.processors import needs_independent_translations
from tests.system.serve.live import Client, Live

from dragoman.tasks.translate.translator import Translator

deepl = pytest.importorskip("deepl", reason="the client 'deepl' is not installed")

TEXT = "the cat sees a dog"
TRANSLATE = "/v2/translate"


@needs_independent_translations
def test_texts_are_translated(client: Client, live: Live, translator_folder: Path) -> None:
    """One or several texts, with the source given or detected; characters are counted."""
    alone = Translator.load(translator_folder)
    one = client.translate_text(TEXT, target_lang="ZH")
    assert (one.text, one.detected_source_lang) == (alone.translate(TEXT).text, "EN")
    assert one.billed_characters == len(TEXT)
    lines = [f" {TEXT}\n\na house", "😀", "a"]
    many = client.translate_text(
        lines, source_lang="en", target_lang="zh-hans", context="a story", formality="prefer_more"
    )
    texts = [each.text for each in alone.translate([TEXT, "a house", "a"])]
    assert [each.text for each in many] == [f" {texts[0]}\n\n{texts[1]}", "😀", texts[2]]
    assert [each.billed_characters for each in many] == [28, 1, 1]
    unsplit = client.translate_text("a\nhouse", target_lang="ZH", split_sentences="0")
    assert unsplit.text == alone.translate("a house").text
    fast = client.translate_text("a", target_lang="ZH", model_type="latency_optimized")
    assert fast.model_type_used == "quality_optimized"
    before = client.get_usage().character.count
    client.translate_text(TEXT, target_lang="ZH")
    assert client.get_usage().character.count == before + len(TEXT)
    assert not client.get_usage().any_limit_reached
    answer = live.form(TRANSLATE, [("text", "a"), ("text", "the"), ("target_lang", "ZH")])
    assert len(answer.json["translations"]) == 2
    assert "billed_characters" not in answer.json["translations"][0]


def test_languages(client: Client, live: Live) -> None:
    """Sources and targets are listed; the client requests targets in the body of a GET."""
    assert [(one.code, one.name) for one in client.get_source_languages()] == [("EN", "English")]
    targets = [(one.code, one.supports_formality) for one in client.get_target_languages()]
    assert targets == [("ZH", False), ("ZH-HANS", False)]
    assert live.get("/v2/languages?type=target").json[0]["language"] == "ZH"
    assert live.get("/v2/languages?type=x").status == 400
    posted = live.form("/v2/languages", {"type": "target"})  # as the client does before 1.15
    assert posted.json[0]["language"] == "ZH"
    assert "character_count" in live.send("POST", "/v2/usage").json
    pairs = [(one.source_lang, one.target_lang) for one in client.get_glossary_languages()]
    assert pairs == [("en", "zh")]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"formality": "more"}, "'formality' is not supported for given 'target_lang'"),
        ({"target_lang": "DE"}, "Value for 'target_lang' not supported"),
        ({"source_lang": "FR"}, "Value for 'source_lang' not supported"),
        ({"custom_instructions": ["kindly"]}, "Value for 'custom_instructions' not supported"),
    ],
)
def test_what_is_lacking_is_refused(client: Client, options: dict[str, str], what: str) -> None:
    """By their error, not by silence."""
    with pytest.raises(deepl.DeepLException, match=what):
        client.translate_text("a", **({"target_lang": "ZH"} | options))


def test_other_refusals(live: Live) -> None:
    """Missing fields and unknown methods are refused."""
    for ask, name in ({}, "text"), ({"text": ["a"]}, "target_lang"):
        refused = live.post(TRANSLATE, ask)
        assert refused.status == 400
        assert refused.json["message"] == f"Parameter '{name}' not specified."
    assert "message" in live.get(TRANSLATE).json
    told = live.form(TRANSLATE, {"text": "a", "target_lang": "ZH", "custom_instructions": "kindly"})
    assert told.json["message"] == "Value for 'custom_instructions' not supported."
    unknown = live.post(TRANSLATE, {"text": ["a"], "source_lang": "EN", "target_lang": "FR"})
    assert unknown.json["message"] == "Value for 'target_lang' not supported."
    assert unknown.json["detail"].startswith("No model translates EN to FR.")


def test_texts_of_one_model_are_accepted_together(live: Live) -> None:
    """Whatever their detected languages: one request is not refused halfway through."""
    queue = live.service.queue
    with patch.object(queue, "take", wraps=queue.take) as take:
        answer = live.post(TRANSLATE, {"text": [TEXT, "123", "the house"], "target_lang": "ZH"})
    assert answer.status == 200
    assert take.call_count == 2  # by its length, then priced
