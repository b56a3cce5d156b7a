"""Laws of sampling and of continuing prompts, on random tables."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.decode.tables import BOS, EOS, PromptModel, Table, random_table

from dragoman.decode import (
    Beam,
    Greedy,
    Limits,
    NoRepeatedNgrams,
    Prefixes,
    RepetitionPenalty,
    Rolling,
    Sample,
    search,
)
from dragoman.decode.sample import keep_best

SEEDS = st.integers(0, 2**32)
SHARES = st.floats(0.01, 1.0)


def log_probs(seed: int, vocab_size: int, *, levels: int | None = None) -> torch.Tensor:
    """Return a row (1, V) of log-probabilities; `levels` makes many of them equal."""
    row = random_table(seed, vocab_size, levels=levels)((), ())
    return torch.tensor([row]).log_softmax(dim=1)


def prompt_limits(prompts_BS: torch.Tensor, most: int) -> Limits:
    """Return limits with so many tokens for each prompt."""
    max_B = torch.full((len(prompts_BS),), most)
    return Limits(bos_id=BOS, eos_id=EOS, max_B=max_B, first_B=prompts_BS[:, -1])


@given(
    SEEDS,
    st.integers(2, 300),
    st.integers(1, 300),
    SHARES,
    st.floats(0.0, 0.99),
    st.sampled_from([None, 3]),
)
def test_what_may_be_drawn(
    seed: int, vocab_size: int, top_k: int, top_p: float, min_p: float, levels: int | None
) -> None:
    """The support is the best of the row, no smaller than it must be, and always has the first."""
    row_NV = log_probs(seed, vocab_size, levels=levels)
    options = Sample(top_k=top_k, top_p=top_p, min_p=min_p)
    weights_Nk, tokens_Nk = keep_best(row_NV, options)
    chosen = tokens_Nk[weights_Nk > 0].tolist()
    ranked = sorted(range(vocab_size), key=lambda i: (-row_NV[0, i].item(), i))
    assert set(chosen) == set(ranked[: len(chosen)])
    assert 1 <= len(chosen) <= min(top_k, vocab_size)
    probs = row_NV[0, ranked[: min(top_k, vocab_size)]].double().softmax(dim=0)
    assert probs[: len(chosen) - 1].sum() < top_p + 1e-9
    assert probs[len(chosen) - 1] >= min_p * probs[0] - 1e-9
    if len(chosen) < len(probs):
        enough = probs[: len(chosen)].sum() >= top_p - 1e-9
        assert enough or probs[len(chosen)] < min_p * probs[0] + 1e-9


@given(SEEDS, st.integers(3, 40), st.integers(1, 4), st.integers(1, 8), st.floats(0.1, 5.0))
def test_the_best_alone_is_greedy(
    seed: int, vocab_size: int, count: int, most: int, temperature: float
) -> None:
    """`top_k = 1` and a hopeless `top_p` give greedy search's result, every field of it."""
    table = random_table(seed, vocab_size, levels=4)
    prompts_BS = torch.randint(3, 9, (count, 3))
    base = Sample(temperature=temperature, seed=seed)
    results = [
        search(PromptModel(table), prompts_BS, strategy, limits=prompt_limits(prompts_BS, most))
        for strategy in (Greedy(), replace(base, top_k=1), replace(base, top_p=1e-9))
    ]
    assert results[0] == results[1] == results[2]


@given(SEEDS, st.integers(4, 8), st.integers(2, 5), st.integers(1, 6))
def test_a_text_does_not_depend_on_its_neighbours(
    seed: int, vocab_size: int, count: int, most: int
) -> None:
    """Each prompt alone, with its number, gives what it gave in the batch."""
    model = PromptModel(random_table(seed, vocab_size))
    prompts_BS = torch.arange(count)[:, None] + torch.tensor([[3, 4]])
    lengths = prompt_limits(prompts_BS, most)
    together = search(model, prompts_BS, Sample(seed=seed), limits=lengths)
    for number, prompt_BS in enumerate(prompts_BS.split(1)):
        strategy = Sample(seed=seed, numbers=(number,))
        [alone] = search(model, prompt_BS, strategy, limits=prompt_limits(prompt_BS, most))
        assert alone == together[number]


def log_softmax(table: Table, read: tuple[int, ...]) -> list[float]:
    """Return the table's log-probabilities after these tokens."""
    row: list[float] = torch.tensor(table((), read)).log_softmax(dim=0).tolist()
    return row


def views(whole: tuple[int, ...], length: int, context: int) -> list[tuple[int, ...]]:
    """Return what the model sees before each token after the prompt."""
    seen, found = whole[: length - 1][-(context - 1) :], []
    for token in whole[length - 1 : -1]:
        if len(seen) == context:
            seen = seen[-(context // 2) :]
        seen = (*seen, token)
        found.append(seen)
    return found


@given(SEEDS, st.integers(2, 9), st.integers(1, 12), st.integers(1, 20), st.integers(1, 3))
def test_a_rolling_context_never_exceeds_its_bound(
    seed: int, context: int, length: int, most: int, beam_size: int
) -> None:
    """The model sees a suffix of prompt and output, whole until the context is full."""
    table = random_table(seed, 7)
    asked: list[tuple[int, ...]] = []

    def watched(src: tuple[int, ...], read: tuple[int, ...]) -> list[float]:
        asked.append(read)
        row = list(table(src, read))
        row[EOS] = float("-inf")
        return row

    prompt_BS = torch.randint(3, 9, (1, length))
    strategy = Greedy() if beam_size == 1 else Beam(beam_size=beam_size)
    lengths = prompt_limits(prompt_BS, most)
    model = PromptModel(watched)
    [[best]] = search(Rolling(model, context), prompt_BS, strategy, limits=lengths)
    assert len(model.prompts) <= 2 + most // ((context + 1) // 2)  # read anew but now and then
    whole = (*prompt_BS[0].tolist(), *best.ids)
    reads = list(asked)
    assert max(map(len, reads)) == min(context, length + most - 1)
    assert best.log_prob == pytest.approx(
        sum(
            log_softmax(watched, seen)[token]
            for seen, token in zip(views(whole, length, context), best.ids, strict=True)
        ),
        abs=1e-4,
    )
    if beam_size == 1:
        for step, read in enumerate(reads):
            assert read == whole[length + step - len(read) : length + step]
            assert len(read) > context // 2 or len(read) == length + step
    if length + most - 1 <= context:
        plain = search(PromptModel(watched), prompt_BS, strategy, limits=lengths)
        assert plain == [[best]]


@given(
    SEEDS,
    st.integers(1, 4),
    st.lists(st.integers(3, 6), min_size=1, max_size=6),
    st.sampled_from(["prompt", ""]),
)
def test_no_ngram_comes_twice(seed: int, size: int, prompt: list[int], counted: str) -> None:
    """Neither in the output nor, where the prompt counts, in both together."""
    prompt_BS = torch.tensor([prompt])
    rule = NoRepeatedNgrams(size, prompt_BS if counted else None)
    vocab_size, most = 30, 12
    [[best]] = search(
        PromptModel(random_table(seed, vocab_size, levels=2)),
        prompt_BS,
        Greedy(),
        processors=[rule],
        limits=prompt_limits(prompt_BS, most),
    )
    ids = (*(prompt if counted else ()), *best.ids)
    ngrams = [ids[i : i + size] for i in range(len(ids) - size + 1)]
    within = len(prompt) - size + 1 if counted else 0  # the prompt may repeat itself
    new = ngrams[max(0, within) :]
    assert len(set(new)) == len(new)
    assert not set(new) & set(ngrams[: max(0, within)])


@given(SEEDS, st.floats(1.0, 3.0))
def test_a_repetition_penalty_only_weakens_what_was_used(seed: int, penalty: float) -> None:
    """Positive logits are divided, negative ones multiplied, however often the token came."""
    logits_NV = torch.tensor([random_table(seed, 12)((), ())])
    used = torch.tensor([[3, 3, 5]])
    got_NV = RepetitionPenalty(penalty)(logits_NV.clone(), Prefixes(used, torch.tensor([0])))
    expected_NV = logits_NV.clone()
    for token in (3, 5):
        expected_NV[0, token] *= penalty if expected_NV[0, token] < 0 else 1 / penalty
    torch.testing.assert_close(got_NV, expected_NV)
    others = [token for token in range(12) if token not in (3, 5)]
    assert torch.equal(got_NV[:, others], logits_NV[:, others])
