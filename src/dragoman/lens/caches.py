"""How much a decoder keeps in mind, token by token: the storages of the patterns themselves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from dragoman.lens.picture import blank, save
from dragoman.nn import Causal, KeyValue, LinearAttention, SlidingWindow, Weighting

if TYPE_CHECKING:
    from dragoman.nn import Pattern
    from dragoman.nn.cache import Storage

LENGTH = 512
NUM_HEADS = 8
HEAD_DIM = 64
SHOWN: tuple[tuple[str, Pattern, int], ...] = (
    ("full: 8 key-value heads", Causal(), 8),
    ("grouped: 2 key-value heads", Causal(), 2),
    ("one key-value head", Causal(), 1),
    ("window of 64", SlidingWindow(size=64), 8),
    ("linear", LinearAttention(), 8),
)


def stored_bytes(storage: Storage) -> int:
    """The bytes of the tensors that a storage holds now, with the room that it has reserved."""
    held = [value for value in vars(storage).values() if isinstance(value, torch.Tensor)]
    return sum(tensor.nbytes for tensor in held)


@torch.no_grad()
def cache_growth(pattern: Pattern, num_kv_heads: int, length: int) -> list[int]:
    """Decode `length` tokens with one layer's attention, 8 heads of 64, and weigh its storage.

    Returns the bytes behind each token, for one sentence in float32.
    """
    q_BHTd = torch.ones(1, NUM_HEADS, 1, HEAD_DIM)
    token = KeyValue(*torch.ones(2, 1, num_kv_heads, 1, HEAD_DIM))
    storage = pattern.make_storage()
    weighed = []
    for _ in range(length):
        pattern.attend(q_BHTd, storage.extend(token), None, Weighting(scale=HEAD_DIM**-0.5))
        weighed.append(stored_bytes(storage))
    return weighed


def plot_cache_growth(path: Path | str) -> Path:
    """Draw the bytes that one layer keeps while 512 tokens are decoded, for five layers.

    Full attention keeps every key and value; its store doubles when it is full, hence the stairs,
    and the dotted line is what is in use. Fewer key-value heads make it smaller by their number.
    A window stops growing at two windows, and linear attention keeps one matrix for each head
    from the first token on.
    """
    figure = blank(8.6, 4.2)
    axes = figure.subplots()
    tokens = range(1, LENGTH + 1)
    for name, pattern, num_kv_heads in SHOWN:
        kib = [weight / 1024 for weight in cache_growth(pattern, num_kv_heads, LENGTH)]
        axes.plot(tokens, kib, label=name, linewidth=2)
    token = 2 * NUM_HEADS * HEAD_DIM * torch.float32.itemsize / 1024
    axes.plot(tokens, [token * n for n in tokens], ":", color="0.4", label="full, in use")
    axes.set(xlabel="tokens decoded", ylabel="KiB for each layer and sentence")
    axes.set(xlim=(0, LENGTH), yscale="log")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=9, loc="upper left", ncols=2)
    axes.set_ylim(10, 10_000)
    return save(figure, path)
