"""Reading the models, vocabularies and options of SentencePiece and Marian without their libraries.

    *.spm            a SentencePiece model: a Protocol Buffers message
    *.yml            Marian's vocabulary, `piece: id` per line, or its options, one per line

Only these flat forms of YAML are read.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dragoman.errors import InputError
from dragoman.files.reading import read_file

END = "</s>"
LARGEST = 1 << 26
"""Maximum size of a vocabulary in bytes; the largest published ones have 16 million."""
LONGEST_NUMBER = 10
"""Maximum size of a 64-bit Protocol Buffers number in bytes."""


def find_vocabularies(folder: Path) -> tuple[Path, Path] | None:
    """Return Marian's vocabulary files of source and target; None if there are none.

    The decoding options name the files; without them there must be only one. Raises InputError if
    one is missing, or if there are several and the options do not tell which is which.
    """
    options = read_decoding(folder)
    listed = options.get("vocabs", [])
    if not isinstance(listed, list):
        raise InputError(f"{folder}: write the vocabs of decoder.yml as a list, `- NAME` a line.")
    if named := [folder / Path(str(name)).name for name in listed]:
        if missing := [path for path in named if not path.is_file()]:
            raise InputError(f"{folder} lacks {missing[0].name}, which its decoder.yml names.")
        return named[0], named[-1]
    found = sorted(folder.glob("*vocab*.yml")) or sorted(folder.glob("*vocab*.spm"))
    if len(found) > 1:
        raise InputError(
            f"{folder} has several vocabularies, {', '.join(path.name for path in found)}; name "
            "those of source and target as the list vocabs in decoder.yml."
        )
    return (found[0], found[0]) if found else None


def read_decoding(folder: Path) -> dict[str, Any]:
    """Read Marian's decoding options, if any, from `MODEL.npz.decoder.yml` or a similar file.

    Those of the existing model are preferred to those of others that training has left behind.
    """
    path = _decoding_file(folder)
    return {} if path is None else read_options(read_text(path))


def _decoding_file(folder: Path) -> Path | None:
    models = [f"{path.name}.decoder.yml" for path in folder.glob("*.npz")]
    files = sorted(folder.glob("*decoder.yml"), key=lambda path: (path.name not in models, path))
    return files[0] if files else None


def marian_files(folder: Path) -> list[str]:
    """Return the names of the files, apart from weights, that are read from Marian's own folder."""
    found = [_decoding_file(folder), *(find_vocabularies(folder) or ())]
    return [path.name for path in found if path]


def read_text(path: Path) -> str:
    """Read a small file; bytes that are not UTF-8 become U+FFFD."""
    return read_file(path, LARGEST).decode("utf-8", "replace")


def read_options(text: str) -> dict[str, Any]:
    """Read Marian's options, one per line: a flag, number or text, or a list on the next lines."""
    options, key = dict[str, Any](), ""
    for line in text.rstrip("\0").splitlines():
        if item := re.fullmatch(r"\s*- (.*)", line):
            if isinstance(options.get(key), list):
                options[key].append(_value(item[1]))
        elif pair := re.fullmatch(r"([\w-]+):(.*)", line):
            key = pair[1]
            options[key] = _value(pair[2]) if pair[2].strip() else []
    return options


def _value(text: str) -> Any:  # noqa: ANN401 -- a scalar
    text = text.strip()
    if text in ("true", "false", "[]"):
        return {"true": True, "false": False, "[]": []}[text]
    if re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    return text[1:-1] if text[:1] in ("'", '"') else text


def read_vocabulary(path: Path) -> dict[str, int]:
    """Read the ids of pieces from a SentencePiece model or from Marian's own file.

    In the latter, a line is `piece: id`, with the piece quoted if YAML requires it. Raises
    InputError for another form.
    """
    if path.suffix == ".spm":
        try:
            message = read_file(path, LARGEST)
            found = [dict(fields(value)) for key, value in fields(message) if key == 1]
            return {piece[1].decode(): id_ for id_, piece in enumerate(found)}
        except (ValueError, LookupError) as error:
            raise InputError(f"{path} is damaged: {error}; download it again.") from error
    vocabulary = dict[str, int]()
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        pair = re.fullmatch(r"(.+): *(\d{1,9})\s*", line)
        if pair is None and line.strip():
            raise InputError(f"{path}, line {number}: {line[:40]!r} is not TOKEN: ID.")
        if pair is not None:
            vocabulary[_token(pair[1])] = int(pair[2])
    return vocabulary


def _token(text: str) -> str:
    """Unquote a YAML scalar: '' in single quotes, backslash escapes in double quotes."""
    if text[:1] == "'" == text[-1:]:
        return text[1:-1].replace("''", "'")
    if text[:1] != '"' or text[-1:] != '"':
        return text
    escapes = {"n": "\n", "t": "\t", "r": "\r", "e": "\x1b", "0": "\0", "_": "\xa0", "N": "\x85"}

    def one(found: re.Match[str]) -> str:
        code = found[1] or found[2] or found[3]
        return chr(int(code, 16)) if code else escapes.get(found[4], found[4])

    pattern = r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U(000[0-9A-Fa-f]{5})|(.))"
    return re.sub(pattern, one, text[1:-1])


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and bytes of each field of a message; numbers are not decoded.

    Raises ValueError or IndexError if it is not a message.
    """
    place = 0
    while place < len(message):
        key, place = _number(message, place)
        match key & 7:
            case 0:
                _, end = _number(message, place)
            case 1:
                end = place + 8
            case 2:
                size, place = _number(message, place)
                end = place + size
            case 5:
                end = place + 4
            case kind:
                raise ValueError(f"a field of kind {kind}")
        if end > len(message):
            raise ValueError("it ends too early")
        yield key >> 3, message[place:end]
        place = end


def number_in(field: bytes) -> int:
    """Return the value of a numeric field."""
    return _number(field, 0)[0]


def _number(message: bytes, place: int) -> tuple[int, int]:
    """Return a number of seven bits per byte, and the place after it."""
    found = shift = 0
    for byte in message[place : place + LONGEST_NUMBER]:
        found |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return found, place
    raise ValueError("a number without an end")
