"""What `dragoman chat` prints and refuses, piped, at a terminal and interrupted."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.system.cli.command import Run
from tests.system.cli.test_typed import END_OF_INPUT, PATIENCE, answer, at_a_keyboard, shown_on
from tests.system.cli.test_wrong_input import assert_refused
from tests.system.conftest import CommandLine
from tests.unit.tasks.tiny_chat import save_chat_generator

from dragoman.tasks.generate.generator import Generator

GREEDY = ("--temperature", "0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder."""
    return save_chat_generator(tmp_path_factory.mktemp("cli") / "chat")


def said_to(folder: Path, *texts: str) -> list[str]:
    """The answers of a conversation from Python."""
    generator = Generator.load(folder, device="cpu")
    chat = generator.chat(replace(generator.options, temperature=0.0))
    return [chat.say(text) for text in texts]


def test_lines_are_answered_in_one_conversation(run: Run, folder: Path) -> None:
    """An answer for each line but blank ones; /reset begins anew and answers nothing."""
    stdin = "the cat\n\na big dog\n/reset\na big dog\n"
    done = run("chat", folder, *GREEDY, stdin=stdin.encode())
    first, second = said_to(folder, "the cat", "a big dog"), said_to(folder, "a big dog")
    assert second[0] != first[1]
    assert (done.code, done.out) == (0, "".join(f"{text}\n" for text in first + second))
    assert done.err == "4 turns forgotten\n"


def test_a_seed_is_drawn_and_said(run: Run, folder: Path) -> None:
    """With it the conversation can be had again."""
    done = run("chat", folder, stdin=b"the cat\n")
    [word, seed] = done.err.split()
    assert word == "seed"
    again = run("chat", folder, "--seed", seed, stdin=b"the cat\n")
    assert (again.out, again.err) == (done.out, "")


def test_generate_takes_the_turns_as_lines(run: Run, folder: Path) -> None:
    """The template is applied there too: a prompt is a dialogue."""
    first, second = said_to(folder, "the cat", "a big dog")
    prompt = rf"the cat\n{first}\na big dog"
    done = run("generate", folder, prompt, "--temperature", "0", "--json").succeeded()
    assert f'"text": "{second}"' in done.out
    shown = run("generate", folder, prompt, "--temperature", "0").succeeded()
    assert shown.out == f"the cat\n{first}\na big dog\n{second}\n"


def test_a_line_longer_than_the_context_is_refused(run: Run, folder: Path) -> None:
    """From a pipe the command ends, since the rest would answer something else."""
    stdin = ("the cat " * 40 + "\na\n").encode()
    assert_refused(run("chat", folder, *GREEDY, stdin=stdin), "shorten it")


def test_a_terminal_is_a_conversation(dragoman: CommandLine, folder: Path) -> None:
    """Each line is answered before the next; too long a one is told and passed over; ^D ends."""
    first, second = said_to(folder, "the cat", "a")
    with at_a_keyboard(dragoman, "chat", folder, *GREEDY) as (terminal, printed):
        os.write(terminal, b"the cat\n")
        assert answer(printed).decode() == first + "\n"
        os.write(terminal, b"the cat " * 40 + b"\n")
        os.write(terminal, b"a\n")
        assert answer(printed).decode() == second + "\n"
        os.write(terminal, END_OF_INPUT)
        shown = shown_on(terminal)
    assert b"Ctrl-D ends the input." in shown
    assert b"shorten it" in shown


AT_A_KEYBOARD = """
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
from dragoman.cli.main import entry

entry()
"""


def test_ctrl_c_ends_a_conversation(folder: Path) -> None:
    """While it waits for a line: the code of all interrupted commands, and no traceback."""
    command = [sys.executable, "-c", AT_A_KEYBOARD, "chat", str(folder), *GREEDY]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"the cat\n")
        process.stdin.flush()
        assert process.stdout.readline().decode() == said_to(folder, "the cat")[0] + "\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert b"Traceback" not in said
