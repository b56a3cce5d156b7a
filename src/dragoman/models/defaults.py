"""Defaults of a model folder, which a call may override."""

from dataclasses import dataclass
from typing import Annotated, Literal

from dragoman.errors import InputError
from dragoman.ranges import BelowOne, Count, Index, NonNegative, Positive, Range, check_ranges

Words = Literal["spaced", "characters"]

WIDEST = 1000
"""Most hypotheses of a beam: each step ranks their square."""

LONGEST_TEXT = 20_000_000
"""Most tokens of a text; the longest published contexts have 10 million."""

BeamSize = Annotated[
    int,
    Range(
        least=1,
        most=WIDEST,
        why="each step of the search ranks its square, and beams of 4 to 10 are usual",
    ),
]
Context = Annotated[int, Range(least=2, most=LONGEST_TEXT)]
Tokens = Annotated[
    int,
    Range(least=1, most=LONGEST_TEXT, why="the longest published contexts have 10 million tokens"),
]
"""A number of tokens of one text."""
Alpha = Annotated[
    float, Range(least=0, most=10, why="it is an exponent of the length, usually 0 to 2")
]
"""The exponent of a length penalty."""
LengthNorm = Literal["gnmt", "power"]
"""What a beam divides sums of log-probabilities by: `((5 + n) / 6) ** alpha`, or `n ** alpha`."""
EarlyStopping = Literal["estimate", "full", "never"]
"""When a beam by `n ** alpha` is finished, once it has `beam_size` complete hypotheses: if the best
open one would score less by ending now; at once; or if it would even at the greatest length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingDefaults:
    """How the model decodes by default."""

    beam_size: BeamSize = 5
    """Number of hypotheses kept at each step; 1 is greedy search."""
    length_penalty: Alpha = 1.0
    """Exponent alpha of `((5 + n) / 6) ** alpha`; larger values favour longer translations."""
    max_length_factor: NonNegative = 2.0
    """Maximum length: factor * (source tokens) + constant."""
    max_length_constant: Tokens = 20
    """The constant of that sum, for short lines."""
    max_src_tokens: Tokens = 256
    """Maximum number of source tokens; a longer sentence is translated in chunks."""
    split_sentences: bool | None = None
    """Translate the sentences of a line one by one. A folder that training writes says so unless
    its texts have several sentences to a line; a folder that does not say is taken to."""

    def __post_init__(self) -> None:
        """Raise InputError for a value that no call could use."""
        check_ranges(self)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationDefaults:
    """How a decoder-only model continues a prompt by default."""

    context: Context | None = None
    """Maximum number of tokens that the model sees at once; that of training by default."""
    opening: str | None = None
    """Text to put before every prompt, for a model trained on windows of texts, such as an empty
    line; by default a prompt begins a document."""
    max_tokens: Tokens = 256
    """Maximum number of tokens to generate."""
    count_prompt: bool = False
    """Whether max_tokens includes the tokens of the prompt (`max_length` of Hugging Face)."""
    temperature: NonNegative = 0.8
    """Sampling temperature; 0 is greedy search."""
    chat: ChatTemplate | None = None
    """For a dialogue model: the tokens of the roles. A prompt is then a dialogue, a line a
    turn, the last one the user's, and what is generated is the answer."""

    def __post_init__(self) -> None:
        """Raise InputError for a value that no call could use."""
        check_ranges(self)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedDefaults:
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
    early_stopping: EarlyStopping = "estimate"
    """When a beam is finished."""
    renormalize: bool = False
    """Share out again the probability that processors take away."""
    min_length: Index = 0
    """Minimum number of tokens, the end not counted."""
    no_repeat_ngrams: Index = 0
    """Never repeat an n-gram of this length; 0 allows repetition."""
    repetition_penalty: Positive = 1.0
    """Values above 1 make tokens less likely that the text already has."""
    top_k: Count | None = None
    """Sample from this many of the most probable tokens."""
    top_p: Annotated[float, Range(above=0, most=1)] = 1.0
    """Nucleus sampling threshold."""
    min_p: BelowOne = 0.0
    """Sample tokens at least this fraction as likely as the top one."""
    probe: tuple[float, ...] = ()
    """Some logits of the publisher's weights, by which they are verified; none of other weights."""

    def __post_init__(self) -> None:
        """Raise InputError for a value that no call could use."""
        check_ranges(self)
