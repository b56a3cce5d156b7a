"""Chinese numbers, measure words and attributes."""

from __future__ import annotations

from functools import cache

_DIGITS = "零一二三四五六七八九"


@cache
def numeral(number: int) -> str:
    """A number below one hundred: 12 -> 十二, 20 -> 二十, 35 -> 三十五."""
    tens, unit = divmod(number, 10)
    head = "" if not tens else ("十" if tens == 1 else _DIGITS[tens] + "十")
    return head + (_DIGITS[unit] if unit or not tens else "")


def count(number: int) -> str:
    """A number before a measure word: 2 is 两 there, not 二 (but 12 is 十二)."""
    return "两" if number == 2 else numeral(number)


def attribute(adjective: str) -> str:
    """An adjective before its noun: one character stands alone, a longer one takes 的."""
    return adjective if len(adjective) == 1 else adjective + "的"
