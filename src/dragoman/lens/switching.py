"""How a translation changes when one head is switched off, so that its output is zero.

That is `Concat(z_1 ... z_H) W_O + b_O` with `z_i = 0`. Since only head i is multiplied by its part
of `W_O`, a copy of `W_O` in which that part is zero does the same, in any search and any
arithmetic. Nothing is retrained, and the model itself is unchanged.

Two results show what the head did: the translation that the same search finds without it, and the
change of the log-probability of the whole model's translation, `sum_t ln p(y_t | y_<t, x)`. Heads
can replace each other (Michel et al., 2019): the changes do not add up, and a head whose change is
0 may matter once another one is off too.
"""

from collections.abc import Iterator, Sequence
from copy import copy, deepcopy

import torch

from dragoman.decode import Hypothesis
from dragoman.decoding import Decoding
from dragoman.folder.opening import ModelFolder
from dragoman.languages import LangCodes
from dragoman.lens.inspection import AttentionMap, MapName, SwitchedOff
from dragoman.lens.trace import attentions
from dragoman.models import EncoderDecoder
from dragoman.nn import evaluation_view
from dragoman.tasks.lines import one_line
from dragoman.tasks.options import strategy_of
from dragoman.tasks.task import model_of
from dragoman.tasks.translate.translator import Translator


def without_head(model: EncoderDecoder, name: MapName, layer: int, head: int) -> EncoderDecoder:
    """Return a view of a model in which the output of one head is zero."""
    view = evaluation_view(model)
    attention = attentions(view)[name][layer]
    attention.out_proj = deepcopy(attention.out_proj)
    with torch.no_grad():
        attention.out_proj.weight.unflatten(1, (attention.num_heads, -1))[:, head] = 0.0
    return view


def switch_off(
    folder: ModelFolder,
    languages: LangCodes,
    src_ids: Sequence[int],
    best: Hypothesis,
    options: Decoding,
    maps: Sequence[AttentionMap],
) -> Iterator[SwitchedOff]:
    """Translate `src_ids` again without each head of the maps, one at a time.

    `best` is the whole model's result between these languages with these options.
    """

    def log_prob(translator: Translator) -> float:
        [scored] = translator.score_ids([(src_ids, best.ids)])
        return sum(scored.token_log_probs[: len(best.token_log_probs)])

    whole = log_prob(Translator.of(folder).between(*languages))
    heads = [
        (each.name, layer, head) for each in maps for layer in each.layers for head in each.heads
    ]
    for name, layer, head in heads:
        part = copy(folder)
        part.model = without_head(model_of(folder, EncoderDecoder), name, layer, head)
        translator = Translator.of(part).between(*languages)
        found = translator.watch(src_ids, options, strategy_of(options))[0]
        now = log_prob(translator)
        yield SwitchedOff(
            name=name,
            layer=layer,
            head=head,
            text=one_line(translator.tgt_tokenizer.decode(found.ids)),
            log_prob=now,
            change=now - whole,
        )
