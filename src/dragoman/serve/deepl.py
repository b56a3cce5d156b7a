"""The dialect of DeepL v2: its official clients work unchanged, with their option `server_url`.

Features that this server lacks (formality, style rules, translation memories, custom instructions)
are refused. Fields that DeepL's contract calls preferences or hints (`prefer_more`, `context`,
`model_type`) have no effect.
"""

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import Literal, TypeVar

import msgspec
from starlette.responses import Response

from dragoman.decoding import Decoding
from dragoman.documents import html
from dragoman.documents.document import Document
from dragoman.errors import InputError
from dragoman.languages import base_of, name_of, tag
from dragoman.serve.endpoints import Dialect, Endpoint
from dragoman.serve.markup import check_xml, in_html, in_xml
from dragoman.serve.refusals import LONGEST_NAME, Refusal
from dragoman.serve.responses import json_response
from dragoman.serve.service import Service
from dragoman.serve.shelf import Chosen
from dragoman.serve.web import Call
from dragoman.serve.work import Translating
from dragoman.text.glossary import Glossary

T = TypeVar("T")

UNLIMITED = 10**12
"""The limit reported for an account without one."""
TARGETS = {
    "en": {"EN-GB": "English (British)", "EN-US": "English (American)"},
    "pt": {"PT-BR": "Portuguese (Brazilian)", "PT-PT": "Portuguese (European)"},
    "zh": {"ZH": "Chinese", "ZH-HANS": "Chinese (simplified)"},
}
"""Targets by language, for models that do not distinguish the targets."""


class DeepLOptions(msgspec.Struct):
    """Fields that requests for texts and for documents share."""

    target_lang: str | None = None
    source_lang: str | None = None
    formality: Literal["default", "more", "less", "prefer_more", "prefer_less"] = "default"
    glossary_id: str | None = None
    glossary_ids: list[str] | None = None
    style_id: str | None = None
    translation_memory_id: str | None = None


class DeepLForm(DeepLOptions):
    """Texts to translate."""

    text: list[str] | None = None
    split_sentences: Literal["0", "1", "nonewlines"] = "1"
    model_type: str | None = None
    show_billed_characters: bool = False
    context: str | None = None
    preserve_formatting: bool = False
    outline_detection: bool = True
    tag_handling: Literal["xml", "html"] | None = None
    tag_handling_version: Literal["v1", "v2"] = "v1"
    ignore_tags: list[str] = []
    splitting_tags: list[str] = []
    non_splitting_tags: list[str] = []
    custom_instructions: list[str] | None = None


class DeepLDocumentForm(DeepLOptions):
    """How to translate a document; the file itself is part of the form."""

    filename: str | None = None
    output_format: str | None = None


class DeepLKeyForm(msgspec.Struct):
    """The key to a document."""

    document_key: str = ""


class DeepLHandle(msgspec.Struct):
    """The id and the key of a document."""

    document_id: str
    document_key: str


class DeepLStatus(msgspec.Struct, omit_defaults=True):
    """The status of a document."""

    document_id: str
    status: str
    seconds_remaining: int | None = None
    billed_characters: int | None = None
    error_message: str | None = None


class DeepLKindForm(msgspec.Struct):
    """Which languages to list."""

    type: Literal["source", "target"] = "source"


class DeepLFault(msgspec.Struct):
    """An error."""

    message: str
    detail: str


class DeepLText(msgspec.Struct):
    """A translation; the last three fields if requested."""

    detected_source_language: str
    text: str
    billed_characters: int | msgspec.UnsetType = msgspec.UNSET
    model_type_used: str | msgspec.UnsetType = msgspec.UNSET
    tag_handling_version: str | msgspec.UnsetType = msgspec.UNSET


class DeepLAnswer(msgspec.Struct):
    """Translations, in the order of their texts."""

    translations: list[DeepLText]


class DeepLLanguage(msgspec.Struct):
    """A language; for targets, whether formality can be chosen."""

    language: str
    name: str
    supports_formality: bool | msgspec.UnsetType = msgspec.UNSET


class DeepLUsage(msgspec.Struct):
    """Characters translated since the server started, and their limit."""

    character_count: int
    character_limit: int = UNLIMITED


def error(refusal: Refusal) -> Response:
    """Return an error in DeepL's format; a wrong key gives 403, as at DeepL."""
    status = 403 if refusal.status == 401 else refusal.status
    return json_response(DeepLFault(refusal.what, refusal.do), status, refusal.headers)


def unsupported(name: str, detail: str = "") -> Refusal:
    """Return the refusal of an unsupported value."""
    return Refusal(400, f"Value for '{name}' not supported.", detail, where=name)


async def read(call: Call, kind: type[T]) -> T:
    """Read a request. Raises Refusal for a missing field, and for a feature that is lacking."""
    form = await call.read(kind)
    for name in ("text", "target_lang"):
        if not getattr(form, name, True):
            raise Refusal(400, f"Parameter '{name}' not specified.", "", where=name)
    formality = getattr(form, "formality", "default")
    if formality in {"more", "less"}:
        what = "'formality' is not supported for given 'target_lang'."
        raise Refusal(400, what, f"Use prefer_{formality}.", where="formality")
    for name in ("style_id", "translation_memory_id", "custom_instructions"):
        if getattr(form, name, None):
            raise unsupported(name)
    return form


DEEPL = Dialect(
    name="deepl",
    error=error,
    scheme="DeepL-Auth-Key",
    read=read,
    forms=True,
    lists=(
        *("text", "custom_instructions", "glossary_ids"),
        *("ignore_tags", "splitting_tags", "non_splitting_tags"),
    ),
    fault=DeepLFault,
)


def names_in(given: Iterable[str]) -> list[str]:
    """Return names that were sent one by one or separated by commas."""
    return [name.strip() for each in given for name in each.split(",")]


def pair_of(source: str, target: str) -> str:
    """Return a language pair as glossaries store it, without regions."""
    return f"{base_of(source)} {base_of(target)}"


async def glossary_of(call: Call, form: DeepLOptions) -> Glossary | None:
    """Return the terms of the glossaries that a form names; earlier ones take precedence.

    Raises Refusal if a glossary does not exist or lacks the languages of the form.
    """
    ids = names_in([form.glossary_id] if form.glossary_id else form.glossary_ids or [])
    if not ids:
        return None
    if not form.source_lang:
        what = "A glossary needs source_lang."
        raise Refusal(400, what, "Name the source language.", where="source_lang")
    pair = pair_of(form.source_lang, form.target_lang or "")
    return await call.service.glossaries.ready(call, pair, ids)


def chosen_for(
    service: Service, source: str | None, target: str | None, *, is_told: bool = False
) -> Chosen | None:
    """Return the model for a language pair; None if the text is already in the target language.

    `is_told` means that the source was detected in the text. Raises Refusal in DeepL's words.
    """
    if service.shelf.keeps(source, target):
        return None
    try:
        return service.shelf.choose(None, source, target, is_told=is_told)
    except Refusal as refusal:
        if refusal.status != 400:
            raise
        known = any(one.pair(None, target) for one in service.shelf.usable("translate"))
        name = "source_lang" if known and refusal.where != "tgt_lang" else "target_lang"
        raise unsupported(name, refusal.sentence) from None


def chosen_of_texts(
    service: Service, sources: Sequence[str | None], target: str | None, *, are_told: bool
) -> dict[str | None, Chosen | None]:
    """Return the model for each source; None for texts that stay unchanged.

    If the languages were detected in the texts (`are_told`), texts that no model reads also stay,
    such as a quotation in a page, unless the request contains nothing else. Raises Refusal in
    DeepL's words.
    """
    chosen, refused = dict[str | None, Chosen | None](), list[Refusal]()
    for source in dict.fromkeys(sources):
        try:
            chosen[source] = chosen_for(service, source, target, is_told=are_told)
        except Refusal as refusal:
            if not are_told or refusal.where != "source_lang":
                raise
            chosen[source] = None
            refused.append(refusal)
    if refused and len(refused) == len(chosen):
        raise refused[0]
    return chosen


def check_tags(form: DeepLForm, texts: Iterable[str]) -> None:
    """Raise Refusal if a text should be XML but is not well-formed; only v2 checks this."""
    if (form.tag_handling, form.tag_handling_version) == ("xml", "v2"):
        try:
            for text in texts:
                check_xml(text)
        except InputError:
            what = "Tag handling parsing failed, please check input."
            raise Refusal(400, what, "", where="text") from None


def reading_of(form: DeepLForm) -> Callable[[str], Document]:
    """Return the function that parses the form's texts with tags as documents."""
    given = form.ignore_tags, form.splitting_tags, form.non_splitting_tags
    ignored, splitting, joining = (
        frozenset(name.lower() for name in names_in(each)) for each in given
    )
    if form.tag_handling == "html":
        return partial(in_html, rules=replace(html.RULES, copied=html.RULES.copied | ignored))
    outline = form.outline_detection
    return partial(in_xml, copied=ignored, splitting=splitting, joining=joining, outline=outline)


async def translate(call: Call, form: DeepLForm) -> Response:
    """Translate texts, each from its detected language if none is given."""
    service, texts, target = call.service, form.text or [], form.target_lang
    service.accept(call, texts)
    check_tags(form, texts)
    given: list[str | None] = [form.source_lang] * len(texts)
    sources = given if form.source_lang else await service.sources_of(call, texts)
    options = Decoding(split_sentences=False) if form.split_sentences == "0" else None
    lines = texts if form.split_sentences == "1" else [text.replace("\n", " ") for text in texts]
    found, terms = dict(enumerate(texts)), await glossary_of(call, form)
    chosen_of = chosen_of_texts(service, sources, target, are_told=not form.source_lang)
    places_of = dict[Chosen, list[int]]()
    for place, source in enumerate(sources):  # texts for the same model are priced together
        if (chosen := chosen_of[source]) is not None:
            places_of.setdefault(chosen, []).append(place)
    for one, places in places_of.items():
        how, some = Translating(call, one, options, terms), [lines[place] for place in places]
        if form.tag_handling is not None:
            answered = await service.translate_markup(how, reading_of(form), some)
            found |= zip(places, [each.text for each in answered], strict=True)
        else:
            translated = await service.translate_lines(how, some)
            found |= zip(places, [best for best, *_ in translated], strict=True)
    answers = list[DeepLText]()
    for place, source in enumerate(sources):
        chosen = chosen_of[source]
        read = source or (chosen and chosen[0].src_lang) or "en"
        answers.append(answer := DeepLText(base_of(read).upper(), found[place]))
        if form.show_billed_characters:
            answer.billed_characters = len(texts[place]) if chosen else 0
        if form.model_type:
            answer.model_type_used = "quality_optimized"
        if form.tag_handling is not None:
            answer.tag_handling_version = form.tag_handling_version
    return json_response(DeepLAnswer(answers))


async def languages(call: Call, form: DeepLKindForm) -> Response:
    """List the source or target languages."""
    pairs = call.service.shelf.languages(str)
    if form.type == "source":
        sources = (base_of(code) if code == tag(code) else code for code in pairs)
        codes = {code.upper(): name_of(code) for code in sources}
        return json_response([DeepLLanguage(*each) for each in codes.items()])
    listed: dict[str, str] = {}
    for code in sorted({code for found in pairs.values() for code in found}):
        listed |= TARGETS.get(code, {code.upper(): name_of(code)})
    return json_response(
        [DeepLLanguage(*each, supports_formality=False) for each in listed.items()]
    )


async def usage(call: Call) -> Response:
    """Return the number of characters translated since the server started."""
    return json_response(DeepLUsage(call.service.characters))


async def glossary_pairs(call: Call) -> Response:
    """List the language pairs that glossaries can have."""
    pairs = call.service.shelf.languages(base_of)
    listed = [
        {"source_lang": source, "target_lang": target}
        for source, targets in pairs.items()
        for target in sorted(targets)
    ]
    return json_response({"supported_languages": listed})


async def upload(call: Call, form: DeepLDocumentForm) -> Response:
    """Accept a document to translate."""
    service, file = call.service, call.file
    if file is not None and form.filename:
        call.file = file = replace(file, name=PurePath(form.filename).name[-LONGEST_NAME:])
    if file is not None and form.output_format not in {None, PurePath(file.name).suffix[1:]}:
        raise unsupported("output_format")
    chosen_for(service, form.source_lang, form.target_lang)
    key = secrets.token_hex(32)
    terms = await glossary_of(call, form)
    one = service.documents.add(call, form.source_lang, form.target_lang, glossary=terms, key=key)
    return json_response(DeepLHandle(one.id, key))


async def status(call: Call, form: DeepLKeyForm) -> Response:
    """Return the status of a document."""
    documents = call.service.documents
    one = documents.find(call.named, form.document_key, call.owner)
    answer = DeepLStatus(one.id, one.status)
    if one.status == "translating":
        answer.seconds_remaining = documents.seconds_left(one)
    elif one.status == "done":
        answer.billed_characters = one.characters
    elif one.status == "error":
        answer.error_message = one.error
    return json_response(answer)


async def result(call: Call, form: DeepLKeyForm) -> Response:
    """Send a translated document."""
    documents = call.service.documents
    one = documents.find(call.named, form.document_key, call.owner)
    return documents.fetched(one)


_at = partial(Endpoint, dialect=DEEPL)
ENDPOINTS = (
    _at("POST", "/v2/translate", translate, DeepLForm, DeepLAnswer),
    _at("GET", "/v2/languages", languages, DeepLKindForm, list[DeepLLanguage]),
    _at("POST", "/v2/languages", languages, DeepLKindForm, list[DeepLLanguage]),
    _at("GET", "/v2/usage", usage, None, DeepLUsage),
    _at("POST", "/v2/usage", usage, None, DeepLUsage),
    _at("GET", "/v2/glossary-language-pairs", glossary_pairs),
    _at("POST", "/v2/document", upload, DeepLDocumentForm, DeepLHandle, large=True),
    _at("POST", "/v2/document/{document_id}", status, DeepLKeyForm, DeepLStatus, always=True),
    _at("POST", "/v2/document/{document_id}/result", result, DeepLKeyForm, always=True),
)
