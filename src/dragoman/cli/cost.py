"""`dragoman cost`: what a model costs before it is trained: arithmetic, memory, time, money."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.data import with_corpus
from dragoman.cli.options import names_and_settings, with_options
from dragoman.cli.output import Item, option, print_found
from dragoman.cli.pipes import say, talk
from dragoman.cli.train import of_files, with_settings
from dragoman.corpus.config import PairFiles
from dragoman.cost.options import CostOptions
from dragoman.errors import InputError
from dragoman.wording import (
    counted,
    format_bytes,
    format_energy,
    format_flops,
    format_money,
    format_time,
)

if TYPE_CHECKING:
    from dragoman.cost.estimate import Bill, SeveralEstimate
    from dragoman.cost.report import Cost
    from dragoman.train.recipe import Work

SEVERAL = "devices,states on each,each sends in a step,time of that,step,tokens/s,of perfect"
"""Header of the table of several devices."""
FEW = 10
"""Tokens a second below which tenths are printed."""


@with_corpus
@with_options("asked", CostOptions())
def cost(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RECIPE|PRESET|MODEL] [KEY=VALUE ...]",
            help="A shipped recipe, a TOML file, a preset or a model folder, and settings that "
            "override its own; with --fit, the folders of runs.",
        ),
    ] = None,
    *,
    files: PairFiles,
    asked: CostOptions,
    as_json: Annotated[bool, option("Print one JSON object.", "--json")] = False,
) -> None:
    """Estimate the cost of training and using a model; no weights are created.

    dragoman cost multi30k-en-de

    dragoman cost multi30k-en-de train.max_steps=20000 --measure

    dragoman cost base batch.max_tokens=25000 --device h100 --tokens-per-month 500e6

    dragoman cost big --device h100 --nproc 8 --nproc 64 --link-gb 50

    dragoman cost --src a.en --tgt a.zh

    dragoman cost runs/en-zh --kwh-price 0.30 --json

    With --fit: a scaling law from runs, and the best size for a budget.

    dragoman cost --fit runs/sweep --predict runs/sweep/d64-4980 --minutes 60
    """
    names, overrides = names_and_settings(arguments)
    options = of_files(files)
    if asked.fit:
        words = [*overrides, *(name for name, (_, value) in options.items() if value is not None)]
        if words:
            raise InputError(f"{words[0]} has no meaning with --fit")
        from dragoman.cli.cost_fit import draw_scaling, show_scaling
        from dragoman.cost.scaling_report import report_scaling

        say("Fitting the law to the runs, and many times to resampled ones ...")
        report = report_scaling([*map(Path, names)], asked)
        if asked.png is not None:
            from dragoman.lens import save

            save(draw_scaling(report), asked.png)
        print_found(report, show_scaling(report), as_json=as_json)
        return
    overrides = with_settings(overrides, options)
    from dragoman.cost.machine import find_rates
    from dragoman.cost.recipes import find_one
    from dragoman.cost.report import cost_of

    name, recipe, runs = find_one(names, overrides)
    if not names:
        say(recipe.description)
    if runs:
        say(
            f"{name} describes {counted(runs, 'run')}; this is about one, the recipe "
            "without its grids. dragoman train says of each run what it takes."
        )
    work, measured = recipe.work(asked.length), None
    rates = find_rates(recipe.train, asked.device, asked.devices)
    if asked.measure:
        from dragoman.cost.measure import measure

        say("Timing real steps here; nothing is kept ...")
        measured = measure(work, talk())
    found = cost_of(name, work, rates, asked, measured)
    print_found(found, show_cost(found, work), as_json=as_json)


def show_cost(cost: "Cost", work: "Work") -> Iterator[Item]:
    """Yield everything that the estimate of a recipe contains."""
    tokens = counted(work.shape.length, "token")
    rows = f"{counted(work.shape.rows, 'row')} of {tokens}"
    if work.shape.src_length:
        rows = f"{counted(work.shape.rows, 'pair')} of {work.shape.src_length:,} and {tokens}"
    yield f"{cost.name}: {cost.kind}, task {cost.task}; a batch of {rows}."
    total = cost.parameters["total"]
    shares = [(name, f"{n:,}", f"{n / total:.1%}") for name, n in cost.parameters.items()]
    yield [("part", "parameters", "share"), *shares]
    yield [("arithmetic", "per token"), *_arithmetic(cost, work)]
    yield [("memory", "bytes"), *_memory(cost, work)]
    yield f"On {cost.device.device}, {cost.device.how}."
    if cost.measured is not None:
        yield f"Measured here: {cost.measured.how}; it goes before what is assumed."
    done = "written" if work.answer else "read"
    bills = {
        "the training run": cost.training.bill,
        f"a million tokens {done}": cost.texts.million,
        "the month's traffic": cost.texts.month,
    }
    taken = [(name, *_format_bill(bill)) for name, bill in bills.items() if bill is not None]
    yield [("what", "time", "energy", "money"), *taken]
    if cost.several:
        yield [SEVERAL.split(","), *map(_one_of_several, cost.several)]
    run, speed = cost.training, cost.texts.tokens_per_second
    step = f"A step takes {run.step_seconds:.3g} s; the run ends by {run.limited_by}"
    if run.steps is not None and run.tokens is not None:
        step += (
            f", at {counted(run.steps, 'step')} and {counted(run.tokens, 'token')}, with "
            f"{counted(run.validations, 'validation')} and {counted(run.saves, 'checkpoint')}"
        )
    if speed < 1:
        yield f"{step}. A token is {done} in {format_time(1 / speed)}."
    else:
        yield f"{step}. {speed:,.{0 if speed >= FEW else 1}f} tokens are {done} in a second."


def _arithmetic(cost: "Cost", work: "Work") -> Iterator[tuple[str, str]]:
    flops = cost.flops_per_token
    yield "training, forward and backward", format_flops(flops.training)
    yield "  of that, scores and weighting", f"{flops.scores:.1%}"
    yield "  and the output layer", f"{flops.output:.1%}"
    reading = "reading" if flops.decoding is None else "prefill"
    yield f"{reading}, a token of {work.length}", format_flops(flops.prefill)
    if flops.decoding is not None:
        yield "a decoded token, each hypothesis", format_flops(flops.decoding)


def _memory(cost: "Cost", work: "Work") -> Iterator[tuple[str, str]]:
    memory, precision = cost.memory, cost.device.precision
    way = "without" if work.recipe.train.activation_checkpointing else "with"
    sizes = {
        "weights, in float32 whatever the precision": memory.training.weights,
        "gradients": memory.training.gradients,
        "optimizer": memory.training.optimizer,
        f"activations of a batch, {precision}": memory.training.activations,
        f"  in {'fp32' if precision == 'bf16' else 'bf16'}": memory.other_precision.activations,
        f"  {way} activation checkpointing": memory.other_checkpointing.activations,
        "  more, if the loss were not fused": memory.unfused_loss,
        "peak of a training step": memory.training.total,
        "peak of a validation": memory.validation,
    }
    yield from ((name, format_bytes(size)) for name, size in sizes.items())
    if memory.cache is not None and memory.decoding and memory.bf16_decoding:
        yield "cache of a sentence and beam", format_bytes(memory.cache)
        yield "peak of decoding a full batch", format_bytes(memory.decoding.total)
        yield "  in bf16", format_bytes(memory.bf16_decoding.total)
    if memory.largest_rows is not None and cost.device.memory is not None:
        rows, tokens = memory.largest_rows, memory.largest_rows * work.shape.tokens
        largest = f"{counted(rows, 'row')}, {counted(tokens // work.shape.rows, 'token')}"
        yield f"largest batch in {format_bytes(cost.device.memory)}", largest


def _one_of_several(each: "SeveralEstimate") -> tuple[str, ...]:
    return (
        f"{each.devices:,}, {'a share of the model' if each.sharded else 'whole models'}",
        format_bytes(each.states),
        format_bytes(each.sent),
        format_time(each.communication_seconds),
        format_time(each.step_seconds),
        f"{each.tokens_per_second:,.0f}",
        f"{each.efficiency:.0%}",
    )


def _format_bill(bill: "Bill") -> tuple[str, str, str]:
    return (
        format_time(bill.seconds),
        "unknown" if bill.kwh is None else format_energy(bill.kwh),
        "no price" if bill.money is None else format_money(bill.money, bill.currency),
    )
