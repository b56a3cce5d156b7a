"""Codes of languages in one form, and the names of languages."""

import pytest

from dragoman.languages import (
    covers,
    is_right_to_left,
    is_usual,
    language_named,
    meant,
    name_of,
    resolve,
    tag,
    tags,
)

TAGS = {
    "en": ["en", "EN", "en_XX", "eng_Latn", "ENU"],
    "de": [">>deu<<", "DEU"],
    "zh-Hans": ["zh_CN", "cmn_Hans", "CHS", "zh-CHS"],
    "zh-Hant": ["zh-TW", "zho_Hant", "zt", "cht", "zh-CHT"],
    "pt-BR": ["pt_br", "PTB"],
    "ar": ["arb_Arab"],
    "yue": ["yue"],
}


@pytest.mark.parametrize("form", TAGS)
def test_codes_have_one_form(form: str) -> None:
    """Whoever wrote them."""
    assert {tag(code) for code in TAGS[form]} == {form}


@pytest.mark.parametrize(
    ("asked", "codes", "found"),
    [
        ("en", ["en_XX", "de_DE"], "en_XX"),
        ("zh", ["zho_Hant", "zho_Hans"], "zho_Hans"),
        ("zh-Hans", ["zho_Hant", "zho_Hans"], "zho_Hans"),
        ("zh-Hans", ["zho_Hant"], None),
        ("zh-Hans", ["zh"], "zh"),
        ("en-GB", ["en"], "en"),
        ("fr", ["en", "de"], None),
        ("EN", ["en", "EN"], "EN"),
        ("en_GB", ["en-US", "en-GB"], "en-GB"),
        ("SR_LATN", ["sr-Cyrl", "sr-Latn"], "sr-Latn"),
        ("srp-Latn-RS", ["sr-Cyrl", "sr-Latn"], "sr-Latn"),
        ("sr_Latn", ["sr", "sr-Latn"], "sr-Latn"),
        ("SR", ["sr", "sr-Latn", "sr-Cyrl"], "sr"),
        ("sr", ["sr-Cyrl", "sr-Latn"], None),
        ("sr", ["srp_Cyrl"], "srp_Cyrl"),
        ("sr-Latn", ["srp_Cyrl"], None),
        ("sr-Latn", ["sr"], "sr"),
        ("ko-Kore", ["kor_Hang"], "kor_Hang"),
    ],
)
def test_a_code_is_found_in_a_model(asked: str, codes: list[str], found: str | None) -> None:
    """By its own spelling first; without a script, any will do."""
    assert resolve(asked, codes) == found


@pytest.mark.parametrize("misspelt", ["zho_Hatn", "deu_Latin", "zh-Hanst", "en-", "de--DE", "en-x"])
def test_a_misspelt_code_is_not_usual(misspelt: str) -> None:
    """By what it has beside its language."""
    assert not is_usual(misspelt)
    assert all(map(is_usual, ("zh", "ZH_cn", "zho_Hans", "es-419", "sr-Latn-RS", "ko-Kore", "x")))


def test_scripts_of_a_language_are_told_apart() -> None:
    """Where the models have several of them: in what they list, and in what stays as it is."""
    codes = ["eng_Latn", "sr-Latn", "srp_Cyrl", "zho_Hans", "en", "de_DE"]
    assert [*tags(codes).values()] == ["en", "sr-Latn", "sr-Cyrl", "zh-Hans", "en", "de"]
    assert meant("sr", codes) == ["sr-Latn", "srp_Cyrl"]
    assert [name_of("sr-Latn"), name_of("zh-Hans")] == ["Serbian (Latin)", "Chinese (simplified)"]
    assert name_of("yue_Hant") == "yue (traditional)"
    assert [name_of("jpn_Jpan"), name_of("sat_Olck")] == ["Japanese", "sat (Ol Chiki)"]
    assert [covers("sr-Latn", each) for each in ("sr_Latn", "sr", "sr-Cyrl")] == [True, True, False]
    assert [covers(*each) for each in (("zh", "zh-Hans"), ("zh-Hant", "zh"))] == [True, False]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("en", "en"),
        ("EN-us", "en"),
        ("deu_Latn", "de"),
        (" German ", "de"),
        ("English (US)", "en"),
        ("中文（简体）", "zh"),
        ("英语", "en"),
        ("zh-Hant-TW", "zh"),
        ("xx", None),
        ("Yes", None),
        ("", None),
        ("x" + " " * 200_000 + "(", None),
    ],
)
def test_a_language_is_named_by_its_code_or_its_name(text: str, language: str | None) -> None:
    """Any other text names none."""
    assert language_named(text) == language


def test_a_script_or_else_a_language_has_its_direction() -> None:
    """The usual script of a language counts if its code names none."""
    leftwards = {code for code in LEFTWARDS | RIGHTWARDS if is_right_to_left(code)}
    assert leftwards == LEFTWARDS


LEFTWARDS = {"ar-SA", "iw", "pes_Arab", "yi", "ku-Arab", "acm_Arab", "dv"}
RIGHTWARDS = {"en", "tr", "ku", "kas_Deva", "", "pa", "ha_Latn", "zh"}
