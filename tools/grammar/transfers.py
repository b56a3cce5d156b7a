"""What happens to things: 把 sentences, giving, passives, requests."""

from __future__ import annotations

from tools.dice import Dice
from tools.grammar import english
from tools.grammar.doing import (
    Action,
    action,
    activity,
    link,
    place,
    purchase,
    transitive,
    travel,
)
from tools.grammar.existence import spot
from tools.grammar.lexicon import Noun, Verb, lexicon
from tools.grammar.phrases import (
    NO_PHRASE,
    Subject,
    Thing,
    counted,
    definite,
    name,
    other,
    pronoun,
    relative,
    somebody,
    somebody_else,
    the,
)
from tools.grammar.sentence import Sentence, ask, be, dated, negated, present, state, was
from tools.grammar.times import future_time, past_time


def disposal(dice: Dice, verb: Verb) -> Action:
    """close the window / 把窗户关上: Chinese puts the object before the verb and its result."""
    what = a_certain(dice, verb)
    head, _, result = verb.zh.partition("|")
    base, _, particle = verb.base.partition(" ")
    tail = f" {what.en} {particle}".rstrip()
    links = (link(verb.base, what.word.en),)
    return Action(base, tail, f"把{what.zh}", head, result, "end", links)


def a_certain(dice: Dice, verb: Verb) -> Thing:
    """the window / 窗户, or my coat / 我的大衣: what the verb may be done to."""
    word = dice.pick([word for word in verb.objects if isinstance(word, Noun)])
    if word.kind in ("opening", "switch", "task", "breakable") or dice.chance(0.5):
        return the(dice, word)
    return definite(dice, word)


def placing(dice: Dice) -> Action:
    """put the keys on the table / 把钥匙放在桌子上."""
    en, zh = dice.pick(lexicon().rows["put"])
    noun = dice.pick(lexicon().nouns[dice.pick(("thing", "item", "text", "headwear"))])
    what = the(dice, noun) if dice.chance(0.6) else definite(dice, noun)
    where, where_zh = spot(dice, noun)
    links = (link(en, noun.en),)
    return Action(en, f" {what.en} {where}", f"把{what.zh}", f"{zh}在", where_zh, "", links)


def handing(dice: Dice, who: Subject) -> Action:
    """give the book to Mary / 把书送给玛丽."""
    en, to, zh = dice.pick(lexicon().rows["hand"])
    whom, noun = somebody_else(dice, who), portable(dice)
    what = the(dice, noun) if dice.chance(0.5) else definite(dice, noun)
    tail, links = f" {what.en} {to} {whom.obj}", (link(en, noun.en),)
    return Action(en, tail, f"把{what.zh}", zh, whom.zh, "verb", links)


def portable(dice: Dice) -> Noun:
    """Something that one gives, lends or sends."""
    return dice.pick(lexicon().nouns[dice.pick(("text", "thing", "clothes"))])


def moving(dice: Dice, who: Subject, *, planned: bool = True) -> Action:
    """One of the 把 actions; nobody plans to break a cup."""
    roll = dice.number(1, 12)
    if roll <= 5:
        verbs = [verb for verb in lexicon().disposals if verb.base != "break" or not planned]
        return disposal(dice, dice.pick(verbs))
    return placing(dice) if roll <= 9 else handing(dice, who)


def ba_past(dice: Dice) -> Sentence:
    """He put the keys on the table. / 他把钥匙放在桌子上。"""
    who = somebody(dice)
    what = moving(dice, who, planned=False)
    if dice.chance(0.4):
        return state(*dated(dice, who, what.en("past"), what.done, past_time(dice)), what)
    return state(f"{who.en} {what.en('past')}", f"{who.zh}{what.done}", what)


def ba_not(dice: Dice) -> Sentence:
    """She didn't close the door. / 她没把门关上。"""
    who = somebody(dice)
    what = moving(dice, who, planned=False)
    return state(f"{who.en} {negated(dice, 'did')} {what.en()}", f"{who.zh}没{what.zh}", what)


def ba_future(dice: Dice) -> Sentence:
    """I will return the book to Tom tomorrow. / 我明天会把书还给汤姆。"""
    who = somebody(dice)
    what, time = moving(dice, who), future_time(dice)
    will, zh = dice.pick((("will", "会"), (f"{be(who)} going to", "要")))
    return state(*dated(dice, who, f"{will} {what.en()}", f"{zh}{what.zh}", time), what)


def ba_please(dice: Dice) -> Sentence:
    """Please put the books in the bag. / 请把书放在包里。"""
    you = Subject("you", "you", "你", "you", ("your", "你的"))
    what, roll = moving(dice, you), dice.number(1, 4)
    if roll == 1:
        return state(f"{negated(dice, 'do')} {what.en()}", f"别{what.zh}", what)
    if roll == 2:
        return ask(f"can you {what.en()}", f"你能{what.zh}吗", what)
    return state(f"please {what.en()}", f"请{what.zh}", what)


def ba_wish(dice: Dice) -> Sentence:
    """We want to throw the box away. / 我们想把盒子扔掉。"""
    who = somebody(dice)
    what = moving(dice, who)
    verb, zh = dice.pick((("want", "想"), ("need", "需要"), ("plan", "打算")))
    return state(f"{who.en} {present(who, verb)} to {what.en()}", f"{who.zh}{zh}{what.zh}", what)


def gift(dice: Dice) -> Sentence:
    """My father gave me a new watch yesterday. / 我爸爸昨天送给了我一块新手表。"""
    who, (en, _, zh) = somebody(dice), dice.pick(lexicon().rows["hand"][:4])
    whom, what = somebody_else(dice, who), counted(dice, portable(dice))
    given, given_zh = f"{whom.obj} {what.en}", f"{whom.zh}{what.zh}"
    said, said_zh, time = f"{english.past(en)} {given}", f"{zh}了{given_zh}", past_time(dice)
    if dice.chance(0.3):
        said, said_zh, time = f"will {en} {given}", f"会{zh}{given_zh}", future_time(dice)
    links = (link(en, what.word.en),)
    return state(*dated(dice, who, said, said_zh, time))._replace(links=links)


def favour(dice: Dice) -> Sentence:
    """She bought me a red scarf. / 她给我买了一条红色的围巾。"""
    who = somebody(dice)
    whom, what = somebody_else(dice, who), purchase(dice, "counted")
    if dice.chance(0.4):
        write = lexicon().verbs["activity"][1]
        what = transitive(dice, write, "counted", at=0.0)
    en = f"{english.past(what.base)} {whom.obj}{what.tail}"
    zh = f"给{whom.zh}{what.verb}了{what.object}"
    return state(*dated(dice, who, en, zh, past_time(dice)), what)


def lesson(dice: Dice) -> Sentence:
    """Ms. Li teaches us math. / 李女士教我们数学。"""
    who, table = dice.pick((pronoun, name, relative))(dice), dice.pick(("subject", "language"))
    whom, what = somebody_else(dice, who), dice.pick(lexicon().titles[table])
    links = (link("teach", what.en),)
    where, where_zh = place(dice, "teaching", 0.4)
    if dice.chance(0.3):
        en, zh = f"taught {whom.obj} {what.en}{where}", f"{where_zh}教{whom.zh}{what.zh}"
        return state(*dated(dice, who, en, zh, past_time(dice)))._replace(links=links)
    en = f"{who.en} {present(who, 'teach')} {whom.obj} {what.en}{where}"
    return state(en, f"{who.zh}{where_zh}教{whom.zh}{what.zh}")._replace(links=links)


def telephone(dice: Dice) -> Sentence:
    """She called me yesterday. / 她昨天给我打了电话。"""
    who = somebody(dice)
    whom = somebody_else(dice, who)
    if dice.chance(0.4):
        en, zh = f"will call {whom.obj}", f"会给{whom.zh}打电话"
        return state(*dated(dice, who, en, zh, future_time(dice)))
    en, zh = f"called {whom.obj}", f"给{whom.zh}打了电话"
    return state(*dated(dice, who, en, zh, past_time(dice)))


def theft(dice: Dice) -> Sentence:
    """My bike was stolen yesterday. / 我的自行车昨天被偷走了。"""
    noun = dice.pick(lexicon().nouns[dice.pick(("vehicle", "device", "thing", "item"))])
    what, (time, time_zh) = definite(dice, noun), past_time(dice)
    verb, zh = dice.pick((("steal", "偷"), ("borrow", "借")))
    en = f"{what.en} {was(what)} {english.participle(verb)} {time}"
    return state(en, f"{what.zh}{time_zh}被{zh}走了")._replace(links=(link(verb, noun.en),))


def passive(dice: Dice) -> Sentence:
    """The cup was broken by the cat. / 杯子被猫打破了。"""
    verb = dice.pick([verb for verb in lexicon().disposals if verb.base in _PASSIVES])
    what, by = a_certain(dice, verb), other(dice)
    by_en, by_zh = by.en, by.zh
    if verb.base in ("break", "eat up") and dice.chance(0.3):
        pet = dice.pick(lexicon().nouns["animal"][:2])
        by_en, by_zh = f"the {pet.en}", pet.zh
    en = f"{what.en} {was(what)} {english.participle(verb.base)} by {by_en}"
    zh = f"{what.zh}被{by_zh}{verb.zh.replace('|', '')}了"
    return state(en, zh)._replace(links=(link(verb.base, what.word.en),))


_PASSIVES = ("break", "throw away", "eat up", "clean", "wash")


def request(dice: Dice) -> Sentence:
    """Please read this article. / 请看这篇文章。 Don't play football here. / 别在这里踢足球。"""
    roll = dice.number(1, 4)
    if roll == 1:
        what = activity(dice, 0.0)
        return state(f"{negated(dice, 'do')} {what.en()} here", f"别在这里{what.zh}", what)
    verb = dice.pick(lexicon().verbs["activity"])
    what = transitive(dice, verb, "definite definite counted", at=0.0)
    if roll == 2:
        what = transitive(dice, verb, "definite bare", at=0.3)
        return state(f"{negated(dice, 'do')} {what.en()}", f"别{what.zh}", what)
    return state(f"please {what.en()}", f"请{what.zh}", what)


def proposal(dice: Dice) -> Sentence:
    """Let's play football in the park tomorrow. / 我们明天在公园踢足球吧。"""
    what = travel(dice, by=0.2) if dice.chance(0.3) else action(dice, "bare", at=0.4)
    time, zh = future_time(dice, what) if dice.chance(0.5) else NO_PHRASE
    if not time and not what.tail:
        return proposal(dice)
    return state(f"let's {what.en()} {time}".rstrip(), f"我们{zh}{what.zh}吧", what)


ALL = (
    ba_past,
    ba_not,
    ba_future,
    ba_please,
    ba_wish,
    gift,
    favour,
    lesson,
    telephone,
    theft,
    passive,
    request,
    proposal,
)
"""The constructions of this file."""
