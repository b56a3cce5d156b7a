"""The server's web page, which translates as you type.

    index.html, page.css, icon.svg, labels.json (all texts of the page, in English and Chinese)
    server.js   requests, and their errors in words    places.js  positions of tokens in a text
    models.js   models, languages, pairs               result.js  a translation, word by word
    files.js    documents, and terms                   inside.js  what the model did, as `inspect`
    main.js     the page itself

The scripts are plain JavaScript, appended to the parts that it shares with the page of
`dragoman inspect` (`lens.page`). The page needs nothing but this server.
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
"""Scripts that both pages share."""
SCRIPTS = (
    *("server.js", "places.js", "models.js", "files.js", "result.js"),
    *("inside.js", "main.js"),
)
"""Further scripts of this page, in the order in which they are joined."""

HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-cache",
}
"""They allow the page to contact only this server, and forbid other pages to embed it."""

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
"""The files of the page. They are not part of the description of the API."""
