"""Numbers: age, price, dates, clock times."""

from __future__ import annotations

from dragoman.data.grammar import english
from dragoman.data.grammar.descriptions import goods, name_of
from dragoman.data.grammar.lexicon import lexicon
from dragoman.data.grammar.phrases import (
    Dice,
    clock,
    date,
    somebody,
)
from dragoman.data.grammar.sentence import (
    Sentence,
    age,
    be,
    present,
    state,
    was,
)


def years(dice: Dice) -> Sentence:
    """My daughter is eight years old. / 我女儿八岁。"""
    who, (en, zh) = somebody(dice), age(dice.number(2, 69))
    if who.number == "many":
        return years(dice)
    return state(f"{who.en} {be(who)} {en} old", f"{who.zh}{zh}")


def price(dice: Dice) -> Sentence:
    """This shirt costs 85 yuan. / 这件衬衫要85元。"""
    noun, yuan = (
        goods(dice),
        dice.pick((dice.number(5, 99), dice.number(10, 99) * 10, dice.number(1, 9) * 1000)),
    )
    this, this_zh = dice.pick((("this", "这"), ("that", "那")))
    if dice.chance(0.3):
        return state(
            f"the price of {this} {noun.en} is {yuan} yuan",
            f"{this_zh}{noun.measure}{noun.zh}的价格是{yuan}元",
        )
    return state(
        f"{this} {noun.en} costs {yuan} yuan", f"{this_zh}{noun.measure}{noun.zh}要{yuan}元"
    )


def birthday(dice: Dice) -> Sentence:
    """She was born on March 5th, 2019. / 她是2019年3月5日出生的。"""
    who, (en, zh) = somebody(dice), date(dice, year=True)
    if dice.chance(0.3):
        birthday_of = name_of(who)
        if who.number in ("one", "I", "you"):
            day, day_zh = date(dice, year=False)
            return state(f"{birthday_of} birthday is {day}", f"{who.zh}的生日是{day_zh}")
    return state(f"{who.en} {was(who)} born on {en}", f"{who.zh}是{zh}出生的")


def calendar(dice: Dice) -> Sentence:
    """The exam is on May 3rd, 2021. / 考试在2021年5月3日。"""
    (what, what_zh), (day, day_zh) = (
        dice.pick(lexicon().titles["event"]),
        date(dice, year=dice.chance(0.5)),
    )
    if dice.chance(0.3):
        now, now_zh = dice.pick((("today", "今天"), ("tomorrow", "明天")))
        weekday, number = dice.pick(lexicon().rows["weekdays"])
        if dice.chance(0.5):
            return state(f"{now} is {weekday}, {day}", f"{now_zh}是{day_zh}，星期{number}")
        return state(f"{now} is {day}", f"{now_zh}是{day_zh}")
    if dice.chance(0.2):
        weekday, number = dice.pick(lexicon().rows["weekdays"])
        return state(f"{what} is on {weekday}", f"{what_zh}在星期{number}")
    return state(f"{what} is on {day}", f"{what_zh}在{day_zh}")


def departure(dice: Dice) -> Sentence:
    """They got married on June 8th, 2015. / 他们是2015年6月8日结婚的。"""
    who, (day, day_zh) = somebody(dice), date(dice, year=True)
    en, zh = dice.pick(
        (
            ("get home", "回家"),
            ("start to work", "开始工作"),
            ("leave Beijing", "离开北京"),
            ("move to Shanghai", "搬到上海"),
        )
    )
    if dice.chance(0.3) and who.number == "many":
        en, zh = "get married", "结婚"
    return state(f"{who.en} {english.past(en)} on {day}", f"{who.zh}是{day_zh}{zh}的")


def schedule(dice: Dice) -> Sentence:
    """I get up at half past six every day. / 我每天六点半起床。"""
    who, (at, at_zh) = somebody(dice), clock(dice)
    if dice.chance(0.3):
        (what, what_zh), will = dice.pick(lexicon().titles["event"]), dice.chance(0.5)
        if will:
            time, time_zh = dice.pick(lexicon().rows["future"][:2])
            return state(f"{what} will start at {at} {time}", f"{what_zh}{time_zh}{at_zh}开始")
        return state(f"{what} starts at {at}", f"{what_zh}{at_zh}开始")
    en, zh = dice.pick(lexicon().rows["daily"])
    time, time_zh = dice.pick((("every day", "每天"), *lexicon().rows["frequency"][:3]))
    if time == "every day":
        return state(f"{who.en} {present(who, en)} at {at} {time}", f"{who.zh}{time_zh}{at_zh}{zh}")
    return state(f"{who.en} {time} {present(who, en)} at {at}", f"{who.zh}{time_zh}{at_zh}{zh}")


ALL = (
    years,
    price,
    birthday,
    calendar,
    departure,
    schedule,
)
