"""Counts and times in sentences: `1 step`, `1,250 steps`, `1.2 M`, `1:05`."""


def counted(count: float, one: str, more: str | None = None) -> str:
    """Return a count and its noun: `one` for 1, else `more`, by default `one` with an `s`."""
    number = f"{count:,}" if isinstance(count, int) else f"{count:g}"
    return f"{number} {one if count == 1 else more or f'{one}s'}"


def short(number: float) -> str:
    """Write a large count to three digits: 1.2 M, 41 k."""
    for unit, name in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= unit:
            return f"{number / unit:.3g}{name}"
    return f"{number:.3g}"


def clock(seconds: float) -> str:
    """Write a time as minutes and seconds, 1:05, from an hour on as 1:02:05."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
