"""From prompts to ids, and from generated ids to text: piece by piece, and up to a stop string."""

from collections.abc import Iterable, Iterator, Sequence

from torch import Tensor

from dragoman.decode import Prefixes, Processor, SearchStep
from dragoman.nn.cpu.ranking import IMPOSSIBLE
from dragoman.tasks.lines import encode_each
from dragoman.text.tokenizer import Tokenizer


class PromptCodec:
    """How a model's prompts become ids, and how its output becomes text.

    A prompt begins a document, after bos or, if given, the ids `before` (a model of another library
    may have none). If `opening` is given, the prompt is in the middle of a document, after that
    text.
    """

    def __init__(
        self, tokenizer: Tokenizer, opening: str | None, before: Sequence[int] | None = None
    ) -> None:
        self._tokenizer = tokenizer
        self._opening = opening
        self._before = [tokenizer.bos_id] if before is None else list(before)

    def encode(
        self,
        prompts: Sequence[str],
        room: tuple[int, int] | None = None,  # noqa: ARG002
    ) -> list[list[int]]:
        """Return the ids of each prompt; only dialogues are cut to `room`.

        None for a prompt of which the tokenizer leaves nothing, and for an empty one with nothing
        before it.
        """
        if self._opening is not None:
            return self._tokenizer.encode_rest([self._opening + prompt for prompt in prompts])
        return [
            [*self._before, *ids] if ids or not prompt else []
            for prompt, ids in zip(prompts, self._tokenizer.encode_batch(prompts), strict=True)
        ]

    def encode_pairs(
        self, pairs: Iterable[tuple[str, str]]
    ) -> Iterator[tuple[list[int] | None, list[int] | None]]:
        """Yield the ids of prompts and of their continuations; None for what cannot be encoded."""
        for prompt, text in pairs:
            tokenizer, begins = self._tokenizer, self.begins_text(prompt)
            encode = tokenizer.encode_batch if begins else tokenizer.encode_rest
            yield encode_each(self.encode, [prompt])[0], encode_each(encode, [text])[0]

    def begins_text(self, prompt: str) -> bool:
        """Return whether the continuation of the prompt is the beginning of a text."""
        return self._opening is None and not prompt


class TextStream:
    """Text that grows token by token; what was returned is never taken back.

    Bytes are held back until their run ends (a character is several of them, and a run that is not
    UTF-8 decodes differently), and so is an end that may be the beginning of a stop string.
    """

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str], *, begins_text: bool) -> None:
        self._tokenizer = tokenizer
        self._stops = stops
        self._begins_text = begins_text
        self._pending: list[int] = []
        self._held = ""
        self._pushed = 0
        self.stopped = False

    def extend(self, known: Sequence[int]) -> str:
        """Return the text that has become certain, given all tokens known by now."""
        new, self._pushed = known[self._pushed :], max(self._pushed, len(known))
        return "".join(map(self.push, new))

    def push(self, token: int) -> str:
        """Return the text that this token makes certain."""
        self._pending.append(token)
        if self._tokenizer.is_byte(token):
            return ""
        return self._settle(self._take())

    def finish(self) -> str:
        """Return what is left when no more tokens come."""
        text = self._settle(self._take())
        rest, self._held = self._held, ""
        return text if self.stopped else text + rest

    def _take(self) -> str:
        ids, self._pending = self._pending, []
        if not ids:
            return ""
        decode = self._tokenizer.decode if self._begins_text else self._tokenizer.decode_rest
        self._begins_text = False
        return decode(ids)

    def _settle(self, text: str) -> str:
        """Return the certain part of the held and the new text."""
        if self.stopped:
            return ""
        text = self._held + text
        self._held = ""
        if (certain := cut_at(text, self._stops)) is not None:
            self.stopped = True
            return certain
        held = max((_overlap(text, stop) for stop in self._stops), default=0)
        cut = len(text) - held
        self._held = text[cut:]
        return text[:cut]


def stop_at(
    tokenizer: Tokenizer, eos_id: int, stops: Sequence[str], *, begins_text: bool
) -> Processor:
    """End a row with its next token if its text has come to contain one of the strings.

    The end has probability 1, so that the row's log-probability is that of the text.
    """
    reach = 4 * max(map(len, stops))  # a character has at most four bytes

    def tail(ids: list[int]) -> str:
        """Return the end of the text, long enough for any string; it begins with a whole run."""
        start = max(0, len(ids) - reach)
        while start > 0 and tokenizer.is_byte(ids[start]):
            start -= 1
        begins = begins_text and start == 0
        return (tokenizer.decode if begins else tokenizer.decode_rest)(ids[start:])

    def process(logits_NV: Tensor, prefixes: Prefixes) -> Tensor:
        texts = map(tail, prefixes.ids_NL.tolist())
        rows = [n for n, text in enumerate(texts) if cut_at(text, stops) is not None]
        if rows:
            logits_NV[rows] = IMPOSSIBLE
            logits_NV[rows, eos_id] = 0.0
        return logits_NV

    return process


def end_by(ends: Sequence[int], eos_id: int, *, summed: bool) -> Processor:
    """Let eos represent any of several tokens that end a text.

    It gets the best of their logits, so that the most probable token stays the same; for sampled
    texts (`summed`), their total probability. The beam of transformers handles several by itself.
    """
    ids = list(ends)

    def process(logits_NV: Tensor, prefixes: Prefixes) -> Tensor:  # noqa: ARG001 -- required by the interface
        ends_NE = logits_NV[:, ids]
        ends_N = ends_NE.logsumexp(-1) if summed else ends_NE.amax(-1)
        logits_NV[:, ids] = IMPOSSIBLE
        logits_NV[:, eos_id] = ends_N
        return logits_NV

    return process


def known_ids(step: SearchStep, *, drafting: bool) -> dict[int, Sequence[int]]:
    """Return the tokens of each prompt that are certain after a step; a beam has only drafts."""
    known: dict[int, Sequence[int]] = {n: best[0].ids for n, best in step.finished.items() if best}
    if not drafting:
        numbers, rows = step.prefixes.sentence_N.tolist(), step.prefixes.ids_NL.tolist()
        known = dict(zip(numbers, rows, strict=True)) | known
    return known


def cut_at(text: str, stops: Sequence[str]) -> str | None:
    """Return the text before the first stop string; None if there is none."""
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(places)] if places else None


def _overlap(text: str, stop: str) -> int:
    """Return how many letters at the end of the text are the beginning of the string."""
    sizes = range(min(len(text), len(stop) - 1), 0, -1)
    return next((size for size in sizes if text.endswith(stop[:size])), 0)
