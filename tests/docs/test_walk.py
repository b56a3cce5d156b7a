"""The paper walk: its quick experiments print what the pages say, and no page is left out.

`make docs` runs all experiments (`python -m tests.docs.walk`); here are those that take no longer
than a second or two.
"""

import math
import re
from pathlib import Path

import pytest
import torch
from tests.docs.pages import READMES, chinese, links, name_of
from tests.docs.walk import ENGLISH, ROUNDING, WALK, Experiment, differences, experiments

ALL = [experiment for page in ENGLISH for experiment in experiments(page)]
QUICK = [experiment for experiment in ALL if experiment.alone and not experiment.seconds]
CHINESE = [chinese(page) for page in ENGLISH]


@pytest.mark.parametrize("experiment", QUICK, ids=lambda experiment: experiment.name)
def test_a_quick_experiment_prints_what_its_page_says(experiment: Experiment) -> None:
    """Words agree, counts agree exactly, other numbers to rounding or as far as the page says."""
    assert differences(experiment.said, experiment.run(), experiment.tolerance) == []


def test_every_page_but_the_index_has_an_experiment() -> None:
    """Something to run and change, with what it printed.

    A minute at most; three for page 0, two for the training of page 10.
    """
    assert {e.page for e in ALL} == {page for page in ENGLISH if page.stem != "index"}
    assert [e.name for e in ALL if e.alone and not e.said] == []
    assert {e.page.stem for e in ALL if e.alone and e.seconds > 60} == {
        "00-one-file",
        "10-training",
    }
    assert [e.name for e in ALL if e.seconds > 180] == []


@pytest.mark.parametrize("page", ENGLISH, ids=name_of)
def test_no_block_is_left_out(page: Path) -> None:
    """Every Python block is an experiment, and every block of text is what one printed."""
    text, found = page.read_text(encoding="utf-8"), experiments(page)
    assert text.count("```python\n") + text.count("```python3\n") == len(found)
    assert text.count("```text\n") == sum(bool(experiment.said) for experiment in found)


@pytest.mark.parametrize(
    "page", [p for p in (*ENGLISH, *CHINESE) if p.stem != "index"], ids=name_of
)
def test_every_exercise_has_an_answer(page: Path) -> None:
    """Folded away behind the exercises: as many answers, and one for what to try next."""
    before, folded = page.read_text(encoding="utf-8").split('<details markdown="1">\n')
    exercises = re.findall(r"^\d+\. ", before.rpartition("\n## ")[2], re.MULTILINE)
    answers = folded.partition("\n</details>\n")[0]
    assert re.findall(r"^\d+\. ", answers, re.MULTILINE) == exercises
    tries = ("**Try next.**", "**接着试。**")
    assert any(word in answers for word in tries) == any(word in before for word in tries)


def test_the_index_leads_to_every_page_in_order() -> None:
    """The map of the walk is complete, and each page leads to the next."""
    pages = [page.name for page in ENGLISH if page.stem != "index"]
    assert list(dict.fromkeys(t for t in links(WALK / "index.md") if t in pages)) == pages
    for page, following in zip(pages, [*pages[1:], "index.md"], strict=True):
        assert links(WALK / page)[-1] == following


def test_the_answers_about_wavelengths_are_computed() -> None:
    """Page 8: where vectors of base 10 are nearly the same again, and how near others come."""

    def cosines(d_model: int, places: int) -> torch.Tensor:
        """Of the first position and each of the next ones."""
        thetas = 10.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
        return (torch.arange(1, places + 1)[:, None] * thetas).cos().mean(dim=1)

    two, sixteen = cosines(4, 40), cosines(32, 100_000)
    answers = [
        f"{2 * math.pi * 10_000 ** (510 / 512):,.0f}",
        *(str(int(two[5:].argmax()) + 6), f"{two.max():.2f}"),
        *(f"{sixteen[5:].max():.2f}", f"{sixteen[3]:.2f}"),
    ]
    assert answers == ["60,611", "19", "0.98", "0.72", "0.06"]
    for page in (WALK / "08-positions.md", chinese(WALK / "08-positions.md")):
        folded = page.read_text(encoding="utf-8").partition("<details")[2]
        assert all(answer in folded for answer in answers)


@pytest.mark.parametrize("page", READMES, ids=name_of)
def test_the_walk_is_found(page: Path) -> None:
    """Both READMEs lead to the walk in their language."""
    walk = "docs/zh/walk/index.md" if "zh" in page.name else "docs/walk/index.md"
    assert walk in links(page)


@pytest.mark.parametrize(
    ("said", "heard", "tolerance"),
    [
        ("loss 2.50", "loss 2.60", ROUNDING),
        ("100 of 100", "99 of 100", ROUNDING),  # counts are exact
        ("same: True", "same: False", None),
        ("a\nb", "a", None),
        ("loss 2.0", "loss 2.6", 0.25),
        ("1.0 and 2.0", "1.0 and -2.0", ROUNDING),
    ],
)
def test_what_may_not_differ(said: str, heard: str, tolerance: float | None) -> None:
    """Words, lines, counts, signs, and more than the page allows."""
    assert differences(said, heard, tolerance) != []
