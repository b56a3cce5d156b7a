"""What a translation should preserve: numbers, URLs, placeholders, tags and emoji."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.tasks.translate.preserved import PRESERVED, differences, missing, protected

FORMS = "{g, select, x {{n, plural, =0 {no} one {# file} other {# of {all}}}} other {it}}"
SAME = [
    ("1,234.56 books on 2024-05-17", "am 17.05.2024 1.234,56 Bücher"),
    ("1 234 567,8 km", "1\u202f234\u202f567.8 km"),
    ("12,34,567 rupees", "1,234,567 Rupien"),
    ("in 1984 at 12:30", "١٢:٣٠ عام ١٩٨٤"),
    ("２５ people and 007", "25 Leute und 7"),
    ("The price is ¥1,000.50.", "价格是￥１，０００．５０。"),
    ("100 and 200, 3 and 4", "100，200，３，４"),
    ("two men", "2 Männer"),
    ("5 men, one dog", "fünf Männer, 1 Hund, 2 Katzen"),
    ("at 7 o'clock", "um 19"),
    ("on 7月4日", "July 4, 10"),
    ("at 7", "um 0"),
    ("at 1 sharp", "um 13 Uhr"),
    ("on 7月4日 in 1999", "July 4, 1999, 30"),
    ("150 million people", "1.5亿人"),
    ("see https://a.b/c?d=1.", "siehe https://a.b/c?d=1!"),
    ("mail me@a-b.org", "schreib me@a-b.org"),
    ("访问https://a.b/c。", "visit https://a.b/c"),
    ("{name} has %d of %(all)s", "%(all)s, %d hat {name}"),
    ("100% sure, 50%", "100%ig sicher, 50 %"),
    ('<a href="x/y" title="Cat">the</a><br/>', '<a href="x/y" title="Katze">die</a><br />'),
    ("a < b and c > d", "a < b und c > d"),
    ("I ❤\ufe0f tea 👩🏽\u200d🚀 🇩🇪", "🇩🇪 Ich ❤ Tee 👩🏽\u200d🚀"),
    ("5 °C → № 7, ㈱, ©", "5 Grad, Nr. 7"),
    ("it is :5: at 10:30:15 & so; $5, %5", "es ist :5: um 10:30:15 & so; $5, %5"),
    ("80% of those at AT&T; H&M; C&A", "%80a biztanleen, %50e varan, %40lık, 5 %w/w"),
    ("注意:name:值 and :s: for 10 $us", "Пример:name:значение"),
    ("Delete %d files of %1$s?", "删除%1$s的%d个文件吗？"),
    ("%@ has %s, %(n)d of %-d", "%@님은 %s를, %(n)d개 %-dか"),
    ("on %d at %H by %s", "ใน%dที่%Hโดย%sคน"),
    ("to 80%d and 最大50%OFFセール", "80%da 50%D할인"),
    ("端口:http: 8080", "Port 8080"),
    ("端口:https:", "Port"),
    ("你好:tada: 2024年", "Hallo :tada: 2024"),
    ("a :smile: for :tada: you", "给:smile:。:tada:你"),
    ("18.5 cm and $5.00, 0.50 l", "18,5 cm und 5 Dollar, 0,50 l"),
    ("2.5 litres at 7.30", "2½ Liter um halb 7"),
    ("am 3.10. in 1.5 Jahren", "on October 3, in 1.5 years"),
    ("version 3.5 of 5 modules", "Version 3.5 von fünf Modulen"),
    ("at 10.30 in 3,5", "10时30分，3：5"),
    ("take heap[0]. Or a[1].b, a[0][1]", "用 heap[0]。或 a.b, a"),
    ("a [1] of 5*", "ein 1 von 5"),
    ("US$ and A$ for $5, 100% of 10 %", "$5 für A$ und US$, 10% of 100 %"),
    ("10:30, a:b, std::map :) :D :-/ :p", "10:30"),
    ("备注:abc，比例 1 :n：", "Seite :x"),
    ("Foo :für und %d% of", "%d %"),
    ("a < b=c and d", "d"),
    ("", ""),
]
OTHER = [
    ("1,234.56 books", "1.239,56 Bücher", "numbers"),
    ("Apollo 11 in 1969", "Apollo 12 im Jahr 1969", "numbers"),
    ("It has 5,000 lines.", "Es hat viele Zeilen.", "numbers"),
    ("They play 3 games.", "Sie spielen 1112.", "numbers"),
    ("Terminal 0", "Terminal 500", "numbers"),
    ("They play 3 games in 2 days.", "Sie spielen an 2 Tagen 4 Spiele.", "numbers"),
    ("a man and his dog 1", "ein Mann und sein Hund 12", "numbers"),
    ("page 1 of 3", "Seite 12 von 3", "numbers"),
    ("3 dogs", "zwanzig Hunde, 20", "numbers"),
    ("18.5 cm high", "18 cm hoch", "numbers"),
    ("110 m wide", "110,5 m breit", "numbers"),
    ("3.5 or 4.5 m", "3 oder 4,5 m", "numbers"),
    ("32 × 18.5 × 2.25 cm", "32 x 18 x 2 cm", "numbers"),
    ("宽１８．５厘米", "18 cm wide", "numbers"),
    ("عرض ١٨٫٥", "18 cm wide", "numbers"),
    ("see https://a.b/c", "siehe https://a.b/d", "urls"),
    ("see https://a.b/{c}.", "siehe https://a.b/{c.", "urls"),
    ("mail me@a.org", "schreib mir", "urls"),
    ("{name} is {age}", "{name} ist {alter}", "placeholders"),
    ("%s of %s", "%s von", "placeholders"),
    ("%#@files@ in %2$#@dirs@", "%#@files@ in Ordnern", "placeholders"),
    ("${x} {{y}} %1$s", "${x} {{y}} %2$s", "placeholders"),
    ("{n, plural, one {# cat} other {# cats}}", "{n, plural, one {# Katze}}", "placeholders"),
    ("a {n.x, plural, other {# cats}} b", "a # Katzen b", "placeholders"),
    ("{p, number, percent} of {d,time}", "Prozent von {d,time}", "placeholders"),
    ("{0,choice,0#no cat|1#a cat}", "keine Katze", "placeholders"),
    ("%{name} has #{n} dogs", "{name} hat {n} Hunde", "placeholders"),
    ("{% if x %}a{% endif %}", "ein {% if x %}", "placeholders"),
    ("<%= name %> and {{{x}}}", "<%= name %> und {{x}}", "placeholders"),
    ("at %H:%M on %-d %b", "um %H:%M am %-d", "placeholders"),
    ("{ $user } paid $total", "{ $user } zahlte", "placeholders"),
    ("$USER$ and $count$", "$USER$ und $count", "placeholders"),
    ("%USER% of %my-name%", "%USER% von", "placeholders"),
    ("the :name is (:max).", "der :name ist.", "placeholders"),
    ("wait $(sync~spin) $(x)", "warte $(x)", "placeholders"),
    ("<size=20>a</size>", "a</size>", "tags"),
    ("see $t(a.b) and @:a.b or @.lower:c.", "siehe $t(a.b) und @:a.b.", "placeholders"),
    ("a :smile: and :+1: cat", "eine Katze und :+1:", "placeholders"),
    ("a cat :+1:", "eine Katze", "placeholders"),
    ("共%d个文件", "all files", "placeholders"),
    ("%sさんの:cat: です", "%s's cat", "placeholders"),
    ("a &copy; b &#60; c, 5%% of", "ein &copy; b < c, 5%% von", "placeholders"),
    ("a <1>red</1> <2/> cat", "eine <1>rote</1> Katze", "tags"),
    ("a <b>bold</b> word", "ein <b>fettes Wort", "tags"),
    ("a<br/>b", "a b", "tags"),
    ("thanks 🙏🏽", "danke 🙏", "symbols"),
    ("★★★ good", "★★ gut", "symbols"),
    ("to 🇩🇪 and 🇫🇷", "nach 🇩🇪", "symbols"),
    ("5\ufe0f\u20e3 goals", "fünf Tore", "symbols"),
    ("in 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "in 🏴", "symbols"),
    ("a picture[1] of", "ein Bild von", "symbols"),
    ("买了书[12]的人†。", "who bought the book†", "symbols"),
    ("a cat‡.", "eine Katze.", "symbols"),
    ("play ▶\ufe0f ↔\ufe0f", "spielen ▶", "symbols"),
]


@pytest.mark.parametrize(("source", "translation"), SAME)
def test_what_is_kept_has_no_flag(source: str, translation: str) -> None:
    """Numbers may be written as in any language, and in any order, in both directions."""
    assert differences(source, translation) == differences(translation, source) == set()


@pytest.mark.parametrize(("source", "translation", "flag"), OTHER)
def test_what_differs_has_its_flag(source: str, translation: str, flag: str) -> None:
    """Each kind has one flag: the digits of a URL do not count as numbers too."""
    assert differences(source, translation) == {flag}


@given(st.text(max_size=60))
def test_a_text_keeps_what_it_has(text: str) -> None:
    """Whatever stands in it, it does not differ from itself, nor beside another."""
    assert differences(text, text) == set()
    assert differences(text, "") <= {*PRESERVED}


@pytest.mark.parametrize(
    ("source", "translation", "texts"),
    [
        ("It has 5,000 lines.", "Es hat viele Zeilen.", ["5,000"]),
        ("Apollo 11 in 1969", "Apollo 12 im Jahr 1969", ["11"]),
        ("3 men, 2 dogs", "2 Hunde, 4 Männer", []),
        ("%s of %s", "%s von", ["%s"]),
        ("%s of %s", "von", ["%s", "%s"]),
        (f"{FORMS} in {{dir}}", "in {dir}", [FORMS]),
        ("{a} and {b}, 12 of https://a.b/12", "{b}, 12", ["{a}", "https://a.b/12"]),
        ("５００ and 500", "500 und viele", ["500"]),
        ("共１，０００人", "1 man", ["１，０００"]),
        ("5 men, 18.5 × 250.75 m", "18 × 250 m, 5 Männer", ["18.5", "250.75"]),
        ("{d.x, date, short} on {d, date of birth}", "am {d, Geburt}", ["{d.x, date, short}"]),
        ("a < b", "b", []),
        ("👩🏽\u200d🚀 and 😀😀", "und 😀", ["👩🏽\u200d🚀", "😀"]),
    ],
)
def test_what_is_missing_has_its_place(source: str, translation: str, texts: list[str]) -> None:
    """Each missing occurrence is listed, the last ones among equals."""
    assert [source[a:b] for a, b in sorted(missing(source, translation))] == texts


@given(st.text("a1٣ {}%s<b>/.@", max_size=40), st.text("a1٣ {}%s<b>/.@", max_size=40))
@example("{a}/b %s", "")
def test_something_is_missing_only_where_texts_differ(source: str, translation: str) -> None:
    """Places are within the text, and apart from those of other kinds."""
    places = missing(source, translation)
    assert bool(places) <= bool(differences(source, translation))
    assert all(0 <= a < b <= len(source) for a, b in [*places, *protected(source)])
    for apart in (places, protected(f"www.x/{source}")):
        assert len({n for a, b in apart for n in range(a, b)}) == sum(b - a for a, b in apart)


UNITS = (
    *("a", "1", "12 ", "123,", "<a ", "{", "%0", "www.", "a@a.", "٣ ", "😀", "😀\u200d", "🇩", "&a"),
    *("{a,plural,", "{a.b ", "{a,plural,{b}", "{%", "<%a", "$t(", "@.a", ":a-"),
)


@pytest.mark.parametrize("unit", UNITS)
def test_long_lines_take_linear_time(unit: str) -> None:
    """Backtracking at each position would not finish."""
    assert differences(unit * 30_000, unit * 30_000) == set()
