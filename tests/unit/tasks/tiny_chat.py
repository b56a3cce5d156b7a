"""A small model of dialogues, of random weights."""

from dataclasses import replace
from pathlib import Path

from tests.unit.tasks.tiny import random_lines
from tests.unit.tasks.tiny_generator import DEFAULTS, make_config, make_model

from dragoman.folder.format import ChatTemplate, FolderConfig, save_model
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
    tokenizer = make_tokenizer()
    return Generator(
        make_model(make_config(tokenizer)), tokenizer, defaults=replace(CHAT, context=context)
    )


def save_chat_generator(folder: Path) -> Path:
    """A model folder of the same."""
    tokenizer = make_tokenizer()
    config = make_config(tokenizer)
    saved = FolderConfig(model=config, generation=CHAT)
    save_model(folder, make_model(config), saved, tokenizers=(tokenizer, tokenizer))
    return folder
