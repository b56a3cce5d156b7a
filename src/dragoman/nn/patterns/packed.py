"""Packed documents: attention inside each document of a row, and none between them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.nn.cache import KeyValue, Storage
from dragoman.nn.mask import Documents
from dragoman.nn.patterns.dense import Pattern
from dragoman.nn.patterns.weighting import Weighting


@dataclass(frozen=True, slots=True)
class Packed:
    """`within`, document by document: the cost is the sum of what each document costs alone.

    A row that holds many short documents has no padding, and with this pattern no arithmetic
    between documents either. The layout of a row is data, so this value is made for each call.
    """

    within: Pattern
    """Who may see whom inside a document."""
    documents: Documents
    """How the row is divided."""

    @property
    def is_causal(self) -> bool:
        """Whether the pattern inside the documents is."""
        return self.within.is_causal

    @property
    def forgets(self) -> bool:
        """Whether the storage of the pattern inside the documents does."""
        return self.within.forgets

    def mask(self, num_queries: int, num_keys: int, device: torch.device) -> Tensor:
        """The same document, and visible inside it."""
        same = self.documents.mask(device)[-num_queries:]
        own = self.within.mask(num_queries, num_keys, device)
        return same if own is None else same & own

    def reference(
        self,
        q_BHTd: Tensor,
        k_BKSd: Tensor,
        v_BKSd: Tensor,
        mask: Tensor | None,
        weighting: Weighting | None,
    ) -> tuple[Tensor, Tensor]:
        """Compute the formula of the pattern inside the documents."""
        return self.within.reference(q_BHTd, k_BKSd, v_BKSd, mask, weighting)

    def attend(
        self, q_BHTd: Tensor, kv: KeyValue, mask: Tensor | None, weighting: Weighting
    ) -> Tensor:
        """Attend in each document by itself."""
        if mask is not None:
            raise ValueError("packed documents have no padding, so they take no mask")
        lengths = list(self.documents.lengths)
        parts = zip(*(x.split(lengths, dim=2) for x in (q_BHTd, *kv)), strict=True)
        outs = [self.within.attend(q, KeyValue(k, v), None, weighting) for q, k, v in parts]
        return torch.cat(outs, dim=2)

    def make_storage(self) -> Storage:
        """Decoding continues one document: the storage of the pattern inside it."""
        return self.within.make_storage()
