"""Threads share a model without seeing what other threads do with it."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TypeVar

import pytest
import torch
from tests.processors import INDEPENDENT
from tests.unit.tasks import readers, tiny, tiny_generator
from torch import nn

from dragoman.folder.format import FolderConfig
from dragoman.folder.opening import ModelFolder
from dragoman.lens.choices import Choices
from dragoman.lens.inspecting import inspect_folder
from dragoman.models import EncoderDecoder
from dragoman.models.build import Model
from dragoman.models.config import ModelConfig
from dragoman.nn import Arithmetic, Precision, TokenEmbedding
from dragoman.nn.cpu.products import rows_are_independent
from dragoman.tasks.classify.classifier import Classifier
from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.tag.tagger import Tagger
from dragoman.tasks.translate.translator import Translator
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.job import evaluating

THREADS = 8
LINES = tiny.random_lines(4, longest=6)
Ask = Callable[[], object]
ModelT = TypeVar("ModelT", bound=nn.Module)


def interrupted(model: ModelT) -> ModelT:
    """Return the model, which is put in training mode whenever it starts to read."""

    def interrupt(_: nn.Module, __: object) -> None:
        model.train()

    for module in model.modules():
        if isinstance(module, TokenEmbedding):
            module.register_forward_pre_hook(interrupt)
    return model


def inspecting(model: Model, config: ModelConfig, tokenizer: Tokenizer) -> Ask:
    """Return a function that inspects a text."""
    folder = ModelFolder(path=Path("model"), config=FolderConfig(model=config))
    folder.model, folder.tokenizers = model, (tokenizer, tokenizer)
    return lambda: inspect_folder(folder, "the cat sees", Choices()).to_dict()


def translating(precision: Precision) -> tuple[Model, list[Ask]]:
    """Return functions that translate, align, score and inspect."""
    tokenizer = tiny.make_tokenizer()
    config = tiny.make_config(tokenizer)
    model = interrupted(tiny.make_model(config))
    translator = Translator(
        model, tokenizer, tokenizer, decoding=tiny.DECODING, precision=precision
    )
    return model, [
        lambda: translator.translate(LINES),
        lambda: [found.alignment().weights_TS.tolist() for found in translator.translate(LINES)],
        lambda: translator.score([("the cat", "a dog"), ("我喜欢", "the house")]),
        inspecting(model, config, tokenizer),
    ]


def generating(precision: Precision) -> tuple[Model, list[Ask]]:
    """Return functions that generate, stream, score and inspect."""
    tokenizer = tiny.make_tokenizer()
    config = tiny_generator.make_config(tokenizer)
    model = interrupted(tiny_generator.make_model(config))
    generator = Generator(model, tokenizer, defaults=tiny_generator.DEFAULTS, precision=precision)
    return model, [
        lambda: generator.generate(LINES, options=generator.options),
        lambda: list(generator.stream("the cat", generator.options)),
        lambda: generator.score([("the cat", " sees")]),
        inspecting(model, config, tokenizer),
    ]


def classifying(precision: Precision) -> tuple[Model, list[Ask]]:
    """Return functions that classify and inspect."""
    model = interrupted(readers.make_model(readers.CLASSIFY))
    classifier = Classifier(model, readers.TOKENIZER, readers.LABELS, precision=precision)
    look = inspecting(model, readers.make_config(readers.CLASSIFY), readers.TOKENIZER)
    return model, [lambda: classifier.classify(LINES), look]


def tagging(precision: Precision) -> tuple[Model, list[Ask]]:
    """Return functions that tag and inspect."""
    model = interrupted(readers.make_model(readers.TAG))
    tagger = Tagger(model, readers.TOKENIZER, readers.TAGS, precision=precision)
    look = inspecting(model, readers.make_config(readers.TAG), readers.TOKENIZER)
    return model, [lambda: tagger.tag(LINES), look]


@contextmanager
def learning(model: nn.Module) -> Iterator[None]:
    """Run the model forward and backward in training, and validate it, in another thread.

    Gradients are computed, but no weight changes.
    """
    done = Event()
    ids_BL = torch.full((2, 9), 5)
    inputs = (ids_BL, ids_BL) if isinstance(model, EncoderDecoder) else (ids_BL,)

    def learn() -> None:
        while not done.is_set():
            model.train()
            model(*inputs).sum().backward()
            with evaluating(model):
                model(*inputs)

    thread = Thread(target=learn)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture
def two_cores() -> Iterator[Callable[[], None]]:
    """A function that lets its thread use two cores, whatever other threads use."""
    before = torch.get_num_threads()
    yield lambda: torch.set_num_threads(2)
    torch.set_num_threads(before)


@pytest.mark.parametrize("precision", INDEPENDENT)
def test_what_is_frozen_is_shared(precision: Arithmetic, two_cores: Callable[[], None]) -> None:
    """Eight threads translate, stream and score with it: bit for bit what a single thread finds."""
    two_cores()
    translator = tiny.make_translator(precision=precision)
    assert translator._ids.model.frozen is not translator._ids.model.shape
    lines = tiny.random_lines(8, seed=2, longest=8)
    asks: list[Ask] = [
        lambda: translator.translate(lines, n_best=2),
        lambda: list(translator.stream(iter(lines), window=5)),
        lambda: translator.translate(lines[::-1], beam_size=1, max_batch_tokens=60),
    ]
    if rows_are_independent("bf16" if precision == "bf16" else "fp32"):  # the model itself scores
        asks.append(lambda: translator.score(list(zip(lines, lines[::-1], strict=True))))
    expected = [ask() for ask in asks]
    with ThreadPoolExecutor(THREADS, initializer=two_cores) as threads:
        numbers = [n % len(asks) for n in range(2 * THREADS)]
        found = [(number, threads.submit(asks[number])) for number in numbers]
        for number, answer in found:
            assert answer.result() == expected[number]


@pytest.mark.parametrize("precision", INDEPENDENT)
def test_any_number_of_lanes_gives_the_same_bits(
    precision: Arithmetic, two_cores: Callable[[], None]
) -> None:
    """Batches of other sentences run side by side, with any number of threads."""
    two_cores()
    translator = tiny.make_translator(precision=precision)
    lines, found = tiny.random_lines(20, seed=3, longest=9), []
    for lanes in (1, 2, 3):
        torch.set_num_threads(lanes)
        found.append(
            [
                translator.translate(lines, max_batch_tokens=budget, beam_size=beam_size)
                for budget, beam_size in ((60, 1), (200, 3), (10_000, 4))
            ]
        )
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("task", [translating, generating, classifying, tagging])
def test_answers_are_those_of_one_thread(
    task: Callable[[Precision], tuple[Model, list[Ask]]], precision: Precision
) -> None:
    """Eight threads ask at once while a ninth trains: bit for bit the answers of one thread."""
    if not rows_are_independent(precision):
        pytest.skip(f"rows of {precision} products depend on those of other threads here")
    model, asks = task(precision)
    expected = [ask() for ask in asks]
    with ThreadPoolExecutor(THREADS) as threads, learning(model):
        found = [[threads.submit(ask) for ask in asks] for _ in range(THREADS)]
    for answers in found:
        assert [answer.result() for answer in answers] == expected
