"""The dialect of LibreTranslate 1.9: its clients work unchanged.

Suggestions are answered as by a server that has disabled them.
"""

from functools import partial
from pathlib import PurePosixPath
from typing import Any, TypeVar

import msgspec
from starlette.responses import Response

from dragoman.decoding import Decoding
from dragoman.documents.formats import FORMATS
from dragoman.languages import name_of, resolve
from dragoman.serve.endpoints import Dialect, Endpoint
from dragoman.serve.markup import in_html
from dragoman.serve.refusals import LONGEST_NAME, Refusal
from dragoman.serve.responses import json_response
from dragoman.serve.schema import as_list
from dragoman.serve.shelf import Chosen, Shelf
from dragoman.serve.web import Call
from dragoman.serve.work import Translating
from dragoman.text.detection import Detected

FALLBACK = "en"
"""The language to report if none is detected."""
Form = TypeVar("Form", bound="LibreForm")


NEEDED = ("q", "source", "target")
"""Fields without which a request that has them is refused, in this order."""


class LibreForm(msgspec.Struct):
    """The key, which any request may contain."""

    api_key: str | None = None


class LibreDetectForm(LibreForm):
    """A text whose language to detect."""

    q: str | list[str] | None = None


class LibreFileForm(LibreForm):
    """A document to translate; the file itself is part of the form."""

    source: str | None = None
    target: str | None = None


class LibreTranslateForm(LibreFileForm):
    """Texts to translate."""

    q: str | list[str] | None = None
    format: str | None = None
    alternatives: int | float | str | None = None


class LibreLanguage(msgspec.Struct):
    """A language that a text may be in."""

    language: str
    confidence: float


class LibreAnswer(msgspec.Struct):
    """A translation, or one per text; alternatives and detected languages if requested."""

    translatedText: str | list[str]  # noqa: N815 -- their names
    alternatives: list[str | list[str]] | msgspec.UnsetType = msgspec.UNSET
    detectedLanguage: LibreLanguage | list[LibreLanguage] | msgspec.UnsetType = msgspec.UNSET  # noqa: N815


class LibrePairs(msgspec.Struct):
    """A language, and those it can be translated into."""

    code: str
    name: str
    targets: list[str]


def error(refusal: Refusal) -> Response:
    """Return an error in LibreTranslate's format: a text."""
    text = refusal.sentence
    if refusal.status == 400 and refusal.where == "body":
        text = "Invalid JSON format"
    elif refusal.status == 429:
        text = f"Slowdown: {text}"
    return json_response({"error": text}, refusal.status, refusal.headers)


class LibreFault(msgspec.Struct):
    """An error."""

    error: str


def bad(what: str) -> Refusal:
    """Return the refusal of an invalid request."""
    return Refusal(400, what, "")


def code_of(tag: str) -> str:
    """Return LibreTranslate's code for a language tag."""
    return "zh-Hans" if tag == "zh" else tag


async def read(call: Call, kind: type[Form]) -> Form:
    """Read a request. Raises Refusal for a missing field, and for a missing or wrong key."""
    form = await call.read(kind)
    keys = call.service.settings.keys
    if form.api_key:
        if not keys.allows(form.api_key):
            raise Refusal(403, "Invalid API key", "")
        call.owner = keys.owner(form.api_key)
    elif not call.known:
        raise bad("Please contact the server operator to get an API key")
    for name in NEEDED:
        if not getattr(form, name, True):
            raise bad(f"Invalid request: missing {name} parameter")
    return form


LIBRE = Dialect(name="libretranslate", error=error, read=read, forms=True, fault=LibreFault)


async def translate(call: Call, form: LibreTranslateForm) -> Response:
    """Translate a text, or a list of them."""
    texts = as_list(form.q or "")
    source, target, limits = form.source or "", form.target or "", call.service.settings.limits
    try:
        more = max(0, int(form.alternatives or 0))
    except (ValueError, OverflowError):
        raise bad("Invalid request: alternatives parameter is not a number") from None
    if more >= limits.beam:
        raise bad(f"Invalid request: alternatives parameter must be <= {limits.beam - 1}")
    for limit, size in (limits.texts, len(texts)), (limits.characters, sum(map(len, texts))):
        if size > limit:
            raise bad(f"Invalid request: request ({size}) exceeds text limit ({limit})")
    options = Decoding(n_best=more + 1) if more else None
    call.service.accept(call, texts, options)
    answer: dict[str, list[Any]] = {}
    if source == "auto":
        best, *_ = candidates(*await call.service.detect(call, ["\n".join(texts)]))
        source, answer["detectedLanguage"] = best["language"], [best] * len(texts)
    chosen = choose(call.service.shelf, source, target, is_told=form.source == "auto")
    if form.format not in {None, "", "text", "html"}:
        raise bad(f"{form.format[:LONGEST_NAME]} format is not supported")
    if chosen is None:
        found = [[text] for text in texts]
    elif form.format == "html":
        marked = await call.service.translate_markup(Translating(call, chosen), in_html, texts)
        found = [[each.text] for each in marked]
    else:
        found = await call.service.translate_lines(Translating(call, chosen, options), texts)
    answer["translatedText"] = [best for best, *_ in found]
    if more:
        answer["alternatives"] = [[*dict.fromkeys(each)][1:] for each in found]
    one_text = not isinstance(form.q, list)
    return json_response({name: each[0] for name, each in answer.items()} if one_text else answer)


def choose(shelf: Shelf, source: str, target: str, *, is_told: bool = False) -> Chosen | None:
    """Return the translator for a pair; None if the text is already in the target language.

    `is_told` means that the source was detected. Raises Refusal in LibreTranslate's words.
    """
    if shelf.keeps(source, target):
        return None
    try:
        return shelf.choose(None, source, target, is_told=is_told)
    except Refusal as refusal:
        if refusal.where in {"text", "src_lang", "tgt_lang"}:
            raise
        pairs = shelf.languages(code_of)
        written = {each for one in pairs.values() for each in one}
        for code, codes in (source, pairs), (target, written):
            if resolve(code, codes) is None:
                raise bad(f"{code[:LONGEST_NAME]} is not supported") from None
        raise bad(
            f"{name_of(target)} ({target}) is not available as a target language from "
            f"{name_of(source)} ({source})"
        ) from None


def candidates(detected: Detected) -> list[dict[str, Any]]:
    """Return the possible languages of a text, most likely first, in percent."""
    return [
        {"confidence": round(100 * each.confidence, 1), "language": code_of(each.language)}
        for each in detected.candidates
    ] or [{"confidence": 0.0, "language": FALLBACK}]


async def detect(call: Call, form: LibreDetectForm) -> Response:
    """Detect the languages that a text may be in."""
    text = "\n".join(as_list(form.q or ""))
    call.service.accept(call, [text])
    return json_response(candidates(*await call.service.detect(call, [text])))


async def languages(call: Call) -> Response:
    """List the languages."""
    pairs = call.service.shelf.languages(code_of)
    listed = [LibrePairs(code, name_of(code), sorted(into)) for code, into in pairs.items()]
    return json_response(listed)


async def frontend_settings(call: Call) -> Response:
    """Return what a page may request."""
    settings, pairs = call.service.settings, call.service.shelf.languages(code_of)
    target = min((min(each) for each in pairs.values() if each), default=FALLBACK)
    answer = {
        "charLimit": settings.limits.characters,
        "frontendTimeout": 500,
        **dict.fromkeys(("apiKeys", "keyRequired"), bool(settings.keys)),
        "suggestions": False,
        "filesTranslation": True,
        "supportedFilesFormat": [f".{end}" for each in FORMATS.values() for end in each.suffixes],
        "language": {
            "source": {"code": "auto", "name": "Auto Detect"},
            "target": {"code": target, "name": name_of(target)},
        },
    }
    return json_response(answer)


async def translate_file(call: Call, form: LibreFileForm) -> Response:
    """Translate a document and return its URL."""
    if call.file is None:
        raise bad("Invalid request: missing file parameter")
    source, documents = form.source or "", call.service.documents
    if source != "auto":
        choose(call.service.shelf, source, form.target or "")
    one = documents.add(call, None if source == "auto" else source, form.target or "")
    await documents.done(call, one)
    scheme = "https" if call.headers.get("x-forwarded-proto") == "https" else "http"
    prefix = call.headers.get("x-forwarded-prefix", "").strip("/")
    path = PurePosixPath("/", prefix, "download_file", one.id + PurePosixPath(one.name).suffix)
    return json_response({"translatedFileUrl": f"{scheme}://{call.headers.get('host', '')}{path}"})


async def download_file(call: Call) -> Response:
    """Send a translated document."""
    documents = call.service.documents
    return documents.fetched(documents.find(call.named.partition(".")[0]))


async def health(_call: Call) -> Response:
    """Report that the server is running."""
    return json_response({"status": "ok"})


async def suggest(_call: Call) -> Response:
    """Refuse suggestions, which this server does not store."""
    return json_response(LibreFault("Suggestions are disabled on this server."), 403)


_at = partial(Endpoint, dialect=LIBRE, open=True)
ENDPOINTS = (
    _at("POST", "/translate", translate, LibreTranslateForm, LibreAnswer),
    _at("POST", "/detect", detect, LibreDetectForm, list[LibreLanguage]),
    _at("GET", "/languages", languages, None, list[LibrePairs]),
    _at("GET", "/frontend/settings", frontend_settings),
    _at("GET", "/health", health),
    _at("POST", "/suggest", suggest),
    _at("POST", "/translate_file", translate_file, LibreFileForm, large=True),
    _at("GET", "/download_file/{name}", download_file, always=True),
)
