"""Our own API, under `/v1`: options are the fields of `Decoding`, errors one form."""

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from dragoman.serve.languages import resolve
from dragoman.serve.refusals import Refusal
from dragoman.serve.schema import TranslateRequest, options_of
from dragoman.serve.shelf import Served, Shelf
from dragoman.serve.web import Call, Dialect, Endpoint, json_response
from dragoman.tasks.results import Translation

V1 = Dialect(name="v1")

FAILED = {"text": "", "flags": ["failed"]}
"""The answer to a text at which a library failed."""


def as_list(given: str | list[str]) -> list[str]:
    """Return one text, or several, as a list."""
    return [given] if isinstance(given, str) else given


async def translate(call: Call) -> Response:
    """Translate texts."""
    form = await call.json(TranslateRequest)
    served, languages = choose(call.service.shelf, form.model, form.src_lang, form.tgt_lang)
    prefixes = None if form.prefix is None else as_list(form.prefix)

    def finish(translation: Translation) -> dict[str, Any]:
        plain = translation.to_dict()
        if form.alignment:
            with served.aside:
                plain |= translation.linked()
        return plain

    found = await call.service.translate(
        call,
        served,
        as_list(form.text),
        languages=languages,
        options=options_of(form),
        prefixes=prefixes,
        finish=finish,
    )
    return json_response({"model": served.name, "translations": [each or FAILED for each in found]})


Pair = tuple[str | None, str | None]


def choose(
    shelf: Shelf, model: str | None, src_lang: str | None, tgt_lang: str | None
) -> tuple[Served, Pair]:
    """Return the translator for a request, and the codes of its languages to choose in it.

    Raises Refusal for an unknown model, a pair that none has, and where several would do.
    """
    candidates = [shelf.find(model, "translate")] if model else shelf.usable("translate")
    fitting = [(one, pair) for one in candidates if (pair := pair_of(one, src_lang, tgt_lang))]
    if len(fitting) == 1 or (fitting and (src_lang or tgt_lang)):
        return fitting[0]
    if not candidates or (fitting and not model):
        return shelf.find(None, "translate"), (None, None)  # says which there are
    raise Refusal(
        400,
        f"No model translates {src_lang or 'any language'} to {tgt_lang or 'any language'}.",
        "GET /v1/models lists their languages.",
        where="src_lang, tgt_lang",
    )


def pair_of(served: Served, src_lang: str | None, tgt_lang: str | None) -> Pair | None:
    """Return the codes to choose in a model for a pair of languages; None if it lacks them.

    A model of one pair needs none; what it does not say of itself may be anything.
    """
    if not served.languages:
        own = served.src_lang, served.tgt_lang
        fits = [
            asked is None or has is None or resolve(asked, [has]) is not None
            for asked, has in zip((src_lang, tgt_lang), own, strict=True)
        ]
        return (None, None) if all(fits) else None
    src, tgt = (asked and resolve(asked, served.languages) for asked in (src_lang, tgt_lang))
    if tgt is None and (tgt_lang is not None or served.tgt_lang is None):
        return None
    if served.targets_only:
        return None, tgt
    return None if src is None and src_lang is not None else (src, tgt)


async def models(call: Call) -> Response:
    """List the models."""
    listed: Sequence[dict[str, Any]] = [one.plain() for one in call.service.shelf.models.values()]
    return json_response({"models": listed})


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/v1/translate",
        handler=translate,
        dialect=V1,
        summary="Translate texts.",
        takes=TranslateRequest,
    ),
    Endpoint(
        method="GET", path="/v1/models", handler=models, dialect=V1, summary="List the models."
    ),
)
