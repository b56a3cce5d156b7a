"""HTML and XML, read without being rewritten: what is a tag, what is text, and where.

The scanner follows the web's rules for tags, quotes, comments and raw text, in linear time: broken
markup is read as browsers read it, and nothing fails.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from typing import Literal, NamedTuple

from dragoman.documents.characters import Encode, unescaped
from dragoman.documents.document import Asides, Document, Left, Segment, Segments
from dragoman.documents.lines import unwrapped
from dragoman.documents.templates import CODE, LINES, STATEMENT, code_at, inner, pieces_of, settled
from dragoman.languages import label_of
from dragoman.text.marked import Marked, Tag, paired

_WHITE = " \t\n\f\r"
_W = rf"[{_WHITE}]"
_NOT = rf"[^{_WHITE}/>"  # characters of names and values; to be closed
_QUOTED = r"\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)"
_VALUE = rf"{_W}*+={_W}*+({_QUOTED}|[^{_WHITE}>\"'][^{_WHITE}>]*+|(?=>))"
_REST = rf"{_NOT}]*+(?:[{_WHITE}/=]++|{_NOT}=]++(?:{_VALUE})?+)*+(?:>|\Z)"
_ASIDE = r"<!--(?:-?>|(?s:.*?)(?:--!?>|\Z))|<[!?][^>]*+(?:>|\Z)"
_SUBSET = r"<!DOCTYPE[^>\[]*+\[[^\]]*+(?:\]|\Z)[^>]*+(?:>|\Z)"
HTML = re.compile(
    rf"{LINES}|{CODE}|{_ASIDE}|</?([a-zA-Z]{_REST})|</[^a-zA-Z][^>]*+(?:>|\Z)", re.IGNORECASE
)
"""Tags, whose first group is not empty, comments and the like, and template code."""
XHTML = re.compile(
    rf"<!\[CDATA\[(?s:.*?)(?:\]\]>|\Z)|<\?(?s:.*?)(?:\?>|\Z)|{_SUBSET}|{_ASIDE}"
    rf"|</?([^\W\d]{_REST})"
)
"""The same, with CDATA sections, instructions, and declarations inside that of the document."""
XML = re.compile(rf"{XHTML.pattern}|&(?!(?:amp|lt|gt|quot|apos);|#)[^\s;&<]++;")
"""The same; the document's own entities are void tags."""
_LINES = re.compile(LINES, re.IGNORECASE)
_NAME = re.compile(rf"</?({_NOT}]+)")
_ATTRIBUTE = re.compile(rf"({_NOT}=\"']++)(?:{_VALUE})?+")
_SCOPES = ("ul", "ol", "menu", "dl", "table", "select")
"""Elements with items of their own."""
_META = re.compile(
    r"\s(?:name|property)\s*=\s*[\"']?(?:og:|twitter:)?(?:description|image:alt|keywords|title)"
    r"[\"'\s/>]",
    re.IGNORECASE,
)
_BUTTON = re.compile(r"\stype\s*=\s*[\"']?(?:button|reset|submit)[\"'\s/>]", re.IGNORECASE)
_LANGUAGE = re.compile(r"(?!und|mul|zxx)[A-Za-z]{2,3}(?:-\w+)*")
_TAG = re.compile("<[^<>]*>")
_LINE = re.compile(r"[^\r\n]+|[\r\n]+")
_SPACE = re.compile(rf"{_W}+")
_REFERENCE = re.compile(r"&(?:#\w+;?|\w+;|(?:amp|gt|lt|nbsp|quot)(?![A-Za-z0-9=]))")
"""An entity in an attribute, also without its end if browsers read it so, but for rare ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the elements of a markup language mean for translation."""

    block: Callable[[str], bool]
    """Whether an element of this name begins and ends a sentence."""
    copied: frozenset[str] = frozenset()
    """Elements whose text is copied."""
    opaque: Mapping[str, str] = field(default_factory=dict)
    """Elements that are left alone, and why; "" for those without text."""
    raw: frozenset[str] = frozenset()
    """Elements without tags inside."""
    breaks: frozenset[str] = frozenset()
    """Elements that are read as a space."""
    empty: frozenset[str] = frozenset()
    """Elements without a close tag."""
    attributes: frozenset[str] = frozenset()
    """Attributes that are translated."""
    ended_by: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The open tags that end each element whose close tag may be omitted."""
    scanner: re.Pattern[str] = XML
    lines: bool = False
    """Whether a line break ends a sentence."""
    language: str | None = None
    """Language of the text; elements that declare another one are left alone."""


class Token(NamedTuple):
    """A tag, text or code, as it is written; "raw" is the text of an element without tags."""

    kind: Literal["open", "close", "void", "text", "raw", "code"]
    raw: str
    name: str = ""
    """Name of the element, in lower case; "" for comments. `STATEMENT` for lines of code, which
    are void."""

    @property
    def tag(self) -> Tag:
        """The token as a tag of a sentence."""
        kinds: dict[str, Literal["open", "close"]] = {"open": "open", "close": "close"}
        return Tag(self.raw, kinds.get(self.kind, "void"))


def tokens_of(text: str, rules: Rules) -> Iterator[Token]:
    """Yield the tokens of a text; `"".join(token.raw for token in tokens) == text`."""
    place, is_xml = 0, rules.scanner is not HTML
    while match := rules.scanner.search(text, place):
        if place < match.start():
            yield Token("text", text[place : match.start()])
        raw, place = match[0], match.end()
        if not is_xml and (raw[0] != "<" or raw[1] == "%"):
            lines = _LINES.match(text, match.start())  # `fullmatch` would see no text after it
            is_lines = lines is not None and lines.end() == place
            yield Token("void", raw, STATEMENT) if is_lines else Token("code", raw)
            continue
        found = _NAME.match(raw) if match[1] else None
        name = found[1].lower() if found else ""
        closed = raw.endswith("/>") and (is_xml or name in rules.opaque)
        if not name or name in rules.empty or closed or raw[-1] != ">":
            yield Token("void", raw, name)
        elif raw[1] == "/":
            yield Token("close", raw, name)
        else:
            yield Token("open", raw, name)
            if name in rules.raw:
                end = re.compile(rf"</{re.escape(name)}(?=[{_WHITE}/>])", re.I).search(text, place)
                stop = end.start() if end else len(text)
                yield Token("raw", text[place:stop], name)
                place = stop
    if place < len(text):
        yield Token("text", text[place:])


class _Item(NamedTuple):
    """An item of a sentence."""

    name: str
    piece: str | Tag
    raw: str
    start: int
    line: int


class Page:
    """A text in markup: the places of sentences, and the attributes that are translated."""

    def __init__(
        self,
        text: str,
        rules: Rules,
        name: str,
        place: str = "",
        left: Left | None = None,
        line: int = 1,
    ) -> None:
        """`name` is the document's name, for messages; `place` begins each location, and `line` is
        the number of the first line.

        What is left alone is added to `left`.
        """
        self._asides, self._text = Asides(text, name), text
        self._rules, self._in = rules, place
        self._place, self._line = 0, line
        self._items: list[_Item] = []
        self.segments = Segments(name)
        self._left = Left() if left is None else left
        self._read(tokens_of(text, rules))

    def document(self, encode: Encode) -> Document:
        """Return the document, whose bytes are written by `encode`."""
        return self._asides.document(self.segments, encode, self._left)

    def _read(self, tokens: Iterator[Token]) -> None:
        token = next(tokens, None)
        while token:
            after = None
            if token.kind == "text":
                lines = _LINE.findall(token.raw) if self._rules.lines else (token.raw,)
                for raw in lines:
                    if self._rules.lines and raw[0] in "\r\n":
                        self._flush()
                        self._pass(raw)
                    else:
                        self._add(" ", raw)
            elif token.kind == "raw":
                self._flush()
                for name, piece in pieces_of(token.raw):
                    self._add(name, piece)
                self._flush()
            elif token.kind == "code":
                self._add(*code_at(self._text, self._place, self._place + len(token.raw)))
            else:
                after = self._read_tag(token, tokens)
            token = after or next(tokens, None)
        self._flush()

    def _read_tag(self, token: Token, tokens: Iterator[Token]) -> Token | None:
        """Read a tag or an element that is left alone; return the unread token that ended it."""
        rules, (kind, raw, name) = self._rules, token
        marked, after = raw, None
        why = _why_left(token, rules.language)
        left = why != ""
        block = name != "" and rules.block(name)
        if kind != "close" and name and not left:
            where = f"{self._in}line {self._line}"
            marked = with_marks(Token(kind, raw, name), rules, self._asides, self._place, where)
        if kind == "open" and (name in rules.opaque or (left and block)):
            inner, after = _until_closed(tokens, name, rules)
            rest = "".join(inner)
            kind, raw, marked = "void", raw + rest, marked + rest
            why = rules.opaque.get(name, why) or "data for search engines" * (
                "ld+json" in token.raw
            )
            if why and (" srcdoc" in raw.lower() or any(map(str.isalpha, _TAG.sub("", rest)))):
                self._left.add(f"<{name}>, {why}", f"{self._in}line {self._line}")
        if block or (name in rules.breaks and self._ends_in(name)):
            self._flush()
        if block:
            self._pass(raw)
        else:
            tag = Token(kind, marked).tag
            kept = kind == "open" and (left or name in rules.copied)
            tag = replace(tag, kept=kept, shown=" " if name in rules.breaks else "")
            self._add(name, tag, raw)
        return after

    def _ends_in(self, name: str) -> bool:
        """Return whether the last item other than white space is a tag of this name."""
        last = (item.name for item in reversed(self._items[-2:]) if item.raw.strip())
        return next(last, None) == name

    def _add(self, name: str, piece: str | Tag, raw: str = "") -> None:
        """Add text, or a tag, which may be written differently than in the document: `raw`."""
        if isinstance(piece, str):
            raw, piece = piece, _read_text(piece)
        else:
            raw = raw or piece.raw
        self._items.append(_Item(name, piece, raw, self._place, self._line))
        self._pass(raw)

    def _pass(self, raw: str) -> None:
        self._place += len(raw)
        self._line += raw.count("\n")

    def _flush(self) -> None:
        """End a sentence: the items become a segment if they contain text."""
        items = self._items[inner([(item.name, item.piece) for item in self._items])]
        self._items = []
        if not any(item.name == " " for item in items):
            return
        pieces = [(item.name, item.piece) for item in items]
        for n, strip in ((0, str.lstrip), (-1, str.rstrip)):
            name, piece = pieces[n]
            pieces[n] = name, strip(piece, _WHITE) if isinstance(piece, str) else piece
        first, last = items[0], items[-1]
        white = first.raw[: len(first.raw) - len(first.raw.lstrip(_WHITE))]
        start, end = first.start + len(white), last.start + len(last.raw.rstrip(_WHITE))
        where = f"{self._in}line {first.line + white.count(chr(10))}"
        source = paired(settled(unwrapped(_rows(pieces))))
        self.segments.append(Segment(start, end, source, _written, where))


def _rows(pieces: Iterable[tuple[str, str | Tag]]) -> Iterator[tuple[str, str | Tag]]:
    """Yield the pieces, with each line break as a separate one."""
    for name, piece in pieces:
        rows = re.split("(\n)", piece) if isinstance(piece, str) else (piece,)
        yield from ((name, each) for each in rows)


def with_marks(token: Token, rules: Rules, asides: Asides, place: int, where: str) -> str:
    """Return a tag with its translated attributes set aside, and marks in their places."""
    raw, name = token.raw, token.name
    if not rules.attributes:
        return raw
    wanted = rules.attributes | ({"content"} if _META.search(raw) else set())
    wanted |= {"value"} if name == "input" and _BUTTON.search(raw) else set()

    def mark(found: re.Match[str]) -> str:
        value = found[2] or ""
        quote = value[0] if value[:1] in {'"', "'"} else ""
        if found[1].lower() not in wanted or not value or (quote and value[1:][-1:] != quote):
            return found[0]
        size = len(quote)
        text, end = value[size : len(value) - size], place + found.end() - size
        pieces = (
            (name, _REFERENCE.sub(lambda each: _read_text(each[0]), p) if isinstance(p, str) else p)
            for name, p in pieces_of(text)
        )
        source = paired(settled(pieces))
        write = partial(_written_value, quote=quote)
        at = f"{where}, {found[1]} of <{name}>"
        number = asides.cut(Segment(end - len(text), end, source, write, at))
        return found[0].removesuffix(value) + quote + number + quote

    return _ATTRIBUTE.sub(mark, raw) if wanted else raw


def is_left(raw: str) -> bool:
    """Return whether a tag says that its element is not to be translated."""
    if "translate" not in raw.lower():
        return False
    found = _attributes_of(raw.lower())
    is_no = found.get("translate", "").strip() == "no"
    return is_no or "notranslate" in found.get("class", "").split()


def _attributes_of(raw: str) -> dict[str, str]:
    """Return the attributes of a tag; of two with a name, browsers read the first."""
    found = [*_ATTRIBUTE.finditer(raw)]
    return {each[1].lower(): (each[2] or "").strip("\"'") for each in reversed(found)}


def _why_left(token: Token, language: str | None) -> str:
    """Return why the element of a tag is left alone: it says so, or that it is in another language
    than the page; "" if it is not.
    """
    if token.kind == "close" or is_left(token.raw):
        return "" if token.kind == "close" else "marked as not to be translated"
    if language is None or "lang" not in token.raw.lower() or token.name in {"html", "body"}:
        return ""
    found = _attributes_of(token.raw)
    code = _LANGUAGE.fullmatch(found.get("lang") or found.get("xml:lang") or "")
    is_other = code is not None and label_of(code[0]) != label_of(language)
    return "in another language" if is_other else ""


def _until_closed(
    tokens: Iterator[Token], name: str, rules: Rules
) -> tuple[list[str], Token | None]:
    """Read what follows an open tag, up to the close tag that belongs to it.

    If that may be omitted, the next item of its kind or the end of the surrounding element ends it
    too; that token is returned, to be read separately.
    """
    inner, opened, ends = list[str](), Counter([name]), rules.ended_by.get(name)
    is_inline = not rules.block(name)
    for token in tokens:
        kind, raw, other = token
        if ends is not None:
            begins = other in ends or (is_inline and rules.block(other))
            is_next = kind == "open" and begins and not any(map(opened.get, _SCOPES))
            is_around = is_inline or (other != "p" and rules.block(other))
            if is_next or (kind == "close" and not opened[other] and is_around):
                return inner, token
        inner.append(raw)
        opened[other] += {"open": 1, "close": -1}.get(kind, 0)
        if not opened[name]:
            break
    return inner, None


def _read_text(raw: str) -> str:
    """Decode raw text; white space becomes one line break if it contains any, else one space."""
    return unescaped(_SPACE.sub(lambda each: "\n" if "\n" in each[0] else " ", raw))


_written = partial(Marked.written, escape=partial(escape, quote=False))


def _written_value(marked: Marked, quote: str) -> str:
    sign, reference = (quote, "&#39;") if quote == "'" else ('"', "&quot;")
    text = marked.written(lambda piece: escape(piece, quote=False).replace(sign, reference))
    return text if quote else f'"{text}"'
