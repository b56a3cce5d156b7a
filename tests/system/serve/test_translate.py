"""Translation over HTTP: equal answers, shared batches, and no work for lost clients."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.processors import needs_independent_translations
from tests.system.serve.live import (
    Gate,
    Live,
    PanicException,
    Steps,
    in_background,
    serving,
    until,
)
from tests.unit.tasks.tiny import random_lines

from dragoman.tasks.translate.course import LineTranslator
from dragoman.tasks.translate.translator import Translator

LINES = [*random_lines(12, seed=3), "", "   ", "😀", "我喜欢学习"]


@needs_independent_translations
def test_answers_are_those_of_the_translator(live: Live, translator_folder: Path) -> None:
    """Texts, scores, flags and alternatives are equal and in order."""
    translator = Translator.load(translator_folder)
    answer = live.post("/v1/translate", {"text": LINES, "n_best": 2, "alignment": True})
    expected = translator.translate(LINES, n_best=2)
    assert answer.status == 200
    assert answer.json["model"] == "en-zh"
    assert answer.json["translations"] == [
        json.loads(json.dumps(one.to_dict() | one.linked())) for one in expected
    ]
    assert live.texts(["the cat"]) == [translator.translate("the cat").text]
    assert live.post("/v1/translate", {"text": "the cat", "prefix": "a"}).status == 200


@needs_independent_translations
def test_the_sentences_of_clients_share_a_batch(live: Live, translator_folder: Path) -> None:
    """Sentences that arrive during a batch are computed together in the next."""
    gate, plain = Gate(live, "en-zh"), {"retry": False}
    lines = [[f"a dog {number}", "the tree"] for number in range(6)]
    calls = [in_background(partial(live.texts, some, plain)) for some in lines]
    until(lambda: gate.waiting() == 12)
    gate.opened.set()
    alone = Translator.load(translator_folder)
    options = replace(alone.options, retry=False)
    for some, call in zip(lines, calls, strict=True):
        assert call() == [one.text for one in alone.translate(some, options=options)]
    sizes = [len(batch.costs) for batch in gate.batches]
    assert sum(sizes) == 12
    assert max(sizes) > 2
    assert live.service.queue.tokens == 0


def test_no_step_is_taken_for_a_client_that_has_left(translator_folder: Path) -> None:
    """Its rows leave at the next step, its waiting sentences at once; it counts as gone."""
    with serving(translator_folder) as live:
        steps = Steps(live, "en-zh")
        connection = live.begin("/v1/translate", {"text": ["the cat sees"] * 3})
        until(lambda: steps.count == 4)
        connection.close()
        until(lambda: live.counted('dragoman_requests_total{dialect="v1",outcome="gone"') == 1)
        steps.leave()
        steps.go_on.set()
        assert live.texts(["the dog"])
        until(lambda: not live.service.queue.costs)
        assert steps.count == 4


def test_a_deadline_drops_what_waits(translator_folder: Path) -> None:
    """The answer is 504 in time, and the sentences are never computed."""
    with serving(translator_folder, deadline=20.0) as live:
        gate = Gate(live, "en-zh")
        before = gate.fill(lambda: live.texts(["the cat"], {"retry": False}))
        ask = {"text": "the big dog sees a house", "retry": False}
        late = live.post("/v1/translate", ask, {"x-deadline": "0.1"})
        assert late.status == 504
        assert "deadline" in late.json["error"]["what"]
        gate.opened.set()
        assert [len(call()) for call in before] == [1] * len(before)
        assert {cost for batch in gate.batches for cost in batch.costs} == {6}
        assert live.post("/v1/translate", {"text": "a"}, {"x-deadline": "soon"}).status == 400


def test_a_full_queue_refuses_at_once_and_answers_what_it_accepted(translator_folder: Path) -> None:
    """429 with Retry-After for any number of texts; 413 for more than the whole queue."""
    with serving(translator_folder, queue_tokens=100) as live:
        gate = Gate(live, "en-zh")
        accepted = in_background(lambda: live.texts(["the cat sees a dog"] * 5))
        until(lambda: gate.batches)
        before = live.service.queue.tokens
        assert 0 < before <= 100
        for count in (3, 6):
            full = live.post("/v1/translate", {"text": ["the big dog runs"] * count})
            assert full.status == 429
            assert 1 <= int(full.headers["retry-after"]) <= 60
            assert set(full.json["error"]) == {"message", "what", "where", "do"}
        large = live.post("/v1/translate", {"text": ["the cat sees"] * 50})
        assert large.status == 413
        assert "100" in large.json["error"]["what"]
        gate.opened.set()
        assert len(accepted()) == 5
        assert live.service.queue.tokens == 0
        assert len(live.texts(["the big dog"] * 3)) == 3
        for characters, status in ((300, 200), (450, 413)):
            score = {"src": "a" * characters, "tgt": "b"}
            assert live.post("/v1/score", score).status == status


def test_a_library_that_fails_refuses_one_text(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if it raises no `Exception`, like Rust panics; the other texts are answered."""
    result = LineTranslator._result

    def panics(self: LineTranslator, line: str, *rest: Any) -> Any:  # noqa: ANN401 -- as it is
        if line == "the dog":
            raise PanicException("index out of bounds")
        return result(self, line, *rest)

    monkeypatch.setattr(LineTranslator, "_result", panics)
    answer = live.post("/v1/translate", {"text": ["the cat", "the dog", "a tree"]})
    assert answer.status == 200
    failed = [one["flags"] == ["failed"] for one in answer.json["translations"]]
    assert failed == [False, True, False]
