"""`--output` of a command that is interrupted: results are kept, and the command continues."""

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pytest
from tests.processors import ROUNDING
from tests.system.cli.command import Done, Run, write
from tests.system.cli.test_wrong_input import assert_refused
from tests.unit.tasks.readers import CLASSIFY, TAG, save_reader
from tests.unit.tasks.tiny import random_lines

LINES = [*random_lines(2), "", "not \udcff UTF-8", *random_lines(3, seed=1)]
WORDS = ["the", "red", "cat", "", "a", "", "one", "", "old", "tea", "", "big", ""]
"""Five texts as columns."""

Call = list[str | Path]
Interrupt = Callable[[list[str], Call], Done]


class Typed(io.RawIOBase):
    """A terminal on which somebody types lines and then presses Ctrl-C."""

    def __init__(self, lines: list[str]) -> None:
        self._left = [f"{line}\n".encode(errors="surrogateescape") for line in reversed(lines)]

    def readable(self) -> bool:
        """Be so."""
        return True

    def isatty(self) -> bool:
        """Be one: each line is answered before the next one is read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Give the next line."""
        if not self._left:
            raise KeyboardInterrupt
        text = self._left.pop()
        buffer[: len(text)] = text
        return len(text)


@pytest.fixture
def interrupt(run: Run, monkeypatch: pytest.MonkeyPatch) -> Interrupt:
    """Run a verb that is interrupted after these lines."""

    def interrupted(lines: list[str], call: Call) -> Done:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Typed(lines))))
            return run(*call)

    return interrupted


@pytest.fixture(scope="module")
def models(model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model folder for each verb."""
    folder = tmp_path_factory.mktemp("readers")
    return {
        "translate": model,
        "classify": save_reader(folder / "classifier", CLASSIFY),
        "tag": save_reader(folder / "tagger", TAG),
    }


FRACTION = re.compile(r"\d\.\d+(?:e-\d+)?")


def text_and_numbers(file: Path) -> tuple[str, list[float]]:
    """What is written around fractions, and the fractions."""
    text = file.read_text(encoding="utf-8", errors="surrogateescape")
    return FRACTION.sub("0.0", text), [float(number) for number in FRACTION.findall(text)]


@pytest.mark.parametrize(
    ("verb", "lines"),
    [
        (("translate",), LINES),
        (("translate", "--n-best", "2"), LINES),
        (("translate", "--n-best", "2", "--json"), LINES),
        (("classify",), LINES),
        (("tag",), LINES),
        (("tag", "--json"), LINES),
        (("tag", "--input", "words"), LINES),
        (("tag", "--input", "columns"), WORDS),
    ],
)
def test_an_interrupted_command_continues(
    run: Run,
    interrupt: Interrupt,
    models: dict[str, Path],
    tmp_path: Path,
    verb: tuple[str, ...],
    lines: list[str],
) -> None:
    """Interrupted twice, and damaged by a crash, it writes the file of one whole run.

    Only the last result that was kept is computed again.
    """
    file, out, link = write(tmp_path / "in", lines), tmp_path / "out", tmp_path / "link"
    partial = tmp_path / "out.partial"
    call: Call = [verb[0], models[verb[0]], *verb[1:]]
    run(*call, file, "--output", tmp_path / "whole")
    out.write_text("old", encoding="utf-8")
    link.symlink_to(out)
    done = interrupt(lines[:-3], [*call, "--overwrite", "--output", link])
    assert done.code == 130
    assert f"kept in {partial}; add --resume to the same command" in done.err
    assert out.read_text(encoding="utf-8") == "old"
    partial.write_bytes(partial.read_bytes()[:-3] + bytes(2000))
    assert interrupt(lines[:-1], [*call, "--output", link, "--resume"]).code == 130
    done = run(*call, file, "--output", link, "--resume")
    assert (done.code, done.err[:3]) == (0, "2 l" if verb[0] != "tag" else "2 t")
    (text, numbers), (whole, expected) = (
        text_and_numbers(file) for file in (out, tmp_path / "whole")
    )
    assert text == whole
    assert numbers == pytest.approx(expected, rel=0, abs=ROUNDING)
    assert {path.name for path in tmp_path.iterdir()} == {"in", "link", "out", "whole"}


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("translate", ["--beam-size", "2"]),
        ("translate", ["--length-penalty", "2"]),
        ("translate", ["--n-best", "2"]),
        ("translate", ["--json"]),
        ("translate", []),
        ("classify", ["--json"]),
        ("tag", ["--input", "words"]),
    ],
)
def test_results_of_two_commands_are_not_mixed(
    run: Run,
    interrupt: Interrupt,
    models: dict[str, Path],
    tmp_path: Path,
    verb: str,
    options: list[str],
) -> None:
    """A file continues with the model and options with which it began, wherever the folder is."""
    out, other = tmp_path / "out", tmp_path / "other"
    copytree(models[verb], other)
    call: Call = [verb, models[verb], "--output", out]
    interrupt(LINES[:3], call)
    before = (tmp_path / "out.partial").read_bytes()
    if not options:
        text = (other / "config.json").read_text(encoding="utf-8")
        changed = re.sub(r'("weights_sha256": )"\w+"', r'\1"0"', text)
        (models[verb] / "config.json").write_text(changed, encoding="utf-8")
    try:
        done = interrupt(LINES[:4], [*call, *options, "--resume"])
    finally:
        copytree(other, models[verb], dirs_exist_ok=True)
    assert (done.code, out.exists()) == (2, False)
    assert f"another {options[0] if options else 'model'};" in done.err
    assert (tmp_path / "out.partial").read_bytes() == before
    same: Call = [verb, other, "--output", out, "--max-batch-tokens", "4000", "--resume"]
    done = run(*same, write(tmp_path / "in", LINES))
    assert (done.code, {path.name for path in tmp_path.iterdir()}) == (0, {"in", "other", "out"})


@pytest.mark.parametrize("option", ["--tm", "--prefixes"])
def test_another_content_of_a_file_is_not_continued(
    run: Run, interrupt: Interrupt, model: Path, tmp_path: Path, option: str
) -> None:
    """Under the same name; the same content under another name is."""
    lines, text = write(tmp_path / "in", LINES), ["the cat\tthe dog"] * len(LINES)
    used, same = write(tmp_path / "a.tsv", text), write(tmp_path / "b.tsv", text)
    call: Call = ["translate", model, "--output", tmp_path / "out"]
    interrupt(LINES[:3], [*call, option, used])
    write(used, [*text[:-1], "the cat\ta cat"])
    done = run(*call, lines, option, used, "--resume")
    assert done.code == 2
    assert f"written with another {option};" in done.err
    done = run(*call, lines, option, same, "--resume")
    assert (done.code, (tmp_path / "out").is_file()) == (0, True), done.err


@pytest.mark.parametrize("form", ["words", "columns"])
def test_tags_of_other_texts_are_not_continued(
    run: Run, interrupt: Interrupt, models: dict[str, Path], tmp_path: Path, form: str
) -> None:
    """Of words as of lines."""
    lines = WORDS if form == "columns" else LINES
    call: Call = ["tag", models["tag"], "--input", form, "--output", tmp_path / "out"]
    interrupt(lines[:-1], call)
    done = run(*call, write(tmp_path / "in", ["new", "", *lines]), "--resume")
    assert (done.code, "Result 1 of" in done.err) == (2, True)


def test_results_of_an_earlier_version_continue(
    run: Run, interrupt: Interrupt, model: Path, tmp_path: Path
) -> None:
    """It recorded one translation per line as 1, a switch as true, and no option added since."""
    call: Call = ["translate", model, "--no-split", "--output", tmp_path / "out"]
    interrupt(LINES[:3], call)
    record = tmp_path / "out.partial.json"
    written = json.loads(record.read_bytes().splitlines()[0])
    earlier = {name: value for name, value in written.items() if name != "--as-published"}
    record.write_text(json.dumps(earlier | {"--n-best": 1, "--no-split": True}), encoding="utf-8")
    done = run(*call, write(tmp_path / "in", LINES), "--resume")
    assert (done.code, (tmp_path / "out").is_file()) == (0, True), done.err


def test_only_a_file_can_be_continued(run: Run, model: Path, tmp_path: Path) -> None:
    """Standard output cannot; a file of which nothing is kept is written from the start."""
    file = write(tmp_path / "in", LINES)
    assert_refused(run("translate", model, file, "--resume"), "--output")
    done = run("translate", model, file, "--output", tmp_path / "out", "--resume")
    assert (done.code, len((tmp_path / "out").read_bytes().splitlines())) == (0, len(LINES))
