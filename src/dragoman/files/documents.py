"""Recognising files that are not lines of text, by their name and by their beginning."""

import os
import re
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from dragoman.errors import InputError
from dragoman.files.reading import COMPRESSED, ending_of, read_lines

TRANSLATION_MEMORY = "a translation memory"
OTHER_SUBTITLES = "a subtitle file of a format that is not read"
TEMPLATE = "a template"

_BY_NAME = {
    "a subtitle file": "srt vtt",
    OTHER_SUBTITLES: "ass ssa sbv ttml dfxp lrc",
    "an HTML page": "html htm xhtml",
    "an XLIFF file": "xliff xlf sdlxliff mqxliff mxliff",
    "an XML file": "xml resx dita",
    TRANSLATION_MEMORY: "tmx",
    "a catalogue of messages": "po pot",
    "a JSON file": "json jsonl arb",
    "a file in a markup language": "rst adoc asciidoc tex org textile mediawiki",
    "a string catalogue of Xcode": "xcstrings",
    "a file of keys and values": "properties strings ini toml ftl json5 jsonc",
    "a page of Quarto": "qmd rmd",
    TEMPLATE: "j2 jinja jinja2 njk handlebars mustache liquid twig erb ejs",
    "a page of code": "vue svelte astro php jsp cshtml pug jade haml slim",
    "a notebook": "ipynb",
    "a document": "docx doc odt rtf pdf epub pptx ppt odp",
    "a spreadsheet": "xlsx xls ods",
}
_KINDS = {f".{ending}": kind for kind, endings in _BY_NAME.items() for ending in endings.split()}

_BY_LOOK = {
    "a subtitle file": r"WEBVTT\b|\d+\n\d{1,2}:\d\d:\d\d[,.]\d{3} --> ",
    OTHER_SUBTITLES: r"\[Script Info\]",
    TRANSLATION_MEMORY: r"(<\?xml[^>]*>\s*)?(<!DOCTYPE tmx[^>]*>\s*)?<tmx\b",
    "an HTML page": r"(<\?xml[^>]*>\s*)?(<!DOCTYPE html\b|<html\b)",
    "an XLIFF file": r"(<\?xml[^>]*>\s*)?<xliff\b",
    "an XML file": r"<\?xml\b|<!DOCTYPE\b",
    "a catalogue of messages": r'((#.*)?\n)*msgid "',
    "a JSON file": r'[{\[]\s*("|\n|$)',
    "a page with front matter": r"---[ \t]*\n(?-i:[a-z])[\w-]*[ \t]*:",
    TEMPLATE: r"\{%-?\s*(extends|load|layout|import|from|set|block)\b",
    "a page of code": r"<\?php\b|<(template|script)\b[^<>]*>\s*\n",
}
_LOOKS = [(kind, re.compile(look, re.IGNORECASE)) for kind, look in _BY_LOOK.items()]

TRANSLATED = {
    "a subtitle file": "subtitles",
    "an HTML page": "html",
    "an XLIFF file": "xliff",
    TRANSLATION_MEMORY: "tmx",
    "a catalogue of messages": "po",
    "a JSON file": "json",
    "a page of Quarto": "markdown",
    "a page with front matter": "markdown",
    TEMPLATE: "html",
}
"""Formats of documents that `translate` reads, by kind."""

CONVERTED = {
    OTHER_SUBTITLES: "convert it to SRT",
    "an XML file": "convert it to XLIFF, PO or HTML",
    "a string catalogue of Xcode": "export its localizations from Xcode as XLIFF",
    "a file of keys and values": "convert it to XLIFF, PO or JSON",
    "a file in a markup language": "convert it to Markdown or HTML",
    "a notebook": "convert it to Markdown",
}
"""What to do before translating a document of a format that `translate` does not read, by kind."""

BEGINNING = 30
"""Number of lines used to recognise a kind: a catalogue begins with comments."""


def kind_of_name(path: Path) -> str | None:
    """Return a document's kind by the suffix of its name, without that of compression."""
    return _KINDS.get(ending_of(path))


def kind_of_beginning(text: str) -> str | None:
    """Return the kind of a document that begins with this text; None for lines of text."""
    return next((kind for kind, look in _LOOKS if look.match(text.lstrip("\ufeff \t\n"))), None)


def lines_of_text(
    file: str | None, lines: Iterator[str], formats: Mapping[str, str] = TRANSLATED
) -> Iterator[str]:
    """Return the lines of a file, of a text or, with None, of standard input.

    `formats` are those of documents that are translated, by kind, for messages. Raises InputError
    for a file with the name of a document, and at the line that shows that the input is one.
    """
    is_file = file is not None and os.path.isfile(file)  # noqa: PTH113 -- no long text raises
    if is_file and (kind := kind_of_name(Path(file or ""))):
        raise _no_lines(str(file), kind, formats)
    return _checked(file or "standard input", lines, formats)


def reject_document(path: Path) -> None:
    """Raise InputError for a document, by the name of the file and its first lines.

    A pipe is not checked, because it can be read only once.
    """
    if path.is_file():
        deque(islice(lines_of_text(str(path), read_lines(path), {}), BEGINNING), maxlen=0)


def _checked(name: str, lines: Iterator[str], formats: Mapping[str, str]) -> Iterator[str]:
    beginning = ""
    for number, line in enumerate(lines):
        if number < BEGINNING:
            beginning += f"{line}\n"
            is_handlebars = "{{" in line and name.lower().endswith(".hbs")  # or Serbo-Croatian
            if kind := TEMPLATE if is_handlebars else kind_of_beginning(beginning):
                raise _no_lines(name, kind, formats)
        yield line


def _no_lines(name: str, kind: str, formats: Mapping[str, str]) -> InputError:
    do = "extract its text as lines"
    if kind in CONVERTED and formats:
        do = f"{CONVERTED[kind]} and translate that as a document"
    if kind in formats:
        first = "decompress it and " if Path(name).suffix.lower() in COMPRESSED else ""
        do = f"{first}translate it as a document with --format {formats[kind]} and --output"
    return InputError(
        f"{name} is {kind}, whose markup would be read as text; {do}, or add --plain to read it "
        "line by line as it is."
    )
