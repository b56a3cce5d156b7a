"""What ``dragoman inspect MODEL TEXT`` finds: plain data that terminal, pictures and pages share.

``Inspection.to_dict()`` is the JSON of ``--json`` (docs/formats.md). Two lists of tokens carry
everything else, those of ``src`` and of ``tgt``; what counts tokens counts in them:

    kind              src.tokens                           tgt.tokens
    encoder-decoder   the source's, its end of sentence    the translation's, its end of sentence
    decoder-only      all that was read and written, the   none
                      prompt's and the model's own
    encoder-only      the text's, between its two ends     none

A row of an attention map is a query. In the maps "decoder" and "cross" of an encoder-decoder, row t
is the step that writes ``tgt.tokens[t]``; its keys in "decoder" are the tokens that were *read*:
the begin of sentence and then ``tgt.tokens``, so key s is ``tgt.tokens[s - 1]``. In all other maps
query t and key t are ``src.tokens[t]``. A decoder-only model does not read the last token that it
writes, so its map may be one token shorter than ``src.tokens``.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

__all__ = [
    "FORMAT",
    "Alignment",
    "Alternative",
    "AttentionMap",
    "Attribution",
    "BeamTree",
    "HeadSummary",
    "Inspection",
    "Node",
    "Note",
    "Prediction",
    "Sentence",
    "Step",
]

FORMAT = 1
"""The version of the JSON."""

HeadKind = Literal["previous-token", "diagonal", "separator", "broad", "mixed"]
NodeState = Literal["open", "chosen", "finished", "pruned", "beaten"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A text and the tokens that the model makes of it."""

    text: str
    """As a person reads it."""
    tokens: tuple[str, ...]
    """Its pieces, with those that are no text."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"text": self.text, "tokens": list(self.tokens)}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSummary:
    """What one head does on this text, in four numbers and a word (``lens.summaries``)."""

    entropy: float
    """How spread out its weights are, in nats, averaged over the queries."""
    previous: float
    """The share of its attention that goes to the position before the query's own, 0 to 1."""
    diagonal: float
    """The share that goes to the query's own position; in cross-attention to the same relative
    place."""
    separator: float
    """The share that goes to tokens that are no text: begin and end of sentence."""
    kind: HeadKind
    """The word for it."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "entropy": _rounded(self.entropy),
            "previous": _rounded(self.previous),
            "diagonal": _rounded(self.diagonal),
            "separator": _rounded(self.separator),
            "kind": self.kind,
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttentionMap:
    """The weights of one kind of attention, for the layers and heads that were kept."""

    name: Literal["encoder", "decoder", "cross"]
    """Which attention of the model."""
    queries: Literal["src", "tgt"]
    """Which list of tokens the rows count in."""
    keys: Literal["src", "tgt"]
    """Which list of tokens the columns count in."""
    query_tokens: tuple[str, ...]
    """What stands at the rows."""
    key_tokens: tuple[str, ...]
    """What stands at the columns."""
    num_layers: int
    """Layers that the model has of it."""
    num_heads: int
    """Heads of each layer."""
    layers: tuple[int, ...]
    """The number, from 0, of each layer that is kept."""
    heads: tuple[int, ...]
    """The number, from 0, of each head that is kept."""
    weights_LHTS: np.ndarray
    """The weights; a row sums to one over what its query sees."""
    summaries: tuple[tuple[HeadSummary, ...], ...]
    """One for each kept layer and head."""

    @property
    def is_whole(self) -> bool:
        """Whether every layer and head is kept."""
        return (len(self.layers), len(self.heads)) == (self.num_layers, self.num_heads)

    @property
    def mean_name(self) -> str:
        """What the mean over the kept heads is called."""
        if len(self.heads) == self.num_heads:
            return "mean of the heads"
        if len(self.heads) == 1:
            return f"head {self.heads[0]}"
        return f"mean of heads {', '.join(map(str, self.heads))}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: weights with four digits."""
        return {
            "name": self.name,
            "queries": self.queries,
            "keys": self.keys,
            "query_tokens": list(self.query_tokens),
            "key_tokens": list(self.key_tokens),
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "layers": list(self.layers),
            "heads": list(self.heads),
            "weights": _rounded_array(self.weights_LHTS),
            "summaries": [[head.to_dict() for head in layer] for layer in self.summaries],
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Alignment:
    """Which source token each token of the translation comes from, as far as attention tells."""

    links: tuple[tuple[int, int, float], ...]
    """Target token, source token and weight; not for the end of the sentence."""
    weights_TS: np.ndarray
    """The last layer's cross-attention, averaged over its heads: what the links are read from."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "links": [[t, s, _rounded(weight)] for t, s, weight in self.links],
            "weights": _rounded_array(self.weights_TS),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A token that could have stood there, or a label."""

    token: str
    """What it is called."""
    prob: float
    """Its probability, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One choice of a token, and what else there was to choose."""

    index: int
    """The place of the token in ``tgt.tokens``, or in ``src.tokens`` where there is no target."""
    token: str
    """The token that stands there; at a masked place of an encoder the most probable one."""
    log_prob: float
    """The natural logarithm of its probability."""
    entropy: float
    """Of the whole distribution, in nats: 0 where the model is sure."""
    alternatives: tuple[Alternative, ...]
    """The most probable tokens, best first; the one that stands there may be among them."""
    given: bool = False
    """Whether the token was in the text already, and not chosen by the model (decoder-only)."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "index": self.index,
            "token": self.token,
            "log_prob": _rounded(self.log_prob, 6),
            "entropy": _rounded(self.entropy, 6),
            "given": self.given,
            "alternatives": [
                {"token": other.token, "prob": _rounded(other.prob, 6)}
                for other in self.alternatives
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One prefix that beam search looked at: its parent's, and one token more."""

    id: int
    """Its number; a parent's is always lower."""
    parent: int | None
    """The node that it continues; None for the root, which has no token of the output."""
    step: int
    """Tokens of the prefix: 0 for the root."""
    rank: int
    """Its place among the continuations of its step, 0 for the best by ``log_prob``."""
    token: str
    """The token that it adds."""
    log_prob: float
    """The sum over the prefix, natural logarithm."""
    score: float | None
    """``log_prob`` over the length penalty, where the prefix is complete."""
    state: NodeState
    """"chosen": part of the best hypothesis. "finished": complete, and not the best. "open": goes
    on, and a later node tells how it ends. "pruned": left out of the beam. "beaten": still open
    when the search stopped, since it could no longer win."""
    why: str
    """What became of it and why, one sentence."""
    why_zh: str
    """The same in Chinese."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "id": self.id,
            "parent": self.parent,
            "step": self.step,
            "rank": self.rank,
            "token": self.token,
            "log_prob": _rounded(self.log_prob, 6),
            "score": None if self.score is None else _rounded(self.score, 6),
            "state": self.state,
            "why": self.why,
            "why_zh": self.why_zh,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BeamTree:
    """Every expansion of one beam search."""

    beam_size: int
    """Hypotheses that were kept."""
    length_penalty: float
    """The exponent of the score."""
    nodes: tuple[Node, ...]
    """The root first, then step by step, and within a step by rank."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "beam_size": self.beam_size,
            "length_penalty": self.length_penalty,
            "nodes": [node.to_dict() for node in self.nodes],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What an encoder with a head says of the text."""

    labels: tuple[Alternative, ...] = ()
    """The labels of a classifier with their probabilities, most probable first."""
    tags: tuple[str | None, ...] = ()
    """The tag at each of ``src.tokens`` of a tagger; None where it says none: a word is tagged at
    its first token."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: only what there is."""
        if self.tags:
            return {"tags": list(self.tags)}
        return {
            "labels": [
                {"label": label.token, "prob": _rounded(label.prob, 6)} for label in self.labels
            ]
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """How much each token had to do with the label, by one method; no proof of cause."""

    method: Literal["rollout", "gradient-input"]
    """"rollout": attention followed back through the layers, shares that sum to one.
    "gradient-input": what the label's logit changes by, to first order, with a token's vector
    taken away; either sign."""
    scores: tuple[float, ...]
    """One for each of ``src.tokens``."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"method": self.method, "scores": [_rounded(score, 6) for score in self.scores]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that the reader must know, such as what was cut."""

    en: str
    """One sentence."""
    zh: str
    """The same in Chinese."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"en": self.en, "zh": self.zh}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Everything that was found about one text."""

    kind: Literal["encoder-decoder", "decoder-only", "encoder-only"]
    """The variant of the model."""
    model: str
    """Where it lies."""
    src_lang: str | None = None
    """The code of the source language, or of the only one, where the folder says it."""
    tgt_lang: str | None = None
    """The code of the target language, where the folder says it."""
    src: Sentence
    """The text; of a decoder-only model with what it wrote behind."""
    tgt: Sentence | None = None
    """The translation."""
    attention: tuple[AttentionMap, ...] = ()
    """One for each kind of attention that the model has."""
    alignment: Alignment | None = None
    """Of a translation."""
    steps: tuple[Step, ...] = ()
    """Of a translation and of a continuation each token; of a masked language model each gap."""
    beam: BeamTree | None = None
    """Of a translation."""
    prediction: Prediction | None = None
    """Of an encoder with a head."""
    attributions: tuple[Attribution, ...] = ()
    """Of a classifier."""
    notes: tuple[Note, ...] = field(default=())
    """What was cut or left out."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "format": FORMAT,
            "kind": self.kind,
            "model": self.model,
            "languages": {"src": self.src_lang, "tgt": self.tgt_lang},
            "src": self.src.to_dict(),
            "tgt": None if self.tgt is None else self.tgt.to_dict(),
            "attention": [each.to_dict() for each in self.attention],
            "alignment": None if self.alignment is None else self.alignment.to_dict(),
            "steps": [step.to_dict() for step in self.steps],
            "beam": None if self.beam is None else self.beam.to_dict(),
            "prediction": None if self.prediction is None else self.prediction.to_dict(),
            "attributions": [each.to_dict() for each in self.attributions],
            "notes": [note.to_dict() for note in self.notes],
        }


def _rounded(value: float, digits: int = 4) -> float:
    """Without "-0.0"."""
    return round(float(value), digits) + 0.0


def _rounded_array(values: np.ndarray) -> list[Any]:
    rounded: list[Any] = (np.round(values.astype(np.float64), 4) + 0.0).tolist()
    return rounded
