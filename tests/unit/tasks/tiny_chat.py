"""A small model of dialogues, of random weights."""

from dataclasses import replace
from pathlib import Path

from tests.unit.tasks.tiny import random_lines
from tests.unit.tasks.tiny_generator import DEFAULTS, make_generator, save_generator

from dragoman.folder.format import ChatTemplate
from dragoman.tasks.generate.generator import Generator
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.train import TokenizerConfig, train_tokenizer

TEMPLATE = ChatTemplate()
CHAT = replace(DEFAULTS, chat=TEMPLATE, context=64)


def make_tokenizer() -> Tokenizer:
    """One that has the roles of the template."""
    roles = (TEMPLATE.user, TEMPLATE.assistant)
    return train_tokenizer(
        random_lines(100, seed=9), TokenizerConfig(vocab_size=322, specials=roles)
    )


def make_chat_generator(context: int = 64) -> Generator:
    """Model and tokenizer, never on a disk."""
    return make_generator(replace(CHAT, context=context), tokenizer=make_tokenizer())


def save_chat_generator(folder: Path) -> Path:
    """A model folder of the same."""
    return save_generator(folder, CHAT, make_tokenizer())
