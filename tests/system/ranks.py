"""The processes of a run that several train, as tests start and kill them."""

import os
import random
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from tests.system.conftest import CommandLine, Ended, Running
from tests.system.test_resume import command as command_of_one

LISTEN = 0x0A
"""The state of a socket that listens, in the kernel's tables."""


def free_port() -> int:
    """A port on which nothing listens now, and that no program is given while the ranks start.

    Connections and servers without a number get the kernel's ports, from 32768 on by default: one
    of another test may have taken such a port before rank 0 listens on it.
    """
    for port in random.SystemRandom().sample(range(20_000, 32_000), 100):
        with socket.socket() as listening, suppress(OSError):
            listening.bind(("127.0.0.1", port))
            return port
    raise AssertionError("100 ports are taken")


def start(
    dragoman: CommandLine, size: int, arguments: Sequence[object], **more: str
) -> list[Running]:
    """Start the ranks of a run as torchrun does, but for its watching over them.

    `more` are variables of their environment.
    """
    world = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ranks = ({**world, **more, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(size))
    return [dragoman.start(arguments, environment=environment) for environment in ranks]


def run(dragoman: CommandLine, size: int, *arguments: object) -> Ended:
    """Let a run end; rank 0 alone has said something."""
    if size == 1:
        return dragoman.run(*arguments)
    first, *others = [running.end() for running in start(dragoman, size, arguments)]
    assert not any(other.said for other in others), "".join(other.said for other in others)
    assert first.code or {other.code for other in others} == {0}
    return first


def command(folder: Path, out: Path) -> list[object]:
    """A run in which all is random that can be."""
    return [*command_of_one(folder, out, "fp32"), "model.layer_drop=0.1", "train.max_steps=12"]


def launch(dragoman: CommandLine, *words: object) -> Running:
    """Start `dragoman train --nproc 2`, whose two processes are new ones of Python."""
    return dragoman.start([*words, "--nproc", "2"])


def variables_of(process: str) -> dict[str, str]:
    """The environment of a process."""
    text = Path(f"/proc/{process}/environ").read_text(encoding="utf-8")
    return dict(pair.split("=", 1) for pair in text.split("\0") if "=" in pair)


def children_of(process: int) -> list[str]:
    """The processes that a process has started."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [child for task in tasks for child in task.read_text().split()]


def kill_rank_1(launcher: int) -> None:
    """Kill one of the processes that a launcher has started."""
    ranks = children_of(launcher)
    (victim,) = (child for child in ranks if variables_of(child).get("RANK") == "1")
    os.kill(int(victim), signal.SIGKILL)


def listeners(process: str) -> set[str]:
    """The addresses on which a process listens, by the kernel's tables of IPv4 and IPv6 sockets."""
    held = set[str]()
    for link in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):  # a file that has been closed meanwhile
            held.add(str(link.readlink()))
    found = set[str]()
    for family, table in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if int(state, 16) == LISTEN and f"socket:[{rest[5]}]" in held:
                words = np.frombuffer(bytes.fromhex(local.partition(":")[0]), ">u4")
                found.add(socket.inet_ntop(family, words.astype("=u4").tobytes()))
    return found
