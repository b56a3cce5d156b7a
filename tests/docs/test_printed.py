"""What pages show as the output of a command is what it prints."""

import re
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, name_of
from tests.docs.walk import ROUNDING, differences

from excerpts import Wrong
from printed import PRINTED, printed, shown

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
