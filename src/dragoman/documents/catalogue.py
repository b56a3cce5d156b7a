"""Gettext catalogues (PO): messages without a translation, or with a fuzzy one."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from dragoman.documents import choices, restructured
from dragoman.documents.characters import decoded
from dragoman.documents.document import (
    Document,
    Left,
    Part,
    Segment,
    Segments,
    WrittenPart,
    reject_more,
)
from dragoman.documents.fragments import with_elements
from dragoman.documents.paragraphs import Replacing, lines
from dragoman.documents.rows import in_rows
from dragoman.errors import InputError
from dragoman.files.messages import escape_message, read_messages
from dragoman.text.marked import Marked, copying, with_texts

_WIDTH = 79
"""Maximum columns of a line, including its quotes."""


def read(data: bytes, name: str) -> Document:
    """Read the messages that have no translation, or a fuzzy one, which no program shows.

    A fuzzy one is translated again and is no longer fuzzy; the header, obsolete messages and
    translated ones are preserved. A message with several texts, such as the items of a list, is a
    separate part. Raises InputError if the file is not a catalogue.
    """
    charset = re.search(rb"charset=([\w-]+)", data)
    declared = charset[1].decode() if charset else ""
    text, encode = decoded(data, name, declared)
    parts, whole, left = list[Part](), dict[int, Segment](), Left()
    segments, place = Segments(name), 0  # of the next part
    write = restructured.written if restructured.is_of_sphinx(text) else Marked.written
    for segment in _segments(text, name, write):
        found = _texts_of(segment, write)
        if found is None:
            left.add(choices.LEFT, segment.where)
        elif isinstance(found, Segment):
            segments.append(replace(found, start=found.start - place, end=found.end - place))
        else:
            parts += Part(text[place : segment.start], segments or ()), found.part
            whole[len(parts) - 1] = segment
            segments, place = Segments(name), segment.end
    parts.append(Part(text[place:], segments))

    def assemble(written: Sequence[WrittenPart]) -> bytes:
        pieces = list[str]()
        for number, part in enumerate(written):
            if (message := whole.get(number)) is None:
                pieces += part
            elif part.is_changed:
                pieces.append(message.write(Marked(("".join(part),))))
            else:
                pieces.append(text[message.start : message.end])
        new = encode(pieces)
        if decoded(new, name, declared)[0] != "".join(pieces):
            raise InputError(
                f"{name} is in an encoding that lacks letters of the translation; convert it with "
                "msgconv -t UTF-8."
            )
        return new

    document = Document(tuple(parts), assemble, tuple(left))
    reject_more(document.firsts[-1], name)
    return document


_Write = Callable[[Marked], str]
"""Writes a translation with its tags: as it is, or as reStructuredText."""


def _segments(text: str, name: str, write_text: _Write) -> Iterator[Segment]:
    one_form, is_plain = False, write_text is Marked.written
    read = partial(copying, copied=_ARGUMENT) if is_plain else restructured.pieces_of
    for message in read_messages(text, name):
        texts = message.texts
        if "msgid" not in texts:
            raise InputError(
                f"{name} line {message.line} does not begin a message: it has no msgid."
            )
        if not texts["msgid"].value:
            one_form |= "nplurals=1" in "".join(each.value for each in texts.values())
            continue
        start = message.flags_start if message.is_fuzzy else None
        for keyword, each in texts.items():
            if not keyword.startswith("msgstr") or (each.value and not message.is_fuzzy):
                continue
            is_one = keyword == "msgstr" or (keyword == "msgstr[0]" and not one_form)
            source = texts["msgid"] if is_one else texts.get("msgid_plural", texts["msgid"])
            begin = each.start if start is None else start
            before, start = _not_fuzzy(text[begin : each.start]), None
            rows = text[source.start : source.end].split("\n")
            width = len(text) if max(map(len, rows)) > _WIDTH + 1 else _WIDTH
            end = "\r\n" if "\r\n" in text[each.start : each.end + 2] else "\n"
            write = partial(_written, before + keyword, write_text, width=width, end=end)
            chooses, where = choices.CHOICE.search(source.value), f"line {message.line}"
            marked = Marked((source.value,))
            if not chooses:
                marked = with_elements(with_texts(read(source.value), lines))
            yield Segment(begin, each.end, marked, write, where, beside=True)


def _texts_of(segment: Segment, write: _Write) -> Segment | Replacing | None:
    """Return the message, or its rows or branches separately; None if branches cannot be read."""
    if not choices.CHOICE.search(segment.source.text):
        return in_rows(segment, lambda _: False, ("", write, ""))
    part = choices.part_of(segment.source.pieces, segment.where)
    return None if part is None else Replacing(segment.start, segment.end, part)


_ARGUMENT = re.compile(r"%L?\d{1,2}(?![\w$])")
"""Placeholders of Qt and KDE; in other texts, %5 may be Turkish for 5%."""


def _not_fuzzy(before: str) -> str:
    """Return the lines of a message before its translation, without the flag and the old source."""
    kept = list[str]()
    for row in re.findall(r"[^\n]*\n|[^\n]+", before):
        if row.lstrip().startswith("#|"):
            continue
        if row.lstrip().startswith("#,"):
            flags = [
                flag for flag in re.split(r"[,\s]+", row.strip()[2:]) if flag not in {"", "fuzzy"}
            ]
            kept += [f"#, {', '.join(flags)}{row[len(row.rstrip()) :]}"] if flags else []
        else:
            kept.append(row)
    return "".join(kept)


def _written(before: str, write: _Write, translation: Marked, *, width: int, end: str) -> str:
    """Write a text after its keyword: on one line, or broken at line breaks and spaces."""
    rows = [escape_message(row) for row in re.findall(r"[^\n]*\n|[^\n]+", write(translation))]
    if not rows or (len(rows) == 1 and len(rows[0]) + 12 <= width):
        return f'{before} "{"".join(rows)}"'
    broken = [""]
    for row in rows:
        for word in re.findall(r"[^ ]* +|[^ ]+", row):
            if len(broken[-1] + word) + 2 > width and broken[-1]:
                broken.append("")
            broken[-1] += word
        broken.append("")
    return end.join([f'{before} ""', *(f'"{row}"' for row in broken if row)])
