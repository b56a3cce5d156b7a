"""The keys and values of beams, which never move.

The `W` hypotheses of a sentence share one store. At each position each of the `W` slots writes a
key and a value of its own, and a mask says for every hypothesis in which slot its ancestor stood.
When a beam is reordered the mask is, and the store stays as it is. All `W` queries of a sentence
meet all of its keys in one product, which reads the store once, as `W` products of a row would.

Axes beyond those of `dragoman.nn`: P places for sentences, R = P * W rows of places, C positions.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.nn import KeyValue

BLOCK = 32
"""Positions by which the part of a store that is attended to grows; those to come are hidden."""
CROWDED = 0.75
"""Share of places in use below which sentences move together."""


class BeamStore:
    """What the rows of some sentences have read so far, and where in the stores it stands."""

    def __init__(self, beam_size: int, stores: Sequence[KeyValue]) -> None:
        """Begin with no position; `stores` are as `empty_store` makes them, one for each layer."""
        self.length = 0
        """Positions that were read."""
        self.memory: list[KeyValue] = []
        """Keys and values for the cross-attention of each layer, `(P, K, S, d)`."""
        self.memory_mask: Tensor | None = None
        """What is added to the scores of cross-attention, `(P, 1, 1, 1, S)`."""
        self.beam_size = beam_size
        self.num_places, self.num_kv_heads = stores[0].k_BKSd.shape[:2]
        self._rows_N: Tensor | None = None
        self._stores = list(stores)
        like = stores[0].k_BKSd
        self._hidden = torch.finfo(like.dtype).min / 2
        shape = (self.num_places, beam_size, like.shape[2], beam_size)
        self._mask_PWCW = like.new_full(shape, self._hidden)
        own_WW = like.new_full((beam_size, beam_size), self._hidden)
        self._own_WW = own_WW.fill_diagonal_(0.0)

    # ------------------------------------------------------------ rows

    def select(self, rows_N: Tensor) -> None:
        """Make row `n` the continuation of the present row `rows_N[n]`.

        Each group of `W` stays in one sentence; sentences may be left out. Without beams
        (`W = 1`) rows may also change their order or be repeated.
        """
        width = self.beam_size
        places_R = rows_N if self._rows_N is None else self._rows_N[rows_N]
        kept_B = places_R[::width] // width
        ordered = width > 1 or bool((rows_N.diff() > 0).all())
        if len(kept_B) < CROWDED * self.num_places or not ordered:
            self._mask_PWCW = self._mask_of(places_R)
            self._move_together(kept_B)
            return
        if len(kept_B) < self.num_places:
            self._rows_N = (kept_B[:, None] * width + torch.arange(width)).flatten()
            places_R = torch.arange(self.num_places * width).index_copy_(0, self._rows_N, places_R)
        if width > 1:
            self._mask_PWCW = self._mask_of(places_R)

    def placed(self, x_NX: Tensor) -> Tensor:
        """Put rows at their places: `(R, X)`, with zeros at free ones."""
        if self._rows_N is None:
            return x_NX
        x_RX = x_NX.new_zeros(self.num_places * self.beam_size, x_NX.shape[1])
        return x_RX.index_copy_(0, self._rows_N, x_NX)

    def unplaced(self, x_RX: Tensor) -> Tensor:
        """Take rows from their places: `(N, X)`."""
        return x_RX if self._rows_N is None else x_RX[self._rows_N]

    def _mask_of(self, places_R: Tensor) -> Tensor:
        mask_RCW = self._mask_PWCW.flatten(0, 1).index_select(0, places_R)
        return mask_RCW.view(-1, *self._mask_PWCW.shape[1:])

    def _move_together(self, kept_P: Tensor) -> None:
        """Keep the sentences at these places and no free ones."""
        self.num_places = len(kept_P)
        self._rows_N = None
        for kvs in (self._stores, self.memory):
            kvs[:] = [KeyValue(*(part.index_select(0, kept_P) for part in kv)) for kv in kvs]
        if self.memory_mask is not None:
            self.memory_mask = self.memory_mask.index_select(0, kept_P)

    # ------------------------------------------------------------ positions

    @property
    def num_rows(self) -> int:
        """Rows of the batch, N."""
        return self.num_places * self.beam_size if self._rows_N is None else len(self._rows_N)

    def read_prompts(self, kvs: Sequence[KeyValue]) -> None:
        """Begin with prompts, which the slots of a sentence share: `(B, K, C, d)` each."""
        self.length = kvs[0].k_BKSd.shape[2]
        self._make_room()
        for store, kv in zip(self._stores, kvs, strict=True):
            for whole, part in zip(store, kv, strict=True):
                whole[:, :, : self.length, 0] = part
        self._mask_PWCW[:, :, : self.length, 0] = 0.0

    def begin_step(self) -> Tensor:
        """Make room for a position; return what is added to its scores, `(P, 1, 1, W, C * W)`."""
        self.length += 1
        self._make_room()
        self._mask_PWCW[:, :, self.length - 1] = self._own_WW
        return self._mask_PWCW[:, :, : self._met].flatten(2)[:, None, None]

    def append(self, layer: int, kv: KeyValue) -> KeyValue:
        """Write those of this step, `(P, K, W, d)`, and return all, `(P, K, C * W, d)`."""
        store = self._stores[layer]
        for whole, part in zip(store, kv, strict=True):
            whole[:, :, self.length - 1] = part
        return KeyValue(*(whole[:, :, : self._met].flatten(2, 3) for whole in store))

    @property
    def _met(self) -> int:
        """The positions that queries meet: all that were read, and hidden ones up to a block."""
        return -(-self.length // BLOCK) * BLOCK

    def _make_room(self) -> None:
        """Double the stores until they hold the block of the present length."""
        capacity = self._mask_PWCW.shape[2]
        if self._met <= capacity:
            return
        more = max(self._met, 2 * capacity) - capacity
        self._stores = [
            KeyValue(*(F.pad(part, (0, 0, 0, 0, 0, more)) for part in kv)) for kv in self._stores
        ]
        self._mask_PWCW = F.pad(self._mask_PWCW, (0, 0, 0, more), value=self._hidden)


def empty_store(shape: tuple[int, int, int, int], dtype: torch.dtype) -> KeyValue:
    """Make a layer's store for `(P, K, W, d)`: keys and values `(P, K, C, W, d)` of zeros.

    Zeros, since what is hidden is multiplied too, by a weight of 0.
    """
    places, heads, beam_size, head_dim = shape
    return KeyValue(*torch.zeros(2, places, heads, BLOCK, beam_size, head_dim, dtype=dtype))
