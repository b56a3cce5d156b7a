"""The demo's bilingual grammar: its words, its sentences, and the parts of its corpus."""

import re
from functools import cache

import pytest
from tools.dice import Dice
from tools.grammar.corpus import CONSTRUCTIONS, SIZES, Construction, make_corpus, withheld
from tools.grammar.doing import transitive
from tools.grammar.lexicon import Title, Verb, lexicon
from tools.grammar.sentence import Sentence, state
from tools.shipping import SEED

from dragoman.data.made import EXAMPLE, DemoCorpus, demo_corpus

TOKEN = re.compile(r"[A-Za-z']+|\d+|[\u4e00-\u9fff]")
EACH = sorted(set(CONSTRUCTIONS), key=lambda construction: construction.__name__)


@cache
def sample() -> list[Sentence]:
    """Sentences of all constructions, some more than once."""
    dice = Dice(1)
    return [dice.pick(CONSTRUCTIONS)(dice) for _ in range(40_000)]


@cache
def corpus() -> DemoCorpus:
    """A demo corpus of moderate size."""
    return make_corpus(12_000, 300, 400, seed=3)


# ---------------------------------------------------------------- words


def test_each_lemma_has_one_row_in_its_table() -> None:
    """A word listed twice in a table would be drawn twice as often and hint at an oversight."""
    tables = {**lexicon().nouns, **lexicon().masses, **lexicon().titles}
    for name, table in tables.items():
        assert len({word[0] for word in table}) == len(table), name


def test_vocabulary_is_of_some_hundred_words() -> None:
    """The demo promises several hundred words on each side, well above the size of a toy."""
    words = {token for said in sample() for token in TOKEN.findall(said.en)}
    characters = {token for said in sample() for token in TOKEN.findall(said.zh)}
    assert len({word for word in words if word.islower()}) > 700
    assert len({char for char in characters if not char.isdigit()}) > 400


# ---------------------------------------------------------------- sentences


@pytest.mark.parametrize("construction", EACH, ids=lambda construction: construction.__name__)
def test_construction_is_explained_by_an_example(construction: Construction) -> None:
    """Every construction has many sentences, and its docstring shows a pair like them."""
    example = re.match(r"([A-Z].*?[.?]) / (.*?[。？])", construction.__doc__ or "")
    assert example, construction.__doc__
    dice = Dice(0)
    said = {construction(dice).zh for _ in range(400)}
    assert len(said) > 50
    assert any(example[2][-1] == zh[-1] for zh in said)


def test_target_is_a_function_of_the_source() -> None:
    """No English sentence has two translations, so that a model can reach any score."""
    translations: dict[str, str] = {}
    two = [s for s in sample() if translations.setdefault(s.en, s.zh) != s.zh]
    assert two == []


def test_sentences_are_short_and_well_formed() -> None:
    """3 to 18 words, a capital letter, one final stop on each side, plain single spaces."""
    for en, zh, _ in sample():
        assert re.fullmatch(r"[A-Z][A-Za-z0-9',.:\- ]*[.?]", en), en
        assert re.fullmatch(r"[0-9T\u4e00-\u9fff，]+[。？]", zh), zh
        assert 3 <= len(en.split()) <= 18, en
        assert "  " not in en
        assert (en[-1], zh[-1]) in {(".", "。"), ("?", "？")}


@pytest.mark.parametrize(
    "mistake",
    [
        r"\b[Aa] [aeio]",
        r"\b[Aa]n [^aeiouh]",
        r"^(You|We|They) (is|was|has|does)\b",
        r"^(He|She|It|My \w+[^s]|Tom|The \w+[^s]) (are|were|have|do)\b",
        r"(?<![-\w])(a|one) (?!glass|dangerous|famous|delicious)\w+s\b",
        r"\b(two|three|four|five|six|eight|ten) (old |new )?(book|dog|man|child|knife)\b",
        r"\b(the|a|an) (the|a|an|this|that|my|her)\b|\bthat that\b",
    ],
)
def test_english_has_no_common_mistake(mistake: str) -> None:
    """Articles, agreement of subject and verb, plurals after numbers."""
    people = re.compile(r"^The (children|men|women|policemen|scarves|knives) ")
    found = [said.en for said in sample() if re.search(mistake, said.en)]
    assert [en for en in found if not people.match(en)] == []


@pytest.mark.parametrize(
    "mistake",
    [
        r"(?<![十周期])二[个本只把张件条辆台]",
        r"两(十|点十)",
        r"不有|没不|不没|的的|了了|我我|(?<!现)在在",
        r"没[^，。？太]*过?了[。？]",
        r"一个(书|狗|猫|裙子|汽车)",
        r"[吗吧]，|吗。",
    ],
)
def test_chinese_has_no_common_mistake(mistake: str) -> None:
    """两 and 二, 不 and 没, measure words, no 了 after 没, no doubled particles."""
    assert [said.zh for said in sample() if re.search(mistake, said.zh)] == []


def test_example_is_a_sentence_of_the_grammar() -> None:
    """The example is made of the verb, the subject and the frame that the grammar has."""
    study = next(verb for verb in lexicon().verbs["activity"] if verb.base == "study")
    topic = next(word for word in study.objects if word.en == "artificial intelligence")
    assert isinstance(topic, Title)
    only = Verb(study.base, study.zh, (topic,), "", achievement=False)
    what = transitive(Dice(0), only, "bare", at=0.0)
    like, like_zh = lexicon().rows["like"][0]
    said = state(f"I {like} {what.en('ing')}", f"我{like_zh}{what.zh}", what)
    assert (said.en, said.zh) == EXAMPLE
    assert all(map(withheld, said.links))


# ---------------------------------------------------------------- corpus


def test_the_shipped_corpus_is_what_the_grammar_writes() -> None:
    """The pairs that the package reads are those that the grammar makes."""
    assert demo_corpus() == make_corpus(*SIZES, seed=SEED)


def test_parts_have_their_sizes_and_share_nothing() -> None:
    """No sentence of a part, on either side, is in an earlier one; the example is nowhere."""
    train, valid, test = corpus()
    assert (len(train), len(valid), len(test)) == (12_000, 300, 400)
    for side in (0, 1):
        seen = {pair[side] for pair in train}
        assert seen.isdisjoint(pair[side] for pair in valid)
        assert (seen | {pair[side] for pair in valid}).isdisjoint(pair[side] for pair in test)
    assert all(EXAMPLE.src != pair.src and EXAMPLE.tgt != pair.tgt for pair in train + valid + test)


def test_every_word_of_the_test_part_is_taught() -> None:
    """The test asks for new combinations, not for unknown words."""
    train, _, test = corpus()
    taught = {token for pair in train for token in TOKEN.findall(pair.src + pair.tgt)}
    assert taught.issuperset(token for pair in test for token in TOKEN.findall(pair.src + pair.tgt))


def test_withheld_combinations_are_in_the_test_part_alone() -> None:
    """Studying artificial intelligence is never taught in any frame."""
    train, valid, test = corpus()
    links = {sentence.en: sentence.links for sentence in sample()}
    trained = [link for pair in train + valid for link in links.get(pair.src, ())]
    assert trained
    assert not any(map(withheld, trained))
    study = re.compile(r"stud(y|ies|ied|ying)( for \w+ \w+)? artificial intelligence")
    assert not any(study.search(pair.src) for pair in train + valid)
    assert any("artificial intelligence" in pair.src for pair in train)
    assert any(study.search(pair.src) for pair in test)


def test_half_of_the_test_part_is_of_new_combinations() -> None:
    """The first half holds a withheld combination each, the second half none."""
    *_, test = corpus()
    stream = {pair.src for pair in test[: len(test) // 2]}
    known = {pair.src for pair in test[len(test) // 2 :]}
    for sentence in sample():
        novel = any(map(withheld, sentence.links))
        assert sentence.en not in (known if novel else stream)
