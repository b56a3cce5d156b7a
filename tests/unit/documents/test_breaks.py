"""What is read for a line break: a space, but between characters of Chinese or Japanese none."""

import pytest
from tests.word_translator import WordTranslator, translated

CUE = "1\n00:00:01,000 --> 00:00:03,000\n"


@pytest.mark.parametrize(
    ("source", "name", "lines"),
    [
        ("今天天\n气好", "a.md", ["今天天气好"]),
        ("> **今天天**\n> *气好*", "a.md", ["今天天气好"]),
        ("天“好。”\n她——\r\n我", "a.md", ["天“好。”她——我"]),
        ("天  \n气\\\n好", "a.md", ["天 气 好"]),
        ("中文\nword\n中文", "a.md", ["中文 word 中文"]),
        ("중국\n역사 天\n한", "a.md", ["중국 역사 天 한"]),
        ("ไทย\nไทย a“\n”b 😀\n😀", "a.md", ["ไทย ไทย a“ ”b 😀 😀"]),
        ("<p>ラ\n ー<b>、\n</b>カ</p>", "a.html", ["ラー、カ"]),
        ("天<br>\n气<code>天\n气</code>", "a.html", ["天 气天 气"]),
        (f"{CUE}<i>今天天</i>\n气\n\n{CUE}天\nit\nis\n", "a.srt", ["今天天气", "天 it is"]),
        ("a: 天\n  气\n  it\nb: \"天\n  气\n\n  天\\\n  x\"\nc: '天\n  气'", "a.yaml",
         ["天气 it", "天气 天x", "天气"]),
        ("a: >\n  天\n  气\n  it\n", "a.yaml", ["天气 it"]),
    ],
)  # fmt: skip
def test_a_line_break_in_chinese_is_no_space(source: str, name: str, lines: list[str]) -> None:
    """In other languages it is one, and an unchanged file has its bytes."""
    made, seen, _ = translated(source, name, WordTranslator())
    assert (made, seen) == (source, lines)
