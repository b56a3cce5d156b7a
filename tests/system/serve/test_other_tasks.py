"""The rest of our API: generate, classify, tag, embed, score, detect, and the description."""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
import pytest
from tests.processors import needs_independent_rows
from tests.system.serve.live import PATIENCE, Live, in_background, serving, until
from tests.unit.tasks.readers import CLASSIFY, TAG, save_reader
from tests.unit.tasks.tiny_generator import PROMPTS, save_generator

import dragoman
from dragoman.decode import Items
from dragoman.serve.app import ENDPOINTS
from dragoman.serve.schema import (
    ClassifyAnswer,
    GenerateAnswer,
    TagAnswer,
    TranslateAnswer,
    VectorForm,
)
from dragoman.serve.v1 import FAILED

GENERATE = "/v1/generate"


@pytest.fixture(scope="module")
def folders(translator_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model for each task."""
    root = tmp_path_factory.mktemp("tasks")
    return {
        "en-zh": translator_folder,
        "gen": save_generator(root / "gen"),
        "kinds": save_reader(root / "kinds", head=CLASSIFY),
        "names": save_reader(root / "names", head=TAG),
    }


@pytest.fixture(scope="module")
def every(folders: dict[str, Path]) -> Iterator[Live]:
    """A server with all of them."""
    with serving(*folders.values()) as live:
        yield live


def plain(answers: list[Any]) -> Any:  # noqa: ANN401 -- JSON
    """Return answers as decoded JSON."""
    return json.loads(json.dumps([one.to_dict() for one in answers]))


@needs_independent_rows
@pytest.mark.parametrize(
    ("task", "key", "name"),
    [("classify", "classifications", "kinds"), ("tag", "taggings", "names")],
)
def test_encoders_answer_as_from_python(
    every: Live, folders: dict[str, Path], task: str, key: str, name: str
) -> None:
    """The task's only model answers, with or without its name in the request."""
    path, lines = f"/v1/{task}", ["the cat sees a dog", "", "我喜欢学习", "a"]
    expected = plain(getattr(dragoman.load(folders[name]), task)(lines))
    for model in ({}, {"model": name}):
        answer = every.post(path, {"text": lines} | model)
        assert answer.json == {"model": name, key: expected}
    assert every.post(path, {"text": lines, "model": "gen"}).status == 404
    assert every.post(path, {"text": lines, "beam_size": 3}).status == 400


@needs_independent_rows
def test_prompts_are_continued_as_from_python(every: Live, folders: dict[str, Path]) -> None:
    """A given seed is used; a drawn seed is returned."""
    generator = dragoman.load(folders["gen"])
    prompts = [prompt for prompt in PROMPTS if prompt]
    answer = every.post(GENERATE, {"text": prompts, "seed": 5, "temperature": 0.7})
    assert answer.status == 200
    assert answer.json["seed"] == 5
    assert answer.json["generations"] == plain(generator.generate(prompts, seed=5, temperature=0.7))
    drawn = every.post(GENERATE, {"text": prompts}).json
    again = every.post(GENERATE, {"text": prompts, "seed": drawn["seed"]}).json
    assert again == drawn
    greedy = every.post(GENERATE, {"text": "the cat", "temperature": 0}).json
    assert greedy["seed"] is None


def events(body: bytes) -> list[Any]:
    """Return the data of server-sent events."""
    assert body.endswith(b"\n\n")
    return [json.loads(event.removeprefix(b"data: ")) for event in body.split(b"\n\n")[:-1]]


@needs_independent_rows
@pytest.mark.parametrize("prompt", PROMPTS[:6])
@pytest.mark.parametrize("more", [{}, {"stop": ["a"]}, {"temperature": 0, "beam_size": 3}])
def test_a_stream_is_the_text(every: Live, prompt: str, more: dict[str, Any]) -> None:
    """The pieces join to the text of the final answer, which is the same as without a stream."""
    ask = {"text": prompt, "seed": 3} | more
    answer = every.post(GENERATE, ask | {"stream": True})
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    *pieces, last = events(answer.body)
    whole = every.post(GENERATE, ask).json
    assert last == {"done": whole["generations"][0], "seed": whole["seed"]}
    assert "".join(piece["text"] for piece in pieces) == last["done"]["text"]


def test_a_stream_is_refused_before_it_begins(every: Live) -> None:
    """The refusal has its own status."""
    assert every.post(GENERATE, {"text": ["a", "b"], "stream": True}).status == 400
    assert every.post(GENERATE, {"text": "a", "stream": True, "max_tokens": 9999}).status == 400
    assert every.post(GENERATE, {"text": "a", "model": "en-zh", "stream": True}).status == 404


def test_a_stream_ends_with_its_client(folders: dict[str, Path]) -> None:
    """Streams share batches; after a client disconnects, its stream takes no further step."""
    with serving(folders["gen"]) as live:
        seen, go_on = list[int](), Event()
        ids = live.answering("gen")._ids
        steps = ids.steps

        def held(*given: Any, **more: Any) -> Any:  # noqa: ANN401 -- as it is
            for step in steps(*given, **more):
                seen.append(len(step.prefixes.sentence_N))
                assert len(seen) < 100 or go_on.wait(PATIENCE)
                yield step

        ids.steps = held
        ask = {"text": "the cat", "max_tokens": 500, "min_length": 499, "seed": 1, "stream": True}
        connection, found = live.begin(GENERATE, ask), b""
        response = connection.getresponse()
        while found.count(b"data: ") < 3:
            found += response.read1(4096)
        connection.close()
        until(lambda: not live.service.queue.costs)
        go_on.set()
        short = ask | {"max_tokens": 60, "min_length": 59}
        assert live.post(GENERATE, short).status == 200
        assert len(seen) < 200
        seen.clear()
        go_on.clear()
        late = live.post(GENERATE, ask, {"x-deadline": "0.3"})
        assert events(late.body)[-1]["error"]["where"] == "header x-deadline"
        go_on.set()
        calls = [in_background(partial(live.post, GENERATE, short)) for _ in range(6)]
        assert len({call().body for call in calls}) == 1
        assert max(seen) > 1


@needs_independent_rows
def test_pairs_are_scored(every: Live, folders: dict[str, Path]) -> None:
    """A translator scores by default, or a generator if it is named."""
    pairs = [("the cat", "我"), ("", "a"), *[(f"a dog {n}", "the tree") for n in range(40)]]
    ask = {"src": [src for src, _ in pairs], "tgt": [tgt for _, tgt in pairs]}
    for name in ("en-zh", "gen"):
        expected = plain(dragoman.load(folders[name]).score(pairs))
        assert every.post("/v1/score", ask | {"model": name}).json["scores"] == expected
    assert every.post("/v1/score", ask).json["model"] == "en-zh"
    assert every.post("/v1/score", {"src": ["a"], "tgt": []}).status == 400
    assert every.post("/v1/score", {"src": "a", "tgt": "b", "model": "kinds"}).status == 404
    longest = {"src": ["a"] * 34 + ["the cat " * 10_000], "tgt": ["b"] * 35}
    assert "begins with 'the cat the" in every.post("/v1/score", longest).json["error"]["what"]


@pytest.mark.parametrize(
    ("task", "key", "name", "kind"),
    [
        ("generate", "generations", "gen", GenerateAnswer),
        ("classify", "classifications", "kinds", ClassifyAnswer),
        ("tag", "taggings", "names", TagAnswer),
        ("translate", "translations", "en-zh", TranslateAnswer),
    ],
)
def test_an_answer_without_a_text_has_the_form_of_its_task(
    every: Live,
    task: str,
    key: str,
    name: str,
    kind: type[msgspec.Struct],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """When a library fails at a text; the vector of an embedding is then empty."""

    def course() -> Any:  # noqa: ANN401 -- a course
        yield Items(values=[], costs=[], budget=1)
        raise ValueError("a fault of a library")

    monkeypatch.setattr(every.answering(name), "courses", lambda *_: [course()])
    found = every.post(f"/v1/{task}", {"text": ["a"]}).json
    assert len(getattr(msgspec.convert(found, kind), key)) == 1
    assert found[key][0]["flags"] == ["failed"]
    assert msgspec.convert(FAILED["embed"], VectorForm).vector == []


def test_languages_are_detected(every: Live) -> None:
    """Among those that the models read (English) or write (Chinese), by script."""
    texts = ["The weather is nice today.", "我喜欢学习", "", "123"]
    found = every.post("/v1/detect", {"text": texts}).json["detections"]
    assert [one["language"] for one in found] == ["en", "zh-Hans", None, None]


def test_the_description_is_whole(every: Live) -> None:
    """It contains every endpoint, and every reference resolves."""
    answer = every.get("/openapi.json")
    described = answer.json
    assert described["openapi"] == "3.1.0"
    listed = {(m.upper(), path) for path, methods in described["paths"].items() for m in methods}
    assert listed == {(each.method, each.path) for each in ENDPOINTS}
    schemas = described["components"]["schemas"]
    references = re.findall('"\\$ref":"(.*?)"', answer.body.decode())
    assert set(references) <= {f"#/components/schemas/{name}" for name in schemas}
    assert references
    asked = described["paths"]["/v3/glossaries/{glossary_id}/entries"]["get"]["parameters"]
    assert [each["in"] for each in asked] == ["path", "query", "query"]
    bodies = [described["paths"][f"/v2/{name}"]["post"] for name in ("languages", "translate")]
    assert [each["requestBody"]["required"] for each in bodies] == [False, True]
    secured = described["paths"]["/v2/usage"]["get"]["security"]
    assert secured == [{}, {"DeepL-Auth-Key": []}]
    assert set(secured[1]) <= set(described["components"]["securitySchemes"])
    for path in ("/translate", "/v2/translate"):
        posted = described["paths"][path]["post"]
        assert "application/x-www-form-urlencoded" in posted["requestBody"]["content"]
        assert posted["responses"]["200"]["content"]["application/json"]["schema"]
    assert {"src_tokens", "alignment"} <= set(schemas["LinkedTranslation"]["properties"])
    options = schemas["TranslateRequest"]["properties"]
    assert options["beam_size"]["maximum"] == 1000
    assert "Beam size" in options["beam_size"]["description"]
    assert "processors" not in options
    assert schemas["GenerateRequest"]["additionalProperties"] is False


@pytest.mark.parametrize("task", ["generate", "embed"])
def test_a_task_without_a_model_is_refused(live: Live, task: str) -> None:
    """The error says what to do; a server with only a translator does neither task."""
    refused = live.post(f"/v1/{task}", {"text": ["a"]})
    error = {"what": f"No models can {task}.", "where": "model"}
    error["do"] = "GET /v1/models lists the models and their tasks."
    error["message"] = f"{error['what']} {error['do']}"
    assert (refused.status, refused.json["error"]) == (400, error)
