"""Placeholders in training pairs."""

import re
from collections import Counter
from dataclasses import replace
from itertools import accumulate, chain
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from tests.unit.data.streams import pairs_of
from tests.unit.tasks.tiny import WORDS, random_lines
from tests.unit.train.runs import run

from dragoman.data import dataset
from dragoman.data.aligner import NONE
from dragoman.data.batches import BatchConfig
from dragoman.data.dataset import PairDataset, Ragged
from dragoman.data.prepare import special_ids
from dragoman.errors import InputError
from dragoman.folder.opening import open_folder
from dragoman.tasks.translate.batches import PairBatches
from dragoman.tasks.translate.placing import MOST, Placeholders
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.text.placeholders import PLACEHOLDERS, placeholder_ids
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.train import TokenizerConfig, train_tokenizer, with_specials
from dragoman.train.start import start_from

SPOKEN = [word for word in WORDS if word.isascii()]


def make_pairs(tokenizer: Tokenizer, count: int = 200) -> PairDataset:
    """Return lines whose targets have the words in reverse, with the first word at both ends.

    The pieces of each word are linked to those of its copy; one word has several pieces.
    """
    lines = [[w for w in line.split() if w in SPOKEN] for line in random_lines(count)]
    lines = [["bigos" if word == "runs" else word for word in line] for line in lines]
    src, tgt, links = list[list[int]](), list[list[int]](), list[list[int]]()
    for line in lines:
        words = [tokenizer.encode(word) for word in line]
        first = [*accumulate(map(len, words), initial=0)]
        turned = [*range(len(words)), *[0] * bool(words)][::-1]
        src.append([*chain(*words)])
        tgt.append([*chain(*(words[n] for n in turned))])
        links.append([*chain(*(range(first[n], first[n + 1]) for n in turned))])
    return pairs_of(src, tgt, special=special_ids(tokenizer), links=Ragged.of(links))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """A tokenizer with placeholders."""
    return make_tokenizer("bpe")


def make_tokenizer(model: Literal["bpe", "unigram", "characters"]) -> Tokenizer:
    """Train a tokenizer and add placeholders."""
    config = TokenizerConfig(model=model, vocab_size=320)
    return with_specials(train_tokenizer(random_lines(100, seed=9), config), PLACEHOLDERS)


@pytest.mark.parametrize("model", ["bpe", "unigram", "characters"])
def test_a_tokenizer_with_placeholders_takes_texts_as_before(
    model: Literal["bpe", "unigram", "characters"],
) -> None:
    """Placeholders are always single pieces that decode back; other tokenizers have none."""
    config = TokenizerConfig(model=model, vocab_size=320)
    before = train_tokenizer(random_lines(100, seed=9), config)
    assert placeholder_ids(before) == []
    after = make_tokenizer(model)
    assert placeholder_ids(after) == [*range(after.vocab_size - 8, after.vocab_size)]
    assert [*map(after.encode, WORDS)] == [*map(before.encode, WORDS)]
    for char, id_ in zip(PLACEHOLDERS, placeholder_ids(after), strict=True):
        for text in (char, f"the {char}, ({char})cat", f"我{char}。", char * 3):
            assert after.decode(after.encode(text)) == text
            assert after.encode(text).count(id_) == text.count(char)


@pytest.mark.parametrize("chunk", [7, dataset.CHUNK])
def test_words_and_their_translations_become_the_same_placeholder(
    tokenizer: Tokenizer, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to three words per pair are replaced; all others and their links are unchanged."""
    monkeypatch.setattr(dataset, "CHUNK", chunk)  # pairs per chunk
    pairs = make_pairs(tokenizer)
    placed = Placeholders(1.0, tokenizer, tokenizer, 128).placed(pairs, np.random.default_rng(0))
    assert pairs.links is not None
    assert placed.links is not None
    ids, seen = {*placeholder_ids(tokenizer)}, Counter[str]()
    for n in range(len(pairs)):
        words = []
        for before, after in ((pairs.src, placed.src), (pairs.tgt, placed.tgt)):
            old, new = tokenizer.decode(before[n]), tokenizer.decode(after[n])
            own = [char for char in new if char in PLACEHOLDERS]
            assert len(own) == len({*own}) <= MOST
            pattern = re.sub(f"[{PLACEHOLDERS}]", r"(\\w+)", re.escape(new))
            found = re.fullmatch(pattern, old)
            assert found is not None
            words.append(dict(zip(own, found.groups(), strict=True)))
        assert words[0] == words[1]  # both sides have the same words
        assert {*words[0].values()} <= {*SPOKEN}  # complete words
        seen.update([*words[0]])
        moved = list[tuple[int, int]]()
        for links, src, tgt in (
            (pairs.links[n], pairs.src[n], pairs.tgt[n]),
            (placed.links[n], placed.src[n], placed.tgt[n]),
        ):
            assert len(links) == len(tgt)
            kept = ((src[s], t) for s, t in zip(links, tgt, strict=True) if s != NONE)
            own_ids = [(int(s), int(t)) for s, t in kept]
            moved.append((len(own_ids), sum(s == t for s, t in own_ids)))
            assert all((s in ids) == (t in ids) and (s == t or s not in ids) for s, t in own_ids)
        assert moved[0] == moved[1]
    assert len(seen) == len(PLACEHOLDERS)
    assert max(seen.values()) < 2 * min(seen.values())


@pytest.mark.parametrize("word", ["हिन्दी", "தமிழ்", "שָׁלוֹם", "مَرحَبًا", "ภาษาที่", "nai\u0308ve"])
def test_words_may_have_marks(word: str) -> None:
    """A word may have combining marks, such as vowel signs; arrays keep their dtypes."""
    config = TokenizerConfig(vocab_size=400, character_coverage=1.0)
    trained = train_tokenizer([f"{word} cat"] * 20, config)
    own = with_specials(trained, PLACEHOLDERS)
    ids = own.encode(f"{word} cat")
    assert len(ids) == 2
    side = Ragged(np.array(ids, np.uint16), np.array([0, 2]))
    links = Ragged(np.array([0, NONE], np.int32), side.offsets)
    pairs = replace(make_pairs(own, 1), src=side, tgt=side, links=links)
    placed = Placeholders(1.0, own, own, 128).placed(pairs, np.random.default_rng(0))
    assert re.fullmatch(f"[{PLACEHOLDERS}] cat", own.decode(placed.src[0]))
    assert placed.links is not None
    for new, old in ((placed.src, side), (placed.tgt, side), (placed.links, links)):
        assert new.ids.dtype == old.ids.dtype


def test_no_pair_grows_beyond_the_limit(tokenizer: Tokenizer) -> None:
    """Learned positions limit the length; shorter pairs get placeholders."""
    pairs, chance = make_pairs(tokenizer), np.random.default_rng(0)
    limit = int(np.median(pairs.tgt.lengths))
    placed = Placeholders(1.0, tokenizer, tokenizer, limit).placed(pairs, chance)
    for before, after in ((pairs.src, placed.src), (pairs.tgt, placed.tgt)):
        assert (after.lengths <= np.maximum(before.lengths, limit)).all()
    ids = placeholder_ids(tokenizer)
    assert 0 < sum(np.isin(placed.src[n], ids).any() for n in range(len(pairs))) < len(pairs)


def test_a_share_of_the_pairs_has_some(tokenizer: Tokenizer) -> None:
    """The requested share of pairs gets placeholders, redrawn each epoch from the random state."""
    pairs, ids = make_pairs(tokenizer, 1000), placeholder_ids(tokenizer)

    def changed(share: float, seed: int) -> list[int]:
        chance = np.random.default_rng(seed)
        placed = Placeholders(share, tokenizer, tokenizer, 128).placed(pairs, chance)
        return [n for n in range(len(pairs)) if np.isin(placed.src[n], ids).any()]

    every = changed(1.0, 1)
    assert changed(0.0, 1) == []
    assert 0.15 * len(every) < len(changed(0.2, 1)) < 0.25 * len(every)
    assert changed(0.2, 1) == changed(0.2, 1) != changed(0.2, 2)


def with_placeholders(recipe: TranslateRecipe, share: float = 0.5) -> TranslateRecipe:
    """Return the recipe with placeholders."""
    return replace(recipe, data=replace(recipe.data, placeholders=share))


def test_another_share_gives_other_batches(tokenizer: Tokenizer) -> None:
    """A stream does not resume with another share, or with none."""
    pairs, config = make_pairs(tokenizer), BatchConfig()

    def fingerprint(share: float) -> str:
        placeholders = Placeholders(share, tokenizer, tokenizer, 128)
        return PairBatches([pairs], config, placeholders=placeholders).fingerprint

    assert len({fingerprint(0.1), fingerprint(0.2), PairBatches([pairs], config).fingerprint}) == 3


def test_placeholders_go_with_subword_sampling(recipe: TranslateRecipe) -> None:
    """Subword sampling may move linked tokens, since nothing uses the links then."""
    sampling = replace(recipe.batch, subword_sampling=0.5)
    run(replace(with_placeholders(recipe), batch=sampling), 10, 30, 20, 31)
    assert placeholder_ids(open_folder(recipe.out).tokenizers[0])


def test_a_model_without_placeholders_cannot_learn_them(
    recipe: TranslateRecipe, tmp_path: Path
) -> None:
    """A run that starts from such a model is refused with advice."""
    run(recipe, 10, 30, 20, 31)
    later = start_from(with_placeholders(recipe), open_folder(recipe.out))
    later = replace(later, out=str(tmp_path / "later"))
    with pytest.raises(InputError, match=r"data.placeholders = 0.5 needs a vocabulary.*leave"):
        run(later, 10, 30, 20, 31)
