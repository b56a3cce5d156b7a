"""When and how long: days, weeks, clock times and dates in both languages."""

from __future__ import annotations

from tools.dice import Dice
from tools.grammar import chinese, english
from tools.grammar.doing import Action
from tools.grammar.lexicon import lexicon
from tools.grammar.phrases import Both
from tools.numbers import cardinal, ordinal_figures

_MEMORABLE = (
    "sell",
    "borrow",
    "receive",
    "find",
    "lose",
    "help",
    "invite",
    "visit",
    "travel",
)
"""Acts that one still speaks of a year later, or plans a year ahead."""


def past_time(dice: Dice, what: Action | None = None) -> Both:
    """yesterday / 昨天; last Monday / 上周一; for memorable acts two years ago / 两年前."""
    if what and is_memorable(what) and dice.chance(0.5):
        if dice.chance(0.4):
            en, zh = span(dice)
            return f"{en} ago", f"{zh}前"
        return _row(dice, "long_past")
    if dice.chance(0.15):
        return _weekday(dice, "last", "上周")
    return _row(dice, "past")


def future_time(dice: Dice, what: Action | None = None) -> Both:
    """tomorrow / 明天; next Friday / 下周五; and for great plans next year / 明年."""
    if what and is_memorable(what) and dice.chance(0.5):
        if dice.chance(0.4):
            en, zh = span(dice)
            return f"in {en}", f"{zh}后"
        return _row(dice, "far_future")
    if dice.chance(0.15):
        return _weekday(dice, "next", "下周")
    return _row(dice, "future")


def is_memorable(what: Action) -> bool:
    """Whether one speaks of it a year before or after: not of a cup of tea, but of a journey."""
    if what.base == "buy":
        durable = ("vehicle", "device", "furniture")
        bought = {noun.en for kind in durable for noun in lexicon().nouns[kind]}
        return what.links[0].removeprefix("buy + ") in bought
    return what.base in _MEMORABLE or (what.base == "go" and what.tail.split()[1][0].isupper())


def span(dice: Dice) -> Both:
    """two days / 两天, three years / 三年."""
    return _amount(dice, dice.pick(lexicon().rows["units"][2:]), (1, 2, 2, 3, 4, 5, 6, 8))


def long_span(dice: Dice) -> Both:
    """two months / 两个月, three years / 三年."""
    return _amount(dice, dice.pick(lexicon().rows["units"][4:]), (2, 2, 3, 4, 5, 6, 8, 10))


def short_span(dice: Dice) -> Both:
    """twenty minutes / 二十分钟, two hours / 两个小时."""
    minute, hour = lexicon().rows["units"][:2]
    if dice.chance(0.5):
        return _amount(dice, minute, (10, 15, 20, 30, 40))
    return _amount(dice, hour, (1, 2, 2, 3, 4, 5))


def clock(dice: Dice, hours: tuple[int, ...] = tuple(range(1, 13))) -> Both:
    """seven o'clock / 七点; half past six / 六点半; 7:20 / 7点20分."""
    hour = dice.pick(hours)
    roll = dice.number(1, 5)
    if roll <= 2:
        return f"{cardinal(hour)} o'clock", f"{chinese.count(hour)}点"
    if roll == 3:
        return f"half past {cardinal(hour)}", f"{chinese.count(hour)}点半"
    if roll == 4:
        return f"a quarter past {cardinal(hour)}", f"{chinese.count(hour)}点一刻"
    minute = dice.pick((10, 20, 25, 35, 40, 50, 55))
    return f"{hour}:{minute}", f"{hour}点{minute}分"


def day(dice: Dice) -> Both:
    """March 5th / 3月5日."""
    number, of_month = dice.number(1, 12), dice.number(1, 28)
    (month,) = lexicon().rows["months"][number - 1]
    return f"{month} {ordinal_figures(of_month)}", f"{number}月{of_month}日"


def date(dice: Dice, first: int, last: int) -> Both:
    """March 5th, 2019 / 2019年3月5日, the year from first to last."""
    en, zh = day(dice)
    year = dice.number(first, last)
    return f"{en}, {year}", f"{year}年{zh}"


def _row(dice: Dice, table: str) -> Both:
    en, zh = dice.pick(lexicon().rows[table])
    return en, zh


def _weekday(dice: Dice, which: str, which_zh: str) -> Both:
    en, zh = dice.pick(lexicon().rows["weekdays"])
    return f"{which} {en}", f"{which_zh}{zh.replace('天', '日')}"


def _amount(dice: Dice, unit: tuple[str, ...], numbers: tuple[int, ...]) -> Both:
    en, zh = unit
    number = dice.pick(numbers)
    if number == 1:
        return english.article(en), f"一{zh}"
    return f"{cardinal(number)} {en}s", f"{chinese.count(number)}{zh}"
