"""What happens to things: 把 sentences, giving, passives, requests."""

from __future__ import annotations

from dragoman.data.grammar import english
from dragoman.data.grammar.existence import spot
from dragoman.data.grammar.lexicon import Noun, Verb, lexicon
from dragoman.data.grammar.phrases import (
    Action,
    Dice,
    Thing,
    action,
    activity,
    counted,
    definite,
    future_time,
    goal,
    link,
    other,
    past_time,
    somebody,
    somebody_else,
    the,
    thing,
)
from dragoman.data.grammar.sentence import Sentence, ask, be, dated, negated, state, was


def disposal(dice: Dice) -> Action:
    """close the window / 把窗户关上: verb, its result, and the object in front of both."""
    verb = dice.pick(lexicon().disposals)
    what = a_certain(dice, verb)
    head, _, result = verb.zh.partition("|")
    front, back = verb.base.partition(" ")[::2]
    en = f" {what.en} {back}".rstrip()
    return Action(front, en, f"把{what.zh}", head, result, "end", (link(verb.base, what.word.en),))


def a_certain(dice: Dice, verb: Verb) -> Thing:
    """the window / 窗户, or my bike / 我的自行车."""
    word = dice.pick([word for word in verb.objects if isinstance(word, Noun)])
    if word.kind in ("opening", "switch", "task", "breakable") or dice.chance(0.5):
        return the(dice, word)
    return definite(dice, word)


def placing(dice: Dice) -> Action:
    """put the keys on the table / 把钥匙放在桌子上."""
    en, zh = dice.pick(lexicon().rows["put"])
    noun = dice.pick(lexicon().nouns[dice.pick(("thing", "thing", "text", "headwear"))])
    what = the(dice, noun) if dice.chance(0.6) else definite(dice, noun)
    where, where_zh = spot(dice, noun)
    return Action(
        en, f" {what.en} {where}", f"把{what.zh}", f"{zh}在", where_zh, "", (link(en, noun.en),)
    )


def handing(dice: Dice) -> Action:
    """give the book to Mary / 把书送给玛丽."""
    en, to, zh = dice.pick(lexicon().rows["hand"])
    noun, whom = (
        dice.pick(lexicon().nouns[dice.pick(("text", "thing", "vehicle", "clothes"))]),
        somebody(dice),
    )
    what = the(dice, noun) if dice.chance(0.5) else definite(dice, noun)
    return Action(
        en, f" {what.en} {to} {whom.obj}", f"把{what.zh}", zh, whom.zh, "verb", (link(en, noun.en),)
    )


def moving(dice: Dice) -> Action:
    """One of the 把 actions."""
    return dice.weighted(((disposal, 5.0), (placing, 4.0), (handing, 3.0)))(dice)


def ba_past(dice: Dice) -> Sentence:
    """He put the keys on the table. / 他把钥匙放在桌子上。 He closed the window. / 他把窗户关上了。"""
    what, who = moving(dice), somebody(dice)
    if what.base in ("put", "read") or dice.chance(0.4):
        return state(*dated(dice, who, what.en("past"), what.done, past_time(dice)), what)
    return state(f"{who.en} {what.en('past')}", f"{who.zh}{what.done}", what)


def ba_not(dice: Dice) -> Sentence:
    """She didn't close the door. / 她没把门关上。"""
    what, who = moving(dice), somebody(dice)
    return state(f"{who.en} {negated(dice, 'did')} {what.en()}", f"{who.zh}没{what.zh}", what)


def ba_future(dice: Dice) -> Sentence:
    """I will sell my car next year. / 我明年会把我的汽车卖掉。"""
    what, who = moving(dice), somebody(dice)
    will, zh = dice.pick((("will", "会"), (f"{be(who)} going to", "要")))
    return state(
        *dated(dice, who, f"{will} {what.en()}", f"{zh}{what.zh}", future_time(dice)), what
    )


def ba_please(dice: Dice) -> Sentence:
    """Please put the books in the bag. / 请把书放在包里。 Don't open the window. / 别把窗户打开。"""
    what = moving(dice)
    roll = dice.number(1, 4)
    if roll == 1:
        return state(f"{negated(dice, 'do')} {what.en()}", f"别{what.zh}", what)
    if roll == 2:
        return ask(f"can you {what.en()}", f"你能{what.zh}吗", what)
    return state(f"please {what.en()}", f"请{what.zh}", what)


def ba_wish(dice: Dice) -> Sentence:
    """We want to sell the house. / 我们想把房子卖掉。"""
    what, who = moving(dice), somebody(dice)
    verb, zh = dice.pick((("want", "想"), ("need", "需要"), ("plan", "打算")))
    want = english.third(verb) if who.singular else verb
    return state(f"{who.en} {want} to {what.en()}", f"{who.zh}{zh}{what.zh}", what)


def gift(dice: Dice) -> Sentence:
    """My father gave me a new bike yesterday. / 我爸爸昨天送给了我一辆新自行车。"""
    who = somebody(dice)
    whom, noun = (
        somebody_else(dice, who),
        dice.pick(lexicon().nouns[dice.pick(("text", "thing", "vehicle", "clothes"))]),
    )
    en, _, zh = dice.pick(lexicon().rows["hand"][:4])
    what = counted(dice, noun)
    if dice.chance(0.3):
        en_future, zh_future = f"will {en} {whom.obj} {what.en}", f"会{zh}{whom.zh}{what.zh}"
        return state(*dated(dice, who, en_future, zh_future, future_time(dice)))
    en_past, zh_past = f"{english.past(en)} {whom.obj} {what.en}", f"{zh}了{whom.zh}{what.zh}"
    return state(*dated(dice, who, en_past, zh_past, past_time(dice)))


def favour(dice: Dice) -> Sentence:
    """She bought me a cup of coffee. / 她给我买了一杯咖啡。"""
    who = somebody(dice)
    whom = somebody_else(dice, who)
    verbs = {"buy": lexicon().verbs["achievement"][0], "write": lexicon().verbs["activity"][1]}
    en, verb = dice.pick(tuple(verbs.items()))
    nouns = [
        word
        for word in verb.objects
        if en == "buy" or word.en in ("letter", "email", "poem", "story")
    ]
    what = thing(dice, dice.pick(nouns), "counted")
    past = f"{english.past(en)} {whom.obj} {what.en}"
    return state(*dated(dice, who, past, f"给{whom.zh}{verb.zh}了{what.zh}", past_time(dice)))


def lesson(dice: Dice) -> Sentence:
    """Ms. Li teaches us math. / 李女士教我们数学。 She called me yesterday. / 她昨天给我打了电话。"""
    who = somebody(dice)
    whom = somebody_else(dice, who)
    if dice.chance(0.5):
        subject = dice.pick((*lexicon().titles["subject"], *lexicon().titles["language"]))
        teach = "teaches" if who.singular else "teach"
        return state(
            f"{who.en} {teach} {whom.obj} {subject.en}", f"{who.zh}教{whom.zh}{subject.zh}"
        )
    if dice.chance(0.3):
        return state(
            *dated(dice, who, f"will call {whom.obj}", f"会给{whom.zh}打电话", future_time(dice))
        )
    return state(*dated(dice, who, f"called {whom.obj}", f"给{whom.zh}打了电话", past_time(dice)))


_PASSIVES = ("break", "throw away", "eat up", "clean", "repair", "wash", "sell")


def passive(dice: Dice) -> Sentence:
    """My bike was stolen yesterday. / 我的自行车昨天被偷走了。 The cup was broken by the cat. / 杯子被猫打破了。"""
    if dice.chance(0.4):
        noun = dice.pick(lexicon().nouns[dice.pick(("vehicle", "device", "thing"))])
        what = definite(dice, noun)
        (time, time_zh), (verb, zh) = (
            past_time(dice),
            dice.pick((("stolen", "偷走"), ("borrowed", "借走"), ("taken away", "拿走"))),
        )
        return state(f"{what.en} {was(what)} {verb} {time}", f"{what.zh}{time_zh}被{zh}了")
    verb = dice.pick([verb for verb in lexicon().disposals if verb.base in _PASSIVES])
    what, by = a_certain(dice, verb), other(dice)
    by_en, by_zh = by.en, by.zh
    if verb.base in ("break", "eat up") and dice.chance(0.3):
        pet = dice.pick(lexicon().nouns["animal"][:2])
        by_en, by_zh = f"the {pet.en}", pet.zh
    en = f"{what.en} {was(what)} {english.participle(verb.base)} by {by_en}"
    return state(en, f"{what.zh}被{by_zh}{verb.zh.replace('|', '')}了")


def request(dice: Dice) -> Sentence:
    """Please read this article. / 请看这篇文章。 Don't play football here. / 别在这里踢足球。"""
    roll = dice.number(1, 4)
    if roll == 1:
        what = activity(dice, 0.0)
        return state(f"{negated(dice, 'do')} {what.en()} here", f"别在这里{what.zh}", what)
    what = action(dice, "definite", at=0.1)
    if roll == 2:
        what = action(dice, "definite", at=0.2)
        return state(f"{negated(dice, 'do')} {what.en()}", f"别{what.zh}", what)
    return state(f"please {what.en()}", f"请{what.zh}", what)


def proposal(dice: Dice) -> Sentence:
    """Let's play football in the park tomorrow. / 我们明天在公园踢足球吧。"""
    time, time_zh = future_time(dice) if dice.chance(0.5) else ("", "")
    if dice.chance(0.3):
        there, there_zh = goal(dice)
        return state(f"let's go {there} {time}".rstrip(), f"我们{time_zh}{there_zh}吧")
    what = action(dice, "bare", at=0.5)
    return state(f"let's {what.en()} {time}".rstrip(), f"我们{time_zh}{what.zh}吧", what)


ALL = (
    ba_past,
    ba_not,
    ba_future,
    ba_please,
    ba_wish,
    gift,
    favour,
    lesson,
    passive,
    request,
    proposal,
)
