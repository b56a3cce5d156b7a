"""What a command prints, on a page: run it and write its lines below it.

A block of text behind this comment begins with the command, after a dollar, and all else in it is
what the command printed on a terminal:

    <!-- printed -->

`python docs/make.py pages` writes the lines again, and a test compares them.
"""

import os
import re
import shlex
import subprocess
import sys
from functools import cache

from excerpts import ROOT, Wrong

PRINTED = re.compile(
    r"(?P<head>^<!-- printed -->\n```text\n\$ dragoman (?P<words>(?:.*\\\n)*.*)\n)"
    r"(?P<said>(?:.*\n)*?)(?=^```$)",
    re.M,
)
TERMINAL = {"COLUMNS": "110", "FORCE_COLOR": "1", "TERM": "dumb"}
"""A wide one without colours."""


def with_output(text: str) -> str:
    """The text of a page with what its commands print now."""
    return PRINTED.sub(lambda found: found["head"] + printed(found["words"]), text)


@cache
def printed(words: str) -> str:
    """Run `dragoman WORDS`, as the shell would, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", *shlex.split(words.replace("\\\n", " "))],
        cwd=ROOT,
        env=os.environ | TERMINAL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Wrong(f"dragoman {words} ends with {done.returncode}: {done.stderr}")
    return done.stdout
