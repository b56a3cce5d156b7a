"""Words that no text may contain: forbidden by their letters, whatever their pieces.

A token is forbidden if the text after it would end with the word, or contain it, as a whole word.
So no later token has to repair anything, and rows are independent.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property

from torch import Tensor

from dragoman.decode import Prefixes
from dragoman.nn.cpu.ranking import IMPOSSIBLE
from dragoman.text.glossary import is_boundary
from dragoman.text.judging import exact
from dragoman.text.tokenizer import Tokenizer

_UNREADABLE = "\ufffd"
"""How a part of a character decodes."""


class ForbidWords:
    """A processor: no row comes to contain one of the words as a whole word.

    A longer word is allowed, but not in pieces of which the first ones form one of the words.
    """

    def __init__(self, tokenizer: Tokenizer, words: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        self._words = tuple(dict.fromkeys(word.strip() for word in words))
        self._reach = 4 * (1 + max(map(len, self._words)))  # a character has at most four bytes
        self._ends = dict[tuple[str, int], list[int]]()

    def __call__(self, logits_NV: Tensor, prefixes: Prefixes) -> Tensor:
        """Forbid in each row the tokens that would complete a word, and all that contain one."""
        logits_NV[:, self._whole] = IMPOSSIBLE
        ends_of = [[*self._completing(ids)] for ids in prefixes.ids_NL.tolist()]
        places = [(row, id_) for row, ends in enumerate(ends_of) for id_ in ends]
        if places:
            rows, ids = zip(*places, strict=True)
            logits_NV[list(rows), list(ids)] = IMPOSSIBLE
        return logits_NV

    def _completing(self, ids: list[int]) -> Iterator[int]:
        """Yield the tokens that would add a word to the text of these ids."""
        start = max(0, len(ids) - self._reach)
        while start > 0 and self._tokenizer.is_byte(ids[start]):
            start -= 1
        ids = ids[start:]
        text = self._after_word(ids)
        for word in self._words:
            for size in range(min(len(word), len(text) + 1)):
                begin = len(text) - size
                if text.endswith(word[:size]) and is_boundary(text + word[size:], begin):
                    yield from self._tokens_with(word, size)
        if text.endswith(_UNREADABLE):
            known = len(text.rstrip(_UNREADABLE))
            for id_ in self._parts:
                whole = self._after_word([*ids, id_])
                if any(end > known for word in self._words for _, end in exact(whole, word)):
                    yield id_

    def _tokens_with(self, word: str, size: int) -> list[int]:
        """Return the tokens that complete a word of which `size` letters are written."""
        if (word, size) not in self._ends:
            rest = word[size:]
            self._ends[word, size] = [
                id_
                for id_, text in enumerate(self._texts)
                if text.startswith(rest) and is_boundary(text, len(rest))
            ]
        return self._ends[word, size]

    @cached_property
    def _texts(self) -> list[str]:
        """What each token adds to a text."""
        return [self._after_word([id_]) for id_ in range(self._tokenizer.vocab_size)]

    @cached_property
    def _whole(self) -> list[int]:
        """The tokens that contain a word after something else, such as a space."""
        return [
            id_
            for id_, text in enumerate(self._texts)
            if any(start > 0 for word in self._words for start, _ in exact(text, word))
        ]

    @cached_property
    def _parts(self) -> list[int]:
        """The tokens that are part of a character, or begin or end with one."""
        return [id_ for id_, text in enumerate(self._texts) if _UNREADABLE in text]

    def _after_word(self, ids: Sequence[int]) -> str:
        """Return the text of ids that follow a word, with the space before them."""
        word, size = self._a_word
        return self._tokenizer.decode_rest([word, *ids])[size:]

    @cached_property
    def _a_word(self) -> tuple[int, int]:
        """A token that is a word, and how many letters it has."""
        decode = self._tokenizer.decode_rest
        texts = ((id_, decode([id_])) for id_ in range(self._tokenizer.vocab_size))
        return next(((id_, len(t)) for id_, t in texts if t.isalpha()), (0, len(decode([0]))))
