"""Kill a writing process before each of its changes to files."""

from tests.processes import python

LOOP = """
import gc, os, signal, sys

def killed_at(left):
    def hook(event, arguments):
        nonlocal left
        writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if writes or event in {"os.mkdir", "os.rename", "os.remove", "os.rmdir"}:
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
    return hook

gc.freeze()  # or each child would look through, and copy, what all have
moment, status = 0, signal.SIGKILL
while status == signal.SIGKILL:
    before()
    if (pid := os.fork()) == 0:
        sys.addaudithook(killed_at(moment))
        write()
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    assert status in (0, signal.SIGKILL), status
    check()
    moment += 1
print(moment - 1)
"""


def moments(script: str, *arguments: object) -> int:
    """Kill a script's `write` at each moment, and return the number of moments.

    The script defines `before`, `write`, and `check` for what a reader and the next writer find.
    """
    return int(python(script + LOOP, *arguments).stdout)
