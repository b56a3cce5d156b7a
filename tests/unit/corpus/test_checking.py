"""Checking and cleaning a corpus as a whole, and the invariants of the output."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.corpus import checking
from dragoman.corpus.checking import Checked, check
from dragoman.corpus.choosing import sample, split
from dragoman.corpus.config import EVERY, CleaningConfig
from dragoman.corpus.scoring import cross_entropies
from dragoman.corpus.writing import (
    check_removed,
    documents_of,
    files_of,
    read_of,
    write_removed,
    write_sets,
)
from dragoman.data.checks import Pair
from dragoman.data.corpus import CorpusConfig, numbered_pairs
from dragoman.errors import InputError
from dragoman.tasks.results import Scored

WORDS = st.sampled_from(
    ["a", "B", "house", "Haus", "12", "999", "{x}", "é", "Ã©", "\ufffd", "房子", "!", "...", "ha"]
)
TEXT = st.lists(WORDS, max_size=6).map(" ".join)
PAIRS = st.lists(st.tuples(TEXT, TEXT), max_size=40)


def checked(pairs: Sequence[Pair], *held_out: str) -> Checked:
    """The faults of some pairs."""
    return check(lambda: pairs, CleaningConfig(), ("en", "de"), held_out)


def rules_at(found: Checked) -> list[set[str]]:
    """The rules that each pair breaks."""
    return [{rule for n, rule in enumerate(EVERY) if bits >> n & 1} for bits in found.broken]


@settings(max_examples=100, deadline=None)
@given(PAIRS)
def test_cleaning_twice_removes_nothing_more(pairs: list[Pair]) -> None:
    """Cleaning is idempotent, and the counts of the report match what was removed."""
    found = checked(pairs)
    kept = [pair for pair, good in zip(pairs, found.kept, strict=True) if good]
    assert checked(kept).kept.all()
    report = found.report(enumerate(pairs, start=1))
    assert report.kept == len(kept)
    assert sum(each.removed for each in report.rules) == len(pairs) - len(kept)
    assert all(each.removed <= each.broken for each in report.rules)


def test_what_came_before_is_a_duplicate() -> None:
    """Duplicates are compared by letters and digits; the first good one of equal pairs is kept."""
    pairs = [("A bad \ufffd one", "Ein x"), ("A house.", "Ein Haus."), ("a HOUSE", "ein haus"),
             ("A house!", "Das Haus."), ("A bad one", "Ein x")]  # fmt: skip
    found = rules_at(checked(pairs))
    assert found == [{"encoding", "duplicate"}, set(), {"duplicate"}, set(), set()]


def invented(count: int) -> list[Pair]:
    """Return sentences of two made-up languages, translated word for word in reverse order."""
    rng = Random(0)
    words = [f"{a}{b}{c}" for a in "bdfgkl" for b in "aeiou" for c in "mnprst"]
    other = dict(zip(words, rng.sample([f"{word}zo" for word in words], len(words)), strict=True))
    chosen = (rng.choices(words, k=rng.randrange(6, 14)) for _ in range(count))
    return [(" ".join(some), " ".join(other[word] for word in reversed(some))) for some in chosen]


@pytest.mark.parametrize("most", [10_000_000, 100_000])
def test_unrelated_pairs_are_found_by_the_words_of_the_others(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shuffled and truncated pairs are found, hardly any others, and none in a second pass.

    The same is true if the words are learned from a part of the pairs.
    """
    monkeypatch.setattr(checking, "MOST_LINKS", most)
    monkeypatch.setattr(checking, "FEWEST", 500)
    pairs = invented(2000)
    others = pairs[1:200] + pairs[:1]
    pairs[:200] = [(src, tgt) for (src, _), (_, tgt) in zip(pairs[:200], others, strict=True)]
    pairs[200:400] = [(src, " ".join(tgt.split()[:2])) for src, tgt in pairs[200:400]]
    config = CleaningConfig(max_ratio=100)
    found = check(lambda: pairs, config, (None, None))
    unrelated = np.array(["unrelated" in rules for rules in rules_at(found)])
    assert unrelated[:200].mean() > 0.95
    assert unrelated[200:400].mean() > 0.8
    assert unrelated[400:].mean() < 0.01
    kept = [pair for pair, good in zip(pairs, found.kept, strict=True) if good]
    assert check(lambda: kept, config, (None, None)).kept.all()
    skip = ("unrelated", "ratio")
    assert check(lambda: pairs, CleaningConfig(skip=skip), (None, None)).kept.all()


def test_a_sample_of_long_pairs_is_large_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample is large enough even if few of the pairs fit into the number of learned words."""
    monkeypatch.setattr(checking, "MOST_LINKS", 1000)
    pairs = invented(2100)
    others = pairs[100:300]
    pairs[:200] = [(src, tgt) for (src, _), (_, tgt) in zip(pairs[:200], others, strict=True)]
    found = check(lambda: pairs, CleaningConfig(), (None, None))
    assert sum("unrelated" in rules for rules in rules_at(found)[:200]) > 100


def test_what_is_left_is_scored() -> None:
    """Only pairs that break no other rule are scored; a second pass finds nothing more."""
    pairs = [*invented(1300), ("same words here", "same words here")]
    seen = list[Pair]()

    def score(some: Iterable[Pair]) -> Iterator[float]:
        for src, tgt in some:
            seen.append((src, tgt))
            yield 9.0 if "b" in src[:1] else 1.0

    def found_in(some: list[Pair]) -> Checked:
        return check(lambda: some, CleaningConfig(), (None, None), score=score)

    found = found_in(pairs)
    unlikely = np.array(["unlikely" in rules for rules in rules_at(found)])
    assert ("same words here", "same words here") not in seen
    assert unlikely.any()
    assert all(src[0] == "b" for (src, _), bad in zip(pairs, unlikely, strict=True) if bad)
    kept = [pair for pair, good in zip(pairs, found.kept, strict=True) if good]
    assert not any(src[0] == "b" for src, _ in kept)
    assert found_in(kept).kept.all()


class Stub:
    """A model with a loss of one nat per source letter for each target letter; x is impossible."""

    def score(self, pairs: Iterable[Pair]) -> list[Scored]:
        """Return the score of each pair."""
        found = [
            tuple(-math.inf if c == "x" else -1.0 * len(src) for c in tgt) for src, tgt in pairs
        ]
        return [
            Scored(log_prob=sum(each), score=0.0, tokens=("?",) * len(each), token_log_probs=each)
            for each in found
        ]


def test_a_cross_entropy_is_by_both_models() -> None:
    """Two models give the mean and the difference of their cross-entropies; one gives its own."""
    pairs = [("abc", "ab"), ("a", "axbx"), ("", ""), ("a", "x")]
    assert [*cross_entropies([Stub()], pairs)] == [3.0, 1.0, 0.0, 0.0]
    assert [*cross_entropies([Stub(), Stub()], pairs)] == [3.5, 5.5, 0.0, 1.5]


def test_lines_that_are_held_out() -> None:
    """One held-out side is enough if it is long; everyday phrases must match on both sides."""
    held = ["The committee met on Tuesday.", "Yes.", "Ja."]
    pairs = [("the committee met on tuesday", "Man traf sich."), ("Yes.", "Ja!"), ("Yes.", "Doch.")]
    assert rules_at(checked(pairs, *held)) == [{"held_out"}, {"held_out"}, set()]


def test_languages_are_told_by_the_first_lines() -> None:
    """The languages of both sides are detected, unless both sides are in one language."""
    one, two = "The house number {} is red and old.", "Das Haus Nummer {} ist rot und alt."
    pairs = [(one.format(n), two.format(n)) for n in range(10)]
    assert check(lambda: pairs, CleaningConfig()).languages == ("en", "de")
    same = [(src, f"{src} And it is mine.") for src, _ in pairs]
    assert check(lambda: same, CleaningConfig()).languages == (None, None)


def test_languages_are_told_by_good_pairs() -> None:
    """Cleaning does not change the detected languages, so a second pass removes nothing more."""
    french = "Un homme en chemise rouge lave sa voiture devant la maison"
    german = "Ein Mann im roten Hemd wäscht sein Auto vor dem Haus"
    english = "A man in a red shirt is washing his car in front of the house"
    pairs = [(f"{french} {n}", f"{english} {n} {{x}}") for n in range(1000)]
    pairs += [(f"{german} {n}", f"{english} {n}") for n in range(100)]
    pairs += [(f"{french} {n}", f"{english} {n}") for n in range(20)]
    found = check(lambda: pairs, CleaningConfig())
    assert found.languages == ("de", "en")
    kept = [pair for pair, good in zip(pairs, found.kept, strict=True) if good]
    assert len(kept) == 100
    assert check(lambda: kept, CleaningConfig()).kept.all()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=60), st.integers(-5, 5))
def test_sets_of_a_split_share_no_sentence(pairs: list[Pair], seed: int) -> None:
    """Each pair is in one set at most, the sizes are those asked for, and a seed decides."""
    try:
        chosen = split(lambda: pairs, (2, 3), seed)
    except InputError:
        return
    assert (chosen == split(lambda: pairs, (2, 3), seed)).all()
    assert [(chosen == n).sum() for n in (1, 2)] == [2, 3]
    for side in (0, 1):
        sets = [{p[side] for p, n in zip(pairs, chosen, strict=True) if n == m} for m in range(3)]
        assert sum(map(len, sets)) == len(set().union(*sets))


Row = tuple[int, int, int]
"""Return the numbers of a source, a target and a document."""
NUMBER = st.integers(0, 299)
ROWS = st.lists(st.tuples(NUMBER, NUMBER, st.integers(0, 14)), min_size=40, max_size=60)


@settings(max_examples=40, deadline=None)
@given(ROWS, st.integers(-5, 5))
def test_sets_of_a_split_share_no_document(rows: list[Row], seed: int) -> None:
    """Nor a sentence; pairs are left out for a sentence of dev or test only, in any order."""

    def sets_of(some: list[Row]) -> list[list[Row]]:
        pairs, names = [(f"s{a}", f"t{b}") for a, b, _ in some], (f"{c}.txt" for *_, c in some)
        numbers = split(lambda: pairs, (8, 8), seed, documents=names)
        return [
            sorted(r for r, n in zip(some, numbers, strict=True) if n == m) for m in range(-1, 3)
        ]

    try:
        left, *sets = sets_of(rows)
    except InputError:
        return
    assert [left, *sets] == sets_of(rows[::-1])
    assert sorted(chain(left, *sets)) == sorted(rows)
    _, dev, test = sets
    assert all(0 < len(some) <= 8 for some in (dev, test))
    for place in range(3):
        values = [{row[place] for row in some} for some in sets]
        assert sum(map(len, values)) == len(set().union(*values))
    assert dev == sorted(row for row in rows if row[2] in {c for *_, c in dev})
    assert all(any(a == x or b == y for x, y, _ in dev + test) for a, b, _ in left)


def test_a_set_has_whole_documents() -> None:
    """A set takes as many whole documents as fit its size, and at least one."""
    pairs = [(f"source {n}", f"target {n}") for n in range(12)]
    names = "aaaabbbbccdd"
    chosen = split(lambda: pairs, (7, 2), 0, documents=names)
    assert sorted((chosen == n).sum() for n in range(3)) == [2, 4, 6]
    with pytest.raises(InputError, match="No document that is left has 1 pair or fewer"):
        split(lambda: pairs, (4, 1), 0, documents=names)
    with pytest.raises(InputError, match="12 pairs are too few for sets of 100,0"):
        split(lambda: pairs, (10**20, 1), 0)


def test_where_documents_are_named(tmp_path: Path) -> None:
    """Documents come from a column, a key or a file, one for each pair; a memory has none."""
    for name, text in {
        "a.tsv": "src\tin\ttgt\na\tx\tb\nc\t \td\n",
        "a.jsonl": '{"src": "a", "tgt": "b", "in": {"id": 7}}\n{"src": "c", "tgt": "d"}\n',
        "a.en": "a\nc\n",
        "a.doc": "x\ny\n",
        "b.doc": "x\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    table, jsonl = (CorpusConfig(**{k: str(tmp_path / f"a.{k}")}) for k in ("tsv", "jsonl"))  # type: ignore[arg-type]
    lines = CorpusConfig(src=str(tmp_path / "a.en"), tgt=str(tmp_path / "a.en"))
    assert [*documents_of(lines, str(tmp_path / "a.doc"))] == ["x", "y"]
    found = documents_of(table, "in"), documents_of(jsonl, "in.id")
    assert [next(each) for each in found] == ["x", "7"]
    for names, message in (
        (found[0], "pair 2 has no document"),
        (found[1], "line 2 has no key 'in.id'.* set --document"),
        (documents_of(table, "of"), "names no column 'of'"),
        (documents_of(table, "src"), "src has texts, not the names of their documents"),
        (documents_of(lines, str(tmp_path / "b.doc")), "a.en has 2 lines but .*b.doc has 1"),
        (documents_of(CorpusConfig(tm="a.tmx"), "of"), "a.tmx is a memory; --document needs"),
        (documents_of(lines, ""), "--document is empty; name a column"),
    ):
        with pytest.raises(InputError, match=message):
            list(names)


def test_a_sample_does_not_depend_on_the_order() -> None:
    """Sorting a corpus differently does not change the pairs that are drawn."""
    pairs = [(f"source {n}", f"target {n}") for n in range(100)]

    def drawn(some: list[Pair]) -> set[Pair]:
        chosen = sample(lambda: some, 10, 1)
        return {pair for pair, n in zip(some, chosen, strict=True) if n == 0}

    assert drawn(pairs) == drawn(pairs[::-1])
    assert len(drawn(pairs)) == 10
    with pytest.raises(InputError, match="101 pairs cannot be drawn from 100"):
        sample(lambda: pairs, 101, 0)


def test_sizes_and_seeds() -> None:
    """The size of a set is at least one pair; a seed is any integer."""
    pairs = [(f"source {n}", f"target {n}") for n in range(10)]
    for size in (0, -1):
        with pytest.raises(InputError, match=f"A set of {size} pairs cannot be drawn"):
            sample(lambda: pairs, size, 0)
        with pytest.raises(InputError, match="ask for at least 1"):
            split(lambda: pairs, (1, size), 0)
    assert (sample(lambda: pairs, 3, 10**40) == 0).sum() == 3


def test_a_removed_pair_is_one_line(tmp_path: Path) -> None:
    """A removed pair takes one line, whatever its texts contain."""
    file = tmp_path / "a.jsonl"
    file.write_text('{"src": "same\\there\\r\\nnow", "tgt": "same here\\nnow"}\n', encoding="utf-8")
    corpus = CorpusConfig(jsonl=str(file))
    read, removed = read_of(corpus), tmp_path / "removed.tsv"
    write_removed(numbered_pairs(corpus), check(read, CleaningConfig()), removed)
    assert removed.read_text(encoding="utf-8") == "encoding\t1\tsame here now\tsame here now\n"


def test_removed_pairs_replace_no_file(tmp_path: Path) -> None:
    """Removed pairs never overwrite the corpus, another input or another output."""
    corpus, new = tmp_path / "a.tsv", tmp_path / "b.tsv"
    for name, sentence in ((corpus, "is a file to read"), (new, "is written to --out")):
        with pytest.raises(InputError, match=f"{sentence}; give another --keep-removed"):
            check_removed(name, [corpus], [new])
    new.write_text("kept", encoding="utf-8")
    with pytest.raises(InputError, match="exists already"):
        check_removed(new, [corpus], [])


def test_parts_are_named_by_their_languages(tmp_path: Path) -> None:
    """The parts are named by their languages; files that would be overwritten are refused."""
    src, tgt = tmp_path / "a.en", tmp_path / "a.de"
    for path in (src, tgt):
        path.write_text("".join(f"line {n}\n" for n in range(10)), encoding="utf-8")
    corpus = CorpusConfig(src=str(src), tgt=str(tgt))
    files = files_of(corpus, tmp_path, ["train", "dev"])
    assert [path.name for path in files[0]] == ["train.en", "train.de"]
    counts = write_sets(corpus, np.arange(10) % 3 - 1, files)
    assert counts == [3, 3]
    with pytest.raises(InputError, match="is a file to read"):
        files_of(corpus, tmp_path, [""])
    with pytest.raises(InputError, match="exists already"):
        files_of(corpus, tmp_path, ["dev"])
    with pytest.raises(InputError, match=rf"Cannot write to {src}/x: {src} is not a folder; give"):
        files_of(corpus, src / "x", [""])
    (tmp_path / "b").mkdir()
    one_name = replace(corpus, tgt=str(tmp_path / "b" / "a.en"))
    with pytest.raises(InputError, match="Both files are named"):
        files_of(one_name, tmp_path / "out", [""])


def test_texts_that_another_tool_has_cut() -> None:
    """Texts in subword pieces are reported, but not removed."""
    pairs = [(f"Dog number {n} is out@@ side.", f"Hund Nummer {n} ist draußen.") for n in "abc"]
    with pytest.warns(UserWarning, match="100% of the pairs have pieces of subword-nmt, .* line 1"):
        assert checked(pairs).kept.all()


def test_norwegian_is_told_by_either_code() -> None:
    """Both codes of Norwegian map to the one label of the library."""
    pytest.importorskip("py3langid", reason="the extra 'data' is not installed")
    text = "Mannen i den røde skjorta vasker bilen sin foran huset hver lørdag."
    english = "The man in the red shirt washes his car in front of the house every Saturday."
    pairs = [(english, text), (f"{english} So do we.", english)]
    for code in ("nb", "no"):
        found = check(lambda: pairs, CleaningConfig(skip=("copy",)), ("en", code))
        assert found.kept.tolist() == [True, False]
