"""Corpora in every layout that training reads: what is written equals what was read."""

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dragoman.corpus.choosing import times
from dragoman.corpus.config import PairFiles
from dragoman.corpus.merging import corpus_of, layout_of, write_merged
from dragoman.corpus.writing import files_of, read_of, write_sets
from dragoman.data.corpus import CorpusConfig
from dragoman.errors import InputError
from dragoman.files.messages import escape_message
from dragoman.files.reading import read_chunks
from dragoman.files.xml import escape_xml

Pairs = Sequence[tuple[str, str]]
SIGNS = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\ufffe\uffff")
WORD = st.text(SIGNS, min_size=1, max_size=5).filter(lambda word: word.split() == [word])
TEXT = st.lists(WORD | st.sampled_from(['"', "&", "<b>", "a,b", "\\", "'"]), min_size=1, max_size=4)
PAIRS = st.lists(st.tuples(TEXT.map(" ".join), TEXT.map(" ".join)), min_size=1, max_size=8)


def tsv(pairs: Pairs) -> str:
    """Return TSV with another column between source and target."""
    rows = (f"{tgt}\t{n} of\t{src}\n" for n, (src, tgt) in enumerate(pairs))
    return "tgt\tid\tsrc\n" + "".join(rows)


def table(pairs: Pairs) -> str:
    """Return CSV with quotes where needed, and a line break in one column."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["src", "note", "tgt"])
    rows.writerows((src, "two\nlines", tgt) for src, tgt in pairs)
    return text.getvalue()


def jsonl(pairs: Pairs) -> str:
    """Return JSON lines with numbers in unusual notation, and other keys around the texts."""
    records = (
        f'{{"id": {n}.50, "t": {json.dumps({"en": a, "x": None, "de": b})}}}\n'
        for n, (a, b) in enumerate(pairs)
    )
    return "".join(records)


def tmx(pairs: Pairs) -> str:
    """Return TMX whose first unit is not a pair."""
    units = "".join(
        f'\n  <tu tuid="{n}"><prop>kept</prop>\n    <tuv xml:lang="en"><seg>{escape_xml(a)}</seg>'
        f'</tuv>\n    <tuv xml:lang="de"><seg>{escape_xml(b)}</seg></tuv></tu>'
        for n, (a, b) in enumerate(pairs)
    )
    other = '<tu><tuv xml:lang="en"><seg>alone</seg></tuv></tu>'
    return f'<?xml version="1.0"?>\n<tmx><header srclang="en"/><body>{other}{units}</body></tmx>\n'


def xliff(pairs: Pairs) -> str:
    """Return XLIFF 1.2 with groups."""
    units = "".join(
        f"<group>\n<trans-unit id='{n}'><source>{escape_xml(a)}</source>"
        f"<target>{escape_xml(b)}</target></trans-unit></group>\n"
        for n, (a, b) in enumerate(pairs)
    )
    start = "<file source-language='en' target-language='de'><body>"
    return f"<xliff>{start}{units}</body></file></xliff>"


def po(pairs: Pairs) -> str:
    """Return PO with a header, a comment on each message, and an obsolete message at the end."""
    head = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n'
    messages = (
        f'\n#: a.c:{n}\nmsgctxt "{n}"\nmsgid "{escape_message(a)}"\nmsgstr "{escape_message(b)}"\n'
        for n, (a, b) in enumerate(pairs)
    )
    return head + "".join(messages) + '\n#~ msgid "old"\n#~ msgstr "alt"\n'


Layout = tuple[str, Callable[[Pairs], str], dict[str, str]]
LAYOUTS: list[Layout] = [
    ("a.tsv", tsv, {}),
    ("b.tsv", lambda pairs: "".join(f"{a}\t{b}\n" for a, b in pairs), {}),
    ("a.csv", table, {}),
    ("a.jsonl", jsonl, {"src_key": "t.en", "tgt_key": "t.de"}),
    ("a.tmx", tmx, {"src_lang": "en", "tgt_lang": "de"}),
    ("a.xlf", xliff, {}),
    ("a.po", po, {}),
]
OPTION = {".tsv": "tsv", ".csv": "tsv", ".jsonl": "jsonl"}


def parallel(folder: Path, pairs: Pairs, ending: str) -> CorpusConfig:
    """Write two files of lines."""
    pack = gzip.compress if ending else bytes
    for side, name in enumerate(("a.en", "a.de")):
        lines = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"{name}{ending}").write_bytes(pack(lines.encode()))
    return CorpusConfig(src=str(folder / f"a.en{ending}"), tgt=str(folder / f"a.de{ending}"))


def corpora(folder: Path, pairs: Pairs) -> list[CorpusConfig]:
    """Write the pairs in every layout."""
    found = [parallel(folder, pairs, ending) for ending in ("", ".gz")]
    for name, write, keys in LAYOUTS:
        path = folder / name
        path.write_bytes(write(pairs).encode())
        corpus = {OPTION.get(path.suffix, "tm"): str(path), **keys}
        found.append(CorpusConfig(**corpus))  # type: ignore[arg-type]
    return found


def moved(corpus: CorpusConfig, files: Sequence[Path]) -> CorpusConfig:
    """Return the corpus with other files."""
    names = [name for name in ("src", "tgt", "tsv", "jsonl", "tm") if getattr(corpus, name)]
    return replace(corpus, **dict(zip(names, map(str, files), strict=True)))  # type: ignore[arg-type]


def content(path: Path) -> bytes:
    """Return the uncompressed bytes of a file."""
    return b"".join(read_chunks(path))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PAIRS, st.data())
@example([("a", "b")], None)
def test_what_is_written_is_what_was_chosen(pairs: Pairs, data: st.DataObject | None) -> None:
    """In the layout that was read; if all is chosen, a line has the bytes that it had."""
    with TemporaryDirectory() as name:
        for corpus in corpora(Path(name), pairs):
            read = read_of(corpus)
            assert [*read()] == pairs
            numbers = st.lists(st.integers(-1, 1), min_size=len(pairs), max_size=len(pairs))
            chosen = [0] * len(pairs) if data is None else data.draw(numbers)
            sets = files_of(corpus, Path(name) / "out", ["one", "two"])
            counts = write_sets(corpus, chosen, sets)
            for number, files in enumerate(sets):
                expected = [p for p, n in zip(pairs, chosen, strict=True) if n == number]
                assert counts[number] == len(expected)
                if expected:
                    assert [*read_of(moved(corpus, files))()] == expected
                if len(expected) == len(pairs) and not corpus.paths[0].name.endswith("tmx"):
                    assert [*map(content, files)] == [*map(content, corpus.paths)]
                for path in files:
                    path.unlink()


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PAIRS, st.integers(1, 3))
def test_merging_disjoint_corpora_is_a_permutation(pairs: Pairs, weight: int) -> None:
    """With equal weights each pair is there equally often; the lines of the first one stay."""
    other = [(f"{src} 1", f"{tgt} 1") for src, tgt in pairs]
    expected = Counter([*pairs, *other])
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "other").mkdir()
        first_ones, others = corpora(folder, pairs), corpora(folder / "other", other)
        for first, second in zip(first_ones, [*others[1:], others[0]], strict=True):
            counts, _ = times([read_of(first), read_of(second)], [weight] * 2, 0)
            (files,) = files_of(layout_of(first), folder / "out", ["merged"])
            assert write_merged([first, second], counts, files) == weight * expected.total()
            written = Counter(read_of(moved(layout_of(first), files))())
            assert written == {pair: weight * count for pair, count in expected.items()}
            if first.tm is None:
                assert all(map(bytes.startswith, map(content, files), map(content, first.paths)))
            for path in files:
                path.unlink()


def test_weights_repeat_and_draw() -> None:
    """A fraction draws some pairs once more, by the seed; with `unique` each occurs once."""
    pairs = [(f"source {n}", f"target {n}") for n in range(40)]
    for weight, expected in ((0.25, {0: 30, 1: 10}), (2.5, {2: 20, 3: 20})):
        (counts,), _ = times([lambda: pairs], [weight], 7)
        assert Counter(counts.tolist()) == expected
        assert (counts == times([lambda: pairs], [weight], 7)[0][0]).all()
    found, repeated = times(
        [lambda: pairs, lambda: pairs[::-1] + [("a", "b")] * 2], [1, 3], 0, unique=True
    )
    assert [each.sum() for each in found] == [40, 3]
    assert repeated == 41
    with pytest.raises(InputError, match="A corpus has the weight 0; give one above 0"):
        times([lambda: pairs], [0], 0)
    with pytest.raises(InputError, match=r"^2 weights were given for 1 corpus; give one for each"):
        times([lambda: pairs], [1, 1], 0)


def test_corpora_are_named_by_their_files() -> None:
    """Two files are separated by a comma; a name that does not tell the layout is refused."""
    files = PairFiles(src_key="t.en", src_lang="en", tgt_lang="de")
    assert corpus_of("a.en,b/a.de", files).paths == [Path("a.en"), Path("b/a.de")]
    assert corpus_of("a.tmx.gz", files).src_lang == "en"
    assert corpus_of("a.JSONL", files).src_key == "t.en"
    assert corpus_of("a.csv", files).tsv == "a.csv"
    with pytest.raises(
        InputError, match=r"The name of a\.en tells no layout; name source and target"
    ):
        corpus_of("a.en", files)


def test_a_memory_in_utf_16_is_cut(tmp_path: Path) -> None:
    """The output keeps the encoding; a unit with several pairs is kept or removed as a whole."""
    path = tmp_path / "a.tmx"
    text = tmx([("one", "eins"), ("two", "zwei"), ("three", "drei")])
    path.write_text(text.replace('"1.0"', '"1.0" encoding="utf-16"'), "utf-16")
    corpus = CorpusConfig(tm=str(path), src_lang="en", tgt_lang="de")
    (files,) = files_of(corpus, tmp_path / "out", [""])
    assert write_sets(corpus, [0, -1, 0], [files]) == [2]
    assert [*read_of(moved(corpus, files))()] == [("one", "eins"), ("three", "drei")]
    assert "two" not in files[0].read_text("utf-16")
