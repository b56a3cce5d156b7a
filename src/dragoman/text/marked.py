"""Text with markup: the text to read and translate, and the tags in between.

    Marked(("a ", Tag("<b>", "open"), "bold", Tag("</b>", "close"), " word", Tag("<br/>")))

Its `text` is "a bold word". Each open tag has its close tag in the same `Marked`; a tag without a
partner, or whose partner is elsewhere, is void.
"""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, groupby, pairwise
from typing import Literal

from dragoman.text.glossary import is_spaced

DEEPEST = 64
"""Maximum depth of nested elements that `paired` distinguishes."""


@dataclass(frozen=True, slots=True)
class Tag:
    """Markup at a place in a text, which a translation contains unchanged and once."""

    raw: str
    """The tag as written in the document."""
    kind: Literal["open", "close", "void"] = "void"
    """Whether it opens or closes an element; a void tag encloses nothing."""
    kept: bool = False
    """For an open tag: its content is copied, not translated."""
    shown: str = ""
    """For a void tag: the text that is read in its place, such as a space for a line break."""


Pieces = tuple[str | Tag, ...]


@dataclass(frozen=True, slots=True)
class Marked:
    """A text and its tags, in order. Raises ValueError unless open and close tags are nested."""

    pieces: "Pieces"

    def __post_init__(self) -> None:
        depth = 0
        for tag in self.tags:
            depth += {"open": 1, "close": -1, "void": 0}[tag.kind]
            if depth < 0:
                break
        if depth:
            raise ValueError(f"the tags of {self.pieces!r:.80} are not nested")

    @property
    def tags(self) -> Iterator[Tag]:
        """The tags, in order."""
        return (piece for piece in self.pieces if isinstance(piece, Tag))

    @property
    def text(self) -> str:
        """The text to read: the pieces of text, and what void tags show."""
        return "".join(p if isinstance(p, str) else p.shown for p in self.pieces)

    def written(self, escape: Callable[[str], str] = str) -> str:
        """Return text and tags as written in a document; `escape` writes text in its format.

        What is `verbatim` is already in that format.
        """
        made, is_written = list[str](), False
        for piece in self.pieces:
            if isinstance(piece, Tag):
                made.append(piece.raw)
                is_written = piece.kept and not piece.raw
            else:
                made.append(piece if is_written else escape(piece))
        return "".join(made)

    @property
    def kept(self) -> tuple[tuple[int, int], ...]:
        """The spans in `text` that are copied."""
        read = (piece if isinstance(piece, str) else piece.shown for piece in self.pieces)
        places = [*accumulate(map(len, read), initial=0)]
        found, after = list[tuple[int, int]](), 0
        for first, last in sorted(span for tag, *span in self.elements if tag.kept):
            if after <= places[first] < places[last]:  # it is in no other one
                after = places[last]
                found.append((places[first], after))
        return tuple(found)

    @property
    def around(self) -> tuple[str, ...]:
        """The texts before, between and after the copied spans."""
        whole, parts, end = self.text, list[str](), 0
        for start, after in (*self.kept, (len(whole),) * 2):
            parts.append(whole[end:start])
            end = after
        return tuple(parts)

    def hollow(self, counts: Callable[[str], bool]) -> Counter[str]:
        """Count the open tags that enclose no character for which `counts` is true."""
        letters = self._letters(counts)
        hollow = (tag for tag, a, b in self.elements if letters[a] == letters[b])
        return Counter(tag.raw for tag in hollow)

    def share(self, counts: Callable[[str], bool]) -> float:
        """Return the largest share of the counted characters that one element encloses."""
        letters = self._letters(counts)
        most = max((letters[b] - letters[a] for _, a, b in self.elements), default=0)
        return most / max(letters[-1], 1)

    def _letters(self, counts: Callable[[str], bool]) -> list[int]:
        """Return how many characters count before each piece, and in total."""
        texts = (piece if isinstance(piece, str) else "" for piece in self.pieces)
        return [*accumulate((sum(map(counts, text)) for text in texts), initial=0)]

    def trimmed(self) -> tuple[Pieces, "Marked", Pieces]:
        """Split off what stays before the text to translate, and what stays after it.

        White space and void tags at the edges stay in place, and so do elements around all of it.
        """
        pieces = self.pieces
        elements = {(first, last) for tag, first, last in self.elements if not tag.kept}
        first, last = 0, len(pieces)
        while first < last:
            if _is_blank(pieces[first]):
                first += 1
            elif _is_blank(pieces[last - 1]):
                last -= 1
            elif (first, last - 1) in elements:
                first, last = first + 1, last - 1
            else:
                break
        before, inner, after = [*pieces[:first]], [*pieces[first:last]], [*pieces[last:]]
        if inner and isinstance(inner[0], str):
            text = inner[0].lstrip()
            before.append(inner[0][: len(inner[0]) - len(text)])
            inner[0] = text
        if inner and isinstance(inner[-1], str):
            text = inner[-1].rstrip()
            after.insert(0, inner[-1][len(text) :])
            inner[-1] = text
        return tuple(before), Marked(tuple(inner)), tuple(after)

    @property
    def elements(self) -> Iterator[tuple[Tag, int, int]]:
        """Each open tag, its index in the pieces and that of its close tag; inner ones first."""
        opened = list[tuple[Tag, int]]()
        for number, piece in enumerate(self.pieces):
            if isinstance(piece, Tag) and piece.kind == "open":
                opened.append((piece, number))
            elif isinstance(piece, Tag) and piece.kind == "close":
                yield *opened.pop(), number


def _is_blank(piece: str | Tag) -> bool:
    if isinstance(piece, str):
        return not piece.strip()
    return piece.kind == "void" and not piece.shown.strip()


def merged(pieces: Iterable[str | Tag]) -> Marked:
    """Return marked text in which adjacent texts are joined, and none is empty."""
    made = list[str | Tag]()
    for is_text, group in groupby(pieces, lambda piece: isinstance(piece, str)):
        if not is_text:
            made += group
        elif text := "".join(map(str, group)):
            made.append(text)
    return Marked(tuple(made))


def paired(pieces: Iterable[tuple[str, str | Tag]]) -> Marked:
    """Return marked text from named pieces: a close tag ends the last open one of its name.

    Tags without a partner, and those that would not be nested, become void. Of the spaces around a
    void tag, one is read. The number of a note directly after a word, such as [1] or a raised 1,
    becomes void with its element; so does an element without text, such as a link around a picture.
    """
    made, opened = list[str | Tag](), list[tuple[str, int, Tag]]()
    for name, piece in pieces:
        made.append(piece)
        if isinstance(piece, Tag) and piece.kind != "void":
            names = [other for other, _, _ in opened]
            if piece.kind == "open" and len(opened) < DEEPEST:
                opened.append((name, len(made) - 1, piece))
            elif piece.kind == "close" and name in names:
                inner = opened[len(names) - names[::-1].index(name) - 1 :]
                for _, place, tag in inner[1:]:
                    made[place] = void(tag)
                del opened[-len(inner) :]
            else:
                made[-1] = void(piece)
    for _, place, tag in opened:
        made[place] = void(tag)
    return with_one_space(_with_whole(with_notes(made)))


def _with_whole(pieces: Iterable[str | Tag]) -> Iterable[str | Tag]:
    """Return the pieces, with each element without text as one void tag."""
    made, opened = list[str | Tag](), list[int]()
    for piece in pieces:
        made.append(piece)
        if isinstance(piece, str):
            opened.clear()  # the elements around it have text
        elif piece.kind == "open":
            opened.append(len(made) - 1)
        elif piece.kind == "close" and opened:
            inner = Marked(tuple(made[opened[-1] :]))
            made[opened.pop() :] = (Tag(inner.written(), shown=inner.text),)
    return made


_SIGN_OF_NOTE = re.compile(r"[\[［〔]\d{1,3}[\]］〕]|[*†‡¶]")
CIRCLED = re.compile("[①-⑳㉑-㉟㊱-㊿❶-❿⓫-⓴]")
"""The number of a note only if in a link or raised: figures and lists have such numbers, too."""
_BEFORE_SIGN = re.compile(r"[\w.,;!?)\]”’»。，、；！？」』]\Z")
_NUMBER_OF_NOTE = re.compile(r"[\[(（]?(?:\d{1,3}|[*†‡§])[\])）]?")
_RAISED = re.compile(
    r"(?:<|&lt;)(?:sup\b|a\s[^>]*noteref)|\bvertAlign\s[^>]*superscript|\sbaseline=[\"'][1-9]",
    re.IGNORECASE,
)
_BEFORE_NUMBER = re.compile(
    r"(?:[^\W\d_]{4}|[^\W\d_]{2}(?:[.,;:!?…。，、；：！？][\"'”’»」』]?|[”»」』]))\Z"
)
"""Not after a short word, unless in a link: km<sup>2</sup> and cos<sup>2</sup> have no note."""
_LINKED, _BEFORE_LINK = (
    re.compile(r"[\s:]href\s*=|noteref|:hyperlink\s"),
    re.compile(r"[^\W\d_]{2}\Z"),
)


def is_raised(tags: str) -> bool:
    """Return whether tags of HTML or of a run say that what follows is superscript."""
    return _RAISED.search(tags) is not None


def with_notes(
    given: Iterable[str | Tag],
    write: Callable[[Marked], str] = Marked.written,
    raised: Callable[[str], bool] = is_raised,
) -> list[str | Tag]:
    """Return the pieces, with the number of a note directly after a word as one void tag.

    `write` gives the element as the document has it; `raised` tells from the consecutive open tags
    whether the number is raised.
    """
    pieces, made = merged(given).pieces, list[str | Tag]()
    n, before, around = 0, "", ""
    while n < len(pieces):
        piece, count = pieces[n], 1
        is_open = isinstance(piece, Tag) and piece.kind == "open"
        around = around + piece.raw if isinstance(piece, Tag) and is_open else ""
        if is_open and _begins_note(pieces[n : n + 5], before, around, raised):
            piece, count = Tag(write(Marked(pieces[n : n + 3]))), 3
            while made and _are_pair(made[-1], *pieces[n + count : n + count + 1]):
                piece = Tag(write(Marked((made.pop(), piece, pieces[n + count]))))
                count += 1
        made.append(piece)
        before = (before + (piece if isinstance(piece, str) else piece.shown))[-6:]
        n += count
    return made


def _are_pair(*pieces: str | Tag) -> bool:
    return [isinstance(piece, Tag) and piece.kind for piece in pieces] == ["open", "close"]


def _begins_note(pieces: Pieces, before: str, around: str, raised: Callable[[str], bool]) -> bool:
    """Return whether the pieces begin with an element that is a note's number, not part of a word.

    A bare number is one only if it is raised, and so not part of the sentence. `around` are the
    open tags before it.
    """
    padded: Pieces = (*pieces, "", "")
    first, text, last, *rest = padded
    if not (isinstance(first, Tag) and isinstance(text, str) and isinstance(last, Tag)):
        return False
    after = next((piece for piece in rest if isinstance(piece, str)), "")
    if first.kept or last.kind != "close" or (after[:1].isalnum() and is_spaced(after)):
        return False
    is_high, is_link = raised(around), _LINKED.search(around)
    if after[:1].isalnum() and not (is_high or is_link):
        return False
    if _SIGN_OF_NOTE.fullmatch(text) or (CIRCLED.fullmatch(text) and (is_high or is_link)):
        return _BEFORE_SIGN.search(before) is not None
    if not (_NUMBER_OF_NOTE.fullmatch(text) and is_high):
        return False
    return bool((is_link and _BEFORE_LINK.search(before)) or _BEFORE_NUMBER.search(before))


def with_one_space(pieces: Iterable[str | Tag]) -> Marked:
    """Return marked text in which the second of two spaces around void tags is a tag after them.

    So one space is read, and the tags have one on each side wherever they are placed.
    """
    made, spaced = list[str | Tag](), False
    for piece in merged(pieces).pieces:
        if isinstance(piece, Tag):
            spaced &= piece.kind == "void" and not piece.shown
            made.append(piece)
            continue
        rest = piece[1:] if spaced and re.match(r"\s(?!\s)", piece) else piece
        made += (Tag(piece[0]), rest) if rest != piece else (piece,)
        spaced = not rest or rest[-1].isspace()
    return merged(made)


_COPIED = Tag("", "open", kept=True)


def verbatim(text: str) -> Pieces:
    """Return the pieces of a text that is copied, as written in the document."""
    return _COPIED, text, Tag("", "close")


_SOFT = re.compile(r"[ \t]*|[ \t]?\r?\n[ \t]*")
"""White space that may be rewrapped, or removed."""


def with_tags_of(source: Marked, text: str) -> Marked | None:
    """Return marked text for a text with one space between words that contains a source's tags.

    None unless all tags occur, equally often, and are nested; those that are a single space or a
    line break may be missing. What is `verbatim` in the source is verbatim in the text.
    """
    waiting = dict[str, deque[Tag]]()
    for tag in source.tags:
        if not _SOFT.fullmatch(tag.raw):
            waiting.setdefault(" ".join(tag.raw.split()), deque()).append(tag)
    if any(tag.raw != tag.raw.strip() for tags in waiting.values() for tag in tags):
        return None
    pieces, place = list[str | Tag](), 0
    names = "|".join(map(re.escape, sorted(waiting, key=len, reverse=True)))
    for found in re.finditer(names, text) if names else ():
        if not (tags := waiting[found[0]]):
            return None  # ambiguous: one of them is text
        pieces += text[place : found.start()], tags.popleft()
        place = found.end()
    pieces.append(text[place:])
    lone = {b for a, b in pairwise(source.pieces) if a == _COPIED and isinstance(b, str)}
    if any(waiting.values()) or not all(each in text for each in lone):
        return None
    copied = re.compile("|".join(map(re.escape, lone)) or "(?!)")
    try:
        return merged(with_texts(pieces, partial(copying, copied=copied)))
    except ValueError:
        return None


def with_texts(
    pieces: Iterable[str | Tag], read: Callable[[str], Iterable[str | Tag]]
) -> Iterator[str | Tag]:
    """Yield the pieces, with what `read` makes of each text in its place."""
    for piece in pieces:
        yield from read(piece) if isinstance(piece, str) else (piece,)


def copying(text: str, copied: re.Pattern[str]) -> Iterator[str | Tag]:
    """Yield the pieces of a text, in which each match of the pattern is copied."""
    place = 0
    for found in copied.finditer(text):
        yield text[place : found.start()]
        yield from verbatim(found[0])
        place = found.end()
    yield text[place:]


def void(tag: Tag) -> Tag:
    """Return the tag as a void one, which encloses nothing."""
    return replace(tag, kind="void", kept=False)
