"""Lines that are translated in a stream and stopped in the midst: what is printed stays good."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tests.processors import needs_independent_translations
from tests.system.cli.command import write
from tests.system.cli.conftest import model as model  # noqa: PLC0414 -- a fixture
from tests.system.conftest import CommandLine
from tests.unit.tasks.tiny import make_translator, random_lines

LINES = random_lines(900)
FIRST_WINDOW = 64


@pytest.fixture(scope="module")
def whole() -> str:
    """What is printed when nothing happens."""
    translator = make_translator()
    options = replace(translator.options, beam_size=1, retry=False)
    return "".join(f"{found.text}\n" for found in translator.translate(LINES, options=options))


@needs_independent_translations
@pytest.mark.parametrize("least", [1, FIRST_WINDOW + 1])
def test_a_killed_stream_goes_on_from_its_next_line(
    dragoman: CommandLine, model: Path, whole: str, tmp_path: Path, least: int
) -> None:
    """What was printed are whole lines, the first ones; with those of the rest they are all."""
    file, options = write(tmp_path / "in", LINES), ("--beam-size", "1", "--no-retry", "--quiet")
    running = dragoman.start(("translate", model, file, *options))
    assert running.wait_until(lambda: running.said().count("\n") >= least)
    killed = running.end(signal.SIGKILL)
    done = killed.said.count("\n")
    assert (killed.code, done < len(LINES)) == (-signal.SIGKILL, True)
    assert killed.said.endswith("\n")
    rest = write(tmp_path / "rest", LINES[done:])
    assert killed.said + dragoman.run("translate", model, rest, *options).said == whole


def test_an_interrupted_stream_says_where_the_rest_begins(
    dragoman: CommandLine, model: Path, tmp_path: Path
) -> None:
    """Ctrl-C while it waits for more lines: all that were printed are counted."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    running = dragoman.start(("translate", model, pipe, "--beam-size", "1"))
    with pipe.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in LINES[: FIRST_WINDOW + 36])
        stream.flush()
        assert running.wait_until(lambda: running.said().count("\n") == FIRST_WINDOW)
        assert running.wait_until(running.is_asleep)
        ended = running.end(signal.SIGINT)
    told = "64 lines printed; the rest begins with line 65 of the input (tail -n +65)."
    assert (ended.code, ended.said.split("\n")[FIRST_WINDOW:-1]) == (130, [told])
