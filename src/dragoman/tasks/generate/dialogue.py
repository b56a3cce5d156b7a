r"""Dialogue: turns in one sequence, of which only the answers are learned.

The template puts the token of its role before each turn, and eos after it:

    <s> <user> When does the zoo open? </s> <assistant> At 8 am. </s> <user> And the museum? </s>

A prompt ends with `<assistant>`, and eos ends the answer. With the ids :math:`x_1 \dots x_n` of a
dialogue and :math:`m_t = 1` where :math:`x_t` is a piece of an answer or the eos after one, else
0, training minimises

.. math:: -\frac{\sum_t m_t \log p(x_t \mid x_1 \dots x_{t-1})}{\sum_t m_t}

A text never contains a role: it is not searched for special tokens.

A Hugging Face model has its own chat template (`dialogue_of`).
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dragoman.data.documents import read_documents
from dragoman.errors import InputError
from dragoman.folder.foreign import RULES
from dragoman.folder.format import ChatTemplate
from dragoman.folder.opening import ModelFolder
from dragoman.folder.tokenizers.files import TokenizerFolder
from dragoman.languages import LangCodes
from dragoman.tasks.generate.prompts import PromptCodec
from dragoman.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from dragoman.folder.tokenizers.template import Message, PublishedTemplate


CODES = "source_lang_code", "target_lang_code"
"""The keys of the languages in a message for TranslateGemma (Finkelstein et al., 2026)."""


def in_answers(ids: npt.NDArray[np.integer], roles: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Mark the ids in a stream of dialogues that the loss counts: those of answers, eos included.

    `roles` are the ids of user and assistant. A bos after an answer counts as part of it.
    """
    is_role = np.isin(ids, roles)
    last = np.maximum.accumulate(np.where(is_role, np.arange(len(ids)), 0))
    counts: npt.NDArray[np.bool_] = (ids[last] == roles[1]) & ~is_role
    return counts


class DialogueCodec(PromptCodec):
    """The codec of the template: dialogues to ids. Each line is a turn, and roles alternate.

    In a dialogue to learn from, the first turn is the user's; in a prompt, the last.
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
        """Return the ids of dialogues to learn from, without bos and the last eos."""
        return [list(chain(*turns))[:-1] for turns in self._turns(texts, first=0)]

    def encode_rest(self, texts: Sequence[str]) -> list[list[int]]:
        """Return an empty list for an empty one: a dialogue is never encoded in parts."""
        assert not texts  # noqa: S101
        return []

    def encode(
        self, prompts: Sequence[str], room: tuple[int, int] | None = None
    ) -> list[list[int]]:
        """Return the ids of prompts; if they exceed `room`, the oldest turns are left out, whole.

        The rest begins with a turn of the user's. Raises InputError if the last turn alone is too
        long (`Decoding.prompt_room`).
        """
        dialogues = zip(prompts, self._turns(prompts, first=None), strict=True)
        return [self._cut(prompt, turns, room) for prompt, turns in dialogues]

    def encode_turns(self, turns: Sequence[str], room: tuple[int, int] | None) -> list[int]:
        """Encode the turns of one prompt, in which line breaks become spaces."""
        prompt = "\n".join(" ".join(turn.splitlines()) for turn in turns)
        return self.encode([prompt], room)[0]

    def begins_text(self, prompt: str) -> bool:  # noqa: ARG002 (whatever was asked)
        """Return whether the continuation begins a text: an answer always does."""
        return True

    def _turns(self, texts: Sequence[str], first: int | None) -> list[list[list[int]]]:
        """Return role, pieces and eos of each turn of each text; `first` None: from the end."""
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

    def _cut(self, prompt: str, turns: list[list[int]], room: tuple[int, int] | None) -> list[int]:
        firsts = sorted({0, *range(len(turns) - 1, -1, -2)})

        def encode(left_out: int) -> list[int]:
            return [self.bos_id, *chain(*turns[firsts[left_out] :]), self.roles[1]]

        return _fitting(len(firsts), encode, prompt.rpartition("\n")[2], room)


def _fitting(
    count: int, encode: Callable[[int], list[int]], last: str, room: tuple[int, int] | None
) -> list[int]:
    """Return the ids of `count` exchanges, or of as many as fit `room`.

    `encode` returns them without the given number of oldest ones. Raises InputError if the `last`
    turn alone is too long.
    """
    ids = encode(0)
    if room is None or len(ids) <= room[0]:
        return ids
    ids = encode(bisect_left(range(count - 1), -room[0], key=lambda number: -len(encode(number))))
    if len(ids) > room[1]:
        raise InputError(
            f"The turn {last[:40]!r} has {len(ids)} tokens with its roles, and the context leaves "
            f"room for {room[1]} beside an answer; shorten it."
        )
    return ids


def _encode_published(
    template: "PublishedTemplate",
    before: "list[Message]",
    languages: LangCodes,
    turns: Sequence[str],
    room: tuple[int, int] | None,
) -> list[int]:
    """Encode turns by a publisher's template; raises InputError if it rejects the messages."""
    pair, hint = dict(zip(CODES, languages, strict=True)), ""
    if all(languages):
        named = " or ".join(map(str, dict.fromkeys(languages)))
        hint = f"; it may not know the code {named} (see the model's card)"

    def message(number: int, turn: str) -> "Message":
        if number % 2:
            return {"role": "assistant", "content": turn}
        asked = [{"type": "text", **pair, "text": turn}] if all(languages) else turn
        return {"role": "user", "content": asked}

    def encode(left_out: int) -> list[int]:
        messages = [message(n, turn) for n, turn in enumerate(turns[2 * left_out :])]
        return template.encode([*before, *messages], hint)

    return _fitting((len(turns) + 1) // 2, encode, turns[-1], room)


def dialogue_of(
    tokenizer: Tokenizer,
    learned: DialogueCodec | None,
    system: str | None,
    languages: LangCodes = (None, None),
) -> Callable[[Sequence[str], tuple[int, int] | None], list[int]]:
    """Return what turns a model's turns into ids: what it `learned`, or the folder's chat template.

    If there is not enough room, the oldest exchanges are left out. Raises InputError if there is
    neither, for a system prompt if none was learned, and if `languages` (source and target, as in
    TranslateGemma's messages) are missing or not read.
    """
    if learned is not None and any(languages):
        raise InputError("The model learned dialogues without languages; leave them out.")
    if learned is not None:
        if system is not None:
            raise InputError("The model learned dialogues without system prompts; leave it out.")
        return learned.encode_turns
    from dragoman.folder.tokenizers.template import PublishedTemplate  # and Jinja, only for it

    template = PublishedTemplate.of(tokenizer)
    if template is None:
        raise InputError(
            "The model has no chat template, so it does not converse; use generate, or "
            "/v1/completions of the server."
        )
    asks = CODES[0] in template.source
    if any(languages) and not asks:
        raise InputError(
            f"The chat template of {template.origin} reads no languages; write them in the text."
        )
    if asks and not all(languages):
        raise InputError(
            f"The chat template of {template.origin} reads the languages of a text; say them by "
            "--src-lang and --tgt-lang (in Python: chat(languages=...); over HTTP: source_lang and "
            "target_lang)."
        )
    before: list[Message] = [] if system is None else [{"role": "system", "content": system}]
    return partial(_encode_published, template, before, languages)


def converses(folder: ModelFolder) -> bool:
    """Return whether a decoder answers turns, as far as its folder says; see `dialogue_of`."""
    config = folder.config
    if config.published is None:
        return config.generation is not None and config.generation.chat is not None
    from dragoman.folder.tokenizers.template import find_template

    try:
        return find_template(TokenizerFolder.of(folder.origin, folder.hf, RULES)) is not None
    except InputError:  # reported to whoever chats with it
        return False


class Chat:
    """A conversation, which keeps what was said.

    The model sees as many of the last turns as its context holds together with an answer. `answer`
    yields the answer to turns, of which the last is the user's.
    """

    def __init__(self, answer: Callable[[Sequence[str]], Iterator[str]]) -> None:
        self._answer = answer
        self.turns: list[str] = []
        """What user and model have said, alternating."""

    def stream(self, text: str) -> Iterator[str]:
        """Say something, and yield the answer as it grows.

        Both are recorded when the answer is complete.
        """
        turns, answer = [*self.turns, text], ""
        for piece in self._answer(turns):
            answer += piece
            yield piece
        self.turns = [*turns, answer]

    def say(self, text: str) -> str:
        """Say something, and return the answer."""
        return "".join(self.stream(text))

    def reset(self) -> None:
        """Forget what was said."""
        self.turns = []


def last_answers(path: Path) -> tuple[list[str], list[str]]:
    """Return the prompts for the last answer of each dialogue in a file, and these answers."""
    dialogues = (part.text.split("\n") for part in read_documents([path], "blank-line"))
    ended = [turns[: len(turns) // 2 * 2] for turns in dialogues if len(turns) > 1]
    return ["\n".join(turns[:-1]) for turns in ended], [turns[-1] for turns in ended]
