"""Span schemes: each becomes BIO, is recognised, and is read leniently where it is broken."""

import pytest

from dragoman.data.tagged import Scheme, Span, bio_labels, detect_scheme, find_spans, to_bio

SAME: dict[Scheme, str] = {  # one sentence, written each way
    "bio": "B-A B-A I-A O B-B I-B B-A",
    "iob1": "I-A B-A I-A O I-B I-B I-A",
    "bioes": "S-A B-A E-A O B-B E-B S-A",
}
SPANS = [Span(0, 1, "A"), Span(1, 3, "A"), Span(4, 6, "B"), Span(6, 7, "A")]


@pytest.mark.parametrize("scheme", SAME)
def test_each_scheme_says_the_same(scheme: Scheme) -> None:
    """The same spans are read, nothing is malformed, and the scheme is recognised."""
    tags = SAME[scheme].split()
    assert find_spans(tags, scheme) == (SPANS, 0)
    assert to_bio(SPANS, len(tags)) == SAME["bio"].split()
    assert detect_scheme([tags]) == scheme


@pytest.mark.parametrize(
    ("begin", "inside", "end", "single"), [tuple("BMES"), tuple("BILU"), tuple("BIES")]
)
def test_the_dialects_of_bioes(begin: str, inside: str, end: str, single: str) -> None:
    """M is I, L is E, U is S."""
    tags = [f"{begin}-A", f"{inside}-A", f"{end}-A", f"{single}-A", "O"]
    assert detect_scheme([tags]) == "bioes"
    assert find_spans(tags, "bioes") == ([Span(0, 3, "A"), Span(3, 4, "A")], 0)


@pytest.mark.parametrize(
    ("scheme", "tags", "spans", "malformed"),
    [
        ("bio", "O I-A I-A", [(1, 3, "A")], 1),
        ("bio", "B-A I-B", [(0, 1, "A"), (1, 2, "B")], 1),
        ("bio", "I-A O I-A", [(0, 1, "A"), (2, 3, "A")], 2),
        ("iob1", "I-A I-B", [(0, 1, "A"), (1, 2, "B")], 0),
        ("iob1", "I-A B-B O B-A", [(0, 1, "A"), (1, 2, "B"), (3, 4, "A")], 2),
        ("bioes", "B-A I-A", [(0, 2, "A")], 1),
        ("bioes", "B-A O", [(0, 1, "A")], 1),
        ("bioes", "B-A S-B", [(0, 1, "A"), (1, 2, "B")], 1),
        ("bioes", "E-A", [(0, 1, "A")], 1),
        ("bioes", "I-A E-A", [(0, 2, "A")], 1),
        ("bioes", "B-A E-B", [(0, 1, "A"), (1, 2, "B")], 2),
    ],
)
def test_broken_spans_are_read_and_counted(
    scheme: Scheme, tags: str, spans: list[tuple[int, int, str]], malformed: int
) -> None:
    """What goes on with nothing begins; what is not ended ends before what is not its own."""
    assert find_spans(tags.split(), scheme) == ([Span(*span) for span in spans], malformed)


@pytest.mark.parametrize(
    ("files", "scheme"),
    [
        (["O O", "O"], "bio"),
        (["I-A I-A O", "O"], "iob1"),
        (["I-A B-A", "I-B"], "iob1"),
        (["B-A I-A", "O I-A"], "bio"),  # an I that begins is a slip there
        (["I-A I-A", "O I-A", "B-A"], "iob1"),  # and so is a needless B here
        (["NN VB O"], "plain"),
        (["B-A I-A", "E-A"], "bioes"),
        (["B-A PER"], "bio"),
    ],
)
def test_the_scheme_is_that_of_the_whole_file(files: list[str], scheme: Scheme) -> None:
    """Most beginnings decide between BIO and IOB1; one E makes BIOES."""
    assert detect_scheme([tags.split() for tags in files]) == scheme


def test_types_may_hold_hyphens() -> None:
    """The prefix ends at the first hyphen."""
    assert find_spans(["B-A-B", "I-A-B"])[0] == [Span(0, 2, "A-B")]


def test_labels_are_ordered() -> None:
    """O, then beginning and inside of each type in order."""
    assert list(bio_labels(["B", "A", "B"])) == ["O", "B-A", "I-A", "B-B", "I-B"]
