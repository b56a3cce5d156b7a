"""The keys and values of beams, which never move.

The `W` hypotheses of a sentence share one store. At each position each of the `W` slots writes a
key and a value of its own, and a mask says for every hypothesis in which slot its ancestor stood.
When a beam is reordered the mask is, and the store stays as it is. All `W` queries of a sentence
meet all of its keys in one product, which reads the store once, as `W` products of a row would.

Axes beyond those of `dragoman.nn`: P places for sentences, R = P * W rows of places, C positions.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.models.plan.products import Product, with_rows
from dragoman.nn import KeyValue

KeysValues = tuple[Tensor, Tensor]
"""Keys `(X, d, S)` and values `(X, S, d)` of X key-value heads of all places."""
BLOCK = 32
"""Positions by which the part of a store that is attended to grows; those to come are hidden."""
CROWDED = 0.75
"""Share of places in use below which sentences move together."""


class BeamStore:
    """What the rows of some sentences have read so far, and where in the stores it is."""

    def __init__(
        self, sizes: tuple[int, int, int, int], num_layers: int, dtype: torch.dtype
    ) -> None:
        """Begin with no position, for `(P, W, K, d)`.

        The stores are zeros, since what is hidden is multiplied too, by a weight of 0.
        """
        self.length = 0
        """Positions that were read."""
        self.logits_MV: Tensor | None = None
        """Memory for the logits of a step, to be used again."""
        self.output: Product | None = None
        """The output layer of some tokens only, if not all are wanted."""
        self.num_places, self.beam_size, self.num_kv_heads, head_dim = sizes
        self.memory: list[KeysValues] = []
        """Of the cross-attention of each layer."""
        self.memory_mask: Tensor | None = None
        """What is added to the scores of cross-attention, `(P, 1, 1, 1, S)`."""
        self._memory: list[Tensor] = []
        self._rows_N: Tensor | None = None
        shape = (2, self.num_places, self.num_kv_heads, BLOCK, self.beam_size, head_dim)
        self._stores = [torch.zeros(shape, dtype=dtype) for _ in range(num_layers)]
        self._met = 0
        self._views: list[KeysValues] = []
        self._hidden = torch.finfo(dtype).min / 2
        own_WW = torch.full((self.beam_size, self.beam_size), self._hidden, dtype=dtype)
        self._own_WW = own_WW.fill_diagonal_(0.0)
        mask_shape = (self.num_places, self.beam_size, BLOCK, self.beam_size)
        self._mask_PWCW = own_WW.new_full(mask_shape, self._hidden)

    def remember(self, memory: Sequence[Tensor], mask: Tensor | None) -> None:
        """Take the sources: `(2, P, K, S, d)` for each layer, and what is added to scores."""
        self._memory = list(memory)
        self.memory = [_heads_together(kv) for kv in memory]
        self.memory_mask = mask

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

    def placed(self, x_MX: Tensor) -> Tensor:
        """Put the rows of `(M, X)` at their places, `(R, X)`, with zeros at free ones."""
        if self._rows_N is None:
            places = self.num_places * self.beam_size
            return x_MX if len(x_MX) == places else x_MX[:places]
        x_RX = x_MX.new_zeros(self.num_places * self.beam_size, x_MX.shape[1])
        return x_RX.index_copy_(0, self._rows_N, x_MX[: len(self._rows_N)])

    def taken(self, x_RX: Tensor, rows: int) -> Tensor:
        """Take the rows from their places, and zeros after them: `(M, X)` with `rows` in all."""
        return with_rows(x_RX if self._rows_N is None else x_RX[self._rows_N], rows)

    def _mask_of(self, places_R: Tensor) -> Tensor:
        mask_RCW = self._mask_PWCW.flatten(0, 1).index_select(0, places_R)
        return mask_RCW.view(-1, *self._mask_PWCW.shape[1:])

    def _move_together(self, kept_P: Tensor) -> None:
        """Keep the sentences at these places and no free ones."""
        self.num_places = len(kept_P)
        self._rows_N = None
        self._replace_stores(lambda store: store.index_select(1, kept_P))
        self.remember(
            [kv.index_select(1, kept_P) for kv in self._memory],
            None if self.memory_mask is None else self.memory_mask.index_select(0, kept_P),
        )

    # ------------------------------------------------------------ positions

    @property
    def room(self) -> int:
        """Positions that can be read before the stores are doubled."""
        return self._mask_PWCW.shape[2] - self.length

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes of the stores and their mask, and of the keys and values of the sources."""
        stores = sum(store.nbytes for store in self._stores) + self._mask_PWCW.nbytes
        return stores, sum(kv.nbytes for kv in self._memory)

    def read_prompts(self, kvs: Sequence[KeyValue]) -> None:
        """Begin with prompts, which the slots of a sentence share: `(P, K, C, d)` each."""
        self.length = kvs[0].k_BKSd.shape[2]
        self._make_room()
        for store, kv in zip(self._stores, kvs, strict=True):
            for whole, part in zip(store, kv, strict=True):
                whole[:, :, : self.length, 0] = part
        self._mask_PWCW[:, :, : self.length, 0] = 0.0

    def begin_step(self, rows: int) -> Tensor:  # noqa: ARG002 -- as the other store has it
        """Make room for a position; return what is added to its scores, `(P, 1, 1, W, C * W)`."""
        self.length += 1
        self._make_room()
        self._mask_PWCW[:, :, self.length - 1] = self._own_WW
        return self._mask_PWCW[:, :, : self._met].flatten(2)[:, None, None]

    def append(self, layer: int, kv_RX: Tensor) -> KeysValues:
        """Write the keys and values of this step; return those of all positions and slots."""
        sizes = (self.num_places, self.beam_size, 2, self.num_kv_heads, -1)
        own = kv_RX.reshape(sizes).permute(2, 0, 3, 1, 4)
        self._stores[layer][:, :, :, self.length - 1] = own
        return self._views[layer]

    def _make_room(self) -> None:
        """Let queries meet all positions that were read, and hidden ones up to a block.

        Stores that are too small are doubled.
        """
        met = -(-self.length // BLOCK) * BLOCK
        if met == self._met:
            return
        self._met = met
        capacity = self._mask_PWCW.shape[2]
        if met > capacity:
            more = max(met, 2 * capacity) - capacity
            self._mask_PWCW = F.pad(self._mask_PWCW, (0, 0, 0, more), value=self._hidden)
            self._replace_stores(lambda store: F.pad(store, (0, 0, 0, 0, 0, more)))
        else:
            self._replace_stores(lambda store: store)

    def _replace_stores(self, make: Callable[[Tensor], Tensor]) -> None:
        """Make other stores of them, one after the other, so that few are there twice."""
        self._views = []
        for layer, store in enumerate(self._stores):
            self._stores[layer] = store = make(store)  # noqa: PLW2901 -- the old one must go
        views = [store[:, :, :, : self._met].flatten(3, 4) for store in self._stores]
        self._views = [_heads_together(view) for view in views]


def _heads_together(kv: Tensor) -> KeysValues:
    """View `(2, P, K, S, d)` as what products take: `(P * K, d, S)` and `(P * K, S, d)`."""
    k_XSd, v_XSd = kv.flatten(1, 2).unbind(0)
    return k_XSd.transpose(1, 2), v_XSd
