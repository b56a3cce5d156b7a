"""The arithmetic of products, and whether a row of a product depends on its neighbours."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack
from itertools import product
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.processes import python
from torch import Tensor, nn
from torch.backends import mkldnn

from dragoman.nn import (
    Dropout,
    Linear,
    Precision,
    autocast,
    evaluation_view,
    inference,
    row_invariant_products,
)
from dragoman.nn.cpu.products import (
    _USES,
    LONG_ROW,
    TRIED,
    _measured_setting,
    onednn_setting,
    rows_are_independent,
    training_products,
    uses_onednn,
)

CPU = torch.device("cpu")


def setting() -> str:
    """Return torch's precision setting for float32 products through oneDNN."""
    precision: str = mkldnn.matmul.fp32_precision  # type: ignore[attr-defined]
    return precision


def test_bf16_is_autocast_and_fp32_switches_it_off() -> None:
    """Products run in bfloat16 inside one context and in float32 inside the other."""
    x, linear = torch.ones(2, 3), Linear(3, 4)
    with autocast("bf16", CPU):
        assert linear(x).dtype == torch.bfloat16
        with autocast("fp32", CPU):
            assert linear(x).dtype == torch.float32
    assert linear(x).dtype == torch.float32


def test_a_model_answers_without_learning() -> None:
    """No dropout, no gradients, and products with independent rows, but only inside the context."""
    model = nn.Sequential(Linear(3, 3), Dropout(0.5)).train()
    view = evaluation_view(model)

    def state() -> tuple[bool, bool]:
        return torch.is_inference_mode_enabled(), uses_onednn(torch.float32)

    with inference(view, "bf16") as device:
        assert (state(), device) == ((True, True), CPU)
        assert view(torch.ones(2, 3)).dtype is torch.bfloat16
        assert view(torch.ones(2, 3)).all()
    assert state() == (False, False)
    with pytest.raises(ZeroDivisionError), inference(view):
        1 / 0  # noqa: B018 (it raises)
    assert state() == (False, False)
    with pytest.raises(ValueError, match="in training mode"), inference(model):
        pass


def test_a_view_shares_the_weights_and_nothing_else() -> None:
    """Each has its own mode and hooks; moving or replacing a weight shows in both."""
    calls: list[str] = []
    model = nn.Sequential(Linear(3, 3), nn.ModuleList(), nn.BatchNorm1d(3)).train()
    model.register_module("none", None)
    model[0].register_forward_hook(lambda *_: calls.append("before"))
    view = evaluation_view(model)
    assert [module.training for module in view.modules()] == [False] * 4
    assert all(module.training for module in model.modules())
    assert not {id(module) for module in view.modules()} & set(map(id, model.modules()))
    view[0].register_forward_hook(lambda *_: calls.append("of the view"))
    model[0].register_forward_pre_hook(lambda *_: calls.append("of the model"))
    view[0](torch.ones(2, 3))
    assert calls == ["before", "of the view"]
    model[0](torch.ones(2, 3))
    assert calls[2:] == ["of the model", "before"]
    model.train().double()
    model[2](torch.ones(2, 3).double())  # it counts batches in a buffer
    model[0].weight = nn.Parameter(torch.zeros(3, 3))
    assert not view.training
    for mine, yours in zip(model.state_dict().values(), view.state_dict().values(), strict=True):
        assert mine.data_ptr() == yours.data_ptr()


@given(st.sampled_from(["none", "ieee"]), st.permutations([0, 0, 1, 1, 2, 2]))
@settings(max_examples=20)
def test_the_setting_is_on_while_any_thread_is_inside(before: str, turns: Sequence[int]) -> None:
    """Whoever comes and goes in whatever order: on for all of them, then as it was before."""
    matmul, inside = mkldnn.matmul, dict[int, ExitStack]()  # type: ignore[attr-defined]
    with ExitStack() as stack:
        stack.callback(setattr, matmul, "fp32_precision", setting())
        matmul.fp32_precision = before
        threads = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(3)]
        for turn in turns:  # the first of a thread's two is to enter
            if turn in inside:
                threads[turn].submit(inside.pop(turn).close).result()
            else:
                inside[turn] = ExitStack()
                threads[turn].submit(inside[turn].enter_context, row_invariant_products()).result()
            seen = {thread.submit(setting).result() for thread in threads}
            assert seen == {onednn_setting() if inside else before}


@pytest.fixture
def measured_anew() -> Iterator[Callable[[], None]]:
    """Return a function that makes this process forget the measured setting."""

    def forget() -> None:
        onednn_setting.cache_clear()
        _measured_setting.cache_clear()

    yield forget
    forget()


def test_threads_wait_for_each_other(measured_anew: Callable[[], None]) -> None:
    """They measure, enter and leave one at a time, and only one of them measures."""
    measured_anew()
    context = ExitStack()
    acts: list[Callable[[], object]] = [
        onednn_setting,
        lambda: context.enter_context(row_invariant_products()),
        context.close,
    ]
    with ThreadPoolExecutor(3) as threads:
        for act, times in zip(acts, (3, 1, 1), strict=True):
            with _USES.lock:
                tasks = [threads.submit(act) for _ in range(times)]
                assert not wait(tasks, timeout=0.1).done
            assert wait(tasks).done == set(tasks)
    assert _measured_setting.cache_info().misses == 1


@pytest.mark.parametrize(
    "around",
    [autocast("bf16", CPU), torch.device("meta"), torch.inference_mode()],
    ids=["bf16", "meta", "inference"],
)
def test_the_setting_is_the_processors(
    around: AbstractContextManager[object], measured_anew: Callable[[], None]
) -> None:
    """It does not depend on the context of the first call, such as training in bfloat16."""
    measured_anew()
    right = onednn_setting()
    measured_anew()
    with around:
        assert onednn_setting() == right


LATE = """
import threading
from dragoman.nn.cpu.products import onednn_setting
def ask():
    threading.main_thread().join()
    print(onednn_setting())
threading.Thread(target=ask).start()
"""


def test_a_thread_measures_when_the_main_one_has_ended() -> None:
    """Python waits for threads, but no executor can start one then."""
    assert python(LATE).stdout == f"{onednn_setting()}\n"


def test_products_keep_full_float32_accuracy() -> None:
    """Inside the context a product is not rounded to the ten fraction bits of TF32."""
    torch.manual_seed(0)
    a, b = torch.randn(64, 512), torch.randn(512, 64)
    with row_invariant_products():
        error = ((a @ b).double() - a.double() @ b.double()).abs().max().item()
    assert error < 1e-4  # rounding to ten bits gives 4e-2


@pytest.mark.parametrize("rows", [(), (0,), (1,), (2, 1), (3, 2, 5)], ids=str)
@pytest.mark.parametrize("columns", [1, 3, LONG_ROW + 1])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no-bias"])
def test_linear_is_torchs(rows: tuple[int, ...], columns: int, *, bias: bool) -> None:
    """Rows that are added are removed again, forward and backward."""
    torch.manual_seed(0)
    linear = Linear(columns, 4, bias=bias).double()
    x = torch.randn(*rows, columns, dtype=torch.float64, requires_grad=True)
    out = linear(x)
    expected = torch.nn.functional.linear(x, linear.weight, linear.bias)
    torch.testing.assert_close(out, expected)
    slopes = torch.randn_like(out)
    wanted = torch.autograd.grad(expected, (x, linear.weight), slopes)
    torch.testing.assert_close(torch.autograd.grad(out, (x, linear.weight), slopes), wanted)


def test_bf16_units_are_found_by_trying() -> None:
    """A processor whose units oneDNN may not use counts as having none."""
    program = "from dragoman.nn.cpu.products import has_bf16_units; print(has_bf16_units())"
    assert python(program, given={"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}).stdout == "False\n"


def agree(linear: Linear, x: Tensor) -> bool:
    """Return whether the rows of x have the same results in parts of any size."""
    expected = linear(x)
    counts = (1, 2, 3, 5, 7, 8, 9, 17, 31, 33, 65)
    parts = ([linear(part) for part in x.split(count)] for count in counts)
    return all(torch.equal(torch.cat(part), expected) for part in parts)


@pytest.mark.parametrize("precision", get_args(Precision))
def test_rows_are_independent_where_that_is_said(precision: Precision) -> None:
    """If reported independent, random products agree; otherwise a tried one shows it."""
    with torch.inference_mode(), row_invariant_products(), autocast(precision, torch.device("cpu")):
        if rows_are_independent(precision):
            for columns, rows in product((8, 32, 100, 128, 512, 1025, 2048), (5, 64, 256)):
                assert agree(Linear(columns, rows), torch.randn(130, columns)), (columns, rows)
        else:
            found = [agree(Linear(*size, bias=False), torch.randn(66, size[0])) for size in TRIED]
            assert not all(found)


@pytest.mark.parametrize(("precision", "amd"), [("fp32", True), ("fp32", False), ("bf16", True)])
def test_which_library_multiplies_in_training(
    precision: str, monkeypatch: pytest.MonkeyPatch, *, amd: bool
) -> None:
    """oneDNN in float32 only on AMD processors; settings are restored afterwards."""
    monkeypatch.setattr("dragoman.nn.cpu.products._is_amd", lambda device: amd)  # noqa: ARG005
    with training_products(precision, torch.device("cpu")):
        assert uses_onednn(torch.float32) == (precision == "fp32" and amd)
    assert not uses_onednn(torch.float32)
