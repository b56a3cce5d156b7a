"""Glossaries through DeepL's API, with its client, and through ours."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Any
from unittest.mock import Mock

import pytest
from tests.system.serve.live import Answered, Client, Held, Live, in_background, serving, until

from dragoman.serve import deepl_glossaries, glossaries
from dragoman.serve.settings import ApiKeys, RequestLimits
from dragoman.serve.state import StoredGlossary

deepl = pytest.importorskip("deepl", reason="the client 'deepl' is not installed")

TERMS = {"cat": "我", "big house": "习"}


@pytest.fixture
def live(translator_folder: Path) -> Iterator[Live]:
    """A server without glossaries."""
    with serving(translator_folder, limits=RequestLimits(glossaries=3)) as live:
        yield live


def test_glossaries_of_a_pair(client: Client) -> None:
    """They can be created, listed, read, used and deleted."""
    made = client.create_glossary("ours", "EN", "ZH", TERMS)
    assert (made.name, made.ready, made.entry_count) == ("ours", True, 2)
    assert [one.glossary_id for one in client.list_glossaries()] == [made.glossary_id]
    assert client.get_glossary(made.glossary_id).creation_time == made.creation_time
    assert client.get_glossary_entries(made) == TERMS
    with_terms = client.translate_text(
        "the cat sees a dog", source_lang="EN", target_lang="ZH", glossary=made
    )
    assert "我" in with_terms.text
    from_csv = client.create_glossary_from_csv("other", "EN", "ZH", 'a,我\n"b ""c""",习,en,zh\n')
    assert client.get_glossary_entries(from_csv) == {"a": "我", 'b "c"': "习"}
    client.delete_glossary(made)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_glossary(made.glossary_id)
    with pytest.raises(deepl.DeepLException, match="Not found"):
        client.translate_text("a", source_lang="EN", target_lang="ZH", glossary=made)


def test_glossaries_of_several_pairs(client: Client) -> None:
    """They can be created, changed by dictionary, and used."""
    dictionary = deepl.api_data.MultilingualGlossaryDictionaryEntries("EN", "ZH", TERMS)
    made = client.create_multilingual_glossary("ours", [dictionary])
    more = deepl.api_data.MultilingualGlossaryDictionaryEntries(
        "EN", "ZH", {"cat": "习", "dog": "我"}
    )
    client.update_multilingual_glossary_dictionary(made, more)
    assert client.update_multilingual_glossary_name(made, "theirs").name == "theirs"
    (listed,) = client.list_multilingual_glossaries()
    assert (listed.name, listed.dictionaries[0].entry_count) == ("theirs", 3)
    (read,) = client.get_multilingual_glossary_entries(made, "EN", "ZH").dictionaries
    assert read.entries.splitlines() == ["cat\t习", "big house\t习", "dog\t我"]
    from_csv = client.update_multilingual_glossary_dictionary_from_csv(made, "EN", "ZH", "a,习")
    assert from_csv.dictionaries[0].entry_count == 4
    replaced = client.replace_multilingual_glossary_dictionary(made, dictionary)
    assert replaced.entry_count == 2
    told = {"source_lang": "EN", "target_lang": "ZH", "glossary": made}
    assert "我" in client.translate_text("<b>the cat</b>", **told, tag_handling="xml").text
    client.delete_multilingual_glossary_dictionary(made, source_lang="EN", target_lang="ZH")
    with pytest.raises(deepl.DeepLException, match="no dictionary for en to zh"):
        client.translate_text("a", **told)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.get_multilingual_glossary_entries(made, "EN", "ZH")
    client.delete_multilingual_glossary(made)
    assert client.list_multilingual_glossaries() == []


def test_dictionaries_in_forms(live: Live) -> None:
    """The clients for Node and Java send forms whose names have the place of a dictionary."""

    def dictionary(place: int, pair: tuple[str, str], entries: str) -> dict[str, str]:
        told = {"source_lang": pair[0], "target_lang": pair[1], "entries": entries}
        told["entries_format"] = "tsv"
        return {f"dictionaries[{place}].{name}": value for name, value in told.items()}

    made = live.form("/v3/glossaries", {"name": "g"} | dictionary(0, ("en", "zh"), "cat\t我"))
    assert (made.status, made.json["dictionaries"][0]["entry_count"]) == (201, 1)
    one = f"/v3/glossaries/{made.json['glossary_id']}"
    fields = {"name": "h"} | dictionary(0, ("en", "zh"), "dog\t习\ncat\t习")
    more = live.form(one, fields, "PATCH")
    assert (more.json["name"], more.json["dictionaries"][0]["entry_count"]) == ("h", 2)
    twice = dictionary(0, ("en", "zh"), "a\tb") | dictionary(1, ("en", "zh"), "a\tb")
    assert "same languages" in live.form(one, twice, "PATCH").json["message"]


def create(live: Live, entries: str, more: dict[str, Any] | None = None) -> Answered:
    """Create a glossary."""
    ask = {"name": "a", "source_lang": "en", "target_lang": "zh", "entries": entries}
    return live.post("/v2/glossaries", ask | {"entries_format": "tsv"} | (more or {}))


@pytest.mark.parametrize(
    ("entries", "what"),
    [
        ("", "there is none"),
        ("a", "line 1"),
        ("a\t我\nb\t", "line 2"),
        ("a\t我\na\t习", "line 2"),
        ("a\t我\n" + "b" * 2000 + "\t习", "at most"),
        ("a\x00\t我", "Invalid glossary entries"),
    ],
)
def test_what_cannot_be_a_glossary_is_refused(live: Live, entries: str, what: str) -> None:
    """The error names the line."""
    refused = create(live, entries)
    assert refused.status == 400
    assert what in refused.json["message"]


def test_other_refusals(live: Live) -> None:
    """An unserved pair, a wrong format, a missing name and too many glossaries are refused."""
    for wrong in ({"target_lang": "de"}, {"source_lang": ""}, {"target_lang": "zh en"}):
        assert create(live, "a\tb", wrong).status == 400
    methods = live.send("OPTIONS", "/v3/glossaries/a").headers["allow"].split(", ")
    assert sorted(methods) == ["DELETE", "GET", "HEAD", "PATCH"]
    assert create(live, "a\tb", {"entries_format": "xls"}).status == 400
    assert create(live, "a\tb", {"name": " "}).status == 400
    statuses = [create(live, "a\tb").status for _ in range(4)]
    assert statuses == [201, 201, 201, 456]
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/entries")):
        for version in ("v2", "v3"):
            query = "?source_lang=en&target_lang=zh"
            assert live.send(method, f"/{version}/glossaries/none{path}{query}").status == 404
    without = live.post("/v2/translate", {"text": ["a"], "target_lang": "ZH", "glossary_id": "x"})
    assert (without.status, without.json["message"]) == (400, "A glossary needs source_lang.")


def test_a_pair_has_one_dictionary(live: Live) -> None:
    """Two that differ only in a region are both refused, in a new glossary or a change."""
    twice = [
        {"source_lang": code, "target_lang": "zh", "entries": entries}
        for code, entries in (("en", "cat\t我"), ("en-US", "dog\t习"))
    ]
    path = "/v3/glossaries"
    made = live.post(path, {"name": "a", "dictionaries": twice[:1]}).json
    both = {"dictionaries": twice}
    changed = live.post(f"{path}/{made['glossary_id']}", both, method="PATCH")
    for refused in (live.post(path, {"name": "a"} | both), changed):
        assert refused.status == 400
        assert "Two dictionaries" in refused.json["message"]
    assert live.get(path).json == {"glossaries": [made]}


def test_our_own_door_takes_terms_along(live: Live) -> None:
    """A request may contain terms, and the answer reports their use."""
    ask = {"text": ["the cat sees a dog", "a tree"], "glossary": {"cat": "我", "dog": "dog"}}
    first, second = live.post("/v1/translate", ask).json["translations"]
    assert "我" in first["text"]
    assert [term["source"] for term in first["terms"]] == ["cat", "dog"]
    assert second["terms"] == []
    assert live.post("/v1/translate", ask | {"glossary": {" ": "a"}}).status == 400


def test_glossaries_survive_a_kill(translator_folder: Path, tmp_path: Path) -> None:
    """Confirmed glossaries are on the disk; a copy stands in for what `kill -9` leaves."""
    with serving(translator_folder, state=tmp_path / "state") as live:
        made = create(live, "cat\t我").json
        copytree(tmp_path / "state", tmp_path / "left")
    with serving(translator_folder, state=tmp_path / "left") as again:
        assert again.get(f"/v2/glossaries/{made['glossary_id']}").json == made


def test_glossaries_are_of_the_key_that_made_them(translator_folder: Path) -> None:
    """Another key cannot see them; the key itself is not stored; each key has a share."""
    limits, keys = RequestLimits(glossaries=8), ApiKeys(["mine", "yours"])
    with serving(translator_folder, limits=limits, keys=keys) as live:
        mine, yours = ({"authorization": f"DeepL-Auth-Key {key}"} for key in ("mine", "yours"))
        ask = {"name": "a", "source_lang": "en", "target_lang": "zh", "entries": "cat\t我"}
        name = live.post("/v2/glossaries", ask, mine).json["glossary_id"]
        used = {"text": ["cat"], "source_lang": "EN", "target_lang": "ZH", "glossary_id": name}
        path = f"/v2/glossaries/{name}"
        assert live.get("/v2/glossaries", yours).json == {"glossaries": []}
        assert live.get(path, yours).status == 404
        assert live.send("DELETE", path, headers=yours).status == 404
        assert live.post("/v2/translate", used, yours).status == 404
        assert live.post("/v2/translate", used, mine).status == 200
        assert live.get(path, mine).status == 200
        (stored,) = live.service.store.all(StoredGlossary)
        assert len(stored.owner) == 64
        for headers, status in ((mine, 201), (mine, 456), (yours, 201)):
            assert live.post("/v2/glossaries", ask, headers).status == status


def test_terms_are_made_ready_once(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Built glossaries are reused until they change; only a limited number is cached."""
    made = Mock(wraps=glossaries.united)
    monkeypatch.setattr(glossaries, "united", made)
    names = [create(live, "cat\t我").json["glossary_id"] for _ in range(2)]
    told = {"text": ["the cat"], "source_lang": "EN", "target_lang": "ZH"}

    def translated(name: str) -> str:
        return str(live.post("/v2/translate", told | {"glossary_id": name}).json["translations"])

    assert "我" in translated(names[0])
    assert "我" in translated(names[0])
    assert made.call_count == 1
    new = {"source_lang": "en", "target_lang": "zh", "entries": "cat\t习", "entries_format": "tsv"}
    path = f"/v3/glossaries/{names[0]}/dictionaries"
    assert live.post(path, new, method="PUT").json["entry_count"]
    assert "习" in translated(names[0])
    monkeypatch.setattr(glossaries, "READY", 1)
    assert "我" in translated(names[1])
    assert len(live.service.glossaries._ready) == 1


def test_of_several_glossaries_the_first_has_the_word(live: Live) -> None:
    """Regardless of case."""
    names = [create(live, entry).json["glossary_id"] for entry in ("Cat\t我", "cat\t习\ndog\t习")]
    told = {"text": ["the cat"], "source_lang": "EN", "target_lang": "ZH"}
    for both, term in ((names, "我"), (names[::-1], "习")):
        answer = live.post("/v2/translate", told | {"glossary_ids": both}).json
        assert term in answer["translations"][0]["text"]


def test_terms_that_differ_in_capitals_are_refused_when_they_are_stored(live: Live) -> None:
    """Not only later, at each translation."""
    name = create(live, "cat\t我").json["glossary_id"]
    more = {"source_lang": "en", "target_lang": "zh", "entries": "Cat\t习", "entries_format": "tsv"}
    refused = live.post(f"/v3/glossaries/{name}", {"dictionaries": [more]}, method="PATCH")
    assert refused.status == 400
    assert "contradicts" in refused.json["message"]
    told = {"text": ["the cat"], "source_lang": "EN", "target_lang": "ZH", "glossary_id": name}
    assert live.post("/v2/translate", told).status == 200


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Held:
    """The parsing of terms, held back."""
    held = Held(deepl_glossaries.checked)
    monkeypatch.setattr(deepl_glossaries, "checked", held)
    return held


def many(first: int) -> dict[str, str]:
    """Return a dictionary large enough to be parsed in a thread."""
    entries = "\n".join(f"{number}\t我" for number in range(first, first + 200))
    return {"source_lang": "en", "target_lang": "zh", "entries": entries}


def change(live: Live, name: str, first: int) -> Answered:
    """Add terms to a glossary."""
    return live.post(f"/v3/glossaries/{name}", {"dictionaries": [many(first)]}, method="PATCH")


def test_changes_at_once_are_all_kept(live: Live, reading: Held) -> None:
    """Concurrent changes accumulate; concurrent creation respects the limit."""
    reading.go_on.set()
    name = create(live, "cat\t我").json["glossary_id"]
    reading.go_on.clear()
    calls = [in_background(partial(change, live, name, 1000 * n)) for n in range(4)]
    until(lambda: len(live.service.queue.costs) == 4)
    reading.go_on.set()
    assert [call().status for call in calls] == [200] * 4
    assert live.get(f"/v2/glossaries/{name}").json["entry_count"] == 801
    reading.go_on.clear()
    makes = [in_background(partial(create, live, many(0)["entries"])) for _ in range(4)]
    until(lambda: len(live.service.queue.costs) == 4)
    reading.go_on.set()
    assert sorted(make().status for make in makes) == [201, 201, 456, 456]


def test_a_glossary_that_was_deleted_stays_so(live: Live, reading: Held) -> None:
    """Even while a change to it is being parsed."""
    reading.go_on.set()
    name = create(live, "cat\t我").json["glossary_id"]
    reading.go_on.clear()
    changing = in_background(partial(change, live, name, 0))
    until(lambda: reading.begun == 2)
    assert live.send("DELETE", f"/v3/glossaries/{name}").status == 204
    reading.go_on.set()
    assert changing().status == 404
    assert live.get(f"/v3/glossaries/{name}").status == 404


def test_glossaries_of_a_request_have_a_bound(
    live: Live, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them is read once, and together they may have as many terms as one."""
    made = [client.create_glossary("ours", "EN", "ZH", TERMS).glossary_id for _ in range(3)]
    reads = Mock(wraps=live.service.store.get)
    monkeypatch.setattr(live.service.store, "get", reads)
    monkeypatch.setattr(glossaries, "MOST", 2 * len(TERMS))
    form = {"text": ["cat"], "source_lang": "EN", "target_lang": "ZH"}
    answer = live.post("/v2/translate", form | {"glossary_ids": made[:2] * 500})
    assert (answer.status, reads.call_count) == (200, 2)
    answer = live.post("/v2/translate", form | {"glossary_ids": made})
    assert (answer.status, "more than 4 terms" in answer.json["message"]) == (400, True)


def test_a_list_of_glossaries_reads_no_terms(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may have gigabytes; a glossary that was deleted is not listed."""
    names = [create(live, f"{word}\t我").json["glossary_id"] for word in ("cat", "dog", "tree")]
    assert live.send("DELETE", f"/v2/glossaries/{names.pop(1)}").status == 204
    reads = Mock(wraps=live.service.store.all)
    monkeypatch.setattr(live.service.store, "all", reads)
    for version in ("v2", "v3"):
        found = live.get(f"/{version}/glossaries").json["glossaries"]
        assert [each["glossary_id"] for each in found] == names
    assert StoredGlossary not in [each.args[0] for each in reads.call_args_list]
