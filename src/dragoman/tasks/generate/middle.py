r"""Fill in the middle: texts reordered so that a decoder can write between two parts.

A text is cut at two places into a prefix, a middle and a suffix, and learned in the order

.. math:: \text{<prefix>}\; P \;\text{<suffix>}\; S \;\text{<middle>}\; M \;\text{</s>}

(Bavarian et al., 2022, section 3, "PSM"). Model and loss are unchanged. The cuts are made within
what fits into one row ("context-level" in the paper), and between tokens, not characters: a prompt
should end where a token does, as at the end of a line.
"""

import numpy as np

from dragoman.data.dataset import Ragged
from dragoman.text.tokenizer import Tokenizer

SENTINELS = ("<prefix>", "<suffix>", "<middle>")
"""The special tokens before each part, which the tokenizer must have."""


class Middle:
    """The ids that mark the parts."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Look them up. Raises InputError for a tokenizer that was trained without them."""
        self.prefix_id, self.suffix_id, self.middle_id = map(tokenizer.special_id, SENTINELS)
        self.eos_id = tokenizer.eos_id

    def prompt(self, prefix: list[int], suffix: list[int]) -> list[int]:
        """Return the ids after which the middle is to be generated."""
        return [self.prefix_id, *prefix, self.suffix_id, *suffix, self.middle_id]

    def rearranged(
        self, texts: Ragged, length: int, share: float, rng: np.random.Generator
    ) -> Ragged:
        """Cut texts into parts of at most `length` ids; rearrange each with probability `share`.

        A rearranged part has four more ids. Each of the three pieces may be as long as any other;
        prefix and suffix have at least one id, so bos and eos of a text stay at its ends.
        """
        parts: list[list[int]] = []
        for number in range(len(texts)):
            text = texts[number].tolist()
            for start in range(0, len(text), length):
                ids = text[start : start + length]
                if len(ids) > 1 and rng.random() < share:
                    first, last = sorted(rng.integers(1, len(ids), 2).tolist())
                    middle = [*ids[first:last], self.eos_id]
                    ids = self.prompt(ids[:first], ids[last:]) + middle
                parts.append(ids)
        return Ragged.of(parts)
