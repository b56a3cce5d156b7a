"""Numbers: age, price, dates, clock times."""

from __future__ import annotations

from tools.dice import Dice
from tools.grammar import english
from tools.grammar.lexicon import lexicon
from tools.grammar.phrases import name, possessive, pronoun, relative, somebody
from tools.grammar.sentence import Sentence, age, be, present, state, was
from tools.grammar.times import clock, date, day


def years(dice: Dice) -> Sentence:
    """My daughter is eight years old. / 我女儿八岁。"""
    who = dice.pick((name, relative, relative, pronoun))(dice)
    if who.number == "many":
        return years(dice)
    low, high = next((ages for kin, ages in _AGES if who.en.endswith(kin)), (18, 59))
    en, zh = age(dice.number(low, high))
    return state(f"{who.en} {be(who)} {en} old", f"{who.zh}{zh}")


_AGES = (
    ("son", (1, 25)),
    ("daughter", (1, 25)),
    ("younger brother", (2, 30)),
    ("younger sister", (2, 30)),
    ("grandmother", (60, 95)),
    ("grandfather", (60, 95)),
)


def price(dice: Dice) -> Sentence:
    """This shirt costs 85 yuan. / 这件衬衫要85元。"""
    noun = dice.pick(lexicon().nouns[dice.pick(tuple(_PRICES))])
    low, high, step = _PRICES[noun.kind]
    yuan = dice.number(low, high) * step
    this, this_zh = dice.pick((("this", "这"), ("that", "那")))
    if dice.chance(0.3):
        en = f"the price of {this} {noun.en} is {yuan} yuan"
        return state(en, f"{this_zh}{noun.measure}{noun.zh}的价格是{yuan}元")
    return state(
        f"{this} {noun.en} costs {yuan} yuan", f"{this_zh}{noun.measure}{noun.zh}要{yuan}元"
    )


_PRICES = {
    "fruit": (1, 9, 1),
    "text": (10, 99, 1),
    "clothes": (5, 99, 10),
    "headwear": (20, 99, 1),
    "thing": (3, 99, 1),
    "device": (3, 99, 100),
    "furniture": (10, 99, 10),
    "vehicle": (1, 99, 1000),
}


def birthday(dice: Dice) -> Sentence:
    """She was born on March 5th, 2001. / 她是2001年3月5日出生的。"""
    who = dice.pick((name, relative, pronoun))(dice)
    if dice.chance(0.3) and who.number != "many":
        (whose, _), (on, on_zh) = possessive(who), day(dice)
        return state(f"{whose} birthday is {on}", f"{who.zh}的生日是{on_zh}")
    low, high = next((span for kin, span in _BORN if who.en.endswith(kin)), (1960, 2005))
    on, on_zh = date(dice, low, high)
    return state(f"{who.en} {was(who)} born on {on}", f"{who.zh}是{on_zh}出生的")


_BORN = (
    ("son", (2000, 2020)),
    ("daughter", (2000, 2020)),
    ("grandmother", (1930, 1955)),
    ("grandfather", (1930, 1955)),
)


def milestone(dice: Dice) -> Sentence:
    """She moved to Shanghai on June 8th, 2015. / 她是2015年6月8日搬到上海的。"""
    who, (on, on_zh) = somebody(dice), date(dice, 2005, 2024)
    town = dice.pick(lexicon().titles[dice.pick(("city", "country"))])
    verb, zh = dice.pick(
        (
            ("start working", "开始工作"),
            (f"leave {town.en}", f"离开{town.zh}"),
            (f"move to {town.en}", f"搬到{town.zh}"),
            (f"go to {town.en}", f"去{town.zh}"),
        )
    )
    return state(f"{who.en} {english.past(verb)} on {on}", f"{who.zh}是{on_zh}{zh}的")


def wedding(dice: Dice) -> Sentence:
    """Tom and Mary got married on June 8th, 2015. / 汤姆和玛丽是2015年6月8日结婚的。"""
    one, two = dice.pick((name, relative))(dice), name(dice)
    if one.owner == two.owner or one.en.endswith(_MARRIED):
        return wedding(dice)
    on, zh = date(dice, 1995, 2024)
    return state(f"{one.en} and {two.en} got married on {on}", f"{one.zh}和{two.zh}是{zh}结婚的")


_MARRIED = ("mother", "father", "wife", "husband")


def calendar(dice: Dice) -> Sentence:
    """Today is Monday, March 5th. / 今天是3月5日，星期一。"""
    now, now_zh = dice.pick((("today", "今天"), ("tomorrow", "明天")))
    weekday, weekday_zh = dice.pick(lexicon().rows["weekdays"])
    on, on_zh = date(dice, 2015, 2029) if dice.chance(0.5) else day(dice)
    if dice.chance(0.5):
        return state(f"{now} is {weekday}, {on}", f"{now_zh}是{on_zh}，星期{weekday_zh}")
    return state(f"{now} is {on}", f"{now_zh}是{on_zh}")


def appointment(dice: Dice) -> Sentence:
    """The exam is on May 3rd, 2021. / 考试在2021年5月3日。"""
    what = dice.pick(lexicon().titles["event"][:5])
    weekday, weekday_zh = dice.pick(lexicon().rows["weekdays"])
    on, on_zh = date(dice, 2015, 2029) if dice.chance(0.5) else day(dice)
    if dice.chance(0.3):
        return state(f"{what.en} is on {weekday}", f"{what.zh}在星期{weekday_zh}")
    return state(f"{what.en} is on {on}", f"{what.zh}在{on_zh}")


def opening_time(dice: Dice) -> Sentence:
    """The movie will start at 7:20 tomorrow. / 电影明天7点20分开始。"""
    what, (at, at_zh) = dice.pick(lexicon().titles["event"]), clock(dice)
    if dice.chance(0.4):
        return state(f"{what.en} starts at {at}", f"{what.zh}{at_zh}开始")
    verb, zh = dice.pick((("start", "开始"), ("end", "结束")))
    time, time_zh = dice.pick(lexicon().rows["future"][:2])
    return state(f"{what.en} will {verb} at {at} {time}", f"{what.zh}{time_zh}{at_zh}{zh}")


def routine(dice: Dice) -> Sentence:
    """I get up at half past six every day. / 我每天六点半起床。"""
    who, (en, zh, hours, _) = somebody(dice), dice.pick(lexicon().rows["daily"])
    at, at_zh = clock(dice, tuple(int(hour) for hour in hours.split()))
    if dice.chance(0.4):
        return state(f"{who.en} {present(who, en)} at {at} every day", f"{who.zh}每天{at_zh}{zh}")
    often, often_zh = dice.pick(lexicon().rows["frequency"][:3])
    return state(f"{who.en} {often} {present(who, en)} at {at}", f"{who.zh}{often_zh}{at_zh}{zh}")


ALL = (
    years,
    price,
    birthday,
    milestone,
    wedding,
    calendar,
    appointment,
    opening_time,
    routine,
)
"""The constructions of this file."""
