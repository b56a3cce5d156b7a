"""Numbers in English words, as they are read in America: "one hundred four" without an "and"."""

__all__ = ["cardinal", "decimal", "digits", "ordinal", "ordinal_figures", "plural", "year"]

_UNITS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
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
_SUFFIXES = {1: "st", 2: "nd", 3: "rd"}


def cardinal(number: int) -> str:
    """An integer below 10^12: 1204 -> "one thousand two hundred four"."""
    if number < 0:
        return f"minus {cardinal(-number)}"
    for size, name in _SCALES:
        if number >= size:
            head, rest = divmod(number, size)
            return f"{cardinal(head)} {name}" + (f" {cardinal(rest)}" if rest else "")
    if number < len(_UNITS):
        return _UNITS[number]
    tens, unit = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_UNITS[unit]}" if unit else "")


def ordinal(number: int) -> str:
    """The position in a row: 21 -> "twenty-first", 1204 -> "one thousand two hundred fourth"."""
    words = cardinal(number)
    cut = max(words.rfind(" "), words.rfind("-")) + 1
    head, last = words[:cut], words[cut:]
    if last in _ORDINALS:
        return head + _ORDINALS[last]
    return head + (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")


def ordinal_figures(number: int) -> str:
    """The position in a row, in figures: 1 -> "1st", 12 -> "12th", 123 -> "123rd"."""
    is_teen = 11 <= number % 100 <= 13
    return f"{number}{'th' if is_teen else _SUFFIXES.get(number % 10, 'th')}"


def digits(figures: str) -> str:
    """Each digit by itself: "0142" -> "zero one four two"."""
    return " ".join(_UNITS[int(figure)] for figure in figures)


def decimal(figures: str) -> str:
    """A number, with or without a decimal point: "3.14" -> "three point one four"."""
    whole, point, part = figures.partition(".")
    return cardinal(int(whole)) + (f" point {digits(part)}" if point else "")


def year(number: int) -> str:
    """A year from 1100 to 2099: 1994 -> "nineteen ninety-four", 1905 -> "nineteen oh five"."""
    century, rest = divmod(number, 100)
    if century == 20 and rest < 10:
        return cardinal(number)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def plural(words: str) -> str:
    """More than one of it: "ninety" -> "nineties", "third" -> "thirds", "dollar" -> "dollars"."""
    return f"{words[:-1]}ies" if words.endswith("y") else f"{words}s"
