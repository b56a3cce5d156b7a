"""Documents as DeepL's clients send them: uploaded, asked for until they are done, fetched."""

import secrets
from dataclasses import replace
from functools import partial
from pathlib import PurePath

import msgspec
from starlette.responses import Response

from dragoman.serve.deepl import (
    DEEPL,
    LISTS,
    DeepLOptions,
    check,
    chosen_for,
    glossary_of,
    unsupported,
)
from dragoman.serve.endpoints import Endpoint
from dragoman.serve.refusals import LONGEST_NAME
from dragoman.serve.web import Call, json_response


class DeepLDocumentForm(DeepLOptions):
    """How to translate a document; the file itself is a part of the form."""

    filename: str | None = None
    output_format: str | None = None


class DeepLKeyForm(msgspec.Struct):
    """The key to a document."""

    document_key: str = ""


class DeepLHandle(msgspec.Struct):
    """How a document is asked for."""

    document_id: str
    document_key: str


class DeepLStatus(msgspec.Struct, omit_defaults=True):
    """How far a document is."""

    document_id: str
    status: str
    seconds_remaining: int | None = None
    billed_characters: int | None = None
    error_message: str | None = None


async def upload(call: Call) -> Response:
    """Take a document."""
    form = await call.form(DeepLDocumentForm, LISTS)
    check(form, "target_lang")
    service, file = call.service, call.file
    if file is not None and form.filename:
        call.file = file = replace(file, name=PurePath(form.filename).name[-LONGEST_NAME:])
    if file is not None and form.output_format not in {None, PurePath(file.name).suffix[1:]}:
        raise unsupported("output_format")
    translators = service.shelf.usable("translate")
    if form.source_lang or not any(one.pair(None, form.target_lang) for one in translators):
        chosen_for(service, form.source_lang, form.target_lang)
    key = secrets.token_hex(32)
    terms = await glossary_of(call, form)
    one = service.documents.add(call, form.source_lang, form.target_lang, glossary=terms, key=key)
    return json_response(DeepLHandle(one.id, key))


async def status(call: Call) -> Response:
    """Say how far a document is."""
    form = await call.form(DeepLKeyForm)
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


async def result(call: Call) -> Response:
    """Send a translated document."""
    form = await call.form(DeepLKeyForm)
    documents = call.service.documents
    one = documents.find(call.named, form.document_key, call.owner)
    return documents.fetched(one)


_at = partial(Endpoint, "POST", dialect=DEEPL)
ENDPOINTS = (
    _at("/v2/document", upload, DeepLDocumentForm, DeepLHandle, large=True),
    _at("/v2/document/{document_id}", status, DeepLKeyForm, DeepLStatus),
    _at("/v2/document/{document_id}/result", result, DeepLKeyForm),
)
