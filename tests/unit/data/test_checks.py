"""Warnings about a corpus that looks wrong, and none about a good one."""

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pytest

from dragoman.data.checks import Pair, corpus_warnings, find_shift, overlap_warnings, script_of
from dragoman.data.corpus import CorpusConfig, read_pairs
from dragoman.languages import LangCodes

CORPORA = (
    ("multi30k/val.en", "multi30k/val.de"),
    ("msctd-de-en/dev.de", "msctd-de-en/dev.en"),
    ("tatoeba-zh-en/dev.zh", "tatoeba-zh-en/dev.en"),
    ("pydocs-zh-en/dev.en", "pydocs-zh-en/dev.zh"),
    ("markup-tags/dev-eurlex.en", "markup-tags/dev-eurlex.fr"),
)


def warnings_of(pairs: Sequence[Pair], languages: LangCodes = (None, None)) -> list[str]:
    """Return all warnings about a corpus."""
    lengths = np.array([[len(src), len(tgt)] for src, tgt in pairs]).T
    return list(corpus_warnings("corpus", lengths, pairs.__getitem__, languages))


def made_words(count: int, alphabet: str) -> list[str]:
    """Return words of random letters."""
    return ["".join(random.choices(alphabet, k=random.randint(2, 9))) for _ in range(count)]


def made_pairs(count: int) -> list[Pair]:
    """Return sentences and their word-for-word translations; some are headings."""
    words = made_words(300, "abcdefghij"), made_words(300, "klmnopqrst")
    pairs = []
    for _ in range(count):
        chosen = random.choices(range(300), k=random.choice((1, 5, 8, 12, 20)))
        src, tgt = (" ".join(side[word] for word in chosen) for side in words)
        pairs.append((src, tgt))
    return pairs


def shift(pairs: Sequence[Pair], at: int, lines: int, side: int) -> list[Pair]:
    """Remove lines from one side."""
    sides = [[pair[n] for pair in pairs] for n in range(2)]
    del sides[side][at : at + lines]
    return list(zip(*sides, strict=False))


@pytest.mark.parametrize("count", [200, 3_000])
@pytest.mark.parametrize(("lines", "side"), [(1, 0), (1, 1), (3, 0), (10, 1)])
def test_a_shift_is_found_where_it_begins(count: int, lines: int, side: int) -> None:
    """Lines missing on one side, at the start or later, are reported with the direction."""
    pairs = made_pairs(count)
    assert warnings_of(pairs) == []
    for at in (0, count // 2):
        shifted = shift(pairs, at, lines, side)
        (told,) = warnings_of(shifted, ("en", "de"))
        where = "above" if side else "below"
        noun = "line" if lines == 1 else "lines"
        assert f"the targets {lines} {noun} {where} their own: line " in told
        found = find_shift(
            np.array([[len(text) for text in s] for s in zip(*shifted, strict=True)])
        )
        assert found is not None
        assert at - 500 < found.block.start <= at + 500
        assert pairs[found.example + (0 if side else lines)][0] == shifted[found.example][0]
        src, tgt = shifted[found.example][0], shifted[found.example + found.offset][1]
        assert (src, tgt) in pairs


def test_answers_are_no_shift() -> None:
    """In a dialogue, each turn answers the previous one, which is the target of the last pair."""
    turns = [src for src, _ in made_pairs(1_000)]
    pairs = list(pairwise(turns))
    assert warnings_of(pairs) == warnings_of(pairs, ("en", "en")) == []
    assert warnings_of(pairs, ("en", "en-GB")) == warnings_of(pairs, ("da", "nb")) == []
    (told,) = warnings_of(pairs, ("en", "de"))
    assert "both sides seem to be in one language, and not in en and de" in told


def test_lines_of_one_length_are_no_shift() -> None:
    """Without variation in length, or without text, there is nothing to correlate."""
    assert warnings_of([("ab cd", "xy")] * 600) == []
    assert warnings_of([("", "")] * 600, ("en", "zh")) == []
    assert warnings_of([]) == []


def test_a_copy_is_told() -> None:
    """Half of the lines is too many between two languages; in corrections, most are equal."""
    pairs = made_pairs(1_000)
    copies = [(src, src) for src, _ in pairs]
    for languages in ((None, None), ("en", "en"), ("en", "de")):
        (told,) = warnings_of(copies, languages)
        assert "the same text in 100% of the pairs, such as line 1, " in told
    mixed = [
        copy if n % 10 else pair for n, (pair, copy) in enumerate(zip(pairs, copies, strict=True))
    ]
    assert warnings_of(mixed, ("en", "en")) == []
    assert "the same text in 90%" in warnings_of(mixed, ("en", "de"))[0]


@pytest.mark.parametrize(
    ("text", "what", "raw"),
    [
        ("die Schu@@ tzhe@@ lme", "pieces of subword-nmt", "a@@b, @@ -1 +1 @@ and me@example.org"),
        ("我@@ 们 走", "pieces of subword-nmt", "我们走"),
        ("▁Two ▁dog s", "pieces of SentencePiece", "Name: ▁▁▁▁, ▁ and _x"),
        ("the dog &apos;s bone", "tokens of Moses", "it&apos;s &quot;so&quot;, &amp; A &amp; B"),
        ("a well @-@ known dog", "tokens of Moses", "well - known @ home"),
        ("the dog\uffed s bone \uffed.", "tokens of OpenNMT", "\uffed and \uffe8"),
        ("the\uffe8D dog\uffe8N", "tokens of OpenNMT", "a | b"),
    ],
)
def test_texts_that_another_tool_has_cut(text: str, what: str, raw: str) -> None:
    """They are reported on either side; a few such lines, and raw texts, are not."""
    pairs = made_pairs(300)
    assert warnings_of([(f"{src} {raw}", f"{raw} {tgt}") for src, tgt in pairs]) == []
    assert warnings_of([*pairs[2:], (text, "x"), ("y", text)]) == []
    for side in (0, 1):
        cut = [*pairs]
        for number in range(7, 300, 20):
            cut[number] = (text, cut[number][1]) if side == 0 else (cut[number][0], text)
        (told,) = warnings_of(cut)
        assert told.startswith(f"corpus: 5% of the pairs have {what}, such as line 8, {text!r}; ")


def test_both_texts_in_a_line_are_told() -> None:
    """Files for fast_align have them; bars within most texts are no such sign."""
    pairs = made_pairs(300)
    (told,) = warnings_of([(f"{src} ||| {tgt}", tgt) for src, tgt in pairs])
    assert r"both texts, as for fast_align, such as line 1, " in told
    assert r"(sed 's/ ||| /\t/' OLD > NEW.tsv)" in told
    assert warnings_of([(f"{src} ||| 1 ||| 2", tgt) for src, tgt in pairs]) == []


def test_quotes_of_a_table_are_told_and_speech_is_not() -> None:
    """Spreadsheets double quotes within a cell; Chinese may place two quotations side by side."""
    pairs = made_pairs(300)
    for speech in ('"Go."', '"Go." "No."', '"走。""不。"', '""Go""', 'A 5"" pipe', '"Go', '""'):
        assert warnings_of([*pairs, *[(speech, f"x{speech}")] * 30]) == []
    (told,) = warnings_of([*pairs, *[('He said "go".', '"Er sagte ""geh""."')] * 30])
    assert "9% of the pairs have doubled quotes, such as line 301, '\"Er sagte" in told
    assert "(save the table as CSV, since a TSV knows no quotes)" in told
    (told,) = warnings_of([(f'"{src}"', f'"{tgt}"') for src, tgt in pairs])
    assert "100% of the pairs have quotes around a text, such as line 1, " in told


def test_two_forms_of_unicode_on_a_side_are_told() -> None:
    """One form, a few lines in the other, and ASCII are not reported."""
    one, other = (normalize(form, "ọkọ̀ mẹ́ta") for form in ("NFC", "NFD"))
    pairs = made_pairs(300)
    for some in ([one] * 300, [other] * 300, [one] * 298 + [other] * 2):
        assert warnings_of([(a, f"{b} {t}") for (a, b), t in zip(pairs, some, strict=True)]) == []
    some = [one] * 150 + [other] * 150
    mixed = [(a, f"{b} {t}") for (a, b), t in zip(pairs, some, strict=True)]
    for side, given in (("targets", mixed), ("sources", [(b, a) for a, b in mixed])):
        (told,) = warnings_of(given)
        assert f"50% of the {side} are not in Unicode's form NFC, such as line 151, " in told


@pytest.mark.parametrize(
    ("text", "script", "right", "wrong"),
    [
        ("Ｔｗｏ dogsª", "LATIN", ("en",), ()),
        (
            "Two dogs.",
            "LATIN",
            ("en", "de-AT", "eng_Latn", "en_XX"),
            ("zh", "ru", "ja", "zho_Hans"),
        ),
        ("用 Python 写的", "CJK", ("zh", "zh-TW", "zho_Hant"), ("en", "ja", "ko", "eng_Latn")),
        ("私はPythonが好き", "HIRAGANA", ("ja", "jpn_Jpan"), ("zh", "en")),
        ("カタカナ", "HIRAGANA", ("ja",), ("zh",)),
        ("나는 漢字", "HANGUL", ("ko", "kor_Hang"), ("zh", "ja")),
        ("Мир и Windows", "CYRILLIC", ("ru", "uk", "rus_Cyrl"), ("en", "el")),
        ("שלום", "HEBREW", ("he", "iw"), ("ar",)),
        ("नमस्ते", "DEVANAGARI", ("hi",), ("en",)),
        ("3.14 %", None, ("zh", "en", "ru"), ()),
        ("Dobar dan", "LATIN", ("sr", "uz", "xyz", "py"), ()),
    ],
)
def test_a_language_has_letters(
    text: str, script: str | None, right: Sequence[str], wrong: Sequence[str]
) -> None:
    """Latin names and code occur in all scripts; languages with several scripts are skipped."""
    assert script_of(text) == script
    pairs = [(text, f"{number}") for number in range(9)]
    for language in right:
        assert warnings_of(pairs, (language, None)) == []
        assert warnings_of([pair[::-1] for pair in pairs], (None, language)) == []
    for language in wrong:
        (told,) = warnings_of(pairs, (language, None))
        assert f"100% of the lines in {language} have no " in told
        assert f"but mostly {script} ones: line 1 is {text!r}" in told


def test_seen_pairs_are_counted() -> None:
    """Only long pairs are counted: short ones recur by chance."""
    pairs = [*made_pairs(50), ("Yes.", "Ja.")]
    long = [len(src) + len(tgt) >= 40 for src, tgt in pairs]
    assert list(overlap_warnings("test", pairs, [False] * 50 + [True])) == []
    (told,) = overlap_warnings("test", pairs, [True] * 51)
    assert told.startswith(f"test: {sum(long)} of the {sum(long)} pairs of at least 40 characters")
    assert f"such as line {long.index(True) + 1}, " in told


@pytest.mark.parametrize("files", CORPORA, ids=lambda files: files[0].split(".")[0])
def test_real_corpora(data_folder: Path, files: tuple[str, str]) -> None:
    """They cause no warning in either direction, and each mistake made in them causes one."""
    src, tgt = (str(data_folder / file) for file in files)
    pairs = list(read_pairs(CorpusConfig(src=src, tgt=tgt)))
    languages = tuple(file.removesuffix(".xz")[-2:] for file in files)
    back = [(tgt, src) for src, tgt in pairs]
    assert warnings_of(pairs, (languages[0], languages[1])) == warnings_of(pairs) == []
    assert warnings_of(back, (languages[1], languages[0])) == warnings_of(back) == []
    for at, lines, side in ((0, 1, 0), (0, 3, 1), (len(pairs) // 2, 2, 0)):
        (told,) = warnings_of(shift(pairs, at, lines, side), (languages[0], languages[1]))
        assert "the sources fit the targets" in told
    half = len(pairs) // 2
    one_language = [(one, other) for (one, _), (other, _) in zip(pairs, pairs[half:], strict=False)]
    assert warnings_of(one_language) == []
    assert warnings_of(one_language, (languages[0], languages[1]))
    for language in ("ru", "zh" if languages[0] != "zh" else "en"):
        assert any(
            f"in {language} have no" in told for told in warnings_of(pairs, (language, None))
        )
