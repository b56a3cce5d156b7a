r"""Dialogue: turns in one sequence, of which only the answers are learned.

The template puts the token of its role before each turn, and eos after it:

    <s> <user> When does the zoo open? </s> <assistant> At 8 am. </s> <user> And the museum? </s>

A prompt ends with `<assistant>`, and eos ends the answer. With the ids :math:`x_1 \dots x_n` of a
dialogue and :math:`m_t = 1` where :math:`x_t` is a piece of an answer or the eos after one, else
0, training minimises

.. math:: -\frac{\sum_t m_t \log p(x_t \mid x_1 \dots x_{t-1})}{\sum_t m_t}

A text never holds a role: special tokens are not looked for in it.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dragoman.data.documents import read_documents
from dragoman.errors import InputError
from dragoman.models.defaults import ChatTemplate
from dragoman.tasks.generate.prompts import PromptCodec
from dragoman.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from dragoman.tasks.generate.generator import Generator
    from dragoman.tasks.options import GenerationOptions


def in_answers(ids: npt.NDArray[np.integer], roles: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Tell which ids of a stream of dialogues the loss counts: those of answers, their eos too.

    `roles` are the ids of user and assistant. A bos after an answer counts as a part of it.
    """
    is_role = np.isin(ids, roles)
    last = np.maximum.accumulate(np.where(is_role, np.arange(len(ids)), 0))
    counts: npt.NDArray[np.bool_] = (ids[last] == roles[1]) & ~is_role
    return counts


class DialogueCodec(PromptCodec):
    """The template at work: dialogues to ids. A line is a turn, and roles take turns.

    Of a dialogue to learn from, the first turn is the user's; of a prompt, the last.
    """

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate) -> None:
        super().__init__(tokenizer, None)
        self.roles = tokenizer.special_id(template.user), tokenizer.special_id(template.assistant)
        self.vocab_size, self.pad_id = tokenizer.vocab_size, tokenizer.pad_id
        self.bos_id, self.eos_id = tokenizer.bos_id, tokenizer.eos_id

    @property
    def content_hash(self) -> str:
        """A hash of everything that decides how a dialogue is encoded."""
        return f"{self._tokenizer.content_hash} turns {self.roles}"

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of dialogues to learn from, without bos and the last eos."""
        return [list(chain(*turns))[:-1] for turns in self._turns(texts, first=0)]

    def encode_rest(self, texts: Sequence[str]) -> list[list[int]]:
        """Return nothing for nothing: a dialogue is never encoded in parts."""
        assert not texts  # noqa: S101
        return []

    def encode(self, prompts: Sequence[str], room: int | None = None) -> list[list[int]]:
        """The ids of prompts; of more than `room` the oldest turns are left out, whole.

        What is left begins with a turn of the user's. Raises InputError where the last turn alone
        is longer.
        """
        dialogues = zip(prompts, self._turns(prompts, first=None), strict=True)
        return [self._cut(prompt, turns, room) for prompt, turns in dialogues]

    def begins_text(self, prompt: str) -> bool:  # noqa: ARG002 (whatever was asked)
        """Whether the continuation begins a text: an answer always does."""
        return True

    def _turns(self, texts: Sequence[str], first: int | None) -> list[list[list[int]]]:
        """Role, pieces and eos of each turn of each text; `first` None counts from the end."""
        dialogues = [text.split("\n") for text in texts]
        pieces = iter(self._tokenizer.encode_batch([*chain(*dialogues)]))
        found = []
        for lines in dialogues:
            shift = len(lines) - 1 if first is None else first
            turns = [
                [self.roles[(number + shift) % 2], *next(pieces), self.eos_id]
                for number in range(len(lines))
            ]
            found.append(turns)
        return found

    def _cut(self, prompt: str, turns: list[list[int]], room: int | None) -> list[int]:
        """The longest end of the turns that there is room for, ready for an answer."""
        for first in sorted({0, *range(len(turns) - 1, -1, -2)}):
            ids = [self.bos_id, *chain(*turns[first:]), self.roles[1]]
            if room is None or len(ids) <= room:
                return ids
        raise InputError(
            f"The turn {prompt.rpartition(chr(10))[2][:40]!r} has {len(ids)} tokens, and the "
            f"context leaves room for {room} beside an answer; shorten it, or lower max_tokens."
        )


class Chat:
    """A conversation with a dialogue model: it keeps what was said.

    The model is shown as many of the last turns as its context holds beside an answer.
    """

    def __init__(self, generator: "Generator", options: "GenerationOptions | None" = None) -> None:
        self._generator = generator
        self._options = options
        self.turns: list[str] = []
        """What user and model have said in turn."""

    def stream(self, text: str) -> Iterator[str]:
        """Say something, and yield the answer while it grows.

        Both count as said when the answer is complete; line breaks of a turn become spaces.
        """
        turns = [*self.turns, " ".join(text.splitlines())]
        answer = ""
        for piece in self._generator.stream("\n".join(turns), self._options):
            answer += piece
            yield piece
        self.turns = [*turns, " ".join(answer.splitlines())]

    def say(self, text: str) -> str:
        """Say something, and return the answer."""
        return "".join(self.stream(text))

    def reset(self) -> None:
        """Forget what was said."""
        self.turns = []


def last_answers(path: Path) -> tuple[list[str], list[str]]:
    """The last answer of each dialogue of a file, and before it the prompt that asks for it."""
    dialogues = (part.text.split("\n") for part in read_documents([path], "blank-line"))
    ended = [turns[: len(turns) // 2 * 2] for turns in dialogues if len(turns) > 1]
    return ["\n".join(turns[:-1]) for turns in ended], [turns[-1] for turns in ended]
