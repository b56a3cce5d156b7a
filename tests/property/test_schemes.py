"""Laws of span schemes, for any spans."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.tagged import Scheme, Span, detect_scheme, find_spans, to_bio


@st.composite
def sentences(draw: st.DrawFn) -> tuple[list[Span], int]:
    """Draw spans that do not overlap, and the length of their sentence."""
    spans, place = [], 0
    for gap, length, type_ in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from("XY")), max_size=6)
    ):
        spans.append(Span(place + gap, place + gap + length, type_))
        place += gap + length
    return spans, place + draw(st.integers(0, 2))


def as_bioes(spans: list[Span], length: int) -> list[str]:
    """Return the tags with span ends marked."""
    tags = to_bio(spans, length)
    for span in spans:
        last = "S" if span.stop - span.start == 1 else "E"
        tags[span.stop - 1] = f"{last}-{span.type}"
    return tags


def as_iob1(spans: list[Span], length: int) -> list[str]:
    """Return the tags with B only where it is needed."""
    tags = to_bio(spans, length)
    for before, span in zip([None, *spans], spans, strict=False):
        if before is None or (before.stop, before.type) != (span.start, span.type):
            tags[span.start] = f"I-{span.type}"
    return tags


@given(sentences())
def test_writing_and_reading_are_inverse(sentence: tuple[list[Span], int]) -> None:
    """In all three schemes the spans come back, and nothing is malformed."""
    spans, length = sentence
    written: dict[Scheme, list[str]] = {
        "bio": to_bio(spans, length),
        "iob1": as_iob1(spans, length),
        "bioes": as_bioes(spans, length),
    }
    for scheme, tags in written.items():
        assert find_spans(tags, scheme) == (spans, 0)
    if spans:
        assert detect_scheme([written["bioes"]]) == "bioes"
        assert detect_scheme([written["iob1"]]) == "iob1"
        assert detect_scheme([written["bio"]]) == "bio"


@given(st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y", "E-X", "S-Y"]), max_size=12))
def test_any_tags_are_read(tags: list[str]) -> None:
    """Spans of broken tags are ordered, do not overlap, and cover exactly the tagged words."""
    spans, _ = find_spans(tags, "bioes")
    covered = [place for span in spans for place in range(span.start, span.stop)]
    assert covered == [place for place, tag in enumerate(tags) if tag != "O"]
    assert all(tags[i][2:] == span.type for span in spans for i in range(span.start, span.stop))
    assert find_spans(to_bio(spans, len(tags))) == (spans, 0)
