"""What the verbs say of texts that somebody should look at."""

import json
from pathlib import Path

import pytest
from tests.system.cli.command import Run, write
from tests.unit.tasks.readers import CLASSIFY, TAG, save_reader
from tests.unit.tasks.tiny_generator import save_generator


def test_the_summary_lists_the_lines_to_look_at(run: Run, model: Path, tmp_path: Path) -> None:
    """By their first numbers in the input, in words; those of `--json` are identifiers."""
    texts = ["Go on. Come in.", "", *["a cat of 1969"] * 7, "a " * 3000]
    done = run("translate", model, write(tmp_path / "in", texts), "--json", "--no-retry")
    for flag, note in {
        "numbers": "7 (lines 3, 4, 5, 6, 7, ...) with other numbers",
        "empty": "1 empty",
        "several_sentences": "(line 1) with fewer sentences than given",
        "split": "1 translated in parts",
    }.items():
        assert any(flag in json.loads(line)["flags"] for line in done.lines)
        assert note in done.err
    assert "_" not in done.err


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


@pytest.mark.parametrize("verb", ["translate", "classify", "tag", "generate"])
def test_a_line_that_is_not_utf8_is_refused_alone(
    run: Run, model: Path, tmp_path: Path, verb: str
) -> None:
    """Its answer is empty and its number in the summary; its neighbours have their own."""
    folder = {
        "translate": lambda: model,
        "classify": lambda: save_reader(tmp_path / "model", CLASSIFY),
        "tag": lambda: save_reader(tmp_path / "model", TAG),
        "generate": lambda: save_generator(tmp_path / "model"),
    }[verb]()
    call: list[str | Path] = [verb, folder]
    if verb == "generate":
        call += ["--temperature", "0", "--file"]
    file, others = tmp_path / "in", write(tmp_path / "others", ["a cat", "the dog"])
    file.write_bytes(b"a cat\nca\xff \xc3 t\nthe dog\n")
    done, expected = run(*call, file), run(*call, others)
    assert done.code == 0
    what = "text" if verb in ("tag", "generate") else "line"
    assert f", 1 ({what} 2) unreadable" in done.err
    between = ["ca\tO", "?\tO", "?\tO", "t\tO", ""] if verb == "tag" else [""]
    place = len(expected.lines) // 2 if verb != "tag" else expected.lines.index("") + 1
    assert done.lines == [*expected.lines[:place], *between, *expected.lines[place:]]
    listed = run(*call, file, "--json")
    assert [json.loads(line)["flags"] for line in listed.lines][1] == ["unreadable"]
