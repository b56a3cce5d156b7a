"""Questions answered by yes or no (吗), or by one of two (还是)."""

from __future__ import annotations

from dragoman.data.grammar import english
from dragoman.data.grammar.descriptions import goods, name_of
from dragoman.data.grammar.lexicon import lexicon
from dragoman.data.grammar.phrases import (
    Dice,
    action,
    definite,
    future_action,
    future_time,
    past_action,
    past_time,
    somebody,
)
from dragoman.data.grammar.sentence import (
    Sentence,
    ask,
    be,
    do,
)
from dragoman.data.grammar.statements import taste


def habit_question(dice: Dice) -> Sentence:
    """Does he often read books at home? / 他常常在家看书吗？"""
    who, what = somebody(dice), action(dice, "bare", at=0.4)
    often, often_zh = dice.pick((("", ""), ("often ", "常常"), ("usually ", "通常")))
    return ask(f"{do(who)} {who.en} {often}{what.en()}", f"{who.zh}{often_zh}{what.zh}吗", what)


def past_question(dice: Dice) -> Sentence:
    """Did she buy that book yesterday? / 她昨天买了那本书吗？"""
    who, (time, time_zh) = somebody(dice), past_time(dice)
    what = past_action(dice, who)
    return ask(f"did {who.en} {what.en()} {time}", f"{who.zh}{time_zh}{what.done}吗", what)


def future_question(dice: Dice) -> Sentence:
    """Will you go to Beijing tomorrow? / 你明天会去北京吗？"""
    who, (time, time_zh) = somebody(dice), future_time(dice)
    what = future_action(dice, who)
    if dice.chance(0.5):
        return ask(
            f"{be(who)} {who.en} going to {what.en()} {time}",
            f"{who.zh}{time_zh}要{what.zh}吗",
            what,
        )
    return ask(f"will {who.en} {what.en()} {time}", f"{who.zh}{time_zh}会{what.zh}吗", what)


def taste_question(dice: Dice) -> Sentence:
    """Do you like coffee? / 你喜欢咖啡吗？ Do you like swimming? / 你喜欢游泳吗？"""
    who = somebody(dice)
    if dice.chance(0.5):
        what, zh = taste(dice)
        return ask(f"{do(who)} {who.en} like {what}", f"{who.zh}喜欢{zh}吗")
    doing = action(dice, "bare")
    return ask(f"{do(who)} {who.en} like {doing.en('ing')}", f"{who.zh}喜欢{doing.zh}吗", doing)


def skill_question(dice: Dice) -> Sentence:
    """Can you speak Japanese? / 你会说日语吗？"""
    who = somebody(dice)
    en, zh = dice.pick(lexicon().rows["skills"])
    if dice.chance(0.4):
        language = dice.pick(lexicon().titles["language"])
        en, zh = f"speak {language.en}", f"说{language.zh}"
    return ask(f"can {who.en} {en}", f"{who.zh}会{zh}吗")


def state_question(dice: Dice) -> Sentence:
    """Is your mother busy? / 你妈妈忙吗？ Is this book difficult? / 这本书难吗？"""
    roll = dice.number(1, 3)
    if roll == 1:
        noun = dice.pick((goods(dice), dice.pick(lexicon().nouns["building"])))
        how = dice.pick(lexicon().suits[noun.kind])
        what = definite(dice, noun._replace(kind=""))
        return ask(f"{be(what)} {what.en} {how.en}", f"{what.zh}{how.zh}吗")
    who = somebody(dice)
    if roll == 2:
        job = dice.pick(lexicon().nouns["profession"])
        if who.zh.startswith(job.zh):
            return state_question(dice)
        en = job.plural if who.number == "many" else english.article(job.en)
        return ask(f"{be(who)} {who.en} {en}", f"{who.zh}是{job.zh}吗")
    how = dice.pick(lexicon().adjectives[dice.pick(("trait", "state"))])
    return ask(f"{be(who)} {who.en} {how.en}", f"{who.zh}{how.zh}吗")


def possession_question(dice: Dice) -> Sentence:
    """Do you have a dictionary? / 你有词典吗？"""
    who, noun = somebody(dice), dice.pick((goods(dice), dice.pick(lexicon().nouns["animal"][:3])))
    return ask(f"{do(who)} {who.en} have {english.article(noun.en)}", f"{who.zh}有{noun.zh}吗")


def ever_question(dice: Dice) -> Sentence:
    """Have you ever been to Japan? / 你去过日本吗？"""
    who, town = somebody(dice), dice.pick(lexicon().titles[dice.pick(("city", "country"))])
    has = "has" if who.singular else "have"
    return ask(f"{has} {who.en} ever been to {town.en}", f"{who.zh}去过{town.zh}吗")


def whose(dice: Dice) -> Sentence:
    """Whose umbrella is this? / 这是谁的雨伞？"""
    noun, (this, zh) = goods(dice), dice.pick((("this", "这"), ("that", "那")))
    if dice.chance(0.5):
        who = somebody(dice)
        return ask(f"is {this} {name_of(who)} {noun.en}", f"{zh}是{who.zh}的{noun.zh}吗")
    return ask(f"whose {noun.en} is {this}", f"{zh}是谁的{noun.zh}")


def choice(dice: Dice) -> Sentence:
    """Do you want to drink tea or coffee? / 你想喝茶还是咖啡？"""
    who = somebody(dice)
    table, verb, zh = dice.pick(_CHOICES)
    words = [*lexicon().masses.get(table, ()), *lexicon().titles.get(table, ())]
    one, two = dice.pick(words), dice.pick(words)
    if one == two:
        return choice(dice)
    return ask(
        f"{do(who)} {who.en} want to {verb} {one.en} or {two.en}",
        f"{who.zh}想{zh}{one.zh}还是{two.zh}",
    )


_CHOICES = (
    ("drink", "drink", "喝"),
    ("food", "eat", "吃"),
    ("subject", "study", "学习"),
    ("city", "go to", "去"),
    ("language", "study", "学习"),
)


ALL = (
    habit_question,
    past_question,
    future_question,
    taste_question,
    skill_question,
    state_question,
    possession_question,
    ever_question,
    whose,
    choice,
)
