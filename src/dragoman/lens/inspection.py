"""The result of `dragoman inspect MODEL TEXT`, as plain data for terminal, pictures and pages.

`Inspection.to_dict()` is the JSON of `--json` (docs/formats.md). Everything refers to two lists of
tokens, those of `src` and of `tgt`; all token indices count in them:

    kind              src.tokens                           tgt.tokens
    encoder-decoder   the source's, its end of sentence    the translation's, its end of sentence
    decoder-only      all that were read and written, the  none
                      prompt's and the model's own
    encoder-only      the text's, between its two ends     none

A row of an attention map is a query. In the maps "decoder" and "cross" of an encoder-decoder, row t
is the step that writes `tgt.tokens[t]`; its keys in "decoder" are the tokens that were *read*: the
beginning of the sentence and then `tgt.tokens`, so key s is `tgt.tokens[s - 1]`. In all other maps,
query t and key t are `src.tokens[t]`. A decoder-only model does not read the last token that it
writes, so its map may be one token shorter than `src.tokens`.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dragoman.plain import Plain

FORMAT = 1
"""Version of the JSON format."""

HeadKind = Literal["previous-token", "diagonal", "separator", "broad", "mixed"]
NodeState = Literal["open", "chosen", "finished", "pruned", "beaten"]
MapName = Literal["encoder", "decoder", "cross"]
PartName = Literal["embedding", "decoder", "cross", "feed-forward", "biases"]


class InspectionPart(Plain):
    """A part of an inspection as plain data; numbers have six digits."""

    __slots__ = ()
    json_digits = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence(InspectionPart):
    """A text and its tokens in the model."""

    text: str
    tokens: tuple[str, ...]
    """Its pieces, including special tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSummary(InspectionPart):
    """How one head behaves on this text: four numbers and a word (`lens.weights.summarise`)."""

    json_digits = 4

    entropy: float
    """Entropy of its weights in nats, averaged over the queries."""
    previous: float
    """The share of its attention that goes to the position before the query's own, 0 to 1."""
    diagonal: float
    """The share that goes to the query's own position; in cross-attention, to the same relative
    position."""
    separator: float
    """The share that goes to special tokens: beginning and end of sentence."""
    kind: HeadKind


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttentionMap(InspectionPart):
    """The weights of one kind of attention, for the layers and heads that were kept."""

    json_digits = 4

    name: MapName
    queries: Literal["src", "tgt"]
    """The list of tokens that the rows index."""
    keys: Literal["src", "tgt"]
    """The list of tokens that the columns index."""
    query_tokens: tuple[str, ...]
    key_tokens: tuple[str, ...]
    num_layers: int
    """Number of layers with this attention in the model."""
    num_heads: int
    """Number of heads of each layer."""
    layers: tuple[int, ...]
    """The number, from 0, of each layer that is kept."""
    heads: tuple[int, ...]
    """The number, from 0, of each head that is kept."""
    weights_LHTS: np.ndarray
    """The weights; each row sums to one over the keys that its query sees."""
    summaries: tuple[tuple[HeadSummary, ...], ...]
    """One for each kept layer and head."""

    @property
    def is_whole(self) -> bool:
        """Whether every layer and head is kept."""
        return (len(self.layers), len(self.heads)) == (self.num_layers, self.num_heads)

    @property
    def mean_name(self) -> str:
        """The name of the mean over the kept heads."""
        if len(self.heads) == self.num_heads:
            return "mean of the heads"
        if len(self.heads) == 1:
            return f"head {self.heads[0]}"
        return f"mean of heads {', '.join(map(str, self.heads))}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlignmentMap(InspectionPart):
    """The source token that each token of the translation comes from, according to attention."""

    json_digits = 4

    links: tuple[tuple[int, int, float], ...]
    """Target token, source token and weight; not for the end of the sentence."""
    weights_TS: np.ndarray
    """The cross-attention that aligns words, from which the links are computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative(InspectionPart):
    """A token that could have been chosen, or a label."""

    token: str
    prob: float
    """Its probability, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenChoice(InspectionPart):
    """One choice of a token, and the alternatives."""

    index: int
    """The index of the token in `tgt.tokens`, or in `src.tokens` if there is no target."""
    token: str
    """The token there; at a masked position of an encoder, the most probable one."""
    log_prob: float
    """The natural logarithm of its probability."""
    entropy: float
    """Entropy of the whole distribution, in nats: 0 if the model is sure."""
    given: bool = False
    """Whether the token was already in the text, not chosen by the model (decoder-only)."""
    alternatives: tuple[Alternative, ...]
    """The most probable tokens, best first; may include the chosen one."""
    lens: tuple[Alternative, ...] = ()
    """The logit lens: the most probable token if the decoder ended after its first layer, its
    second, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogitPart(InspectionPart):
    """The contribution of one part of the model to the logit of each token that was written.

    Summed over all parts, this is the logit (`lens.logits`).
    """

    json_digits = 4

    name: PartName
    """A head of the decoder's self-attention or cross-attention, the feed-forward network of a
    layer with its biases, the embedding, and the other biases together: those of the attention's
    output projections, of the norms and of the output layer."""
    layer: int | None = None
    """The number of its layer, from 0; None if it belongs to no layer."""
    head: int | None = None
    """The number of a head, from 0."""
    shares: tuple[float, ...]
    """One for each of `steps`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchedOff(InspectionPart):
    """The translation without one head, whose output is zero."""

    name: MapName
    layer: int
    head: int
    text: str
    """The result of the same search without the head."""
    log_prob: float
    """Log-probability of the translation with all heads, in the model without this one."""
    change: float
    """`log_prob` minus that of the whole model; negative if the head helps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(InspectionPart):
    """One prefix that beam search considered: its parent's, plus one token."""

    id: int
    """Its number; a parent's is always lower."""
    parent: int | None
    """The node that it continues; None for the root, which has no token of the output."""
    step: int
    """Number of tokens of the prefix: 0 for the root."""
    rank: int
    """Its rank among the continuations of its step, 0 for the best by `log_prob`."""
    token: str
    log_prob: float
    """The sum of natural log-probabilities over the prefix."""
    score: float | None = None
    """`log_prob` divided by the length penalty, if the prefix is complete."""
    state: NodeState = "open"
    """"chosen": part of the best hypothesis. "finished": complete, but not the best. "open":
    continued, and a later node tells how it ends. "pruned": dropped from the beam. "beaten": still
    open when the search stopped, since it could no longer win."""
    why: str = ""
    """What happened to it and why, in English; `why_zh` in Chinese."""
    why_zh: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeamTree(InspectionPart):
    """Every expansion of one beam search."""

    beam_size: int
    length_penalty: float
    """The exponent of the score."""
    nodes: tuple[Node, ...]
    """The root first, then step by step, and within a step by rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction(InspectionPart):
    """The prediction for the text by an encoder with a head."""

    labels: tuple[Alternative, ...] = ()
    """The labels of a classifier with their probabilities, most probable first."""
    tags: tuple[str | None, ...] = ()
    """A tagger's tag at each of `src.tokens`; None if there is none: a word is tagged at its first
    token."""

    def to_dict(self) -> dict[str, Any]:
        """Return the tags or the labels, whichever there are."""
        if self.tags:
            return {"tags": list(self.tags)}
        found = [each.to_dict() for each in self.labels]
        return {"labels": [{"label": each["token"], "prob": each["prob"]} for each in found]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution(InspectionPart):
    """How much each token contributed to the label, by one method; this does not prove cause."""

    method: Literal["rollout", "gradient-input"]
    """"rollout": attention traced back through the layers; shares sum to one. "gradient-input": the
    first-order change of the label's logit if a token's vector is removed; either sign."""
    scores: tuple[float, ...]
    """One for each of `src.tokens`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(InspectionPart):
    """A sentence that the reader must know, such as what was cut off, in English and Chinese."""

    en: str
    zh: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection(InspectionPart):
    """The complete inspection of one text."""

    kind: Literal["encoder-decoder", "decoder-only", "encoder-only"]
    model: str
    """The path of the model folder."""
    src_lang: str | None = None
    """The code of the source language, or of the only one, if the folder names it."""
    tgt_lang: str | None = None
    """The code of the target language, if the folder names it."""
    src: Sentence
    """The text; for a decoder-only model, with its continuation."""
    tgt: Sentence | None = None
    attention: tuple[AttentionMap, ...] = ()
    """One for each kind of attention that the model has."""
    alignment: AlignmentMap | None = None
    """For a translation only."""
    steps: tuple[TokenChoice, ...] = ()
    """One for each token of a translation or a continuation; for a masked language model, one for
    each gap."""
    logits: tuple[LogitPart, ...] = ()
    """The share of each part in the logit of each step, for a translation or a continuation."""
    beam: BeamTree | None = None
    """For a translation only."""
    switched_off: tuple[SwitchedOff, ...] = ()
    """One for each head, if requested."""
    prediction: Prediction | None = None
    """For an encoder with a head only."""
    attributions: tuple[Attribution, ...] = ()
    """For a classifier only."""
    notes: tuple[Note, ...] = ()
    """What was cut off or left out."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: four digits for attention weights, six for other numbers."""
        found = Plain.to_dict(self)
        languages = {"src": found.pop("src_lang"), "tgt": found.pop("tgt_lang")}
        head = {name: found.pop(name) for name in ("kind", "model")}
        return {"format": FORMAT, **head, "languages": languages, **found}
