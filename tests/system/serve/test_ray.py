"""The adapter for Ray Serve, on a Ray of this machine."""

import json
import warnings
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from tests.system.ranks import free_port
from tests.system.serve.live import PATIENCE, Answered, in_background, taken, until

pytest.importorskip("ray", reason="the extra 'serve-ray' is not installed")
with warnings.catch_warnings(action="ignore"):  # Ray's own, of its libraries
    from ray import serve

    from dragoman.serve.ray import build

from dragoman import load
from dragoman.errors import InputError

PORT = free_port()
JSON = {"content-type": "application/json"}
LINES = ["the cat sees a dog", "a tree", "the big bird"]

# Ray's own warnings, and what it leaves to its processes.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def folders(translator_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two model folders."""
    scratch = tmp_path_factory.mktemp("ray")
    return [copytree(translator_folder, scratch / name) for name in ("a", "b")]


@pytest.fixture(scope="module")
def running(folders: list[Path]) -> Iterator[None]:
    """A replica that loads its models when they are asked for."""
    import ray

    ray.init(num_cpus=1, include_dashboard=False, configure_logging=False)
    serve.start(http_options={"host": "127.0.0.1", "port": PORT})
    given = {"models": ",".join(map(str, folders)), "lazy": "true", "cpus": "0.5"}
    serve.run(build(given))
    yield
    serve.shutdown()
    ray.shutdown()


def send(
    method: str, path: str, content: object = None, headers: dict[str, str] | None = None
) -> Answered:
    """Send a request."""
    connection = HTTPConnection("127.0.0.1", PORT, timeout=PATIENCE)
    try:
        connection.request(method, path, json.dumps(content), JSON | (headers or {}))
        return taken(connection.getresponse())
    finally:
        connection.close()


def states() -> dict[str, Any]:
    """The state of each model."""
    return {one["id"]: one["state"] for one in send("GET", "/v1/models").json["data"]}


@pytest.mark.usefixtures("running")
def test_a_replica_answers_as_a_server(folders: list[Path]) -> None:
    """The same translations, errors and figures; the header or the request loads a model."""
    expected = [one.text for one in load(folders[0]).translate(LINES)]
    assert set(states().values()) == {"unloaded"}
    assert send("GET", "/health/live", headers={"serve_multiplexed_model_id": "b"}).status == 200
    assert states() == {"a": "unloaded", "b": "ready"}
    answers = [
        in_background(lambda: send("POST", "/v1/translate", {"text": LINES, "model": "a"}))
        for _ in range(4)
    ]
    for answer in answers:
        assert [one["text"] for one in answer().json["translations"]] == expected
    assert states() == {"a": "ready", "b": "ready"}
    refused = send("POST", "/v1/translate", {"text": 1})
    assert (refused.status, refused.json["error"]["where"]) == (400, "text")
    assert b"dragoman_batch_rows_count" in send("GET", "/metrics").body


@pytest.mark.usefixtures("running")
def test_a_client_that_leaves_is_noticed() -> None:
    """What it asked for leaves the queue."""
    connection = HTTPConnection("127.0.0.1", PORT, timeout=PATIENCE)
    asked = {"text": LINES * 200, "model": "a", "beam_size": 10}
    connection.request("POST", "/v1/translate", json.dumps(asked), JSON)
    until(lambda: b"dragoman_queue_requests 1.0" in send("GET", "/metrics").body)
    connection.close()
    until(lambda: b'outcome="gone"' in send("GET", "/metrics").body)
    assert b"dragoman_queue_tokens 0.0" in send("GET", "/metrics").body


@pytest.mark.parametrize("given", [{}, {"models": "a", "nonsense": "1"}])
def test_a_word_that_is_wrong_is_refused(given: dict[str, str]) -> None:
    """Before anything starts."""
    with pytest.raises(InputError):
        build(given)
