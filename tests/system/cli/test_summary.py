"""What the verbs say of texts that somebody should look at."""

import json
from pathlib import Path

from tests.system.cli.command import Run, write
from tests.unit.tasks.tiny_generator import save_generator


def test_the_summary_lists_the_lines_to_look_at(run: Run, model: Path, tmp_path: Path) -> None:
    """By their numbers in the input, the first of them; the flags of others are counted."""
    file = write(tmp_path / "in", ["the cat", "", *["a cat of 1969"] * 7])
    done = run("translate", model, file)
    assert "7 (lines 3, 4, 5, 6, 7, ...) with other numbers" in done.err
    assert "1 empty" in done.err


def test_a_pair_without_tokens_has_an_empty_line(run: Run, tmp_path: Path) -> None:
    """Where nothing can be scored; its neighbours have their scores, and nobody gets NaN."""
    model = save_generator(tmp_path / "writer")
    files = (
        "--src",
        write(tmp_path / "a", ["a cat", "a"]),
        "--tgt",
        write(tmp_path / "b", ["a", ""]),
    )
    done = run("score", model, *files)
    assert [bool(line) for line in done.lines] == [True, False]
    done = run("score", model, *files, "--json")
    assert [json.loads(line)["flags"] for line in done.lines] == [[], ["empty"]]
