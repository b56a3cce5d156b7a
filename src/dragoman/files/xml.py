"""XML with positions: its elements, and where each of them begins and ends.

The standard library's parser reads a document, and only the texts in it are rewritten, so that it
stays unchanged except for its translations. Entity declarations are refused, because an entity can
be arbitrarily large or another file; references to other files are not followed.
"""

import html
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from xml.parsers import expat

from dragoman.errors import InputError
from dragoman.files.reading import LONGEST_LINE

DEEPEST = 200
"""Maximum depth of nested elements."""
MOST_INSIDE = 1 << 17
"""Maximum number of elements inside a wanted one."""
CHUNK = 1 << 16
"""Number of bytes that are parsed at a time."""

_DECLARED = re.compile(rb"(?:\xef\xbb\xbf)?<\?xml[^>]*?\sencoding\s*=\s*[\"']([\w.:-]+)")
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})


@dataclass(frozen=True, slots=True)
class Text:
    """Text between two tags."""

    value: str
    is_cdata: bool


@dataclass(slots=True, eq=False)
class Element:
    """An element, with the places of its tags as offsets in the text."""

    name: str
    """The name with its namespace prefix; "" for a comment or an instruction."""
    attributes: dict[str, str]
    parent: "Element | None"
    start: int
    content_start: int = 0
    content_end: int = 0
    end: int = 0
    children: list["Element | Text"] = field(default_factory=list)
    """Its elements and texts; empty for an element around the wanted ones."""
    wanted: bool = False
    """Whether it has one of the wanted names."""
    holds: bool = False
    """Whether it contains a wanted element."""

    @property
    def local(self) -> str:
        """The name without the prefix."""
        return self.name[self.name.rfind(":") + 1 :]

    @property
    def prefix(self) -> str:
        """The prefix of the name, with its colon."""
        return self.name[: -len(self.local)]

    @property
    def around(self) -> Iterator["Element"]:
        """The elements that it is in; the innermost first."""
        element = self.parent
        while element is not None:
            yield element
            element = element.parent

    @property
    def elements(self) -> Iterator["Element"]:
        """The elements among the children."""
        return (child for child in self.children if isinstance(child, Element))

    @property
    def inside(self) -> Iterator["Element"]:
        """The outermost wanted elements inside it."""
        for child in self.elements:
            if child.wanted:
                yield child
            elif child.holds:
                yield from child.inside

    def plain(self, codes: Collection[str]) -> str:
        """Return all text inside, without that of elements that are codes of another file, and
        without text that Trados has marked as deleted.
        """
        return "".join(
            child.value if isinstance(child, Text) else child.plain(codes)
            for child in self.children
            if isinstance(child, Text)
            or not (child.local in codes or child.attributes.get("mtype", "").endswith("-deleted"))
        )

    @property
    def text(self) -> str:
        """All text inside."""
        return "".join(c.value if isinstance(c, Text) else c.text for c in self.children)

    def child(self, *names: str) -> "Element | None":
        """Return the first child with one of these local names."""
        return next((child for child in self.elements if child.local in names), None)

    def inherited(self, attribute: str) -> str | None:
        """Return the value of an attribute here or at the nearest ancestor that has it."""
        found = (e.attributes[attribute] for e in (self, *self.around) if attribute in e.attributes)
        return next(found, None)


def declared_encoding(data: bytes) -> str:
    """Return the encoding that a file declares in its first line; "" if none."""
    found = _DECLARED.match(data)
    return found[1].decode() if found else ""


def allowed_in_xml(text: str) -> str:
    """Return the text without the characters that XML does not allow."""
    return _NO_XML.sub("", text)


def escape_xml(text: str) -> str:
    """Return the text as written between tags."""
    return allowed_in_xml(text).translate(_ESCAPES)


def find_elements(text: str, names: Collection[str], file: str) -> Iterator[Element]:
    """Yield the outermost elements with one of these local names, in order.

    Raises InputError, with the file and the line, if the text is not well-formed, declares entities
    or is nested too deeply.
    """
    data = text.encode()
    scanner = _Scanner(names, file, None if text.isascii() else data)
    for start in range(0, len(data), CHUNK):
        yield from scanner.feed(data[start : start + CHUNK])
    yield from scanner.close()


def cut_elements(
    chunks: Iterable[bytes], names: Collection[str], file: str
) -> Iterator[tuple[bytes, Element | None]]:
    """Yield the bytes of a file in pieces: each such element with the space before it, and what is
    between them, with None.

    The file is read lazily, in its own encoding; the joined pieces are the file. An element has at
    most `LONGEST_LINE` bytes.
    """
    scanner = _Scanner(names, file, None, most=LONGEST_LINE, encoding=None)
    held, base, place = b"", 0, 0  # the bytes from `base` on; those before `place` are yielded
    for chunk in chain(chunks, [b""]):
        elements = scanner.feed(chunk) if chunk else scanner.close()
        held += chunk
        for element in elements:
            before = held[place - base : element.start - base]
            between = before if b"\0" in before else before.rstrip()  # UTF-16 is not stripped
            yield between, None
            yield held[place - base + len(between) : element.end - base], element
            place = element.end
        end = scanner.begun if chunk else base + len(held)
        yield held[place - base : end - base], None
        held, base, place = held[end - base :], end, end


class _Scanner:
    """The parser's handlers and their state."""

    def __init__(
        self,
        names: Collection[str],
        file: str,
        data: bytes | None,
        *,
        most: int | None = None,
        encoding: str | None = "utf-8",
    ) -> None:
        self._names, self._file, self._data, self._most = names, file, data, most
        self._bytes = self._chars = self._fed = self._depth = self._inside = 0
        self._open: Element | None = None  # the innermost one
        self._wanted: Element | None = None  # the outermost one with one of the names
        self._begun: Element | None = None  # whose start tag was the last token
        self._ended: Element | None = None  # whose end tag was the last token
        self._words: list[str] = []  # of the text that was the last token
        self._is_cdata = False
        self._ready: list[Element] = []
        self._parser = parser = expat.ParserCreate(encoding)
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartCdataSectionHandler = partial(self._cdata, begins=True)
        parser.EndCdataSectionHandler = partial(self._cdata, begins=False)
        parser.DefaultHandler = self._other
        parser.EntityDeclHandler = self._refuse_entity
        parser.specified_attributes = True  # else each element has a copy of a long default

    def feed(self, chunk: bytes, *, last: bool = False) -> list[Element]:
        """Parse a chunk, and return the elements that are now complete."""
        self._ready = []
        self._fed += len(chunk)
        try:
            self._parser.Parse(chunk, last)
        except expat.ExpatError as error:
            raise self._error(f"is not well-formed XML: {expat.ErrorString(error.code)}") from error
        if self._fed - self._parser.CurrentByteIndex > LONGEST_LINE + CHUNK:
            raise self._error(f"has a tag or comment of more than {LONGEST_LINE:,} bytes")
        if self._wanted is not None and self._most and self._fed - self._wanted.start > self._most:
            raise self._error(f"has a {self._wanted.name} of more than {self._most:,} bytes")
        return self._ready

    def close(self) -> list[Element]:
        """Finish parsing, and return the remaining elements."""
        ready = self.feed(b"", last=True)
        self._place(self._fed)
        return ready

    @property
    def begun(self) -> int:
        """The start of the incomplete wanted element, or else of the last token."""
        return self._parser.CurrentByteIndex if self._wanted is None else self._wanted.start

    def _error(self, fault: str) -> InputError:
        line = self._parser.CurrentLineNumber
        return InputError(f"{self._file} {fault} (line {line}); repair it or save it anew.")

    def _place(self, place: int | None = None) -> int:
        """Record the start of the current token, where the last one ended, and return it."""
        place = self._parser.CurrentByteIndex if place is None else place
        if self._data is not None:
            self._chars += len(self._data[self._bytes : place].decode())
            self._bytes, place = place, self._chars
        if self._begun is not None:
            self._begun.content_start = place
        if self._ended is not None:
            self._ended.end = place
            if self._ended is self._wanted:
                self._ready.append(self._ended)
                self._wanted = None
        if self._words and self._open is not None:
            self._open.children.append(Text("".join(self._words), self._is_cdata))
        self._begun, self._ended, self._words = None, None, []
        return place

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        element = Element(name, attributes, self._open, self._place())
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._error(f"has more than {DEEPEST} elements inside each other")
        if self._wanted is not None and self._open is not None:
            self._open.children.append(element)
            self._inside += 1
            if self._inside > MOST_INSIDE:
                raise self._error(
                    f"has a {self._wanted.name} of more than {MOST_INSIDE:,} elements"
                )
        if element.local in self._names:
            element.wanted = True
            if self._wanted is None:
                self._wanted, self._inside = element, 0
            around = self._open
            while around is not None and not around.holds:
                around.holds = True
                around = around.parent
        self._open = self._begun = element

    def _end(self, _: str) -> None:
        element = self._open
        assert element is not None  # noqa: S101 -- the parser has checked the nesting
        element.content_end = self._place()
        self._open, self._ended = element.parent, element
        self._depth -= 1

    def _text(self, words: str) -> None:
        if not self._words:
            self._place()
        if self._wanted is not None:
            self._words.append(words)

    def _cdata(self, *, begins: bool) -> None:
        self._place()
        self._is_cdata = begins

    def _other(self, token: str) -> None:
        """Handle a comment, an instruction, or a reference to an undeclared entity."""
        if token.startswith("&") and token.endswith(";"):
            self._text(html.unescape(token))
            return
        place = self._place()
        if self._wanted is not None and self._open is not None:
            aside = Element("", {}, self._open, place, content_end=place)
            self._open.children.append(aside)
            self._begun = self._ended = aside

    def _refuse_entity(self, *_: object) -> None:
        raise self._error("declares entities, which are not read")
