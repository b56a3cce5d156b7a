"""Beam search that tries to write given terms, each in one of several forms.

Some source tokens of each sentence are terms (`Term`). Dynamic beam allocation (Post and Vilar
2018; all rows at once: Hu et al. 2019) shares the slots of a sentence among hypotheses at different
stages: the best that has n terms, the best that has n - 1 and is writing one, the best that has
n - 1, ..., the best with none, and then the second best of each. So a hypothesis with a term does
not compete with one that avoids it. A form begins if its first token is less probable than the best
one by at most a margin. The margin is wide if the attention of the step is on the term (Hasler et
al. 2018), narrow if it is elsewhere, including the end of the sentence, and still narrower before
the attention has reached the first term. Once begun, a form is continued. Forms that the model
writes by itself count as well; one whose word then continues (house, household) no longer counts.
At the end a hypothesis with a term ranks before one without it whose score is better by at most
`WORTH`: so a term that does not fit is dropped.

With a beam narrower than `LEAST_WIDTH`, as in greedy search, a sentence still has that many slots;
a hypothesis is pruned as soon as `beam_size` others have come as far with the terms and are more
probable by `BEHIND`, or have come further and are less probable by less than `AHEAD`.

The constants were measured on Multi30k with terms from its references, proper and random ones
(`benchmarks/terms.py`), with models of 25 to 28 BLEU; in greedy search `BEHIND` with one of 40,
`MARGIN_EARLY` and `AHEAD` with one of 35.

Axes as in the package; C terms of a sentence, J tokens that continue a row's terms, M candidates.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dragoman.decode.beam import Beam, BeamFrontier
from dragoman.decode.open_rows import places_among
from dragoman.decode.protocol import Hypothesis
from dragoman.nn.cpu.ranking import IMPOSSIBLE, top_tokens

STANDS = 0.8
"""Attention is on a term if one of its tokens has this share of the step's greatest weight. 0.5
gives the same figures; with 0.05, which is nearly anywhere, more terms are out of place."""
MARGIN = 20.0
"""Nats by which the first token of a term may be less probable than the best if attention is on the
term. 12 leaves 2 % of the terms unwritten; 30 writes no more than 20."""
MARGIN_ELSEWHERE = 9.0
"""The same if attention is elsewhere. 6 writes 2 % fewer terms, 8 about 0.5 % fewer; with 20, every
fifth translation has a term after its full stop, with 9 every hundredth or fewer."""
MARGIN_EARLY = 4.0
"""The same until the greatest weight of a step has been at or after the first term. With 8, terms
begin too early: greedy search computes 5 % more rows and loses 0.5 to 0.8 BLEU."""
WORTH = 10.0
"""What a term adds to the score of a complete hypothesis. 6 omits 1 % of the terms and gains at
most 0.5 BLEU; 20 writes no more."""
LEAST_WIDTH = 3
"""Slots that a sentence with terms needs, for hypotheses that have them and others that wait for a
better place. Greedy search cannot wait: terms cost it 3 BLEU, which three slots regain."""
USUAL_WIDTH = 2
"""About how many slots are open at a time: a sentence counts as so many rows of a batch."""
BEHIND = 0.5
"""Nats. Without it, greedy search takes 1.2 to 1.3 times as long and omits 0.8 % of the terms
instead of 1.4 %; with 0 it computes 1.7 rows a token instead of 1.9 and omits a few more."""
AHEAD = 1.0
"""Nats. With -0.5, as for hypotheses that are equally far, 4 to 5 % more rows are computed."""


@dataclass(frozen=True, slots=True)
class Term:
    """A term that a translation should contain once."""

    start: int
    """Its first source token."""
    end: int
    """The source token after its last."""
    forms: tuple[tuple[int, ...], ...]
    """Sequences of ids, one of which is written; none is empty."""

    def moved(self, by: int) -> "Term":
        """Return the term for a source with so many tokens in front."""
        return replace(self, start=self.start + by, end=self.end + by)


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Which tokens of the vocabulary form one word with their neighbours."""

    begins_V: Tensor
    """True for a token that continues the word before it."""
    ends_V: Tensor
    """True for a token that ends in a letter, after which a word may continue."""

    def joined(self, first: int, second: int) -> bool:
        """Return whether a word spans the two tokens."""
        return bool(self.ends_V[first] & self.begins_V[second])


@dataclass(frozen=True, slots=True, kw_only=True)
class Constrained:
    """A beam in which sentence b writes the terms `terms[b]` if it can.

    All complete hypotheses are returned; `best_first` orders them.
    """

    beam: Beam
    terms: tuple[tuple[Term, ...], ...]
    edges: Edges

    @property
    def beam_size(self) -> int:
        """Slots for hypotheses of each sentence, W."""
        return max(LEAST_WIDTH, self.beam.beam_size)

    @property
    def n_best(self) -> int:
        """Hypotheses to return for each sentence."""
        return self.beam_size

    def begin(self, max_B: Tensor, eos_id: int) -> "ConstrainedFrontier":
        """Start a search of B sentences of at most `max_B` tokens each."""
        return ConstrainedFrontier(self, max_B, eos_id)

    def best_first(self, sentence: int, found: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return the n best of a sentence, by score plus the worth of its terms."""

        def worth(one: Hypothesis) -> float:
            return one.score + WORTH * count_terms(self.terms[sentence], one.ids, self.edges)

        return sorted(found, key=worth, reverse=True)[: self.beam.n_best]


def count_terms(terms: Sequence[Term], ids: Sequence[int], edges: Edges) -> int:
    """Count the terms that a sequence contains as whole words, without overlap."""
    taken, count = set[int](), 0
    for term in terms:
        whole = (place for form in term.forms for place in _places(form, ids, edges))
        if (place := next((place for place in whole if taken.isdisjoint(place)), None)) is not None:
            taken.update(place)
            count += 1
    return count


def _places(form: Sequence[int], ids: Sequence[int], edges: Edges) -> Iterator[range]:
    """Yield where a form occurs and its word does not continue."""
    for start in range(len(ids) - len(form) + 1):
        end = start + len(form)
        goes_on = end < len(ids) and edges.joined(form[-1], ids[end])
        if tuple(ids[start:end]) == form and not goes_on:
            yield range(start, end)


class _Forms:
    """The forms of all terms of a batch, as trees of tokens; node 0 is "none" and has no branch."""

    def __init__(self, terms: Sequence[Sequence[Term]], edges: Edges, like: Tensor) -> None:
        self._branches: list[dict[int, int]] = [{}]
        self._whole, self._ends = [False], [0]
        self._term = [0]
        most = max(1, *map(len, terms))
        roots = [[self._plant(n, t) for n, t in enumerate(some)] for some in terms]
        self.roots_BC = like.new_tensor([[*row, *[0] * (most - len(row))] for row in roots])
        widest = max(1, *map(len, self._branches))
        tokens = [[*b, *[-1] * (widest - len(b))] for b in self._branches]
        nodes = [[*b.values(), *[0] * (widest - len(b))] for b in self._branches]
        self.tokens_XJ, self.nodes_XJ = like.new_tensor(tokens), like.new_tensor(nodes)
        self.whole_X = torch.tensor(self._whole, device=like.device)
        self.term_X = like.new_tensor(self._term)
        self.joins_X = self.whole_X & edges.ends_V[self._ends].to(like.device)
        """True where a form is whole and its word may continue."""

    def _plant(self, number: int, term: Term) -> int:
        root = self._node(number, 0)
        for form in term.forms:
            node = root
            for token in form:
                if token not in self._branches[node]:
                    self._branches[node][token] = self._node(number, token)
                node = self._branches[node][token]
            self._whole[node] = True
        return root

    def _node(self, number: int, token: int) -> int:
        self._branches.append({})
        self._whole.append(False)
        self._ends.append(token)
        self._term.append(number)
        return len(self._branches) - 1


class ConstrainedFrontier(BeamFrontier):
    """The open hypotheses of every sentence, and how far each has come with its terms."""

    def __init__(self, options: Constrained, max_B: Tensor, eos_id: int) -> None:
        width = options.beam_size
        super().__init__(replace(options.beam, beam_size=width), max_B, eos_id)
        self._asked = options.beam.beam_size
        self._begins_V = options.edges.begins_V.to(max_B.device)
        self._forms = _Forms(options.terms, options.edges, max_B)
        self._roots_NC = self._forms.roots_BC.repeat_interleave(width, dim=0)
        spans = [[(t.start, t.end) for t in some] for some in options.terms]
        spans = [[*some, *[(0, 0)] * (self._roots_NC.shape[1] - len(some))] for some in spans]
        self._spans_NC2 = max_B.new_tensor(spans).repeat_interleave(width, dim=0)
        self._met_NC = torch.zeros_like(self._roots_NC, dtype=torch.bool)
        """True for a term that a row has written."""
        self._node_N = torch.zeros_like(self._roots_NC[:, 0])
        """The node of the form that each row is writing or has just written."""
        self._forced_N = self._node_N > 0
        """Whether that form was tried; the model may also begin one by itself."""
        self._weights_MS: Tensor | None = None
        firsts = [min((t.start for t in some), default=0) for some in options.terms]
        self._first_N = max_B.new_tensor(firsts).repeat_interleave(width, dim=0)
        self._reached_N = torch.zeros_like(self._forced_N)
        """True once the attention of a row has been at or after the first term of its sentence."""
        self._most_worth_B = WORTH * (self._forms.roots_BC > 0).sum(1).float()

    def look(self, weights_MS: Tensor) -> None:
        """Receive the attention weights of the step whose log-probabilities come next."""
        self._weights_MS = weights_MS

    def _rank(self, log_probs_MV: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the W continuations of each sentence that get its slots."""
        num_sentences, width = self._log_probs_BW.shape
        count = min(width, log_probs_MV.shape[1])
        row_N = places_among(self.open_N, len(log_probs_MV))
        values_Nk, tokens_Nk = (x_Mk[row_N] for x_Mk in top_tokens(log_probs_MV, count))
        nodes_NT = torch.cat(
            [self._node_N[:, None], self._roots_NC.masked_fill(self._met_NC, 0)], dim=1
        )
        tokens_NTJ, next_NTJ = self._forms.tokens_XJ[nodes_NT], self._forms.nodes_XJ[nodes_NT]
        more_NTJ = log_probs_MV[row_N[:, None, None], tokens_NTJ.clamp(min=0)]
        tried_NTJ = self._tried(more_NTJ, values_Nk[:, 0], row_N)
        tokens_NJ, next_NJ = tokens_NTJ.flatten(1), next_NTJ.flatten(1)
        tried_NJ = tried_NTJ.flatten(1) & (tokens_NJ >= 0)
        same_NJJ = (tokens_NJ[:, :, None] == tokens_NJ[:, None]).tril(-1)
        tried_NJ = tried_NJ & ~(same_NJJ & tried_NJ[:, None]).any(2)
        same_NkJ = tokens_Nk[:, :, None] == tokens_NJ[:, None]
        by_itself_Nk = next_NJ.gather(1, same_NkJ.int().argmax(2)) * same_NkJ.any(2)
        values_Nk = values_Nk.masked_fill((same_NkJ & tried_NJ[:, None]).any(2), IMPOSSIBLE)

        more_NJ = more_NTJ.flatten(1).masked_fill(~tried_NJ, IMPOSSIBLE)
        values_NM = torch.cat([values_Nk, more_NJ], dim=1)
        tokens_NM = torch.cat([tokens_Nk, tokens_NJ.clamp(min=0)], dim=1)  # models read every slot
        next_NM = torch.cat([by_itself_Nk, next_NJ], dim=1)
        whole_NM = self._forms.whole_X[next_NM]
        forced_NM = torch.cat([torch.zeros_like(by_itself_Nk), tried_NJ.long()], dim=1) > 0
        forced_NM = forced_NM & ~whole_NM
        undone_NM = self._forms.joins_X[self._node_N][:, None] & self._begins_V[tokens_NM]
        new_NM = whole_NM & ~(self._met_NC.gather(1, self._forms.term_X[next_NM]) & ~undone_NM)
        met_NM = self._met_NC.sum(1, keepdim=True) - undone_NM.long() + new_NM
        banks_NM = 2 * met_NM + forced_NM
        sums_NM = self._log_probs_BW.view(-1, 1) + values_NM
        sums_NM.masked_fill_((self._log_probs_BW == IMPOSSIBLE).view(-1, 1), IMPOSSIBLE)
        sums_BM, banks_BM = sums_NM.view(num_sentences, -1), banks_NM.view(num_sentences, -1)

        order_BW = _allocated(sums_BM, banks_BM, width)
        sums_BW = sums_BM.gather(1, order_BW)
        if self._asked < width:
            behind_BW = _num_before(sums_BW, banks_BM.gather(1, order_BW)) >= self._asked
            sums_BW.masked_fill_(behind_BW, IMPOSSIBLE)
        parents_BW = self._first_rows_B[:, None] + order_BW // values_NM.shape[1]
        flat_N = (parents_BW * values_NM.shape[1] + order_BW % values_NM.shape[1]).flatten()
        next_N, whole_N = next_NM.flatten()[flat_N], whole_NM.flatten()[flat_N]
        parents_N, rows_N = parents_BW.flatten(), torch.arange(len(flat_N))
        self._met_NC, self._reached_N = self._met_NC[parents_N], self._reached_N[parents_N]
        written_N = self._forms.term_X[self._node_N[parents_N]]
        self._met_NC[rows_N, written_N] &= ~undone_NM.flatten()[flat_N]
        self._met_NC[rows_N, self._forms.term_X[next_N]] |= whole_N
        self._node_N = next_N
        self._forced_N = forced_NM.flatten()[flat_N]
        self._worth_BW = WORTH * self._met_NC.sum(1).view(num_sentences, width)
        return (
            sums_BW,
            values_NM.flatten()[flat_N].view(num_sentences, width),
            tokens_NM.flatten()[flat_N].view(num_sentences, width),
            parents_BW,
        )

    def _tried(self, more_NTJ: Tensor, best_N: Tensor, row_N: Tensor) -> Tensor:
        """Return True for the tokens that begin or continue a form."""
        stands_NC = torch.ones_like(self._met_NC)
        if self._weights_MS is not None:
            weights_N1S = self._weights_MS[row_N][:, None]
            places_S = torch.arange(weights_N1S.shape[2], device=weights_N1S.device)
            on_NCS = (places_S >= self._spans_NC2[:, :, :1]) & (
                places_S < self._spans_NC2[:, :, 1:]
            )
            weights_NC = weights_N1S.masked_fill(~on_NCS, 0.0).amax(2)
            stands_NC = weights_NC >= STANDS * weights_N1S.amax(2)
            self._reached_N = self._reached_N | (weights_N1S[:, 0].argmax(1) >= self._first_N)
        elsewhere_N1 = torch.where(self._reached_N, MARGIN_ELSEWHERE, MARGIN_EARLY)[:, None]
        least_NC = best_N[:, None] - torch.where(stands_NC, MARGIN, elsewhere_N1)
        likely_NCJ = more_NTJ[:, 1:] >= least_NC[:, :, None]
        begins_NTJ = likely_NCJ & ~self._forced_N[:, None, None]
        goes_on_N1J = self._forced_N[:, None, None].expand_as(likely_NCJ[:, :1])
        return torch.cat([goes_on_N1J, begins_NTJ], dim=1)

    def keep(self, sentences_K: Tensor) -> None:
        """Keep only these of the current sentences."""
        super().keep(sentences_K)
        width = len(self._ranks_W)
        rows_N = (sentences_K[:, None] * width + self._ranks_W).flatten()
        self._roots_NC, self._spans_NC2 = self._roots_NC[rows_N], self._spans_NC2[rows_N]
        self._met_NC, self._node_N = self._met_NC[rows_N], self._node_N[rows_N]
        self._forced_N, self._reached_N = self._forced_N[rows_N], self._reached_N[rows_N]
        self._first_N = self._first_N[rows_N]
        self._most_worth_B = self._most_worth_B[sentences_K]


def _allocated(sums_BM: Tensor, banks_BM: Tensor, width: int) -> Tensor:
    """Return the candidates (B, W) that get slots: the best of each bank, then the second, ...

    Greater banks go first; ties are in order of index.
    """
    sums_BM, order_BM = sums_BM.sort(dim=1, descending=True, stable=True)
    banks_BM = banks_BM.gather(1, order_BM)
    most = int(banks_BM.max()) + 1
    in_bank_BMG = banks_BM[:, :, None] == torch.arange(most, device=banks_BM.device)
    turn_BM = in_bank_BMG.cumsum(1).gather(2, banks_BM[:, :, None])[:, :, 0]
    keys_BM = turn_BM * most - banks_BM
    keys_BM = keys_BM.masked_fill(sums_BM == IMPOSSIBLE, torch.iinfo(torch.int64).max)
    return order_BM.gather(1, keys_BM.topk(width, largest=False).indices)


def _num_before(sums_BW: Tensor, banks_BW: Tensor) -> Tensor:
    """Count (B, W) what prunes each: those in its bank or a greater one, probable enough."""
    own_BW1, banks_BW1 = sums_BW[:, :, None], banks_BW[:, :, None]
    enough_BWW = own_BW1 + torch.where(banks_BW[:, None] > banks_BW1, -AHEAD, BEHIND)
    return ((banks_BW[:, None] >= banks_BW1) & (sums_BW[:, None] > enough_BWW)).sum(2)
