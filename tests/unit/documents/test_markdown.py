"""What of Markdown is read as a sentence, and what stays out of it."""

import pytest
from tests.unit.documents.test_texts import translated


@pytest.mark.parametrize(
    ("source", "expected", "lines"),
    [
        ("a<br>b\n", "A<br>B\n", ["a b"]),
        ("a *b<br/>c* <wbr>d\n", "A *B<br/>C* <wbr>D\n", ["a b c d"]),
        ("|a|\n|-|\n|b<BR>c<br>d|\n", "|A|\n|-|\n|B<BR>C<br>D|\n", ["a", "b c d"]),
    ],
)
def test_a_line_break_of_html_is_a_space(source: str, expected: str, lines: list[str]) -> None:
    """As in a page; `<wbr>` is none."""
    assert translated(source, "a.md")[:2] == (expected, lines)
