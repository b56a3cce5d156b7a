"""Compiled code computes what PyTorch computes."""

import os
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.processes import python
from tests.processors import needs_compiler

from dragoman.engine.layers import FrozenNorm
from dragoman.engine.quantized import BLOCK, MOST_INPUTS, QuantizedLinear
from dragoman.errors import InputError
from dragoman.nn import Linear
from dragoman.nn.cpu import native
from dragoman.nn.cpu.cross_entropy import cross_entropy
from dragoman.nn.cpu.ranking import LogSoftmax, top_tokens
from dragoman.nn.cpu.rounding import quantized
from dragoman.nn.norm import LayerNorm, RMSNorm

SEEDS = st.integers(0, 2**32)
ROWS = st.integers(1, 70)
COLUMNS = st.integers(2, 300)  # torch multiplies matrices of one column incorrectly


def numbers(seed: int, rows: int, columns: int) -> torch.Tensor:
    """Return rows of very different sizes, one of them zeros."""
    generator = torch.Generator().manual_seed(seed)
    x_MI = torch.randn(rows, columns, generator=generator)
    x_MI *= torch.randn(rows, 1, generator=generator).mul(5).exp()
    x_MI[rows // 2] = 0.0
    return x_MI


def product_of(linear: Linear, x_MI: torch.Tensor, first_scale: float = 1.0) -> torch.Tensor:
    """Compute the 8-bit product with NumPy's integers, each step rounded as in compiled code."""
    q_OI, w_scale_O1 = quantized(linear.weight)
    q_MI, scale_M1 = quantized(x_MI)
    sums = q_MI.numpy().astype(np.int64) @ q_OI.numpy().astype(np.int64).T
    scale_O, bias_O = w_scale_O1[:, 0] * first_scale, linear.bias * first_scale
    return torch.from_numpy(sums.astype(np.float32)) * scale_M1 * scale_O + bias_O


@needs_compiler
@pytest.mark.parametrize("relu", [False, True])
@given(SEEDS, ROWS, COLUMNS, st.integers(1, 300))
@example(1048577, 49, 108, 2)  # 127 times a reciprocal is not the quotient here
@settings(max_examples=40, deadline=None)
@torch.inference_mode()
def test_products_of_integers_have_the_bits_of_numpy(
    relu: bool,  # noqa: FBT001 -- a parameter of the test
    seed: int,
    rows: int,
    columns: int,
    outputs: int,
) -> None:
    """With ReLU, with a residual, and of some outputs alone."""
    torch.manual_seed(seed % 2**31)
    linear, x_MI = Linear(columns, outputs), numbers(seed, rows, columns)
    residual_MO = torch.randn(rows, outputs)
    fast, expected_MO = QuantizedLinear(linear, first_scale=0.7), product_of(linear, x_MI, 0.7)
    assert torch.equal(fast.plus(x_MI, residual_MO), expected_MO + residual_MO)
    expected_MO = expected_MO.relu() if relu else expected_MO
    assert torch.equal(fast(x_MI, relu=relu), expected_MO)
    kept = torch.randint(outputs, (relu + outputs // 2 + 1,))
    fast.keep(kept)
    assert torch.equal(fast(x_MI, relu=relu), expected_MO[:, kept])


@needs_compiler
@torch.inference_mode()
def test_joined_maps_have_the_integers_of_each() -> None:
    """This holds also if the rows of one are rounded in several blocks."""
    linears = [Linear(70, outputs) for outputs in (2 * BLOCK + 30, 5)]
    x_MI = numbers(5, 9, 70)
    apart = [product_of(linear, x_MI) for linear in linears]
    assert torch.equal(QuantizedLinear(*linears)(x_MI), torch.cat(apart, 1))
    q_OI, scale_O1 = quantized(linears[0].weight)
    expected_MO = x_MI.double() @ (q_OI * scale_O1).double().t() + linears[0].bias
    rounding = x_MI.abs().amax(1, keepdim=True) / 127 * (q_OI * scale_O1).abs().sum(1)
    assert ((apart[0] - expected_MO).abs() <= rounding).all()


@needs_compiler
@pytest.mark.parametrize(
    "module", [LayerNorm(70), LayerNorm(70, bias=False), RMSNorm(70, eps=1e-3)]
)
@torch.inference_mode()
def test_norms(module: LayerNorm | RMSNorm) -> None:
    """They match float64 for rows of any size, one of them zeros; a row alone has the same bits."""
    for weight in module.parameters():
        torch.nn.init.normal_(weight)
    fast, x_MD = FrozenNorm(module), numbers(3, 9, 70)
    expected_MD = deepcopy(module).double()(x_MD.double())
    torch.testing.assert_close(fast(x_MD).double(), expected_MD, rtol=1e-5, atol=2e-6)
    assert torch.equal(fast(x_MD[2:3]), fast(x_MD)[2:3])


@needs_compiler
@pytest.mark.parametrize("rows", [1, 7])
@torch.inference_mode()
def test_a_product_stays_within_the_memory_it_is_given(rows: int) -> None:
    """The result is in the requested memory, and what follows it is unchanged."""
    product, x_MI = QuantizedLinear(Linear(70, 40)), numbers(1, rows, 70)
    space_X = torch.full(((rows + 1) * 40,), 7.0)
    space_MO = space_X[: rows * 40].view(rows, 40)
    assert product(x_MI, out_MO=space_MO) is space_MO
    assert torch.equal(space_MO, product(x_MI))
    assert space_X[rows * 40 :].tolist() == [7.0] * 40


@needs_compiler
@torch.inference_mode()
def test_sums_of_the_largest_integers_fit_and_larger_layers_are_refused() -> None:
    """Every product is 127 * 127 or -127 * 127; one more input could overflow 32 bits."""
    widest = Linear(MOST_INPUTS, 2, bias=False)
    widest.weight[0], widest.weight[1] = 1.0, -1.0
    found_MO = QuantizedLinear(widest)(torch.ones(2, MOST_INPUTS))
    torch.testing.assert_close(found_MO, torch.tensor([[1.0, -1.0]] * 2) * MOST_INPUTS)
    assert 255 * 127 * MOST_INPUTS < 2**31 <= 255 * 127 * (MOST_INPUTS + 1)
    with pytest.raises(InputError, match="66,311 inputs"):
        QuantizedLinear(Linear(MOST_INPUTS + 1, 1))


@needs_compiler
@torch.inference_mode()
def test_what_is_compiled_reads_no_other_layout() -> None:
    """Another dtype or shape, or numbers that are not contiguous, are an error."""
    product, x_MI, log_softmax = QuantizedLinear(Linear(8, 4)), torch.randn(3, 8), LogSoftmax()
    log_softmax(torch.randn(3, 8))
    residuals = torch.randn(4, 3).t(), torch.randn(2, 4), torch.randn(3, 4).double()
    calls: list[Callable[[], object]] = [
        *(partial(product.plus, x_MI, residual_MO) for residual_MO in residuals),
        lambda: product(x_MI.double()),
        lambda: product(x_MI, out_MO=torch.empty(3, 5)),
        lambda: FrozenNorm(LayerNorm(8))(torch.randn(3, 7)),
        lambda: cross_entropy(x_MI, torch.zeros(3, dtype=torch.int32), 0.1),
        lambda: cross_entropy(x_MI, torch.zeros(2, dtype=torch.int64), 0.1),
        lambda: log_softmax(torch.randn(3, 9)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="must be contiguous"):
            call()
    with pytest.raises(ValueError, match="no 9 best of 8"):
        top_tokens(x_MI, 9)


@given(SEEDS, ROWS, COLUMNS)
@settings(max_examples=40, deadline=None)
@torch.inference_mode()
def test_rounding_to_integers_is_that_of_numpy(seed: int, rows: int, columns: int) -> None:
    """Half a step is the greatest error, and the greatest number of a row is 127 or -127."""
    x_MI = numbers(seed, rows, columns)
    q_MI, scale_M1 = quantized(x_MI)
    exact = x_MI.double().numpy()
    largest = np.abs(exact).max(axis=1, keepdims=True)
    error = np.abs(q_MI.numpy() * scale_M1.double().numpy() - exact)
    assert (error <= largest / 127 * 0.5001).all()
    assert (np.abs(q_MI.numpy()).max(axis=1) == np.where(largest[:, 0] > 0, 127, 0)).all()


@needs_compiler
@given(SEEDS, st.integers(1, 20), st.integers(1, 3000))
@settings(max_examples=40, deadline=None)
@torch.inference_mode()
def test_log_probabilities(seed: int, rows: int, vocab: int) -> None:
    """As torch has them in float64, with forbidden tokens; tests/unit/decode has the best."""
    generator = torch.Generator().manual_seed(seed)
    logits_NV = torch.randn(rows, vocab, generator=generator).mul(4).round(decimals=1)
    logits_NV[:, 1:3] = -torch.inf
    expected_NV = logits_NV.double().log_softmax(dim=1)
    log_probs_NV = LogSoftmax()(logits_NV.clone())
    summed = 2.0**-24 * vocab  # the most that rounding changes a float32 sum of positive terms
    torch.testing.assert_close(log_probs_NV.double(), expected_NV, rtol=1e-6, atol=1e-6 + summed)


@needs_compiler
@given(SEEDS, ROWS, COLUMNS)
@settings(max_examples=40, deadline=None)
@torch.inference_mode()
def test_a_gate_is_that_of_swiglu(seed: int, rows: int, columns: int) -> None:
    """`silu(gate) * value` of torch in float64, each row by itself; NaN stays NaN."""
    x_MX = numbers(seed, rows, 2 * columns).clamp(-1e3, 1e3)
    x_MX[-1, -1], x_MX[-1, 0] = 1.0, torch.nan

    def gated(x_MX: torch.Tensor) -> torch.Tensor:
        out_MF = torch.empty(len(x_MX), columns)
        functions = native.native()
        assert functions is not None
        functions.gate(x_MX.data_ptr(), out_MF.data_ptr(), *out_MF.shape)
        return out_MF

    gate_MF, value_MF = x_MX.double().chunk(2, dim=1)
    found_MF = gated(x_MX)
    expected_MF = torch.nn.functional.silu(gate_MF) * value_MF
    torch.testing.assert_close(
        found_MF.double(), expected_MF, rtol=2e-6, atol=1e-30, equal_nan=True
    )
    assert torch.equal(found_MF[:1].view(torch.int32), gated(x_MX[:1]).view(torch.int32))


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ("avx512_vnni", "x86-64-v4-vnni"),
        ("avx512vl", "x86-64-v4"),
        ("avx2", "x86-64-v3"),
        ("sse4_2", None),
        ("asimd", "aarch64"),
    ],
)
def test_each_processor_gets_the_library_that_it_can_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, features: str, expected: str | None
) -> None:
    """A library is used only if it exists and the processor has every feature that it needs."""
    (tmp_path / "native.c").write_text("")
    monkeypatch.setattr(native, "SOURCE", tmp_path / "native.c")
    for name in native.LEVELS:
        (tmp_path / f"native.{name}.{sha256(b'').hexdigest()[:16]}.so").touch()
    known = [name for name, needed in native.LEVELS.items() if features in needed]
    needed = native.LEVELS[known[-1]] if known else {features}
    monkeypatch.setattr(native, "_features", lambda: needed)
    assert next(iter(native._libraries()), None) == expected
    for missing in needed:
        monkeypatch.setattr(native, "_features", lambda m=missing: needed - {m})
        assert expected not in native._libraries()
    monkeypatch.setattr(native, "_features", lambda: needed)
    for file in tmp_path.glob(f"native.{expected}.*"):
        file.unlink()  # as if the compiler did not support such processors
    assert expected not in native._libraries()


@needs_compiler
@pytest.mark.parametrize("level", native.LEVELS)
@torch.inference_mode()
def test_every_library_computes_the_same(monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    """Libraries for simpler processors too; integer products to the last bit."""
    if not native.LEVELS[level] <= native._features():
        pytest.skip("this processor cannot run it")
    logits_NV, x_MI, linear = torch.randn(9, 300), numbers(4, 9, 70), Linear(70, 40)
    expected = LogSoftmax()(logits_NV.clone()), QuantizedLinear(linear)(x_MI)
    monkeypatch.setattr(native, "_features", lambda: native.LEVELS[level])
    functions = native._loaded.__wrapped__()
    assert functions is not None
    monkeypatch.setattr(native, "_loaded", lambda: functions)
    assert native.native() is functions
    torch.testing.assert_close(LogSoftmax()(logits_NV.clone()), expected[0], rtol=1e-6, atol=2e-6)
    assert torch.equal(QuantizedLinear(linear)(x_MI), expected[1])


@needs_compiler
@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("_features", lambda: frozenset({"sse2"}), "need Linux on x86-64 with AVX2"),
        ("_features", frozenset, "need Linux on x86-64 with AVX2"),  # another system
        ("SOURCE", Path(__file__), "install dragoman again"),  # changed since the installation
        ("_threads", lambda: None, "without GNU OpenMP"),
    ],
)
def test_without_what_is_compiled_it_is_said_why(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object, reason: str
) -> None:
    """There is one warning, which says what to do if anything can be done."""
    monkeypatch.setattr(native, name, value)
    with pytest.warns(UserWarning, match=f"slower than they could be.*{reason}") as found:
        assert native._loaded.__wrapped__() is None
    assert len(found) == 1


FORKED = """
import os, signal, torch
import dragoman.nn
torch.set_num_threads(2)
square, many = torch.ones(600, 600), torch.ones(10**6)
expected = (square @ square).sum() + many.exp().sum()
child = os.fork()
if child == 0:
    signal.alarm(30)
    same = torch.equal((square @ square).sum() + many.exp().sum(), expected)
    os._exit(0 if same and torch.get_num_threads() == 2 else 1)
status = os.waitpid(child, 0)[1]
assert status == 0, status
assert torch.equal((square @ square).sum() + many.exp().sum(), expected)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_computes_with_threads() -> None:
    """As with gunicorn's `--preload`: in the child, then in the parent, with the same bits."""
    assert not python(FORKED, without={"OMP_NUM_THREADS"}, timeout=100).stdout


def test_code_of_a_signal_may_compute_too() -> None:
    """A handler interrupts its own thread and must not wait for a lock that the thread holds."""
    assert not python(
        "from dragoman.nn.cpu import native\nwith native._LOCK: native.native()", timeout=60
    ).stdout


@needs_compiler
def test_one_thread_is_meant_for_every_library() -> None:
    """This includes MKL, for which `torch.set_num_threads` sets a separate number."""

    def numbers() -> set[str]:
        lines = torch.__config__.parallel_info().splitlines()
        return {line.split()[-1] for line in lines if "_get_max_threads() :" in line}

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with native.share_of_threads(3):
            assert numbers() == {"1"}
        assert numbers() == {"3"}
    finally:
        torch.set_num_threads(before)


TEAM = """
import os
from threading import Thread
from time import sleep
import torch
from dragoman.nn.cpu import native

def compute(expected):
    with native.share_of_threads(1):
        torch.randn(1000, 1000).exp_()
    while len(os.listdir("/proc/self/task")) != expected:
        sleep(0.01)  # who has ended is listed for another moment

torch.set_num_threads(3)
before = len(os.listdir("/proc/self/task"))
thread = Thread(target=compute, args=[before + 1])  # the thread itself
thread.start(); thread.join()
compute(before + 2)  # a program of one thread keeps its team
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are not listed here")
@needs_compiler
def test_threads_of_a_parallel_loop_end_where_others_may_start_theirs() -> None:
    """With more of them than cores, every parallel loop of the process would be slow."""
    assert not python(TEAM, without={"OMP_NUM_THREADS"}, timeout=100).stdout
