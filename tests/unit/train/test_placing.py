"""Placeholders in the pairs of training."""

import re
from collections import Counter
from dataclasses import replace
from itertools import accumulate, chain
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from tests.unit.tasks.tiny import WORDS, random_lines
from tests.unit.train.runs import bits, interrupt, run

from dragoman import load
from dragoman.data.aligner import NONE
from dragoman.data.corpus import Finding
from dragoman.data.dataset import PairDataset, Ragged
from dragoman.data.prepare import special_ids
from dragoman.errors import InputError
from dragoman.folder.opening import open_folder
from dragoman.tasks.translate.placing import MOST, Placeholders
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.tasks.translate.translator import Translator
from dragoman.text.placeholders import PLACEHOLDERS, placeholder_ids
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.train import TokenizerConfig, train_tokenizer, with_specials
from dragoman.train.start import start_from

SPOKEN = [word for word in WORDS if word.isascii()]


def make_pairs(tokenizer: Tokenizer, count: int = 200) -> PairDataset:
    """Lines of words, each with its words in turned order; each word is linked to itself."""
    lines = [[w for w in line.split() if w in SPOKEN] for line in random_lines(count)]
    words = [[tokenizer.encode(word) for word in line] for line in lines]
    src, tgt = ([[*chain(*line[::step])] for line in words] for step in (1, -1))
    links = list[list[int]]()
    for line in words:
        first = [*accumulate(map(len, line), initial=0)][:-1]
        linked = (
            [start, *[NONE] * (len(word) - 1)] for start, word in zip(first, line, strict=True)
        )
        links.append([*chain(*[*linked][::-1])])
    return PairDataset(
        name="turned",
        src=Ragged.of(src),
        tgt=Ragged.of(tgt),
        special=special_ids(tokenizer),
        identical=Finding(),
        content_hash="",
        links=Ragged.of(links),
    )


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """It has placeholders."""
    return make_tokenizer("bpe")


def make_tokenizer(model: Literal["bpe", "unigram", "characters"]) -> Tokenizer:
    """One with placeholders."""
    config = TokenizerConfig(model=model, vocab_size=320)
    return with_specials(train_tokenizer(random_lines(100, seed=9), config), PLACEHOLDERS)


@pytest.mark.parametrize("model", ["bpe", "unigram", "characters"])
def test_a_tokenizer_with_placeholders_takes_texts_as_before(
    model: Literal["bpe", "unigram", "characters"],
) -> None:
    """Its placeholders are pieces wherever they stand, and come back; others have none."""
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


def test_words_and_their_translations_become_the_same_placeholder(tokenizer: Tokenizer) -> None:
    """Up to three of a pair, all else as it was; and the links lead to where they led."""
    pairs = make_pairs(tokenizer)
    placed = Placeholders(1.0, tokenizer, tokenizer).placed(pairs, np.random.default_rng(0))
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
        assert words[0] == words[1]  # the words of both sides are alike
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


def test_a_share_of_the_pairs_has_some(tokenizer: Tokenizer) -> None:
    """As many as asked for, others in each epoch; the same state of chance gives the same."""
    pairs, ids = make_pairs(tokenizer, 1000), placeholder_ids(tokenizer)

    def changed(share: float, seed: int) -> list[int]:
        chance = np.random.default_rng(seed)
        placed = Placeholders(share, tokenizer, tokenizer).placed(pairs, chance)
        return [n for n in range(len(pairs)) if np.isin(placed.src[n], ids).any()]

    every = changed(1.0, 1)
    assert changed(0.0, 1) == []
    assert 0.15 * len(every) < len(changed(0.2, 1)) < 0.25 * len(every)
    assert changed(0.2, 1) == changed(0.2, 1) != changed(0.2, 2)


def with_placeholders(recipe: TranslateRecipe, share: float = 0.5) -> TranslateRecipe:
    """The recipe with placeholders."""
    return replace(recipe, data=replace(recipe.data, placeholders=share))


def test_an_interrupted_run_with_placeholders_ends_the_same(recipe: TranslateRecipe) -> None:
    """To the bit; its folder has them, and translates with them."""
    recipe = with_placeholders(recipe)
    whole = replace(recipe, out=recipe.out + "-whole")
    run(whole, 10, 30, 20, 31)
    assert interrupt(recipe, 3, [10, 30, 20, 31]).interrupted
    run(recipe, 30, 20, 31)
    assert bits(recipe) == bits(whole)
    translator = load(recipe.out)
    assert isinstance(translator, Translator)
    assert placeholder_ids(translator.src_tokenizer)
    (alignment,) = translator.translate("3 {name} 5").alignments
    place = alignment.src_tokens.index(PLACEHOLDERS[0])
    assert alignment.src_spans[place] == (2, 8)


def test_a_model_without_placeholders_cannot_learn_them(
    recipe: TranslateRecipe, tmp_path: Path
) -> None:
    """A run that starts from it says so, and what to do."""
    run(recipe, 10, 30, 20, 31)
    later = start_from(with_placeholders(recipe), open_folder(recipe.out))
    later = replace(later, out=str(tmp_path / "later"))
    with pytest.raises(InputError, match=r"data.placeholders = 0.5 needs a vocabulary.*leave"):
        run(later, 10, 30, 20, 31)
