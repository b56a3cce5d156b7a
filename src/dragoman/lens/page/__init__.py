"""An inspection as a single HTML file that a browser can open anywhere, without a network.

    template.html, page.css, labels.json (all text of the page, in English and Chinese)
    base.js     words, elements, arrow keys       frame.js     switches for colours and language
    heat.js     numbers as colours                sentence.js  which token attends to which
    heads.js    the heads of every layer          open_head.js one head, large
    search.js   step by step: alternatives        beam.js      the tree of beam search
    encoder.js  labels, tags, attributions        main.js      the page itself

The scripts are plain JavaScript without a library. They are joined in the order of `SCRIPTS` and
can use each other's functions. Other pages combine the same parts with their own: the server's
(`serve.page`) and the one that computes (docs/live).
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.errors import InputError
from dragoman.files.writing import replacing
from dragoman.lens.inspection import Inspection
from dragoman.version import __version__

HERE = files(__package__)

MAX_WEIGHTS = 4_000_000
"""Maximum attention weights of a page; it then has about 12 MB and opens in seconds."""

ONE = 10_000
"""The number in the page for a weight of 1: four digits, and no decimal point."""

SCRIPTS = (
    *("base.js", "frame.js", "heat.js", "sentence.js", "heads.js", "open_head.js"),
    *("search.js", "beam.js", "encoder.js", "main.js"),
)
"""The scripts in the order in which they are joined."""

_HARMLESS = str.maketrans(
    {
        "<": r"\u003c",  # no "</script>" and no "<!--" inside the data
        ">": r"\u003e",
        "&": r"\u0026",
        "\u2028": r"\u2028",  # ends a line in scripts, though not in JSON
        "\u2029": r"\u2029",
    }
)


def write_page(inspection: Inspection, path: Path) -> Path:
    """Write an inspection as a self-contained HTML page and return its path.

    Missing folders are created, and the file is written atomically. The page sets a content
    security policy that allows its own script and style, by their hashes, and nothing else: no
    connections, and no code injected by a token.

    Raises InputError if there are more than `MAX_WEIGHTS` weights or the path cannot be written,
    and DragomanError if writing fails, for example on a full disk.
    """
    count = sum(each.weights_LHTS.size for each in inspection.attention)
    if count > MAX_WEIGHTS:
        message = (
            f"the page {path} would hold {count:,} attention weights, and {MAX_WEIGHTS:,} is the "
            "most that a browser shows well; take a shorter text, or fewer layers or heads"
        )
        raise InputError(message)
    text = page(inspection)
    with replacing(path, "page") as part:
        part.write_text(text, encoding="utf-8", newline="\n")
    return path


def page(inspection: Inspection) -> str:
    """Return the page's HTML."""
    style = _part("page.css")
    script = join_scripts(map(_part, SCRIPTS))
    parts = {
        "STYLE_HASH": _hash(style),
        "SCRIPT_HASH": _hash(script),
        "STYLE": style,
        "LABELS": as_json(json.loads(_part("labels.json"))),
        "DATA": as_json({**_in_whole_numbers(inspection), "one": ONE, "dragoman": __version__}),
        "SCRIPT": script,
    }
    return fill(_part("template.html"), parts)


def parts_with(folder: Traversable, shared: Iterable[str], own: Iterable[str]) -> dict[str, str]:
    """Return the style, words and script of another page, from `shared` scripts and its own.

    Its folder contains its scripts, a page.css, and a labels.json, whose words override the shared
    ones.
    """
    words, own_words = (json.loads(_part("labels.json", each)) for each in (HERE, folder))
    return {
        "STYLE": "\n".join(_part("page.css", each) for each in (HERE, folder)),
        "LABELS": as_json({each: words[each] | own_words[each] for each in own_words}),
        "SCRIPT": join_scripts((*map(_part, shared), *(_part(name, folder) for name in own))),
    }


def fill(template: str, parts: Mapping[str, str]) -> str:
    """Return a template with each `%%NAME%%` replaced; the replacements are not searched."""
    pieces = template.split("%%")  # text and names in turn
    return "".join(parts[piece] if n % 2 else piece for n, piece in enumerate(pieces))


def join_scripts(parts: Iterable[str]) -> str:
    """Join scripts into one whose names are invisible to other scripts."""
    return "(() => {\n'use strict';\n" + "\n".join(parts) + "\n})();\n"


def as_json(value: Any) -> str:  # noqa: ANN401 -- whatever JSON can hold
    """Return JSON that is safe inside a script element, whatever texts it contains."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_HARMLESS)


def _in_whole_numbers(inspection: Inspection) -> dict[str, Any]:
    """Return its JSON with weights as integers, `ONE` for 1: half the size of decimals."""
    found = inspection.to_dict()
    for plain, each in zip(found["attention"], inspection.attention, strict=True):
        plain["weights"] = np.rint(each.weights_LHTS * ONE).astype(np.int64).tolist()
    return found


def _part(name: str, folder: Traversable = HERE) -> str:
    return folder.joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash by which a content security policy identifies a script or a style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
