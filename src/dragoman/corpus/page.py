"""The findings in a corpus as one HTML file, without scripts or external resources."""

from collections.abc import Iterator
from html import escape

import numpy as np
import numpy.typing as npt

from dragoman.corpus.checking import Checked, CorpusReport, Mask
from dragoman.corpus.config import MEANING
from dragoman.errors import escaped
from dragoman.wording import counted

BINS, WIDTH, HEIGHT = 30, 600, 140
"""Number of bars of a histogram, and its size."""
MOST = 0.999
"""Share of the pairs in the range of a histogram; its last bar includes the longer ones."""

_STYLE = """
:root { color-scheme: light dark; --kept: #4878a8; --removed: #d1603d }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% } th { text-align: start }
td, th { padding: .2rem .6rem; vertical-align: top; overflow-wrap: anywhere }
td.number { text-align: end; font-variant-numeric: tabular-nums } svg { width: 100%; height: auto }
.kept { fill: var(--kept) } .removed { fill: var(--removed) }
text { fill: currentColor; font-size: 12px }
"""
_HEAD = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Corpus report</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>
"""


def page(found: Checked, report: CorpusReport, name: str) -> str:
    """Return the HTML page of a report on the corpus `name`."""
    return "\n".join([_HEAD, *_parts(found, report, name), "</body></html>\n"])


def _parts(found: Checked, report: CorpusReport, name: str) -> Iterator[str]:
    languages = ", ".join(code or "not known" for code in report.languages)
    yield f"<h1>{_cell(name)}</h1><p>{counted(report.pairs, 'pair')}, languages {languages}: "
    good = counted(report.kept, "is good", "are good")
    yield f"{good}, {counted(report.pairs - report.kept, 'is not', 'are not')}.</p>"
    yield "<h2>Rules</h2><table><tr><th>rule<th>a pair<th>removed<th>of</tr>"
    for each in report.rules:
        yield (
            f"<tr><td>{each.rule}<td>{MEANING[each.rule]}<td class=number>{each.removed:,}"
            f"<td class=number>{each.broken:,}</tr>"
        )
    yield "</table><h2>Lengths</h2><p>Pairs that stay are blue, those that are removed red.</p>"
    src, tgt = found.lengths_P2.T
    yield _histogram("Words of the source", src, found.kept)
    yield _histogram("Words of the target", tgt, found.kept)
    yield _histogram(
        "Words of the target for one of the source", tgt / np.maximum(src, 1), found.kept
    )
    yield "<h2>Examples</h2>"
    for each in filter(lambda one: one.examples, report.rules):
        yield f"<h3>{each.rule}</h3><table>"
        for number, *texts in each.examples:
            yield f"<tr><td class=number>{number:,}<td>{'<td>'.join(map(_cell, texts))}</tr>"
        yield "</table>"


def _cell(text: str) -> str:
    return escape(escaped(text))


def _histogram(title: str, values: npt.NDArray[np.float64], kept: Mask) -> str:
    """Return an SVG histogram of kept and removed pairs by value."""
    high = float(np.quantile(values, MOST, method="higher") if len(values) else 0) or 1.0
    width = np.ceil(high / BINS) if high >= BINS / 3 else high / BINS  # whole words per bar
    edges = np.arange(high // width + 2) * width
    counts = [np.histogram(np.minimum(values[some], high), edges)[0] for some in (kept, ~kept)]
    scale, step = HEIGHT / max(1, int(np.add(*counts).max())), WIDTH / (len(edges) - 1)
    bars = []
    for number, (good, bad) in enumerate(zip(*counts, strict=True)):
        place, top = number * step, HEIGHT - good * scale
        said = f"{edges[number]:.3g} to {edges[number + 1]:.3g}: {good:,} stay, {bad:,} removed"
        bars.append(
            f'<g><title>{said}</title><rect class="kept" x="{place:.1f}" y="{top:.1f}" '
            f'width="{step - 1:.1f}" height="{good * scale:.1f}"/><rect class="removed" '
            f'x="{place:.1f}" y="{top - bad * scale:.1f}" width="{step - 1:.1f}" '
            f'height="{bad * scale:.1f}"/></g>'
        )
    labels = (
        f'<text x="0" y="{HEIGHT + 16}">0</text>'
        f'<text x="{WIDTH}" y="{HEIGHT + 16}" text-anchor="end">{high:.3g}</text>'
    )
    picture = f'<svg role="img" viewBox="0 0 {WIDTH} {HEIGHT + 20}" aria-label="{title}">'
    return f"<h3>{title}</h3>{picture}{''.join(bars)}{labels}</svg>"
