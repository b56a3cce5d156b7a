"""Several languages in one model: sampling of directions, and texts for the tokenizer."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.data.streams import assert_resumes, pairs_of

from dragoman.data.batches import BatchConfig
from dragoman.data.corpus import CorpusConfig
from dragoman.data.dataset import PairDataset, Ragged, hold_out, leave_out
from dragoman.data.languages import BalancedTexts, tempered
from dragoman.tasks.translate.batches import PairBatches

Corpus = tuple[int, float]
"""The number of pairs and the weight."""

CORPORA = st.lists(st.tuples(st.integers(1, 60), st.floats(0.1, 5)), min_size=1, max_size=4)


def dataset(number: int, pairs: int, weight: float = 1.0) -> PairDataset:
    """Return pairs of two tokens in a language of its own with one tag; none is too long."""
    rows = [[100 * number + row, 7] for row in range(pairs)]
    return pairs_of(
        rows,
        [row[::-1] for row in rows],
        content_hash=str(number),
        weight=weight,
        languages=("en", f"x{number}"),
        tags=(900 + number,),
    )


@given(CORPORA, st.floats(1, 20))
def test_shares_follow_the_temperature(corpora: list[Corpus], temperature: float) -> None:
    """A direction of n pairs has a share of weight * n^(1/T); an epoch is as long as before."""
    found = tempered([dataset(n, *each) for n, each in enumerate(corpora)], temperature, 9)
    passes = np.array([each.weight * len(each) for each in found])
    wanted = np.array([weight * pairs ** (1 / temperature) for pairs, weight in corpora])
    assert passes / passes.sum() == pytest.approx(wanted / wanted.sum())
    assert passes.sum() == pytest.approx(sum(pairs * weight for pairs, weight in corpora))


def test_corpora_of_one_direction_count_together() -> None:
    """Splitting a corpus changes no share; pairs that are too long or held out do not count."""
    whole = [dataset(0, 30), dataset(1, 4)]
    parts = [replace(dataset(2, n), languages=whole[0].languages) for n in (10, 20)]
    large, small = tempered(whole, 3.0, 9)
    one, two, other = tempered([*parts, whole[1]], 3.0, 9)
    assert other.weight == pytest.approx(small.weight)
    assert [one.weight, two.weight] == pytest.approx([large.weight, large.weight])
    unseen = replace(whole[0], excluded=np.arange(30) >= 4)
    assert [each.weight for each in tempered([unseen, whole[1]], 3.0, 9)] == pytest.approx([1, 1])
    assert tempered(whole, 1.0, 9) == whole
    assert tempered(whole, 3.0, 1) == whole  # no pair is short enough


@settings(max_examples=20, deadline=None)
@given(CORPORA, st.floats(1, 9), st.integers(0, 99))
def test_an_epoch_has_the_shares_and_the_tags(
    corpora: list[Corpus], temperature: float, seed: int
) -> None:
    """Each pair comes as often as its weight says, with the tag of its own direction in front."""
    datasets = tempered([dataset(n, *each) for n, each in enumerate(corpora)], temperature, 9)
    source = PairBatches(datasets, BatchConfig(max_tokens=60, max_length=9))
    drawn = source.draw(np.random.default_rng(seed))
    rows = [row for batch in drawn for row in batch.src_BS.tolist()]
    assert all(row[0] - 900 == row[1] // 100 and row[2:] == [7, 3] for row in rows)
    counts = Counter(row[0] - 900 for row in rows)
    for number, each in enumerate(datasets):
        assert abs(counts[number] - each.weight * len(each)) <= 1


def test_a_stream_of_several_directions_resumes() -> None:
    """It continues bit for bit; another temperature or other tags are other data."""
    config = BatchConfig(max_tokens=60, max_length=9)
    corpora = [dataset(0, 40), dataset(1, 7)]
    other_tags = [replace(each, tags=(5,)) for each in tempered(corpora, 2.0, 9)]
    source, *others = (
        PairBatches(each, config)
        for each in (tempered(corpora, 2.0, 9), tempered(corpora, 3.0, 9), other_tags)
    )
    assert_resumes(source, 5, *others)


def test_what_validates_is_not_learned_either_way() -> None:
    """If pairs are learned both ways, none shares a side with a held-out pair."""
    corpus = replace(dataset(0, 40), tgt=Ragged.of([[row // 2] for row in range(40)]))
    rest, held = hold_out(corpus, 4, 9, seed=1, both=True)
    targets = {row // 2 for row in (held.src.ids.tolist()) if row != 7}
    left = {int(rest.tgt[row][0]) for row in np.nonzero(rest.usable(9))[0].tolist()}
    assert len(held) == 4
    assert not left & targets
    assert not leave_out(rest.turned(), held, both=True).usable(9)[rest.excluded].any()
    again = leave_out(rest, hold_out(dataset(0, 40), 4, 9, seed=2)[1], both=True)
    assert again.usable(9).sum() < rest.usable(9).sum()  # earlier exclusions stay


@pytest.mark.parametrize("temperature", [1.0, 2.0, 5.0])
def test_pieces_are_learned_on_balanced_texts(tmp_path: Path, temperature: float) -> None:
    """A language of n sentences comes n^(1/T) * most^(1 - 1/T) times, spread evenly over them."""
    sizes, corpora = {"en": 100, "de": 81, "fr": 16}, []
    for other in ("de", "fr"):
        for language, count in ((f"en-{other}", sizes[other]), (other, sizes[other])):
            lines = (f"{language} {row}\n" for row in range(count))
            (tmp_path / language).write_text("".join(lines))
        src, tgt = str(tmp_path / f"en-{other}"), str(tmp_path / other)
        corpora.append(CorpusConfig(src=src, tgt=tgt, src_lang="en", tgt_lang=other))
    counts = Counter(BalancedTexts(corpora, temperature))
    total = Counter(text[:2] for text in counts.elements())
    sizes["en"] = 97
    for language, size in sizes.items():
        assert abs(total[language] - size * (97 / size) ** (1 - 1 / temperature)) <= 1
    rare = [times for text, times in counts.items() if text.startswith("fr")]
    assert len(rare) == 16
    assert max(rare) - min(rare) <= 1
