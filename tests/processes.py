"""Python programs in separate processes."""

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
    """Run a program that must succeed, in this environment with some variables changed."""
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
