"""What `dragoman inspect MODEL TEXT` looks at: the task runs, watched, and the lens draws up."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.decoding import ONE_BEST, Decoding, merged
from dragoman.errors import InputError

if TYPE_CHECKING:
    from dragoman.folder.opening import ModelFolder as Opened
    from dragoman.lens.inspection import Inspection
    from dragoman.lens.trace import Wanted
    from dragoman.models import EncoderOnlyConfig
    from dragoman.text.tokenizer import Tokenizer

MAX_TOKENS = 16
"""Default maximum of generated tokens: each is a row to look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The options of the command; None if not given. Layers and heads are counted from 0."""

    beam_size: int | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None


OPTIONS = {
    "encoder-decoder": {"beam_size"},
    "decoder-only": {"max_tokens", "temperature", "seed"},
    "encoder-only": set[str](),
}
"""Which options a kind of model has, beside layers and heads."""


def inspect_folder(folder: "Opened", text: str, choices: Choices) -> "Inspection":
    """Look at what a model does with a text.

    Raises InputError for an empty text, one that is longer than what the model reads at once, and
    an option that is not for its kind.
    """
    from dragoman.lens.trace import Wanted
    from dragoman.models import DecoderOnlyConfig, EncoderDecoderConfig

    _check(folder, choices)
    wanted = Wanted(layers=choices.layers, heads=choices.heads)
    match folder.config.model:
        case EncoderDecoderConfig():
            return _translation(folder, wanted, text, choices)
        case DecoderOnlyConfig():
            return _continuation(folder, wanted, text, choices)
        case reader:
            return _reading(folder, wanted, text.strip(), reader)


def _check(folder: "Opened", choices: Choices) -> None:
    """Raise InputError for an option of another kind, and a layer or head that does not exist."""
    from dragoman.lens.trace import attentions

    kind = folder.config.model.kind
    for name in sorted(set[str]().union(*OPTIONS.values()) - OPTIONS[kind]):
        if getattr(choices, name) is not None:
            option = "--" + name.replace("_", "-")
            raise InputError(f"{folder.path} is {kind}, which has no {option}; leave it out.")
    found = attentions(folder.model).values()
    heads = max(modules[0].num_heads for modules in found)
    asked = (("layer", choices.layers, max(map(len, found))), ("head", choices.heads, heads))
    for what, numbers, count in asked:
        for number in numbers or ():
            if not 0 <= number < count:
                there = f"{what}s are 0 to {count - 1}" if count > 1 else f"only {what} is 0"
                raise InputError(f"{folder.path} has no {what} {number}; its {there}.")


def _too_long(folder: "Opened", length: int, most: int) -> InputError:
    return InputError(
        f"The text has {length} tokens and {folder.path} reads at most {most} at once; "
        "give a part of it, such as one sentence."
    )


def _translation(folder: "Opened", wanted: "Wanted", text: str, choices: Choices) -> "Inspection":
    from dragoman.lens.inspecting import ALTERNATIVES, Searched, inspect_translation
    from dragoman.lens.search import Observed
    from dragoman.tasks.lines import one_line
    from dragoman.tasks.options import strategy_of
    from dragoman.tasks.translate.translator import Translator

    translator = Translator.of(folder)
    given = Decoding.of({"length_norm": "gnmt", "beam_size": choices.beam_size})  # the paper's
    options = merged(given, ONE_BEST, translator.options)
    text = text.strip()
    ids = folder.src_tokenizer.encode(text)
    if len(ids) > options.max_src_tokens:
        raise _too_long(folder, len(ids), options.max_src_tokens)
    notes = Observed(strategy=strategy_of(options), alternatives=ALTERNATIVES)
    best = translator.watch(ids, options, notes)[0]
    found = Searched(notes=notes, best=best, text=one_line(folder.tgt_tokenizer.decode(best.ids)))
    return inspect_translation(folder, wanted, text, ids, found)


def _continuation(folder: "Opened", wanted: "Wanted", text: str, choices: Choices) -> "Inspection":
    from dragoman.lens.inspecting import ALTERNATIVES, Searched, inspect_continuation
    from dragoman.lens.search import Observed
    from dragoman.tasks.generate.generator import Generator
    from dragoman.tasks.options import strategy_of

    generator = Generator.of(folder)
    prompt_ids = generator.encode(text)
    room = MAX_TOKENS if choices.max_tokens is None else choices.max_tokens
    if (context := generator.context) is not None:
        if len(prompt_ids) >= context:
            raise _too_long(folder, len(prompt_ids), context - 1)
        room = min(room, context - len(prompt_ids))
    given = {"max_tokens": room, "temperature": choices.temperature, "seed": choices.seed}
    options = merged(Decoding.of(given), generator.options)
    notes = Observed(strategy=strategy_of(options, (0,)), alternatives=ALTERNATIVES)
    best = generator.watch(text, options, notes)
    found = Searched(notes=notes, best=best, text=text + best.text)
    return inspect_continuation(folder, wanted, prompt_ids, found, generator.never)


def _reading(
    folder: "Opened", wanted: "Wanted", text: str, config: "EncoderOnlyConfig"
) -> "Inspection":
    from dragoman.folder.format import ReadingDefaults
    from dragoman.lens.inspecting import inspect_reading
    from dragoman.models.heads import MaskedLanguageHead, TaggingHead

    most = (folder.config.reading or ReadingDefaults()).max_tokens
    tokenizer = folder.src_tokenizer
    tags: list[str | None] = []
    match config.head:
        case TaggingHead():
            inner, found = _tagged(folder, text)
            tags = [None, *found, None]
        case MaskedLanguageHead():
            inner = _with_gaps(tokenizer, text)
        case _:
            inner = tokenizer.encode(text)
    if len(inner) > most:
        raise _too_long(folder, len(inner), most)
    ids = [tokenizer.bos_id, *inner, tokenizer.eos_id]
    return inspect_reading(folder, wanted, text, ids, config.head, tags)


def _tagged(folder: "Opened", text: str) -> tuple[list[int], list[str | None]]:
    """The ids that a tagger reads, and at the first one of each word its tag."""
    from dragoman.tasks.tag.tagger import Tagger

    words = Tagger.of(folder).tag(text).words
    places = [(word.start, word.end) for word in words]
    ((ids, starts),) = folder.src_tokenizer.encode_words([text], [places])
    tags: list[str | None] = [None] * len(ids)
    for word, start in zip(words, starts, strict=True):
        if start is not None:
            tags[start] = tags[start] or word.tag
    return ids, tags


def _with_gaps(tokenizer: "Tokenizer", text: str) -> list[int]:
    """The ids of a text in which "<mask>" marks a gap; a gap is a piece with its space."""
    from dragoman.text.tokenizer import MASK

    first, *rest = text.split(MASK)
    ids = tokenizer.encode(first.rstrip())
    for part in rest:
        ids += [tokenizer.special_id(MASK), *tokenizer.encode_rest([part.rstrip()])[0]]
    return ids
