"""Which encodings are offered for a file that is not UTF-8."""

import re
from pathlib import Path

import pytest

from dragoman.errors import InputError
from dragoman.files.reading import read_lines


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Der Mann fährt über die Straße.", "cp1252"),
        ("It’s “5 €”.", "cp1252"),
        ("Hdźe je šula?", "cp1250"),
        ("Maja mać čita, tři psy spí.", "cp1250"),
        ("Bērni lasa grāmatu.", "cp1257"),
        ("术语库,termbase", "gb18030"),
        ("茶,tea", "gb18030"),
        ("我喜欢学习人工智能。", "gb18030"),
        ("我喜歡學習人工智慧。", "big5"),
        ("私は人工知能を勉強します。", "shift_jis"),
        ("私は人工知能を勉強します。", "euc-jp"),
        ("나는 인공지능을 공부한다.", "euc-kr"),
        ("Я изучаю искусственный интеллект.", "koi8-r"),
        ("Я изучаю искусственный интеллект.", "cp1251"),
    ],
)
def test_each_encoding_that_fits_is_offered_with_what_it_reads(
    text: str, encoding: str, tmp_path: Path
) -> None:
    """The right one first, with a part of the right text, whatever the others read."""
    path = tmp_path / "a.txt"
    path.write_bytes(f"x\n{text}\n".encode(encoding))
    with pytest.raises(InputError, match="line 2 is not UTF-8") as caught:
        list(read_lines(path))
    offered = re.findall(r"([-\w]+) reads '(.*?)'[,)]", str(caught.value))
    assert dict(offered)[encoding.upper()] in text
    assert offered[0][0] == encoding.upper()
    assert f"iconv -f {encoding.upper()} -t UTF-8" in str(caught.value)
