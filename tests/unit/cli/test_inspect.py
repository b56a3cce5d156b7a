"""The second argument of `dragoman inspect`, and the comparison of two runs."""

import re
from itertools import zip_longest
from pathlib import Path

import pytest
from tests.unit.tasks.test_runs import MACHINE, log, make_run, settings, step_line

from dragoman.cli.inspect import inspect, is_run
from dragoman.cli.runs import runs as list_them


def test_a_run_is_told_from_a_text(tmp_path: Path) -> None:
    """A run is recognized by its training/ folder; any other string is a text, however long."""
    run = make_run(tmp_path / "a", log())
    assert is_run(str(run))
    assert not is_run(str(tmp_path))
    assert not any(map(is_run, ["", "-", " ", "I like tea.", "x" * 99999, "a\0b", "\ud800"]))


def test_the_tables_leave_nothing_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Narrow terminals wrap digits instead of cutting them; names and values are not markup."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "70")
    one = make_run(tmp_path / "[b]", log(), settings("start.model=m", 'start.freeze=["encoder"]'))
    two = make_run(tmp_path / ":x:", [step_line(1, loss=1 / 3)], machine=MACHINE)
    inspect(model=one, text=str(two))
    lines = capsys.readouterr().out.splitlines()
    cells = [re.sub(r"\x1b\[[0-9;]*m", "", line).replace("┃", "│").split("│") for line in lines]
    columns = (
        "".join(part.strip() for part in column) for column in zip_longest(*cells, fillvalue="")
    )
    text = " ".join(columns)
    for wanted in ("0.3333333333333333", "[b]", ":x:", '["encoder"]', "cpu (AVX512)", "30 steps"):
        assert wanted in text


@pytest.mark.parametrize(("width", "lines"), [("80", 3), ("100", 2), ("200", 1)])
def test_many_columns_are_not_squeezed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    width: str,
    lines: int,
) -> None:
    """If the terminal is too narrow for the columns, each run gets lines below its name."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", width)
    make_run(tmp_path / "a-run", log(), machine=MACHINE, examples=29_000)
    list_them(folder=tmp_path)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert all(len(line) <= int(width) for line in shown)
    if lines == 1:
        assert re.search("a-run .* translate .* a .* 29 k ", shown[3])
        return
    name, *below = shown
    assert (name, len(below)) == ("a-run", lines)
    assert "".join(below).startswith("  task translate; data a; examples 29 k; parameters -; steps")
    assert all(line.startswith("  ") and not line.endswith(" ") for line in below)
