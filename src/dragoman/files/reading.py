r"""Reading the lines of a text file, plain or compressed; errors name the file and the line.

Only "\n" ends a line: the other characters at which `str.splitlines` splits (U+2028, U+0085, form
feeds) occur inside real sentences, and two files of pairs that are split differently are no longer
parallel. A "\r" before the "\n" and a byte order mark at the start are dropped.

A line has at most 16 MiB (`LONGEST_LINE`), or the number of bytes in the environment variable
`DRAGOMAN_MAX_LINE_BYTES`; no more of a file is ever in memory, however it is compressed.
"""

import bz2
import codecs
import gzip
import io
import json
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import msgspec
import zstandard

from dragoman.errors import InputError
from dragoman.files.encodings import not_utf8

T = TypeVar("T")

LONGEST_LINE = 1 << 24
"""Default maximum bytes of a line, including its end."""

LARGEST_FILE = 1 << 28
"""Default maximum bytes of a file that is read at once."""

LARGEST_JSON = 1 << 26
"""Maximum bytes of a file with a JSON object: twice the largest published vocabulary. In memory an
object takes up to 25 times the bytes of its file."""

POINTER = b"version https://git-lfs"
"""The beginning of a git-lfs pointer file."""

FIRST_LINES = 64
"""Number of lines that distinguish a file in another encoding from one with damaged lines: as many
as are read before the first answer. The encoding is another one if at least `FEWEST` of them are
not UTF-8, and more than the number of those that are UTF-8 but not ASCII."""
FEWEST = 3

_SAVE = "save it as text in UTF-8"
_CONVERT = "write it as JSON lines: datasets.Dataset.{}(OLD).to_json(NEW)"
_DECOMPRESS = "decompress it, or give it a name that ends in "
BINARIES = {
    b"PK\x03\x04": (
        "a document (docx, xlsx, odt) or another zip archive",
        f"{_SAVE}, a table as CSV or TSV, or unzip it",
    ),
    b"\xd0\xcf\x11\xe0": ("a document (doc, xls)", f"{_SAVE}, a table as CSV or TSV"),
    b"{\\rtf": ("a document (rtf)", _SAVE),
    b"%PDF-": ("a PDF", _SAVE),
    b"PAR1\x15": ("a table of Parquet", _CONVERT.format("from_parquet")),
    b"\xff\xff\xff\xff": ("a table of Arrow", _CONVERT.format("from_file")),
    b"\x1f\x8b": ("compressed", f"{_DECOMPRESS}.gz"),
    b"BZh91AY&SY": ("compressed", f"{_DECOMPRESS}.bz2"),
    b"\xfd7zXZ": ("compressed", f"{_DECOMPRESS}.xz"),
    b"(\xb5/\xfd": ("compressed", f"{_DECOMPRESS}.zst"),
}
"""Kinds of files by their first bytes, and what to do with them: a page of Parquet begins with a
field of type i32, which is no text."""


@contextmanager
def open_regular(path: Path) -> Iterator[io.BufferedReader]:
    """Open a regular file for reading.

    Opens without blocking, so that a named pipe or a device in an untrusted folder cannot hang the
    reader. Raises InputError for these, and for a file that is missing or unreadable.
    """
    try:
        with open(path, "rb", opener=_open_at_once) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise InputError(f"{path} is not a regular file; replace it with one.")
            yield stream
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path}.") from error
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from error


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # which Windows lacks


def read_file(path: Path, most: int = LARGEST_FILE) -> bytes:
    """Return the bytes of a regular file of at most `most` bytes.

    Raises InputError for a larger file, and as `open_regular` does.
    """
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > most:
            raise InputError(f"{path} is larger than {most:,} bytes, the most that is read of it.")
        return stream.read(size)


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file of a model folder.

    Raises InputError for anything else, for a git-lfs pointer, and as `read_file` does.
    """
    text = read_file(path, LARGEST_JSON)
    if text.startswith(POINTER):
        raise InputError(pointer(path))
    return parse_json(path, text, dict[str, Any], "restore it, or download it again.")


def parse_json(
    name: object, text: bytes, kind: type[T], advice: str = "restore it, or give another run."
) -> T:
    """Parse a JSON value of a type that msgspec knows. Raises InputError if it is damaged."""
    try:
        return msgspec.convert(json.loads(text), kind)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise InputError(f"{name} is damaged ({error}); {advice}") from error


def is_pointer(path: Path) -> bool:
    """Return whether a file is a git-lfs pointer."""
    with open_regular(path) as stream:
        return stream.read(len(POINTER)) == POINTER


def pointer(path: Path) -> str:
    """Say what to do with a git-lfs pointer."""
    return (
        f"{path} is a pointer of git-lfs in place of the file; fetch it with git lfs pull in "
        f"{path.parent}."
    )


def read_own(path: Path, most: int = LARGEST_FILE) -> bytes:
    """Return the bytes of a file that belongs to its folder, to copy it elsewhere.

    A link may point to a file in the same folder, or to the `blobs` of the huggingface_hub cache if
    the folder is a snapshot there or a part of one. Raises InputError for any other link: through
    it, any file of this machine could get into a model that is then published. Raises InputError as
    `read_file` does.
    """
    folder, target = path.parent.resolve(), path.resolve()
    cache = next((each.parent for each in folder.parents[:2] if each.name == "snapshots"), None)
    if target.parent != folder and (cache is None or target.parent != cache / "blobs"):
        raise InputError(f"{path} is a link out of its folder; replace it with the file.")
    return read_file(target, most)


def read_lines(path: Path, *, strict: bool = True) -> Iterator[str]:
    """Yield the lines of a file, without their ends.

    `COMPRESSED` files are decompressed while reading. Raises InputError for a file that is missing,
    empty, damaged or not UTF-8, or has too long a line; `strict` as in `decode_lines`.
    """
    return (line.removesuffix("\n") for line in read_text(path, strict=strict))


def read_text(path: Path, *, strict: bool = True) -> Iterator[str]:
    """Yield the lines of a file with their ends, each a single line feed.

    Raises InputError as `read_lines` does.
    """
    empty = True
    with open_bytes(path) as stream:
        for line in _decoded(stream, str(path), strict=strict):
            empty = False
            yield line
    if empty:
        more = ", or it is a pipe that has been read already; give a file" * path.is_fifo()
        raise InputError(f"{path} is empty{more}.")


def decode_lines(stream: BinaryIO, name: str, *, strict: bool = True) -> Iterator[str]:
    """Yield the lines, if any, of an open file or standard input, which messages call `name`.

    Unless `strict`, a line that is not UTF-8 is returned with a lone surrogate for each wrong byte.
    No tokenizer encodes these, so the line is flagged and its neighbours are answered. A file in
    another encoding is still rejected, by `FIRST_LINES` or because no line is UTF-8.
    """
    return (line.removesuffix("\n") for line in _decoded(stream, name, strict=strict))


def _decoded(stream: BinaryIO, name: str, *, strict: bool = True) -> Iterator[str]:
    """Yield each line with its end, which the last one may lack."""
    first: InputError | None = None
    wrong = right = not_ascii = in_utf8 = 0
    for number, raw in enumerate(_raw_lines(stream, name), start=1):
        line = raw.removesuffix(b"\n").removesuffix(b"\r")
        if number == 1:
            _reject_other_kinds(line, name)
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            text = line.decode("utf-8")
            right += bool(text)
            not_ascii += not text.isascii()
            in_utf8 = in_utf8 or number * (not text.isascii())
        except UnicodeDecodeError as error:
            first = first or not_utf8(f"{name} line {number}", line, error.start, in_utf8=in_utf8)
            wrong += 1
            if strict or (number <= FIRST_LINES and wrong >= FEWEST and wrong > not_ascii):
                raise first from None
            text = line.decode("utf-8", "surrogateescape")
        yield text + "\n" if raw.endswith(b"\n") else text
    if first is not None and not right:
        raise first


def _reject_other_kinds(start: bytes, name: str) -> None:
    """Raise InputError if the first line is of a document or a binary, or in UTF-16 or UTF-32."""
    for signature, (kind, how) in BINARIES.items():
        if start.startswith(signature):
            raise InputError(f"{name} is {kind}, not plain text; {how}.")
    if name.endswith((".bin", ".idx")) and min(start, default=9) < 9:
        raise InputError(
            f"{name} holds numbers, as fairseq-preprocess writes them, not plain text; give the "
            "lines of text that it was made of."
        )
    is_wide = start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE))
    if is_wide or start[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE} or 0 in start[:2]:
        is_marked, kind = is_wide or start[0] > 0x7F, "UTF-32" if is_wide else "UTF-16"
        order = "" if is_marked else "BE" if start[0] == 0 else "LE"  # a byte order mark tells
        raise InputError(
            f"{name} is {kind}; save it as UTF-8 in an editor, or convert it: "
            f"iconv -f {kind}{order} -t UTF-8 OLD > NEW."
        )


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading, and decompress it according to its suffix."""
    if not path.exists():
        raise InputError(f"There is no file {path}.")
    if path.is_dir():
        raise InputError(f"{path} is a directory, not a file.")
    try:
        decompressing = COMPRESSED.get(path.suffix)
        return cast("BinaryIO", decompressing(path)) if decompressing else path.open("rb")
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from error


def ending_of(path: Path) -> str:
    """Return the extension of a name in lower case, ignoring that of compression."""
    endings = [ending for ending in map(str.lower, path.suffixes) if ending not in COMPRESSED]
    return endings[-1] if endings else ""


def reject_pipe(path: Path) -> None:
    """Raise InputError for a pipe, which can be read only once."""
    if path.is_fifo():
        raise InputError(f"{path} is a pipe, and a run may have to read it again; give a file.")


def longest_line() -> int:
    """Return the maximum bytes of a line with its end. Raises InputError for an invalid setting."""
    given = os.environ.get("DRAGOMAN_MAX_LINE_BYTES", str(LONGEST_LINE))
    if not given.isdecimal() or int(given) < 1:
        raise InputError(
            f"DRAGOMAN_MAX_LINE_BYTES is {given!r}; it must be an integer, at least 1."
        )
    return int(given)


def _raw_lines(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the lines as bytes; decompression errors become InputError."""
    most, number = longest_line(), 0
    with _damage_told(name):
        while raw := stream.readline(most + 1):
            number += 1
            if len(raw) > most:
                raise InputError(
                    f"{name} line {number} is longer than {most:,} bytes; break it into lines, or "
                    "raise the limit with the environment variable DRAGOMAN_MAX_LINE_BYTES."
                )
            yield raw


def read_chunks(path: Path) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file. Raises InputError if it is missing or damaged."""
    with open_bytes(path) as stream, _damage_told(str(path)):
        while chunk := stream.read(1 << 16):
            yield chunk


@contextmanager
def _damage_told(name: str) -> Iterator[None]:
    """Raise InputError if a file cannot be read or decompressed."""
    try:
        yield
    except EOFError:
        raise InputError(
            f"{name} is cut short: the compressed file ends before its data does; copy it again."
        ) from None
    except (zlib.error, lzma.LZMAError, zstandard.ZstdError, OSError) as error:
        why = getattr(error, "strerror", None)  # not set by gzip and bz2
        told = "is damaged or not compressed as its name says" if why is None else "cannot be read"
        raise InputError(f"{name} {told}: {why or error}.") from error


class _ZstdFile(io.RawIOBase):
    """A Zstandard file as one stream of bytes, across any number of frames.

    The library's own reader accepts a truncated file as complete; this one raises EOFError, as gzip
    and lzma do.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._started = False
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._ready:
            packed = self._frame.unused_data or self._file.read(256)  # may decompress to 8 MiB
            if not packed:
                if self._started and not self._frame.eof:
                    raise EOFError
                return 0
            if self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            self._started = True
            self._ready = memoryview(self._frame.decompress(packed))
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


COMPRESSED: Mapping[str, Callable[[Path], io.BufferedIOBase]] = {
    ".bz2": bz2.BZ2File,
    ".gz": gzip.GzipFile,
    ".xz": lzma.LZMAFile,
    ".zst": lambda path: io.BufferedReader(_ZstdFile(path), 1 << 17),
}
"""Suffixes of compressed files, and the functions that open them for reading."""
