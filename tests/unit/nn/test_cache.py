"""The cache as the layers see it."""

import torch
from tests.calls import OperatorCalls

from dragoman.nn import Cache, GrowingStorage, KeyValue, RollingStorage, SlidingWindow


def test_selecting_in_an_empty_cache_is_nothing() -> None:
    """A search may select rows before the first token."""
    cache = Cache([GrowingStorage()])
    cache.select(torch.tensor([1, 0]))
    assert cache.length == 0


def test_a_window_keeps_what_can_be_seen() -> None:
    """A causal window keeps only the last keys; otherwise any later query may ask for a key."""
    x_BKLd = torch.zeros(1, 1, 5, 2)
    for causal, kept in ((True, 3), (False, 6)):
        storage = SlidingWindow(size=3, causal=causal).make_storage()
        storage.extend(KeyValue(x_BKLd, x_BKLd))
        seen = storage.extend(KeyValue(x_BKLd[:, :, :1], x_BKLd[:, :, :1]))
        assert seen.k_BKSd.shape[2] == kept


def test_one_question_is_asked_however_many_layers_there_are() -> None:
    """Moving rows are found once, for all layers and for keys and values."""
    cache = Cache([GrowingStorage(), RollingStorage(4), GrowingStorage()])
    new = KeyValue(*torch.randn(2, 3, 1, 5, 2))
    for layer in range(3):
        cache.extend(layer, new)
    with OperatorCalls() as calls:
        cache.select(torch.tensor([0, 2, 2]))
    questions = (torch.ops.aten.nonzero.default, torch.ops.aten.item.default)  # a GPU is waited for
    assert sum(call.function in questions for call in calls.seen) == 1
    none = KeyValue(new.k_BKSd[:, :, :0], new.v_BKSd[:, :, :0])
    moved = cache.extend(0, none)
    assert torch.equal(moved.k_BKSd, new.k_BKSd[[0, 2, 2]])
    assert torch.equal(moved.v_BKSd, new.v_BKSd[[0, 2, 2]])
