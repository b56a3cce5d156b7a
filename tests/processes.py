"""Programs of Python's in processes of their own."""

import os
import subprocess
import sys
from collections.abc import Collection, Mapping


def python(
    code: str,
    *arguments: object,
    without: Collection[str] = (),
    given: Mapping[str, str] | None = None,
    timeout: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run a program, which ends well, with the variables of this one, less some and with others."""
    environment = {name: value for name, value in os.environ.items() if name not in without}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=environment | dict(given or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return done
