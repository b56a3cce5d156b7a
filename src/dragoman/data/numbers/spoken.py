"""Numbers in English words, as they are read in America: "one hundred four" without an "and"."""

from dragoman.data.grammar.english import cardinal as below_hundred

__all__ = ["cardinal", "decimal", "digits", "ordinal", "plural", "year"]

_SCALES = ((10**9, "billion"), (10**6, "million"), (10**3, "thousand"), (10**2, "hundred"))
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}


def cardinal(number: int) -> str:
    """A whole number below 10^12: 1204 -> "one thousand two hundred four"."""
    if number < 0:
        return f"minus {cardinal(-number)}"
    for size, name in _SCALES:
        if number >= size:
            head, rest = divmod(number, size)
            return f"{cardinal(head)} {name}" + (f" {cardinal(rest)}" if rest else "")
    return below_hundred(number)


def ordinal(number: int) -> str:
    """The place in a row: 21 -> "twenty-first", 1204 -> "one thousand two hundred fourth"."""
    words = cardinal(number)
    cut = max(words.rfind(" "), words.rfind("-")) + 1
    head, last = words[:cut], words[cut:]
    if last in _ORDINALS:
        return head + _ORDINALS[last]
    return head + (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")


def digits(figures: str) -> str:
    """Each digit by itself: "0142" -> "zero one four two"."""
    return " ".join(below_hundred(int(figure)) for figure in figures)


def decimal(figures: str) -> str:
    """A number, perhaps with a point: "3.14" -> "three point one four"."""
    whole, point, part = figures.partition(".")
    return cardinal(int(whole)) + (f" point {digits(part)}" if point else "")


def year(number: int) -> str:
    """A year from 1100 to 2099: 1994 -> "nineteen ninety-four", 1905 -> "nineteen oh five"."""
    century, rest = divmod(number, 100)
    if century == 20 and rest < 10:
        return cardinal(number)
    if rest == 0:
        return f"{below_hundred(century)} hundred"
    return f"{below_hundred(century)} {'oh ' if rest < 10 else ''}{below_hundred(rest)}"


def plural(words: str) -> str:
    """More than one of it: "ninety" -> "nineties", "third" -> "thirds", "dollar" -> "dollars"."""
    return f"{words[:-1]}ies" if words.endswith("y") else f"{words}s"
