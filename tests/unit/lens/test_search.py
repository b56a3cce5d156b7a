"""The tree of a beam search tells the truth, and telling it changes nothing."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.decode.tables import (
    EOS,
    Table,
    TableModel,
    limits,
    log_probs,
    penalty,
    random_table,
    sources,
    tokens_of,
)

from dragoman.decode import Beam, Greedy, Hypothesis, Sample, search
from dragoman.lens.inspection import BeamTree, Node
from dragoman.lens.search import MOST_PRUNED, Observed, beam_tree

SEEDS = st.integers(0, 2**32)
SRC = (5, EOS)


def observed(
    table: Table, strategy: Beam | Greedy | Sample, most: int
) -> tuple[Observed, list[Hypothesis]]:
    """Search under observation; the result is that of a search without it."""
    notes = Observed(strategy)
    [found] = search(TableModel(table), sources(SRC), notes, limits=limits(most))
    [alone] = search(TableModel(table), sources(SRC), strategy, limits=limits(most))
    assert found == alone
    return notes, found


def prefix_of(tree: BeamTree, node: Node) -> tuple[int, ...]:
    """The ids of a prefix."""
    ids: list[int] = []
    while node.parent is not None:
        ids.append(int(node.token))
        node = tree.nodes[node.parent]
    return tuple(reversed(ids))


def children(tree: BeamTree) -> dict[int, list[Node]]:
    """The continuations of each prefix."""
    found: dict[int, list[Node]] = {node.id: [] for node in tree.nodes}
    for node in tree.nodes:
        if node.parent is not None:
            found[node.parent].append(node)
    return found


@given(
    SEEDS,
    st.sampled_from([None, 3]),
    st.integers(3, 8),
    st.integers(1, 5),
    st.integers(1, 7),
    st.sampled_from([0.0, 0.6, 2.0]),
)
@settings(max_examples=40)
def test_the_tree_is_that_of_the_search(
    seed: int, levels: int | None, vocab_size: int, beam_size: int, most: int, alpha: float
) -> None:
    """Sums, scores, places, one chosen path, and ends that are so, also among equals."""
    table = random_table(seed, vocab_size, levels=levels)
    beam = Beam(beam_size=beam_size, length_penalty=alpha)
    notes, [best] = observed(table, beam, most)
    tree = beam_tree(notes, best, str)
    below = children(tree)
    free = beam_size
    for step in range(1, max(node.step for node in tree.nodes) + 1):
        layer = [node for node in tree.nodes if node.step == step]
        assert [node.rank for node in layer] == list(range(len(layer)))
        sums = [node.log_prob for node in layer]
        assert sums == sorted(sums, reverse=True)
        kept = [node for node in layer if node.state != "pruned"]
        assert len(kept) == min(free, len(layer))
        assert kept == layer[: len(kept)]
        free -= sum(node.score is not None for node in kept)
    for node in tree.nodes:
        prefix = prefix_of(tree, node)
        assert node.id == 0 or node.step == len(prefix) == tree.nodes[node.parent or 0].step + 1
        values = [log_probs(table, SRC, prefix[:n])[token] for n, token in enumerate(prefix)]
        assert node.log_prob == pytest.approx(sum(values), abs=1e-4)
        complete = bool(prefix) and (prefix[-1] == EOS or len(prefix) == most)
        assert (node.score is not None) == (complete and node.state != "pruned")
        if node.score is not None:
            assert node.score == pytest.approx(node.log_prob / penalty(len(prefix), alpha))
            assert node.score <= best.score
        if node.state in ("pruned", "finished", "beaten"):
            assert not below[node.id]
        if node.state == "open":
            assert below[node.id]
        if node.state == "beaten":
            assert node.log_prob / penalty(most, alpha) <= best.score + 1e-6
    path = [node for node in tree.nodes if node.state == "chosen"]
    tokens = tokens_of(best)
    assert [prefix_of(tree, node) for node in path] == [tokens[:n] for n in range(len(tokens) + 1)]
    assert path[-1].score == best.score


@given(SEEDS, st.integers(2, 4))
@settings(max_examples=20)
def test_every_end_is_told_with_its_numbers(seed: int, beam_size: int) -> None:
    """In both languages, one sentence, and the numbers in it are those of the search."""
    notes, [best] = observed(random_table(seed, 6), Beam(beam_size=beam_size), 6)
    tree = beam_tree(notes, best, str)
    for node in tree.nodes:
        assert re.fullmatch(r"[A-Z][^\n]*\.", node.why)
        assert re.fullmatch(r"[^a-zA-Z\n]*。", node.why_zh)
        numbers = re.findall(r"-?\d+\.\d{3}", node.why)
        assert numbers == re.findall(r"-?\d+\.\d{3}", node.why_zh)
        if node.state == "pruned":
            rivals = [n for n in tree.nodes if n.step == node.step and n.state != "pruned"]
            assert numbers == [f"{min(n.log_prob for n in rivals):.3f}"]
            assert str(len(rivals)) in node.why.replace("one continuation", "1")
            assert ("of them" in node.why) == ("其中最低" in node.why_zh) == (len(rivals) > 1)
        if node.state in ("finished", "beaten"):
            assert numbers[-1] == f"{best.score:.3f}"
        if node.state == "finished":
            assert numbers[0] == f"{node.score:.3f}"
            cut = prefix_of(tree, node)[-1] != EOS
            assert ("length limit" in node.why) == ("长度上限" in node.why_zh) == cut
        if node.state == "beaten":
            assert numbers[0] == f"{node.log_prob / penalty(6, tree.length_penalty):.3f}"
        if node.state == "open":
            alive = any(child.state != "pruned" for child in children(tree)[node.id])
            assert ("none of its continuations" in node.why) != alive


def test_greedy_search_is_a_line() -> None:
    """One place: what it chose, and nothing else."""
    notes, [best] = observed(random_table(3, 7), Greedy(), 5)
    tree = beam_tree(notes, best, str)
    assert {node.state for node in tree.nodes} == {"chosen"}
    assert tree.beam_size == 1


def test_a_wide_beam_keeps_the_best_of_the_pruned() -> None:
    """A step has no more pruned prefixes than are told."""
    notes, [best] = observed(random_table(1, 40), Beam(beam_size=12), 4)
    tree = beam_tree(notes, best, str)
    for step in range(1, 5):
        pruned = [n for n in tree.nodes if n.step == step and n.state == "pruned"]
        assert len(pruned) <= MOST_PRUNED
    assert any(n.rank == 12 + MOST_PRUNED - 1 for n in tree.nodes)


@given(SEEDS, st.sampled_from([Greedy(), Sample(seed=3), Beam(beam_size=5, n_best=5)]))
@settings(max_examples=20)
def test_notes_hold_what_each_row_could_choose_from(
    seed: int, strategy: Beam | Greedy | Sample
) -> None:
    """For each token of a result: the row's best tokens and the entropy of its distribution."""
    table = random_table(seed, 6)
    notes, found = observed(table, strategy, 6)
    for one in found:
        tokens = tokens_of(one)
        rows = notes.rows_of(tokens)
        assert notes.expansions[len(tokens) - 1].ended[rows[-1]]
        for n, (row, expansion) in enumerate(zip(rows, notes.expansions, strict=False)):
            values_V = torch.tensor(log_probs(table, SRC, tokens[:n]))
            parent = expansion.parents[row]
            assert expansion.tokens[row] == tokens[n]
            assert one.token_log_probs[n] == pytest.approx(values_V[tokens[n]].item(), abs=1e-5)
            best_k = values_V.topk(expansion.top_tokens_Nk.shape[1])
            assert torch.equal(expansion.top_tokens_Nk[parent], best_k.indices)
            torch.testing.assert_close(expansion.top_log_probs_Nk[parent], best_k.values)
            entropy = -(values_V.exp() * values_V).sum().item()
            assert expansion.entropies[parent] == pytest.approx(entropy, abs=1e-5)
