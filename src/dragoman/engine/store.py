"""The keys and values of beams, which never move.

The `W` hypotheses of a sentence share one store, in which each position has `W` slots. Each row has
a table of its ancestors' slots, and the compiled `attend` reads only these; reordering a beam
reorders the table. Sentences that end leave their place empty.

Axes in addition to those of `dragoman.nn`: P places for sentences, C positions, M rows.
"""

import ctypes
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from dragoman.engine.products import Product
from dragoman.engine.program import Program
from dragoman.nn import KeyValue, MultiHeadAttention
from dragoman.nn.cpu.native import Ahead, compiled, fields
from dragoman.nn.position.scheme import NO_POSITIONS, Angles, PositionInfo

BLOCK = 32
"""Initial number of positions of a store."""
LANES = 16
"""Number of sums that `native.c` computes side by side."""


class _Reads(ctypes.Structure):
    """`struct Store` of `native.c`: where each row reads from."""

    _fields_ = fields(
        "place slot lengths cosine sine bias seen",
        "slot_stride length rows heads kv_heads dim capacity slots adjacent first_seen num_seen",
        "cap",
    )


class Heads(NamedTuple):
    """The number and size of attention heads, and the bound of their scores."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    soft_cap: float | None

    @classmethod
    def of(cls, attention: MultiHeadAttention) -> Self:
        """Return the heads of a module."""
        return cls(
            attention.num_heads, attention.num_kv_heads, attention.head_dim, attention.soft_cap
        )

    def reads(self, slots: int) -> _Reads:
        """Create a `struct Store` with this many slots per position."""
        return _Reads(
            slots=slots,
            heads=self.num_heads,
            kv_heads=self.num_kv_heads,
            dim=self.head_dim,
            cap=self.soft_cap or 0.0,
        )


class Sources:
    """Source sentences: each row attends to one, and any number of rows may share one."""

    def __init__(self, heads: Heads, mask_PS: Tensor) -> None:
        """Create sources; the mask is true at tokens, which come first."""
        self.size = mask_PS.shape
        self._lengths_P = mask_PS.sum(dim=1, dtype=torch.int32)
        length = -(-mask_PS.shape[1] // LANES) * LANES
        self._width = heads.num_heads * heads.head_dim
        self._reads = heads.reads(slots=1)
        self._reads.length = self._reads.capacity = length
        self.seen_NHS = torch.empty(0)
        """The attention weights of the last step, if they are watched."""

    def watch(self, rows: int, head: int | None) -> None:
        """Record the weights of one head, or of all, for up to `rows` rows, in `seen_NHS`."""
        self._reads = _Reads.from_buffer_copy(self._reads)
        first, count = (0, self._reads.heads) if head is None else (head, 1)
        self.seen_NHS = torch.zeros(rows, count, self._reads.length, dtype=torch.float32)
        self._reads.first_seen, self._reads.num_seen = first, count
        self._reads.seen = self.seen_NHS.data_ptr()

    @property
    def at(self) -> int:
        """The address of `struct Store`."""
        return ctypes.addressof(self._reads)

    def of_each_token(self) -> Self:
        """Let each token of the sentences attend to its own sentence."""
        places, length = self.size
        self.rows_at(torch.arange(places, dtype=torch.int32).repeat_interleave(length))
        return self

    def rows_at(self, place_N: Tensor) -> None:
        """Let row `n` attend to the sentence at `place_N[n]` (int32) from now on."""
        self._place_N = place_N
        self._reads.place, self._reads.rows = place_N.data_ptr(), len(place_N)
        self._reads.lengths = self._lengths_P.data_ptr()

    @cached_property
    def memory(self) -> tuple[Tensor, Tensor]:
        """Memory for keys and values, which one layer after another uses."""
        return self.empty()

    def empty(self) -> tuple[Tensor, Tensor]:
        """Allocate memory for what `laid_out` returns, with zeros where there is no position."""
        heads, reads = self._reads.kv_heads, self._reads
        shape = len(self._lengths_P), heads, reads.dim, reads.capacity
        k_PKdS = torch.zeros(shape, dtype=torch.float32)
        return k_PKdS, k_PKdS.new_zeros(*shape[:2], *shape[:1:-1])

    def select(self, places_P: Tensor) -> None:
        """Keep only the sentences at these places."""
        self._lengths_P = self._lengths_P[places_P]

    def laid_out(self, kv: KeyValue) -> tuple[Tensor, Tensor]:
        """Return keys `(P, K, d, S)`, so that registers hold positions; values `(P, K, S, d)`."""
        k_PKSd, v_PKSd = kv.k_BKSd.float(), kv.v_BKSd.float()
        if missing := -k_PKSd.shape[2] % LANES:
            k_PKSd, v_PKSd = (F.pad(x_PKSd, (0, 0, 0, missing)) for x_PKSd in (k_PKSd, v_PKSd))
        return k_PKSd.transpose(2, 3).contiguous(), v_PKSd.contiguous()

    def attend(self, k_PKdS: Tensor, v_PKSd: Tensor, q_MX: Tensor) -> Tensor:
        """Attend from each row, whose queries come first in `X`; return `(M, H * d)`."""
        return _attend(self._reads, (k_PKdS, v_PKSd), q_MX, self._width)


class BeamStore:
    """The keys and values that the rows of some sentences have read, and their slots."""

    def __init__(self, heads: Heads, size_PW: tuple[int, int], layers: int) -> None:
        """Start with no positions."""
        self.output: Product | None = None
        """The output layer for a subset of the tokens, if not all are wanted."""
        places, self.beam_size = size_PW
        self._width = heads.num_heads * heads.head_dim
        self.most_rows = places * self.beam_size
        """Maximum number of rows of a step."""
        self.uneven = True
        """Whether sentences may have different numbers of rows, up to `W`."""
        self.program: Program | None = None
        """The program of a step with these stores; empty until it is recorded (again)."""
        shape = (places, heads.num_kv_heads, BLOCK, self.beam_size, heads.head_dim)
        self._stores = [
            (torch.empty(shape, dtype=torch.float32), torch.empty(shape, dtype=torch.float32))
            for _ in range(layers)
        ]
        self._memory: list[tuple[Tensor, Tensor]] = []
        self._sources: Sources | None = None
        self._watched: tuple[int, Sources] | None = None
        """The watched layer, and the sources that it reads, which record its weights."""
        self._head: int | None = None
        self._place_N = torch.arange(places, dtype=torch.int32).repeat_interleave(self.beam_size)
        self._own_N = torch.arange(self.beam_size, dtype=torch.int32).repeat(places)
        self._slots_NC = torch.zeros(self.most_rows, BLOCK, dtype=torch.int32)
        self._reordered_NC = self._slots_NC[:0]
        """Memory in which compiled code reorders that table."""
        self._prefixes = heads.reads(slots=self.beam_size)
        self._turned_locally: tuple[Tensor, ...] = ()
        self.before = NO_POSITIONS
        """The angles of this step, if queries and keys are rotated before `attend`."""

    def remember(self, memory: list[tuple[Tensor, Tensor]], sources: Sources) -> None:
        """Store the sources' keys and values for each layer, already laid out."""
        self._sources, self._memory = sources, memory

    def watch(self, layer: int, head: int | None) -> None:
        """Let steps record the weights of a layer's head, or the mean of all, for `attended`."""
        if self._sources is not None:
            self.program, self._head = None, head
            sources = copy(self._sources)
            sources.watch(self.most_rows, head)
            self._watched = layer % len(self._stores), sources

    def attended(self) -> Tensor | None:
        """Return what each row attended to in the last step, `(N, S)`; None if not watched."""
        if self._watched is None:
            return None
        seen_NHS = self._watched[1].seen_NHS[: len(self._place_N)]
        return seen_NHS[:, 0] if seen_NHS.shape[1] == 1 else seen_NHS.mean(1)

    def select(self, rows_N: Tensor) -> None:
        """Make row `n` the continuation of the current row `rows_N[n]`.

        Single rows of a sentence may be dropped: a row's slot is its index among those that remain.
        """
        if self.beam_size > 1:
            self._slots_NC = self._slots_NC.index_select(0, rows_N)
        elif bool((rows_N.diff() <= 0).any()):  # two rows may come from one
            self._move(self._place_N[rows_N])
            return
        before_N, self._place_N = self._place_N, self._place_N.index_select(0, rows_N)
        if self.beam_size > 1 and not torch.equal(before_N, self._place_N):
            first_N = torch.searchsorted(self._place_N, self._place_N)
            self._own_N = (torch.arange(len(first_N)) - first_N).int()

    def _move(self, places_N: Tensor) -> None:
        """Copy the sentences at these places, each to its own place."""
        self.program, self.most_rows = None, len(places_N)
        self._stores = [_taken(kv, places_N) for kv in self._stores]
        self._memory = [_taken(kv, places_N) for kv in self._memory]
        if self._sources is not None:
            self._sources.select(places_N)
        if self._watched is not None:
            self.watch(self._watched[0], self._head)
        self._place_N = torch.arange(len(places_N), dtype=torch.int32)

    @property
    def length(self) -> int:
        """Number of positions read so far."""
        return int(self._prefixes.length)

    @property
    def rows(self) -> int:
        """Number of rows of the next step."""
        return len(self._place_N)

    @property
    def room(self) -> int:
        """Number of positions that can be read before the stores are doubled."""
        return self._slots_NC.shape[1] - self.length

    @property
    def nbytes(self) -> tuple[int, int]:
        """Bytes of the stores and their table, and of the sources' keys and values."""
        stores = sum(k.nbytes + v.nbytes for k, v in self._stores) + self._slots_NC.nbytes
        return stores, sum(k.nbytes + v.nbytes for k, v in self._memory)

    def read_prompts(self, kvs: Sequence[KeyValue]) -> None:
        """Start with prompts, which the slots of a sentence share: `(P, K, C, d)` each."""
        self._prefixes.length = kvs[0].k_BKSd.shape[2]
        self._make_room()
        for store, kv in zip(self._stores, kvs, strict=True):
            for whole, part in zip(store, kv, strict=True):
                whole[:, :, : self.length, 0] = part

    def skip(self, positions: int) -> None:
        """Continue as if so many positions had been read, to find out what comes after them."""
        self._prefixes.length += positions

    def begin_step(self, rows: int) -> None:
        """Make room for a position, which each row stores in its own slot.

        Raises ValueError for a wrong number of rows: compiled code would read beyond them.
        """
        if rows != len(self._place_N):
            raise ValueError(
                f"{rows} tokens for {len(self._place_N)} rows; select those that continue"
            )
        self._prefixes.length += 1
        self._make_room()
        if self.beam_size > 1:
            self._slots_NC[:, self.length - 1] = self._own_N
        self._point()

    def _point(self) -> None:
        """Point compiled code to the data of the current rows."""
        if self.beam_size > 1:
            self._prefixes.slot = self._slots_NC.data_ptr()
        self._prefixes.slot_stride = self._prefixes.capacity = self._slots_NC.shape[1]
        self._prefixes.place, self._prefixes.rows = self._place_N.data_ptr(), len(self._place_N)
        for sources in (self._sources, *(self._watched or ())[1:]):
            if sources is not None:
                sources.rows_at(self._place_N)

    def tell(self, ahead: Ahead) -> None:
        """Tell `ahead` where the prefixes are."""
        self._point()
        ahead.store = ctypes.addressof(self._prefixes)
        if self.beam_size > 1:
            if self._reordered_NC.shape != self._slots_NC.shape:
                self._reordered_NC = torch.empty_like(self._slots_NC)
            ahead.slots, ahead.own = self._slots_NC.data_ptr(), self._own_N.data_ptr()
            ahead.reordered = self._reordered_NC.data_ptr()

    def place(self, info: PositionInfo) -> None:
        """Let `attend` rotate and bias this step, whose position has been begun, by `info`."""
        self._turn_by(info.angles)
        if info.bias is not None:
            self._bias_HC = info.bias(torch.arange(1 - self.length, 1)[None]).flatten(1).float()
            self._bias_HC = self._bias_HC.contiguous()
            self._prefixes.bias = self._bias_HC.data_ptr()

    def _turn_by(self, angles: Angles | None) -> None:
        """Let `attend` rotate the queries and keys of this step, unless a norm follows or only a
        share of each head is rotated.
        """
        self.before, self._prefixes.cosine, self._turned_locally = NO_POSITIONS, None, ()
        if angles is None:
            return
        if angles.before_norm or 2 * angles.cos_Lp.shape[-1] < self._prefixes.dim:
            self.before = PositionInfo(angles)
            return
        self._turned = _parts(angles)
        self._turned_locally = _parts(angles.local) if angles.local else ()
        self._prefixes.cosine, self._prefixes.sine = (part.data_ptr() for part in self._turned)
        self._prefixes.adjacent = angles.pairing == "adjacent"

    def _make_room(self) -> None:
        capacity = self._slots_NC.shape[1]
        if self.length <= capacity:
            return
        if self.program is not None:
            self.program.clear()
        more = max(self.length, 2 * capacity) - capacity
        self._slots_NC = F.pad(self._slots_NC, (0, more))
        for layer, kv in enumerate(self._stores):
            self._stores[layer] = _with_room(kv, more)

    def reads(self, layer: int, *, own: bool) -> tuple[int, tuple[Tensor, Tensor]]:
        """Return the address of the `struct Store` that a step reads by, and keys and values.

        These are the prefixes' or, without `own`, the sources'.
        """
        if own:
            return ctypes.addressof(self._prefixes), self._stores[layer]
        return self._read_by(layer).at, self._memory[layer]

    def attend(self, layer: int, projected_MX: Tensor, window: int | None = None) -> Tensor:
        """Append the keys and values of this step and attend to the prefixes; return `(M, H * d)`.

        `X` contains queries, keys and values, side by side; queries may be rotated in place. With a
        window, only that many positions are read, this one among them.
        """
        store, reads, skipped = self._stores[layer], self._prefixes, 0
        if window is not None:
            reads, skipped = _Reads.from_buffer_copy(reads), max(0, self.length - window)
            reads.length -= skipped
            if reads.slot is not None:
                reads.slot += skipped * self._slots_NC.element_size()
            if self._turned_locally:
                reads.cosine, reads.sine = (part.data_ptr() for part in self._turned_locally)
        skipped *= self.beam_size * store[0].shape[-1] * store[0].element_size()
        return _attend(reads, store, projected_MX, self._width, own=True, skipped=skipped)

    def attend_to_source(self, layer: int, q_MX: Tensor) -> Tensor:
        """Attend to the source of each row's sentence; return `(M, H * d)`."""
        return self._read_by(layer).attend(*self._memory[layer], q_MX)

    def _read_by(self, layer: int) -> Sources:
        if self._watched is not None and self._watched[0] == layer:
            return self._watched[1]
        if self._sources is None:
            raise ValueError("there are no sources to attend to")
        return self._sources


def _parts(angles: Angles) -> tuple[Tensor, ...]:
    return angles.cos_Lp.float().contiguous(), angles.sin_Lp.float().contiguous()


def _attend(
    reads: _Reads,
    keys_values: tuple[Tensor, Tensor],
    q_MX: Tensor,
    width: int,
    *,
    own: bool = False,
    skipped: int = 0,
) -> Tensor:
    """Call `attend` of `native.c`; with `own`, keys and values follow the queries.

    `skipped` are the bytes of the first positions, which are not read.
    """
    rows, (given, stride), dtype = reads.rows, q_MX.shape, q_MX.dtype
    if given < rows:
        raise ValueError(f"{given} queries for {rows} rows")
    q_MX = q_MX.float().contiguous()
    out_MX = q_MX.new_empty(given, width)
    if given > rows:
        out_MX[rows:] = 0.0
    (k, v), queries = keys_values, q_MX.data_ptr()
    behind = queries + q_MX.element_size() * width if own else None
    where = ctypes.byref(reads), k.data_ptr() + skipped, v.data_ptr() + skipped, queries, behind
    compiled().attend(*where, stride, out_MX.data_ptr())
    return out_MX.to(dtype)


def _with_room(kv: tuple[Tensor, Tensor], more: int) -> tuple[Tensor, Tensor]:
    """Return keys and values in larger memory; pages without content are not touched."""
    k, v = (each.new_empty(*each.shape[:2], each.shape[2] + more, *each.shape[3:]) for each in kv)
    k[:, :, :-more], v[:, :, :-more] = kv
    return k, v


def _taken(kv: tuple[Tensor, Tensor], places_N: Tensor) -> tuple[Tensor, Tensor]:
    k, v = kv
    return k.index_select(0, places_N), v.index_select(0, places_N)
