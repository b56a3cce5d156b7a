"""Messages that choose a form: branches are translated, everything else is unchanged."""

import json
import re
from random import Random
from xml.sax.saxutils import escape, unescape

import polib
import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.word_translator import WordTranslator, backwards, translated

from dragoman.documents import choices
from dragoman.documents.choices import LEFT, branches
from dragoman.text.marked import Marked, Tag


def written(message: str, form: str) -> tuple[str, str]:
    """A file that has the message, and its name."""
    if form == "single":
        quoted = message.replace("'", "''")
        return f"a: &x '{quoted}'\nb: 1\n", "a.yaml"
    if form == "double":
        return f"a: {json.dumps(message, ensure_ascii=False)} # c\n", "a.yaml"
    return json.dumps({"a": [message]}, ensure_ascii=form == "ascii"), "a.json"


def changed(
    message: str, form: str, translator: WordTranslator | None = None
) -> tuple[str, tuple[str, ...]]:
    """The message in the translated file, which is otherwise the same, and what is left."""
    if form in {"po", "tmx"}:
        return put_beside(message, form, translator)
    source, name = written(message, form)
    made, _, report = translated(source, name, translator)
    value = yaml.safe_load(made)["a"] if name == "a.yaml" else json.loads(made)["a"][0]
    assert (made, name) == written(value, form)
    return value, report.left


def put_beside(
    message: str, form: str, translator: WordTranslator | None
) -> tuple[str, tuple[str, ...]]:
    """The same of a file in which translations stand beside their sources, which stay."""
    if form == "po":
        source = polib.POFile()
        source.append(polib.POEntry(msgid=message))
        made, _, report = translated(str(source), "a.po", translator)
        (entry,) = polib.pofile(made)
        assert entry.msgid == message
        return entry.msgstr or message, report.left
    unit = '<tu><tuv xml:lang="en" xml:space="preserve"><seg>{}</seg></tuv></tu>'
    source = f'<tmx><header srclang="en"/><body>{unit.format(escape(message))}</body></tmx>'
    made, _, report = translated(source, "a.tmx", translator)
    first, *others = map(unescape, re.findall("(?s)<seg>(.*?)</seg>", made))
    assert first == message
    return "".join(others) or message, report.left


def drawn(draw: Random, depth: int, change: type[str] | None = None) -> str:
    """A message that chooses; equal draws make the same one, in capitals if it is to change."""

    def branch() -> str:
        if depth and draw.random() < 0.4:
            return drawn(draw, depth - 1, change)
        words = draw.choices(["dog", "été", "l'eau", '"so"', "\U0001f600", "up\n", "a"], k=3)
        copied = draw.choices(["#", "{n}", "{d, date, short}", "'{q}'", "{0}"], k=2)
        words = [word.upper() if change else word for word in words]
        return f"{words[0]} {copied[0]} {words[1]} {words[2]}, {copied[1]}" * draw.randint(0, 1)

    space, of = draw.choice(["", " "]), draw.choice(["n", "0", "dog.count", "n-x", "é"])
    kinds = ["plural,offset:1 ", "select,", "selectordinal, "]
    names = draw.choice(["=0 one", "male x", "few =12"]).split()
    forms = "".join(f"{space}{name}{space}{{{branch()}}}" for name in [*names, "other"])
    return f"{{{space}{of},{space}{draw.choice(kinds)}{forms}{space}}}"


@pytest.mark.parametrize("form", ["json", "ascii", "single", "double", "po", "tmx"])
def test_the_text_of_branches_is_translated(form: str) -> None:
    """Nested or not, in all escapes; arguments, #, quoted text and the skeleton stay."""
    for seed in range(60):
        message, expected = (drawn(Random(seed), 2, change) for change in (None, str))
        if form == "single":  # which has no line ends
            message, expected = message.replace("\n", ""), expected.replace("\n", "")
        assert changed(message, form, WordTranslator(str)) == (message, ())
        assert changed(message, form) == (expected, ())


@pytest.mark.parametrize("form", ["json", "ascii", "double", "po", "tmx"])
def test_a_damaged_message_is_copied_or_read_as_it_is(form: str) -> None:
    """Never are its signs others than before."""
    for seed in range(120):
        draw = Random(seed)
        message = drawn(draw, 2)
        place = draw.randrange(len(message))
        damaged = message[:place] + draw.choice(["", "{", "}", "#"]) + message[place + 1 :]
        new, left = changed(damaged, form)
        assert re.sub(r"\w", "", new) == re.sub(r"\w", "", damaged)
        assert not left or new == damaged


@pytest.mark.parametrize(
    "message",
    [
        "{n, plural, one {# dog} other {# dogs}",
        "{n, plural, one {a '{dog} other {b}}",
        "Now {n, plural, one {# dog} other {# dogs}}",
        "{n, plural, one {a {m, select, x {b}}} other {c}}",
        "{n, plural, {# dog}}",
        "{0,choice,0#no dogs|1#a dog|1<{0,number} dogs}",
        "{n, plural, one {a}}}",
        "{n, plural, one {" * 9 + "a" + "}}" * 9,
        "{n, plural, one {" + "a " * 40_000 + "}}",
    ],
)
def test_what_is_no_whole_message_is_copied_and_told(message: str) -> None:
    """Malformed, with text around a choice, too deep, too long."""
    wheres = {"json": 'line 1, "a"', "double": "line 1, a", "po": "line 5", "tmx": "unit"}
    for form, where in wheres.items():
        new, left = changed(message, form)
        assert (new, left) == (message, (f"{LEFT}: {where}",))


def test_blocks_and_broken_lines_of_yaml_are_copied_and_told() -> None:
    """Their line ends are no part of the message."""
    source = 'a: "{n, plural, one {b}\n  other {c}}"\nb: >\n  {n, plural, one {b}}\n'
    made, _, report = translated(source, "a.yaml")
    assert (made, report.left) == (source, (f"{LEFT}: line 1, a; line 3, b",))


def test_a_number_of_the_form_is_read_for_its_sign() -> None:
    """The sign comes back, wherever the number goes; in a choice that does not count it is text."""
    message = (
        "{a, select, other {{n, plural, =0 {no #} one {a #} two {b #} other {c # {x}}}} "
        "male {{m, selectordinal, few {{x, select, y {# time}}} other {the #}}} female {# d}}"
    )
    translator = WordTranslator(str.upper, backwards)
    new, _ = changed(message, "json", translator)
    assert translator.lines == ["no 0", "a 1", "b 2", "c 5 {x}", "3 time", "the 5", "# d"]
    copied = [
        line[slice(*at[0])] for line, at in zip(translator.lines, translator.kept, strict=True)
    ]
    assert copied == [*"012535#"]
    assert new == (
        "{a, select, other {{n, plural, =0 {# NO} one {# A} two {# B} other {{x} # C}}} "
        "male {{m, selectordinal, few {{x, select, y {TIME #}}} other {# THE}}} female {D #}}"
    )


def test_signs_of_messages_from_the_model_are_quoted() -> None:
    """They are read as what they are; an apostrophe does not quote what follows."""
    message = "{n, plural, one {a#} other {b}}"
    words = {"a": "l'", "b": "{x} '# y"}
    translator = WordTranslator(lambda word: words.get(word, word))
    new, _ = changed(message, "json", translator)
    assert new == "{n, plural, one {l''#} other {'{'x'}' '''#' y}}"
    assert branches(new) is not None


def test_elements_of_html_in_branches_are_tags() -> None:
    """But for those of a message with apostrophes, which may quote."""
    message = "{n, plural, one {# <b id=x>dog</b>} other {<i>dogs</i>, <all>}}"
    new, _ = changed(message, "json")
    assert new == "{n, plural, one {# <b id=x>DOG</b>} other {<i>DOGS</i>, <ALL>}}"
    new, _ = changed(message.replace("=x", "=''x''"), "json")
    assert new == "{n, plural, one {# <B ID='X'>DOG</B>} other {<I>DOGS</I>, <ALL>}}"


def kept(piece: str) -> tuple[Tag, str, Tag]:
    """The piece as one that is copied."""
    return Tag("", "open", kept=True), piece, Tag("", "close")


def read(marked: Marked) -> str:
    """What is shown of a branch that was read; brackets and # that are text are < > and $."""
    shown, copied = "", False
    for piece in marked.pieces:
        if isinstance(piece, Tag):
            copied = piece.kept
        elif copied and piece[0] == "'":
            shown += as_text(piece[1:-1].replace("''", "'"))
        else:
            shown += piece
    return shown


def as_text(piece: str) -> str:
    """What a program shows of a text."""
    return piece.translate(str.maketrans("{}#", "<>$"))


@given(
    st.lists(
        st.text("'{}#a", min_size=1)
        | st.sampled_from(["'{k}'", "'#'' x'", "'}'''", "#", "{n}"]).map(kept),
    )
)
@example([kept("'{k}'"), "'a"])
@example(["}'a", kept("'{k}'"), "'{'a"])
@example(["a''a'", kept("#")])
def test_what_is_written_is_read_as_the_same_text(parts: list[str | tuple[Tag, str, Tag]]) -> None:
    """Apostrophes and signs of messages, beside each other and beside what is copied."""
    assume(any(isinstance(one, str) and "a" in one for one in parts))
    pieces = [each for one in parts for each in ((one,) if isinstance(one, str) else one)]
    message = f"{{n, select, other {{{choices.written(Marked(tuple(pieces)))}}}}}"
    found = branches(message)
    assert found, message
    expected = [as_text(one) if isinstance(one, str) else read(Marked(one)) for one in parts]
    assert [read(marked) for _, _, marked in found] == ["".join(expected)]
