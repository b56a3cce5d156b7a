"""Made inspections of every variant: seeded weights, and small beams whose numbers add up."""

import math
from dataclasses import replace

import numpy as np

from dragoman.lens.inspection import (
    AlignmentMap,
    Alternative,
    AttentionMap,
    Attribution,
    BeamTree,
    HeadSummary,
    Inspection,
    LogitPart,
    Node,
    Note,
    Prediction,
    Sentence,
    SwitchedOff,
    TokenChoice,
)

SRC = ("I", " have", " two", " red", " apples", ".", "</s>")
TGT = ("我", "有", "两个", "红", "苹果", "。", "</s>")
KINDS = ("previous-token", "diagonal", "separator", "broad", "mixed")


def translation() -> Inspection:
    """An encoder-decoder with a beam of three."""
    rng = np.random.default_rng(1)
    weights_TS = _softmax(5 * np.eye(len(TGT), len(SRC)) + rng.normal(size=(len(TGT), len(SRC))))
    links = tuple((t, t, float(weights_TS[t, t])) for t in range(len(TGT) - 1))
    return Inspection(
        kind="encoder-decoder",
        model="runs/en-zh",
        src_lang="en",
        tgt_lang="zh",
        src=Sentence(text="I have two red apples.", tokens=SRC),
        tgt=Sentence(text="我有两个红苹果。", tokens=TGT),
        attention=(
            _map("encoder", SRC, SRC),
            _map("decoder", TGT, ("<s>", *TGT[:-1])),
            _map("cross", TGT, SRC),
        ),
        alignment=AlignmentMap(links=links, weights_TS=weights_TS),
        steps=_steps(TGT, first=0),
        logits=_parts(len(TGT), cross=True),
        beam=_beam(),
        switched_off=tuple(
            SwitchedOff(
                name=name,
                layer=layer,
                head=head,
                text="我有两个苹果。" if layer == head else "我有两个红苹果。",
                log_prob=-2.1 - 0.3 * head * layer,
                change=-0.3 * head * layer,
            )
            for name in ("encoder", "decoder", "cross")
            for layer in range(3)
            for head in range(4)
        ),
        notes=(Note(en="Only the first sentence is shown.", zh="只显示第一句。"),),
    )


def continuation() -> Inspection:
    """A decoder-only model that went on after three given tokens."""
    tokens = ("Once", " upon", " a", " time", " there", " was", " </script><b>", " שלום", "\n")
    return Inspection(
        kind="decoder-only",
        model="runs/stories",
        src=Sentence(text="".join(tokens), tokens=tokens),
        attention=(_map("decoder", tokens, tokens),),
        steps=_steps(tokens[1:], first=1, given=2),
        logits=_parts(len(tokens) - 1, cross=False),
    )


def chosen() -> Inspection:
    """The same, where layer 1 and its heads 0 and 3 alone were asked for."""
    found = continuation()
    [whole] = found.attention
    part = replace(
        whole,
        layers=(1,),
        heads=(0, 3),
        weights_LHTS=whole.weights_LHTS[1:2, [0, 3]],
        summaries=((whole.summaries[1][0], whole.summaries[1][3]),),
    )
    note = Note(en="A part is shown.", zh="只显示一部分。")
    return replace(found, attention=(part,), notes=(note,))


def classification() -> Inspection:
    """An encoder with labels."""
    tokens = ("<s>", "Not", " a", " bad", " film", " at", " all", "</s>")
    rollout = _softmax(np.random.default_rng(2).normal(size=len(tokens)))
    signed = (0.01, -0.8, 0.02, 1.4, 0.3, -0.1, 0.2, 0.0)
    return Inspection(
        kind="encoder-only",
        model="runs/films",
        src_lang="en",
        src=Sentence(text="Not a bad film at all", tokens=tokens),
        attention=(_map("encoder", tokens, tokens),),
        prediction=Prediction(
            labels=tuple(
                Alternative(token=label, prob=prob)
                for label, prob in (("positive", 0.91), ("negative", 0.09))
            )
        ),
        attributions=(
            Attribution(method="rollout", scores=tuple(map(float, rollout))),
            Attribution(method="gradient-input", scores=signed),
        ),
    )


def tagging() -> Inspection:
    """An encoder with tags."""
    tokens = ("<s>", "Ada", " Love", "lace", " lived", " in", " London", "</s>")
    return Inspection(
        kind="encoder-only",
        model="runs/names",
        src_lang="en",
        src=Sentence(text="Ada Lovelace lived in London", tokens=tokens),
        attention=(_map("encoder", tokens, tokens),),
        prediction=Prediction(tags=(None, "B-PER", "I-PER", None, "O", "O", "B-LOC", None)),
    )


def filling() -> Inspection:
    """A masked language model with one gap, of a language that is written from right to left."""
    tokens = ("<s>", "عاصمة", " مصر", " هي", "<mask>", ".", "</s>")
    return Inspection(
        kind="encoder-only",
        model="runs/pretrained",
        src_lang="ar",
        src=Sentence(text="عاصمة مصر هي <mask>.", tokens=tokens),
        attention=(_map("encoder", tokens, tokens),),
        steps=_steps((" القاهرة",), first=4),
    )


MADE = {
    "translation": translation,
    "continuation": continuation,
    "chosen": chosen,
    "classification": classification,
    "tagging": tagging,
    "filling": filling,
}
"""Every variant of the page."""


def _softmax(scores: np.ndarray) -> np.ndarray:
    weights: np.ndarray = np.exp(scores - scores.max(-1, keepdims=True))
    normalised: np.ndarray = weights / weights.sum(-1, keepdims=True)
    return normalised


def _map(
    name: str, queries: tuple[str, ...], keys: tuple[str, ...], *, layers: int = 3, heads: int = 4
) -> AttentionMap:
    """Random weights with some structure, causal for a decoder."""
    rng = np.random.default_rng(len(name))
    shape = (layers, heads, len(queries), len(keys))
    scores_LHTS = 1.3 * rng.normal(size=shape)
    scores_LHTS[:, 1] += 3 * np.eye(len(queries), len(keys))
    scores_LHTS[:, 2] += 4 * np.eye(len(queries), len(keys), k=-1)
    scores_LHTS[:, 3, :, -1] += 3
    if name == "decoder":
        scores_LHTS[..., ~np.tri(len(queries), len(keys), dtype=bool)] = -np.inf
    target = name in {"decoder", "cross"} and queries == TGT
    return AttentionMap(
        name=name,  # type: ignore[arg-type]
        queries="tgt" if target else "src",
        keys="tgt" if target and name == "decoder" else "src",
        query_tokens=queries,
        key_tokens=keys,
        num_layers=layers,
        num_heads=heads,
        layers=tuple(range(layers)),
        heads=tuple(range(heads)),
        weights_LHTS=_softmax(scores_LHTS),
        summaries=tuple(
            tuple(_summary((layer + head) % len(KINDS)) for head in range(heads))
            for layer in range(layers)
        ),
    )


def _summary(kind: int) -> HeadSummary:
    return HeadSummary(
        entropy=0.4 + 0.3 * kind,
        previous=0.2,
        diagonal=0.3,
        separator=0.1,
        kind=KINDS[kind],  # type: ignore[arg-type]
    )


def _steps(tokens: tuple[str, ...], *, first: int, given: int = 0) -> tuple[TokenChoice, ...]:
    rng = np.random.default_rng(3)
    steps = []
    for n, token in enumerate(tokens):
        prob = float(rng.uniform(0.3, 0.95))
        others = tuple(
            Alternative(token=other, prob=(1 - prob) / 2**k)
            for k, other in enumerate((" x", "和", " the", "?"), start=1)
        )
        steps.append(
            TokenChoice(
                index=first + n,
                token=token,
                log_prob=math.log(prob),
                entropy=float(rng.uniform(0.1, 2)),
                alternatives=(Alternative(token=token, prob=prob), *others),
                given=n < given,
                lens=(others[2], Alternative(token=token, prob=prob)),
            )
        )
    return tuple(steps)


def _parts(steps: int, *, cross: bool) -> tuple[LogitPart, ...]:
    """The parts of a decoder of two layers with two heads: the first one's share is 1, 2, ..."""
    names = ("decoder", "cross") if cross else ("decoder",)
    keys = (
        *((name, layer, head) for layer in range(2) for name in names for head in range(2)),
        *(("feed-forward", 0, None), ("feed-forward", 1, None)),
        *(("embedding", None, None), ("biases", None, None)),
    )
    return tuple(
        LogitPart(
            name=name,  # type: ignore[arg-type]
            layer=layer,
            head=head,
            shares=tuple((step + 1) * (-0.5) ** n for step in range(steps)),
        )
        for n, (name, layer, head) in enumerate(keys)
    )


def _beam() -> BeamTree:
    """The chosen way, and at each step one that is pruned; one ends early, one is beaten."""
    nodes = [_node(0, None, (0, 0), "<s>", 0.0, "chosen")]
    way = 0
    for step, token in enumerate(TGT, start=1):
        number = len(nodes)
        last = step == len(TGT)
        nodes += [
            _node(number, way, (step, 0), token, -0.3 * step, "chosen"),
            _node(
                number + 1, way, (step, 1), "了", -0.3 * step - 0.9, "beaten" if last else "open"
            ),
            _node(number + 2, way, (step, 2), "</s>", -0.3 * step - 1.2, "finished"),
            _node(number + 3, way, (step, 3), "的", -0.3 * step - 2.5, "pruned"),
        ]
        way = number
    return BeamTree(beam_size=3, length_penalty=0.6, nodes=tuple(nodes))


def _node(
    number: int, parent: int | None, place: tuple[int, int], token: str, log_prob: float, state: str
) -> Node:
    return Node(
        id=number,
        parent=parent,
        step=place[0],
        rank=place[1],
        token=token,
        log_prob=log_prob,
        score=log_prob / 1.5 if token == "</s>" else None,  # noqa: S105 -- a token of text
        state=state,  # type: ignore[arg-type]
        why=f"Made to be {state}.",
        why_zh=f"造来演示“{state}”。",
    )
