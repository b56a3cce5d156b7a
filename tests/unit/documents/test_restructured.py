"""Messages of Sphinx: markup of reStructuredText stays, and is read as such in the translation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.word_translator import in_capitals, translated

from dragoman.documents.restructured import pieces_of, written
from dragoman.text.marked import Marked, Tag

PO = '#: ../../index.rst:2\nmsgid "{}"\nmsgstr "{}"\n'
MESSAGES = [
    "«See» :ref:`«the guide» <a b>` «and» ``pip install``, *«please it»*.",
    "`«Read more» <https://a.b/c_d>`__ «or» `a b`_ **«now»** |version| [1]_ [#a]_ c_d_",
    ":class:`~a.B` -- «it» :c:func:`d` «and» `e`",
    "«it» ``a``\\\\ «s» «is» *«args and» **«kwargs or» 2 * 3 * 4",
    "«it» (*«is»*): **«not»**, «nor» __«init»__",
]


def message(made: str) -> str:
    """The translation of the only message of a catalogue."""
    rows = made.partition("msgstr ")[2].strip().splitlines()
    return "".join(row[1:-1] for row in rows)


@pytest.mark.parametrize("marked", MESSAGES)
def test_markup_stays(marked: str) -> None:
    """Names of things and code are copied; titles and emphasised words are translated."""
    source, expected = in_capitals(marked)
    assert message(translated(PO.format(source, ""), "a.po")[0]) == expected


@pytest.mark.parametrize(
    ("source", "glued"),
    [
        ("a **b** c", r"a\ **b**\ c"),
        ("a ``b`` *c* d", r"a\ ``b``\ *c*\ d"),
        ("茶 (*a*) `b <c>`_ 。", r"茶 (*a*)\ `b <c>`_。"),
        ("a |b|, :c:`d` e", r"a\ |b|,\ :c:`d`\ e"),
    ],
)
def test_markup_is_no_part_of_a_word(source: str, glued: str) -> None:
    """In a language without spaces, an escaped space, which is not shown, is between them."""
    assert written(Marked((*pieces_of(source),))) == source
    pieces = list[str | Tag]()
    for piece in pieces_of(source):
        pieces.append(piece.strip() if isinstance(piece, str) and piece[:1] != "`" else piece)
    assert written(Marked(tuple(piece for piece in pieces if piece))) == glued


SIGNS = [*"`*|_\\ a的(.", "``", "**", "\\ ", "<a>", ":b:", "[1]_"]


@given(st.lists(st.sampled_from(SIGNS), max_size=9).map("".join))
def test_a_message_is_written_as_it_was_read(text: str) -> None:
    """Signs that reStructuredText would not read as markup, as in `a_(`, do not become markup."""
    assert written(Marked((*pieces_of(text),))) == text


def test_other_catalogues_have_no_markup() -> None:
    """What a program shows between asterisks is text, unless a role tells that Sphinx reads it."""
    plain = PO.replace(".rst", ".c")
    assert message(translated(plain.format("*a_ b*c", ""), "a.po")[0]) == "*A_ B*C"
    assert message(translated(plain.format(":x:`b` c_ d", ""), "a.po")[0]) == ":x:`b` c_ D"
