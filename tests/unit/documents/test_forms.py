"""Strings of programs: forms separated by bars, and signs that make a letter a menu key."""

import json
from collections.abc import Callable

import pytest
import yaml
from tests.word_translator import WordTranslator, backwards, in_capitals, translated

FILES: list[tuple[str, Callable[[str], str]]] = [
    ("a.json", lambda text: json.dumps({"a": text})),
    ("a.yaml", lambda text: f"a: {json.dumps(text)}\n"),
    ("a.yaml", lambda text: "a: '{}'\n".format(text.replace("'", "''"))),
]
files = pytest.mark.parametrize(("name", "written"), FILES, ids=["json", '"', "'"])


@files
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("no dog | one dog | {n} dogs", ["no dog", "one dog", "{n} dogs"]),
        ("{0} No dogs|[1,19] Some dogs|[20,*] Many", ["No dogs", "Some dogs", "Many"]),
        ("{0} None|{1} [One]|Many", ["None", "[One]", "Many"]),
        ("a dog|:n dogs", ["a dog", ":n dogs"]),
        ("<b>a</b> | B\u00f6cke", ["a", "B\u00f6cke"]),
        ("]-Inf, 1] A dog | [2,Inf[ b's", ["A dog", "b's"]),
        ('a <b>c</b> | "d" {e | f}', ["a c", '"d" {e | f}']),
    ],
)
def test_forms_are_texts(
    name: str, written: Callable[[str], str], text: str, lines: list[str]
) -> None:
    """Of vue-i18n, Laravel and Symfony; the numbers that they are for stay."""
    made, seen, _ = translated(written(text), name, WordTranslator(lambda word: f"{word}'"))
    assert seen == lines
    value = yaml.safe_load(made)["a"]
    assert value.replace("'", "") == text.replace("'", "")
    assert value != text


NAMES = [
    "^(foo|bar)$", "node_modules|dist", "image|https://x.y/z", "a/b|c/d", "{0}a|{1}b"
]  # fmt: skip


@files
@pytest.mark.parametrize(
    "text",
    [
        "dog|dogs", "a dog|dogs", "a dog|b c | d", "{0} b|c", "main|release/*", "jpg|(png)|gif",
        "on: push | pull_request", "a image | a.png", "U[int | None]", "go (a | b) on",
        "(?:true|false)", 'say "a | b"', "run `a b | c d` now", "[a | b]", "{a b | c d",
        "{a [b | c]}", "a:b |", "a || b", "|a| is", "see {{ a | b }}", "a | {{ b }}", "a | 12",
        "<b>a | c</b>", "a <br> | b", *NAMES,
    ],
)  # fmt: skip
def test_bars_of_patterns_and_sentences_are_read(
    name: str, written: Callable[[str], str], text: str
) -> None:
    """In one text, unless it is surely a message in several forms; names are left as others."""
    read = text.replace("<br>", " ").replace("<b>", "").replace("</b>", "")
    assert translated(written(text), name)[1] == [read] * (text not in NAMES)


def test_forms_in_yaml_without_quotes() -> None:
    """One that would need them is left, and told."""
    source, expected = in_capitals("a: «one b | c d» # e\nf: [«g h | i»]\n")
    assert translated(source, "a.yaml")[0] == expected
    comma = WordTranslator(lambda word: {"c": "c:", "h": "h,", "one": "-"}.get(word, word.upper()))
    made, _, report = translated(source, "a.yaml", comma)
    assert made == source.replace("| i", "| I")
    why = ("the string needs quotes for its translation",)
    assert [(each.text, each.what) for each in report.untranslated] == [
        ("one b", why), ("c d", why), ("g h", why),
    ]  # fmt: skip
    assert translated("a: b |", "a.yaml")[1] == ["b |"]
    escaped = 'a: "b | \\x41"\n'
    assert translated(escaped, "a.yaml")[1] == ["b | A"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("&Open a file", "Open a file"),
        ("_Open", "Open"),
        ("go &on", "go on"),
        ("&&Save _As", "Save As"),
        ("Open in _New Tab", "Open in New Tab"),
        ("_Remember words", "Remember words"),
        ("&notes", "notes"),
        ("a & b (&O)", "a & b"),
        ("a (&O)", "a"),
    ],
)
@pytest.mark.parametrize("name", ["a.json", "a.po", "a.xlf", "a.csv"])
def test_keys_of_menus_are_tags(name: str, text: str, line: str) -> None:
    """They stay before their words."""
    xml = text.replace("&", "&amp;")
    source = {
        "a.json": f'["{text}"]',
        "a.po": f'msgid "{text}"\nmsgstr ""\n',
        "a.xlf": f"<xliff><file source-language='en'><trans-unit><source>{xml}</source>"
        "</trans-unit></file></xliff>",
        "a.csv": f"a\n{text}\n",
    }[name]
    made, lines, _ = translated(source, name)
    assert lines == [line]
    assert (xml if name == "a.xlf" else text).upper() in made.replace("&amp;", "&AMP;").upper()


def test_a_key_of_a_menu_goes_with_its_word() -> None:
    """In whatever order these come."""
    turned = WordTranslator(str.upper, backwards)
    assert translated('["a &b c"]', "a.json", turned)[0] == '["C &B A"]'


@pytest.mark.parametrize(
    "text",
    [
        "AT&T and R&D", "Tom & Jerry", "a &amp; b", "a &copy; b &nbsp b", "a && b", "_blank a",
        "a &copy 24", "a &reg, b", "Takes &self and &mut", "a & b &c", "so &a &&b",
        "var _Bar", "The _Bar thing", "so _much_ more", "_Two words_ a", "a_B c", "a _ B",
    ],
)  # fmt: skip
def test_other_signs_are_read(text: str) -> None:
    """As they are."""
    assert translated(json.dumps([text]), "a.json")[1] == [text]
    assert translated('["<b>&a</b> &b"]', "a.json")[1] == ["&a &b"]


@pytest.mark.parametrize("more", ["", ', "title": {"text": "e"}'])
def test_of_a_browsers_messages_only_what_is_shown_is_translated(more: str) -> None:
    """Unless one has another key: then it is the file of some other program."""
    rest = '"description": "a b", "placeholders": {"x": {"content": "c", "example": "Ann B"}}'
    text = f'{{"b": {{"message": "hello $x$", {rest}{more}}}, "message": {{"message": "d"}}}}'
    made, texts, _ = translated(text, "a.json", WordTranslator(lambda word: f"{word}z"))
    assert len(texts) == (6 if more else 2)
    assert ("Annz" in made) == bool(more)


def test_what_is_left_of_a_browsers_messages_is_told() -> None:
    """By the name of the file, if no message has placeholders; another file is all text."""
    text = '{"b": {"message": "c", "description": "d"}}'
    _, texts, report = translated(text, "de/messages.json")
    assert (texts, report.left) == (["c"], ('descriptions of a browser\'s messages: "b"',))
    _, texts, report = translated(text, "a.json")
    assert (texts, report.left) == (["c", "d"], ())
