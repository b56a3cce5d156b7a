"""Cutting over-long lines."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.sentences import sentences_of, split_long


def words(text: str) -> int:
    """The length in words."""
    return len(text.split())


CHINESE = "我喜欢学习。你呢？他说：“不喜欢。”然后，他走了。"


@pytest.mark.parametrize(
    ("text", "limit", "chunks"),
    [
        ("One two. Three four.  Five six.", 5, ["One two. Three four.", "Five six."]),
        ('He said "no." Then he left.', 4, ['He said "no."', "Then he left."]),
        ("It is 3.14 now and more or less so.", 5, ["It is 3.14 now and", "more or less so."]),
        ("one two, three four five six", 4, ["one two,", "three four five six"]),
        ("ཁོང་ རང་། བློ་ དང་ བཟང་ པོ།", 4, ["ཁོང་ རང་།", "བློ་ དང་ བཟང་ པོ།"]),
        ("one two three four five", 2, ["one two", "three four", "five"]),
    ],
)
def test_cuts_are_made_at_the_best_place(text: str, limit: int, chunks: list[str]) -> None:
    """Sentence ends before clauses before spaces, and as much as fits in a chunk."""
    assert [chunk.rstrip() for chunk in split_long(text, limit, words)] == chunks


@pytest.mark.parametrize(
    ("text", "limit", "chunks"),
    [
        (CHINESE, 12, ["我喜欢学习。你呢？", "他说：“不喜欢。”", "然后，他走了。"]),
        (
            CHINESE,
            5,
            ["我喜欢学习", "。", "你呢？", "他说：", "“不喜欢。", "”", "然后，", "他走了。"],
        ),
        ("e\u0301" * 4 + "👩\u200d👧", 3, ["e\u0301"] * 4 + ["👩\u200d👧"]),
        ("ត្រូវន៉ាខ្ញុំ", 5, ["ត្រូវ", "ន៉ា", "ខ្ញុំ"]),
    ],
)
def test_text_without_spaces_is_cut(text: str, limit: int, chunks: list[str]) -> None:
    """At Chinese marks, with their quotes; else not inside a letter with its signs, or an emoji."""
    assert split_long(text, limit, len) == chunks


def test_a_character_over_the_limit_stays_one_chunk() -> None:
    """What cannot be cut is given as it is."""
    assert split_long("ab", 1, lambda text: 5 * len(text)) == ["a", "b"]


@pytest.mark.parametrize("text", ["word " * 20_000, "." * 100_000, "x" * 100_000, "," * 100_000])
def test_long_lines_take_linear_time(text: str) -> None:
    """A line of 20,000 words, or of 100,000 marks, is cut at once."""
    start = time.process_time()
    chunks = split_long(text, 200, len)
    assert time.process_time() - start < 2.0
    assert "".join(chunks) == text


def test_a_limit_below_one_is_a_bug() -> None:
    """Nothing fits in no tokens."""
    with pytest.raises(ValueError, match="limit"):
        split_long("a", 0, len)


@pytest.mark.parametrize(
    "text",
    [
        "Really?! Yes.",
        'He said "no." Then he left.',
        "I said no. O my.",
        "He said no. I did not.",
        "She said no. A 12 year old boy came.",
        "I saw a cat. B2 is a level.",
        "She likes the Museum of Art. I do not.",
        "She turned up the vol. I'd not.",
        "Wir sagten no. XY kam.",
        "one\ntwo",
        "我喜欢｡你呢",
        '我走了。"你好"是什么？',
        '他买了27"屏幕。"好。"农民说。',
        *(f"A dog runs{mark} A woman sits" for mark in "።፧፨।॥۔؟⸮။։។៕༎᱾"),
        "ውሃው ነው።እናቴ ታነባለች።",
        "ውሃው ነው፡፡ እናቴ ታነባለች፡፡",
        "रोटी है। “माँ” सोती है।",
        "वह आया। 5 लोग गए।",
        "ماذا؟؟؟ لا أعرف.",
        "भात आहेत. आई वाचते.",
        "১। ভাত হয়। ২। রুটি হয়।",
    ],
)
def test_several_sentences_are_seen(text: str) -> None:
    """By marks in the midst of a text and what follows them."""
    assert len(sentences_of(text.strip())) > 1


@pytest.mark.parametrize(
    "text",
    [
        "Mr. Smith went to Washington.",
        "J. R. R. Tolkien met Dr. Who in the U.S. Army.",
        "Am 3. Oktober war z.B. Anna da.",
        '"What?" he asked.',
        "Well... I think so.",
        "他说“好。”然后走了。",
        '他说:"这个5"屏幕好。"农民看书。',
        "我看《早安！小猫》了。",
        "然后……他走了。",
        "It costs 3.14 dollars, no. 5 says.",
        "Inv. no. O 1234, bought in 1912.",
        "Cat. No. A-12 and Inv. Nr. GM 45.",
        "Kat. Nr. 7, Abb. B3 und Bd. IV des Werks.",
        "See vol. II of it, vol. I, Fig. S2 and pp. A1 to A3.",
        "१। पहला प्रश्न",
        "۱۔ پہلا سوال",
        "ن۔ م۔ راشد آئے۔",
        "لیکن۔۔۔ میں نہیں۔",
        "लेकिन।।। मैं नहीं।",
        "धर्मस्य ॥ १ ॥",
        "ផ្លែឈើ ។ល។",
        "“मैं आया।” वह सोया।",
        "ཁོང་རང་། བློ་རྩལ་དང་། །བཟང་པོ་ཡོད།",
        "Ժամը 10։30 է։",
        "ماذا؛ لا أعرف.",
        "Τι κάνεις; Καλά",
    ],
)
def test_one_sentence_is_not_several(text: str) -> None:
    """Abbreviations, initials, ordinals, quotations and ellipses end none."""
    assert len(sentences_of(text.strip())) == 1


def test_sentences_are_seen_in_linear_time() -> None:
    """Also in a text that is nothing but marks, or one word."""
    start = time.process_time()
    texts = (". " * 100_000, "." * 500_000, "a" * 500_000 + ". b", "…a" * 100_000, "।" * 500_000)
    for text in texts:
        assert len(sentences_of(text.strip())) == 1
    assert time.process_time() - start < 2.0


@given(st.text(max_size=80))
def test_sentences_give_the_text_back(text: str) -> None:
    """Nothing is lost between them, and none but the first begins with white space."""
    sentences = sentences_of(text)
    assert "".join(sentences) == text
    assert all(one[:1].strip() for one in sentences[1:])
