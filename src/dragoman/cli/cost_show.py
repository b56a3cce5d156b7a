"""What `dragoman cost` prints: tables on a terminal, lines with tabs between columns elsewhere."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dragoman.cli.pipes import Write, to_stdout
from dragoman.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.cost.estimate import Bill
    from dragoman.cost.report import Cost

__all__ = ["bytes_said", "show_cost", "time_said"]

Rows = Iterable[Sequence[str]]

FEW = 10
"""Tokens a second below which a tenth of one is told."""


def show_cost(cost: "Cost") -> None:
    """Print everything on standard output."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    with to_stdout() as write:
        show = _OnTerminal(console) if console.is_terminal else _InPipe(write)
        show.line(_headline(cost))
        show.table(("part", "parameters", "share"), _parameters(cost))
        show.table(("arithmetic", "per token"), _arithmetic(cost))
        show.table(("memory", "bytes"), _memory(cost))
        show.line(f"On {cost.rates.device}, {cost.rates.how}.")
        if cost.measured is not None:
            show.line(f"Measured here: {cost.measured.how}; it goes before what is assumed.")
        show.table(("what", "time", "energy", "money"), _bills(cost))
        show.line(_training_said(cost))


class _OnTerminal:
    """Sentences, and tables with lines around them."""

    def __init__(self, console: "Console") -> None:
        self._console = console

    def line(self, text: str) -> None:
        """Print a sentence."""
        self._console.print(text, markup=False)

    def table(self, head: Sequence[str], rows: Rows) -> None:
        """Print rows under their head."""
        from rich.table import Table

        table = Table(*head)
        for column in table.columns[1:]:
            column.justify = "right"
        for row in rows:
            table.add_row(*row)
        self._console.print(table)


class _InPipe:
    """Sentences, and columns with a tab between them."""

    def __init__(self, write: Write) -> None:
        self.line = write

    def table(self, head: Sequence[str], rows: Rows) -> None:
        """Write rows under their head."""
        for row in (head, *rows):
            self.line("\t".join(row))


def _headline(cost: "Cost") -> str:
    shape = cost.work.shape
    tokens = counted(shape.length, "token")
    rows = f"{counted(shape.rows, 'row')} of {tokens}"
    if shape.src_length:
        rows = f"{counted(shape.rows, 'pair')} of {shape.src_length:,} and {tokens}"
    return f"{cost.name}: {cost.work.config.kind}, task {cost.work.recipe.task}; a batch of {rows}."


def _parameters(cost: "Cost") -> Rows:
    total = sum(cost.parameters.values())
    for name, count in cost.parameters.items():
        yield name, f"{count:,}", f"{count / total:.1%}"
    yield "total", f"{total:,}", "100.0%"


def _arithmetic(cost: "Cost") -> Rows:
    flops = cost.flops
    yield "training, forward and backward", _flops_said(flops.training)
    yield "  of that, scores and weighting", f"{flops.scores:.1%}"
    yield "  and the output layer", f"{flops.output:.1%}"
    if flops.prefill is not None:
        what = "reading" if flops.decoding is None else "prefill"
        yield f"{what}, a token of {cost.work.length}", _flops_said(flops.prefill)
    if flops.decoding is not None:
        yield "a decoded token, each hypothesis", _flops_said(flops.decoding)


def _memory(cost: "Cost") -> Rows:
    memory, precision = cost.memory, cost.rates.precision
    peak = memory.training
    other = "fp32" if precision == "bf16" else "bf16"
    yield "weights, in float32 whatever the precision", bytes_said(peak.weights)
    yield "gradients", bytes_said(peak.gradients)
    yield "optimizer", bytes_said(peak.optimizer)
    yield f"activations of a batch, {precision}", bytes_said(peak.activations)
    yield f"  in {other}", bytes_said(memory.other_precision.activations)
    checkpointed = cost.work.recipe.train.activation_checkpointing
    way = "without" if checkpointed else "with"
    yield f"  {way} activation checkpointing", bytes_said(memory.other_checkpointing.activations)
    yield "  more, if the loss were not fused", bytes_said(memory.unfused_loss)
    yield "peak of a training step", bytes_said(peak.total)
    yield "peak of a validation", bytes_said(memory.validation)
    if memory.cache is not None:
        yield "cache of a sentence and beam", bytes_said(memory.cache)
    if memory.decoding is not None and memory.bf16_decoding is not None:
        yield "peak of decoding a full batch", bytes_said(memory.decoding.total)
        yield "  in bf16", bytes_said(memory.bf16_decoding.total)
    if memory.largest_rows is not None and cost.rates.memory is not None:
        tokens = memory.largest_rows * cost.work.shape.tokens // cost.work.shape.rows
        held = bytes_said(cost.rates.memory)
        rows = counted(memory.largest_rows, "row")
        yield f"largest batch in {held}", f"{rows}, {counted(tokens, 'token')}"


def _bills(cost: "Cost") -> Rows:
    written = "read" if cost.work.answer == 0 else "written"
    if cost.training.bill is not None:
        yield ("the training run", *_bill_said(cost.training.bill))
    yield (f"a million tokens {written}", *_bill_said(cost.texts.million))
    if cost.texts.month is not None:
        yield ("the month's traffic", *_bill_said(cost.texts.month))


def _bill_said(bill: "Bill") -> tuple[str, str, str]:
    energy = "unknown" if bill.kwh is None else energy_said(bill.kwh)
    money = "no price" if bill.money is None else money_said(bill.money, bill.currency)
    return time_said(bill.seconds), energy, money


def _training_said(cost: "Cost") -> str:
    run = cost.training
    step = f"A step takes {run.step_seconds:.3g} s"
    written = "read" if cost.work.answer == 0 else "written"
    speed = _speed_said(cost.texts.tokens_per_second, written)
    if run.steps is None or run.tokens is None:
        return f"{step}; the run ends by {run.limited_by}. {speed}."
    return (
        f"{step}; the run ends by {run.limited_by}, at {counted(run.steps, 'step')} and "
        f"{counted(run.tokens, 'token')}, with {counted(run.validations, 'validation')} and "
        f"{counted(run.saves, 'checkpoint')}. {speed}."
    )


def _speed_said(tokens: float, done: str) -> str:
    """Tokens of a second, or the seconds of a token where they are fewer than one."""
    if tokens < 1:
        return f"A token is {done} in {time_said(1 / tokens)}"
    return f"{tokens:,.{0 if tokens >= FEW else 1}f} tokens are {done} in a second"


# ---------------------------------------------------------------- numbers in words


def _flops_said(flops: float) -> str:
    for size, unit in ((1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP")):
        if flops >= size:
            return f"{flops / size:,.1f} {unit}"
    return f"{flops:,.0f} FLOP"


def bytes_said(count: float) -> str:
    """A size in 1e3, 1e6, 1e9 or 1e12 bytes."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:,.0f} B"


def time_said(seconds: float) -> str:
    """A time in the unit that suits it."""
    for size, unit in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.3g} s"


def energy_said(kwh: float) -> str:
    """An energy in the unit that suits it."""
    return f"{kwh:,.1f} kWh" if kwh >= 1 else f"{1000 * kwh:.3g} Wh"


def money_said(money: float, currency: str | None) -> str:
    """A sum with its currency: three digits of a small one."""
    sum_said = f"{money:,.2f}" if money >= 1 else f"{money:.3g}"
    return f"{sum_said} {currency or 'in your currency'}"
