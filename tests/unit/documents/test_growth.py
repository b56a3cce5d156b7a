"""What small files could make slow or large."""

from time import thread_time

import pytest
from tests.word_translator import translated


@pytest.mark.parametrize(
    "start", ['<table:table-cell office:string-value="a">', "<office:annotation>"]
)
def test_what_a_comment_begins_is_not_sought_anew(start: str) -> None:
    """The end of each was sought to the end of the file: for seconds in one of 400 kB."""
    cell = '<table:table-cell office:string-value="a b"><text:p>a b</text:p>'
    space = 'xmlns:office="o" xmlns:table="u" xmlns:text="t"'
    comment = f"<!--{start * 9_000}-->"
    data = f"<a {space}>{cell}{comment}</table:table-cell>{comment}</a>"
    begin = thread_time()
    made, *_ = translated(data, "a.fods")
    assert thread_time() - begin < 3
    assert "<text:p>A B</text:p>" in made
