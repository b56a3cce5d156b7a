"""`dragoman runs`: the training runs below a folder, in a table."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.output import option, print_found


def runs(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder that contains runs.")],
    *,
    price: Annotated[
        float | None, option("Price per hour of a core or a GPU, to compute the cost of each run.")
    ] = None,
    as_json: Annotated[bool, option("Print one JSON object.", "--json")] = False,
) -> None:
    """List the training runs in and below a folder, latest first, with scores and status.

    dragoman runs runs
    """
    from dragoman.ranges import Positive, check_range
    from dragoman.tasks.listing import HEAD, list_runs

    if price is not None:
        check_range("--price", price, Positive)
    rows = list_runs(folder, price)
    shown = [[HEAD, *(row.cells for row in rows)]]
    print_found({"runs": [row.to_dict() for row in rows]}, shown, as_json=as_json)
