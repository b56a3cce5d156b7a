"""Tables: which cells are translated, and when they get quotes."""

import pytest
from tests.word_translator import WordTranslator, in_capitals, translated

from dragoman.documents.formats import read_document
from dragoman.documents.translate import translate_document
from dragoman.errors import InputError


def test_tables() -> None:
    """Cells with text but for the first row; quotes stay, and come where they are needed."""
    source = 'id;text\r\n1;"a ""b""\nc"\r\n2;d'
    data, lines, _ = translated(source, "a.csv")
    assert data == 'id;text\r\n1;"A ""B""\nC"\r\n2;D'
    assert lines == ['a "b"', "c", "d"]
    comma = WordTranslator(lambda word: f"{word},")
    assert translated("a,b\nc,d e", "a.csv", comma)[0] == 'a,b\n"c,","d, e,"'
    inches = '5" pipe,7" pipe\na b,"c"'
    assert translated(inches, "a.csv")[0] == inches.replace('a b,"c"', 'A B,"C"')
    assert translated('a,"b;\nc;"\nd e,f', "a.csv", comma)[0] == 'a,"b;\nc;"\n"d, e,","f,"'
    assert translated("a\tb\nc\td e", "a.tsv", comma)[0] == "a\tb\nc,\td, e,"


def test_columns_of_a_table() -> None:
    """By name or number."""
    for asked in ("b", "2"):
        document = read_document(b"a,b\nc,d\n", "a.csv", columns=[asked])
        assert translate_document(document, WordTranslator(str.upper))[0] == b"a,b\nc,D\n"
    with pytest.raises(InputError, match=r"has no column titel; did you mean title\?"):
        read_document(b"id,title\nc,d\n", "a.csv", columns=["titel"])


def test_the_line_of_excel_with_the_separator_stays() -> None:
    """The next row names the columns."""
    source = "\ufeffsep=;\r\nid,no;text\r\na b;c, d\r\n"
    document = read_document(source.encode(), "a.csv", columns=["text"])
    made, _ = translate_document(document, WordTranslator(str.upper))
    assert made == source.replace("c, d", "C, D").encode()


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.jsonl", '{"id": "a b", "t": "«c d»"}\n{"t": ["«e»", {"x": "«f»"}], "u": "g"}\n["h"]'),
        ("a.json", '[{"x": {"t": {"y": "«a»"}, "z": "b"}, "t": "«c»"}, [["d"]], {"t": 1}, "e"]'),
        ("a.yaml", "t: «c d»\n? [t, u]\n: e f\n"),
        ("a.yaml", "id: a b\nx: {t: «c d»}\n? [t, u]\n: v\nt:\n  - y: «e»\n  - «f»\ng: [[h]]\n"),
    ],
)
def test_keys_of_json_and_yaml(name: str, source: str) -> None:
    """All that is under a requested key, and nothing else."""
    before, after = in_capitals(source)
    document = read_document(before.encode(), name, columns=["t"])
    assert translate_document(document, WordTranslator(str.upper))[0].decode() == after
    with pytest.raises(InputError, match=r"has no key other; correct it\."):
        read_document(before.encode(), name, columns=["t", "other"])


def test_a_key_below_another() -> None:
    """It is in the file, whether or not what is around it is translated."""
    assert read_document(b'{"t": {"y": "a b"}}', "a.json", columns=["t", "y"]).parts


def test_a_quote_in_a_cell_without_quotes() -> None:
    """Readers of TSV that know no quotes have it as it is; in CSV it may be an error, if new."""
    quoting = WordTranslator(lambda word: f'{word}"')
    assert translated('a\tb\nA "man"\td', "a.tsv")[0] == 'a\tb\nA "MAN"\tD'
    assert translated("a\tb\nc\td e", "a.tsv", quoting)[0] == 'a\tb\nc"\td" e"'
    assert translated("a,b\nc,d e", "a.csv", quoting)[0] == 'a,b\n"c""","d"" e"""'
    assert translated('a,b\n5" c,d', "a.csv")[0] == 'a,b\n5" C,D'
    first = WordTranslator(lambda word: f'"{word}"')
    assert translated("a\tb\nc\td", "a.tsv", first)[0] == 'a\tb\n"""c"""\t"""d"""'
