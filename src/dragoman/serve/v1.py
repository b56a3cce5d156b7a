"""Our own API, under `/v1`: options are the fields of `Decoding`, and errors have one format."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from operator import methodcaller
from typing import Any

import msgspec
from starlette.responses import Response

from dragoman.decoding import Decoding, with_seed
from dragoman.folder.rereading import reread
from dragoman.languages import LangCodes
from dragoman.lens.choices import Choices
from dragoman.lens.inspecting import inspect_folder
from dragoman.serve.endpoints import Dialect, Endpoint
from dragoman.serve.markup import in_html, in_xml
from dragoman.serve.refusals import Refusal
from dragoman.serve.responses import EventStream, json_response
from dragoman.serve.schema import (
    ClassifyAnswer,
    DetectAnswer,
    DetectForm,
    DocumentForm,
    EmbedAnswer,
    GenerateAnswer,
    GenerateForm,
    GenerateRequest,
    InspectAnswer,
    InspectForm,
    ModelForm,
    ModelsAnswer,
    ScoreAnswer,
    ScoreForm,
    TagAnswer,
    TextForm,
    TranslateAnswer,
    TranslateForm,
    TranslateRequest,
    as_list,
    options_of,
)
from dragoman.serve.shelf import Served, Shelf
from dragoman.serve.web import Call
from dragoman.serve.work import BATCH_TOKENS, Translating
from dragoman.tasks.folders import read_folder
from dragoman.tasks.results import Translation
from dragoman.text.glossary import Glossary
from dragoman.wording import format_bytes

V1 = Dialect(name="v1")

STEP = 32
"""Pairs scored between two checks that the client is still connected."""
LARGEST = 1 << 30
"""Maximum bytes of weights that are read a second time for an inspection, since decoding keeps
them in a form of its own."""
TO_DICT = methodcaller("to_dict")
FAILED: dict[str, dict[str, Any]] = {
    "translate": {"text": "", "flags": ["failed"]},
    "generate": {"prompt": "", "text": "", "stopped": "stop", "flags": ["failed"]},
    "classify": {"label": "", "probabilities": {}, "flags": ["failed"]},
    "tag": {"text": "", "words": [], "spans": [], "flags": ["failed"]},
    "embed": {"vector": [], "flags": ["failed"]},
}
"""For each task, the answer to a text at which a library failed."""


async def translate(call: Call, form: TranslateForm) -> Response:
    """Translate texts."""
    service, texts = call.service, as_list(form.text)
    chosen = service.shelf.choose(form.model, form.src_lang, form.tgt_lang)
    prefixes = None if form.prefix is None else as_list(form.prefix)

    def finish(translation: Translation) -> dict[str, Any]:
        plain = translation.to_dict()
        if form.alignment:
            with chosen[0].aside:
                plain |= translation.linked()
        return plain

    options = options_of(form)
    terms = [*form.glossary, *form.glossary.values()]
    service.accept(call, texts, options, beside=[*(prefixes or ()), *terms])
    glossary = None
    if form.glossary:
        glossary = await service.in_thread(call, lambda: Glossary(form.glossary))
    how = Translating(call, chosen, options, glossary)
    if form.format != "text":
        if form.alignment or prefixes is not None or options.given().get("n_best", 1) > 1:
            what = f"A text in {form.format} has no prefix, alternatives nor alignment."
            raise Refusal(400, what, "Leave them out.", where="format")
        read = in_html if form.format == "html" else in_xml
        marked = await service.translate_markup(how, read, texts)
        return json_response({"model": chosen[0].name, "translations": marked})
    found = await service.translate(
        how, texts, prefixes=prefixes, finish=finish, aligning=form.alignment
    )
    service.characters += sum(map(len, texts))
    answers = [each or FAILED["translate"] for each in found]
    return json_response({"model": chosen[0].name, "translations": answers})


async def generate(call: Call, form: GenerateForm) -> Response:
    """Continue prompts, or stream the continuation of one."""
    service, texts, given = call.service, as_list(form.text), options_of(form)
    service.accept(call, texts, given)
    served = service.shelf.find(form.model, "generate")
    if form.stream:
        if len(texts) != 1:
            raise Refusal(400, "Only one text can be streamed.", "Send one text.", where="text")
        return await EventStream.begun(call.error, _events(call, served, texts[0], given))
    async with service.lease(call, served, len(texts)) as generator:
        options = with_seed(given, generator.options)
        found = await service.ask(
            call, generator.scheduler, lambda: generator.courses(texts, options), TO_DICT
        )
    answers = [each or FAILED["generate"] for each in found]
    answer = {"model": served.name, "generations": answers, "seed": seed_of(options)}
    return json_response(answer)


def seed_of(options: Decoding) -> int | None:
    """Return the seed that reproduces a sampled answer; None if nothing was sampled."""
    return options.seed if options.temperature > 0 else None


async def _events(
    call: Call, served: Served, prompt: str, given: Decoding
) -> AsyncGenerator[bytes, None]:
    """Yield the pieces of a text, then the whole answer, or the error that ends it."""
    async with call.service.lease(call, served, 1) as generator:
        options = with_seed(given, generator.options)
        text = generator.growing(options, begins_text=generator.begins_text(prompt))
        courses = partial(generator.courses, [prompt], options, None)
        growing = call.service.growing(call, generator.scheduler, courses, text)
        async with aclosing(growing):
            async for piece in growing:
                if isinstance(piece, str):
                    yield msgspec.json.encode({"text": piece})
                else:
                    answer = FAILED["generate"] if piece is None else piece.to_dict()
                    yield msgspec.json.encode({"done": answer, "seed": seed_of(options)})


async def label(task: str, key: str, call: Call, form: TextForm) -> Response:
    """Classify, tag or embed texts."""
    service, texts = call.service, as_list(form.text)
    service.accept(call, texts)
    served = service.shelf.find(form.model, task)
    async with service.lease(call, served, len(texts)) as reader:
        found = await service.ask(
            call, reader.scheduler, lambda: reader.courses(texts, BATCH_TOKENS), TO_DICT
        )
    answers = [each or FAILED[task] for each in found]
    return json_response({"model": served.name, key: answers})


async def score(call: Call, form: ScoreForm) -> Response:
    """Score pairs with a translator or a generator."""
    service, sources, targets = call.service, as_list(form.src), as_list(form.tgt)
    if len(sources) != len(targets):
        raise Refusal(400, "src and tgt differ in number.", "Send pairs.", where="src, tgt")
    service.accept(call, sources, beside=targets)
    pairs = [*zip(sources, targets, strict=True)]
    languages: LangCodes = None, None
    if service.shelf.is_for(form.model, "generate"):
        served = service.shelf.find(form.model, "generate")
    else:
        served, languages = service.shelf.choose(form.model, form.src_lang, form.tgt_lang)
    async with service.lease(call, served, len(pairs)) as found:
        scorer = found if served.task == "generate" else found.between(*languages)

        def some(first: int) -> list[dict[str, Any]]:
            return [one.to_dict() for one in scorer.score(pairs[first : first + STEP])]

        steps = [partial(some, first) for first in range(0, len(pairs), STEP)]
        scores = await service.step(call, steps, served.aside)
    return json_response({"model": served.name, "scores": scores})


async def document(call: Call, form: DocumentForm) -> Response:
    """Translate a document and return it."""
    service = call.service
    if form.src_lang is not None or form.tgt_lang is not None:
        service.shelf.choose(form.model, form.src_lang, form.tgt_lang)
    terms, documents = None, service.documents
    if form.glossary:
        call.characters = len(form.glossary)
        parse = partial(
            Glossary.parse,
            form.glossary.encode(),
            "glossary",
            languages=_languages_of(service.shelf, form),
        )
        terms = await service.in_thread(call, parse)
    one = documents.add(
        call, form.src_lang, form.tgt_lang, model=form.model, glossary=terms, passing=True
    )
    try:
        return documents.fetched(await documents.done(call, one))
    finally:
        documents.remove(one)


def _languages_of(shelf: Shelf, form: DocumentForm) -> LangCodes:
    """Return the languages of a document, as far as the request or its only model tells."""
    models = [shelf.find(form.model, "translate")] if form.model else shelf.usable("translate")
    if len(models) != 1:
        return form.src_lang, form.tgt_lang
    return form.src_lang or models[0].src_lang, form.tgt_lang or models[0].tgt_lang


async def detect(call: Call, form: DetectForm) -> Response:
    """Detect the languages of texts."""
    call.service.accept(call, as_list(form.text))
    return json_response(DetectAnswer(await call.service.detect(call, as_list(form.text))))


async def models(call: Call) -> Response:
    """List the models."""
    listed = call.service.shelf.models.values()
    convert = partial(msgspec.convert, type=ModelForm, from_attributes=True)
    return json_response(ModelsAnswer([*map(convert, listed)]))


async def inspect(call: Call, form: InspectForm) -> Response:
    """Show what a translator does with a text."""
    service = call.service
    service.accept(call, [form.text])
    served, _ = service.shelf.choose(form.model, form.src_lang, form.tgt_lang)
    if served.languages or served.bytes > LARGEST:
        why = "has several languages" if served.languages else f"takes {format_bytes(served.bytes)}"
        raise Refusal(
            400,
            f"The model {served.name} {why}, so that its inside is not shown here.",
            "Use dragoman inspect.",
            where="model",
        )

    def look() -> list[dict[str, Any]]:
        with reread(served.path, served.weights) as folder:
            read_folder(folder, device="cpu").model  # noqa: B018 -- read here
        return [inspect_folder(folder, form.text, Choices()).to_dict()]

    async with service.lease(call, served, 1):
        (found,) = await service.step(call, [look], served.aside)
    inspection = found | {"model": served.name}
    return json_response({"model": served.name, "inspection": inspection})


_at = partial(Endpoint, dialect=V1)
_classify = partial(label, "classify", "classifications")
ENDPOINTS = (
    _at("POST", "/v1/translate", translate, TranslateRequest, TranslateAnswer),
    _at("POST", "/v1/generate", generate, GenerateRequest, GenerateAnswer),
    _at("POST", "/v1/classify", _classify, TextForm, ClassifyAnswer),
    _at("POST", "/v1/tag", partial(label, "tag", "taggings"), TextForm, TagAnswer),
    _at("POST", "/v1/embed", partial(label, "embed", "embeddings"), TextForm, EmbedAnswer),
    _at("POST", "/v1/documents", document, DocumentForm, large=True),
    _at("POST", "/v1/score", score, ScoreForm, ScoreAnswer),
    _at("POST", "/v1/detect", detect, DetectForm, DetectAnswer),
    _at("GET", "/v1/models", models, None, ModelsAnswer),
    _at("POST", "/v1/inspect", inspect, InspectForm, InspectAnswer),
)
