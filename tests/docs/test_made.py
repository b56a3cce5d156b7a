"""Pages that are made: of the command line, of what commands print, of the slides of a lesson."""

import re
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, name_of
from tests.docs.walk import ROUNDING, differences

from commands import cli_page, read_table, translated
from excerpts import Wrong
from printed import PRINTED, printed, shown
from slides import FOLDER, LESSON, SLIDE, sections, slides_page
from staging import DOCS

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


SHOWN = [
    (page, found) for page in PAGES for found in PRINTED.finditer(page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(
    ("page", "found"),
    SHOWN,
    ids=[f"{name_of(page)}-{found['opening'] or 'all'}" for page, found in SHOWN],
)
def test_a_command_prints_what_its_page_says(page: Path, found: re.Match[str]) -> None:
    """Line by line; memory to a tenth, since each kind of processor multiplies by other kernels."""
    said, heard = found["said"].splitlines(), shown(found).splitlines()
    assert len(said) == len(heard), f"run python docs/make.py pages for {page.name}"
    lost = [
        differences(old, new, 0.1 if re.search(r"\d [kMGT]B\b", old) else ROUNDING)
        for old, new in zip(said, heard, strict=True)
    ]
    assert [line for lines in lost for line in lines] == []


def test_a_command_that_fails_is_named() -> None:
    """With what it said."""
    with pytest.raises(Wrong, match=r"dragoman costs ends with 2: .*costs"):
        printed("costs")


LANGUAGES = pytest.mark.parametrize("language", ["en", "zh"])


@LANGUAGES
def test_the_page_has_the_times_of_the_slides(language: str) -> None:
    """Minutes and pages of all parts, in their order; 90 minutes in all."""
    expected, first = [], 0
    for minutes, page, _, _ in SLIDE.findall(LESSON):
        if minutes:
            title = re.split("[:：] ?", sections(page, language)[0][0])[-1]
            expected.append((f"{first}-{first + int(minutes)}", title, page))
            first += int(minutes)
    told = (DOCS / ("zh/lesson.md" if language == "zh" else "lesson.md")).read_text("utf-8")
    assert re.findall(r"^\| (\d+-\d+) \| \[([^\]]+)\]\(([^)]+)\) \|", told, re.M) == expected
    assert first == 90


@LANGUAGES
def test_the_slides_need_nothing_from_elsewhere(language: str) -> None:
    """Pictures that exist, in the language of the slide; no script, style or frame of others."""
    addresses = re.findall(r'(?:src|href)="([^"]+)"', slides_page(language))
    assert len(addresses) > 10
    assert [each for each in addresses if not (FOLDER / each).is_file()] == []
    assert {".zh." in each for each in addresses} == {language == "zh"}
