"""Each rule finds its fault and accepts good pairs."""

import re
import time
from typing import Literal
from unicodedata import normalize

import pytest

from dragoman.corpus.checking import check
from dragoman.corpus.config import EVERY, CleaningConfig
from dragoman.corpus.rules import (
    is_in_another,
    letters,
    likely_side,
    longest_word,
    rules_of,
    tokens,
    without_addresses,
    words,
)

GOOD = [
    ("A man in a red shirt is washing a car.", "Ein Mann in einem roten Hemd wäscht ein Auto."),
    ("Berlin", "Berlin"),
    ("It's 7:45.", "Es ist 7:45 Uhr."),
    ("Ha ha ha ha ha ha!", "Hi hi hi hi hi hi!"),
    ("See {name} at https://example.org/a_very_long_path_that_is_one_word_for_us", "{name} siehe https://example.org/a_very_long_path_that_is_one_word_for_us"),
    ("Yes.", "Ja, das stimmt."),
    ("„TÜ“ means “no”.", "„TÜ“ heißt „nein“."),
    ("It costs 1,234.56 euros.", "Es kostet 1.234,56 Euro."),
    ("<BT> A man is washing a car.", "Ein Mann wäscht ein Auto."),
    ("<b> A man </b> is washing.", "<b>Ein Mann</b> wäscht."),
    ("<p> A man is washing.", "<p> Ein Mann wäscht."),
    ("It is 3.5, i.e. .NET, e.g. a.b.c or os.path.x.", "Es ist 3,5, also Net oder os, path, x."),
    ("One is. Two is. Three is. Four is. Five is.", "Aa i። Be i፡፡ De i۔ Fo i။ Ha i։"),
]  # fmt: skip
BAD = {
    "encoding": [
        ("A cafÃ© nearby is open today.", "Ein Café in der Nähe hat heute offen."),
        ("It\u00e2\u20ac\u2122s a long way home.", "Es ist ein weiter Weg nach Hause."),
        ("A bad \x08 character.", "Ein schlechtes Zeichen."),
        ("A lost \ufffd character.", "Ein verlorenes Zeichen."),
        ("A wrong \udcff byte.", "Ein falsches Byte."),
    ],
    "empty": [("A word.", ""), ("...", "Ein Wort."), ("", " ")],
    "copy": [
        ("The old man sits on a bench.", "The old man sits on a bench ."),
        ("see here", "see here"),
        ("The dog runs.", "\u3000\u3000The dog runs."),
    ],
    "language": [
        ("A man in a red shirt is washing a car.", "Un homme en chemise rouge lave sa voiture."),
        ("Мужчина в красной рубашке моет машину.", "Ein Mann in einem roten Hemd wäscht ein Auto."),
    ],
    "length": [("word " * 151, "Wort " * 151)],
    "ratio": [("One two three four five six seven eight nine ten.", "Eins.")],
    "word": [("A " + "long" * 11 + " word.", "Ein langes Wort, das gewiss lang ist.")],
    "repetition": [("I do not know what to say.", "Ich weiß weiß weiß weiß weiß nicht, was.")],
    "letters": [
        ("a = b * c + (d - e) / f;", "a = b * c + (d - e) / f; // !!"),
        ("Price list", "【】 ★★★ 价 // ￥￥"),
    ],
    "preserved": [
        ("We sell 250 of them.", "Wir verkaufen 260 davon."),
        ("Hello {name}", "Hallo {nom}"),
        ("<b> Hello </b> all", "Hallo alle"),
        ("Hello <BT> all", "Hallo alle"),
    ],
    "punctuation": [
        ("One. Two. Three. Four. Five.", "Eins, zwei, drei, vier und noch fünf."),
        ("Well?No!Yes!So...and he said OK!", "Nun, nein, ja, so, sagte er und ging."),
        ("一.二.三.四.五.", "One, two, three, four and five."),
    ],
}  # fmt: skip


def broken(src: str, tgt: str) -> list[str]:
    """Return the rules that a pair breaks."""
    rules = rules_of(CleaningConfig(), ("en", "de"))
    return [name for name, rule in rules.items() if rule(src, tgt)]


@pytest.mark.parametrize("pair", GOOD)
def test_good_pairs_break_no_rule(pair: tuple[str, str]) -> None:
    """Names, numbers, addresses, short answers and quotation marks are not faults."""
    assert broken(*pair) == []


@pytest.mark.parametrize(
    ("rule", "pair"), [(rule, pair) for rule, pairs in BAD.items() for pair in pairs]
)
def test_a_fault_is_found(rule: str, pair: tuple[str, str]) -> None:
    """Each fault is found by its own rule."""
    assert rule in broken(*pair)


def test_every_rule_of_a_pair_is_tried_here() -> None:
    """All rules but the four about several pairs are tested; "language" needs the languages."""
    assert [*BAD] == [*EVERY[:-4]] == [*rules_of(CleaningConfig(), ("en", "de"))]
    assert "language" not in rules_of(CleaningConfig(), (None, None))


@pytest.mark.parametrize("text", ["房" * 60_000, "a." * 30_000, "@" * 60_000, "x{" * 30_000])
def test_rules_take_linear_time(text: str) -> None:
    """The rules take linear time, also for texts without spaces."""
    began = time.process_time()
    assert broken(text, text)
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    "text", ["So...", "那么……", "妈......", "他说：“好吧……”", "她问：“真的？！”", "네...", "هل؟؟"]
)
def test_short_dialogue_has_letters_enough(text: str) -> None:
    """Punctuation does not make a short line fail the rule about letters."""
    assert letters(text) >= CleaningConfig().min_letters


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("I do 学习。", 4),
        ("ฉันดื่มน้ำใส", 2),
        ("ខ្ញុំទៅ។", 0.75),
        ("ເຈົ້າດີ", 1.0),
        ("ရေသောက်တယ်။", 1.25),
        ("བློ་རྩལ་དང།", 1.25),
    ],
)
def test_words_without_spaces_are_counted_by_letters(text: str, count: float) -> None:
    """Combining signs do not count as letters; each Chinese character is one word."""
    assert words(text) == count


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize(
    "text", ["पुस्तक हिन्दी", "ọkọ̀ mẹ́ta", "הָיָ֣ה הַדָּבָ֑ר", "བློ་རྩལ", "น้ ดื่", "က္ ကျွ", "𞤢𞥄𞤣 𞤢"]
)
def test_signs_are_parts_of_words(text: str, form: Literal["NFC", "NFD"]) -> None:
    """Combining signs count as letters, whatever the script, and do not make words longer."""
    text = normalize(form, text)
    assert tokens(text) == (*re.split("[ ་]", text),)
    assert letters(text) >= 0.8
    assert longest_word(text + "\u0301" * 50) < 7


def test_addresses_are_no_words() -> None:
    """URLs, paths and mail addresses are not words; a mark alone is not an address."""
    text = r"see http://a.org/b (c\d) me@here.org @you at@ now"
    assert without_addresses(text) == "see @you at@ now"


@pytest.mark.parametrize(
    ("language", "text", "told"),
    [
        ("zh", "请访问https://example.com/some/long/path/in/english/words，谢谢。", False),
        ("zh", "请安装Microsoft Visual Studio Code。", False),
        ("zh", "This sentence was never translated at all, except 这 word.", True),
        ("zh", "Settings", True),
        ("en", "我喜欢喝茶。", True),
        ("sr-Latn", "Мој пас.", True),
        ("sr_Cyrl", "Мој пас.", False),
        ("ckb-Arab", "Min.", True),
        ("ku", "هەموو مرۆڤێک بە ئازادی و یەکسان لە کەرامەت و مافدا لەدایک دەبێت", False),
    ],
)
def test_names_and_addresses_make_no_other_language(
    language: str, text: str, *, told: bool
) -> None:
    """Latin names do not change the language of a text, but a mostly Latin text does."""
    assert is_in_another(text, language, 0.5) == told


def test_a_side_in_no_language_has_no_name() -> None:
    """An undetectable side has no language; Kurdish is detected in Arabic script."""
    pytest.importorskip("py3langid", reason="the extra 'data' is not installed")
    adlam = "".join(map(chr, range(0x1E922, 0x1E940))) + " " + chr(0x1E922) * 20
    sorani = "هەموو مرۆڤێک بە ئازادی و یەکسان لە کەرامەت و مافدا لەدایک دەبێت"
    assert [likely_side([text] * 3) for text in (adlam, sorani)] == [None, "ku"]


OWN = "Ua hele aku ke kanaka i ke kahakai i kakahiaka"
FOREIGN = "Человек пошёл утром на берег моря"


@pytest.mark.parametrize(
    ("language", "own", "foreign"),
    [("haw", OWN, FOREIGN), ("english", OWN, FOREIGN), ("cu", FOREIGN, OWN), ("ckb", "ماڵ", "a")],
)
def test_the_script_of_an_unknown_language_is_checked(
    language: str, own: str, foreign: str
) -> None:
    """The expected script is that of most texts, unless the language code names one."""
    pytest.importorskip("py3langid", reason="the extra 'data' is not installed")
    pairs = [(f"The old man washes car {n}.", f"{own} {n}.") for n in range(20)]
    pairs[7] = pairs[7][0], f"{foreign} 7."
    with pytest.warns(UserWarning, match=f"cannot identify {language}, so only the script"):
        found = check(lambda: pairs, CleaningConfig(skip=("ratio",)), ("en", language))
    assert [n for n, kept in enumerate(found.kept) if not kept] == [7]
    skipped = CleaningConfig(skip=("ratio", "language"))
    assert check(lambda: pairs, skipped, ("en", language)).kept.all()


def test_an_unknown_language_in_two_scripts_is_not_checked() -> None:
    """An unknown language in two scripts is reported as not checked."""
    pytest.importorskip("py3langid", reason="the extra 'data' is not installed")
    words = OWN, FOREIGN, FOREIGN
    pairs = [(f"The old man washes car {n}.", f"{words[n % 3]} {n}.") for n in range(20)]
    with pytest.warns(UserWarning, match="since these texts are in several scripts, they are not"):
        assert check(lambda: pairs, CleaningConfig(), ("en", "cu")).kept.all()
    with pytest.warns(UserWarning, match="only the script"):
        found = check(lambda: pairs, CleaningConfig(), ("en", "cu-Cyrl"))
    assert found.kept.sum() == 13
