"""The options of decoding: each is declared once, with its type, range and description.

    Decoding(beam_size=4, no_repeat_ngrams=3)

An option is UNSET until the publisher of a model, its folder, a recipe or a call sets it. `merged`
puts these layers over the defaults of a task, which also say which options the task has. The
command line with its help, the keys of a recipe and the settings that a model folder stores are
generated from the fields.

    merged(call, folder, TRANSLATING)
"""

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal, Self

from dragoman.errors import InputError
from dragoman.ranges import (
    UNSET,
    BelowOne,
    Count,
    Index,
    NonNegative,
    Positive,
    Range,
    check_ranges,
    check_words,
)

Precision = Literal["auto", "float32", "fp32", "bfloat16", "bf16", "int8"]
"""Names of arithmetics, here and on the command line; "auto" is the fastest that is safe here."""

WIDEST = 1000
"""Largest beam size: each step ranks the square of its hypotheses."""

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
DIVERSITY = 0.5
Diversity = Annotated[
    float, Range(least=0, most=1000, why="it is subtracted from log-probabilities")
]
TopP = Annotated[float, Range(above=0, most=1)]
LengthNorm = Literal["gnmt", "power"]
"""What a beam divides sums of log-probabilities by: `((5 + n) / 6) ** alpha`, or `n ** alpha`."""
EarlyStopping = Literal["estimate", "full", "never"]
"""When a "power" beam is finished, once it has `beam_size` complete hypotheses: if the best open
one would score less if it ended now; at once; or if it would score less even at the greatest
length."""
Terms = Literal["search", "replace"]
"""How the terms of a glossary are written: by the search, or into its result."""
NO_FLAG = {"flag": None}
"""Metadata of an option that the command line does not have."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Decoding:
    """How to decode. A field that nobody set is UNSET.

    A text that reaches the greatest length ends there; a translation has the flag "max_length".
    """

    beam_size: BeamSize = UNSET
    """Beam size: number of hypotheses kept at each step; 1 is greedy search."""
    n_best: Count = field(
        default=UNSET,
        metadata={
            "help": "Number of translations per line; above 1, each is printed as line number, "
            "score and text, separated by tabs, best first."
        },
    )
    """Number of translations to return for each line."""
    beam_groups: Count = UNSET
    """Split the beam into this many groups; each avoids the tokens that earlier groups chose."""
    diversity: Diversity = UNSET
    """Penalty on a token's log-probability for each earlier group that chose it in the same step;
    0.5 by default."""
    mbr: Annotated[int, Range(least=0, most=WIDEST, why="each is compared with all")] = UNSET
    """Choose among this many hypotheses or samples by minimum Bayes risk, with chrF as the
    similarity; 0 takes the one with the best score."""
    length_penalty: Alpha = UNSET
    """Exponent of the length penalty; larger values favour longer texts."""
    length_norm: LengthNorm = field(default=UNSET, metadata=NO_FLAG)
    """Length penalty: `((5 + n) / 6) ** alpha` ("gnmt"), or `n ** alpha` ("power") as in Hugging
    Face's beam search."""
    early_stopping: EarlyStopping = field(default=UNSET, metadata=NO_FLAG)
    """When to stop a beam search whose length_norm is "power"."""
    renormalize: bool = field(default=UNSET, metadata=NO_FLAG)
    """Renormalize after processors if length_norm is "power"; other searches always do."""
    max_tokens: Tokens = UNSET
    """Maximum number of tokens to generate."""
    count_prompt: bool = field(default=UNSET, metadata=NO_FLAG)
    """Whether max_tokens includes the tokens of the prompt (Hugging Face's `max_length`); at least
    one token is generated."""
    max_length_factor: Annotated[float, Range(least=0, most=1000)] = field(
        default=UNSET, metadata=NO_FLAG
    )
    """Maximum length of a translation: factor * (source tokens) + constant."""
    max_length_constant: Tokens = field(default=UNSET, metadata=NO_FLAG)
    """The constant in the maximum length, which matters for short lines."""
    min_length: Index = UNSET
    """Minimum number of tokens in the text."""
    repetition_penalty: Positive = UNSET
    """Values above 1 make tokens that are already in the text (or its prompt) less likely."""
    no_repeat_ngrams: Index = UNSET
    """Never repeat an n-gram of this length; 0 allows repetition."""
    temperature: NonNegative = UNSET
    """Sampling temperature: 0 is greedy or beam search, 1 samples from the model's distribution."""
    top_k: Count | None = UNSET
    """Sample only from the k most likely tokens."""
    top_p: TopP = UNSET
    """Nucleus sampling: sample from the fewest tokens with this total probability."""
    min_p: BelowOne = UNSET
    """Sample only tokens at least this fraction as likely as the top one."""
    seed: Index = UNSET
    """Random seed for sampling. Translation uses 0 by default; `generate` and `chat` draw one and
    print it."""
    stop: tuple[str, ...] = field(
        default=UNSET, hash=False, metadata={"help": "Stop before this string; may be repeated."}
    )
    """Stop before the first of these strings."""
    forbidden_words: tuple[str, ...] = field(default=UNSET, hash=False, metadata=NO_FLAG)
    """Words that must not appear in a text as whole words, in this spelling, however they are
    tokenized."""
    processors: tuple[Callable[[Any, Any], Any], ...] = field(
        default=UNSET, hash=False, metadata={"flag": None, "python": True}
    )
    """Further changes to the logits of each step, applied in this order (`dragoman.decode`)."""
    terms: Terms = UNSET
    """How to apply glossary terms: "search" finds a translation that contains them; "replace"
    translates without them and then puts them in: faster, but the words around a term may not agree
    with it."""
    shortlist: bool = UNSET
    """Use only the tokens that the folder's shortlist lists for the words of the source: faster."""
    split_sentences: bool | None = field(
        default=UNSET,
        metadata={
            "flag": "--no-split",
            "help": "Translate each line as one text, even if it has several sentences.",
        },
    )
    """Translate the sentences of a line one by one. Training enables this in the model folder
    unless its texts have several sentences per line; it is also the default for folders that do not
    set it."""
    retry: bool = field(
        default=UNSET,
        metadata={
            "flag": "--no-retry",
            "help": "Do not search again if a translation loops, is empty or reaches the maximum "
            "length.",
        },
    )
    """Search again if a translation loops, is empty or reaches the maximum length."""
    max_src_tokens: Tokens = field(default=UNSET, metadata=NO_FLAG)
    """Maximum number of source tokens; a longer sentence is translated in chunks."""
    context: Context | None = field(default=UNSET, metadata=NO_FLAG)
    """Maximum number of tokens that the model sees at once; as in training by default."""
    max_batch_tokens: Count = UNSET
    """Maximum number of tokens per batch; lower values need less memory."""

    def __post_init__(self) -> None:
        """Raise InputError for a value out of range, and for values that contradict each other."""
        check_ranges(self)
        check_words(self)
        _make_tuples(self)
        given = self.given()
        if not all(given.get("stop", ())):
            raise InputError("a stop string is empty; it would end every text at its beginning")
        if given.get("shortlist") and (given.get("forbidden_words") or given.get("processors")):
            raise InputError(
                "forbidden_words and processors see the whole vocabulary, a shortlist only a part "
                "of it; leave out one of them"
            )
        if given.get("beam_groups") == 1 and given.get("diversity", DIVERSITY) != DIVERSITY:
            raise InputError(
                f"diversity is {self.diversity} with beam_groups 1, where nothing differs; set "
                "beam_groups above 1, or leave diversity out"
            )
        if given.get("mbr"):
            _check_at_most(given, "n_best", "mbr")
        if "temperature" in given:
            _check_beam(given)

    def __repr__(self) -> str:
        """Show the options that are set."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        shown = [f"{name}={value!r}" for name, value in found.items() if value is not UNSET]
        return f"{type(self).__name__}({', '.join(shown)})"

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the options with these values; those that are None stay unset."""
        return cls(**{name: value for name, value in values.items() if value is not None})

    def given(self) -> dict[str, Any]:
        """Return the options that are set, by name; further fields of a subclass are left out."""
        options = (each.name for each in fields(self) if each.default is UNSET)
        found = {name: getattr(self, name) for name in options}
        return {name: value for name, value in found.items() if value is not UNSET}

    @staticmethod
    def implied(given: dict[str, Any], below: dict[str, Any]) -> dict[str, Any]:
        """Return the given options with what they imply for those of `below` that they replace.

        Sampling searches without a beam, a beam limits the number of translations taken from it,
        and `max_tokens` counts generated tokens.
        """
        found: dict[str, Any] = {"count_prompt": False} if "max_tokens" in given else {}
        if given.get("temperature"):
            found |= {"beam_size": 1, "beam_groups": 1, "diversity": DIVERSITY}
        elif "beam_size" in given and not (below | given).get("temperature"):
            widest = given["beam_size"]
            found |= {name: min(below.get(name, 0), widest) for name in ("n_best", "mbr")}
        return {name: value for name, value in found.items() if name in below} | given

    @property
    def draws(self) -> int:
        """Number of searches per sentence: one for each sampled translation."""
        return (self.mbr or self.n_best) if self.temperature > 0 else 1

    def new_tokens(self, prompt: int) -> int:
        """Return the maximum number of tokens to generate after a prompt of this many tokens."""
        return max(1, self.max_tokens - prompt) if self.count_prompt else self.max_tokens

    def prompt_room(self, context: int | None) -> tuple[int, int] | None:
        """Return the most tokens of several turns that leave room for an answer, and of one turn.

        None if nothing limits them. If one limit covers prompt and answer, or an answer could take
        the whole context, several turns get half of it; one turn may leave room for less than
        `max_tokens`.
        """
        if self.count_prompt:
            most = min(context or self.max_tokens, self.max_tokens)
            return most // 2, max(1, most - 1)
        if context is None:
            return None
        room = context - self.max_tokens
        return room if room > 0 else context // 2, context - 1


_ELEMENTS: Mapping[str, tuple[Callable[[Any], object], str]] = {
    "stop": (lambda each: isinstance(each, str), "strings"),
    "forbidden_words": (lambda e: isinstance(e, str) and e.strip(), "words, none of them blank"),
    "processors": (callable, "functions that take logits and prefixes and return logits"),
}


def _make_tuples(options: Decoding) -> None:
    """Turn iterables of such elements into tuples, and a single stop string into a tuple of it."""
    for name, (fits, what) in _ELEMENTS.items():
        if (given := getattr(options, name)) is UNSET:
            continue
        alone = isinstance(given, str) or not isinstance(given, Iterable)
        found = (given,) if alone else tuple(given)
        if alone > (name == "stop") or not all(map(fits, found)):
            raise InputError(f"{name} is {given!r}; give a tuple of {what}")
        object.__setattr__(options, name, found)


def _check_at_most(given: Mapping[str, Any], name: str, bound: str) -> None:
    if name in given and bound in given and given[name] > given[bound]:
        raise InputError(
            f"{name} is {given[name]} with {bound} {given[bound]}; it must be at most {bound}"
        )


def _check_beam(given: Mapping[str, Any]) -> None:
    beam_size, groups = given.get("beam_size", 1), given.get("beam_groups", 1)
    if (temperature := given["temperature"]) > 0:
        for name, value in {"beam_size": beam_size, "beam_groups": groups}.items():
            if value > 1:
                raise InputError(
                    f"{name} is {value} with temperature {temperature}; beam search does not "
                    f"sample: set temperature to 0, or {name} to 1"
                )
        return
    _check_at_most(given, "n_best", "beam_size")
    _check_at_most(given, "mbr", "beam_size")
    if beam_size % groups:
        raise InputError(
            f"beam_size is {beam_size} with beam_groups {groups}; it must be a multiple of "
            "beam_groups"
        )


def merged(*layers: Decoding) -> Decoding:
    """Return the options of all layers; earlier layers take precedence.

    The last layer has the defaults of a task: the task does not have the options that it leaves
    unset. A layer also sets what its options imply. Raises InputError for an option that the task
    does not have, and for options that exclude each other; TypeError for anything that is not
    options.
    """
    task = layers[-1]
    values = task.given()
    for layer in reversed(layers[:-1]):
        if not isinstance(layer, Decoding):
            raise TypeError(f"The options are {layer!r:.40}; give a Decoding, as Decoding(seed=1).")
        given = layer.given()
        if unknown := next((name for name in given if name not in values), None):
            written = (each.name for each in fields(task) if not each.metadata.get("python"))
            known = ", ".join(name for name in written if name in values)
            raise InputError(f"{unknown} is not an option of this task; its options are {known}")
        values |= task.implied(given, values)
    return type(task)(**values)


SEARCHING = Decoding(
    length_penalty=1.0,
    length_norm="gnmt",
    early_stopping="estimate",
    renormalize=False,
    min_length=0,
    repetition_penalty=1.0,
    no_repeat_ngrams=0,
    top_k=None,
    top_p=1.0,
    min_p=0.0,
    seed=0,
    forbidden_words=(),
    processors=(),
)
"""The options that translation and generation share, and their defaults."""

ONE_BEST = Decoding(
    n_best=1, mbr=0, beam_groups=1, diversity=DIVERSITY, temperature=0.0, shortlist=False
)
"""Options of a search for the single best-scoring translation, over the whole vocabulary."""

TRANSLATING = replace(
    SEARCHING,
    **ONE_BEST.given(),
    beam_size=5,
    max_length_factor=2.0,
    max_length_constant=20,
    terms="search",
    split_sentences=None,
    retry=True,
    max_src_tokens=256,
    max_batch_tokens=4096,
)
"""The options of translation, and their defaults."""

GENERATING = replace(
    SEARCHING,
    beam_size=1,
    max_tokens=256,
    count_prompt=False,
    temperature=0.8,
    stop=(),
    context=None,
    max_batch_tokens=16384,
)
"""The options of generation, and their defaults."""

READING = Decoding(max_batch_tokens=8192)
"""The options of an encoder, which reads texts and writes none."""


def wide_enough(given: Decoding, defaults: Decoding) -> Decoding:
    """Return a call's options with a beam wide enough for what the call asks for.

    A given beam is unchanged; samples need none.
    """
    chosen = given.given()
    if "beam_size" in chosen or chosen.get("temperature", defaults.temperature) > 0:
        return given
    width = max(defaults.beam_size, chosen.get("n_best", 1), chosen.get("mbr", 0))
    width += -width % chosen.get("beam_groups", defaults.beam_groups)
    return replace(given, beam_size=width)


def with_seed(*layers: Decoding) -> Decoding:
    """Merge the layers; if texts are sampled and no call gives a seed, draw one."""
    options = merged(*layers)
    if options.temperature > 0 and all(layer.seed is UNSET for layer in layers[:-1]):
        return replace(options, seed=secrets.randbelow(1_000_000))
    return options
