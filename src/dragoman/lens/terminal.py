"""An inspection as lines of text: for a terminal, a pipe, an e-mail.

No colours. A Chinese character counts as two letters wide, so that columns are aligned.
"""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from math import exp
from typing import get_args

import numpy as np
from rich.cells import cell_len

from dragoman.lens.inspection import (
    Alternative,
    AttentionMap,
    BeamTree,
    HeadKind,
    Inspection,
    LogitPart,
    Prediction,
)

SMALLEST_SHARE = 0.1
"""Smallest share of attention that is printed."""
LINKS = 3
"""Maximum number of tokens printed in a row."""
BEGINNING = 40
"""Maximum number of tokens printed for a hypothesis."""
BAR = 20
"""Length of the longest bar in characters."""
LISTED = 24
"""Maximum number of heads listed one by one, if only some were chosen."""
KINDS = (
    "(a head is named for the kind of place that gets half of its attention; broad: nearly even;",
    " mixed: neither, where it looks depends on the words; --layers 0 lists the heads of a layer)",
)
"""The meaning of the names of heads."""
GUESSES = 4
"""Maximum number of logit-lens guesses printed for a token, the last ones."""


def lines_of(inspection: Inspection) -> Iterator[str]:
    """Yield the lines, without their ends: a section for each part, with empty lines between."""
    sections = [
        _texts(inspection),
        _prediction(inspection),
        _attributions(inspection),
        _steps(inspection),
        _logits(inspection),
        _heads(inspection.attention),
        _switched_off(inspection),
        _beam(inspection.beam),
        *([f"Note: {note.en}"] for note in inspection.notes),
    ]
    for number, lines in enumerate(found for section in sections if (found := list(section))):
        yield from ["", *lines] if number else lines


# ---------------------------------------------------------------- sections


def _texts(inspection: Inspection) -> Iterator[str]:
    rows = [
        ("model", f"{inspection.model} ({inspection.kind})"),
        (inspection.src_lang or "text", _shown(inspection.src.text)),
    ]
    if inspection.tgt is not None:
        rows.append((inspection.tgt_lang or "translation", _shown(inspection.tgt.text)))
    return table(rows)


def _prediction(inspection: Inspection) -> Iterator[str]:
    prediction = inspection.prediction or Prediction()
    if prediction.tags:
        tagged = zip(inspection.src.tokens, prediction.tags, strict=True)
        return table([("token", "tag"), *((_piece(token), tag or "") for token, tag in tagged)])
    labels = [
        (_shown(label.token), f"{label.prob:.1%}", _bar(label.prob)) for label in prediction.labels
    ]
    return table([("label", "p", ""), *labels] if labels else [], right={1})


def _attributions(inspection: Inspection) -> Iterator[str]:
    """Return each token's contribution to the first label, with the methods side by side."""
    if not inspection.attributions:
        return iter(())
    columns = [("token", *map(_piece, inspection.src.tokens))]
    for each in inspection.attributions:
        most = max(map(abs, each.scores)) or 1.0
        columns.append((each.method, *(f"{score:.4f}" for score in each.scores)))
        columns.append(("", *(_bar(abs(score) / most) for score in each.scores)))
    return table(list(zip(*columns, strict=True)), right={1, 3})


def _steps(inspection: Inspection) -> Iterator[str]:
    """Yield a row for each token: the model's certainty, where it looked, and alternatives."""
    if not inspection.steps:
        return
    looked = _looks(inspection)
    rows = [("token", "p", "looked at", "instead")]
    for step in inspection.steps:
        others = [
            f"{_piece(other.token)} {other.prob:.1%}"
            for other in step.alternatives
            if other.token != step.token and other.prob >= 0.001
        ]
        shares = _shares(looked.get(step.index), inspection.src.tokens)
        token = f"({_piece(step.token)})" if step.given else _piece(step.token)
        rows.append((token, f"{exp(step.log_prob):.1%}", shares, ", ".join(others[:LINKS])))
    yield from table(rows, right={1})
    if any(step.given for step in inspection.steps):
        yield "(in brackets: tokens that were given)"
    if inspection.alignment is None and inspection.attention:
        yield from _whose_looks(inspection.attention[0])


def _looks(inspection: Inspection) -> Mapping[int, np.ndarray]:
    """Return the weights over `src.tokens` by the index of each step: the last layer's mean."""
    if inspection.alignment is not None:
        return dict(enumerate(inspection.alignment.weights_TS))
    if not inspection.attention:
        return {}
    ahead = 1 if inspection.kind == "decoder-only" else 0  # each query predicts the next token
    return dict(enumerate(inspection.attention[0].weights_LHTS[-1].mean(0), start=ahead))


def _whose_looks(attention: AttentionMap) -> Iterator[str]:
    """Say what "looked at" averages, if it is not the last layer with all its heads."""
    layer = attention.layers[-1]
    if layer + 1 < attention.num_layers or len(attention.heads) < attention.num_heads:
        yield f"(looked at: layer {layer}, {attention.mean_name})"


def _logits(inspection: Inspection) -> Iterator[str]:
    """Return a row for each token: its logit, the parts with the largest shares, the logit lens."""
    if not inspection.logits:
        return iter(())
    rows = [("token", "logit", "largest shares", "best guess from layer on")]
    for n, step in enumerate(inspection.steps):
        parts = sorted(inspection.logits, key=lambda part: -abs(part.shares[n]))
        shares = ", ".join(f"{_part(part)} {part.shares[n]:+.1f}" for part in parts[:LINKS])
        logit = sum(part.shares[n] for part in parts)
        rows.append((_piece(step.token), f"{logit:.1f}", shares, _guesses(step.lens)))
    return table(rows, right={1})


def _part(part: LogitPart) -> str:
    """Return the name of a part with its numbers: "cross 1.0", "feed-forward 1", "embedding"."""
    numbers = ".".join(str(number) for number in (part.layer, part.head) if number is not None)
    return f"{part.name} {numbers}".rstrip()


def _guesses(lens: Sequence[Alternative]) -> str:
    """Return the most probable token after each layer at which it changes."""
    new = [n for n, guess in enumerate(lens) if n == 0 or guess.token != lens[n - 1].token]
    return ", ".join(f"{n}: {_piece(lens[n].token)} {lens[n].prob:.0%}" for n in new[-GUESSES:])


def _shares(weights_S: np.ndarray | None, tokens: Sequence[str]) -> str:
    if weights_S is None:
        return ""
    order = np.argsort(-weights_S, kind="stable")[:LINKS]
    best = [index for index in order if weights_S[index] >= SMALLEST_SHARE] or order[:1]
    return ", ".join(f"{_piece(tokens[index])} {weights_S[index]:.0%}" for index in best)


def _heads(maps: Sequence[AttentionMap]) -> Iterator[str]:
    """Yield the number of heads of each kind in each map; if only some were kept, each head."""
    if not maps:
        return
    kinds: tuple[HeadKind, ...] = get_args(HeadKind)
    rows = [("heads", "layers x heads", *kinds)]
    for each in maps:
        counts = Counter(head.kind for layer in each.summaries for head in layer)
        size = f"{len(each.layers)} x {len(each.heads)}"
        rows.append((each.name, size, *(str(counts[kind] or "-") for kind in kinds)))
    yield from table(rows, right=range(2, 2 + len(kinds)))
    yield from KINDS
    kept = sum(len(each.layers) * len(each.heads) for each in maps)
    if kept > LISTED or all(each.is_whole for each in maps):
        return
    yield ""
    listed: list[Sequence[str]] = [
        ("layer.head", "", "kind", "entropy", "previous", "diagonal", "separator")
    ]
    for each in maps:
        for layer, summaries in zip(each.layers, each.summaries, strict=True):
            for head, summary in zip(each.heads, summaries, strict=True):
                shares = (summary.previous, summary.diagonal, summary.separator)
                numbers = (f"{summary.entropy:.2f}", *(f"{share:.0%}" for share in shares))
                listed.append((f"{layer}.{head}", each.name, summary.kind, *numbers))
    yield from table(listed, right=range(3, 7))


def _switched_off(inspection: Inspection) -> Iterator[str]:
    """Yield the translation without each head, starting with those that matter most."""
    if not inspection.switched_off or inspection.tgt is None:
        return
    rows = [("switched off", "change of log-probability", "translation")]
    for each in sorted(inspection.switched_off, key=lambda each: each.change):
        text = "the same" if each.text == inspection.tgt.text else _shown(each.text)
        rows.append((f"{each.name} {each.layer}.{each.head}", f"{each.change:+.3f}", text))
    yield from table(rows, right={1})


def _beam(tree: BeamTree | None) -> Iterator[str]:
    """Yield the size of the tree, and the complete hypotheses, best first."""
    if tree is None:
        return
    counts = Counter(node.state for node in tree.nodes[1:])
    states = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    yield f"beam of {tree.beam_size}: {len(tree.nodes) - 1} prefixes looked at: {states}"
    complete = [node for node in tree.nodes if node.score is not None]
    complete.sort(key=lambda node: node.score or 0.0, reverse=True)
    rows = [("score", "log-probability", "complete")]
    for node in complete:
        tokens = []
        at = node
        while at.parent is not None:
            tokens.append(_piece(at.token))
            at = tree.nodes[at.parent]
        tokens.reverse()
        shown = tokens if len(tokens) <= BEGINNING else [*tokens[:BEGINNING], "..."]
        rows.append((f"{node.score:.3f}", f"{node.log_prob:.3f}", " ".join(shown)))
    yield from table(rows, right={0, 1})


# ---------------------------------------------------------------- columns


def table(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> Iterator[str]:
    """Yield rows as lines with aligned columns; the columns in `right` are right-aligned."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - cell_len(cell))
            cells.append(space + cell if column in right else cell + space)
        yield "  ".join(cells).rstrip()


def _piece(token: str) -> str:
    """Return a token with its spaces made visible."""
    return _shown(token).replace(" ", "\N{LOWER ONE EIGHTH BLOCK}")


def _shown(text: str) -> str:
    """Return a text on one line, safe for a terminal: unprintable characters as code points."""
    return "".join(
        char if char.isprintable() else _SIGNS.get(char, f"\\u{{{ord(char):x}}}") for char in text
    )


_SIGNS = {"\n": "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}", "\t": "\N{RIGHTWARDS ARROW TO BAR}"}


def _bar(share: float) -> str:
    return "#" * round(BAR * share)
