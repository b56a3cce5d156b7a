"""What other readers see of a document, ignoring letter case and white space."""

import csv
import io
import json
import logging
import re
from collections.abc import Callable
from functools import partial
from html import unescape
from typing import Any
from xml.etree import ElementTree as ET

import html5lib
import pyromark
import srt
import webvtt
import yaml

from dragoman.documents.characters import decoded, without_damage
from dragoman.documents.html import _CHARSET
from dragoman.files.xml import declared_encoding

Shape = Any


_DIRECTIVE = re.compile(
    r"^(?:[ \t>]*(?:\{%|:{3}|!!!|\?\?\?)|(?:import|export)\b)[^\n]*\n[ \t>]*[^\s>]", re.MULTILINE
)
"""A line of another tool before a further line: Markdown readers put both in one paragraph."""


def _text(data: bytes) -> str:
    return without_damage(decoded(data, "x")[0])


def plain(value: Any) -> Any:  # noqa: ANN401 -- any value
    """Lower the case of all strings, and remove white space and Unicode's non-characters."""
    if isinstance(value, str):
        text = unescape(value.lower())  # a string may contain a page
        text = re.sub(r"[\s\x00-\x1f\ufdd0-\ufdef\ufffe\uffff\U0010ffff]", "", text)
        return "".join(sorted(text)) if "<" in text else text  # a tag in a word may have moved
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def letters(text: str) -> list[str]:
    """Return the sorted characters of a text; a tag inside a word may have moved to its end."""
    return sorted(plain(text))


def lines(data: bytes) -> Shape:
    """Return the line endings of a text, and its words."""
    return re.findall("\r\n|\r|\n", _text(data)), plain(_text(data))


def markdown(data: bytes) -> Shape:
    """Return everything except emphasis, and all text."""
    options = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_FOOTNOTES
    options |= pyromark.Options.ENABLE_STRIKETHROUGH | pyromark.Options.ENABLE_MATH
    options |= pyromark.Options.ENABLE_YAML_STYLE_METADATA_BLOCKS
    options |= pyromark.Options.ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS
    options |= pyromark.Options.ENABLE_TASKLISTS | pyromark.Options.ENABLE_GFM
    options |= pyromark.Options.ENABLE_HEADING_ATTRIBUTES
    text = _text(data)
    if _DIRECTIVE.search(text):
        return None
    source = _without_definitions(text, options)
    options |= pyromark.Options.ENABLE_DEFINITION_LIST
    found, text, quoted = list[str](), "", False
    for event in pyromark.events(source, options=options):
        kind, value = next(iter(event.items())) if isinstance(event, dict) else (event, None)
        name = str(next(iter(value)) if isinstance(value, dict) else value)
        if kind == "InlineHtml" and re.fullmatch("</?(em|strong|del)>", str(value)):
            continue  # emphasis is written this way if its signs would be read as text
        if name == "MetadataBlock":
            quoted = kind == "Start"
        if kind in ("Text", "Code", "Html", "InlineHtml", "InlineMath", "DisplayMath"):
            value = re.sub(r"[\"'\\]", "", str(value)) if quoted else str(value)
            text += value.replace("&#58;", ":")
        elif kind != "SoftBreak" and name not in ("Emphasis", "Strong", "Strikethrough"):
            found.append(f"{kind} {name}")
    return found, letters(text)


def _without_definitions(text: str, options: pyromark.Options) -> str:
    """Escape a colon before a word, except in tables: other tools read no definition there."""
    raw, rows = text.encode(), set[int]()
    for event, place in pyromark.events_with_range(text, options=options):
        match event:
            case {"Start": {"Table": _}}:
                rows.add(raw.count(b"\n", 0, place["start"]) + 1)
    lines = text.split("\n")
    for number in {*range(len(lines))} - rows:
        lines[number] = re.sub(r"^([ \t>]*):(?=\S)", r"\1&#58;", lines[number])
    return "\n".join(lines)


def html(data: bytes) -> Shape:
    """Return the set of elements and attributes, as broken ones are repeated, and all text."""
    declared = _CHARSET.search(data[:4096])
    text = decoded(data, "x", declared[1].decode() if declared else "")[0]
    tree = html5lib.parse(without_damage(text), namespaceHTMLElements=False)
    elements = [node for node in tree.iter() if node.tag is not ET.Comment]
    if any("<script" in (node.text or "") for node in tree.iter("script")):
        return None  # it seems to contain another one, and browsers then read on
    tags = {(str(node.tag), str(sorted(plain(dict(node.attrib)).items()))) for node in elements}
    return tags, letters("".join(tree.itertext()))


def xhtml(data: bytes) -> Shape:
    """Return the elements with their attributes, and all text; None if it is not XML."""
    text = decoded(data, "x", declared_encoding(data) or "utf-8")[0]
    text = re.sub(r"&(?!(?:amp|lt|gt|quot|apos);)\w+;", lambda name: unescape(name[0]), text)
    parser = ET.XMLParser(encoding="utf-8")  # noqa: S314 -- it has limits
    try:
        tree = ET.fromstring(without_damage(text).encode(), parser)  # noqa: S314
    except ET.ParseError:
        return None
    tags = [(node.tag, str(sorted(plain(node.attrib).items()))) for node in tree.iter()]
    return tags, letters("".join(tree.itertext()))


def subtitles(data: bytes) -> Shape:
    """Return the times, and all text; None if another reader does not understand it."""
    text = _text(data)
    if not text.startswith("WEBVTT"):
        logging.disable()
        try:
            cues = list(srt.parse(text, ignore_errors=True))
        except OverflowError:
            return None
        if len(cues) != text.count("-->"):
            return None  # some are damaged, and are read as text
        return [(c.start, c.end) for c in cues], letters(text)
    try:
        read = webvtt.from_buffer(io.StringIO(text)).captions
    except (webvtt.errors.MalformedFileError, webvtt.errors.MalformedCaptionError):
        return None
    return [(c.start, c.end) for c in read], letters(unescape(text))


def each_json(data: bytes) -> Shape:
    """Return the values."""
    text, place, found = _text(data), 0, []
    while text[place:].strip():
        place += len(text[place:]) - len(text[place:].lstrip())
        value, place = json.JSONDecoder().raw_decode(text, place)
        found.append(plain(value))
    return found


def each_yaml(data: bytes) -> Shape:
    """Return the events, with the values and their types."""
    loader, found = yaml.SafeLoader(""), []
    for event in yaml.parse(_text(data), Loader=yaml.CSafeLoader):
        kind: Any = type(event).__name__
        if isinstance(event, yaml.ScalarEvent):
            tag = event.tag or loader.resolve(yaml.ScalarNode, event.value, event.implicit)
            kind = tag, plain(event.value)
        found.append(kind)
    return found


def table(data: bytes, signs: str = ",;\t|") -> Shape:
    """Return the cells, separated by the most frequent of these signs in the first row."""
    text = _text(data)
    head = re.split("[\r\n]", text, maxsplit=1)[0]
    sign = max(signs, key=re.sub('"[^"]*"', "", head).count)
    sign = sign if sign in head or len(signs) == 1 else "\x1f"
    try:
        return [plain(row) for row in csv.reader(io.StringIO(text, newline=""), delimiter=sign)]
    except csv.Error:
        return None


ORACLES: dict[str, Callable[[bytes], Shape]] = {
    "txt": lines,
    "md": markdown,
    "html": html,
    "xhtml": xhtml,
    "srt": subtitles,
    "vtt": subtitles,
    "json": each_json,
    "yaml": each_yaml,
    "csv": table,
    "tsv": partial(table, signs="\t"),
}
"""Readers by file name suffix."""
