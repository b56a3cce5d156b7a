"""Questions whose word (什么, 哪里, 谁) stays where the answer would stand."""

from __future__ import annotations

from tools.dice import Dice
from tools.grammar import english
from tools.grammar.descriptions import goods
from tools.grammar.doing import acquisition, action, activity, link, place, travel
from tools.grammar.existence import sibling
from tools.grammar.lexicon import Noun, lexicon
from tools.grammar.phrases import NO_PHRASE, Both, asked_about, definite
from tools.grammar.sentence import Sentence, ask, be, do, have
from tools.grammar.times import future_time, past_time


def what_question(dice: Dice) -> Sentence:
    """What did she eat? / 她吃了什么？"""
    who = asked_about(dice)
    verb = dice.pick([verb for verbs in lexicon().verbs.values() for verb in verbs])
    if verb.base in ("listen to", "watch", "repair"):
        return what_question(dice)
    roll = dice.number(1, 4)
    if roll == 1 and not verb.achievement:
        en = f"what {be(who)} {who.en} {english.ing(verb.base)}"
        return ask(en, f"{who.zh}正在{verb.zh}什么")
    if roll == 2 and verb.base not in ("find", "lose", "receive"):
        return ask(f"what {do(who)} {who.en} want to {verb.base}", f"{who.zh}想{verb.zh}什么")
    at, at_zh = place(dice, verb.place, 0.5)
    time, time_zh = past_time(dice) if dice.chance(0.7) else NO_PHRASE
    en = f"what did {who.en} {verb.base}{at} {time}".rstrip()
    return ask(en, f"{who.zh}{time_zh}{at_zh}{verb.zh}了什么")


def who_question(dice: Dice) -> Sentence:
    """Who bought this car? / 谁买了这辆汽车？"""
    roll = dice.number(1, 3)
    if roll == 1:
        what = action(dice, "bare", at=0.6)
        return ask(f"who is {what.en('ing')}", f"谁{what.doing}", what)
    if roll == 2:
        what = action(dice, "bare", at=0.3)
        return ask(f"who wants to {what.en()}", f"谁想{what.zh}", what)
    what = acquisition(dice, "definite", at=0.2)
    return ask(f"who {what.en('past')}", f"谁{what.done}", what)


def where_question(dice: Dice) -> Sentence:
    """Where do they live? / 他们住在哪里？ Where did you buy it? / 你是在哪里买的？"""
    who, roll = asked_about(dice), dice.number(1, 5)
    if roll == 1:
        return ask(f"where {do(who)} {who.en} live", f"{who.zh}住在哪里")
    if roll == 2:
        what = activity(dice, 0.0)
        usually, zh = dice.pick((NO_PHRASE, ("usually ", "通常")))
        en = f"where {do(who)} {who.en} {usually}{what.en()}"
        return ask(en, f"{who.zh}{zh}在哪里{what.zh}", what)
    if roll == 3:
        noun = dice.pick(lexicon().nouns[dice.pick(("thing", "item", "text", "headwear"))])
        thing = definite(dice, noun)
        return ask(f"where {be(thing)} {thing.en}", f"{thing.zh}在哪里")
    if roll == 4:
        return ask(f"where {be(who)} {who.en}", f"{who.zh}在哪里")
    what = acquisition(dice, "definite", owner=who.owner)
    return ask(f"where did {who.en} {what.en()}", f"{who.zh}是在哪里{what.zh}的", what)


def when_question(dice: Dice) -> Sentence:
    """When did he go to Shanghai? / 他是什么时候去上海的？"""
    who, roll = asked_about(dice), dice.number(1, 4)
    got = acquisition(dice, "definite", owner=who.owner)
    what = got if roll <= 2 else travel(dice, by=0.0)
    if roll == 4:
        return ask(f"when will {who.en} {what.en()}", f"{who.zh}什么时候{what.zh}", what)
    return ask(f"when did {who.en} {what.en()}", f"{who.zh}是什么时候{what.zh}的", what)


def why_question(dice: Dice) -> Sentence:
    """Why didn't you go to school yesterday? / 你昨天为什么没去学校？"""
    who, roll = asked_about(dice), dice.number(1, 3)
    if roll == 1:
        doing = action(dice, "bare")
        en = f"why {do(who)} {who.en} like {doing.en('ing')}"
        return ask(en, f"{who.zh}为什么喜欢{doing.zh}", doing)
    what = travel(dice, by=0.0) if roll == 2 else action(dice, "bare", at=0.0)
    time, time_zh = past_time(dice, what)
    en = f"why didn't {who.en} {what.en()} {time}"
    return ask(en, f"{who.zh}{time_zh}为什么没{what.zh}", what)


def how_question(dice: Dice) -> Sentence:
    """How did she go to Beijing? / 她是怎么去北京的？"""
    who, what, roll = asked_about(dice), travel(dice, by=0.0), dice.number(1, 3)
    if roll == 1:
        usually, zh = dice.pick((NO_PHRASE, ("usually ", "通常")))
        to, to_zh = dice.pick((("work", "上班"), ("school", "上学")))
        return ask(f"how {do(who)} {who.en} {usually}go to {to}", f"{who.zh}{zh}怎么{to_zh}")
    if roll == 2:
        time, zh = future_time(dice, what)
        return ask(f"how will {who.en} {what.en()} {time}", f"{who.zh}{zh}怎么{what.zh}", what)
    return ask(f"how did {who.en} {what.en()}", f"{who.zh}是怎么{what.zh}的", what)


def how_many(dice: Dice) -> Sentence:
    """How many books did you buy? / 你买了多少本书？"""
    who = asked_about(dice)
    verbs = (
        *lexicon().verbs["achievement"],
        *lexicon().verbs["event"],
        *lexicon().verbs["activity"][:4],
    )
    verb = dice.pick([verb for verb in verbs if verb.base in _COUNTABLE])
    noun = dice.pick([word for word in verb.objects if isinstance(word, Noun)])
    time, time_zh = past_time(dice) if dice.chance(0.5) else NO_PHRASE
    en = f"how many {noun.plural} did {who.en} {verb.base} {time}".rstrip()
    zh = f"{who.zh}{time_zh}{verb.zh}了多少{noun.measure}{noun.zh}"
    return ask(en, zh)._replace(links=(link(verb.base, noun.en),))


_COUNTABLE = ("buy", "sell", "borrow", "read", "write", "eat", "watch")


def how_many_relatives(dice: Dice) -> Sentence:
    """How many older brothers does Mary have? / 玛丽有几个哥哥？"""
    who, (kin, zh) = asked_about(dice), sibling(dice)
    return ask(f"how many {english.plural(kin)} {do(who)} {who.en} have", f"{who.zh}有几个{zh}")


def how_much(dice: Dice) -> Sentence:
    """How much is this shirt? / 这件衬衫多少钱？"""
    noun = dice.pick((goods(dice), dice.pick(lexicon().nouns["fruit"])))
    this, zh = dice.pick((("this", "这"), ("that", "那")))
    return ask(f"how much is {this} {noun.en}", f"{zh}{noun.measure}{noun.zh}多少钱")


def how_old(dice: Dice) -> Sentence:
    """How old is your son? / 你儿子多大了？"""
    who = asked_about(dice)
    return ask(f"how old {be(who)} {who.en}", f"{who.zh}多大了")


def how_long(dice: Dice) -> Sentence:
    """How long have you lived in Beijing? / 你在北京住了多长时间了？"""
    who = asked_about(dice)
    if dice.chance(0.4):
        (verb, zh), (time, time_zh) = dice.pick(_LASTING), past_time(dice)
        en = f"how long did {who.en} {verb} {time}"
        return ask(en, f"{who.zh}{time_zh}{zh}了多长时间")
    town = dice.pick(lexicon().titles[dice.pick(("city", "country"))])
    en = f"how long {have(who)} {who.en} lived in {town.en}"
    return ask(en, f"{who.zh}在{town.zh}住了多长时间了")


_LASTING: tuple[Both, ...] = (
    ("work", "工作"),
    ("rest", "休息"),
    ("sleep", "睡"),
    ("wait", "等"),
    ("swim", "游"),
)


def what_time(dice: Dice) -> Sentence:
    """What time do you usually get up? / 你通常几点起床？"""
    who, (en, zh, *_) = asked_about(dice), dice.pick(lexicon().rows["daily"])
    usually, often_zh = dice.pick((NO_PHRASE, ("usually ", "通常")))
    return ask(f"what time {do(who)} {who.en} {usually}{en}", f"{who.zh}{often_zh}几点{zh}")


def whose(dice: Dice) -> Sentence:
    """Whose umbrella is this? / 这是谁的雨伞？"""
    noun, (this, zh) = goods(dice), dice.pick((("this", "这"), ("that", "那")))
    return ask(f"whose {noun.en} is {this}", f"{zh}是谁的{noun.zh}")


ALL = (
    what_question,
    who_question,
    where_question,
    when_question,
    why_question,
    how_question,
    how_many,
    how_many_relatives,
    how_much,
    how_old,
    how_long,
    what_time,
    whose,
)
"""The constructions of this file."""
