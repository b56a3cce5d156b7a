"""Text with markup in it: what is read and translated, and the tags that stand between.

    Marked(("a ", Tag("<b>", "open"), "bold", Tag("</b>", "close"), " word", Tag("<br/>")))

Its `text` is "a bold word". Each open tag has its close tag in the same `Marked`; a tag whose
partner is elsewhere, or that has none, is void.
"""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, chain, groupby, pairwise
from typing import Literal

from dragoman.text.glossary import is_spaced

DEEPEST = 64
"""Most elements around a text that are told apart by `paired`."""


@dataclass(frozen=True, slots=True)
class Tag:
    """Markup at a place in a text: it comes back as it was written, once."""

    raw: str
    """As it is written in the document."""
    kind: Literal["open", "close", "void"] = "void"
    """Whether it begins or ends what it encloses; a void one encloses nothing."""
    kept: bool = False
    """Of an open one: what it encloses is copied, not translated."""
    shown: str = ""
    """Of a void one: what is read in its place, such as a space for a line break."""


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
        """What is read: the pieces of text, and what void tags show."""
        return "".join(p if isinstance(p, str) else p.shown for p in self.pieces)

    def written(self, escape: Callable[[str], str] = str) -> str:
        """The text and the tags as a document has them; `escape` writes text in its format.

        What is `verbatim` is so already.
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
        """The places in `text` of what is copied."""
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
        """What is not copied: the texts before, between and after what is."""
        whole, parts, end = self.text, list[str](), 0
        for start, after in (*self.kept, (len(whole),) * 2):
            parts.append(whole[end:start])
            end = after
        return tuple(parts)

    def hollow(self, counts: Callable[[str], bool]) -> Counter[str]:
        """The open tags that enclose no character that counts, and how often each is there."""
        letters = self._letters(counts)
        hollow = (tag for tag, a, b in self.elements if letters[a] == letters[b])
        return Counter(tag.raw for tag in hollow)

    def share(self, counts: Callable[[str], bool]) -> float:
        """The largest share that an element encloses of the characters that count."""
        letters = self._letters(counts)
        most = max((letters[b] - letters[a] for _, a, b in self.elements), default=0)
        return most / max(letters[-1], 1)

    def _letters(self, counts: Callable[[str], bool]) -> list[int]:
        """How many characters count in the texts before each piece, and in all."""
        texts = (piece if isinstance(piece, str) else "" for piece in self.pieces)
        return [*accumulate((sum(map(counts, text)) for text in texts), initial=0)]

    def trimmed(self) -> tuple[Pieces, "Marked", Pieces]:
        """What stays before the text to translate, this text, and what stays after it.

        White space, void tags at the edges, and elements around all of it stay where they are.
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
        """Each open tag with its place among the pieces and that of its close tag; inner first."""
        opened = list[tuple[Tag, int]]()
        for number, piece in enumerate(self.pieces):
            if isinstance(piece, Tag) and piece.kind == "open":
                opened.append((piece, number))
            elif isinstance(piece, Tag) and piece.kind == "close":
                yield *opened.pop(), number

    @property
    def partners(self) -> dict[int, int]:
        """The places among the pieces of the close tags, by those of the open ones."""
        return {first: last for _, first, last in self.elements}


def _is_blank(piece: str | Tag) -> bool:
    if isinstance(piece, str):
        return not piece.strip()
    return piece.kind == "void" and not piece.shown.strip()


def merged(pieces: Iterable[str | Tag]) -> Marked:
    """Marked text in which neighbouring texts are one, and none is empty."""
    made = list[str | Tag]()
    for is_text, group in groupby(pieces, lambda piece: isinstance(piece, str)):
        if not is_text:
            made += group
        elif text := "".join(map(str, group)):
            made.append(text)
    return Marked(tuple(made))


def paired(pieces: Iterable[tuple[str, str | Tag]]) -> Marked:
    """Marked text of pieces with their names: a close tag ends the last open one of its name.

    Those without a partner, and whatever would not be nested, become void; of spaces around a void
    tag one is read. The number of a note right behind a word, such as [1] or a raised 1, is void
    with its element, and so is an element without text, such as a link around a picture.
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
    """The pieces, where an element that has no text in it is one void tag."""
    made, opened = list[str | Tag](), list[int]()
    for piece in pieces:
        made.append(piece)
        if isinstance(piece, str):
            opened.clear()  # what is around a text has text
        elif piece.kind == "open":
            opened.append(len(made) - 1)
        elif piece.kind == "close" and opened:
            inner = Marked(tuple(made[opened[-1] :]))
            made[opened.pop() :] = (Tag(inner.written(), shown=inner.text),)
    return made


_SIGN_OF_NOTE = re.compile(r"[\[［〔]\d{1,3}[\]］〕]|[*†‡]")
CIRCLED = re.compile("[①-⑳㉑-㉟㊱-㊿❶-❿⓫-⓴]")
"""A number of a note only in a link or raised: a text has them in figures and lists, too."""
_BEFORE_SIGN = re.compile(r"[\w.,;!?)\]”’»。，、；！？」』]\Z")
_NUMBER_OF_NOTE = re.compile(r"[\[(（]?(?:\d{1,3}|[*†‡§])[\])）]?")
_RAISED = re.compile(
    r"(?:<|&lt;)(?:sup\b|a\s[^>]*noteref)|\bvertAlign\s[^>]*superscript|\sbaseline=[\"'][1-9]",
    re.IGNORECASE,
)
_BEFORE_NUMBER = re.compile(
    r"(?:[^\W\d_]{4}|[^\W\d_]{2}(?:[.,;:!?…。，、；：！？][\"'”’»」』]?|[”»」』]))\Z"
)
"""Not a short word, as km<sup>2</sup> and cos<sup>2</sup> have no note; unless this is a link."""
_LINKED, _BEFORE_LINK = (
    re.compile(r"[\s:]href\s*=|noteref|:hyperlink\s"),
    re.compile(r"[^\W\d_]{2}\Z"),
)


def is_raised(tags: str) -> bool:
    """Whether tags of HTML or of a run say that what follows stands higher than other text."""
    return _RAISED.search(tags) is not None


def with_notes(
    given: Iterable[str | Tag],
    write: Callable[[Marked], str] = Marked.written,
    raised: Callable[[str], bool] = is_raised,
) -> list[str | Tag]:
    """The pieces, where the number of a note, right behind a word, is void with its element.

    The document has it as `write` makes it; open tags in a row say whether it is `raised`.
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
    """Whether they begin with an element that is a number of a note, and no part of a word.

    A bare number is one only if it is raised, and so stands in no sentence. `around` are the open
    tags before it.
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
    """Marked text in which the second of two spaces around void tags is a tag behind them.

    So one space is read, and one is on each side of the tags wherever they go.
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
    """A text that is copied, as it is written in the document."""
    return _COPIED, text, Tag("", "close")


_SOFT = re.compile(r"[ \t]*|[ \t]?\r?\n[ \t]*")
"""White space in which a line is broken anew, or not at all."""


def with_tags_of(source: Marked, text: str) -> Marked | None:
    """A text with one space between words, in which the tags of a source are, as it has them.

    None unless all are there, as often, and nested; those of one space, or of a line break, may be
    missing. What is `verbatim` in the source is so in the text.
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
            return None  # nobody knows which of them is text
        pieces += text[place : found.start()], tags.popleft()
        place = found.end()
    pieces.append(text[place:])
    lone = {b for a, b in pairwise(source.pieces) if a == _COPIED and isinstance(b, str)}
    if any(waiting.values()) or not all(each in text for each in lone):
        return None
    copied = re.compile("|".join(map(re.escape, lone)) or "(?!)")
    parts = (copying(p, copied) if isinstance(p, str) else (p,) for p in pieces)
    try:
        return merged(chain.from_iterable(parts))
    except ValueError:
        return None


def copying(text: str, copied: re.Pattern[str]) -> Iterator[str | Tag]:
    """The pieces of a text in which all that matches the pattern is copied."""
    place = 0
    for found in copied.finditer(text):
        yield text[place : found.start()]
        yield from verbatim(found[0])
        place = found.end()
    yield text[place:]


def void(tag: Tag) -> Tag:
    """The tag as one that encloses nothing."""
    return replace(tag, kind="void", kept=False)
