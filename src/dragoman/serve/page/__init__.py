"""The web page of a server, which translates as one types.

    index.html, page.css, icon.svg, labels.json (every word of the page, in English and Chinese)
    server.js   requests, and their errors in words    places.js  where tokens stand in a text
    models.js   models, languages, pairs               result.js  a translation, word by word
    files.js    documents, and terms                   inside.js  what the model did, as `inspect`
    main.js     the page itself

The scripts are plain JavaScript, joined behind those parts of the page of `dragoman inspect` that
this page has too (`lens.page`). It needs nothing but this server.
"""

from collections.abc import Mapping
from functools import cache, partial
from importlib.resources import files

from starlette.responses import Response

from dragoman import __version__
from dragoman.lens.page import fill, parts_with
from dragoman.serve.endpoints import Dialect, Endpoint
from dragoman.serve.web import Call

HERE = files(__package__)

LENS_SCRIPTS = (
    *("base.js", "frame.js", "heat.js", "sentence.js", "heads.js", "open_head.js"),
    *("search.js", "beam.js"),
)
"""What both pages have."""
SCRIPTS = (
    *("server.js", "places.js", "models.js", "files.js", "result.js"),
    *("inside.js", "main.js"),
)
"""What this page has besides, in the order in which it is joined."""

HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-cache",
}
"""A page that may ask this server alone, and that no other page may hold."""

PAGE = Dialect(name="page")


@cache
def contents() -> Mapping[str, tuple[str, bytes]]:
    """Return the type and the content of each path."""
    parts = parts_with(HERE, LENS_SCRIPTS, SCRIPTS)
    html, icon = (HERE.joinpath(name).read_text("utf-8") for name in ("index.html", "icon.svg"))
    texts = {
        "/": ("text/html", fill(html, {"VERSION": __version__, **parts})),
        "/page/page.js": ("text/javascript", parts["SCRIPT"]),
        "/page/page.css": ("text/css", parts["STYLE"]),
        "/page/icon.svg": ("image/svg+xml", icon),
    }
    return {path: (kind, text.encode()) for path, (kind, text) in texts.items()}


async def _show(path: str, _call: Call) -> Response:
    """Send a file of the page."""
    kind, content = contents()[path]
    return Response(content, headers=HEADERS, media_type=kind)


ENDPOINTS = tuple(
    Endpoint("GET", path, partial(_show, path), dialect=PAGE, open=True, always=True)
    for path in ("/", "/page/page.js", "/page/page.css", "/page/icon.svg")
)
"""Its files. They are no part of the description of the server's API."""
