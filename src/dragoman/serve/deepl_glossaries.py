"""Glossaries as DeepL's clients manage them: of one language pair (v2) or of several (v3)."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal
from uuid import uuid4

import msgspec
from msgspec.structs import astuple
from starlette.responses import Response

from dragoman.errors import InputError
from dragoman.languages import base_of
from dragoman.serve.deepl import DEEPL, pair_of, unsupported
from dragoman.serve.endpoints import Endpoint
from dragoman.serve.glossaries import no_glossary
from dragoman.serve.refusals import Refusal
from dragoman.serve.responses import json_response
from dragoman.serve.state import GlossaryHead, StoredGlossary
from dragoman.serve.web import Call
from dragoman.text.glossary import Glossary

QUOTA = 456
"""DeepL's status code for an exceeded quota."""
TSV = "text/tab-separated-values"


class PairForm(msgspec.Struct):
    """A pair of languages."""

    source_lang: str
    target_lang: str


class DictionaryForm(PairForm):
    """Terms from one language to another, one per line."""

    entries: str
    entries_format: Literal["tsv", "csv"] = "tsv"


class PairGlossaryForm(DictionaryForm, kw_only=True):
    """A glossary of one language pair."""

    name: str


class GlossaryForm(msgspec.Struct):
    """A glossary of several language pairs."""

    name: str
    dictionaries: list[DictionaryForm]


class GlossaryChangeForm(msgspec.Struct):
    """A new name, and terms to add."""

    name: str | None = None
    dictionaries: list[DictionaryForm] = []


class DictionaryAnswer(PairForm):
    """The number of terms from one language to another."""

    entry_count: int


class PairGlossaryAnswer(DictionaryAnswer, kw_only=True):
    """A glossary of one language pair."""

    glossary_id: str
    name: str
    creation_time: str
    ready: bool = True


class GlossaryAnswer(msgspec.Struct):
    """A glossary of several language pairs."""

    glossary_id: str
    name: str
    dictionaries: list[DictionaryAnswer]
    creation_time: str


class EntriesAnswer(msgspec.Struct):
    """The terms of a dictionary."""

    dictionaries: list[DictionaryForm]


GlossaryList = msgspec.defstruct("GlossaryList", [("glossaries", list[GlossaryAnswer])])
PairGlossaryList = msgspec.defstruct("PairGlossaryList", [("glossaries", list[PairGlossaryAnswer])])


Head = GlossaryHead | StoredGlossary

Show = Callable[[Head], Any]
"""Returns the description of a glossary in one version of the API."""


def shown(one: Head) -> GlossaryAnswer:
    """Return the description of a glossary."""
    counts = [counted(*each) for each in one.counts.items()]
    return GlossaryAnswer(one.id, one.name, counts, one.made)


def counted(pair: str, count: int) -> DictionaryAnswer:
    """Return the number of terms of a language pair."""
    source, target = pair.split()
    return DictionaryAnswer(source, target, count)


def shown_pair(one: Head) -> PairGlossaryAnswer:
    """Return the description of a glossary of one pair. Raises Refusal for any other."""
    whole = shown(one)
    if len(whole.dictionaries) != 1:
        raise no_glossary()
    (only,) = whole.dictionaries
    return PairGlossaryAnswer(
        *astuple(only), glossary_id=one.id, name=one.name, creation_time=one.made
    )


def tsv(entries: dict[str, str]) -> str:
    """Return terms as TSV, one per line."""
    return "\n".join(map("\t".join, entries.items()))


def rows(form: DictionaryForm) -> Iterator[list[str]]:
    """Yield the columns of each non-empty line."""
    if form.entries_format == "csv":
        yield from filter(None, csv.reader(io.StringIO(form.entries)))
    else:
        yield from (line.split("\t") for line in form.entries.splitlines() if line.strip())


def checked(rows: Iterable[Sequence[str]]) -> dict[str, str]:
    """Return validated terms. Raises Refusal for an invalid one, or if there are none."""
    entries = dict[str, str]()
    try:
        for number, row in enumerate(rows, start=1):
            first, second = (cell.strip() for cell in (*row, "", "")[:2])
            if not first or not second or first in entries:
                raise InputError(f"line {number} has not a source of its own and a target")
            entries[first] = second
        if not Glossary(entries):
            raise InputError("there is none")
    except (InputError, csv.Error) as error:
        what = f"Invalid glossary entries provided: {error}."
        raise Refusal(400, what, "Send a source and a target in each line.") from None
    return entries


async def read(call: Call, forms: Sequence[DictionaryForm]) -> dict[str, dict[str, str]]:
    """Return dictionaries by language pair.

    Raises Refusal for a pair that is not served, and for a pair with two dictionaries.
    """
    served = call.service.shelf.languages(base_of)
    for form in forms:
        source = base_of(form.source_lang)
        if source not in served:
            raise unsupported("source_lang")
        if base_of(form.target_lang) not in served[source]:
            raise unsupported("target_lang")
    by_pair = {pair_of(form.source_lang, form.target_lang): form for form in forms}
    if len(by_pair) < len(forms):
        what = "Two dictionaries have the same languages, regions aside."
        raise Refusal(400, what, "Send their terms in one.", where="dictionaries")
    call.characters = sum(len(form.entries) for form in forms)
    call.service.queue.guess(call, call.characters)
    return await call.service.in_thread(
        call, lambda: {pair: checked(rows(form)) for pair, form in by_pair.items()}
    )


def find(call: Call) -> StoredGlossary:
    """Return the glossary that the path names. Raises Refusal if there is none."""
    return call.service.glossaries.find(call.owner, call.named)


async def create(show: Show, call: Call, form: PairGlossaryForm | GlossaryForm) -> Response:
    """Create a glossary."""
    service = call.service
    forms = [form] if isinstance(form, DictionaryForm) else form.dictionaries
    dictionaries = await read(call, forms)
    if not form.name.strip() or not dictionaries:
        raise Refusal(400, "A glossary needs a name and a dictionary.", "", where="name")
    made = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    one = StoredGlossary(
        id=str(uuid4()), owner=call.owner, name=form.name, made=made, dictionaries=dictionaries
    )
    if service.glossaries.is_full(call.owner):
        raise Refusal(QUOTA, "Quota exceeded: too many glossaries.", "Delete some.")
    service.glossaries.put(one)
    return json_response(show(one), 201)


async def listed(show: Show, call: Call) -> Response:
    """List glossaries; v2 lists those of one language pair."""
    found = call.service.glossaries.of(call.owner)
    fitting = [each for each in found if show is shown or len(each.counts) == 1]
    return json_response({"glossaries": [*map(show, fitting)]})


async def details(show: Show, call: Call) -> Response:
    """Describe a glossary."""
    return json_response(show(find(call)))


async def delete(call: Call) -> Response:
    """Delete a glossary."""
    await call.service.glossaries.remove(call.owner, call.named)
    return Response(status_code=204)


async def pair_entries(call: Call) -> Response:
    """List the terms of a glossary of one language pair."""
    one = find(call)
    shown_pair(one)
    return Response(tsv(*one.dictionaries.values()), media_type=TSV)


async def entries(call: Call, form: PairForm) -> Response:
    """List the terms of a dictionary."""
    pair = pair_of(form.source_lang, form.target_lang)
    if (found := find(call).dictionaries.get(pair)) is None:
        raise no_glossary()
    source, target = pair.split()
    return json_response(EntriesAnswer([DictionaryForm(source, target, tsv(found))]))


async def change(call: Call, form: GlossaryChangeForm) -> Response:
    """Rename a glossary, and add terms, which replace those with the same source."""
    service = call.service
    if not form.name and not form.dictionaries:
        raise Refusal(400, "Nothing is to be changed.", "Send a name or terms.", where="name")
    added = await read(call, form.dictionaries)
    async with service.glossaries.changing(call.owner, call.named) as one:
        one.name = form.name or one.name
        for pair, more in added.items():
            terms = one.dictionaries.get(pair, {}) | more
            call.characters += len(terms)
            one.dictionaries[pair] = await service.in_thread(call, partial(checked, terms.items()))
    return json_response(shown(one))


async def replace(call: Call, form: DictionaryForm) -> Response:
    """Replace the dictionary of a language pair."""
    ((pair, found),) = (await read(call, [form])).items()
    async with call.service.glossaries.changing(call.owner, call.named) as one:
        one.dictionaries[pair] = found
    return json_response(counted(pair, len(found)))


async def delete_dictionary(call: Call, form: PairForm) -> Response:
    """Delete a dictionary."""
    async with call.service.glossaries.changing(call.owner, call.named) as one:
        if one.dictionaries.pop(pair_of(form.source_lang, form.target_lang), None) is None:
            raise no_glossary()
    return Response(status_code=204)


_at = partial(Endpoint, dialect=DEEPL, large=True)
_V2, _V3 = "/v2/glossaries", "/v3/glossaries"
_PAIR, _ONE = f"{_V2}/{{glossary_id}}", f"{_V3}/{{glossary_id}}"
ENDPOINTS = (
    _at("POST", _V2, partial(create, shown_pair), PairGlossaryForm, PairGlossaryAnswer),
    _at("GET", _V2, partial(listed, shown_pair), None, PairGlossaryList),
    _at("GET", _PAIR, partial(details, shown_pair), None, PairGlossaryAnswer),
    _at("DELETE", _PAIR, delete),
    _at("GET", f"{_PAIR}/entries", pair_entries),
    _at("POST", _V3, partial(create, shown), GlossaryForm, GlossaryAnswer),
    _at("GET", _V3, partial(listed, shown), None, GlossaryList),
    _at("GET", _ONE, partial(details, shown), None, GlossaryAnswer),
    _at("PATCH", _ONE, change, GlossaryChangeForm, GlossaryAnswer),
    _at("DELETE", _ONE, delete),
    _at("GET", f"{_ONE}/entries", entries, PairForm, EntriesAnswer),
    _at("PUT", f"{_ONE}/dictionaries", replace, DictionaryForm, DictionaryAnswer),
    _at("DELETE", f"{_ONE}/dictionaries", delete_dictionary, PairForm),
)
