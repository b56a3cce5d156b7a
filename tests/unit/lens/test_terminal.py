"""Lines of text that stand under each other on any terminal."""

import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.lens.inspections import MADE, continuation, translation

from dragoman.lens.inspection import Alternative, Prediction, Sentence
from dragoman.lens.terminal import lines_of, table

WIDTHS = {"W": 2, "F": 2}
"""Of a character that is east Asian so (UAX 11)."""
CELLS = st.text(st.sampled_from("ab 我茶ｘé\u0301-."), max_size=6)


def width_of(text: str) -> int:
    """How many letters wide a text is: marks above a letter take no room."""
    shown = (char for char in text if not unicodedata.combining(char))
    return sum(WIDTHS.get(unicodedata.east_asian_width(char), 1) for char in shown)


@pytest.mark.parametrize("name", MADE)
def test_every_variant_has_its_sections(name: str) -> None:
    """What is there is shown, under headings; no line ends in spaces, none holds a control."""
    found = MADE[name]()
    lines = list(lines_of(found))
    text = "\n".join(lines)
    headings = {line.split(" ")[0] for line in lines}
    assert ("beam" in headings) == (found.beam is not None)
    assert ("label" in headings) == bool(found.prediction and found.prediction.labels)
    assert ("rollout" in text) == bool(found.attributions)
    assert ("looked at" in text) == bool(found.steps)
    assert "heads" in headings
    assert all(line == line.rstrip() for line in lines)
    assert all(unicodedata.category(char) != "Cc" for line in lines for char in line)
    for note in found.notes:
        assert f"Note: {note.en}" in lines


def test_a_translation_is_shown_with_its_alignment() -> None:
    """A row for each token: its probability, the source token it looked at most, the runner-up."""
    found = translation()
    lines = list(lines_of(found))
    rows = lines[lines.index(next(line for line in lines if line.startswith("token"))) + 1 :]
    for row, step in zip(rows, found.steps, strict=False):
        assert row.startswith(step.token)
        assert f"{100 * 2.718281828459045**step.log_prob:.1f}%" in row
        assert found.src.tokens[step.index].replace(" ", "▁") in row
        assert step.alternatives[1].token.replace(" ", "▁") in row


def test_a_logit_is_shown_with_what_it_is_made_of() -> None:
    """The greatest shares with their signs, the sum of all, and where the lens changes."""
    found = translation()
    lines = list(lines_of(found))
    rows = lines[[" logit " in line for line in lines].index(True) + 1 :]
    total = sum(part.shares[1] for part in found.logits)
    assert rows[1].split("  ")[0] == "有"
    assert (
        f"{total:.1f}  decoder 0.0 +2.0, decoder 0.1 -1.0, cross 0.0 +0.5  0: ▁the 2%, 1: 有"
        in rows[1]
    )
    same = replace(found.steps[1], lens=found.steps[1].lens[:1] * 9)
    lines = list(lines_of(replace(found, steps=(same,))))
    assert any(line.endswith("0: ▁the 2%") for line in lines)


def test_heads_are_switched_off_in_the_order_of_what_they_do() -> None:
    """First the head whose absence costs the translation most; what stays is not repeated."""
    lines = list(lines_of(translation()))
    rows = lines[[line.startswith("switched off") for line in lines].index(True) + 1 :]
    assert rows[0].split() == ["encoder", "2.3", "-1.800", "the", "same"]
    assert rows[3].split() == ["encoder", "2.2", "-1.200", "我有两个苹果。"]
    changes = [float(row.split()[2]) for row in rows[: rows.index("")]]
    assert changes == pytest.approx(sorted(each.change for each in translation().switched_off))


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=5))
def test_a_table_keeps_its_cells(rows: list[tuple[str, str, str]]) -> None:
    """As many lines as rows, each with its cells in order, the right column ending together."""
    lines = list(table(rows, right={1}))
    width = max(width_of(row[0]) for row in rows) + 2 + max(width_of(row[1]) for row in rows)
    for line, (first, second, third) in zip(lines, rows, strict=True):
        assert line.startswith(first.rstrip() if not (second + third).strip() else first)
        if third.strip():
            head = line[: len(line) - len(third.rstrip()) - 2]
            assert width_of(head) == width
            assert head.endswith(second)


def test_what_a_token_holds_is_harmless() -> None:
    """No escape sequence reaches the terminal; a line feed and a space can be seen."""
    found = replace(
        continuation(),
        src=Sentence(text="a\x1b[31m\nb", tokens=("a", "\x1b[31m", "\n", " b")),
        attention=(),
    )
    text = "\n".join(lines_of(found))
    assert "\x1b" not in text
    assert "a\\u{1b}[31m↵b" in text


def test_labels_have_bars_by_their_probability() -> None:
    """Twenty signs for a certain label, none for an impossible one."""
    labels = tuple(Alternative(token=t, prob=p) for t, p in (("yes", 1.0), ("no", 0.0)))
    lines = list(lines_of(replace(MADE["classification"](), prediction=Prediction(labels=labels))))
    assert "yes    100.0%  " + 20 * "#" in lines
    assert "no       0.0%" in lines


def test_a_long_hypothesis_is_told_by_its_beginning() -> None:
    """Forty tokens, then dots; the line is not as long as the text."""
    found = translation()
    assert found.beam is not None
    [root, first, *_] = found.beam.nodes
    way = [replace(first, id=n, parent=n - 1, step=n, score=None) for n in range(1, 60)]
    tree = replace(found.beam, nodes=(root, *way, replace(way[-1], id=60, parent=59, score=-1.0)))
    [line] = [line for line in lines_of(replace(found, beam=tree)) if line.endswith("...")]
    assert line.count(first.token) == 40
