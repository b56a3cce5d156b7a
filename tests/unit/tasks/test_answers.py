"""Common laws of all answering classes: order, neighbours, streams and folders."""

import json
import pickle
import random
from collections.abc import Callable, Iterable, Iterator
from copy import copy, deepcopy
from dataclasses import asdict, replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.processors import needs_independent_rows, needs_independent_translations
from tests.unit.tasks.readers import (
    CLASSIFY,
    MASKED,
    TAG,
    make_classifier,
    make_tagger,
    save_reader,
)
from tests.unit.tasks.tiny import make_translator, random_lines, save_translator
from tests.unit.tasks.tiny_generator import make_generator, save_generator

import dragoman
from dragoman.decode import Prefixes
from dragoman.decoding import Decoding, Precision
from dragoman.engine import fastest
from dragoman.errors import InputError
from dragoman.tasks.folders import arithmetic_of

LINES = [*random_lines(9, seed=1, longest=12), "the", "😀", "the cat", *random_lines(2, 2, 40)]


class Kind(NamedTuple):
    """How to create an object, ask it within a token budget, stream, and save its folder."""

    make: Callable[[], Any]
    ask: Callable[..., Any]
    stream: Callable[..., Iterator[Any]]
    save: Callable[[Path], Path]
    does: str


def greedy(generator: dragoman.Generator, texts: Any, max_batch_tokens: int = 16384) -> Any:  # noqa: ANN401
    """Generate without random numbers, which depend on a prompt's index."""
    options = replace(generator.options, temperature=0.0, max_batch_tokens=max_batch_tokens)
    return generator.generate(texts, options=options)


def greedy_stream(
    generator: dragoman.Generator, texts: Iterable[str], window: int
) -> Iterator[dragoman.Generation]:
    """Stream greedily."""
    return generator.each(texts, replace(generator.options, temperature=0.0), window=window)


KINDS = {
    "Translator": Kind(
        make_translator,
        dragoman.Translator.translate,
        dragoman.Translator.stream,
        save_translator,
        r"translates \(dragoman translate\)",
    ),
    "Generator": Kind(
        make_generator,
        greedy,
        greedy_stream,
        save_generator,
        r"continues texts \(dragoman generate\)",
    ),
    "Classifier": Kind(
        make_classifier,
        dragoman.Classifier.classify,
        dragoman.Classifier.stream,
        partial(save_reader, head=CLASSIFY),
        r"classifies texts \(dragoman classify\)",
    ),
    "Tagger": Kind(
        make_tagger,
        dragoman.Tagger.tag,
        dragoman.Tagger.stream,
        partial(save_reader, head=TAG),
        r"tags words \(dragoman tag\)",
    ),
}
ANSWERING = {name: cache(kind.make) for name, kind in KINDS.items()}
"""One object of each kind for all examples, since answering does not modify it."""
every_kind = pytest.mark.parametrize("name", KINDS)
every_kind_alone = pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=needs_independent_translations
            if name == "Translator"
            else needs_independent_rows,
        )
        for name in KINDS
    ],
)
"""For laws that are exact only if answers do not depend on their neighbours."""


@every_kind_alone
def test_as_many_results_as_texts_in_order(name: str) -> None:
    """A list gives a list, a text one result; a stream gives the same and reads lazily.

    Neighbours change no bit: results are equal alone, in any order and with any token budget.
    """
    kind = KINDS[name]
    answering, lines = kind.make(), [*LINES, *([] if name == "Generator" else ["", "   "])]
    results = kind.ask(answering, lines)
    assert [kind.ask(answering, line) for line in lines] == results
    assert kind.ask(answering, iter(lines)) == results
    assert kind.ask(answering, []) == []
    for budget in (60, 200):
        order = random.sample(range(len(lines)), len(lines))
        found = kind.ask(answering, [lines[n] for n in order], max_batch_tokens=budget)
        assert found == [results[n] for n in order]
    for window in (1, 4, 100):
        assert list(kind.stream(answering, iter(lines), window=window)) == results
    endless = (f"the cat {number % 3}" for number in count())
    assert next(kind.stream(answering, endless, window=2)) == kind.ask(answering, "the cat 0")


@every_kind_alone
@given(
    lines=st.lists(st.sampled_from([*LINES, "a dog", "我喜欢"]), max_size=12),
    window=st.integers(1, 9),
    before=st.integers(0, 12),
)
@settings(max_examples=15, deadline=None)
def test_a_stream_that_breaks_off_loses_no_window(
    name: str, lines: list[str], window: int, before: int
) -> None:
    """Each line is answered once, in order, until the window in which the input fails."""
    kind, found = KINDS[name], list[Any]()

    def failing() -> Iterator[str]:
        yield from lines[:before]
        if before < len(lines):
            raise InputError("no UTF-8")
        yield from lines[before:]

    try:
        for result in kind.stream(ANSWERING[name](), failing(), window=window):
            found.append(result)
    except InputError:
        assert len(found) == before // window * window
    else:
        assert len(found) == len(lines)
    assert found == kind.ask(ANSWERING[name](), lines[: len(found)])


@pytest.mark.parametrize("name", ["Translator", "Generator"])
def test_what_nobody_waits_for_takes_no_further_step(name: str) -> None:
    """Withdrawn rows leave at the next step, and waiting items are never started."""
    answering, steps = KINDS[name].make(), []

    def withdraw(logits_NV: torch.Tensor, prefixes: Prefixes) -> torch.Tensor:
        steps.append(len(prefixes.ids_NL))
        if len(steps) == 2:
            request.withdraw()
        return logits_NV

    options = replace(answering.options, temperature=0.0, processors=(withdraw,), min_length=9)
    read = [line for line in LINES if line.isascii()]  # others might need no step
    request = answering.submit(["the cat", "the dog", *read], options)
    assert list(request) == []
    assert len(steps) == 2


@every_kind
def test_submitting_takes_what_asking_takes(name: str) -> None:
    """It accepts an iterable, with the object's own options or with some for this call."""
    kind, answering = KINDS[name], ANSWERING[name]()
    given = {"Generator": [Decoding(temperature=0.0)], "Translator": [Decoding()]}.get(name, [])
    found = answering.submit(iter(["the cat", "a dog"]), *given)
    assert [*found.in_order()] == kind.ask(answering, ["the cat", "a dog"])
    assert len([*answering.submit(["the cat"])]) == 1


def test_without_a_seed_samples_differ() -> None:
    """Samples without a seed differ, unless the options have one."""
    generator = ANSWERING["Generator"]()
    asks: list[Callable[[], Any]] = [
        lambda: generator.generate("the", temperature=1.0),
        lambda: [*generator.stream("the")],
        lambda: [*generator.each(["the"])],
        lambda: [*generator.submit(["the"])],
    ]
    for ask in asks:
        assert len({str(ask()) for _ in range(5)}) > 1
    seeded: list[dict[str, Any]] = [
        {"seed": 3},
        {"options": Decoding(seed=3), "temperature": 1.0},
        {"options": generator.options},
    ]
    for options in seeded:
        assert len({generator.generate("the", **options).text for _ in range(3)}) == 1


@every_kind
def test_a_folder_decides_what_is_loaded(name: str, tmp_path: Path) -> None:
    """It answers as the object in memory; other classes say what the model does."""
    kind, folder = KINDS[name], KINDS[name].save(tmp_path / "model")
    loaded = dragoman.load(folder, device="cpu")
    assert type(loaded) is getattr(dragoman, name)
    assert kind.ask(loaded, LINES) == kind.ask(kind.make(), LINES)
    for other in KINDS.keys() - {name}:
        with pytest.raises(InputError, match=kind.does):
            getattr(dragoman, other).load(folder)
    for device in ("toaster", "meta"):  # torch knows these, but they hold no values
        with pytest.raises(InputError, match=f'not on "{device}"'):
            dragoman.load(folder, device=device)


@pytest.mark.parametrize("name", get_args(Precision))
def test_each_name_of_a_precision_is_an_arithmetic(name: str) -> None:
    """Short and long names are equivalent, and auto is one of the precisions."""
    short = {"float32": "fp32", "bfloat16": "bf16", "auto": fastest("cpu")}
    assert arithmetic_of(name, "cpu") == short.get(name, name)


@pytest.mark.parametrize(
    ("precision", "told"), [("float23", r"'float23'; .*one of .*float32\?"), (None, "None; it")]
)
def test_another_precision_is_one_sentence(tmp_path: Path, precision: Any, told: str) -> None:  # noqa: ANN401
    """The error lists the valid ones before anything is read."""
    with pytest.raises(InputError, match=f"precision is {told}"):
        dragoman.load(tmp_path, precision=precision)


def test_an_encoder_that_predicts_masked_words_embeds_texts(tmp_path: Path) -> None:
    """A pretrained model can be used directly."""
    embedder = dragoman.load(save_reader(tmp_path / "model", MASKED), device="cpu")
    assert isinstance(embedder, dragoman.Embedder)
    assert len(embedder.embed(["the cat"])) == 1


def pickled(value: Any) -> Any:  # noqa: ANN401
    """Pickle and unpickle, as for another process."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301 -- our own bytes


@every_kind
def test_results_leave_the_process(name: str) -> None:
    """Results survive pickling, and their fields are plain data for a web framework."""
    for result in KINDS[name].ask(ANSWERING[name](), ["the cat sees a dog", "a house"]):
        assert pickled(result) == result
        assert json.loads(json.dumps(result.to_dict())).keys() == result.to_dict().keys()
        json.dumps(asdict(result))


@every_kind
def test_what_answers_is_pickled_by_its_folder(name: str) -> None:
    """Pickling fails and recommends the folder; a shallow copy shares the model.

    What has no threads is also copied with its model, and answers the same.
    """
    answering, ask = ANSWERING[name](), KINDS[name].ask
    with pytest.raises(TypeError, match=f"A {name} belongs to its process.*load its folder in"):
        pickle.dumps(answering)
    if name in {"Translator", "Generator"}:
        with pytest.raises(TypeError, match="load its folder in each process"):
            deepcopy(answering)
    else:
        assert ask(deepcopy(answering), LINES) == ask(answering, LINES)
    again = copy(answering)
    assert vars(again) == vars(answering)
    assert type(again) is type(answering)


def test_results_are_compared_by_value() -> None:
    """And hashed, even with arrays: a result equals its copies, and no others."""
    classified = KINDS["Classifier"].ask(ANSWERING["Classifier"](), "the cat")
    assert {classified, deepcopy(classified)} == {classified}
    (alignment,) = make_translator().translate("the cat").alignments
    other = replace(alignment, weights_TS=alignment.weights_TS + 1)
    assert {alignment, deepcopy(alignment)} == {alignment} != {other}
    vector = np.ones(3, np.float32)
    embedding = dragoman.Embedding(vector=vector)
    assert {embedding, deepcopy(embedding)} == {embedding}
    assert embedding != dragoman.Embedding(vector=vector + 1)


def test_a_pickled_translation_has_its_alignments_or_says_why_not() -> None:
    """Alignments computed before pickling are kept; those that need the model are refused."""
    translator = ANSWERING["Translator"]()
    result = translator.translate("the cat sees a dog", n_best=2)
    assert len(result.alternatives[0].alignments) == 1
    with pytest.raises(dragoman.DragomanError, match="pickled without its alignments"):
        _ = pickled(result).alignments
    (expected,) = result.alignments
    (found,) = pickled(result).alignments
    assert torch.equal(found.weights_TS, expected.weights_TS)
    assert pickled(translator.translate(" ")).alignments == ()
