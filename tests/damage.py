"""Damage to a file: bytes changed by a disk or a copy, and values changed by hand."""

import copy
import io
import json
from random import Random
from typing import Any

import numpy as np

HOSTILE: tuple[object, ...] = (
    *(None, True, False, "", "\n", "\ud800", "nan", "../../etc/hostname", "/dev/zero"),
    *(0, 1, 2, 3, 7, -1, 255, 10**5, 10**8, 2**31, 2**63, 2**64, 10**30, -(10**12)),
    *(0.5, -0.0, 1e-300, 1e308, float("inf"), float("nan")),
    *([], {}, [[]], [0], [1, 2], ["a"], {"kind": "rotary"}, {"kind": []}, {"a": {"b": {}}}),
)


def damage(content: bytes, draw: Random) -> bytes:
    """Return the content with changed bytes or, if the format is known, changed values.

    Known formats are JSON, safetensors and NumPy's archives.
    """
    kind = draw.random()
    if kind < 0.4:
        return change_bytes(content, draw)
    if content[:1] == b"{":
        text = change_json(content, draw) if kind < 0.95 else _nest(draw)
        return text.encode(errors="surrogatepass")
    if content[:2] == b"PK":
        return _change_arrays(content, draw)
    if content[8:9] != b"{":
        return b"" if kind < 0.45 else change_bytes(content, draw)
    length = int.from_bytes(content[:8], "little")
    header = change_json(content[8 : 8 + length], draw).encode(errors="surrogatepass")
    if kind < 0.5:
        length = draw.choice([0, 1, 2**20, 2**32, 2**63, 2**64 - 1])
    else:
        length = len(header)
    return length.to_bytes(8, "little") + header + content[8 + length :]


def change_bytes(content: bytes, draw: Random) -> bytes:
    """Flip a bit, or remove, repeat, overwrite or insert a few bytes."""
    start = draw.randrange(len(content))
    end = min(len(content), start + draw.choice([1, 2, 8, 100, 10**4, 10**9]))
    noise = draw.randbytes(draw.choice([1, 2, 8, 100]))
    match draw.randrange(5):
        case 0:
            flipped = bytes([content[start] ^ 1 << draw.randrange(8)])
            return content[:start] + flipped + content[start + 1 :]
        case 1:
            return content[:start] + content[end:]
        case 2:
            return content[:end] + content[start:]
        case 3:
            return content[:start] + noise + content[start + len(noise) :]
        case _:
            return content[:start] + noise + content[start:]


def _change_arrays(content: bytes, draw: Random) -> bytes:
    """Change the shape or type of an array, compress or pickle it, or leave it out."""
    with np.load(io.BytesIO(content)) as stored:
        arrays = dict(stored)
    name = draw.choice(sorted(arrays))
    array = arrays.pop(name)
    changes = (
        dict,
        lambda: {draw.choice([name + "2", "../x", "a\nb"]): array},
        lambda: {name: array.reshape(-1)[: draw.choice([0, 1, 2])]},
        lambda: {name: array.reshape(-1, 1)},
        lambda: {name: np.float32(1.0)},
        lambda: {name: array.astype(draw.choice(["i4", "c16", "f2", "f8", "S1", "?", ">f4"]))},
        lambda: {name: np.array([{"a": 1}], dtype=object)},
        lambda: {name: np.full_like(array, np.inf if array.dtype.kind == "f" else 58)},
        lambda: {name: array, "special:model.yml": np.frombuffer(draw.randbytes(9), np.int8)},
    )
    file = io.BytesIO()
    write = draw.choice([np.savez, np.savez, np.savez_compressed])
    write(file, allow_pickle=True, **(arrays | draw.choice(changes)()))
    return file.getvalue()


def change_json(content: bytes, draw: Random) -> str:
    """Change one or two values anywhere in a document; of several lines, in the first one."""
    first, begin, more = content.partition(b"\n{")
    data = json.loads(first)
    for _ in range(draw.choice([1, 1, 2])):
        _change_value(data, draw)
    return json.dumps(data, ensure_ascii=draw.random() < 0.5) + (begin + more).decode()


def _change_value(data: Any, draw: Random) -> None:  # noqa: ANN401 -- any JSON value
    """Replace, remove, rename, copy, scale or wrap a value."""
    parent, key = draw.choice(_places(data) or [({"": 0}, "")])
    match draw.randrange(5):
        case 0:
            parent[key] = copy.deepcopy(draw.choice(HOSTILE))
        case 1:
            del parent[key]
        case 2 if isinstance(parent, dict):
            parent[draw.choice(["", key + "s", key[::-1], "format", "../x", "a\nb"])] = parent[key]
        case 3:
            elsewhere, other = draw.choice(_places(data) or [(parent, key)])
            parent[key] = copy.deepcopy(elsewhere[other])
        case _:
            value = parent[key]
            parent[key] = value * draw.choice([-1, 2, 1000]) if _is_number(value) else [value]


def _places(data: Any) -> list[tuple[Any, Any]]:  # noqa: ANN401 -- any JSON value
    """Return every container with each of its keys."""
    keys = data.keys() if isinstance(data, dict) else range(len(data))
    inner = [data[key] for key in keys if isinstance(data[key], dict | list)]
    return [*((data, key) for key in keys), *(place for value in inner for place in _places(value))]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _nest(draw: Random) -> str:
    """Return JSON nested deeper than any parser's stack, or only a little."""
    depth = draw.choice([100, 10**3, 10**4, 10**5])
    return draw.choice(["[", '{"model":', "[" * 9 + "{}"]) * depth
