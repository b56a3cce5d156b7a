"""SubRip and WebVTT: a sentence that spans several cues is translated as one.

The words of another speaker are another text: a line with a dash, a name in capitals and a colon,
or a WebVTT voice.

The text between two cues, including the times, is put back by alignment, or in proportion to the
times if alignment would leave a cue without words, or with more than can be read in its time.
Headers, notes, styles and settings are left alone.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import accumulate, chain, pairwise, tee

from dragoman.documents.characters import decoded, unescaped
from dragoman.documents.document import Document, Left, Segment, one_part
from dragoman.documents.lines import unwrapped
from dragoman.errors import InputError
from dragoman.text.marked import Marked, Tag, paired
from dragoman.text.sentences import SPACED_ENDS, UNSPACED_ENDS
from dragoman.text.spans import nearest
from dragoman.wording import clock

_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{2})[.,](\d{3})"
_EOL = r"(?:\r\n|\r|\n)"
_CUE = re.compile(
    rf"(?:^|(?<=[\r\n]))[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}[^\r\n]*(?:{_EOL}|\Z)"
    rf"((?:[ \t]+{_EOL})?(?:(?!(?:\d+[ \t]*{_EOL})?[^\r\n]*-->)[ \t]*\S[^\r\n]*(?:{_EOL}|\Z))*)"
)
"""Times and settings, and lines of text; YouTube puts a line with one blank before these."""
_GUIDE = r"<rt\b[^<>]*+>[^<>]*+(?:</rt>)?+"
"""The pronunciation shown above a word: a tag, whose text stays."""
_TAG = re.compile(
    rf"{_GUIDE}|<(/?)([A-Za-z][^<>\s.]*+)[^<>]*+>|<(?:\d+:)?\d\d:\d\d\.\d{{3}}>|\{{\\[^{{}}]*\}}"
    r"|(?<! )(?<!\b[A-Za-z]:) *\\N *"
)
"""A tag of HTML, WebVTT or ASS, whose line break is `\\N`."""
_VOICE = re.compile(r"<v(?:\.[^<>\s]*+)?\s++([^<>]*+)>")
"""The speaker of the text that follows."""
_MOMENT = re.compile(r"<[\d:.]+>")
"""A time inside a cue, which must stay there."""
_BLOCK = re.compile(rf"(?:^|(?<=[\r\n]))(?:((?:(?![\r\n])\s)*+\S[^\r\n]*)(?:{_EOL}|\Z))+")
"""Lines without blank ones between them; the group is the last one."""
_NO_CUE = re.compile(r"(?:WEBVTT|NOTE|STYLE|REGION)\b")
"""The start of a WebVTT block that is not a cue."""
_MARKS = "\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Direction marks, which may begin and end each line of Arabic or Hebrew."""
_DIRECTION = f"[{_MARKS}]*"
_LINE = re.compile(rf"[^\s{_MARKS}](?:[^\r\n]*[^\s{_MARKS}])?")
"""A line of a cue without the white space and direction marks around it, which stay."""
_END = re.compile(rf"[{SPACED_ENDS}{UNSPACED_ENDS}:;؛♪*)\]）］】][\"'”’»」』]*{_DIRECTION}$")
_TURN = "(?:[-–—•]|(?:>|&gt;){2,3})"
_DASH = re.compile(rf"(?:{_TAG.pattern})*{_TURN}[\s{_MARKS}]*")
"""The dash, or `>>`, that marks a speaker, also after tags; these stay before the speech."""
_LABEL = re.compile(
    rf"(?:{_TAG.pattern})*+{_DIRECTION}(?P<name>[^\W\d_][\w .'’#&/()-]{{,30}})(?:{_TAG.pattern})*+"
    rf"(?:[:：](?:{_TAG.pattern})*+(?:[\s{_MARKS}]+|\Z)|：)"
)
"""The name that marks a speaker, if it is in capitals."""
_HOURS = {"AM", "PM", "A.M.", "P.M."}
"""Words in capitals before a colon that are not names."""
_OTHER = re.compile(rf"(?:{_TAG.pattern})*{_DIRECTION}(?:{_TURN}|[♪\[(（［【])")
"""The start of a line that does not continue a sentence."""
_APART = re.compile(
    rf"(?:{_TAG.pattern}|{_DIRECTION}{_DASH.pattern})*+{_DIRECTION}[\[(♪（［【]+\s*+"
    rf"(?P<text>[^][()♪（）［］【】]*[^][()♪（）［］【】\s])\s*[\])♪）］】]+"
    rf"(?:{_TAG.pattern})*{_DIRECTION}"
)
"""A line that is entirely a sound or a song, and its text without the signs."""
_NO_BREAK = re.compile(rf"[^\r\n{_MARKS}]")
"""Characters between two lines that are not repeated when the lines are broken again."""
_WHITE = re.compile(r"\s*")
_CLOSING = ",.;:!?…)]，。、；：！？）］】」』》〉〕"
LONGEST, LONGEST_WIDE = 42, 36
"""Maximum letters in a line, and in one of Chinese or the like, where each counts as two."""
FASTEST = 20.0
"""Maximum reading speed, in letters per second."""
MOST = 8
"""Maximum number of cues in a sentence."""


def read(data: bytes, name: str) -> Document:
    """Read the sentences of a subtitle file."""
    text, encode = decoded(data, name, has_references=data.startswith(b"WEBVTT"))
    escapes = text.startswith("WEBVTT")
    left, outside = Left(), [*_outside(text, has_notes=escapes)]
    if outside and not _CUE.search(text):
        raise InputError(
            f"{name} has text and no cue of SubRip or WebVTT (00:00:01,000 --> 00:00:02,000 and "
            "text); convert it to SRT, or give it the format that it has."
        )
    for line in outside:
        left.add("text outside any valid cue", f"line {line}")
    return one_part(text, encode, _segments(text, escapes=escapes), name, left)


def _outside(text: str, *, has_notes: bool) -> Iterator[int]:
    """Yield the lines where text outside any cue begins; a line right before a cue is its name."""
    ends, place = [found.end() for found in re.finditer(_EOL, text)], 0
    for cue in (*_CUE.finditer(text), None):
        end = cue.start() if cue else len(text)
        for block in _BLOCK.finditer(text, place, end):
            start = block.start()
            last = block.start(1) if cue and block.end() == end else block.end()
            is_note = has_notes and _NO_CUE.match(text, start)
            if not is_note and any(map(str.isalpha, text[start:last])):
                yield bisect_right(ends, start) + 1
        place = cue.end() if cue else end


@dataclass(frozen=True, slots=True)
class _Cue:
    """The text of a cue or of one speaker in it, or a sound."""

    lines: tuple[tuple[int, int], ...]
    """Start and end of each line, in characters."""
    start: float
    """When the cue is shown, in seconds."""
    end: float
    is_apart: bool
    """Whether no sentence continues there."""
    voice: str
    """The speaker, as named in WebVTT."""
    said: int | None
    """Where the speech begins, if another speaker begins there."""


def _cues(text: str) -> Iterator[_Cue]:
    last = 0, 0
    for match in _CUE.finditer(text):
        times = [int(number or 0) for number in match.groups()[:8]]
        start, end = (3600 * h + 60 * m + s + ms / 1000 for h, m, s, ms in (times[:4], times[4:]))
        rows = [*_rows(text, *match.span(9))]
        lines, voices = [row[:2] for row in rows], [row[2] for row in rows]
        apart = {
            n: found for n, line in enumerate(lines) if (found := _APART.fullmatch(text, *line))
        }
        before = [last, *lines]
        last = before[-1]
        said = {n: _said(text, line, before[n]) for n, line in enumerate(lines)}
        begins = {n for n, place in said.items() if place is not None}
        begins |= {n for n in range(1, len(lines)) if voices[n] != voices[n - 1]}
        begins |= {*apart, *(n + 1 for n in apart), 0, len(lines)}
        for one, other in pairwise(sorted(begins)):
            part = (apart[one].span("text"),) if one in apart else tuple(lines[one:other])
            is_named = said[one] == part[0][1]  # in a line that says nothing
            part = part[is_named:]
            if part:
                begin = _said(text, part[0], before[one])
                begin = part[0][0] if begin is None and is_named else begin
                yield _Cue(part, start, end, one in apart, voices[one], begin)


def _rows(text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Yield the lines of a cue with their voices; a line is split where another voice begins."""
    voice = ""
    for line in _LINE.finditer(text, start, end):
        place = line.start()
        for found in _VOICE.finditer(text, *line.span()):
            if found[1] != voice and place < found.start():
                yield place, place + len(text[place : found.start()].rstrip()), voice
                place = found.start()
            voice = found[1]
        yield place, line.end(), voice


def _said(text: str, line: tuple[int, int], before: tuple[int, int]) -> int | None:
    """Return where the speech in a line begins, if another speaker begins there.

    In a line that is all in capitals, it is the whole line: the label may not be a name. A single
    letter without a dash is not a name if the line `before` does not end a sentence.
    """
    start, end = line
    dash = _DASH.match(text, start, end)
    place = dash.end() if dash else start
    label = _LABEL.match(text, place, end)
    name = label["name"] if label else ""
    is_name = name.isupper() and name not in _HOURS
    if label and is_name and (dash or len(name) > 1 or not _is_open(text, before)):
        return place if _TAG.sub("", text[label.end() : end]).isupper() else label.end()
    return place if dash else None


def _segments(text: str, *, escapes: bool) -> Iterator[Segment]:
    cues = list[_Cue]()
    found, ahead = tee(_cues(text))
    next(ahead, None)
    for cue, following in zip(found, chain(ahead, (None,)), strict=False):
        is_next = len(cues) < MOST and cues and _goes_on(text, cues[-1], cue)
        if cues and (not is_next or _is_at_caption(text, cues, cue, following)):
            yield _segment(text, cues, escapes=escapes)
            cues = []
        cues.append(cue)
    if cues:
        yield _segment(text, cues, escapes=escapes)


def _goes_on(text: str, cue: _Cue, following: _Cue) -> bool:
    """Return whether a sentence continues in the next cue; one without marks or spaces does not."""
    if cue.is_apart or following.is_apart or following.said is not None:
        return False
    if cue.voice != following.voice or not -1 <= following.start - cue.end < 2:
        return False
    has_moment = any(_MOMENT.search(text, *line) for line in (*cue.lines, *following.lines))
    is_other = has_moment or _OTHER.match(text, *following.lines[0])
    return not is_other and _is_open(text, cue.lines[-1])


def _is_open(text: str, line: tuple[int, int]) -> bool:
    """Return whether a line does not end a sentence."""
    last = _TAG.sub("", text[slice(*line)]).rstrip()
    return bool(last) and not _END.search(last) and _width(last[-1]) == 1


def _is_at_caption(text: str, cues: Sequence[_Cue], cue: _Cue, following: _Cue | None) -> bool:
    """Return whether a caption in capitals (THE NEXT DAY) ends before a cue or begins there.

    Inside a sentence, words in capitals are a caption only if the cue that would continue after
    them begins with a capital: "I work for", "THE FBI", "in Boston." is one sentence.
    """
    before, one = _shown(text, *cues), _shown(text, cue)
    last = _shown(text, cues[-1])
    if last.isupper() and " " in last and any(map(str.islower, one)):
        return not any(map(str.islower, before)) or _is_capital(one)
    if not (one.isupper() and " " in one and any(map(str.islower, last)) and following):
        return False
    other = _shown(text, following) if _goes_on(text, cue, following) else ""
    return any(map(str.islower, other)) and _is_capital(other)


def _shown(text: str, *cues: _Cue) -> str:
    """Return the text that is shown, without tags."""
    return " ".join(_TAG.sub("", text[cue.lines[0][0] : cue.lines[-1][1]]) for cue in cues)


def _is_capital(text: str) -> bool:
    return next(filter(str.isalpha, text), "").isupper()


def _segment(text: str, cues: Sequence[_Cue], *, escapes: bool) -> Segment:
    first, pieces = cues[0].lines[0], list[tuple[str, str | Tag]]()
    place = start = first[0] if cues[0].said is None else cues[0].said
    for cue in cues:
        for number, (begin, end) in enumerate(cue.lines):
            if number:
                pieces.append((" ", "\n"))
            elif place < begin:
                pieces.append(("", Tag(text[place:begin], shown=" ")))
            pieces += _pieces(text[max(start, begin) : end], escapes=escapes)
            place = end
    eol = re.search(_EOL, text)
    between = [text[a:b] for cue in cues for (_, a), (b, _) in pairwise(cue.lines)]
    layout = _Layout(
        breaks=tuple(text[a.lines[-1][1] : b.lines[0][0]] for a, b in pairwise(cues)),
        times=tuple(max(0.001, cue.end - cue.start) for cue in cues),
        lines=tuple(len(cue.lines) for cue in cues),
        eol=_NO_BREAK.sub("", between[0]) if between else eol[0] if eol else "\n",
        escapes=escapes,
        marks=tuple(not any(map(str.isalnum, _shown(text, cue))) for cue in cues),
    )
    where = f"at {clock(int(cues[0].start))}"
    return Segment(start, place, paired(unwrapped(pieces)), layout.write, where)


def _pieces(line: str, *, escapes: bool) -> Iterator[tuple[str, str | Tag]]:
    place = 0
    for match in (*_TAG.finditer(line), None):
        text = line[place : match.start() if match else len(line)]
        yield " ", unescaped(text) if escapes else text
        if match:
            place, name, raw = match.end(), match[2] or "", match[0]
            tag = Tag(raw, "close" if match[1] else "open" if name.isalpha() else "void")
            yield name, replace(tag, shown=" " if raw.strip() == "\\N" else "")


@dataclass(frozen=True, slots=True)
class _Layout:
    """The layout of a sentence in its cues."""

    breaks: tuple[str, ...]
    """The text between consecutive cues."""
    times: tuple[float, ...]
    """Duration of each cue, in seconds."""
    lines: tuple[int, ...]
    eol: str
    """The line ending, with the direction marks around it."""
    escapes: bool
    marks: tuple[bool, ...]
    """Whether each cue has only punctuation in the source, and so may in the translation."""

    def write(self, marked: Marked) -> str:
        """Write the text in cues and lines."""
        text, cuts, depth = "", list[int](), 0
        tags, inside = dict[int, list[Tag]](), set[int]()  # by place; places inside elements
        for piece in marked.pieces:
            if isinstance(piece, str):
                inside.update(range(len(text), len(text) + len(piece)) if depth else ())
                text += piece
            elif piece.raw in self.breaks:
                cuts.append(len(text))
                text += piece.shown
            else:
                depth += {"open": 1, "close": -1, "void": 0}[piece.kind]
                tags.setdefault(len(text), []).append(piece)
        cuts = [*accumulate((_behind_marks(text, cut, inside) for cut in cuts), max)]
        widths = [0, *accumulate(map(_width, text))]
        places = [n for n in range(1, len(text)) if _may_break(text, n)]
        cuts = self._cuts(text, cuts, widths, [place for place in places if place not in inside])
        added = dict.fromkeys([0, *cuts], "")
        for cut, between in zip(cuts, self.breaks, strict=True):
            added[cut] += between
        for (a, b), lines in zip(pairwise([0, *cuts, len(text)]), self.lines, strict=True):
            inner = [place for place in places if a < place < b]
            added |= dict.fromkeys(_line_ends(text, widths, (a, b), lines, inner), self.eol)
        return "".join(self._written(text, tags, added))

    def _cuts(self, text: str, cuts: list[int], widths: list[int], places: list[int]) -> list[int]:
        """Return where the cues end: by alignment, or in proportion to the times."""
        cues = zip(pairwise([0, *cuts, len(text)]), self.times, self.marks, strict=True)
        if all(
            0 < widths[b] - widths[a] <= FASTEST * time
            and (is_mark or any(map(str.isalnum, text[a:b])))
            for (a, b), time, is_mark in cues
        ):
            return cuts
        total, spent = sum(self.times), [*accumulate(self.times)][:-1]
        found = nearest([widths[-1] * time / total for time in spent], widths, places)
        return found if len(found) == len(cuts) else cuts

    def _written(
        self, text: str, tags: dict[int, list[Tag]], added: dict[int, str]
    ) -> Iterator[str]:
        place = 0
        for end in sorted({*tags, *added, len(text)}):
            piece, following, here = text[place:end], added.get(end, ""), tags.get(end, [])
            piece = piece.rstrip() if following else piece
            yield escape(piece, quote=False) if self.escapes else piece
            closing = next((n for n, tag in enumerate(here) if tag.kind != "close"), len(here))
            yield from (tag.raw for tag in here[:closing])
            yield following
            yield from (tag.raw for tag in here[closing:])
            white = _WHITE.match(text, end) if following else None
            place = white.end() if white else end


def _line_ends(
    text: str, widths: list[int], cue: tuple[int, int], lines: int, places: list[int]
) -> list[int]:
    """Return where a cue's lines end: at spaces and after marks, or anywhere if one is too long."""
    (start, end), total = (widths[place] for place in cue), widths[cue[1]] - widths[cue[0]]
    longest = LONGEST_WIDE if 2 * total > 3 * (cue[1] - cue[0]) else LONGEST
    fewest = -(-total // longest)
    good = [n for n in places if text[n].isspace() or not text[n - 1].isalnum()]
    for count, among in ((max(lines, fewest), good), (fewest, places)):
        shares = [start + total * n / count for n in range(1, count)]
        found = nearest(shares, widths, among)
        at = [start, *(widths[place] for place in found), end]
        if among == places or all(b - a <= longest for a, b in pairwise(at)):
            break
    return found


def _behind_marks(text: str, cut: int, inside: Container[int]) -> int:
    """Return the place after closing marks that follow a cut, unless it is in an element."""
    end = cut
    while 0 < end < len(text) and _closes(text, end):
        end += 1
    return cut if end in inside or end == len(text) else end


def _closes(text: str, place: int) -> bool:
    """Return whether a mark belongs to the character before it, so that no line begins with it."""
    before, mark = text[place - 1], text[place]
    wide = _width(before) == 2 or before in "”’"
    return not before.isspace() and (mark in _CLOSING or (mark in "”’" and wide))


def _may_break(text: str, place: int) -> bool:
    """Return whether a line may end before this character, which is dropped if it is a space."""
    before, after = text[place - 1], text[place]
    if after.isspace() or before.isspace():
        return after.isspace() and not before.isspace()
    is_wide = _width(after) == 2 and (_width(before) == 2 or before in "”’…")
    begins = after.isalnum() or unicodedata.category(after) == "Ps"
    return is_wide and begins and unicodedata.category(before) != "Ps"


def _width(letter: str) -> int:
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
