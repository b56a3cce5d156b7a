"""Chinese numbers, measure words and attributes."""

from __future__ import annotations

from functools import cache

_CLOSE = "新旧大小好脏胖"
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
    """An adjective before its noun: 新书, but 很贵的书 and 有意思的书."""
    if adjective in _CLOSE:
        return adjective
    return f"很{adjective}的" if len(adjective) == 1 else f"{adjective}的"


def negative(adjective: str) -> str:
    """Not so: 不忙, but 没有意思 and 没有耐心."""
    return f"没{adjective}" if adjective.startswith("有") else f"不{adjective}"
