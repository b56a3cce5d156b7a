"""Operation of a server: keys, memory, logs, CORS, metrics, and loading models."""

import gc
import json
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Any
from weakref import ref

import pytest
from tests.system.conftest import CommandLine
from tests.system.serve.live import Gate, Live, in_background, serving, until
from tests.unit.tasks.tiny import save_another

from dragoman.errors import InputError
from dragoman.serve import app, shelf
from dragoman.serve.settings import ApiKeys

TRANSLATE = "/v1/translate"


def test_keys_open_the_server(translator_folder: Path, tmp_path: Path) -> None:
    """Only listed keys are accepted, and none is logged."""
    file = tmp_path / "keys.txt"
    file.write_text("secret-one\n\n  # ours\nsecret-two#2\nsecret-zwölf\n", "utf-8-sig")
    file.chmod(0o600)
    with serving(translator_folder, keys=ApiKeys.read(file)) as live:
        for given in ("", "Bearer", "Bearer secret-two", "Basic secret-one", "Bearer secret-on"):
            refused = live.post(TRANSLATE, {"text": "a"}, {"authorization": given})
            assert refused.status == 401
            assert refused.headers["www-authenticate"] == "Bearer"
        assert live.get("/metrics").status == live.get("/v1/models").status == 401
        for key in ("secret-one", "secret-two#2", "secret-zwölf"):
            header = f"Bearer {key}".encode().decode("latin-1")
            allowed = live.post(TRANSLATE, {"text": "a"}, {"authorization": header})
            assert allowed.status == 200
    assert "secret" not in live.log.getvalue()


def test_freed_memory_is_given_back(
    translator_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeatedly, while the server runs."""
    times: list[None] = []
    monkeypatch.setattr(app, "TRIM", 0.01)
    monkeypatch.setattr(app, "give_memory_back", lambda: times.append(None))
    with serving(translator_folder) as live:
        until(lambda: len(times) > 2)
        assert live.post(TRANSLATE, {"text": "a"}).status == 200


def test_python_does_not_search_what_a_model_is_made_of(
    translator_folder: Path, tmp_path: Path
) -> None:
    """Garbage collection would stop all threads. Unloaded models are freed without it."""
    folders = [copytree(translator_folder, tmp_path / name) for name in "ab"]
    with serving(*folders, lazy=True, max_memory=1.5 * 206172) as live:
        assert live.texts(["the cat"], {"model": "a"})
        answering = live.answering("a")
        assert not any(each is answering for each in gc.get_objects())
        gone = ref(answering)
        del answering
        gc.disable()
        try:
            assert live.texts(["the cat"], {"model": "b"})
            until(lambda: gone() is None)
        finally:
            gc.enable()


def test_texts_are_not_logged(live: Live) -> None:
    """Neither texts of answered nor of refused requests; each line is JSON."""
    start = live.log.tell()
    live.texts(["the privatecat sees"])
    live.post(TRANSLATE, {"text": "privatedog", "model": "privatename", "x": "privatekey"})
    live.get("/v1/privatepath?q=privatequery")
    with live.raw() as raw:
        raw.sendall(b"GET /privatepath HTTP/1.1\r\nx: " + b"a" * 40_000)
        assert raw.recv(4096).startswith(b"HTTP/1.1 431")

    def refused() -> list[int]:
        events = [json.loads(line) for line in live.log.getvalue()[start:].splitlines()]
        return [one["status"] for one in events if one["event"] == "refused"]

    until(lambda: refused() == [404, 431])
    logged = live.log.getvalue()[start:]
    assert '"event": "request"' in logged
    assert "private" not in logged


def test_cors_is_off_unless_asked_for(live: Live, translator_folder: Path) -> None:
    """If enabled, it applies only to the named origins."""
    origin = {"origin": "https://ours.example"}
    assert "access-control-allow-origin" not in live.get("/v1/models", origin).headers
    with serving(translator_folder, cors=("https://ours.example",)) as open_one:
        header, allowed = "access-control-allow-origin", open_one.get("/v1/models", origin).headers
        assert allowed[header] == "https://ours.example"
        assert allowed["access-control-expose-headers"] == "retry-after"
        assert header not in open_one.get("/v1/models", {"origin": "https://b.example"}).headers


def test_figures_of_batches(live: Live) -> None:
    """Rows, padding and waiting times of batches are counted."""
    before = live.counted("dragoman_batch_rows_count")
    live.texts(["the cat", "a", "the big dog sees a tree"], {"retry": False})
    assert live.counted("dragoman_batch_rows_count") > before
    assert live.counted("dragoman_padding_tokens_total") > 0
    assert live.counted("dragoman_waiting_seconds_count") >= 3
    assert live.counted("dragoman_queue_tokens_limit") == 1 << 17
    assert live.counted("process_resident_memory_bytes") > 0


def states(live: Live) -> dict[str, str]:
    """Return the state of each model."""
    return {one["id"]: one["state"] for one in live.get("/v1/models").json["data"]}


def test_a_broken_folder_stops_no_other(translator_folder: Path, tmp_path: Path) -> None:
    """Missing folders and damaged weights are reported; other models work."""
    damaged = copytree(translator_folder, tmp_path / "damaged")
    weights = damaged / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with serving(damaged, translator_folder, tmp_path / "missing") as live:
        assert states(live) == {"damaged": "failed", "en-zh": "ready", "missing": "failed"}
        assert live.texts(["the cat"])
        for name in ("damaged", "missing"):
            refused = live.post(TRANSLATE, {"text": "a", "model": name})
            assert refused.status == 503
            assert str(tmp_path) not in refused.body.decode()
        assert live.counted("dragoman_model_loads_total{") == 3
    assert "There is no model folder" in live.log.getvalue()


def test_models_are_loaded_when_they_are_asked_for(translator_folder: Path, tmp_path: Path) -> None:
    """With `lazy`; short memory unloads the least recently used model, but none in use."""
    folders = [copytree(translator_folder, tmp_path / name) for name in ("a", "b", "c")]
    with serving(*folders, lazy=True, max_memory=2.5 * 206172) as live:
        assert set(states(live).values()) == {"unloaded"}
        for name in "abac":
            assert live.texts(["the cat"], {"model": name})
        assert states(live) == {"a": "ready", "b": "unloaded", "c": "ready"}
        gates = [Gate(live, name) for name in "ac"]
        busy = [in_background(partial(live.texts, ["a dog"], {"model": n})) for n in "ac"]
        until(lambda: all(gate.batches for gate in gates))
        refused = live.post(TRANSLATE, {"text": "the cat", "model": "b"})
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        for gate in gates:
            gate.opened.set()
        assert [len(call()) for call in busy] == [1, 1]
        assert live.texts(["the cat"], {"model": "b"})
        assert live.texts(["the cat"], {"model": "c"})
        save_another(folders[0])  # not the model that was served
        assert live.post(TRANSLATE, {"text": "the cat", "model": "a"}).status == 503
        assert states(live)["a"] == "failed"
    assert "a has changed; restart the server to serve it." in live.log.getvalue()
    with pytest.raises(InputError, match="more than --max-memory"), serving(*folders, max_memory=9):
        pass


def test_a_model_that_could_not_be_loaded_is_tried_again(
    translator_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Soon if memory was short, later otherwise; until then the client gets 503."""
    errors: list[Exception] = [MemoryError(), ValueError("a fault"), InputError("damaged")]
    read = shelf._read

    def fails(path: Path, *rest: Any) -> Any:  # noqa: ANN401 -- what a folder answers by
        if errors and path.name == "b":
            raise errors.pop(0)
        return read(path, *rest)

    monkeypatch.setattr(shelf, "_read", fails)
    folders = [copytree(translator_folder, tmp_path / name) for name in "ab"]
    with serving(*folders, lazy=True) as live:
        served = live.service.shelf.models["b"]
        for seconds in ("5", "60", "60"):
            for _ in range(2):
                refused = live.post(TRANSLATE, {"text": "a", "model": "b"})
                assert (refused.status, refused.headers["retry-after"]) == (503, seconds)
            assert states(live)["b"] == "failed"
            served.again -= float(seconds)
        assert live.texts(["the cat"], {"model": "b"})
        assert states(live)["b"] == "ready"
    assert not errors


def test_a_model_is_chosen_by_name_or_by_pair(translator_folder: Path, tmp_path: Path) -> None:
    """Equal folder names are extended by more of their paths; the choice must be unique."""
    twins = [copytree(translator_folder, tmp_path / part / "model") for part in ("x", "y")]
    with serving(*twins) as live:
        assert list(states(live)) == ["x/model", "y/model"]
        assert live.texts(["the cat"], {"model": "x/model"})
        assert live.texts(["the cat"], {"src_lang": "en", "tgt_lang": "zh"})
        assert live.texts(["the cat"], {"src_lang": "EN-us", "tgt_lang": "zho_Hans"})
        unclear = live.post(TRANSLATE, {"text": "a"})
        assert unclear.status == 400
        assert "x/model, y/model" in unclear.json["error"]["do"]
        unknown = live.post(TRANSLATE, {"text": "a", "model": "x/modle"})
        assert unknown.status == 404
        assert "did you mean x/model?" in unknown.json["error"]["what"]
        whole = live.post(TRANSLATE, {"text": "a", "model": str(twins[0])})
        assert str(twins[0])[:100] in whole.json["error"]["what"]
        for asked in ({"model": "m" * 9999}, {"tgt_lang": "m" * 9999}):
            assert len(live.post(TRANSLATE, {"text": "a"} | asked).body) < 500


def test_an_option_out_of_range_is_named(dragoman: CommandLine, translator_folder: Path) -> None:
    """The error shows the option as written on the command line."""
    for option, value, said in (
        ("--limit", "beam=0", "--limit beam=0: beam is 0; it must be at least 1"),
        ("--limit", "cached", "--limit cached: write it as key=value, such as texts=100"),
        ("--drain-delay", "30", "--drain-delay 30 is not less than --shutdown-timeout 30"),
    ):
        dragoman.run("serve", translator_folder, option, value).assert_refused(said)
