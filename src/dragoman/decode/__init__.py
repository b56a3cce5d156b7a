"""From logits to sequences: one loop and small parts, for ids and tensors, not text.

Reading order: `protocol` (what a model and a strategy must be able to do), `search` (the loop),
`greedy`, `beam`, `constrained`, `diverse` and `sample` (strategies), `ensemble` (several models as
one), `processors` (changes to the logits), `score` (length normalisation and forced decoding),
`attended` (what hypotheses attend to), `requests` and `scheduler` (many callers' requests in few
batches).

Axes in names: B sentences, S source length, T target length, L tokens so far, V vocabulary,
W beams, N = B * W rows, k candidates of a row.
"""

from dragoman.decode.attended import Attentive
from dragoman.decode.beam import Beam
from dragoman.decode.diverse import DiverseBeam
from dragoman.decode.ensemble import Ensemble, mean_log_probs
from dragoman.decode.greedy import Chooser, Greedy, SingleFrontier
from dragoman.decode.power import PowerBeam
from dragoman.decode.processors import (
    Forbid,
    ForbidSequences,
    ForcedEnd,
    ForcedPrefix,
    MinimumLength,
    NoRepeatedNgrams,
    Processor,
    RepetitionPenalty,
    relative_lengths,
)
from dragoman.decode.protocol import (
    Advance,
    Frontier,
    Head,
    Hypothesis,
    Limits,
    Model,
    Prefixes,
    Rolling,
    SearchStep,
    State,
    Strategy,
)
from dragoman.decode.requests import BatchReport, Course, Items, Request, schedule
from dragoman.decode.sample import Sample
from dragoman.decode.scheduler import Scheduler
from dragoman.decode.score import Forced, force, length_penalty, score_pairs
from dragoman.decode.search import search, search_steps

__all__ = [
    "Advance",
    "Attentive",
    "BatchReport",
    "Beam",
    "Chooser",
    "Course",
    "DiverseBeam",
    "Ensemble",
    "Forbid",
    "ForbidSequences",
    "Forced",
    "ForcedEnd",
    "ForcedPrefix",
    "Frontier",
    "Greedy",
    "Head",
    "Hypothesis",
    "Items",
    "Limits",
    "MinimumLength",
    "Model",
    "NoRepeatedNgrams",
    "PowerBeam",
    "Prefixes",
    "Processor",
    "RepetitionPenalty",
    "Request",
    "Rolling",
    "Sample",
    "Scheduler",
    "SearchStep",
    "SingleFrontier",
    "State",
    "Strategy",
    "force",
    "length_penalty",
    "mean_log_probs",
    "relative_lengths",
    "schedule",
    "score_pairs",
    "search",
    "search_steps",
]
