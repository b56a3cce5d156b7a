"""The slides of a lesson, which test_site.py compares with the pages: their times and files."""

import re

import pytest

from slides import FOLDER, LESSON, SLIDE, sections, slides_page
from staging import DOCS

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
