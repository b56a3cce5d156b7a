"""Growth of the tensors of each pattern, measured by the results of the operators."""

import pytest
import torch
from tests.calls import Call, OperatorCalls
from torch import Tensor

from dragoman.nn import (
    ALiBi,
    Causal,
    Dropout,
    Fixed,
    Full,
    KeyValue,
    LinearAttention,
    Longformer,
    Pattern,
    Scoring,
    SlidingWindow,
    Strided,
    reference_attention,
)

PLAIN = Scoring(scale=1.0)
CAPPED = Scoring(scale=1.0, soft_cap=5.0)
DROPPED = Scoring(scale=1.0, dropout=Dropout(0.1))


class Largest(OperatorCalls):
    """Records the size of the largest tensor that any operator made, backward included."""

    numbers = 0

    def see(self, call: Call) -> None:
        """Record the size but not the tensors, which would fill the memory."""
        for made in call.result if isinstance(call.result, tuple | list) else (call.result,):
            if isinstance(made, Tensor):  # of an expanded tensor, only what is stored
                self.numbers = max(self.numbers, made.untyped_storage().nbytes() // 4)


def largest(
    pattern: Pattern, length: int, mask: Tensor | None = None, scoring: Scoring = PLAIN
) -> int:
    """Run forward and backward in float32 with one head of width 2; return the largest size."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, length, 2, requires_grad=True) for _ in range(3))
    found = Largest()
    with found:
        pattern.attend(q, KeyValue(k, v), mask, scoring).sum().backward()
    return found.numbers


def padding(length: int) -> Tensor:
    """Return a mask that hides some keys."""
    return (torch.arange(length) % 7 > 0)[None, None, None]


WINDOWS: list[Pattern] = [
    SlidingWindow(size=40),
    SlidingWindow(size=20, causal=False),
    Longformer(window=20, global_positions=(0, 5)),
]
SUMS: list[Pattern] = [LinearAttention(decay="retnet"), LinearAttention(causal=False)]


@pytest.mark.parametrize(
    ("pattern", "scoring"),
    [(window, scoring) for window in WINDOWS for scoring in (PLAIN, CAPPED, DROPPED)]
    + [(sums, PLAIN) for sums in SUMS],
    ids=repr,
)
@pytest.mark.parametrize("masked", [True, False], ids=["mask", "no-mask"])
def test_windows_and_sums_grow_with_the_length(
    pattern: Pattern, scoring: Scoring, *, masked: bool
) -> None:
    """From 1,024 to 4,096 positions no tensor grows by more than 4 times, forward and backward."""
    small, large = (
        largest(pattern, n, padding(n) if masked else None, scoring) for n in (1024, 4096)
    )
    assert large <= 4 * small


@pytest.mark.parametrize("masked", [True, False], ids=["mask", "no-mask"])
@pytest.mark.parametrize("kind", [Strided, Fixed])
def test_sparse_patterns_grow_with_its_root_too(
    kind: type[Strided] | type[Fixed], *, masked: bool
) -> None:
    """With a stride of the root of the length, 4 times the length is at most 8 times the cost."""
    small, large = (
        largest(kind(stride=stride), stride**2, padding(stride**2) if masked else None)
        for stride in (40, 80)
    )
    assert large <= 8 * small


@pytest.mark.parametrize(
    "scoring",
    [PLAIN, CAPPED, DROPPED, Scoring(scale=1.0, bias=ALiBi().make_bias(1, bidirectional=True))],
    ids=["plain", "capped", "dropout", "bias"],
)
@pytest.mark.parametrize("masked", [True, False], ids=["mask", "no-mask"])
@pytest.mark.parametrize("pattern", [Full(), Causal()], ids=repr)
def test_dense_attention_keeps_no_square(
    pattern: Pattern, scoring: Scoring, *, masked: bool
) -> None:
    """Beyond the lengths for which plain products are used, no tensor is near `L x L`."""
    length = 2304
    mask = padding(length) if masked else None
    assert largest(pattern, length, mask, scoring) < length * length / 4


def test_the_reference_does_keep_it() -> None:
    """The probe, with which the others are measured, sees a matrix if there is one."""
    q = torch.randn(1, 1, 300, 4)
    found = Largest()
    with found:
        reference_attention(q, q, q)
    assert found.numbers >= 300 * 300


@pytest.mark.parametrize(
    "pattern",
    [
        Causal(),
        SlidingWindow(size=30),
        Longformer(window=20, global_positions=(0, 5), causal=True),
        Strided(stride=30),
        Fixed(stride=30, summary=2),
        LinearAttention(),
    ],
    ids=repr,
)
def test_a_step_of_decoding_computes_what_it_sees(pattern: Pattern) -> None:
    """With 50 times the text, steps of windows and sums cost the same; others compare no keys."""
    sizes = []
    for length in (200, 10_000):
        storage = pattern.make_storage()
        new = torch.randn(1, 2, length, 4)
        pattern.attend(new, storage.extend(KeyValue(new, new)), None, PLAIN)
        one = torch.randn(1, 2, 1, 4)
        for _ in range(2):  # a storage may grow or roll at the first step
            kv = storage.extend(KeyValue(one, one))
        made = largest_step(pattern, one, kv)
        sizes.append(made)
    if isinstance(pattern, SlidingWindow | LinearAttention):
        assert sizes[0] == sizes[1]
    else:
        assert sizes[1] <= 10_003 * 2 * 8  # no product of keys with keys


def largest_step(pattern: Pattern, q_BH1d: Tensor, kv: KeyValue) -> int:
    """Attend with one query and return the size of the largest tensor made."""
    found = Largest()
    with torch.no_grad(), found:
        pattern.attend(q_BH1d, kv, None, PLAIN)
    return found.numbers


def test_attention_repeats_no_key_value_head() -> None:
    """With K = H / 4 nothing is larger than the scores; `cache_growth` covers the cache."""
    kv = KeyValue(torch.randn(1, 1, 1000, 4), torch.randn(1, 1, 1000, 4))
    assert largest_step(Causal(), torch.randn(1, 4, 1, 4), kv) <= 4 * 1000
