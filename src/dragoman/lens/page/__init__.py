"""An inspection as one HTML file that a browser opens from anywhere, without a network.

    template.html, page.css, labels.json (every word of the page, in English and Chinese)
    base.js     words, elements, arrow keys       frame.js     switches of colours and language
    heat.js     numbers as colours                sentence.js  who looks at whom
    heads.js    the heads of every layer          open_head.js one head, large
    search.js   step by step: alternatives        beam.js      the tree of beam search
    encoder.js  labels, tags, what mattered       main.js      the page itself

The scripts are plain JavaScript without a library. They are joined in the order of `SCRIPTS`
and see each other's functions. Other pages are made from the same parts and their own: that of a
server (`serve.page`) and the one that computes (docs/live).
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
"""The most attention weights of one page; it is then about 12 MB large and opens in seconds."""

ONE = 10_000
"""What the page writes for a weight of 1: four digits, and no decimal point."""

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
    """Writes an inspection as one HTML page, which needs no other file.

    Missing folders of the path are made; the file appears whole or not at all. The page states a
    content security policy that allows its own script and style, by their hashes, and nothing else:
    neither a connection nor anything that a token could say. Returns the path.

    Raises InputError when the weights are more than `MAX_WEIGHTS` or the path cannot be written,
    DragomanError when writing fails, for example on a full disk.
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
    """The page's HTML."""
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
    """The style, words and script of another page: `shared` scripts of this one, and its own.

    Its folder holds its scripts, a page.css, and a labels.json, whose words come before the shared.
    """
    words, own_words = (json.loads(_part("labels.json", each)) for each in (HERE, folder))
    return {
        "STYLE": "\n".join(_part("page.css", each) for each in (HERE, folder)),
        "LABELS": as_json({each: words[each] | own_words[each] for each in own_words}),
        "SCRIPT": join_scripts((*map(_part, shared), *(_part(name, folder) for name in own))),
    }


def fill(template: str, parts: Mapping[str, str]) -> str:
    """A template with each `%%NAME%%` replaced; what is put in is not searched."""
    pieces = template.split("%%")  # text and names in turn
    return "".join(parts[piece] if n % 2 else piece for n, piece in enumerate(pieces))


def join_scripts(parts: Iterable[str]) -> str:
    """Scripts as one, whose names no other script sees."""
    return "(() => {\n'use strict';\n" + "\n".join(parts) + "\n})();\n"


def as_json(value: Any) -> str:  # noqa: ANN401 -- whatever JSON can hold
    """JSON that is safe inside a script element, whatever texts it holds."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_HARMLESS)


def _in_whole_numbers(inspection: Inspection) -> dict[str, Any]:
    """Its JSON, with weights that are `ONE` for 1: half the size of decimal fractions."""
    found = inspection.to_dict()
    for plain, each in zip(found["attention"], inspection.attention, strict=True):
        plain["weights"] = np.rint(each.weights_LHTS * ONE).astype(np.int64).tolist()
    return found


def _part(name: str, folder: Traversable = HERE) -> str:
    return folder.joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What a content security policy calls a script or a style by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
