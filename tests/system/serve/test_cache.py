"""Texts that were translated before, if the operator enables the cache."""

from pathlib import Path
from typing import Any

from tests.system.serve.live import Live, serving
from tests.unit.tasks.tiny import save_translator

from dragoman.serve.cache import LONGEST
from dragoman.serve.settings import RequestLimits

CAT = "the cat sees a dog"
FIGURES = ("dragoman_cached_texts_total", "dragoman_batch_rows_sum")


def ask(
    live: Live,
    text: str,
    **more: Any,  # noqa: ANN401 -- of the request
) -> tuple[dict[str, Any], float, float]:
    """Request a translation; return it, the number of cache hits, and the rows that were run."""
    before = [live.counted(name) for name in FIGURES]
    answer = live.post("/v1/translate", {"text": text, **more})
    assert answer.status == 200
    after = [live.counted(name) for name in FIGURES]
    found, ran = (now - then for now, then in zip(after, before, strict=True))
    return answer.json["translations"][0], found, ran


def test_an_equal_text_is_answered_without_a_batch(translator_folder: Path) -> None:
    """Also in another dialect; a change of options, or an evicted text, is translated."""
    with serving(translator_folder, limits=RequestLimits(cached=2)) as live:
        first, *counts = ask(live, CAT)
        assert counts[0] == 0
        assert counts[1] > 0
        assert ask(live, CAT) == (first, 1, 0)
        wide, *counts = ask(live, CAT, beam_size=4)
        assert counts[0] == 0
        assert ask(live, CAT, beam_size=4) == (wide, 1, 0)
        assert ask(live, CAT) == (first, 1, 0)
        assert ask(live, "a dog")[1] == 0  # replaces the entry with the wide beam
        assert ask(live, CAT)[1] == 1
        assert ask(live, CAT, beam_size=4)[1] == 0
        aligned, found, _ = ask(live, CAT, alignment=True)
        assert found == 0
        assert aligned["text"] == first["text"]
        assert ask(live, CAT, alignment=True) == (aligned, 1, 0)
        answer = live.post("/v2/translate", {"text": [CAT], "target_lang": "ZH"})
        assert answer.json["translations"][0]["text"] == first["text"]


def test_what_may_differ_is_translated_again(translator_folder: Path) -> None:
    """Samples, prefixes, glossaries and long texts bypass the cache."""
    sampled: dict[str, Any] = {"temperature": 0.5, "beam_size": 1}
    with serving(translator_folder, limits=RequestLimits(cached=10)) as live:
        for more in ({"prefix": "猫"}, {"glossary": {"cat": "狗"}}, sampled):
            assert [ask(live, CAT, **more)[1] for _ in range(2)] == [0, 0]
        assert [ask(live, CAT + " " * LONGEST)[1] for _ in range(2)] == [0, 0]


def test_languages_and_what_is_copied_change_an_answer(several_folder: Path) -> None:
    """The languages and the parts that are copied belong to the cache key."""
    with serving(several_folder, limits=RequestLimits(cached=10)) as live:
        pairs = [{"src_lang": "en", "tgt_lang": "zh"}, {"src_lang": "zh", "tgt_lang": "en"}]
        assert [ask(live, CAT, **pair)[1] for pair in pairs] == [0, 0]
        assert [ask(live, CAT, **pair)[1] for pair in pairs] == [1, 1]
        marked = ("the cat sees a dog", "the <code>cat</code> sees a dog")
        for count in (0, 1):
            found = [ask(live, text, format="html", **pairs[0])[1] for text in marked]
            assert found == [count, count]


def test_nothing_is_kept_unless_asked(translator_folder: Path) -> None:
    """By default, response times reveal nothing about the requests of others."""
    with serving(translator_folder) as live:
        assert [ask(live, CAT)[1] for _ in range(2)] == [0, 0]


def test_translations_go_with_their_model(tmp_path: Path) -> None:
    """A model that is unloaded loses its cache: it may differ when it is loaded again."""
    folders = [save_translator(tmp_path / name) for name in ("one", "two")]
    with serving(*folders, limits=RequestLimits(cached=10)) as live:
        size = live.service.shelf.models["one"].bytes
    with serving(*folders, limits=RequestLimits(cached=10), max_memory=size, lazy=True) as live:
        assert ask(live, CAT, model="one")[1] == 0
        assert ask(live, CAT, model="one")[1] == 1
        assert ask(live, CAT, model="two")[1] == 0
        assert ask(live, CAT, model="one")[1] == 0
