"""What a test may ask of the processor."""

import pytest

from dragoman.nn.cpu.products import rows_are_independent

needs_independent_rows = pytest.mark.skipif(
    not rows_are_independent("fp32"),
    reason="rows of float32 products depend on each other here, as `dragoman --version --verbose` "
    "says; tests/unit/nn/test_products.py holds that they do",
)
"""For laws that hold to the last bit only where a row of a product has no neighbours."""
