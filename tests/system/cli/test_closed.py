"""Streams that whoever started the command has closed."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from tests.system.cli.command import LINES, Done, write
from tests.system.cli.test_wrong_input import assert_refused
from tests.system.conftest import CommandLine


def closed(how: str, *arguments: object) -> Done:
    """Run the command with a stream closed, as the shell says it."""
    command = [sys.executable, "-m", "dragoman", *map(str, arguments)]
    closing = ["sh", "-c", f'exec "$@" {how}', "sh", *command]
    done = subprocess.run(closing, capture_output=True, text=True, check=False, timeout=300)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("stream", ["input", "output"])
def test_a_closed_standard_stream_is_told(model: Path, tmp_path: Path, stream: str) -> None:
    """What is read or written has to be somewhere."""
    files = [write(tmp_path / "in", LINES[:1])] if stream == "output" else []
    how = {"input": "<&-", "output": ">&-"}[stream]
    assert_refused(closed(how, "translate", model, *files), f"no standard {stream}")


def test_a_full_disk_behind_standard_output_is_told(model: Path, tmp_path: Path) -> None:
    """One sentence that names it, and exit code 1."""
    done = closed(">/dev/full", "translate", model, write(tmp_path / "in", LINES[:1]))
    told = "dragoman: Cannot write to standard output: No space left on device.\n"
    assert (done.code, done.err) == (1, told)


def test_a_demonstration_wants_to_be_seen(tmp_path: Path) -> None:
    """Without standard output it is refused before it begins."""
    assert_refused(closed(">&-", "demo", "--out", tmp_path / "demo"), "no standard output")
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize("how", ["2>&-", "2>/dev/full"])
def test_nobody_need_listen_to_talk(model: Path, tmp_path: Path, how: str) -> None:
    """With standard error closed, or on a full disk, the lines come, and the exit code is 0."""
    done = closed(how, "translate", model, write(tmp_path / "in", LINES[:1]))
    assert (done.code, len(done.lines)) == (0, 1)


CLOSED = "import os, sys; os.close(2); sys.stderr = None"


def test_training_is_done_in_silence(dragoman: CommandLine, tmp_path: Path) -> None:
    """With standard error closed, too, and a mistake has its exit code."""
    (tmp_path / "patch.py").write_text(CLOSED)
    start = partial(dragoman.start, environment={"PATCH": str(tmp_path / "patch.py")})
    texts = [f"{word} {other}" for word in ("one", "two", "red", "big") for other in "abcdefgh"]
    files = [write(tmp_path / name, texts) for name in ("a.en", "a.de")]
    small = ("model.d_model=16", "model.num_heads=2", "model.d_ff=16", "tokenizer.vocab_size=300")
    pairs = ("--src", files[0], "--tgt", files[1], "--out", tmp_path / "run")
    ended = start(["train", *pairs, *small, "train.max_steps=1"]).end()
    assert (ended.code, ended.said) == (0, "")
    assert (tmp_path / "run" / "model.safetensors").exists()
    assert start(["train", "nosuch"]).end().code == 2
