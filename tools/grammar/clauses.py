"""Two clauses in one sentence: 的-clauses before their noun, reasons, conditions, thoughts."""

from __future__ import annotations

from typing import NamedTuple

from tools.dice import Dice
from tools.grammar import english
from tools.grammar.descriptions import opinion
from tools.grammar.doing import Action, action, activity_of, link, place, transitive, travel
from tools.grammar.lexicon import Noun, lexicon
from tools.grammar.phrases import (
    NO_PHRASE,
    Both,
    asked_about,
    name,
    pronoun,
    quality,
    relative,
    somebody,
    somebody_else,
)
from tools.grammar.sentence import (
    Sentence,
    acts,
    ask,
    be,
    do,
    negated,
    occupied,
    predicative,
    present,
    state,
    was,
)
from tools.grammar.statements import tastes
from tools.grammar.times import future_time, past_time


class Described(NamedTuple):
    """A noun with the clause about it: the book that I bought / 我买的书."""

    en: str
    zh: str
    noun: Noun
    plural: bool
    links: tuple[str, ...]

    @property
    def be(self) -> str:
        """is or are."""
        return "are" if self.plural else "is"


def described(dice: Dice) -> Described:
    """the book that I bought yesterday / 我昨天买的书: Chinese puts the clause before its noun."""
    verbs = [verb for verbs in lexicon().verbs.values() for verb in verbs]
    verb = dice.pick([verb for verb in verbs if verb.base in _LEAVES_A_THING])
    noun = dice.pick([word for word in verb.objects if isinstance(word, Noun)])
    who, links = somebody(dice), (link(verb.base, noun.en),)
    plural = dice.chance(0.3)
    time, time_zh = past_time(dice)
    where, where_zh = place(dice, verb.place, 0.25)
    if verb.base != "read" and (where or dice.chance(0.3)):
        time, time_zh = NO_PHRASE
    head = noun.plural if plural else noun.en
    en = f"the {head} that {who.en} {english.past(verb.base)}{where} {time}".rstrip()
    zh = f"{who.zh}{time_zh}{where_zh}{verb.zh}的{noun.zh}"
    return Described(en, zh, noun, plural, links)


_LEAVES_A_THING = (
    "read",
    "write",
    "watch",
    "make",
    "buy",
    "sell",
    "find",
    "borrow",
    "receive",
    "choose",
)


def described_thing(dice: Dice) -> Sentence:
    """The book that I bought yesterday is very interesting. / 我昨天买的书很有意思。"""
    what = described(dice)
    how, how_zh = predicative(dice, quality(dice, what.noun))
    said = state(f"{what.en} {what.be} {how}", f"{what.zh}{how_zh}")
    return said._replace(links=what.links)


def described_object(dice: Dice) -> Sentence:
    """I like the coat that she bought last week. / 我喜欢她上周买的大衣。"""
    what, who, roll = described(dice), somebody(dice), dice.number(1, 4)
    if roll == 1:
        who = asked_about(dice)
        said = ask(f"{do(who)} {who.en} like {what.en}", f"{who.zh}喜欢{what.zh}吗")
    elif roll == 2:
        this, this_zh = ("these", "这些") if what.plural else ("this", "这")
        said = state(f"{this} {what.be} {what.en}", f"{this_zh}是{what.zh}")
    else:
        said = state(f"{who.en} {present(who, 'like')} {what.en}", f"{who.zh}喜欢{what.zh}")
    return said._replace(links=what.links)


def described_person(dice: Dice) -> Sentence:
    """The man who is reading a book is my uncle. / 正在看一本书的男人是我叔叔。"""
    noun = dice.pick((*lexicon().nouns["person"], *lexicon().nouns["profession"]))
    what, who = action(dice, "bare counted", at=0.4), dice.pick((relative, name))(dice)
    if noun.en == ("woman" if who.owner == ("his", "他的") else "man"):
        return described_person(dice)
    en = f"the {noun.en} who is {what.en('ing')} is {who.en}"
    return state(en, f"{what.doing}的{noun.zh}是{who.zh}", what)


def described_people(dice: Dice) -> Sentence:
    """The students who often read books are very clever. / 常常看书的学生很聪明。"""
    noun = dice.pick((*lexicon().nouns["person"], *lexicon().nouns["profession"]))
    how, how_zh = predicative(dice, dice.pick(lexicon().adjectives["trait"]))
    what = action(dice, "bare", at=0.2)
    often, zh = dice.pick(lexicon().rows["frequency"][:3])
    en = f"the {noun.plural} who {often} {what.en()} are {how}"
    return state(en, f"{zh}{what.zh}的{noun.zh}{how_zh}", what)


def described_place(dice: Dice) -> Sentence:
    """The bank where he works is very big. / 他工作的银行很大。"""
    noun, who = dice.pick(lexicon().nouns["building"][:-1]), somebody(dice)
    how, how_zh = predicative(dice, quality(dice, noun))
    where, zh = f"the {noun.en} where {who.en} {present(who, 'work')}", f"{who.zh}工作的{noun.zh}"
    if dice.chance(0.4):
        return state(f"this is {where}", f"这是{zh}")
    return state(f"{where} is {how}", f"{zh}{how_zh}")


def because(dice: Dice) -> Sentence:
    """I didn't go to school because I was very tired. / 因为我很累，所以我没去学校。"""
    who, (why, why_zh) = pronoun(dice), dice.pick(_WEATHERS)
    if dice.chance(0.7):
        feeling = dice.pick(lexicon().adjectives["state"][:6])
        very, zh = dice.pick((("very {}", "很{}"), ("too {}", "太{}了")))
        why, why_zh = (
            f"{who.en} {was(who)} {very.format(feeling.en)}",
            who.zh + zh.format(feeling.zh),
        )
    what = travel(dice, by=0.0) if dice.chance(0.4) else action(dice, "bare", at=0.2)
    en, zh = f"{who.en} {negated(dice, 'did')} {what.en()}", f"没{what.zh}"
    if dice.chance(0.3):
        return state(f"{why}, so {en}", f"{why_zh}，所以{who.zh}{zh}", what)
    time, time_zh = past_time(dice) if dice.chance(0.8) else NO_PHRASE
    return state(
        " ".join(f"{en} {time} because {why}".split()),
        f"因为{why_zh}，所以{who.zh}{time_zh}{zh}",
        what,
    )


_WEATHERS: tuple[Both, ...] = (
    ("it was raining", "下雨了"),
    ("it was snowing", "下雪了"),
    ("it was too cold", "天气太冷了"),
    ("it was too hot", "天气太热了"),
)


def although(dice: Dice) -> Sentence:
    """Although he is very busy, he often plays football. / 虽然他很忙，但是他常常踢足球。"""
    who, what = pronoun(dice), action(dice, "bare", at=0.2)
    hindrances = (*lexicon().adjectives["state"], *lexicon().adjectives["trait"])
    how = dice.pick([how for how in hindrances if how.en in _HINDRANCES])
    often, zh = dice.pick(lexicon().rows["frequency"][:4])
    en = f"although {who.en} {be(who)} very {how.en}, {who.en} {often} {acts(who, what)}"
    return state(en, f"虽然{who.zh}很{how.zh}，但是{who.zh}{zh}{what.zh}", what)


_HINDRANCES = ("tired", "busy", "sleepy", "sad", "young", "shy", "lazy")


def condition(dice: Dice) -> Sentence:
    """If it rains tomorrow, we won't go to the park. / 如果明天下雨，我们就不会去公园。"""
    who, (time, time_zh) = somebody(dice), future_time(dice)
    falls, falls_zh = dice.pick(lexicon().rows["weather"])
    if dice.chance(0.5):
        what, will, will_zh = activity_of(dice, "home reading", at=0.0), "will", "会"
    else:
        out = activity_of(dice, "sport swimming", at=0.0)
        what = travel(dice, by=0.0) if dice.chance(0.6) else out
        will, will_zh = negated(dice, "will"), "不会"
    main, sub = f"{who.en} {will} {what.en()}", f"if it {english.third(falls)} {time}"
    en = f"{main} {sub}" if dice.chance(0.3) else f"{sub}, {main}"
    return state(en, f"如果{time_zh}{falls_zh}，{who.zh}就{will_zh}{what.zh}", what)


def meanwhile(dice: Dice) -> Sentence:
    """My mother was writing a letter when I got home. / 我到家的时候，我妈妈正在写一封信。"""
    who, (came, came_zh) = pronoun(dice), dice.pick(_MOMENTS)
    whom, what = somebody_else(dice, who), action(dice, "bare counted", at=0.2)
    main, sub = f"{whom.en} {was(whom)} {what.en('ing')}", f"when {who.en} {english.past(came)}"
    en = f"{main} {sub}" if dice.chance(0.5) else f"{sub}, {main}"
    return state(en, f"{who.zh}{came_zh}的时候，{whom.zh}{what.doing}", what)


_MOMENTS: tuple[Both, ...] = (
    ("get home", "到家"),
    ("wake up", "醒来"),
    ("leave", "离开"),
    ("arrive at school", "到学校"),
    ("arrive at the office", "到办公室"),
    ("go out", "出门"),
)


def sequence(dice: Dice) -> Sentence:
    """He often listens to music before he goes to bed. / 他睡觉以前常常听音乐。"""
    who, (daily, daily_zh, _, orders) = pronoun(dice), dice.pick(lexicon().rows["daily"])
    if not orders:
        return sequence(dice)
    order, (often, zh) = dice.pick(orders.split()), dice.pick(lexicon().rows["frequency"][:4])
    what = activity_of(dice, "home reading sport swimming party", at=0.2)
    if dice.chance(0.5):
        verbs = [verb for verb in lexicon().verbs["activity"] if verb.base in _LEISURE]
        what = transitive(dice, dice.pick(verbs), "bare", at=0.0)
    en = f"{who.en} {often} {acts(who, what)} {order} {who.en} {present(who, daily)}"
    order_zh = "以前" if order == "before" else "以后"
    return state(en, f"{who.zh}{daily_zh}{order_zh}{zh}{what.zh}", what)


_LEISURE = ("read", "write", "watch", "drink", "study", "draw", "listen to")


def contrast(dice: Dice) -> Sentence:
    """I like tea, but my wife likes coffee. / 我喜欢茶，但是我妻子喜欢咖啡。"""
    one, ((this, this_zh), (that, that_zh)) = somebody(dice), tastes(dice)
    two = somebody_else(dice, one)
    left, left_zh = f"{one.en} {present(one, 'like')} {this}", f"{one.zh}喜欢{this_zh}"
    if one.en != one.obj and dice.chance(0.4):
        en = f"{left}, but {one.en} {negated(dice, do(one))} like {that}"
        return state(en, f"{left_zh}，但是{one.zh}不喜欢{that_zh}")
    right, right_zh = f"{two.en} {present(two, 'like')} {that}", f"{two.zh}喜欢{that_zh}"
    if dice.chance(0.4):
        return state(f"{left}, and {right}", f"{left_zh}，{right_zh}")
    return state(f"{left}, but {right}", f"{left_zh}，但是{right_zh}")


def thought(dice: Dice) -> Sentence:
    """I think this book is very interesting. / 我觉得这本书很有意思。"""
    who, (what, what_zh) = somebody(dice), opinion(dice)
    verb, zh = dice.pick((("think", "觉得"), ("think", "觉得"), ("say", "说"), ("believe", "相信")))
    that = " that" if dice.chance(0.4) and not what.startswith("th") else ""
    return state(f"{who.en} {present(who, verb)}{that} {what}", f"{who.zh}{zh}{what_zh}")


def knowledge(dice: Dice) -> Sentence:
    """Do you know where he lives? / 你知道他住在哪里吗？"""
    who, whats = dice.pick((pronoun, pronoun, name))(dice), list[Action]()
    whom, roll = somebody_else(dice, who), dice.number(1, 3)
    en, zh = f"where {whom.en} {present(whom, 'live')}", f"{whom.zh}住在哪里"
    if roll == 2:
        whats = [travel(dice, by=0.0)]
        en, zh = f"when {whom.en} will {whats[0].en()}", f"{whom.zh}什么时候{whats[0].zh}"
    if roll == 3:
        whats = [action(dice, "bare", at=0.0)]
        en = f"why {whom.en} {present(whom, 'like')} {whats[0].en('ing')}"
        zh = f"{whom.zh}为什么喜欢{whats[0].zh}"
    if dice.chance(0.4) and who.en not in ("I", "we"):
        return ask(f"{do(who)} {who.en} know {en}", f"{who.zh}知道{zh}吗", *whats)
    if dice.chance(0.6):
        return state(f"{who.en} {negated(dice, do(who))} know {en}", f"{who.zh}不知道{zh}", *whats)
    return state(f"{who.en} {present(who, 'know')} {en}", f"{who.zh}知道{zh}", *whats)


def acquaintance_knowledge(dice: Dice) -> Sentence:
    """I know that Mary is a doctor. / 我知道玛丽是医生。"""
    who, job = dice.pick((pronoun, name))(dice), dice.pick(lexicon().nouns["profession"])
    whom = dice.pick((pronoun, name, relative))(dice)
    if who.zh[0] == whom.zh[0]:
        return acquaintance_knowledge(dice)
    en, zh = f"{whom.en} {be(whom)} {occupied(whom, job)}", f"{whom.zh}是{job.zh}"
    if dice.chance(0.3) and who.en not in ("I", "we"):
        return ask(f"{do(who)} {who.en} know that {en}", f"{who.zh}知道{zh}吗")
    return state(f"{who.en} {present(who, 'know')} that {en}", f"{who.zh}知道{zh}")


def causation(dice: Dice) -> Sentence:
    """My mother asked me to buy two tickets. / 我妈妈让我买两张票。"""
    who = somebody(dice)
    whom, roll = somebody_else(dice, who), dice.number(1, 3)
    what = action(dice, "bare counted definite", owner=whom.owner, at=0.2)
    if roll == 1:
        en = f"{who.en} {present(who, 'want')} {whom.obj} to {what.en()}"
        return state(en, f"{who.zh}想让{whom.zh}{what.zh}", what)
    if roll == 2:
        return state(
            f"{who.en} asked {whom.obj} to {what.en()}", f"{who.zh}让{whom.zh}{what.zh}", what
        )
    verbs = [verb for verb in lexicon().verbs["activity"] if verb.base in _HELPED]
    what = transitive(dice, dice.pick(verbs), "bare", at=0.0)
    en = f"{who.en} often {present(who, 'help')} {whom.obj} {what.en()}"
    return state(en, f"{who.zh}常常帮{whom.zh}{what.zh}", what)


_HELPED = ("repair", "make", "write", "study")


ALL = (
    described_thing,
    described_object,
    described_person,
    described_people,
    described_place,
    because,
    although,
    condition,
    meanwhile,
    sequence,
    contrast,
    thought,
    knowledge,
    acquaintance_knowledge,
    causation,
)
"""The constructions of this file."""
