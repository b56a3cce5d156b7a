"""Counts and quantities in sentences: `1 step`, `1.2 M`, `1:05`, `2.1 GB`; a text in one line."""

import re

ESCAPES = {"\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
"""What may follow a backslash, and what the two together mean."""
NAMES = {char: name for name, char in ESCAPES.items()}
"""The other way around."""


def counted(count: float, one: str, more: str | None = None) -> str:
    """Return a count and its noun: `one` for 1, else `more`, by default `one` with an `s`."""
    number = f"{count:,}" if isinstance(count, int) else f"{count:g}"
    return f"{number} {one if count == 1 else more or f'{one}s'}"


def short(number: float) -> str:
    """Write a large count to three digits: 1.2 M, 41 k."""
    return _scaled(number, {"T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3}, ".3g") or f"{number:.3g}"


def _scaled(number: float, units: dict[str, float], form: str) -> str | None:
    """Write a number in the first unit of which it has at least one; None if it is below all."""
    for unit, size in units.items():
        if number >= size:
            return f"{number / size:{form}} {unit}"
    return None


def clock(seconds: float) -> str:
    """Write a time as minutes and seconds, 1:05; from one hour on, as 1:02:05."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def format_flops(count: float) -> str:
    """Write a number of operations."""
    units = {"TFLOP": 1e12, "GFLOP": 1e9, "MFLOP": 1e6}
    return _scaled(count, units, ",.1f") or f"{count:,.0f} FLOP"


def format_bytes(count: float) -> str:
    """Write a size in powers of a thousand bytes."""
    units = {"TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3}
    return _scaled(count, units, ",.1f") or f"{count:,.0f} B"


def format_time(seconds: float) -> str:
    """Write a time in the unit that suits it."""
    units = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0}
    return _scaled(seconds, units, ",.1f") or f"{seconds:.3g} s"


def format_energy(kwh: float) -> str:
    """Write an energy in the unit that suits it."""
    return f"{kwh:,.1f} kWh" if kwh >= 1 else f"{1000 * kwh:.3g} Wh"


def format_money(money: float, currency: str | None) -> str:
    """Write an amount with its currency; a small one with three digits."""
    return f"{money:{',.2f' if money >= 1 else '.3g'}} {currency or 'in your currency'}"


def as_one_line(text: str) -> str:
    r"""Write a text in one line, where \n stands for a line break."""
    return re.sub(r"[\\\n\r]", lambda found: "\\" + NAMES[found[0]], text)


def unescaped(text: str) -> str:
    r"""Read a text in which \n stands for a line break."""
    return re.sub(r"\\([\\nrt])", lambda found: ESCAPES[found[1]], text)
