"""The adapter for Ray Serve, on a local Ray instance."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from tests.system.ranks import free_port
from tests.system.serve.live import Live, in_background, until

pytest.importorskip("ray", reason="the extra 'serve-ray' is not installed")
with warnings.catch_warnings(action="ignore"):  # Ray's own, about its libraries
    from ray import serve

    from dragoman.serve.ray import build

from dragoman import load
from dragoman.errors import InputError

RAY = Live(None, free_port())  # type: ignore[arg-type] # its services are in other processes
LINES = ["the cat sees a dog", "a tree", "the big bird"]

# Ray's own warnings, and resources that it leaves to its processes.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def folders(translator_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two model folders."""
    scratch = tmp_path_factory.mktemp("ray")
    return [copytree(translator_folder, scratch / name) for name in ("a", "b")]


@pytest.fixture(scope="module")
def running(folders: list[Path]) -> Iterator[None]:
    """A replica that loads its models on demand."""
    import ray

    ray.init(num_cpus=1, include_dashboard=False, configure_logging=False)
    serve.start(http_options={"host": "127.0.0.1", "port": RAY.port})
    given = {"models": ",".join(map(str, folders)), "lazy": "true", "cpus": "0.5"}
    serve.run(build(given))
    yield
    serve.shutdown()
    ray.shutdown()


def states() -> dict[str, Any]:
    """Return the state of each model."""
    return {one["id"]: one["state"] for one in RAY.get("/v1/models").json["data"]}


@pytest.mark.usefixtures("running")
def test_a_replica_answers_as_a_server(folders: list[Path]) -> None:
    """Translations, errors and metrics are the same; the header or the request loads a model."""
    expected = [one.text for one in load(folders[0]).translate(LINES)]
    assert set(states().values()) == {"unloaded"}
    assert RAY.get("/health/live", {"serve_multiplexed_model_id": "b"}).status == 200
    assert states() == {"a": "unloaded", "b": "ready"}
    answers = [
        in_background(lambda: RAY.post("/v1/translate", {"text": LINES, "model": "a"}))
        for _ in range(4)
    ]
    for answer in answers:
        assert [one["text"] for one in answer().json["translations"]] == expected
    assert states() == {"a": "ready", "b": "ready"}
    refused = RAY.post("/v1/translate", {"text": 1})
    assert (refused.status, refused.json["error"]["where"]) == (400, "text")
    assert b"dragoman_batch_rows_count" in RAY.get("/metrics").body


@pytest.mark.usefixtures("running")
def test_a_client_that_leaves_is_noticed() -> None:
    """Its request leaves the queue."""
    connection = RAY.begin("/v1/translate", {"text": LINES * 200, "model": "a", "beam_size": 10})
    until(lambda: RAY.counted("dragoman_queue_requests") == 1)
    connection.close()
    until(lambda: b'outcome="gone"' in RAY.get("/metrics").body)
    assert RAY.counted("dragoman_queue_tokens ") == 0


@pytest.mark.parametrize("given", [{}, {"models": "a", "nonsense": "1"}])
def test_a_word_that_is_wrong_is_refused(given: dict[str, str]) -> None:
    """Before anything starts."""
    with pytest.raises(InputError):
        build(given)
