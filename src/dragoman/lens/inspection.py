"""What `dragoman inspect MODEL TEXT` finds: plain data that terminal, pictures and pages share.

`Inspection.to_dict()` is the JSON of `--json` (docs/formats.md). Two lists of tokens carry
everything else, those of `src` and of `tgt`; what counts tokens counts in them:

    kind              src.tokens                           tgt.tokens
    encoder-decoder   the source's, its end of sentence    the translation's, its end of sentence
    decoder-only      all that was read and written, the   none
                      prompt's and the model's own
    encoder-only      the text's, between its two ends     none

A row of an attention map is a query. In the maps "decoder" and "cross" of an encoder-decoder, row t
is the step that writes `tgt.tokens[t]`; its keys in "decoder" are the tokens that were *read*:
the begin of sentence and then `tgt.tokens`, so key s is `tgt.tokens[s - 1]`. In all other maps
query t and key t are `src.tokens[t]`. A decoder-only model does not read the last token that it
writes, so its map may be one token shorter than `src.tokens`.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dragoman.plain import Plain

FORMAT = 1
"""The version of the JSON."""

HeadKind = Literal["previous-token", "diagonal", "separator", "broad", "mixed"]
NodeState = Literal["open", "chosen", "finished", "pruned", "beaten"]
MapName = Literal["encoder", "decoder", "cross"]
PartName = Literal["embedding", "decoder", "cross", "feed-forward", "biases"]


class InspectionPart(Plain):
    """A part of an inspection as plain data: six digits of a number."""

    __slots__ = ()
    json_digits = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence(InspectionPart):
    """A text and the tokens that the model makes of it."""

    text: str
    tokens: tuple[str, ...]
    """Its pieces, special tokens included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSummary(InspectionPart):
    """What one head does on this text, in four numbers and a word (`lens.weights.summarise`)."""

    json_digits = 4

    entropy: float
    """How spread out its weights are, in nats, averaged over the queries."""
    previous: float
    """The share of its attention that goes to the position before the query's own, 0 to 1."""
    diagonal: float
    """The share that goes to the query's own position; in cross-attention to the same relative
    place."""
    separator: float
    """The share that goes to special tokens: begin and end of sentence."""
    kind: HeadKind


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttentionMap(InspectionPart):
    """The weights of one kind of attention, for the layers and heads that were kept."""

    json_digits = 4

    name: MapName
    queries: Literal["src", "tgt"]
    """Which list of tokens the rows count in."""
    keys: Literal["src", "tgt"]
    """Which list of tokens the columns count in."""
    query_tokens: tuple[str, ...]
    key_tokens: tuple[str, ...]
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlignmentMap(InspectionPart):
    """Which source token each token of the translation comes from, as far as attention tells."""

    json_digits = 4

    links: tuple[tuple[int, int, float], ...]
    """Target token, source token and weight; not for the end of the sentence."""
    weights_TS: np.ndarray
    """The cross-attention that aligns words: what the links are read from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative(InspectionPart):
    """A token that could have stood there, or a label."""

    token: str
    prob: float
    """Its probability, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenChoice(InspectionPart):
    """One choice of a token, and what else there was to choose."""

    index: int
    """The place of the token in `tgt.tokens`, or in `src.tokens` where there is no target."""
    token: str
    """The token there; at a masked position of an encoder the most probable one."""
    log_prob: float
    """The natural logarithm of its probability."""
    entropy: float
    """Of the whole distribution, in nats: 0 where the model is sure."""
    given: bool = False
    """Whether the token was in the text already, and not chosen by the model (decoder-only)."""
    alternatives: tuple[Alternative, ...]
    """The most probable tokens, best first; the one there may be among them."""
    lens: tuple[Alternative, ...] = ()
    """The logit lens: the most probable token if the decoder ended after its first layer, its
    second, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogitPart(InspectionPart):
    """What one part of the model adds to the logit of each token that was written.

    Over all parts that is the logit (`lens.logits`).
    """

    json_digits = 4

    name: PartName
    """A head of the decoder's self-attention or cross-attention, the feed-forward network of a
    layer with its biases, the embedding, and the other biases together: those of the attention's
    output projections, of the norms and of the output layer."""
    layer: int | None = None
    """Its number, from 0; None for what is of no layer."""
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
    """What the same search finds then."""
    log_prob: float
    """Of the translation with all heads, in the model without it."""
    change: float
    """`log_prob` minus that of the whole model; negative where the head helps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(InspectionPart):
    """One prefix that beam search looked at: its parent's, and one token more."""

    id: int
    """Its number; a parent's is always lower."""
    parent: int | None
    """The node that it continues; None for the root, which has no token of the output."""
    step: int
    """Tokens of the prefix: 0 for the root."""
    rank: int
    """Its place among the continuations of its step, 0 for the best by `log_prob`."""
    token: str
    log_prob: float
    """The sum over the prefix, natural logarithm."""
    score: float | None = None
    """`log_prob` over the length penalty, where the prefix is complete."""
    state: NodeState = "open"
    """"chosen": part of the best hypothesis. "finished": complete, and not the best. "open": goes
    on, and a later node tells how it ends. "pruned": left out of the beam. "beaten": still open
    when the search stopped, since it could no longer win."""
    why: str = ""
    """What became of it and why, in English; `why_zh` in Chinese."""
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
    """What an encoder with a head says of the text."""

    labels: tuple[Alternative, ...] = ()
    """The labels of a classifier with their probabilities, most probable first."""
    tags: tuple[str | None, ...] = ()
    """The tag at each of `src.tokens` of a tagger; None where it says none: a word is tagged at
    its first token."""

    def to_dict(self) -> dict[str, Any]:
        """Return the tags or the labels, whichever there are."""
        if self.tags:
            return {"tags": list(self.tags)}
        found = [each.to_dict() for each in self.labels]
        return {"labels": [{"label": each["token"], "prob": each["prob"]} for each in found]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution(InspectionPart):
    """How much each token had to do with the label, by one method; no proof of cause."""

    method: Literal["rollout", "gradient-input"]
    """"rollout": attention followed back through the layers, shares that sum to one.
    "gradient-input": what the label's logit changes by, to first order, with a token's vector
    taken away; either sign."""
    scores: tuple[float, ...]
    """One for each of `src.tokens`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(InspectionPart):
    """A sentence that the reader must know, such as what was cut, in English and Chinese."""

    en: str
    zh: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection(InspectionPart):
    """Everything that was found about one text."""

    kind: Literal["encoder-decoder", "decoder-only", "encoder-only"]
    model: str
    """Its position."""
    src_lang: str | None = None
    """The code of the source language, or of the only one, where the folder says it."""
    tgt_lang: str | None = None
    """The code of the target language, where the folder says it."""
    src: Sentence
    """The text; of a decoder-only model with its continuation."""
    tgt: Sentence | None = None
    attention: tuple[AttentionMap, ...] = ()
    """One for each kind of attention that the model has."""
    alignment: AlignmentMap | None = None
    """Of a translation."""
    steps: tuple[TokenChoice, ...] = ()
    """Of a translation and of a continuation each token; of a masked language model each gap."""
    logits: tuple[LogitPart, ...] = ()
    """The share of each part in the logit of each step: of a translation and of a continuation."""
    beam: BeamTree | None = None
    """Of a translation."""
    switched_off: tuple[SwitchedOff, ...] = ()
    """One for each head, where it was asked for."""
    prediction: Prediction | None = None
    """Of an encoder with a head."""
    attributions: tuple[Attribution, ...] = ()
    """Of a classifier."""
    notes: tuple[Note, ...] = ()
    """What was cut or left out."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: attention weights with four digits, probabilities with six."""
        found = Plain.to_dict(self)
        languages = {"src": found.pop("src_lang"), "tgt": found.pop("tgt_lang")}
        head = {name: found.pop(name) for name in ("kind", "model")}
        return {"format": FORMAT, **head, "languages": languages, **found}
