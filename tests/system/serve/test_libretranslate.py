"""LibreTranslate's clients: its own, and requests like those of Weblate and Subtitle Edit."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode

import pytest
from tests.processors import needs_independent_translations
from tests.system.serve.live import Live, form, serving
from tests.unit.tasks.tiny import save_translator

from dragoman.serve.settings import ApiKeys
from dragoman.tasks.translate.translator import Translator

PAIR = {"source": "en", "target": "zh"}
TEXT = "the cat sees a dog"


@pytest.fixture(scope="module")
def alone(translator_folder: Path) -> Translator:
    """The server's translator, used directly."""
    return Translator.load(translator_folder)


def translated(live: Live, ask: dict[str, Any]) -> Any:  # noqa: ANN401 -- JSON
    """Post JSON, and return the answer."""
    answer = live.post("/translate", PAIR | ask)
    assert answer.status == 200, answer.body
    return answer.json


@needs_independent_translations
def test_the_clients_of_python_work(live: Live, alone: Translator) -> None:
    """`libretranslatepy` works when pointed at this server."""
    client = pytest.importorskip("libretranslatepy").LibreTranslateAPI(
        f"http://127.0.0.1:{live.port}"
    )
    assert client.translate(TEXT, "en", "zh") == alone.translate(TEXT).text
    assert client.languages() == [{"code": "en", "name": "English", "targets": ["zh-Hans"]}]
    assert client.detect("The weather is nice.") == [{"confidence": 100.0, "language": "en"}]
    with pytest.raises(HTTPError, match="400"):
        client.translate(TEXT, "en", "xx")


@needs_independent_translations
def test_weblate_translates_a_batch(live: Live, alone: Translator) -> None:
    """JSON returns as many texts as were sent; older releases send a form with an empty key."""
    texts = [TEXT, "a house", "😀", "", "我喜欢学习"]
    answer = translated(live, {"api_key": "", "q": texts, "target": "zh-Hans"})
    expected = [one.text for one in alone.translate(texts)]
    assert answer == {"translatedText": [*expected[:2], "😀", "", expected[4]]}
    older = live.form("/translate", {"api_key": "", "q": TEXT} | PAIR)
    assert older.json == {"translatedText": expected[0]}


def test_subtitle_edit_reads_the_first_text(live: Live, alone: Translator) -> None:
    """It builds its JSON by hand, and a subtitle has several lines."""
    body = '{"q": "' + TEXT + '\\n- a tree", "source": "en", "target": "zh"}'
    headers = {"accept": "application/json", "content-type": "application/json; charset=utf-8"}
    answer = live.send("POST", "/translate", body.encode(), headers)
    first, second = alone.translate([TEXT, "- a tree"])
    assert answer.json == {"translatedText": f"{first}\n{second}"}


def test_its_page_sends_multipart(live: Live, alone: Translator) -> None:
    """Lines in a form end with CR LF; white space around lines is preserved."""
    fields = {"q": f"  {TEXT}\r\n\r\n\ta house \r\n", "format": "text", "alternatives": "0"} | PAIR
    body, headers = form(fields)
    headers["content-type"] += "; charset=punycode"
    answer = live.send("POST", "/translate", body, headers)
    first, second = alone.translate([TEXT, "a house"])
    assert answer.json == {"translatedText": f"  {first}\n\n\t{second} \n"}


def test_alternatives_and_detection(live: Live) -> None:
    """A batch gives lists; a language is returned only if it was to be detected."""
    answer = translated(live, {"q": TEXT, "source": "auto", "alternatives": 2})
    assert answer["detectedLanguage"] == {"confidence": 100.0, "language": "en"}
    assert len(answer["alternatives"]) <= 2
    assert answer["translatedText"] not in answer["alternatives"]
    many = translated(live, {"q": [TEXT, "a"], "source": "auto", "alternatives": 1})
    assert many["detectedLanguage"] == [answer["detectedLanguage"]] * 2
    assert [len(many[key]) for key in ("translatedText", "alternatives")] == [2, 2]
    assert all(isinstance(each, list) for each in many["alternatives"])
    nothing = translated(live, {"q": "😀", "source": "auto"})
    unsure = {"confidence": 0.0, "language": "en"}
    assert nothing == {"translatedText": "😀", "detectedLanguage": unsure}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no q": ({"q": ""}, "Invalid request: missing q parameter"),
    "an empty batch": ({"q": []}, "Invalid request: missing q parameter"),
    "no source": ({"source": None}, "Invalid request: missing source parameter"),
    "no target": ({"target": ""}, "Invalid request: missing target parameter"),
    "no number": (
        {"alternatives": "abc", "source": "zz"},
        "Invalid request: alternatives parameter is not a number",
    ),
    "too many": ({"alternatives": 10**9}, "Invalid request: alternatives parameter must be <= 19"),
    "too many texts": (
        {"q": ["a"] * 1001, "source": "zz"},
        "Invalid request: request (1001) exceeds text limit (1000)",
    ),
    "too long": (
        {"q": "a" * 200_001, "source": "zz"},
        "Invalid request: request (200001) exceeds text limit (200000)",
    ),
    "source": ({"source": "zz", "format": "pdf"}, "zz is not supported"),
    "target": ({"target": "fr"}, "fr is not supported"),
    "format": ({"format": "pdf"}, "pdf format is not supported"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_those_of_libretranslate(live: Live, name: str) -> None:
    """Their texts, and the order of the checks, are LibreTranslate's."""
    ask, error = REFUSED[name]
    answer = live.post("/translate", {"q": "a"} | PAIR | ask)
    assert (answer.status, answer.json) == (400, {"error": error})


def test_other_answers(live: Live) -> None:
    """Settings, health, invalid requests and disabled features."""
    assert live.post("/translate", [PAIR]).json == {"error": "Invalid JSON format"}
    assert live.post("/translate", b"{").json == {"error": "Invalid JSON format"}
    assert live.form("/detect", {}).json == {"error": "Invalid request: missing q parameter"}
    assert live.post("/detect", {"q": ["a", "b"]}).json[0]["language"] == "en"
    wrong = live.post("/translate", PAIR | {"q": 5}).json["error"]
    assert wrong.startswith("Expected `str | array | null`, got `int` at `q`.")
    assert live.get("/health").json == {"status": "ok"}
    settings = live.get("/frontend/settings").json
    assert settings["charLimit"] == 200_000
    assert settings["language"]["target"] == {"code": "zh-Hans", "name": "Chinese (simplified)"}
    off = live.post("/suggest", {})
    assert off.status == 403
    assert off.json["error"].endswith("disabled on this server.")


def test_the_key_is_a_field(translator_folder: Path) -> None:
    """A missing key gives 400, and a wrong one 403; listing languages needs none."""
    with serving(translator_folder, keys=ApiKeys(["k"])) as live:
        for key, status in ("", 400), ("x", 403), ("k", 200):
            fields = {"q": "a", "api_key": key} | PAIR
            ways = (live.form("/translate", fields), live.post("/translate", fields))
            in_the_query = live.send("POST", f"/translate?{urlencode(fields)}")
            assert {each.status for each in (*ways, in_the_query)} == {status}
        assert live.get("/languages").status == 200
        assert live.get("/frontend/settings").json["keyRequired"]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server with two language pairs."""
    root = tmp_path_factory.mktemp("pairs")
    folders = [save_translator(root / name) for name in ("en-zh", "de-pt")]
    config = folders[1] / "config.json"
    config.write_text(config.read_text().replace('"en"', '"de"').replace('"zh"', '"pt_BR"'))
    with serving(*folders) as live:
        yield live


def test_codes_of_several_pairs(pairs: Live) -> None:
    """Both forms of a code are accepted; a pair that no model has is named."""
    listed = [(one["code"], one["targets"]) for one in pairs.get("/languages").json]
    assert listed == [("de", ["pt-BR"]), ("en", ["zh-Hans"])]
    for target in ("pb", "pt-BR", "PT", "pt_br"):
        assert translated(pairs, {"q": "a", "source": "DE", "target": target})
    unavailable = pairs.post("/translate", {"q": "a", "source": "de", "target": "zh"}).json
    what = "Chinese (zh) is not available as a target language from German (de)"
    assert unavailable == {"error": what}


def test_usage_counts_what_was_translated_once(pairs: Live) -> None:
    """Each text, tags included, is counted once, for any model, glossary and API."""
    terms = "\n".join(f"{number}\t我" for number in range(50))
    ask = {"name": "a", "source_lang": "en", "target_lang": "zh", "entries": terms}
    glossary = pairs.post("/v2/glossaries", ask).json["glossary_id"]
    texts, pair = ["<b>the cat</b>", "a dog"], {"source_lang": "en", "target_lang": "zh"}
    told = {"text": texts, "tag_handling": "html", "glossary_id": glossary}
    ours = {"src_lang": "en", "tgt_lang": "zh", "text": texts}
    asked = [
        ("/v2/translate", told | pair),
        ("/translate", PAIR | {"q": texts, "format": "html"}),
        ("/v1/translate", ours | {"format": "html"}),
        ("/v1/translate", ours),
    ]
    for path, content in asked:
        before = pairs.get("/v2/usage").json["character_count"]
        assert pairs.post(path, content).status == 200
        after = pairs.get("/v2/usage").json["character_count"]
        assert after - before == sum(map(len, texts)), path


def test_lines_have_a_limit(live: Live) -> None:
    """Lines are translated individually, like texts."""
    asked = {"q": "a\n" * 10_001, "source": "en", "target": "zh"}
    answer = live.post("/translate", asked)
    assert answer.status == 413
    assert "10,001 lines" in answer.json["error"]
