"""Codes of languages in one form, and the names of languages."""

import pytest

from dragoman.languages import language_named, resolve, tag

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
    ],
)
def test_a_code_is_found_in_a_model(asked: str, codes: list[str], found: str | None) -> None:
    """By its own spelling first; without a script, any will do."""
    assert resolve(asked, codes) == found


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
    ],
)
def test_a_language_is_named_by_its_code_or_its_name(text: str, language: str | None) -> None:
    """Any other text names none."""
    assert language_named(text) == language
