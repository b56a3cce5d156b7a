"""The page of the command line: every sentence of it has its Chinese, and no other is kept."""

import re

import pytest

from commands import cli_page, read_table, translated
from excerpts import Wrong

ENGLISH = cli_page("en").replace("&lt;tab&gt;", "<tab>").partition("\n\n")[2].partition("\n\n")[2]
TABLE = read_table()


def test_both_languages_have_the_same_commands_and_options() -> None:
    """Headings, names, usage and examples in the same order, and the same defaults."""
    pages = [cli_page("en"), cli_page("zh")]
    for pattern in (r"^#+ .+$", r"^\* `[^`]+`", r"^\$ .+$", r"^    dragoman .+$"):
        english, chinese = (re.findall(pattern, page, re.M) for page in pages)
        assert english == chinese
        assert len(english) > 10
    english, chinese = (re.findall(r"\[(?:default: |默认：)(.+)\]$", page, re.M) for page in pages)
    assert english == chinese


def test_the_chinese_page_is_chinese() -> None:
    """No sentence is left in English."""
    prose = re.sub(r"```.*?```|`[^`]*`|^#.*$|^    .*$", "", cli_page("zh"), flags=re.S | re.M)
    lines = [line for line in prose.splitlines() if re.search(r"[A-Za-z]{3,}", line)]
    assert [line for line in lines if not re.search("[\u4e00-\u9fff]", line)] == []


def test_every_sentence_of_the_table_is_needed() -> None:
    """Without it the page cannot be made, and the error says what is missing."""
    with pytest.raises(Wrong, match=r"cli\.zh\.toml has no Chinese for\n") as wrong:
        translated(ENGLISH, {})
    assert TABLE.keys() <= {*str(wrong.value).splitlines()}


def test_a_list_of_verbs_has_the_first_sentence() -> None:
    """The help shows only the beginning of a verb's first paragraph there."""
    table = {
        "Do it well, and tell. Or not.": "做好，并说明。或者不做。",
        "Sum of all: more.": "总和：更多。",
    }
    verbs = "* `do`: Do it well, and...\n* `sum`: Sum of all:..."
    assert translated(f"{verbs}\n\nDo it well, and tell. Or not.\n\nSum of all: more.", table) == (
        "* `do`：做好，并说明。\n* `sum`：总和。\n\n做好，并说明。或者不做。\n\n总和：更多。"
    )
