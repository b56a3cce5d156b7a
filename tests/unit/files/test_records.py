"""What is between the cells of a table."""

from pathlib import Path

import pytest

from dragoman.files.records import TAB, read_rows, separator_in, separator_of


@pytest.mark.parametrize(
    ("lines", "separator"),
    [
        (["a,b", "c;d,e"], ","),
        (["a;b", "Yes, well;Ja, doch"], ";"),
        (["Yes, well, then;Ja, doch", "one, two;eins, zwei, drei"], ";"),
        (["3,5 kg;3,5 Kilo"], ";"),
        (["1,5;2,5\n", "3,5;4,5\n"], ";"),
        (["Yes; well,Ja; doch", "one; two,eins; zwei"], ","),
        (['"a;b",c', '"d;e",f'], ","),
        (['"a, b\n', 'c";d', "e, f;g"], ";"),
        (["one; two,eins", "three;3,drei"], ","),
        (["sep=;\n", "a, b;c, d\n"], ";"),
        (["sep=,", "a;b,c"], ","),
        (["a", "b"], ","),
        ([], ","),
    ],
)
def test_the_first_rows_tell_the_separator_of_a_csv(lines: list[str], separator: str) -> None:
    """Outside quotes, and whichever row comes first."""
    assert separator_in(lines) == separator


def test_a_name_tells_the_kind_of_a_table(tmp_path: Path) -> None:
    """A TSV has neither commas nor quotes between its cells."""
    for name, cells in (("a.tsv", ['"3,5";"3', '5"']), ("a.csv", ["3,5", "3\t5"])):
        (tmp_path / name).write_text('"3,5";"3\t5"\n', "utf-8")
        ((_, row, _),) = read_rows(tmp_path / name)
        assert row == cells
    assert separator_of(tmp_path / "a.tsv") == TAB


def test_the_line_that_names_the_separator_is_no_row(tmp_path: Path) -> None:
    """It is written as a part of the first row, and the rows after it have their own lines."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"sep=;\r\nEnglish;German\r\nYes.;Ja.\r\n")
    rows = [(number, cells) for number, cells, _ in read_rows(path)]
    assert rows == [(1, ["English", "German"]), (3, ["Yes.", "Ja."])]
    assert "".join(f"{raw}\n" for *_, raw in read_rows(path)).split() == path.read_text().split()
