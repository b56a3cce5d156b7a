"""The plot of a run, as an SVG made without libraries, and its answers over time."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from dragoman.train.log import LogLine

Points = Sequence[tuple[int, float]]
"""Pairs of step and value."""

WIDTH, HEIGHT = 420, 250
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 34, 28
"""Size of a panel, and the margins around its curves."""
MOST = 400
"""Maximum number of points of a curve; longer curves keep every second point, every third, etc."""
COLOURS = ("#1f6fb4", "#c23b22")
GRID = 4
"""Number of parts into which grid lines divide each axis."""


def draw_run(lines: Sequence[LogLine], metric: str) -> str:
    """Return the SVG of a run: losses, score, learning rate and gradient norm by step.

    Values that are not finite are left out. `metric` is what selects the best model; a run without
    a score shows its validation loss instead.
    """

    def curve(name: str) -> Points:
        values = [(each.step, getattr(each, name)) for each in lines]
        return [(step, value) for step, value in values if value is not None]

    def validated(name: str) -> Points:
        return [(each.step, each.valid[name]) for each in lines if name in each.valid]

    panels: Mapping[str, Mapping[str, Points]] = {
        "loss": {"training": curve("loss"), "validation": validated("loss")},
        f"validation, {metric}": {"": validated(metric)},
        "learning rate": {"": curve("learning_rate")},
        "norm of the gradient": {"": curve("grad_norm")},
    }
    last = max((each.step for each in lines), default=0) or 1
    drawn = []
    for number, (title, curves) in enumerate(panels.items()):
        x, y = number % 2 * WIDTH, number // 2 * HEIGHT
        drawn += [f'<g transform="translate({x} {y})">', *_panel(title, curves, last), "</g>"]
    size = f'width="{2 * WIDTH}" height="{2 * HEIGHT}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {2 * HEIGHT}" {size} '
        'font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, f'<rect {size} fill="white"/>', *drawn, "</svg>\n"])


def side_by_side(lines: Sequence[LogLine]) -> str:
    """Return the answers to each validation text over time, below the reference, as text."""
    answers: dict[str, list[str]] = {}
    for line in lines:
        for answer, reference in line.examples:
            answers.setdefault(reference, []).append(f"{line.step:>9,}  {answer}")
    blocks = ["\n".join([f"{'right':>9}  {right}", *each]) for right, each in answers.items()]
    return "".join(f"{block}\n\n" for block in blocks)


@dataclass(frozen=True, slots=True)
class Axes:
    """The coordinates of a panel."""

    last: int
    """The step at the right edge."""
    low: float
    high: float

    def x(self, step: float) -> str:
        """Return the x coordinate of a step."""
        return f"{LEFT + (WIDTH - RIGHT - LEFT) * step / self.last:.1f}"

    def y(self, value: float) -> str:
        """Return the y coordinate of a value."""
        share = (value - self.low) / (self.high - self.low)
        return f"{HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share:.1f}"

    def grid(self) -> Iterator[str]:
        """Yield the grid lines and the numbers of both axes."""
        for part in range(GRID + 1):
            value = self.low + (self.high - self.low) * part / GRID
            step, y = self.last * part // GRID, self.y(value)
            yield f'<path d="M{LEFT} {y}H{WIDTH - RIGHT}" stroke="#ddd"/>'
            yield f'<text x="{LEFT - 6}" y="{y}" dy="4" text-anchor="end">{value:.3g}</text>'
            below = f'y="{HEIGHT - 10}" text-anchor="middle"'
            yield f'<text x="{self.x(step)}" {below}>{step:,}</text>'


def _panel(title: str, curves: Mapping[str, Points], last: int) -> Iterator[str]:
    finite = {name: [p for p in points if math.isfinite(p[1])] for name, points in curves.items()}
    values = [value for points in finite.values() for _, value in points]
    low, high = min(values, default=0.0), max(values, default=1.0)
    axes = Axes(last, low, high if high > low else low + max(1e-9, abs(low) / 10))
    yield f'<text x="{LEFT}" y="20" font-weight="bold">{escape(title)}</text>'
    yield from axes.grid()
    for number, (name, points) in enumerate(finite.items()):
        colour, x = COLOURS[number], WIDTH - RIGHT - 80 * (len(finite) - 1 - number)
        thinned = points[:: -(-len(points) // MOST) or 1]
        path = " ".join(f"{axes.x(step)},{axes.y(value)}" for step, value in thinned)
        pen = f'stroke="{colour}" stroke-width="1.5" stroke-linecap="round"'
        yield f'<polyline points="{path}" fill="none" {pen}/>'
        yield f'<text x="{x}" y="20" text-anchor="end" fill="{colour}">{escape(name)}</text>'
