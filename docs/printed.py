"""What a command prints, on a page: run it and write its lines below it.

A block of text behind one of these comments begins with the command, after a dollar; all else in it
is what the command printed on a terminal, or the paragraph of it that begins with these words:

    <!-- printed -->
    <!-- printed: switched off -->

The model folder runs/live is that of the page that computes (live_page.py). `python docs/make.py
pages` writes the lines again, and a test compares them.
"""

import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from dragoman.engine.products import can_pack
from excerpts import Wrong
from live_page import live_folder

PRINTED = re.compile(
    r"(?P<head>^<!-- printed(?:: (?P<opening>.+))? -->\n```text\n"
    r"\$ dragoman (?P<words>(?:.*\\\n)*.*)\n)"
    r"(?P<said>(?:.*\n)*?)(?=^```$)",
    re.M,
)
IN_BF16 = re.compile(r"^│   in bf16 .*$", re.M)
"""The memory of decoding in an arithmetic that not every processor has."""
TERMINAL = {"COLUMNS": "110", "FORCE_COLOR": "1", "TERM": "dumb"}
"""A wide one without colours."""


def with_output(text: str) -> str:
    """The text of a page with what its commands print now."""
    return PRINTED.sub(lambda found: found["head"] + shown(found), text)


def shown(found: re.Match[str]) -> str:
    """What the command of a block prints now, as far as the block shows it.

    On a processor without bf16 what the block says of it stays.
    """
    output = printed(found["words"])
    if not can_pack("bf16") and (said := IN_BF16.findall(found["said"])):
        output = IN_BF16.sub(said[0], output)
    if found["opening"] is None:
        return output
    paragraphs = [part for part in output.split("\n\n") if part.startswith(found["opening"])]
    if len(paragraphs) != 1:
        raise Wrong(f"dragoman {found['words']}: {len(paragraphs)} parts of {found['opening']!r}")
    return f"{paragraphs[0].rstrip()}\n"


@cache
def printed(words: str) -> str:
    """Run `dragoman WORDS`, as the shell would, and return what it prints."""
    with TemporaryDirectory() as folder:
        live_folder(Path(folder, "runs", "live"))
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", *shlex.split(words.replace("\\\n", " "))],
            cwd=folder,
            env=os.environ | TERMINAL,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise Wrong(f"dragoman {words} ends with {done.returncode}: {done.stderr}")
    return done.stdout
