"""Conversations about the made town: files, the truth of the answers, what training never sees."""

import re
from collections.abc import Iterator
from pathlib import Path

from tools.shipping import SEED
from tools.town import SIZES, TOWN, file_text, town_corpus, withheld

from dragoman.data.made import write_town

HOURS = {f"{hour % 12 or 12} {'ap'[hour > 11]}m": hour for hour in range(24)}


def test_the_package_ships_what_is_written_here(tmp_path: Path) -> None:
    """Both files of the recipe `town`, byte for byte; another seed makes another corpus."""
    parts = file_text(*SIZES, seed=SEED).split("\n\n\n")
    written = [path.read_text("utf-8") for path in write_town(tmp_path).values()]
    assert written == [f"{part}\n" for part in parts]
    assert [text.count("\n\n") + 1 for text in written] == list(SIZES)
    assert town_corpus(40, 7, seed=2)[0] != town_corpus(40, 7, seed=1)[0]


def test_as_many_are_written_as_were_asked_for(tmp_path: Path) -> None:
    """The first ones, with a blank line between."""
    train, valid = (path.read_text("utf-8") for path in write_town(tmp_path, 40, 7).values())
    assert [text.count("\n\n") for text in (train, valid)] == [39, 6]
    assert ["\n\n".join(part) + "\n" for part in town_corpus(40, 7, seed=SEED)] == [train, valid]


def answered(turns: list[str]) -> Iterator[tuple[str, str]]:
    """What each answer after the first of a conversation brings together, and the answer.

    Read from the words alone, by another way than they were written.
    """
    place, asked, people = "", "", "0"
    for question, answer in zip(turns[::2], turns[1::2], strict=True):
        if found := re.match(r"There are (\d) of us", question):
            people = found[1]
            continue
        [name] = [p.name for p in TOWN if re.search(rf"\b(the|The) {p.name}\b", answer)][-1:]
        if tickets := re.match(r"(\d) tickets", answer):
            assert tickets[1] in question or (tickets[1] == people and "all" in question)
            yield f"{place} {tickets[1]} tickets", answer
            topic = "price"
        elif ", so " in answer:
            [hour] = re.findall(r"\d+ [ap]m", question)
            yield f"{place} at {HOURS[hour]}", answer
            topic = "opens"
        else:
            words = {"opens": "opens at", "closes": "closes at", "price": "costs", "street": " in "}
            [topic] = [kind for kind, word in words.items() if word in answer]
            if not place:
                pass
            elif re.match(r"And the|What about", question):
                assert topic == asked
                yield f"{asked} {place} {name}", answer
            else:
                assert name == place
                yield f"{place} {asked} {topic}", answer
        place, asked = name, topic


def test_validation_has_combinations_that_training_lacks() -> None:
    """Each validation conversation ends with one, and nothing before is withheld."""
    train, valid = town_corpus(3000, 200, seed=1)
    assert (len(train), len(valid)) == (3000, 200)
    assert len({*train, *valid}) == 3200
    seen = {combination for text in train for combination, _ in answered(text.split("\n"))}
    assert not any(map(withheld, seen))
    for text in valid:
        *before, (last, _) = answered(text.split("\n"))
        assert withheld(last)
        assert not any(withheld(combination) for combination, _ in before)
    assert 0.07 < sum(withheld(f"{n}") for n in range(10_000)) / 10_000 < 0.13


def test_every_answer_is_true() -> None:
    """Prices are multiplied and hours compared; names are unique words."""
    facts = {place.name: place for place in TOWN}
    assert len(facts) == len(TOWN)
    for text in town_corpus(2000, 100, seed=3)[0]:
        for _, answer in answered(text.split("\n")):
            place = facts[[n for n in facts if re.search(rf"[Tt]he {n}\b", answer)][-1]]
            if found := re.match(r"(\d) tickets .* at (\d+) pounds are (\d+) pounds", answer):
                number, price, total = map(int, found.groups())
                assert (price, total) == (place.price, number * price)
            elif ", so " in answer:
                opens, closes = (HOURS[h] for h in re.findall(r"\d+ [ap]m", answer)[:2])
                assert (opens, closes) == (place.opens, place.closes)
            else:
                figures = re.findall(r"\d+ [ap]m|\d+", answer)
                wanted = {str(place.price)} if "costs" in answer else {place.opens, place.closes}
                assert all(HOURS.get(f, f) in wanted for f in figures)


def test_open_means_from_the_first_hour_and_before_the_last() -> None:
    """At nine it opens and is open; at five it closes and is not."""
    said = 0
    for text in town_corpus(2000, 1, seed=4)[0]:
        turns = text.split("\n")
        for question, answer in zip(turns[::2], turns[1::2], strict=True):
            if ", so " in answer:
                [hour] = re.findall(r"\d+ [ap]m", question)
                opens, closes, again = re.findall(r"\d+ [ap]m", answer)
                place = HOURS[hour] < HOURS[opens], HOURS[hour] < HOURS[closes]
                when = {(True, True): "earlier", (False, True): "between"}.get(place, "later")
                so = "yes" if when == "between" else "no"
                assert again == hour
                assert answer.endswith(f"{hour} is {when}, so {so}.")
                said += 1
    assert said > 500


def test_the_parts_of_what_is_withheld_are_taught() -> None:
    """The same number at the same price, the same hour beside the same limits: of other places."""
    tickets = {(p, n): (p.price, n) for p in TOWN for n in range(2, 10)}
    hours = {(p, h): (p.opens, p.closes, h) for p in TOWN for h in range(6, 24)}
    products = {parts for (p, n), parts in tickets.items() if not withheld(f"{p.name} {n} tickets")}
    assert set(tickets.values()) == products
    compared = {
        (limit, h) for (p, h) in hours if not withheld(f"{p.name} at {h}") for limit in p[1:3]
    }
    assert {(limit, h) for opens, closes, h in hours.values() for limit in (opens, closes)} == (
        compared
    )
