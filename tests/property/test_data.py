"""Laws of batch plans, for any lengths and any budget."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.batches import plan_batches, shuffled
from dragoman.data.dataset import Ragged

lengths = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), max_size=120)


@given(lengths=lengths, budget=st.integers(1, 500), seed=st.integers(0, 2**32))
def test_a_plan_holds_each_pair_once_within_the_budget(
    lengths: list[tuple[int, int]], budget: int, seed: int
) -> None:
    """Every pair is in one batch; a batch over the budget is a single pair; counts are right."""
    src, tgt = np.array(lengths, dtype=np.int64).reshape(-1, 2).T
    plan = plan_batches(src, tgt, budget, np.random.default_rng(seed))
    batches = [plan[i] for i in range(len(plan))]
    assert sorted(i for batch in batches for i in batch.tolist()) == list(range(len(src)))
    costs = [len(batch) * int(src[batch].max() + tgt[batch].max()) for batch in batches]
    assert all(
        cost <= budget or len(batch) == 1 for cost, batch in zip(costs, batches, strict=True)
    )
    assert plan.num_padded == sum(costs)
    assert plan.num_tokens == src.sum() + tgt.sum()


@given(lengths=lengths.filter(bool), budget=st.integers(1, 500), seed=st.integers(0, 99))
def test_the_largest_batches(lengths: list[tuple[int, int]], budget: int, seed: int) -> None:
    """One of an epoch has the most places of all, the other the most pairs of places."""
    src, tgt = np.array(lengths, dtype=np.int64).T
    plan = plan_batches(src, tgt, budget, np.random.default_rng(seed))
    sizes = [(len(plan[k]), int(src[plan[k]].max() + tgt[plan[k]].max())) for k in range(len(plan))]
    for power, batch in enumerate(plan.largest, start=1):
        costs = [rows * width**power for rows, width in sizes]
        assert costs[batch] == max(costs)
    rng = np.random.default_rng(seed)
    epoch = shuffled(plan, np.arange(len(src)), rng, collate=lambda rows: rows)
    made = [epoch.make(number).tolist() for number in epoch.largest]
    assert made == [sorted(plan[batch].tolist()) for batch in plan.largest]


@given(rows=st.lists(st.lists(st.integers(0, 9), max_size=5), max_size=20), data=st.data())
def test_taking_sequences_is_indexing(rows: list[list[int]], data: st.DataObject) -> None:
    """take and concatenate agree with Python lists."""
    ragged = Ragged.of(rows)
    picks = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10)) if rows else []
    taken = ragged.take(np.array(picks, dtype=np.int64))
    assert [taken[i].tolist() for i in range(len(taken))] == [rows[i] for i in picks]
    both = Ragged.concatenate([ragged, taken])
    assert [both[i].tolist() for i in range(len(both))] == rows + [rows[i] for i in picks]
