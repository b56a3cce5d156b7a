"""Every pattern's fast path against its mask and the readable reference, forward and backward."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parity.attention_cases import PATTERNS, assert_equals_reference, draw_case


@pytest.mark.parametrize("name", PATTERNS)
@given(data=st.data())
@settings(max_examples=60)
def test_a_pattern_equals_its_mask(name: str, data: st.DataObject) -> None:
    """On short texts, with every mask, bias and cap; fewer queries than keys among them."""
    pattern = data.draw(PATTERNS[name])
    assert_equals_reference(pattern, draw_case(data, longest=40), pattern.attend)


@pytest.mark.parametrize("name", PATTERNS)
@given(data=st.data())
@settings(max_examples=25)
def test_a_pattern_equals_its_mask_on_long_texts(name: str, data: st.DataObject) -> None:
    """On texts that are cut into blocks, with padding."""
    pattern = data.draw(PATTERNS[name])
    assert_equals_reference(pattern, draw_case(data, longest=400, plain=True), pattern.attend)
