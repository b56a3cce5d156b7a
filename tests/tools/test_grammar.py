"""The demo's bilingual grammar: its words, its sentences, and the parts of its corpus."""

import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache

import pytest
from tools.dice import Dice
from tools.grammar import chinese, english
from tools.grammar.corpus import (
    CONSTRUCTIONS,
    SIZES,
    Construction,
    generate,
    make_corpus,
    withheld,
)
from tools.grammar.doing import Action, transitive
from tools.grammar.lexicon import Noun, Title, Verb, lexicon
from tools.grammar.phrases import counted, definite
from tools.grammar.sentence import Sentence, state
from tools.shipping import SEED

from dragoman.data.made import EXAMPLE, DemoCorpus, demo_corpus

TOKEN = re.compile(r"[A-Za-z']+|\d+|[\u4e00-\u9fff]")
EACH = sorted(set(CONSTRUCTIONS), key=lambda construction: construction.__name__)
BOOK = Noun("book", "本", "书", "books", "text")


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


@pytest.mark.parametrize(
    ("form", "word", "expected"),
    [
        (english.third, "go to bed", "goes to bed"),
        (english.third, "study", "studies"),
        (english.third, "play chess", "plays chess"),
        (english.third, "watch", "watches"),
        (english.third, "have", "has"),
        (english.past, "study", "studied"),
        (english.past, "swim", "swam"),
        (english.past, "throw away", "threw away"),
        (english.past, "chat", "chatted"),
        (english.past, "invite", "invited"),
        (english.participle, "write", "written"),
        (english.participle, "wash", "washed"),
        (english.ing, "take a walk", "taking a walk"),
        (english.ing, "run", "running"),
        (english.ing, "see", "seeing"),
        (english.ing, "study", "studying"),
        (english.plural, "box", "boxes"),
        (english.plural, "story", "stories"),
        (english.plural, "potato", "potatoes"),
        (english.plural, "video", "videos"),
        (english.plural, "toy", "toys"),
        (english.article, "apple", "an apple"),
        (english.article, "honest man", "an honest man"),
        (english.article, "useful book", "a useful book"),
        (english.superlative, "bigger", "biggest"),
        (english.superlative, "better", "best"),
    ],
)
def test_english_forms(form: Callable[[str], str], word: str, expected: str) -> None:
    """Regular and irregular forms are right, also of the first word of a phrase."""
    assert form(word) == expected


def test_numbers_in_words() -> None:
    """Numerals, and 两 before a measure word where Chinese counts two things."""
    assert [chinese.numeral(number) for number in (2, 10, 12, 20, 35)] == [
        "二",
        "十",
        "十二",
        "二十",
        "三十五",
    ]
    assert [chinese.count(number) for number in (1, 2, 3, 12)] == ["一", "两", "三", "十二"]


def test_chinese_adjectives() -> None:
    """Short common adjectives stand alone before a noun, and 有 is negated by 没."""
    assert [chinese.attribute(word) for word in ("新", "贵", "漂亮")] == ["新", "很贵的", "漂亮的"]
    assert [chinese.negative(word) for word in ("忙", "有意思")] == ["不忙", "没有意思"]


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


# ---------------------------------------------------------------- phrases


def test_counted_nouns_take_their_measure_word() -> None:
    """Between number and noun stands the measure word, and two is 两."""
    dice = Dice(0)
    phrases = {what.en: what.zh for what in (counted(dice, BOOK) for _ in range(500))}
    assert phrases["a book"] == "一本书"
    assert phrases["two books"] == "两本书"
    assert phrases["many books"] == "很多书"
    assert phrases["several books"] == "几本书"


def test_definite_nouns_agree_in_number() -> None:
    """This and these, 这本 and 这些; a possessive takes 的."""
    dice = Dice(0)
    phrases = {what.en: what.zh for what in (definite(dice, BOOK) for _ in range(1000))}
    assert phrases["this book"] == "这本书"
    assert phrases["those books"] == "那些书"
    assert phrases["my book"] == "我的书"


@pytest.mark.parametrize(
    ("what", "done"),
    [
        (Action("read", "", "在图书馆", "看", "书", "", ()), "在图书馆看书"),
        (Action("buy", "", "", "买", "三本书", "verb", ()), "买了三本书"),
        (Action("swim", "", "", "游", "泳", "end", ()), "游泳了"),
        (Action("close", "", "把门", "关", "上", "end", ()), "把门关上了"),
    ],
)
def test_the_past_has_its_particle_where_the_rule_says(what: Action, done: str) -> None:
    """了 stands after the verb, at the end, or nowhere, and a question never lacks it."""
    assert what.done == done
    assert "了" in what.asked


def test_the_progressive_has_one_zai() -> None:
    """在 of the progressive and 在 of the place are the same word."""
    assert Action("read", "", "在图书馆", "看", "书", "", ()).doing == "正在图书馆看书"
    assert Action("read", "", "", "看", "书", "", ()).doing == "正在看书"


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


def test_pairs_are_distinct_and_follow_the_seed() -> None:
    """As many pairs as asked for, none twice; the same again from the same seed only."""
    pairs = generate(3_000, seed=5)
    assert len({pair.src for pair in pairs}) == 3_000
    assert generate(3_000, seed=5) == pairs
    assert generate(3_000, seed=6) != pairs
    assert generate(100, seed=5) == pairs[:100]


def test_pairs_do_not_depend_on_the_hash_order() -> None:
    """Two interpreters with different string hashes make the same pairs."""
    code = (
        "from tools.grammar.corpus import generate;"
        "import sys, zlib; sys.stdout.write(str(zlib.crc32(repr(generate(2000, seed=1)).encode())))"
    )
    path = ":".join(sys.path)
    sums = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(sums) == 1
    assert "" not in sums


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
