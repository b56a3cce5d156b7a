"""A small dialogue model with random weights."""

from dataclasses import replace
from pathlib import Path

from tests.unit.tasks import tiny
from tests.unit.tasks.tiny_generator import DEFAULTS, make_generator, save_generator

from dragoman.folder.format import ChatTemplate
from dragoman.tasks.generate.generator import Generator
from dragoman.text.tokenizer import Tokenizer

TEMPLATE = ChatTemplate()
CHAT = replace(DEFAULTS, chat=TEMPLATE, context=64)


def make_tokenizer() -> Tokenizer:
    """Return a tokenizer with the roles of the template."""
    return tiny.make_tokenizer(322, TEMPLATE.user, TEMPLATE.assistant)


def make_chat_generator(context: int = 64) -> Generator:
    """Return a chat model in memory."""
    return make_generator(replace(CHAT, context=context), tokenizer=make_tokenizer())


def save_chat_generator(folder: Path) -> Path:
    """Save such a model to a folder."""
    return save_generator(folder, CHAT, make_tokenizer())
