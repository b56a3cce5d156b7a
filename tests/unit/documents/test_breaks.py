"""Line breaks are read as a space, but as nothing between Chinese or Japanese characters."""

import pytest
from tests.word_translator import WordTranslator, translated

from dragoman.text.marked import Marked, Tag
from dragoman.text.putback import put_back

FULL = "我们昨天，下午去图书馆借了两本书和一本关于中国历"
LAST = "史的书，一直到晚上。"
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
        (f"a: |\n  {FULL}\n  {LAST}\n", "a.yaml", [FULL + LAST]),
        (f'msgid "{FULL}\\n{LAST}\\n天\\n气"\nmsgstr ""\n', "a.po", [f"{FULL}{LAST} 天 气"]),
    ],
)  # fmt: skip
def test_a_line_break_in_chinese_is_no_space(source: str, name: str, lines: list[str]) -> None:
    """In other languages it is one, and an unchanged file has its bytes."""
    made, seen, _ = translated(source, name, WordTranslator())
    assert (made, seen) == (source, lines)


@pytest.mark.parametrize(
    ("rows", "goes_on"),
    [
        ((FULL, FULL[2:], LAST), True),
        ((FULL, LAST.replace("。", "！”")), True),
        ((FULL[4:], FULL, LAST[:-1]), False),
        ((FULL, f"（二）{LAST}"), False),
        ((FULL, LAST[:-1]), False),
        ((FULL, LAST.replace("。", "？")), False),
        ((f"{FULL[1:]}。", LAST), False),
        ((FULL, "", LAST), False),
        ((FULL[6:], LAST), False),
        (("역사" * 12, f"{'역사' * 6}。"), False),
        ((FULL, f"a{LAST}"), False),
    ],
)
def test_full_lines_of_chinese_go_on(rows: tuple[str, ...], *, goes_on: bool) -> None:
    """Up to the end of a sentence, where each is as full as any; titles and items do not."""
    source = "\n".join(rows)
    made, lines, _ = translated(source, "a.txt", WordTranslator())
    assert lines == (["".join(rows)] if goes_on else [row for row in rows if row])
    assert made == source


def test_a_line_break_that_is_no_space_becomes_one_in_english() -> None:
    """It stands in the place of a space."""
    source = Marked(("天气", Tag("\n"), "好吗"))
    made = put_back(source, "the weather well", [(0, 2, 4, 11), (2, 4, 12, 16)])
    assert made.written() == "the weather\nwell"
