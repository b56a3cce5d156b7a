"""Recording the choices of a search from outside, and the tree of a beam search.

`Observed` is a strategy that wraps another one and records each step. Neither the decoding loop nor
the wrapped strategy is aware of it, so the result is the same as without it.

`beam_tree` builds a tree from this record: every prefix that was considered, and its fate. At each
step, each open prefix is continued by its most probable tokens. The continuations with the highest
sums fill the free places of the beam (`dragoman.decode.beam`), and the others are pruned.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import torch
from torch import Tensor

from dragoman.decode import Advance, Beam, Greedy, Hypothesis, PowerBeam, Sample, length_penalty
from dragoman.lens.inspection import Alternative, BeamTree, Node, NodeState, TokenChoice
from dragoman.nn.cpu.ranking import IMPOSSIBLE, top_tokens
from dragoman.tasks.results import Generation
from dragoman.text.tokenizer import Tokenizer
from dragoman.wording import counted

MOST_PRUNED = 30
"""Maximum pruned continuations kept per step, best first: beams above 6 have more."""


ALTERNATIVES = 5
"""Number of alternatives reported at each step."""
Best = Hypothesis | Generation
"""The best sequence of a search, as a hypothesis or as the task returns it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """One step: the best continuations of each of the N rows, and what was chosen."""

    top_log_probs_Nk: Tensor
    """The log-probabilities of the most probable next tokens of each row, best first."""
    top_tokens_Nk: Tensor
    """Those tokens."""
    entropies: tuple[float, ...]
    """Entropy of each row's whole distribution, in nats."""
    tokens: tuple[int, ...]
    """The token that each new row appended."""
    parents: tuple[int, ...]
    """The row that each new row continues."""
    log_probs_N: Tensor
    """The sum of log-probabilities of each new row's tokens."""
    scores: tuple[float, ...]
    """That sum, normalised for length."""
    ended: tuple[bool, ...]
    """Whether the new row is complete."""


class Observed:
    """A strategy that delegates to another one, for a single sentence, and records each step.

    It is also the frontier of its only search.
    """

    def __init__(self, strategy: Beam | Greedy | PowerBeam | Sample) -> None:
        self.beam_size = strategy.beam_size
        self.n_best = strategy.n_best
        self.length_penalty = strategy.length_penalty
        self.eos_id = -1
        """The token that completes a hypothesis; known when the search begins."""
        self.max_length = 0
        """Maximum number of tokens; known when the search begins."""
        self.expansions: list[Expansion] = []
        """The steps so far."""
        self._strategy = strategy

    def begin(self, max_B: Tensor, eos_id: int) -> "Observed":
        """Start the search of one sentence."""
        self.eos_id, self.max_length = eos_id, int(max_B)
        self.expansions.clear()
        self._frontier = self._strategy.begin(max_B, eos_id)
        return self

    def advance(self, log_probs_NV: Tensor) -> Advance:
        """Let the wrapped frontier choose, and record the alternatives."""
        wanted = max(ALTERNATIVES, self.beam_size)
        values_Nk, tokens_Nk = top_tokens(log_probs_NV, min(wanted, log_probs_NV.shape[1]))
        entropies_N = torch.special.entr(log_probs_NV.exp()).sum(1)
        advance = self._frontier.advance(log_probs_NV)
        rows = range(len(log_probs_NV))
        parents = rows if advance.parents_N is None else advance.parents_N.tolist()
        self.expansions.append(
            Expansion(
                top_log_probs_Nk=values_Nk.cpu(),
                top_tokens_Nk=tokens_Nk.cpu(),
                entropies=tuple(entropies_N.tolist()),
                tokens=tuple(advance.tokens_N.tolist()),
                parents=tuple(parents),
                log_probs_N=advance.log_probs_N.cpu(),
                scores=tuple(advance.scores_N.tolist()),
                ended=tuple(advance.ended_N.tolist()),
            )
        )
        return advance

    def keep(self, sentences_K: Tensor) -> None:
        """Forward the call to the wrapped frontier."""
        self._frontier.keep(sentences_K)

    def written(self, best: Best) -> tuple[int, ...]:
        """Return all ids of a hypothesis, with eos if the model generated it."""
        return (*best.ids, self.eos_id) if best.stopped == "eos" else best.ids

    def rows_of(self, tokens: Sequence[int]) -> list[int]:
        """Return the row in which each token of a complete hypothesis was chosen, step by step.

        `tokens` are all generated ones, including eos.
        """
        rows: list[int] = []
        row = 0  # the empty prefix; no prefix is continued twice by the same token
        for token, expansion in zip(tokens, self.expansions, strict=False):
            row = list(zip(expansion.parents, expansion.tokens, strict=True)).index((row, token))
            rows.append(row)
        return rows


Fate = tuple[NodeState, str, str]
"""The final state of a prefix, and why, in English and Chinese."""


def beam_tree(notes: Observed, best: Best, name_of: Callable[[int], str]) -> BeamTree:
    """Return the tree of an observed beam search (or greedy search) whose result is `best`.

    `name_of` returns the piece of an id; the root's name is empty.
    """
    nodes = [Node(id=0, parent=None, step=0, rank=0, token="", log_prob=0.0)]  # the root
    fates: dict[int, Fate] = {}
    open_rows = {0: 0}  # their node numbers
    layers: list[dict[int, int]] = []  # for each step, node numbers of the rows that got a place
    sums_N = torch.zeros(1, dtype=torch.float32)
    places = notes.beam_size
    for expansion in notes.expansions:
        placed: dict[int, int] = {}
        continuations = _continuations(expansion, open_rows, sums_N)
        for rank, (parent, id_, log_prob) in enumerate(islice(continuations, places + MOST_PRUNED)):
            node = Node(
                id=len(nodes),
                parent=parent,
                step=nodes[parent].step + 1,
                rank=rank,
                token=name_of(id_),
                log_prob=log_prob,
            )
            if rank >= places:
                lowest = nodes[placed[places - 1]].log_prob
                fates[node.id] = _pruned(places, notes.beam_size, lowest)
            else:  # its row is its rank
                placed[rank] = node.id
                fates[parent] = GOES_ON
                if expansion.ended[rank]:
                    node = replace(node, score=expansion.scores[rank])
                    limited = id_ != notes.eos_id
                    fates[node.id] = _finished(expansion.scores[rank], best, limited=limited)
            nodes.append(node)
        layers.append(placed)
        places -= sum(expansion.ended[row] for row in placed)
        open_rows = {row: node for row, node in placed.items() if not expansion.ended[row]}
        sums_N = expansion.log_probs_N
    greatest_penalty = length_penalty(notes.max_length, notes.length_penalty)
    for number in open_rows.values():
        fates[number] = _beaten(nodes[number].log_prob / greatest_penalty, best)
    rows = notes.rows_of(notes.written(best))
    path = [0, *(placed[row] for placed, row in zip(layers, rows, strict=False))]
    fates |= {number: _chosen(number, path[-1], best) for number in path}
    told = []
    for node in nodes:
        state, why, why_zh = fates.get(node.id, LEFT_OUT)
        told.append(replace(node, state=state, why=why, why_zh=why_zh))
    return BeamTree(
        beam_size=notes.beam_size, length_penalty=notes.length_penalty, nodes=tuple(told)
    )


def _continuations(
    expansion: Expansion, open_rows: dict[int, int], sums_N: Tensor
) -> Iterator[tuple[int, int, float]]:
    """Yield the possible continuations of all open rows by rank: the node, the token, the sum.

    The sums are added and sorted as in `Beam`, so that ties have the same order.
    """
    rows = sorted(open_rows)
    width = min(len(expansion.tokens), expansion.top_tokens_Nk.shape[1])
    sums_Rk = sums_N[rows, None] + expansion.top_log_probs_Nk[rows, :width]
    sums_M, order_M = sums_Rk.flatten().sort(descending=True, stable=True)
    for rank in range(int((sums_M > IMPOSSIBLE).sum())):
        row, column = rows[int(order_M[rank]) // width], int(order_M[rank]) % width
        token = int(expansion.top_tokens_Nk[row, column])
        yield open_rows[row], token, sums_M[rank].item()


# ---------------------------------------------------------------- step by step


def searched_steps(
    notes: Observed, best: Best, tokenizer: Tokenizer, first: int
) -> Iterator[TokenChoice]:
    """Yield each token that was written, with its alternatives.

    `first` is the index of the first token in its list.
    """
    ids = notes.written(best)
    columns = zip(ids, best.token_log_probs, notes.rows_of(ids), notes.expansions, strict=False)
    for index, (id_, log_prob, row, expansion) in enumerate(columns, start=first):
        parent = expansion.parents[row]
        yield TokenChoice(
            index=index,
            token=tokenizer.tokens([id_])[0],
            log_prob=log_prob,
            entropy=expansion.entropies[parent],
            alternatives=_alternatives(
                expansion.top_log_probs_Nk[parent], expansion.top_tokens_Nk[parent], tokenizer
            ),
        )


def logit_step(
    logits_V: Tensor, index: int, tokenizer: Tokenizer, given: int | None = None
) -> TokenChoice:
    """Return the step at a position with these logits: for the given token, or else the best."""
    log_probs_V = logits_V.float().log_softmax(0)
    values_Nk, tokens_Nk = top_tokens(log_probs_V[None], min(ALTERNATIVES, len(log_probs_V)))
    id_ = int(tokens_Nk[0, 0]) if given is None else given
    probs_V = log_probs_V.exp()
    return TokenChoice(
        index=index,
        token=tokenizer.tokens([id_])[0],
        log_prob=float(log_probs_V[id_]),
        entropy=float(-(probs_V * log_probs_V.clamp(min=-1e4)).sum()),
        alternatives=_alternatives(values_Nk[0], tokens_Nk[0], tokenizer),
        given=given is not None,
    )


def _alternatives(
    log_probs_k: Tensor, tokens_k: Tensor, tokenizer: Tokenizer
) -> tuple[Alternative, ...]:
    possible_k = log_probs_k > IMPOSSIBLE
    tokens = tokenizer.tokens(tokens_k[possible_k].tolist())
    probs = log_probs_k.exp()[possible_k].tolist()
    found = zip(tokens[:ALTERNATIVES], probs[:ALTERNATIVES], strict=True)
    return tuple(Alternative(token=token, prob=prob) for token, prob in found)


# ---------------------------------------------------------------- the fate of a prefix, and why


LEFT_OUT: Fate = (
    "open",
    "It had a place in the beam, but in the next step none of its continuations got one.",
    "它曾在束中占有位置，但下一步它的续写无一入选。",
)
GOES_ON: Fate = (
    "open",
    "It had a place in the beam, and so have continuations of it.",
    "它在束中占有位置，它的续写也有入选。",
)


def _chosen(number: int, winner: int, best: Best) -> Fate:
    if number == 0:
        return "chosen", "Here the search begins.", "搜索从这里开始。"
    if number != winner:
        return "chosen", "It is the beginning of the best translation.", "它是最佳译文的开头。"
    return (
        "chosen",
        f"It is complete, and no other one has a higher score than {best.score:.3f}: the "
        "translation.",
        f"它已完整，得分 {best.score:.3f}，没有得分更高的了：这就是译文。",
    )


def _pruned(places: int, width: int, lowest_sum: float) -> Fate:
    """Explain pruning: `places` of `width` were free, and `lowest_sum` is the lowest to get one."""
    lowest, taken = f"{lowest_sum:.3f}", width - places
    why = f"Pruned: {places} continuations with higher sums filled the beam"
    why_zh = f"被剪枝：{places} 个总对数概率更高的续写占满了束"
    last, last_zh = f"the lowest of them has {lowest}", f"其中最低为 {lowest}"
    if places == 1:
        why = "Pruned: one continuation with a higher sum filled the beam"
        last, last_zh = f"it has {lowest}", f"它为 {lowest}"
    if taken:
        why += f", in which finished translations hold {taken} of {counted(width, 'place')}"
        why_zh += f"（共 {width} 个位置，其中 {taken} 个已归完成的译文）"
    return "pruned", f"{why}; {last}.", f"{why_zh}，{last_zh}。"


def _finished(score: float, best: Best, *, limited: bool) -> Fate:
    how, how_zh = "It is complete", "它已完整"
    if limited:
        how, how_zh = "It reached the length limit", "它达到了长度上限"
    return (
        "finished",
        f"{how} with the score {score:.3f}, which is not above the best one, {best.score:.3f}.",
        f"{how_zh}，得分 {score:.3f}，不高于最佳得分 {best.score:.3f}。",
    )


def _beaten(bound: float, best: Best) -> Fate:
    return (
        "beaten",
        f"The search stopped: however it went on, its score could not exceed {bound:.3f}, and the "
        f"best one is {best.score:.3f}.",
        f"搜索停止：无论怎样续写，它的得分都不会超过 {bound:.3f}，"
        f"而最佳得分已是 {best.score:.3f}。",
    )
