"""Defaults of a model folder, which a call may override."""

from dataclasses import dataclass
from typing import Literal

from dragoman.decoding import GENERATING, TRANSLATING, Decoding, Tokens
from dragoman.errors import InputError
from dragoman.ranges import check_ranges

Words = Literal["spaced", "characters"]

TRANSLATION = Decoding(
    **{
        name: getattr(TRANSLATING, name)
        for name in (
            *("beam_size", "length_penalty", "max_length_factor", "max_length_constant"),
            *("max_src_tokens", "split_sentences"),
        )
    }
)
"""What the folder of a translator says, unless its recipe says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTemplate:
    """How the turns of a dialogue become one sequence: the token of a role, the text, eos."""

    user: str = "<user>"
    """Special token before what the user says."""
    assistant: str = "<assistant>"
    """Special token before what the model answers."""

    def __post_init__(self) -> None:
        """Raise InputError for roles with the same token."""
        if self.user == self.assistant:
            raise InputError(f"user and assistant are both {self.user}; give each its own token")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GenerationDefaults(Decoding):
    """How a decoder-only model continues a prompt by default."""

    opening: str | None = None
    """Text to put before every prompt, for a model trained on windows of texts, such as an empty
    line; by default a prompt begins a document."""
    chat: ChatTemplate | None = None
    """For a dialogue model: the tokens of the roles. A prompt is then a dialogue, a line a
    turn, the last one the user's, and what is generated is the answer."""


GENERATION = GenerationDefaults(
    context=None, max_tokens=256, count_prompt=False, temperature=GENERATING.temperature
)
"""What the folder of a generator says, unless its recipe says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingDefaults:
    """How an encoder-only model reads texts."""

    max_tokens: Tokens = 256
    """Maximum number of tokens; a longer text is read in parts."""
    words: Words = "spaced"
    """What is tagged: words split at white space and punctuation, or every character."""

    def __post_init__(self) -> None:
        """Raise InputError for a value that no call could use."""
        check_ranges(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PublishedDefaults(Decoding):
    """What a model of another library needs beside all that ours have.

    Its tokenizers are read from the files of that library, and it is decoded as its publisher says.
    """

    family: str
    """The `model_type` of its config: how tokenizers are read, and where languages go."""
    forbidden: tuple[int, ...] = ()
    """Ids that are never written."""
    forbidden_sequences: tuple[tuple[int, ...], ...] = ()
    """Sequences of several ids that are never written."""
    begin: tuple[int, ...] = ()
    """Ids that every target begins with, unless a language says otherwise."""
    forced_end: bool = False
    """Whether the last token that the length limit allows is always the end."""
    ends: tuple[int, ...] = ()
    """Ids that end a text of a decoder alone, where they are not the tokenizer's eos alone."""
    probe: tuple[float, ...] = ()
    """Some logits of the publisher's weights, by which they are verified; none of other weights."""
