"""Costs before computation: pricing, deadlines, and options that allow longer translations."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.system.serve.live import Held, Live, in_background, serving, until

from dragoman.serve.settings import RequestLimits

TRANSLATE = "/v1/translate"
LONG = "the cat sees a dog " * 40


@pytest.fixture(scope="module")
def small(translator_folder: Path) -> Iterator[Live]:
    """A server with a small queue."""
    with serving(translator_folder, queue_tokens=5000) as live:
        yield live


@pytest.fixture
def slow(small: Live, monkeypatch: pytest.MonkeyPatch) -> Held:
    """The conversion of texts to ids that prices requests, held back."""
    translator = small.answering("en-zh")
    held = Held(translator.courses)
    monkeypatch.setattr(translator, "courses", held)
    return held


def test_what_is_priced_is_counted(small: Live, slow: Held) -> None:
    """Until it is priced, a request counts by its length; a full queue refuses others at once."""
    ask = {"text": LONG, "beam_size": 1}
    calls = [in_background(partial(small.post, TRANSLATE, ask)) for _ in range(20)]
    until(lambda: len(small.service.queue.costs) == 20)
    assert small.service.queue.tokens >= 20 * len(LONG) // 4
    full = small.post(TRANSLATE, {"text": LONG * 8})
    assert full.status == 429
    slow.go_on.set()
    assert {call().status for call in calls} == {200}
    assert small.service.queue.tokens == 0


def test_a_deadline_stops_the_pricing(small: Live, slow: Held) -> None:
    """The answer is 504 in time, and the remaining texts are not processed."""
    ask = {"text": [LONG[:100]] * 100}
    late = small.post(TRANSLATE, ask, {"x-deadline": "0.2"})
    assert late.status == 504
    assert not small.service.queue.costs
    slow.go_on.set()
    assert len(small.texts([LONG])) == 1
    assert slow.begun == 2


def test_a_deadline_has_a_bound_and_holds_for_bodies(translator_folder: Path) -> None:
    """The operator sets the bound; a body that is too late is not awaited."""
    with serving(translator_folder, limits=RequestLimits(deadline=100.0)) as live:
        for seconds, status in (("99", 200), ("101", 400), ("1e300", 400)):
            answer = live.post(TRANSLATE, {"text": "a"}, {"x-deadline": seconds})
            assert answer.status == status
        with live.raw() as raw:
            raw.sendall(b"POST /v1/translate HTTP/1.1\r\nhost: localhost\r\nx-deadline: 0.2\r\n")
            raw.sendall(b"content-type: application/json\r\ncontent-length: 9\r\n\r\n{")
            assert raw.recv(4096).startswith(b"HTTP/1.1 504")


def test_what_may_be_written_is_priced(small: Live) -> None:
    """A length above the model's own raises the cost in proportion."""

    def price(options: dict[str, Any]) -> int:
        with patch.object(small.service.queue, "take") as take:
            small.post(TRANSLATE, {"text": "the cat", "beam_size": 2} | options)
        return int(take.call_args.args[1])

    own, options = price({}), small.answering("en-zh").options
    constant, factor = options.max_length_constant, options.max_length_factor
    assert price({"max_length_constant": 1}) == own
    assert price({"max_length_constant": constant + 100}) == own + 2 * 100
    assert price({"max_length_factor": 4 * factor}) == 4 * own


def test_prefixes_are_no_texts_but_have_characters(translator_folder: Path) -> None:
    """The two sides of a scored pair do not count as two texts either."""
    limits = RequestLimits(texts=3, characters=60)
    with serving(translator_folder, limits=limits) as live:
        some = ["the cat"] * 3
        assert live.post(TRANSLATE, {"text": some, "prefix": ["a"] * 3}).status == 200
        long = ["the big cat sees"] * 3
        assert live.post(TRANSLATE, {"text": some, "prefix": long}).status == 400
        assert live.post("/v1/score", {"src": some, "tgt": some}).status == 200
        auto = {"q": ["a " * 10] * 3, "source": "auto", "target": "zh"}
        assert live.post("/translate", auto).status == 200  # joined without counting separators
