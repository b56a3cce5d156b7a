"""The progress of a verb: a line on standard error."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import TypeVar

from dragoman.cli.pipes import say, talk
from dragoman.wording import clock, counted, short

Item = TypeVar("Item")
INTERVAL = 30.0
"""Seconds between the progress lines if there is no terminal."""


@contextmanager
def progress_of(
    items: Iterable[Item],
    what: str,
    *,
    total: int | None = None,
    before: int = 0,
    share: Callable[[], float | None] = lambda: None,
    quiet: bool = False,
) -> Iterator[Iterable[Item]]:
    """Pass the items on while a line on standard error shows how many are done, and the rate.

    `what` is the name of one item, perhaps with its place: `pair in pass 2`.

    On a terminal the line is redrawn; elsewhere another one is printed every `INTERVAL` seconds.
    The total is `total` or, for an input, estimated from the `share` that has been read; `before`
    items were already done. The thread that draws ends with the block, however it ends. If a
    generator were left half-way instead, it would wait for the thread when Python collects it,
    perhaps at exit: forever.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = talk()
    if quiet:
        yield items
        return
    if not console.is_terminal:
        yield _timed(items, _saying(what, total), total=total, before=before, share=share)
        return
    bar = BarColumn() if total is not None else TextColumn("")
    pace = TextColumn("{task.fields[pace]}")
    columns = (TextColumn(_many(what)), bar, MofNCompleteColumn(), TimeElapsedColumn(), pace)
    with Progress(*columns, console=console, transient=True, refresh_per_second=4) as progress:
        task = progress.add_task(what, total=total, completed=before, pace="")
        show = partial(progress.update, task)
        yield _timed(items, show, total=total, before=before, share=share)


def _many(what: str) -> str:
    return what.replace(" ", "s ", 1) if " " in what else f"{what}s"


def _saying(what: str, total: int | None) -> Callable[..., None]:
    """Return what prints the progress that it is told, unless it printed moments ago."""
    said = perf_counter()

    def show(*, completed: int, pace: str) -> None:
        nonlocal said
        if (now := perf_counter()) - said >= INTERVAL:
            said = now
            done = counted(completed, what, _many(what))
            if total is not None:
                done = f"{completed:,} of {counted(total, what, _many(what))}"
            say(f"{done}, {pace}")

    return show


def _timed(
    items: Iterable[Item],
    show: Callable[..., None],
    *,
    total: float | None,
    before: int,
    share: Callable[[], float | None],
) -> Iterator[Item]:
    """Pass the items on, and after each show the count and the pace.

    Inputs are read in windows, the next one when the last one is answered: at that moment, the
    number of answers and the share read before give the total.
    """
    start, read = perf_counter(), share()
    for number, item in enumerate(items, start=before + 1):
        yield item
        if (now := share()) != read:
            total = (number - 1) / read if read else total
            read = now
        left = None if total is None else max(0.0, total - number)
        show(completed=number, pace=pace_of(number - before, perf_counter() - start, left))


def pace_of(done: int, seconds: float, left: float | None) -> str:
    """Return the items a second and the time for the remaining ones: `12.5/s, 1:05 left`."""
    each = max(seconds, 1e-9) / done
    return f"{short(1 / each)}/s" + ("" if left is None else f", {clock(left * each)} left")
