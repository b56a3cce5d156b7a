"""The cache as the layers see it."""

import torch

from dragoman.nn import Cache, GrowingStorage, KeyValue, NoPast


def test_the_length_is_what_every_layer_holds() -> None:
    """While a token passes through the layers, the place of that token does not move."""
    cache = Cache([GrowingStorage(), GrowingStorage()])
    new = KeyValue(torch.zeros(1, 1, 3, 2), torch.zeros(1, 1, 3, 2))
    lengths = [cache.length]
    for layer in (0, 1, 0, 1):
        cache.extend(layer, new)
        lengths.append(cache.length)
    assert lengths == [0, 0, 3, 3, 6]


def test_no_past_gives_back_its_argument() -> None:
    """Training runs the code of decoding, with nothing before the first token."""
    new = KeyValue(torch.zeros(1, 1, 3, 2), torch.zeros(1, 1, 3, 2))
    past = NoPast()
    assert past.extend(0, new) is new
    assert past.length == 0


def test_selecting_in_an_empty_cache_is_nothing() -> None:
    """A search may choose before the first token."""
    cache = Cache([GrowingStorage()])
    cache.select(torch.tensor([1, 0]))
    assert cache.length == 0
