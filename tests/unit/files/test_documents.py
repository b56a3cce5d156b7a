"""Files that are no lines of text are recognised; lines of text are not taken for them."""

from pathlib import Path

import pytest

from dragoman.errors import InputError
from dragoman.files.documents import (
    OTHER_SUBTITLES,
    kind_of_beginning,
    kind_of_name,
    lines_of_text,
    reject_document,
)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("film.srt", "a subtitle file"),
        ("film.ass", OTHER_SUBTITLES),
        ("a.b.HTML", "an HTML page"),
        ("x.xliff.gz", "an XLIFF file"),
        ("a.html.j2", "a template"),
        ("a.qmd", "a page of Quarto"),
        ("a.vue", "a page of code"),
        ("a.ftl", "a file of keys and values"),
        ("test.hbs", None),
        ("lines.txt", None),
        ("newstest.en", None),
        ("json", None),
        (".gz", None),
    ],
)
def test_a_name_tells_the_kind(name: str, kind: str | None) -> None:
    """By its ending, in any case, before that of a compressed file."""
    assert kind_of_name(Path(name)) == kind


LOOKS: dict[str | None, list[str]] = {
    "a subtitle file": [
        "WEBVTT\n\n00:01.000 --> 00:02.000\nHi\n",
        "\ufeff1\n00:00:01,000 --> 00:00:02,000\nHi\n",
    ],
    OTHER_SUBTITLES: ["[Script Info]\nTitle: a\n"],
    "an HTML page": ["<!DOCTYPE html>\n", "\n<html lang=de>\n"],
    "an XML file": ['<?xml version="1.0"?>\n'],
    "a translation memory": ['<tmx version="1.4">\n'],
    "a catalogue of messages": ['# German.\n#, fuzzy\nmsgid ""\n', 'msgid "Open"\n'],
    "a JSON file": ["{\n", '{"a": "b"}\n'],
    "a page with front matter": ["---\ntitle: Two dogs\n---\n"],
    "a template": ['{% extends "a.html" %}\n', "\n{%- set a = b %}\n"],
    "a page of code": ["<template>\n  <p>", "<script setup lang=ts>\n", "<?php\n"],
    None: [
        *("---\nA line: of two.\n", "---\nANN: It runs.\n"),
        *("{% if a %}A dog{% endif %}\n", "<script> is a tag.\n"),
        *("1\n2\n", "[Applause] Thank you.\n", "{name} is here.\n", "# German.\nA line.\n"),
        *("<b>Bold</b> text\n", "XML is a format; <?xml begins it.\n", ""),
    ],
}


@pytest.mark.parametrize("kind", LOOKS)
def test_a_beginning_tells_the_kind(kind: str | None) -> None:
    """Markup and brackets inside of text are text."""
    assert {text: kind_of_beginning(text) for text in LOOKS[kind]} == dict.fromkeys(
        LOOKS[kind], kind
    )


@pytest.mark.parametrize(
    ("name", "line", "do"),
    [
        ("page", "<!DOCTYPE html>", "; translate it as a document with --format html and"),
        ("app", 'msgid "a"', "; translate it as a document with --format po and --output, or add"),
        ("a", "<?xml version='1.0'?>", "; convert it to XLIFF, PO or HTML and translate that as"),
        ("film.ssa", "", "; convert it to SRT and translate that as a"),
        ("film.txt", "[Script Info]", "; convert it to SRT and translate that as a"),
        ("page.njk", "", "; translate it as a document with --format html and --output, or add"),
        ("page.rmd", "", "; translate it as a document with --format markdown and --output"),
        ("page.hbs", "<p>{{a}}", "is a template, whose markup"),
        ("README", "---\na: b", "; translate it as a document with --format markdown and"),
        ("a.ipynb", "", "; convert it to Markdown and translate that as a document, or add"),
        ("a.xcstrings", "", "; export its localizations from Xcode as XLIFF and translate that"),
        ("a.vue", "", "; extract its text as lines, or add --plain"),
        ("page.html.gz", "", "; decompress it and translate it as a document with --format html"),
    ],
)
def test_what_to_do_with_a_document_is_said(tmp_path: Path, name: str, line: str, do: str) -> None:
    """With the format that reads it; who takes lines alone is told of no format."""
    path = tmp_path / name
    path.write_text(line)
    with pytest.raises(InputError) as told:
        [*lines_of_text(str(path), iter([line]))]
    assert do in str(told.value)
    if path.suffix != ".gz":
        with pytest.raises(InputError, match="; extract its text as lines, or add --plain"):
            reject_document(path)
