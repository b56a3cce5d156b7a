"""Inspection of what a model does with a text, over HTTP."""

import json
from pathlib import Path
from shutil import copytree, rmtree

from tests.system.serve.live import Live, serving, until
from tests.unit.tasks.tiny import save_another

from dragoman.lens.choices import Choices
from dragoman.lens.inspecting import inspect_folder
from dragoman.tasks.folders import read_folder

INSPECT = "/v1/inspect"


def test_an_inspection_is_that_of_the_command_line(live: Live, translator_folder: Path) -> None:
    """The numbers are the same; the model has its name instead of its path on the server."""
    answer = live.post(INSPECT, {"text": "the cat sees", "tgt_lang": "zh"})
    assert answer.status == 200
    expected = inspect_folder(
        read_folder(translator_folder, device="cpu"), "the cat sees", Choices()
    )
    assert answer.json["model"] == "en-zh"
    assert answer.json["inspection"] == json.loads(
        json.dumps(expected.to_dict() | {"model": "en-zh"})
    )
    assert str(translator_folder) not in answer.body.decode()


def test_a_folder_that_has_changed_is_not_read_again(
    translator_folder: Path, tmp_path: Path
) -> None:
    """Otherwise one server would answer with two models. The operator and the client are told."""
    folder = copytree(translator_folder, tmp_path / "m")
    asks = (INSPECT, {"text": "the cat"}), ("/v1/score", {"src": "the cat", "tgt": "我"})

    def told() -> str:
        start = len(live.log.getvalue())
        answers = [live.post(*ask) for ask in asks]
        assert [one.status for one in answers] == [503, 503]
        assert str(tmp_path) not in str(answers)
        until(lambda: live.log.getvalue()[start:].count('"level": "error", "event": "folder"') == 2)
        (what,) = {one.json["error"]["what"] for one in answers}
        assert {one.json["error"]["do"] for one in answers} == {"Tell the operator."}
        return str(what)

    with serving(folder) as live:
        before = live.texts(["the cat"])
        save_another(folder)
        assert told().startswith("m has changed since its model was loaded; ")
        rmtree(folder)
        assert told() == "There is no model folder m."
        copytree(translator_folder, folder)
        (folder / "model.safetensors").write_bytes(b"")
        assert "m/model.safetensors is damaged" in told()
        rmtree(folder)
        copytree(translator_folder, folder)
        assert [live.post(*ask).status for ask in asks] == [200, 200]
        assert live.texts(["the cat"]) == before


def test_what_cannot_be_looked_into_is_refused(translator_folder: Path) -> None:
    """Long or missing texts, other pairs, and large or multilingual models are refused."""
    with serving(translator_folder) as live:
        for wrong in ({}, {"text": "a " * 5000}, {"text": "a", "tgt_lang": "de"}, {"text": ["a"]}):
            assert live.post(INSPECT, wrong).status == 400
        served = live.service.shelf.models["en-zh"]
        served.bytes = 2 << 30
        assert "takes 2.1 GB" in live.post(INSPECT, {"text": "a"}).json["error"]["what"]
        served.languages = ("en", "zh")
        refused = live.post(INSPECT, {"text": "a", "tgt_lang": "zh"})
        assert "several languages" in refused.json["error"]["what"]
