"""A pattern that reports the weights of another one while it attends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from dragoman.nn.cache import KeyValue, Storage
from dragoman.nn.dot_product import Scoring
from dragoman.nn.patterns.linear import Continued
from dragoman.nn.patterns.pattern import Pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording(Pattern):
    """A pattern that attends as `of` and calls `see` with the weights of each call, `(B, H, T, S)`.

    Assign it to an attention module of an `evaluation_view`, so that other threads do not use it.
    The weights come from the reference formula; the output is bit-identical to that of `of`.
    """

    of: Pattern
    """The recorded pattern."""
    see: Callable[[Tensor], object]
    """Called before each attention."""
    heads: Sequence[int] | None = None
    """The heads whose weights are computed, in this order; all by default."""
    read: list[KeyValue] = field(default_factory=list)
    """The keys and values of earlier calls, if a cache stores only their sum."""

    @property
    def is_causal(self) -> bool:
        """Whether no query sees a later key."""
        return self.of.is_causal

    @property
    def forgets(self) -> bool:
        """Whether its storage drops keys that no later query will see."""
        return self.of.forgets

    @property
    def is_local(self) -> bool:
        """Whether positions may have angles of their own."""
        return self.of.is_local

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor | None:
        """Return the mask of the recorded pattern."""
        return self.of.mask(num_queries, num_keys, device)

    def make_storage(self) -> Storage:
        """Make the storage of the recorded pattern."""
        return self.of.make_storage()

    def attend(self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring) -> Tensor:
        """Report the weights, then attend."""
        every = kv
        if isinstance(kv, Continued):
            self.read.append(kv)
            every = KeyValue(*(torch.cat(x, dim=2) for x in zip(*self.read, strict=True)))
        self.see(self._weights(q_BHTd, every, mask, scoring))
        return self.of.attend(q_BHTd, kv, mask, scoring)

    def _weights(
        self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, scoring: Scoring
    ) -> Tensor:
        """Return the weights of the chosen heads, each with its own keys, bias, decay and mask."""
        if self.heads is None:
            return self.of.weights(q_BHTd, kv, mask, scoring)
        heads = list(self.heads)
        kv_heads = [head * kv.k_BKSd.shape[1] // q_BHTd.shape[1] for head in heads]
        if mask is not None and mask.dim() > 2 and mask.shape[-3] > 1:
            mask = mask[..., heads, :, :]
        if (bias := scoring.bias) is not None:
            scoring = replace(scoring, bias=lambda distance_TS: bias(distance_TS)[heads])
        kv = KeyValue(*(x[:, kv_heads] for x in kv))
        return self.of.of_heads(kv_heads).weights(q_BHTd[:, heads], kv, mask, scoring)
