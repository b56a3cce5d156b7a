"""Stories answer their own questions, and validation asks what no training story says."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.dice import Dice
from tools.stories import Story, make_story, stories_corpus

_DEED = re.compile(r"(\w+) (\w+) (\w+) (\w+ \w+)\.")
_MOVE = re.compile(r"(\w+) went to the ([\w ]+)\.")
_PAST = {"buy": "bought", "sell": "sold", "find": "found", "lose": "lost", "draw": "drew"}


def answers(text: str) -> list[str]:
    """Read a story and its question as a person would, and return all answers it allows."""
    *sentences, question = re.findall(r"[^.?]+[.?]", text)
    moves = [found.groups() for s in sentences if (found := _MOVE.search(s))]
    deeds = [found.groups() for s in sentences if (found := _DEED.fullmatch(s.strip()))]
    match question.strip(" ?").split():
        case ["Where", "is", who]:
            return [[place for name, place in moves if name == who][-1]]
        case ["Who", verb, "the", *what]:
            return [d[0] for d in deeds if (d[1], d[3]) == (verb, " ".join(what))]
        case ["What", "did", who, verb]:
            return [d[3] for d in deeds if d[:2] == (who, _PAST[verb])]
        case ["How", "many", *what, "did", who, verb]:
            asked = (who, _PAST[verb], " ".join(what))
            return [d[2] for d in deeds if (d[0], d[1], d[3]) == asked]
    raise AssertionError(question)


@given(seed=st.integers(0, 1 << 32), size=st.integers(1, 24))
def test_a_story_has_one_answer(seed: int, size: int) -> None:
    """Reading the text gives the answer and no other, and it stands in the sentence asked about."""
    story = make_story(Dice(seed), size)
    assert answers(story.text) == [story.answer]
    assert len(story.facts) == size
    assert f" {story.answer} " in f" {story.facts[story.asked]} ".replace(".", " ")


def test_no_deed_is_done_twice() -> None:
    """In long stories too, nobody has two deeds and no two people did the same to the same."""
    dice = Dice(5)
    for _ in range(300):
        deeds = [fact for fact in make_story(dice, 24).facts if fact.verb != "went"]
        assert len({fact.who for fact in deeds}) == len(deeds)
        assert len({(fact.verb, fact.what) for fact in deeds}) == len(deeds)


def test_validation_asks_about_pairs_that_training_lacks() -> None:
    """A person and a place or noun that are asked about never share a training sentence."""
    train, valid = stories_corpus(3000, 200, seed=1)
    assert (len(train), len(valid)) == (3000, 200)
    seen = {(fact.who, fact.what.split()[-1]) for story in train for fact in story.facts}
    asked = {asked_pair(story) for story in valid}
    assert len(asked) > 20
    assert asked.isdisjoint(seen)
    words = {word for story in train for word in story.text.split()}
    assert {word for story in valid for word in story.text.split()} <= words


def asked_pair(story: Story) -> tuple[str, str]:
    """Who, and the last word of the place or things, of the fact that is asked about."""
    fact = story.facts[story.asked]
    return fact.who, fact.what.split()[-1]


@pytest.mark.parametrize("kind", ["Where", "Who", "What", "How many"])
def test_every_kind_of_question_is_frequent(kind: str) -> None:
    """Each is between a sixth and a third of all questions."""
    train, _ = stories_corpus(2000, 0, seed=3)
    share = sum(story.question.startswith(kind) for story in train) / len(train)
    assert 1 / 6 < share < 1 / 3


def test_a_seed_decides_the_stories() -> None:
    """The same again, and longer ones when asked for; all of them distinct."""
    train, valid = stories_corpus(200, 20, seed=1)
    assert stories_corpus(200, 20, seed=1) == (train, valid)
    assert stories_corpus(200, 20, seed=2)[0] != train
    assert len({story.text for story in (*train, *valid)}) == 220
    assert stories_corpus(300, 9, seed=1) == (stories_corpus(300, 0, seed=1)[0], valid[:9])


def test_stories_for_training_are_shorter_or_as_long() -> None:
    """Of two sentences up to what is asked for; those for validation have exactly that many."""
    train, valid = stories_corpus(200, 20, seed=1, num_sentences=8)
    assert {len(story.facts) for story in train} == {2, 3, 4, 5, 6, 7, 8}
    assert {len(story.facts) for story in valid} == {8}
