"""The search loop, with tables as models."""

import math
from collections.abc import Sequence

import pytest
import torch
from tests.unit.decode.tables import (
    BOS,
    EOS,
    Ids,
    TableModel,
    TableState,
    limits,
    random_table,
    sources,
)

from dragoman.decode import (
    Beam,
    DiverseBeam,
    Forbid,
    Greedy,
    Limits,
    PowerBeam,
    Strategy,
    search,
    search_steps,
)
from dragoman.errors import InputError

STRATEGIES: list[Strategy] = [
    Greedy(),
    Beam(beam_size=3, n_best=2),
    DiverseBeam(beam_size=6, groups=3, n_best=2),
]


def copying(src: tuple[int, ...], prefix: tuple[int, ...]) -> Sequence[float]:
    """Return logits that copy the source, eos included, with near certainty."""
    wanted = src[len(prefix)] if len(prefix) < len(src) else EOS
    return [20.0 if token == wanted else 0.0 for token in range(8)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sentences_of_different_lengths_end_when_they_end(strategy: Strategy) -> None:
    """Each gets its own copy back, in order; a long one too, and an empty one stays empty."""
    copies = [[3, 4], [], [5, 6, 7, 3], [3 + i % 5 for i in range(150)]]
    rows = [*([*copy, EOS] for copy in copies), []]
    model = TableModel(copying)
    results = search(model, sources(*rows), strategy, limits=limits(9, 9, 9, 200, 9))
    assert [[*best[0].ids] for best in results] == [*copies, []]
    assert {best[0].stopped for best in results} == {"eos"}
    assert len(results[0][0].token_log_probs) == 3


def test_decided_sentences_leave_the_batch() -> None:
    """The model computes fewer rows once a sentence has ended, and none after the last.

    A nearly certain sentence is not continued after its hypothesis, even with open beam slots.
    """
    for strategy in (Greedy(), Beam(beam_size=4)):
        model, width = TableModel(copying), strategy.beam_size
        search(model, sources([EOS], [3, 4, EOS], [3, EOS]), strategy, limits=limits(9, 9, 50))
        assert model.steps == 3
        assert model.states[0].sizes == [2 * width, width]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_sentence_no_result(strategy: Strategy) -> None:
    """An empty batch gives an empty list."""
    assert search(TableModel(copying), sources(), strategy, limits=limits()) == []


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_broken_weights_are_named(strategy: Strategy, value: float) -> None:
    """One NaN or infinite logit of one sentence, at any step, is an error, not a result."""

    def table(src: tuple[int, ...], prefix: tuple[int, ...]) -> Sequence[float]:
        logits = list(copying(src, prefix))
        if len(src) > 3 and len(prefix) == 2:
            logits[6] = value
        return logits

    src_BS = sources([3, EOS], [3, 4, 5, 6, EOS])
    with pytest.raises(InputError, match="NaN"):
        search(TableModel(table), src_BS, strategy, limits=limits(9, 9))
    assert search(TableModel(table), src_BS[:1], strategy, limits=limits(9))[0][0].ids == (3,)


def test_what_follows_a_complete_hypothesis_is_not_looked_at() -> None:
    """NaN after eos, in a closed row while others continue, is not an error."""

    def table(_: tuple[int, ...], prefix: tuple[int, ...]) -> Sequence[float]:
        return [math.nan if EOS in prefix else -0.1 * abs(token - EOS) for token in range(8)]

    beam = Beam(beam_size=3, n_best=3)
    [found] = search(TableModel(table), sources([3, EOS]), beam, limits=limits(6))
    assert [h.ids for h in found] == [(), (1,), (3,)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_vocabulary_that_is_forbidden_whole_is_named(strategy: Strategy) -> None:
    """The error names the processors and does not blame the weights."""
    with pytest.raises(InputError, match="No token is left"):
        search(
            TableModel(copying),
            sources([3, EOS]),
            strategy,
            processors=[Forbid(tuple(range(8)))],
            limits=limits(9),
        )


def test_the_generator_tells_of_every_step() -> None:
    """Prefixes grow by one token per step, and a sentence is reported when it is decided."""
    steps = list(
        search_steps(
            TableModel(copying), sources([3, EOS], [4, 5, EOS]), Greedy(), limits=limits(9, 9)
        )
    )
    assert [step.prefixes.ids_NL.shape for step in steps] == [(2, 1), (1, 2), (0, 3)]
    assert [step.prefixes.sentence_N.tolist() for step in steps] == [[0, 1], [1], []]
    assert [step.open_N.tolist() for step in steps] == [[True, True], [True], []]
    assert [sorted(step.finished) for step in steps] == [[], [0], [1]]
    assert steps[1].finished[0][0].ids == (3,)


def test_the_generator_leaves_gradients_to_its_caller() -> None:
    """Between two steps the caller's code runs in its own gradient mode, not the search's."""
    steps = search_steps(TableModel(copying), sources([3, 4, EOS]), Greedy(), limits=limits(9))
    next(steps)
    assert not torch.is_inference_mode_enabled()
    assert torch.is_grad_enabled()


def test_bfloat16_logits_are_summed_in_float32() -> None:
    """Log-probabilities of low-precision logits are those of the same numbers in float32."""

    class Low(TableModel):
        def step(self, ids_N: torch.Tensor, state: TableState) -> torch.Tensor:
            return super().step(ids_N, state).bfloat16()

    def table(src: tuple[int, ...], prefix: tuple[int, ...]) -> Sequence[float]:
        exact = torch.tensor(random_table(3, 8)(src, prefix))
        return [float(value) for value in exact.bfloat16()]

    arguments = sources([3, EOS]), Beam(beam_size=3, n_best=3)
    low = search(Low(table), *arguments, limits=limits(6))
    assert low == search(TableModel(table), *arguments, limits=limits(6))


@pytest.mark.parametrize("most", [[9], [9, 9, 9], [9, 0]])
def test_limits_that_do_not_fit_are_a_bug_of_the_caller(most: list[int]) -> None:
    """There must be one limit of at least 1 for each sentence."""
    bad = Limits(bos_id=BOS, eos_id=EOS, max_B=torch.tensor(most))
    with pytest.raises(ValueError, match=r"length limits|maximum length"):
        search(TableModel(copying), sources([3, EOS], [EOS]), Greedy(), limits=bad)


@pytest.mark.parametrize(("ends", "best"), [((EOS, 3), ()), ((), (3,))])
def test_a_beam_counts_each_way_to_end(ends: Ids, best: Ids) -> None:
    """Two tokens that end a text are two hypotheses, as in transformers, and fill a beam of 2.

    If the second is text, the beam continues with it, to a text with a higher score.
    """
    first = [0.0, 0.0, 0.4, 0.35, 0.25]
    later = [0.0, 0.0, 0.98, 0.01, 0.01]

    def ending(_: Ids, prefix: Ids) -> list[float]:
        return [math.log(max(p, 1e-9)) for p in (later if prefix else first)]

    beam = PowerBeam(width=2, length_penalty=1.0, early_stopping="full", ends=ends)
    ((found, *_),) = search(TableModel(ending), sources([5]), beam, limits=limits(4))
    assert found.ids == best
    assert found.stopped == "eos"
