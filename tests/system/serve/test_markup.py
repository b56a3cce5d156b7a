"""Texts with tags, through the APIs of LibreTranslate and DeepL, and our own."""

import re
from typing import Any
from unittest.mock import Mock, patch

import pytest
from tests.system.serve.live import Client, Live

from dragoman.serve import deepl
from dragoman.serve.markup import check_xml, in_xml, outline_of
from dragoman.tasks.translate.translator import Translator

HTML = '<p class="a">the <b>cat</b> sees a dog</p>\n<ul><li>a house<li>a &lt; tree</ul>'
PAIR = {"source": "en", "target": "zh"}


def tags(text: str) -> list[str]:
    """Return all tags of a text, sorted."""
    return sorted(re.findall(r"<[^>]*>", text))


def test_html_of_libretranslate(live: Live) -> None:
    """The tags are those of the source, and special characters are escaped."""
    answer = live.post("/translate", PAIR | {"q": HTML, "format": "html", "alternatives": 1}).json
    assert tags(answer["translatedText"]) == tags(HTML)
    assert answer["alternatives"] == []
    assert "cat" not in re.sub("<[^>]*>", "", answer["translatedText"]).split()
    both = live.post("/translate", PAIR | {"q": [HTML, "<i>a</i>"], "format": "html"}).json
    assert both["translatedText"][0] == answer["translatedText"]
    assert tags(both["translatedText"][1]) == ["</i>", "<i>"]


def test_our_own_door_reads_html_and_xml(live: Live) -> None:
    """Each text has one answer; options that do not apply to tags are refused."""
    ask = {"text": [HTML, "the cat"], "format": "html"}
    answer = live.post("/v1/translate", ask).json["translations"]
    assert tags(answer[0]["text"]) == tags(HTML)
    (plain,) = live.texts(["the cat"])
    assert answer[1]["text"] == plain.translate(dict.fromkeys(range(32)))  # control characters
    xml = live.texts(["<a:b x='<'>the cat</a:b>"], {"format": "xml"})
    assert tags(xml[0]) == ["</a:b>", "<a:b x='<'>"]
    for more in ({"alignment": True}, {"n_best": 2}, {"prefix": ["a", "b"]}):
        assert live.post("/v1/translate", ask | more).status == 400
    assert live.post("/v1/translate", ask | {"format": "pdf"}).status == 400


def test_flags_and_terms_of_texts_with_tags(live: Live) -> None:
    """They are collected from all segments of a text, and equal those without tags."""
    lines = ["the cat 7", "a dog"]
    ask: dict[str, Any] = {"glossary": {"cat": "我", "dog": "习"}}
    plain = live.post("/v1/translate", ask | {"text": lines}).json["translations"]
    both = "".join(f"<p>{line}</p>" for line in lines)
    texts = [both, "<p>a dog</p>", "<p>1</p>"]
    answers = live.post("/v1/translate", ask | {"text": texts, "format": "html"}).json
    first, second, third = answers["translations"]
    assert plain[0]["flags"]
    assert first["flags"] == [*dict.fromkeys(plain[0]["flags"] + plain[1]["flags"])]
    assert first["terms"] == plain[0]["terms"] + plain[1]["terms"]
    assert (second["flags"], second["terms"]) == (plain[1]["flags"], plain[1]["terms"])
    assert (third["flags"], third["terms"]) == ([], [])


@pytest.mark.parametrize(
    ("more", "times"), [({}, 0), ({"format": "html"}, 1), ({"alignment": True}, 1)]
)
def test_links_are_found_with_the_translations(
    live: Live, more: dict[str, Any], times: int
) -> None:
    """Alignments are computed only if needed, and without a second pass."""
    with patch.object(
        Translator, "aligning", autospec=True, side_effect=Translator.aligning
    ) as one:
        live.texts(["<b>the</b> cat"], more)
    assert one.call_count == times


def test_names_of_tags_are_read_once(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for each text: a request may have many of both."""
    read = Mock(wraps=deepl.names_in)
    monkeypatch.setattr(deepl, "names_in", read)
    form = {"source_lang": "EN", "target_lang": "ZH", "tag_handling": "xml", "ignore_tags": ["X"]}
    answer = live.post("/v2/translate", form | {"text": ["a <x>cat</x>"] * 20})
    assert all("<x>cat</x>" in one["text"] for one in answer.json["translations"])
    assert read.call_count <= 4


XML = "<doc><t>the cat <i>sees</i> a dog</t><t>a <x>big house</x></t><m>the</m></doc>"


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_xml_of_deepl(client: Client, version: str) -> None:
    """The result is well-formed, ignored elements are unchanged, and characters are counted."""
    told = {"target_lang": "ZH", "tag_handling": "xml", "tag_handling_version": version}
    found = client.translate_text(XML, **told, ignore_tags=["x"])
    assert tags(found.text) == tags(XML)
    check_xml(found.text.replace("\b", ""))  # an untrained model writes it
    assert "<x>big house</x>" in found.text
    assert found.billed_characters == len(XML)
    page = client.translate_text(HTML, target_lang="ZH", tag_handling="html")
    assert tags(page.text) == tags(HTML)


def test_only_version_two_refuses_broken_xml(client: Client, live: Live) -> None:
    """With DeepL's message; an unknown kind of tags is refused by field."""
    told = {"target_lang": "ZH", "tag_handling": "xml"}
    for broken in ("<a>the cat", "<a>the</b>", "a & b", "<!DOCTYPE x><a/>", "&undefined;"):
        with pytest.raises(Exception, match="Tag handling parsing failed, please check input"):
            client.translate_text(broken, **told, tag_handling_version="v2")
        assert client.translate_text(broken, **told, tag_handling_version="v1").text
    refused = live.post("/v2/translate", {"text": ["a"], "target_lang": "ZH", "tag_handling": "x"})
    assert refused.status == 400
    answer = live.post("/v2/translate", {"text": ["a"], "target_lang": "ZH", "tag_handling": "xml"})
    assert answer.json["translations"][0]["tag_handling_version"] == "v1"


def test_version_two_checks_what_it_gives_back(live: Live) -> None:
    """A text already in the target language is not translated, but it is checked."""
    told = {"source_lang": "EN", "target_lang": "EN", "tag_handling": "xml"}
    broken, ours = {**told, "text": ["<a>b</a>", "<a>b"]}, {**told, "text": ["<a>b</a>"]}
    refused = live.post("/v2/translate", {**broken, "tag_handling_version": "v2"})
    assert refused.status == 400
    assert "parsing failed" in refused.json["message"]
    for asked in (broken, {**ours, "tag_handling_version": "v2"}):
        answer = live.post("/v2/translate", asked)
        assert [each["text"] for each in answer.json["translations"]] == asked["text"]


def sentences(text: str, **more: Any) -> list[str]:  # noqa: ANN401 -- of `in_xml`
    """Return the texts that are translated separately."""
    return [each.source.text for each in in_xml(text, **more).segments]


def test_tags_split_sentences_as_they_are_told() -> None:
    """The outline splits unless disabled; given tags always or never split."""
    assert outline_of(XML) == {"doc", "t", "m"}
    assert sentences(XML) == ["the cat sees a dog", "a big house", "the"]
    (whole,) = sentences(XML, outline=False)
    assert whole == "the cat sees a doga big housethe"
    split = sentences(XML, outline=False, splitting=["t"])
    assert split[:2] == ["the cat sees a dog", "a big house"]
    assert sentences(XML, splitting=["i"])[:3] == ["the cat", "sees", "a dog"]
    assert sentences(XML, joining=["t"])[0] == "the cat sees a doga big house"
    assert outline_of("a <b>c</b>") == set()
    assert outline_of("<b>c</b></x> <d/>") == {"b", "d"}
