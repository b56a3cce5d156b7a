"""The statistics of a corpus, and the page of a report."""

import re
from collections.abc import Sequence
from html.parser import HTMLParser

import numpy as np
import pytest

from dragoman.corpus import counting
from dragoman.corpus.checking import check
from dragoman.corpus.config import CleaningConfig
from dragoman.corpus.counting import QUANTILES, count
from dragoman.corpus.page import BINS, page
from dragoman.data.checks import Pair

PAIRS = [(" ".join(f"w{n % 50 + k}" for k in range(1 + n % 9)), "字" * 6) for n in range(1200)]


@pytest.mark.parametrize("held", [3, 1 << 18])
def test_a_corpus_is_counted(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counts cover the whole corpus, however few words are held as texts."""
    monkeypatch.setattr(counting, "HELD", held)
    found = count(lambda: PAIRS, ("en", None))
    sources = [src.split() for src, _ in PAIRS]
    lengths = sorted(map(len, sources))
    assert (found.pairs, found.src.language, found.tgt.words) == (1200, "en", 4800)
    assert found.src.words == sum(lengths)
    assert found.src.characters == sum(len(src) for src, _ in PAIRS)
    assert found.src.lengths == tuple(lengths[int(share * 1199)] for share in QUANTILES)
    growth = [(n, len({word for src in sources[:n] for word in src})) for n in (1000, 1200)]
    assert [*found.src.vocabulary] == growth
    assert [*found.tgt.vocabulary] == [(1000, 1), (1200, 1)]
    assert (found.src.scripts, found.tgt.scripts) == ({"LATIN": 1200}, {"CJK": 1200})
    assert found.ratios[0] == round(4 / 9, 2)
    empty = count(list)
    assert (empty.pairs, empty.src.vocabulary) == (0, ((0, 0),))


class _Tags(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.said = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        self.names.append(tag)

    def handle_data(self, data: str) -> None:
        self.said += data


@pytest.mark.parametrize("pairs", [PAIRS, [("<script>x</script>\udcff", "a & b")], []])
def test_a_page_shows_the_report(pairs: Sequence[Pair]) -> None:
    """Each histogram counts every pair; texts are escaped, and the page loads nothing."""
    found = check(lambda: pairs, CleaningConfig(skip=("unrelated",)))
    report = found.report(enumerate(pairs, start=1))
    html = page(found, report, "a & b.en")
    assert html.encode()
    tags = _Tags()
    tags.feed(html)
    assert not {"script", "link", "img", "iframe"} & {*tags.names}
    assert not re.search(r"https?:|url\(", html)
    assert f"{report.kept:,} are good" in tags.said
    assert "a & b.en" in tags.said
    assert all(each.rule in tags.said for each in report.rules)
    bars = re.findall(r": ([\d,]+) stay, ([\d,]+) removed", html)
    assert 3 <= len(bars) <= 3 * (BINS + 1)
    sums = np.array([[int(each.replace(",", "")) for each in bar] for bar in bars]).sum(0)
    assert sums.tolist() == [3 * report.kept, 3 * (len(pairs) - report.kept)]
    if len(pairs) == 1:
        assert "<script>x</script>\\udcff" in tags.said
