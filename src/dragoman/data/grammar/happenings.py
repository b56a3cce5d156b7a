"""Statements about the past and the future, how long and how often."""

from __future__ import annotations

from dragoman.data.grammar.lexicon import lexicon
from dragoman.data.grammar.phrases import (
    Action,
    Dice,
    action,
    activity,
    clock,
    duration,
    future_action,
    future_time,
    goal,
    link,
    past_action,
    past_time,
    place,
    somebody,
    somebody_else,
    transitive,
    travel,
)
from dragoman.data.grammar.sentence import (
    Sentence,
    be,
    dated,
    negated,
    state,
    was,
)


def past(dice: Dice) -> Sentence:
    """I bought three books in the market yesterday. / 我昨天在市场买了三本书。"""
    who = somebody(dice)
    what = past_action(dice, who)
    return state(*dated(dice, who, what.en("past"), what.done, past_time(dice)), what)


def no_past(dice: Dice) -> Sentence:
    """He didn't go to school yesterday. / 他昨天没去学校。"""
    who = somebody(dice)
    what = travel(dice, by=0.1) if dice.chance(0.3) else action(dice, "bare definite", at=0.2)
    en = f"{negated(dice, 'did')} {what.en()}"
    return state(*dated(dice, who, en, f"没{what.zh}", past_time(dice)), what)


def past_progressive(dice: Dice) -> Sentence:
    """He was watching TV at half past six yesterday. / 他昨天六点半正在看电视。"""
    who, what, time = somebody(dice), action(dice, "bare"), clock(dice)
    en = f"{who.en} {was(who)} {what.en('ing')} at {time[0]} yesterday"
    return state(en, f"{who.zh}昨天{time[1]}{what.doing}", what)


def future(dice: Dice) -> Sentence:
    """We will go to Beijing by train tomorrow. / 我们明天会坐火车去北京。"""
    who = somebody(dice)
    what = future_action(dice, who)
    if dice.chance(0.25):
        en, zh = f"{negated(dice, 'will')} {what.en()}", f"不会{what.zh}"
    else:
        en, zh = f"will {what.en()}", f"会{what.zh}"
    return state(*dated(dice, who, en, zh, future_time(dice)), what)


def going_to(dice: Dice) -> Sentence:
    """She is going to buy a car next year. / 她明年要买一辆汽车。"""
    who = somebody(dice)
    what = future_action(dice, who)
    en = f"{be(who)} going to {what.en()}"
    return state(*dated(dice, who, en, f"要{what.zh}", future_time(dice)), what)


def lasting(dice: Dice) -> Sentence:
    """I played football for two hours yesterday. / 我昨天踢了两个小时足球。"""
    who, (time, time_zh) = somebody(dice), duration(dice, long=False)
    what = activity(dice, 0.0)
    if what.base in ("climb mountains", "travel", "take photos"):
        subject = dice.pick(lexicon().titles[dice.pick(("subject", "language"))])
        what = Action(
            "study", f" {subject.en}", "", "学习", subject.zh, "", (link("study", subject.en),)
        )
    en = f"{what.en('past')} for {time}"
    return state(
        *dated(dice, who, en, f"{what.verb}了{time_zh}{what.object}", past_time(dice)), what
    )


def until_now(dice: Dice) -> Sentence:
    """She has lived in Shanghai for three years. / 她在上海住了三年了。"""
    who, (time, time_zh) = somebody(dice), duration(dice, long=True)
    has = "has" if who.singular else "have"
    if dice.chance(0.4):
        where, where_zh = place(dice, "working", 1.0)
        return state(
            f"{who.en} {has} worked{where} for {time}", f"{who.zh}{where_zh}工作了{time_zh}了"
        )
    town = dice.pick(lexicon().titles[dice.pick(("city", "country"))])
    verb, zh = dice.pick((("lived", "住"), ("lived", "住"), ("been", "待")))
    return state(
        f"{who.en} {has} {verb} in {town.en} for {time}", f"{who.zh}在{town.zh}{zh}了{time_zh}了"
    )


def experience(dice: Dice) -> Sentence:
    """Tom has never been to China. / 汤姆从来没去过中国。"""
    who, has = somebody(dice), "has been"
    town = dice.pick(lexicon().titles[dice.pick(("city", "country"))])
    has = "has" if who.singular else "have"
    roll = dice.number(1, 4)
    if roll == 1:
        return state(f"{who.en} {has} never been to {town.en}", f"{who.zh}从来没去过{town.zh}")
    if roll == 2:
        times, zh = dice.pick(
            (("once", "一次"), ("twice", "两次"), ("three times", "三次"), ("many times", "很多次"))
        )
        return state(f"{who.en} {has} been to {town.en} {times}", f"{who.zh}去过{town.zh}{zh}")
    what = past_definite(dice)
    if roll == 3:
        never = f"{who.en} {has} never {what.en('participle')}"
        return state(never, f"{who.zh}从来没{what.verb}过{what.object}", what)
    return state(
        f"{who.en} {has} {what.en('participle')} before",
        f"{who.zh}以前{what.verb}过{what.object}",
        what,
    )


def past_definite(dice: Dice) -> Action:
    """read that novel / 看那本小说: an act that one has done before or not."""
    verbs = [
        verb
        for verb in lexicon().verbs["activity"]
        if verb.base in ("read", "watch", "listen to", "repair")
    ]
    return transitive(dice, dice.pick(verbs), "definite", at=0.0)


def already(dice: Dice) -> Sentence:
    """He hasn't eaten dinner yet. / 他还没吃晚饭。"""
    who = somebody(dice)
    meal = dice.pick(lexicon().nouns["dinner"])
    what = Action("eat", f" {meal.en}", "", "吃", meal.zh, "verb", (link("eat", meal.en),))
    if dice.chance(0.8):
        verbs = (*lexicon().verbs["achievement"], *lexicon().verbs["event"])
        what = transitive(dice, dice.pick(verbs), "definite", owner=who.owner, at=0.0)
    has = "has" if who.singular else "have"
    if dice.chance(0.5):
        en = f"{who.en} {negated(dice, has)} {what.en('participle')} yet"
        return state(en, f"{who.zh}还没{what.zh}", what)
    return state(
        f"{who.en} {has} already {what.en('participle')}", f"{who.zh}已经{what.done}", what
    )


def outing(dice: Dice) -> Sentence:
    """I went to the park with Tom yesterday. / 我昨天和汤姆一起去了公园。"""
    who = somebody(dice)
    friend = somebody_else(dice, who)
    (there, there_zh), later = goal(dice), dice.chance(0.4)
    en, zh = f"{there} with {friend.obj}", f"和{friend.zh}一起"
    if later:
        time = future_time(dice)
        return state(*dated(dice, who, f"will go {en}", f"会{zh}{there_zh}", time))
    return state(*dated(dice, who, f"went {en}", f"{zh}去了{there_zh[1:]}", past_time(dice)))


def errand(dice: Dice) -> Sentence:
    """She went to the supermarket to buy apples. / 她去超市买了苹果。"""
    who = somebody(dice)
    shops = [spot for spot in lexicon().places if "shopping" in spot.kinds]
    there = dice.pick(shops)
    buy = lexicon().verbs["achievement"][0]
    what = transitive(dice, buy, "counted bare", at=0.0)
    if dice.chance(0.5):
        en = f"went {there.to_en} to {what.en()}"
        return state(*dated(dice, who, en, f"{there.to_zh}{what.done}", past_time(dice)), what)
    en = f"will go {there.to_en} to {what.en()}"
    return state(*dated(dice, who, en, f"会{there.to_zh}{what.zh}", future_time(dice)), what)


ALL = (
    past,
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
