"""What tests need to know about the processor."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest

from dragoman.engine.products import can_pack, translations_are_independent
from dragoman.nn.cpu import native
from dragoman.nn.cpu.products import rows_are_independent

needs_independent_rows = pytest.mark.skipif(
    not rows_are_independent("fp32"),
    reason="rows of float32 products depend on each other here, as `dragoman --version --verbose` "
    "says; tests/unit/nn/test_products.py holds that they do",
)
"""For bit-exact laws that require rows of a product to be independent."""
needs_independent_translations = pytest.mark.skipif(
    not translations_are_independent("fp32"),
    reason="float32 translations depend on each other here, as `dragoman --version --verbose` says",
)
"""For laws of translations, whose products have prepacked weights."""
INDEPENDENT = [
    pytest.param(
        arithmetic,
        marks=pytest.mark.skipif(
            not (can_pack(arithmetic) and translations_are_independent(rest)),
            reason=f"{arithmetic} is not for this CPU, or its translations depend on each other",
        ),
    )
    for arithmetic, rest in (("fp32", "fp32"), ("bf16", "bf16"), ("int8", "fp32"))
]
"""The arithmetics in which no translation depends on others; int8 leaves the rest in fp32."""
ROUNDING = 0.0 if rows_are_independent("fp32") else 1e-5
"""How much a text's numbers may differ next to other texts: zero if rows are independent."""


needs_compiler = pytest.mark.skipif(native.native() is None, reason="nothing was compiled here")
COMPILED = [
    pytest.param(True, marks=needs_compiler, id="compiled"),
    pytest.param(False, id="plain"),
]


@contextmanager
def without_compiler() -> Iterator[None]:
    """Inside, nothing is compiled, as if dragoman had been installed without a C compiler."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "_loaded", lambda: None)
        yield


def use_compiled(request: pytest.FixtureRequest) -> Iterator[None]:
    """Use compiled code or not: the body of a fixture with the parameters `COMPILED`."""
    with nullcontext() if request.param else without_compiler():
        yield
