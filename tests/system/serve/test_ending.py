"""Shutdown on a signal: accepted requests are answered, or the client gets an error."""

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from shutil import copytree
from time import monotonic

import pytest
from tests.system.conftest import CommandLine, Ended, Running
from tests.system.ranks import free_port
from tests.system.serve.live import Answered, Gate, Live, in_background, serving, until
from tests.system.serve.test_documents import filed, sent, uploaded
from tests.unit.tasks.tiny import save_translator

TRANSLATE = "/v1/translate"


class Process:
    """A server that was started from the command line."""

    def __init__(self, running: Running, port: int) -> None:
        self.running = running
        self.ended = False
        self.live = Live(None, port)  # type: ignore[arg-type] # which is in another process

    def end(self, number: int | None = None) -> Ended:
        """Wait for the process to end, after sending a signal if one is given."""
        self.ended = True
        return self.running.end(number)

    def status(self, path: str = "/health/ready") -> int:
        """Return the status of a path; 0 if nothing listens."""
        try:
            return self.live.get(path).status
        except OSError:
            return 0


@pytest.fixture
def process(
    dragoman: CommandLine, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Process]:
    """A ready `dragoman serve`, killed at the end. The parameter is code to run first, and options.

    In the options, {0} is a folder of the test; its subfolder `tmp` contains temporary files.
    """
    first, *options = request.param
    patch, port = tmp_path / "patch.py", free_port()
    (tmp_path / "tmp").mkdir()
    ours = f"import tempfile\ntempfile.tempdir = {str(tmp_path / 'tmp')!r}\n"
    patch.write_text(ours + first, encoding="utf-8")
    folder = save_translator(tmp_path / "en-zh", max_length_constant=400, min_length=300)
    words = ["serve", folder, "--port", port, *(each.format(tmp_path) for each in options)]
    running = dragoman.start(words, environment={"PATCH": str(patch)})
    found = Process(running, port)
    assert running.wait_until(lambda: found.status() == 200), running.said()
    yield found
    if not found.ended:
        found.end(signal.SIGKILL)


GRACE = "from dragoman.serve import server; server.GRACE = 20"
SAME_SIGNAL = "from dragoman.serve import server; server.SAME_SIGNAL = {}"
ROOM = ["--queue-tokens", str(10**7)]  # for translations of hundreds of tokens


def test_what_was_accepted_is_answered_after_the_signal(translator_folder: Path) -> None:
    """The server becomes unready, then refuses new requests, then answers accepted ones."""
    with serving(translator_folder, drain_delay=2.0, shutdown_timeout=60.0) as live:
        gate = Gate(live, "en-zh")
        calls = [in_background(partial(live.texts, ["the cat"] * 3)) for _ in range(4)]
        until(lambda: len(live.service.queue.costs) == 4)
        live.end()
        until(lambda: live.get("/health/ready").status == 503)
        assert live.get("/health/live").status == 200
        assert live.post("/v1/detect", {"text": "a"}).status == 200
        idle = live.connect()
        idle.connect()
        until(lambda: live.get("/v1/models").status == 503)
        gate.opened.set()
        assert [len(call()) for call in calls] == [3] * 4
        assert live.drained()["lost"] == live.server.lost == 0
        idle.close()


@pytest.mark.parametrize(
    "process", [[SAME_SIGNAL.format(0), *ROOM, "--shutdown-timeout", "60"]], indirect=True
)
def test_a_second_signal_ends_at_once(process: Process, tmp_path: Path) -> None:
    """Even with unanswered requests; temporary files are removed."""
    assert [*(tmp_path / "tmp").rglob("*.sqlite")]
    ask = {"text": ["the cat sees a dog"] * 50, "beam_size": 10}
    connection = process.live.begin(TRANSLATE, ask)
    until(lambda: process.live.counted("dragoman_queue_requests") == 1)
    os.kill(process.running.pid, signal.SIGTERM)
    until(lambda: "draining" in process.running.said())
    assert process.end(signal.SIGTERM).code == 143
    assert not [*(tmp_path / "tmp").rglob("*.sqlite")]
    connection.close()


@pytest.mark.parametrize("process", [[SAME_SIGNAL.format(60)]], indirect=True)
def test_a_signal_that_comes_twice_is_one(process: Process) -> None:
    """`timeout` signals the process and then its group; SIGHUP counts like the others."""
    os.kill(process.running.pid, signal.SIGHUP)
    until(lambda: "draining" in process.running.said())
    assert process.end(signal.SIGTERM).code == 0


@pytest.mark.parametrize("process", [[GRACE, *ROOM, "--shutdown-timeout", "20.5"]], indirect=True)
def test_time_is_up_where_answers_take_too_long(process: Process) -> None:
    """The remaining requests get an error, and the exit code reports the loss."""

    def ask() -> Answered:
        lines = ["the cat sees a dog"] * 200
        return process.live.post(TRANSLATE, {"text": lines, "beam_size": 20, "retry": True})

    call = in_background(ask)
    until(lambda: process.live.counted("dragoman_queue_requests") == 1)
    ended = process.end(signal.SIGTERM)
    assert ended.code == 1
    last = [json.loads(line) for line in ended.said.splitlines()][-1]
    assert "could not be answered within --shutdown-timeout" in last["error"]
    assert call().status == 503


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_server_that_ends_by_itself_says_why_in_its_log(
    dragoman: CommandLine, translator_folder: Path, tmp_path: Path, quiet: list[str]
) -> None:
    """Each log line is JSON; without a log, the reason is a sentence."""
    damaged = copytree(translator_folder, tmp_path / "damaged")
    (damaged / "model.safetensors").write_bytes(b"")
    ended = dragoman.run(*quiet, "serve", damaged, "--port", free_port())
    if quiet:
        ended.assert_refused("No model can be used: ")
        return
    last = [json.loads(line) for line in ended.said.splitlines()][-1]
    assert (ended.code, last["level"]) == (2, "error")
    assert last["error"].startswith("No model can be used: ")


PRICING = """
import time
from dragoman.tasks.translate.translator import Translator
courses = Translator.courses
Translator.courses = lambda *given: time.sleep(600) or courses(*given)
"""


@pytest.mark.parametrize("process", [[PRICING, "--shutdown-timeout", "1.5"]], indirect=True)
def test_what_a_thread_computes_does_not_hold_up_the_end(process: Process) -> None:
    """A request that is still being priced when time is up gets an error of ours."""
    asked = {"text": ["the cat " * 100], "target_lang": "ZH"}
    call = in_background(partial(process.live.post, "/v2/translate", asked))
    until(lambda: process.live.counted("dragoman_queue_requests") == 1)
    assert process.end(signal.SIGTERM).code == 1
    answer = call()
    assert (answer.status, "shutting down" in answer.json["message"]) == (503, True)


@pytest.mark.parametrize("process", [[""]], indirect=True)
def test_ctrl_c_ends_an_idle_server(process: Process) -> None:
    """The exit code is 130, as for other commands."""
    ended = process.end(signal.SIGINT)
    assert (ended.code, "Traceback" in ended.said) == (130, False)


def test_documents_that_were_accepted_are_translated_after_the_signal(
    translator_folder: Path,
) -> None:
    """Current and queued documents are translated and can be fetched; new ones are refused."""
    with serving(translator_folder, shutdown_timeout=60.0) as live:
        gate = Gate(live, "en-zh")
        ours = in_background(partial(sent, live, "/v1/documents", {"tgt_lang": "zh"}))
        until(lambda: gate.batches)
        others = [uploaded(live) for _ in range(3)]
        live.end()
        until(lambda: live.get("/v1/models").status == 503)
        assert sent(live, "/v2/document", {"target_lang": "ZH"}).status == 503
        gate.opened.set()
        for path, key in others:
            until(lambda: live.post(path, key).json["status"] == "done")  # noqa: B023 -- it ends here
            assert live.post(f"{path}/result", key).body
        assert live.drained() == {"lost": 0, "kept": 0, "unfetched": 0}
        assert ours().status == 200
    log = live.log.getvalue()
    assert log.count('"event": "document", "outcome": "done"') == 4
    assert '"event": "draining", "requests": 4' in log


@pytest.mark.parametrize("state", [None, "state"])
def test_documents_that_are_lost_are_told(
    translator_folder: Path, tmp_path: Path, state: str | None
) -> None:
    """With a state folder, only the awaited document is lost; the next server has the others."""
    folder = None if state is None else tmp_path / state
    with serving(translator_folder, state=folder, shutdown_timeout=1.5) as live:
        gate = Gate(live, "en-zh")
        ours = in_background(partial(sent, live, "/v1/documents", {"tgt_lang": "zh"}))
        until(lambda: gate.batches)
        for _ in range(3):
            uploaded(live)
        live.end()
        kept = 3 if state else 0
        assert live.drained() == {"lost": 4 - kept, "kept": kept, "unfetched": 0}
        answer = ours()
        assert (answer.status, "shutting down" in answer.json["error"]["what"]) == (503, True)
        gate.opened.set()


def test_who_awaits_a_document_is_told_at_once_that_time_is_up(translator_folder: Path) -> None:
    """Before the connections are closed."""
    with serving(translator_folder) as live:
        gate = Gate(live, "en-zh")
        ours = in_background(partial(sent, live, "/v1/documents", {"tgt_lang": "zh"}))
        until(lambda: gate.batches)
        live.service.draining = True
        live.server._loop.call_soon_threadsafe(live.service.abandon)
        assert ours().status == 503
        assert live.get("/health/live").status == 200
        gate.opened.set()


@pytest.mark.parametrize("unfetched", [1, 0])
def test_what_goes_with_the_server_may_be_fetched_until_time_is_up(
    translator_folder: Path, tmp_path: Path, unfetched: int
) -> None:
    """Documents that were fetched, or are left to the next server, do not delay the shutdown."""
    state, seconds = (None, 2.5) if unfetched else (tmp_path, 600.0)
    with serving(translator_folder, state=state, shutdown_timeout=seconds) as live:
        fetched, left = filed(live), filed(live)
        assert live.get(fetched).status == 200
        started = monotonic()
        live.end()
        if unfetched:
            until(lambda: live.get("/v1/models").status == 503)
            assert live.send("HEAD", left).status == 200
        assert live.drained() == {"lost": 0, "kept": 0, "unfetched": unfetched}
        assert not unfetched or monotonic() - started > seconds / 2


@pytest.mark.parametrize("process", [["", "--shutdown-timeout", "0.01"]], indirect=True)
def test_what_goes_with_the_server_goes_however_short_the_time(
    process: Process, tmp_path: Path
) -> None:
    """The temporary folder would otherwise stay on the disk with users' texts."""
    uploaded(process.live)
    assert [*(tmp_path / "tmp").rglob("*.sqlite")]
    process.end(signal.SIGTERM)
    assert not [*(tmp_path / "tmp").rglob("*.*")]
