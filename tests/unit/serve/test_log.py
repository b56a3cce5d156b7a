"""The lines that a server writes to standard error."""

import json
import os
from threading import Thread
from types import SimpleNamespace

import pytest

pytest.importorskip("prometheus_client", reason="the extra 'serve' is not installed")

from dragoman.serve import metrics

LINES = 2000  # more than a pipe takes


def test_an_unread_log_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines that a full pipe does not take follow, in order, once it is read again."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    with os.fdopen(write, "w") as writer, os.fdopen(read, "rb") as reader:
        monkeypatch.setattr(metrics, "sys", SimpleNamespace(stderr=writer))
        metrics._LINES.clear()

        def fill() -> None:
            for number in range(LINES):
                metrics.log("event", {"number": number, "text": "a" * 100})

        thread = Thread(target=fill, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
        found = b""
        while piece := reader.read():
            found += piece
            metrics.write_log()
    numbers = [json.loads(line)["number"] for line in found.splitlines()]
    assert numbers == [*range(LINES)]
