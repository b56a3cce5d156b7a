"""The formats of documents, by the suffix of a file's name or as specified."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from pathlib import Path, PurePath

from dragoman.documents.document import Document
from dragoman.errors import InputError, did_you_mean, how_to_install
from dragoman.files.documents import CONVERTED, kind_of_name
from dragoman.files.reading import BINARIES
from dragoman.languages import LangCodes

LARGEST = 1 << 26
"""Maximum size of a document, in bytes."""


@dataclass(frozen=True, slots=True)
class Format:
    """How a kind of document is recognized and read."""

    suffixes: tuple[str, ...]
    """Suffixes of file names."""
    module: str
    """Module of this package, imported on demand for its optional libraries. Its `read` reads the
    bytes of a file, given the file's name for messages."""
    has_languages: bool = False
    """Whether `read` also takes the codes of the source and target languages."""
    has_columns: bool = False
    """Whether `read` also takes names of columns or keys, last."""


FORMATS = {
    "text": Format(("txt", "text"), "lines"),
    "docx": Format(("docx", "docm", "dotx", "dotm"), "office"),
    "pptx": Format(("pptx", "pptm", "ppsx", "ppsm", "potx"), "office"),
    "xlsx": Format(("xlsx", "xlsm", "xltx"), "office"),
    "odt": Format(("odt", "ott", "odm", "fodt"), "opendocument"),
    "odp": Format(("odp", "otp", "odg", "otg", "fodp", "fodg"), "opendocument"),
    "ods": Format(("ods", "ots", "fods"), "opendocument"),
    "po": Format(("po", "pot"), "catalogue"),
    "xliff": Format(("xlf", "xliff", "sdlxliff", "mqxliff", "mxliff"), "xliff", has_languages=True),
    "tmx": Format(("tmx",), "tmx", has_languages=True),
    "epub": Format(("epub",), "epub", has_languages=True),
    "markdown": Format(("md", "markdown", "mdx", "mkd", "mdown"), "markdown"),
    "subtitles": Format(("srt", "vtt"), "subtitles"),
    "json": Format(("json", "jsonl", "arb"), "json", has_languages=True, has_columns=True),
    "yaml": Format(("yaml", "yml"), "yaml", has_columns=True),
    "csv": Format(("csv", "tsv"), "tables", has_columns=True),
    "html": Format(("html", "htm", "xhtml"), "frontmatter", has_languages=True),
}

PACKED = {"docx", "pptx", "xlsx", "odt", "odp", "ods", "epub"}
"""Formats that are, or may be, archives; the difference is detected when they are read."""

REFUSED = {
    "pdf": "a PDF, which has places of letters instead of a text; translate the docx, odt or html "
    "that it was made from",
    "doc": "a document of an old format; save it as docx",
    "xls": "a spreadsheet of an old format; save it as xlsx",
    "ppt": "a presentation of an old format; save it as pptx",
    "rtf": "a document in RTF; save it as docx or odt",
}
"""Formats that cannot be translated, by suffix, and what to do."""


def format_of_name(name: str) -> str | None:
    """Return the format of a document by its suffix; None for another file.

    Raises InputError for a format that cannot be translated, with what to do.
    """
    suffix = PurePath(name).suffix.lower().removeprefix(".")
    if suffix in REFUSED:
        raise InputError(f"{name} is {REFUSED[suffix]}.")
    return next((known for known, each in FORMATS.items() if suffix in each.suffixes), None)


def read_document(
    data: bytes,
    name: str,
    known: str | None = None,
    *,
    columns: Sequence[str] = (),
    languages: LangCodes = (None, None),
) -> Document:
    """Read a document in a known format, or in the one that its name indicates.

    `columns` selects columns of a table, by name or number, or keys of JSON or YAML. `languages`,
    source and target, are for a memory (TMX), which may have several, and for formats that name
    their language: XLIFF, HTML and EPUB pages, ARB. Raises InputError for an unknown format, one
    whose library is not installed, and a file that is too large or damaged.
    """
    chosen = known or format_of_name(name)
    if chosen is None and (kind := kind_of_name(Path(name))) in CONVERTED:
        raise InputError(f"{name} is {kind}, which is not translated; {CONVERTED[kind]} first.")
    if chosen not in FORMATS:
        what = (
            f"'{chosen}' is not a format"
            if chosen
            else f"The name of {name} does not tell the format"
        )
        near = did_you_mean(chosen or "", FORMATS)
        give = f"{near} Give" if near else "; give"
        raise InputError(f"{what}{give} one of: {', '.join(FORMATS)}.")
    if len(data) > LARGEST:
        raise InputError(f"{name} has more than {LARGEST:,} bytes; cut it into parts.")
    if chosen not in PACKED:
        _reject_others(data, name, chosen)
    found = FORMATS[chosen]
    if columns and not found.has_columns:
        raise InputError(f"{name} has no columns to choose from; leave out --column.")
    try:
        read: Callable[..., Document] = import_module(f"dragoman.documents.{found.module}").read
        more = [languages] * found.has_languages, [columns] * found.has_columns
        return read(data, name, *chain(*more))
    except ModuleNotFoundError as error:
        raise InputError(
            f"The format {chosen} needs {error.name}; {how_to_install('documents')}."
        ) from error


def _reject_others(data: bytes, name: str, known: str) -> None:
    """Raise InputError if a file in a plain-text format begins like one of another kind."""
    if hasattr(data, "encode"):  # a str, whatever the annotation says
        raise TypeError(f"{name} is given as a str; give its bytes, as path.read_bytes() has them.")
    kind = next((kind for start, (kind, _) in BINARIES.items() if data.startswith(start)), None)
    if kind is not None:
        raise InputError(f"{name} is {kind}, not {known}; give it the name of what it is.")
