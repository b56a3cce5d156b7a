"""Questions answered by yes or no (吗), or by one of two (还是)."""

from __future__ import annotations

from tools.dice import Dice
from tools.grammar import english
from tools.grammar.descriptions import goods
from tools.grammar.doing import action, future_action, link, past_action
from tools.grammar.lexicon import Mass, Title, lexicon
from tools.grammar.phrases import (
    NO_PHRASE,
    asked_about,
    definite,
    possessive,
    quality,
    somebody,
    unqualified,
)
from tools.grammar.sentence import Sentence, ask, be, do, have, occupied
from tools.grammar.statements import ability, tastes
from tools.grammar.times import future_time, past_time


def habit_question(dice: Dice) -> Sentence:
    """Does he often read books at home? / 他常常在家看书吗？"""
    who, what = asked_about(dice), action(dice, "bare", at=0.4)
    often, zh = dice.pick((NO_PHRASE, ("often ", "常常"), ("usually ", "通常")))
    return ask(f"{do(who)} {who.en} {often}{what.en()}", f"{who.zh}{zh}{what.zh}吗", what)


def past_question(dice: Dice) -> Sentence:
    """Did she buy that book yesterday? / 她昨天买了那本书吗？"""
    who = asked_about(dice)
    what = past_action(dice, who)
    time, time_zh = past_time(dice, what)
    return ask(f"did {who.en} {what.en()} {time}", f"{who.zh}{time_zh}{what.asked}吗", what)


def future_question(dice: Dice) -> Sentence:
    """Will you go to Beijing tomorrow? / 你明天会去北京吗？"""
    who = asked_about(dice)
    what = future_action(dice, who)
    time, time_zh = future_time(dice, what)
    if dice.chance(0.5):
        en = f"{be(who)} {who.en} going to {what.en()} {time}"
        return ask(en, f"{who.zh}{time_zh}要{what.zh}吗", what)
    return ask(f"will {who.en} {what.en()} {time}", f"{who.zh}{time_zh}会{what.zh}吗", what)


def taste_question(dice: Dice) -> Sentence:
    """Do you like coffee? / 你喜欢咖啡吗？ Do you like swimming? / 你喜欢游泳吗？"""
    who = asked_about(dice)
    if dice.chance(0.5):
        (what, zh), _ = tastes(dice)
        return ask(f"{do(who)} {who.en} like {what}", f"{who.zh}喜欢{zh}吗")
    doing = action(dice, "bare")
    return ask(f"{do(who)} {who.en} like {doing.en('ing')}", f"{who.zh}喜欢{doing.zh}吗", doing)


def skill_question(dice: Dice) -> Sentence:
    """Can you speak Japanese? / 你会说日语吗？"""
    who, (en, zh) = asked_about(dice), ability(dice)
    return ask(f"can {who.en} {en}", f"{who.zh}会{zh}吗")


def quality_question(dice: Dice) -> Sentence:
    """Is this book difficult? / 这本书难吗？"""
    noun = dice.pick((goods(dice), dice.pick(lexicon().nouns["building"])))
    how, what = quality(dice, noun), definite(dice, unqualified(noun))
    return ask(f"{be(what)} {what.en} {how.en}", f"{what.zh}{how.zh}吗")


def state_question(dice: Dice) -> Sentence:
    """Is your mother busy? / 你妈妈忙吗？ Is Tom a doctor? / 汤姆是医生吗？"""
    who, job = asked_about(dice), dice.pick(lexicon().nouns["profession"])
    if dice.chance(0.4) and not who.en.startswith("the "):
        return ask(f"{be(who)} {who.en} {occupied(who, job)}", f"{who.zh}是{job.zh}吗")
    how = dice.pick(lexicon().adjectives[dice.pick(("trait", "state"))])
    return ask(f"{be(who)} {who.en} {how.en}", f"{who.zh}{how.zh}吗")


def possession_question(dice: Dice) -> Sentence:
    """Do you have a dictionary? / 你有词典吗？"""
    who, noun = (
        asked_about(dice),
        dice.pick((goods(dice), dice.pick(lexicon().nouns["animal"][:3]))),
    )
    return ask(f"{do(who)} {who.en} have {english.article(noun.en)}", f"{who.zh}有{noun.zh}吗")


def ever_question(dice: Dice) -> Sentence:
    """Have you ever been to Japan? / 你去过日本吗？"""
    who, town = asked_about(dice), dice.pick(lexicon().titles[dice.pick(("city", "country"))])
    return ask(f"{have(who)} {who.en} ever been to {town.en}", f"{who.zh}去过{town.zh}吗")


def owner_question(dice: Dice) -> Sentence:
    """Is that Mary's car? / 那是玛丽的汽车吗？"""
    noun, (whose, whose_zh) = goods(dice), possessive(somebody(dice))
    this, zh = dice.pick((("this", "这"), ("that", "那")))
    return ask(f"is {this} {whose} {noun.en}", f"{zh}是{whose_zh}{noun.zh}吗")


def choice(dice: Dice) -> Sentence:
    """Do you want to drink tea or coffee? / 你想喝茶还是咖啡？"""
    who, (table, verb, zh) = asked_about(dice), dice.pick(_CHOICES)
    words: list[Mass | Title] = [
        *lexicon().masses.get(table, ()),
        *lexicon().titles.get(table, ()),
    ]
    one, two = dice.pick(words), dice.pick(words)
    if one == two:
        return choice(dice)
    en = f"{do(who)} {who.en} want to {verb} {one.en} or {two.en}"
    return ask(en, f"{who.zh}想{zh}{one.zh}还是{two.zh}")._replace(
        links=(link(verb, one.en), link(verb, two.en))
    )


_CHOICES = (
    ("drink", "drink", "喝"),
    ("food", "eat", "吃"),
    ("subject", "study", "学习"),
    ("language", "study", "学习"),
    ("city", "go to", "去"),
)


ALL = (
    habit_question,
    past_question,
    future_question,
    taste_question,
    skill_question,
    quality_question,
    state_question,
    possession_question,
    ever_question,
    owner_question,
    choice,
)
"""The constructions of this file."""
