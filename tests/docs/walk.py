"""The experiments of the paper walk: run the code of a page and compare what it prints.

    python -m tests.docs.walk             every experiment (`make docs`); the tests run quick ones
    python -m tests.docs.walk --write     and put what it prints into the pages, of both languages
    python -m tests.docs.walk positions   only the pages with this in their name

An experiment is a Python block that stands alone, and the block of text behind it is what it
printed. A block whose language is `python3` goes on with the names of those before it: it is a
part of a file. Comments, which no reader sees, say what cannot be seen:

    <!-- takes: 20 s -->          before the code: about how long, where it is more than a second
    <!-- numbers: free -->        before the text: timings, of which no number is compared
    <!-- numbers: within 0.2 -->  numbers agree to a fifth (a training goes its own way on each CPU)

The blocks of a worked example, a page outside the walk, build on each other: they are run as one.
"""

import argparse
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from tests.docs.pages import ROOT, chinese, name_of, run

WALK = ROOT / "docs" / "walk"
ENGLISH = sorted(WALK.glob("*.md"))
WORKED = (ROOT / "docs" / "clip.md", ROOT / "docs" / "speech.md")

ROUNDING = 0.02
"""Of a number, where its page says nothing else: processors sum in different orders."""

_EXPERIMENT = re.compile(
    r"(?:^<!-- takes: (?P<seconds>\d+) s -->\n)?^```python(?P<part>3)?\n(?P<code>.*?)^```\n"
    r"(?:\n(?:<!-- numbers: (?P<numbers>.+?) -->\n)?```text\n(?P<said>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A block of code and what it printed when the page was written."""

    page: Path
    line: int
    """Of the page, where the code begins."""
    code: str
    alone: bool
    """Whether it needs no block before it."""
    before: str
    """The blocks that it builds on, in a worked example; else empty."""
    said: str
    """The block of text behind the code, empty where there is none."""
    seconds: int
    """About how long it takes; 0 is less than a second or two."""
    tolerance: float | None
    """How far a number may be off, relative to it; None: any number will do."""

    @property
    def name(self) -> str:
        """The page and the line."""
        return f"{self.page.stem}:{self.line}"

    def run(self, names: dict[str, object] | None = None) -> str:
        """Run the code as a reader would, and return what it printed.

        What does not stand alone goes on with the names, and the random numbers, of the block
        before it.
        """
        alone: dict[str, object] = {"__name__": "experiment"}
        own = alone if names is None or self.alone else names
        with torch.random.fork_rng(devices=[], enabled=self.alone):
            run(self.before, name_of(self.page), own)
            return run("\n" * (self.line - 1) + self.code, name_of(self.page), own)


def experiments(page: Path) -> list[Experiment]:
    """The experiments of a page, in order; of a worked example only those that print."""
    text = page.read_text(encoding="utf-8")
    blocks = list(_EXPERIMENT.finditer(text))
    worked = page in WORKED
    return [
        Experiment(
            page=page,
            line=text.count("\n", 0, found.start("code")) + 1,
            code=found["code"],
            alone=found["part"] is None,
            before="".join(block["code"] for block in blocks[:number]) if worked else "",
            said=found["said"] or "",
            seconds=int(found["seconds"] or 0),
            tolerance=_tolerance(found["numbers"]),
        )
        for number, found in enumerate(blocks)
        if found["said"] or not worked
    ]


def _tolerance(numbers: str | None) -> float | None:
    if numbers is None:
        return ROUNDING
    return None if numbers == "free" else float(numbers.removeprefix("within "))


def differences(said: str, heard: str, tolerance: float | None) -> list[str]:
    """The lines that differ in words, or in numbers by more than the tolerance allows.

    Whole numbers are counts and agree exactly, unless the page allows more than rounding; others
    may also differ by one in their last digit.
    """
    before, now = said.splitlines(), heard.splitlines()
    if len(before) != len(now):
        return [f"{len(before)} lines were printed, now {len(now)}:", *now]
    return [
        f"{old!r} is now {new!r}"
        for old, new in zip(before, now, strict=True)
        if not _alike(old, new, tolerance)
    ]


def _alike(old: str, new: str, tolerance: float | None) -> bool:
    words = [_NUMBER.sub("#", line).split() for line in (old, new)]
    if words[0] != words[1]:
        return False
    pairs = zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=True)
    return tolerance is None or all(_close(a, b, tolerance) for a, b in pairs)


def _close(old: str, new: str, tolerance: float) -> bool:
    if tolerance == ROUNDING and re.fullmatch(r"-?[\d,]+", old):
        return old == new
    was, now = (float(number.replace(",", "")) for number in (old, new))
    digits, _, power = old.partition("e")
    last_digit = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    return abs(was - now) <= max(tolerance * abs(was), 1.01 * last_digit)


def write(experiment: Experiment, heard: str) -> None:
    """Put what an experiment printed behind its code, on the page and on its Chinese twin."""
    block = re.compile(
        re.escape(f"{experiment.code}```\n\n") + r"(<!--.*?-->\n)?```text\n.*?^```", re.M | re.S
    )
    for page in (experiment.page, chinese(experiment.page)):
        if page.exists():
            text = page.read_text(encoding="utf-8")
            text = block.sub(
                lambda found: f"{experiment.code}```\n\n{found[1] or ''}```text\n{heard}```", text
            )
            page.write_text(text, encoding="utf-8")


def main() -> int:
    """Run the experiments that were asked for and say which still print what their page says."""
    parser = argparse.ArgumentParser(description="Run the experiments of the paper walk.")
    parser.add_argument("pages", nargs="*", help="parts of page names; all pages unless given")
    parser.add_argument("--write", action="store_true", help="put what they print into the pages")
    asked = parser.parse_args()
    failed = 0
    for page in (*ENGLISH, *WORKED):
        if asked.pages and not any(part in page.stem for part in asked.pages):
            continue
        names: dict[str, object] = {"__name__": "experiment"}
        for experiment in experiments(page):
            started = time.process_time()
            heard = experiment.run(names)
            lost = differences(experiment.said, heard, experiment.tolerance)
            if asked.write and heard != experiment.said:
                write(experiment, heard)
            failed += bool(lost)
            seconds = time.process_time() - started
            sys.stdout.write(
                f"{experiment.name}: {seconds:.1f} s {'differs' if lost else 'as said'}\n"
            )
            sys.stdout.write("".join(f"    {line}\n" for line in lost))
    return int(failed > 0 and not asked.write)


if __name__ == "__main__":
    sys.exit(main())
