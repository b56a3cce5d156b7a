"""Statements that hold now: habits, likes, wishes, duties, skills, manner."""

from __future__ import annotations

from collections.abc import Sequence

from tools.dice import Dice
from tools.grammar.doing import action
from tools.grammar.lexicon import Mass, Noun, Title, lexicon
from tools.grammar.phrases import (
    NO_PHRASE,
    Both,
    bare,
    group,
    name,
    relative,
    somebody,
    somebody_else,
)
from tools.grammar.sentence import Sentence, acts, be, do, negated, present, state


def habit(dice: Dice) -> Sentence:
    """She often drinks coffee at home in the morning. / 她早上常常在家喝咖啡。"""
    who, what = somebody(dice), action(dice, "bare", at=0.4)
    often, often_zh = NO_PHRASE
    time, time_zh = dice.pick(lexicon().rows["habit"])
    if dice.chance(0.6):
        often, often_zh = dice.pick(lexicon().rows["frequency"])
        if time.startswith("every") or dice.chance(0.5):
            time, time_zh = NO_PHRASE
    en = " ".join(f"{who.en} {often} {acts(who, what)} {time}".split())
    return state(en, f"{who.zh}{time_zh}{often_zh}{what.zh}", what)


def no_habit(dice: Dice) -> Sentence:
    """My mother doesn't work on weekends. / 我妈妈周末不工作。"""
    who, what = somebody(dice), action(dice, "bare")
    time, time_zh = dice.pick(lexicon().rows["habit"][4:]) if dice.chance(0.5) else NO_PHRASE
    en = f"{who.en} {negated(dice, do(who))} {what.en()} {time}".rstrip()
    return state(en, f"{who.zh}{time_zh}不{what.zh}", what)


def everybody(dice: Dice) -> Sentence:
    """All the students study English at school. / 学生们都在学校学习英语。"""
    who, what = group(dice.pick(lexicon().nouns["profession"])), action(dice, "bare", at=0.4)
    return state(f"all {who.en} {what.en()}", f"{who.zh}都{what.zh}", what)


def progressive(dice: Dice) -> Sentence:
    """The children are playing football in the park. / 孩子们正在公园踢足球。"""
    who = somebody(dice)
    what = action(dice, "bare counted definite", owner=who.owner, at=0.5)
    return state(f"{who.en} {be(who)} {what.en('ing')}", f"{who.zh}{what.doing}", what)


def wish(dice: Dice) -> Sentence:
    """I want to study machine learning. / 我想学习机器学习。"""
    who = somebody(dice)
    what = action(dice, "bare counted definite", owner=who.owner)
    verb, zh = dice.pick(_WISHES)
    if dice.chance(0.25):
        en = f"{who.en} {negated(dice, do(who))} {verb} {what.en()}"
        return state(en, f"{who.zh}不{zh}{what.zh}", what)
    return state(f"{who.en} {present(who, verb)} {what.en()}", f"{who.zh}{zh}{what.zh}", what)


_WISHES: tuple[Both, ...] = (
    ("want to", "想"),
    ("want to", "想"),
    ("plan to", "打算"),
    ("need to", "需要"),
)


def duty(dice: Dice) -> Sentence:
    """You shouldn't watch TV every day. / 你不应该每天看电视。"""
    who, what = somebody(dice), action(dice, "bare definite", at=0.2)
    time, time_zh = dice.pick(lexicon().rows["habit"][:3]) if dice.chance(0.3) else NO_PHRASE
    verb, zh = dice.pick((("should", "应该"), ("must", "必须")))
    if verb == "should" and dice.chance(0.4):
        verb, zh = negated(dice, "should"), "不应该"
    en = f"{who.en} {verb} {what.en()} {time}".rstrip()
    return state(en, f"{who.zh}{zh}{time_zh}{what.zh}", what)


def liking_to(dice: Dice) -> Sentence:
    """I like swimming in the lake. / 我喜欢在湖里游泳。"""
    who, what = somebody(dice), action(dice, "bare", at=0.2)
    verb, zh = dice.pick(lexicon().rows["like"])
    if dice.chance(0.15):
        en = f"{who.en} also {present(who, verb)} {what.en('ing')}"
        return state(en, f"{who.zh}也{zh}{what.zh}", what)
    if verb == "like" and dice.chance(0.3):
        en = f"{who.en} {negated(dice, do(who))} like {what.en('ing')}"
        return state(en, f"{who.zh}不喜欢{what.zh}", what)
    return state(f"{who.en} {present(who, verb)} {what.en('ing')}", f"{who.zh}{zh}{what.zh}", what)


def tastes(dice: Dice) -> tuple[Both, Both]:
    """Two things of one sort that one may like: dogs / 狗 and cats / 猫."""
    words = lexicon()
    tables: tuple[Sequence[Noun | Mass | Title], ...] = (
        words.nouns["animal"],
        words.nouns["fruit"],
        words.masses["drink"],
        words.masses["food"],
        words.titles["subject"],
        words.titles["city"],
    )
    table = dice.pick(tables)
    one, two = bare(dice.pick(table)), bare(dice.pick(table))
    return ((one.en, one.zh), (two.en, two.zh)) if one.en != two.en else tastes(dice)


def liking(dice: Dice) -> Sentence:
    """Mary also likes cats. / 玛丽也喜欢猫。"""
    who, ((what, what_zh), _) = somebody(dice), tastes(dice)
    verb, zh = dice.pick(lexicon().rows["like"][:2])
    roll = dice.number(1, 4)
    if roll == 1:
        return state(f"{who.en} {negated(dice, do(who))} like {what}", f"{who.zh}不喜欢{what_zh}")
    if roll == 2:
        return state(f"{who.en} also {present(who, verb)} {what}", f"{who.zh}也{zh}{what_zh}")
    return state(f"{who.en} {present(who, verb)} {what}", f"{who.zh}{zh}{what_zh}")


def regard(dice: Dice) -> Sentence:
    """She misses her grandmother very much. / 她很想念她奶奶。"""
    who, (verb, zh) = somebody(dice), dice.pick(lexicon().rows["regard"])
    whom = somebody_else(dice, who)
    if dice.chance(0.3):
        en = f"{who.en} {negated(dice, do(who))} {verb} {whom.obj}"
        return state(en, f"{who.zh}不{zh}{whom.zh}")
    if verb in ("love", "like", "miss", "admire") and dice.chance(0.4):
        return state(
            f"{who.en} {present(who, verb)} {whom.obj} very much", f"{who.zh}很{zh}{whom.zh}"
        )
    return state(f"{who.en} {present(who, verb)} {whom.obj}", f"{who.zh}{zh}{whom.zh}")


def together(dice: Dice) -> Sentence:
    """Tom and Mary both like swimming. / 汤姆和玛丽都喜欢游泳。"""
    one, two = dice.pick((name, relative))(dice), dice.pick((name, relative))(dice)
    who, zh = f"{one.en} and {two.en}", f"{one.zh}和{two.zh}"
    if one.en == two.en or dice.chance(0.3):
        who, zh = f"{one.en} and I", f"{one.zh}和我"
    what = action(dice, "bare", at=0.2)
    if dice.chance(0.5):
        return state(f"{who} both like {what.en('ing')}", f"{zh}都喜欢{what.zh}", what)
    return state(f"{who} both want to {what.en()}", f"{zh}都想{what.zh}", what)


def skill(dice: Dice) -> Sentence:
    """She can't speak French. / 她不会说法语。"""
    who, (en, zh) = somebody(dice), ability(dice)
    roll = dice.number(1, 4)
    if roll == 1:
        return state(f"{who.en} {negated(dice, 'can')} {en}", f"{who.zh}不会{zh}")
    if roll == 2:
        return state(f"{who.en} can also {en}", f"{who.zh}也会{zh}")
    return state(f"{who.en} can {en}", f"{who.zh}会{zh}")


def ability(dice: Dice) -> Both:
    """swim / 游泳, speak French / 说法语: what one can know how to do."""
    if dice.chance(0.4):
        language = dice.pick(lexicon().titles["language"])
        return f"speak {language.en}", f"说{language.zh}"
    en, zh = dice.pick(lexicon().rows["skills"])
    return en, zh


def manner(dice: Dice) -> Sentence:
    """He plays football very well. / 他足球踢得很好。"""
    who = somebody(dice)
    en, zh, fits = dice.pick(lexicon().rows["manners"])
    if dice.chance(0.25):
        language = dice.pick(lexicon().titles["language"])
        en, zh, fits = f"speak {language.en}", f"{language.zh}说得", "fast slowly well"
    how, how_zh = dice.pick([row for row in lexicon().rows["adverbs"] if row[0] in fits.split()])
    if how != "well" and dice.chance(0.3):
        return state(f"{who.en} {present(who, en)} too {how}", f"{who.zh}{zh}太{how_zh}了")
    return state(f"{who.en} {present(who, en)} very {how}", f"{who.zh}{zh}很{how_zh}")


def residence(dice: Dice) -> Sentence:
    """My uncle still lives in Paris. / 我叔叔还住在巴黎。"""
    who, town = somebody(dice), dice.pick(lexicon().titles[dice.pick(("city", "country"))])
    if dice.chance(0.3):
        return state(f"{who.en} {present(who, 'come')} from {town.en}", f"{who.zh}来自{town.zh}")
    still, zh = dice.pick((NO_PHRASE, ("still ", "还"), ("now ", "现在")))
    return state(
        f"{who.en} {still}{present(who, 'live')} in {town.en}", f"{who.zh}{zh}住在{town.zh}"
    )


def commute(dice: Dice) -> Sentence:
    """Anna goes to work by bus every day. / 安娜每天坐公交车上班。"""
    who, (by, by_zh) = somebody(dice), dice.pick(lexicon().rows["means"])
    to, to_zh = dice.pick((("work", "上班"), ("school", "上学")))
    if dice.chance(0.4):
        often, zh = dice.pick(lexicon().rows["frequency"][:2])
        return state(
            f"{who.en} {often} {present(who, 'go')} to {to} {by}", f"{who.zh}{zh}{by_zh}{to_zh}"
        )
    time, zh = dice.pick(lexicon().rows["habit"][:2])
    return state(
        f"{who.en} {present(who, 'go')} to {to} {by} {time}", f"{who.zh}{zh}{by_zh}{to_zh}"
    )


ALL = (
    habit,
    no_habit,
    everybody,
    progressive,
    wish,
    duty,
    liking_to,
    liking,
    regard,
    together,
    skill,
    manner,
    residence,
    commute,
)
"""The constructions of this file."""
