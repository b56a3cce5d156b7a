"""Statements about the past and the future, how long and how often."""

from __future__ import annotations

from tools.dice import Dice
from tools.grammar.doing import (
    Action,
    acquisition,
    action,
    activity_of,
    future_action,
    link,
    past_action,
    person_action,
    place,
    purchase,
    transitive,
    travel,
)
from tools.grammar.lexicon import lexicon
from tools.grammar.phrases import Both, counted, somebody, somebody_else
from tools.grammar.sentence import Sentence, be, dated, have, negated, state, was
from tools.grammar.times import clock, future_time, long_span, past_time, short_span


def past(dice: Dice) -> Sentence:
    """I bought three books in the market yesterday. / 我昨天在市场买了三本书。"""
    who = somebody(dice)
    what = past_action(dice, who)
    return state(*dated(dice, who, what.en("past"), what.done, past_time(dice, what)), what)


def encounter(dice: Dice) -> Sentence:
    """She met Tom in the park yesterday. / 她昨天在公园遇到了汤姆。"""
    who = somebody(dice)
    if dice.chance(0.3):
        what = person_action(dice, who, planned=True)
        time = future_time(dice, what)
        return state(*dated(dice, who, f"will {what.en()}", f"会{what.zh}", time), what)
    what = person_action(dice, who, planned=False)
    return state(*dated(dice, who, what.en("past"), what.done, past_time(dice, what)), what)


def sighting(dice: Dice) -> Sentence:
    """We saw two tigers at the zoo yesterday. / 我们昨天在动物园看见了两只老虎。"""
    who, animal = somebody(dice), dice.pick(lexicon().nouns["animal"])
    what, (where, where_zh) = (
        counted(dice, animal),
        place(dice, "outside" if animal.en in _TAME else "zoo", 1.0),
    )
    en, zh = f"saw {what.en}{where}", f"{where_zh}看见了{what.zh}"
    said = state(*dated(dice, who, en, zh, past_time(dice)))
    return said._replace(links=(link("see", animal.en),))


def no_past(dice: Dice) -> Sentence:
    """He didn't go to school yesterday. / 他昨天没去学校。"""
    who = somebody(dice)
    what = travel(dice, by=0.1) if dice.chance(0.3) else action(dice, "bare definite", at=0.2)
    en = f"{negated(dice, 'did')} {what.en()}"
    return state(*dated(dice, who, en, f"没{what.zh}", past_time(dice, what)), what)


def past_progressive(dice: Dice) -> Sentence:
    """He was watching TV at half past six yesterday. / 他昨天六点半正在看电视。"""
    who, what, time = somebody(dice), action(dice, "bare"), clock(dice)
    en = f"{who.en} {was(who)} {what.en('ing')} at {time[0]} yesterday"
    return state(en, f"{who.zh}昨天{time[1]}{what.doing}", what)


def future(dice: Dice) -> Sentence:
    """We will go to Beijing by train tomorrow. / 我们明天会坐火车去北京。"""
    who = somebody(dice)
    what = future_action(dice, who)
    time = future_time(dice, what)
    if dice.chance(0.25):
        en, zh = f"{negated(dice, 'will')} {what.en()}", f"不会{what.zh}"
        return state(*dated(dice, who, en, zh, time), what)
    return state(*dated(dice, who, f"will {what.en()}", f"会{what.zh}", time), what)


def going_to(dice: Dice) -> Sentence:
    """She is going to buy a car next year. / 她明年要买一辆汽车。"""
    who = somebody(dice)
    what = future_action(dice, who)
    en = f"{be(who)} going to {what.en()}"
    return state(*dated(dice, who, en, f"要{what.zh}", future_time(dice, what)), what)


def lasting(dice: Dice) -> Sentence:
    """I played football for two hours yesterday. / 我昨天踢了两个小时足球。"""
    who, (time, time_zh), when = somebody(dice), short_span(dice), past_time(dice)
    if dice.chance(0.3):
        what = dice.pick(lexicon().titles[dice.pick(("subject", "language"))])
        said = dated(dice, who, f"studied {what.en} for {time}", f"学习了{time_zh}{what.zh}", when)
        return state(*said)._replace(links=(link("study", what.en),))
    did = activity_of(dice, "sport swimming party home reading working", at=0.0)
    zh = f"{did.verb}了{time_zh}{did.object}"
    return state(*dated(dice, who, f"{did.en('past')} for {time}", zh, when), did)


def until_now(dice: Dice) -> Sentence:
    """She has lived in Shanghai for three years. / 她在上海住了三年了。"""
    who, (time, time_zh) = somebody(dice), long_span(dice)
    if dice.chance(0.4):
        where, where_zh = place(dice, "working", 1.0)
        en = f"{who.en} {have(who)} worked{where} for {time}"
        return state(en, f"{who.zh}{where_zh}工作了{time_zh}了")
    town = dice.pick(lexicon().titles[dice.pick(("city", "country"))])
    en = f"{who.en} {have(who)} lived in {town.en} for {time}"
    return state(en, f"{who.zh}在{town.zh}住了{time_zh}了")


def experience(dice: Dice) -> Sentence:
    """Tom has never been to China. / 汤姆从来没去过中国。"""
    who, town = somebody(dice), dice.pick(lexicon().titles[dice.pick(("city", "country"))])
    roll = dice.number(1, 4)
    if roll == 1:
        return state(
            f"{who.en} {have(who)} never been to {town.en}", f"{who.zh}从来没去过{town.zh}"
        )
    if roll == 2:
        times, zh = dice.pick(_TIMES)
        return state(
            f"{who.en} {have(who)} been to {town.en} {times}", f"{who.zh}去过{zh}{town.zh}"
        )
    enjoyed = [verb for verb in lexicon().verbs["activity"] if verb.base in _ENJOYED]
    what = transitive(dice, dice.pick(enjoyed), "definite", at=0.0)
    if roll == 3:
        en = f"{who.en} {have(who)} never {what.en('participle')}"
        return state(en, f"{who.zh}从来没{what.verb}过{what.object}", what)
    en = f"{who.en} {have(who)} {what.en('participle')} before"
    return state(en, f"{who.zh}以前{what.verb}过{what.object}", what)


_TIMES: tuple[Both, ...] = (
    ("once", "一次"),
    ("twice", "两次"),
    ("three times", "三次"),
    ("many times", "很多次"),
)
_ENJOYED = ("read", "watch", "listen to")


def already(dice: Dice) -> Sentence:
    """He hasn't eaten dinner yet. / 他还没吃晚饭。"""
    who = somebody(dice)
    if dice.chance(0.2):
        meal = dice.pick(lexicon().nouns["meal"])
        links = (link("eat", meal.en),)
        what = Action("eat", f" {meal.en}", "", "吃", meal.zh, "verb", links)
    else:
        what = acquisition(dice, "definite", owner=who.owner)
    if dice.chance(0.5) and what.base != "lose":
        en = f"{who.en} {negated(dice, have(who))} {what.en('participle')} yet"
        return state(en, f"{who.zh}还没{what.zh}", what)
    en = f"{who.en} {have(who)} already {what.en('participle')}"
    return state(en, f"{who.zh}已经{what.done}", what)


def outing(dice: Dice) -> Sentence:
    """I went to the park with Tom yesterday. / 我昨天和汤姆一起去了公园。"""
    who, going = somebody(dice), travel(dice, by=0.0)
    friend = somebody_else(dice, who)
    there, with_zh = f"{going.tail.strip()} with {friend.obj}", f"和{friend.zh}一起"
    if dice.chance(0.4):
        zh = f"会{with_zh}{going.zh}"
        return state(*dated(dice, who, f"will go {there}", zh, future_time(dice, going)), going)
    zh = f"{with_zh}{going.done}"
    return state(*dated(dice, who, f"went {there}", zh, past_time(dice, going)), going)


def errand(dice: Dice) -> Sentence:
    """She went to the supermarket to buy apples. / 她去超市买了苹果。"""
    who, what = somebody(dice), purchase(dice, "counted bare")
    there = dice.pick(lexicon().places_of["store"])
    if dice.chance(0.5):
        en = f"went {there.to_en} to {what.en()}"
        return state(*dated(dice, who, en, f"{there.to_zh}{what.done}", past_time(dice)), what)
    en = f"will go {there.to_en} to {what.en()}"
    return state(*dated(dice, who, en, f"会{there.to_zh}{what.zh}", future_time(dice)), what)


_TAME = ("dog", "cat", "bird", "rabbit", "duck")

ALL = (
    past,
    encounter,
    sighting,
    no_past,
    past_progressive,
    future,
    going_to,
    lasting,
    until_now,
    experience,
    already,
    outing,
    errand,
)
"""The constructions of this file."""
