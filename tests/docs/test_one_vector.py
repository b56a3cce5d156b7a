"""The page before 01: the recurrent models compute their formulas, and its task is what it says."""

import random
import re
from collections.abc import Iterator
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.docs.pages import ROOT, run, shortened
from tests.docs.walk import differences, experiments
from torch import Tensor, nn

from dragoman.decode import Beam, Limits, search

PARTS = experiments(ROOT / "docs" / "walk" / "00b-one-vector.md")
TRAINING = next(index for index, part in enumerate(PARTS) if "STEPS" in part.code)
RECURRENT = ("OneVector", "Bahdanau")


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the page defines before it trains; each part prints what the page says."""
    names: dict[str, Any] = {"__name__": "page"}
    with torch.random.fork_rng(devices=[]):
        for part in PARTS[:TRAINING]:
            assert differences(part.said, part.run(names), part.tolerance) == []
    return names


@pytest.fixture
def page(names: dict[str, Any]) -> Iterator[SimpleNamespace]:
    """The names as attributes, and random numbers that start alike."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        yield SimpleNamespace(**names)


def model_of(page: SimpleNamespace, kind: str) -> Any:  # noqa: ANN401 (a class of the page)
    """A small one with large random weights, in float64."""
    model = getattr(page, kind)(6).double().eval()
    for weight in model.parameters():
        nn.init.normal_(weight)
    return model


def batch() -> tuple[Tensor, Tensor]:
    """Sources of several lengths, padded at the end, and targets."""
    src_BS, tgt_BT = torch.randint(3, 60, (3, 7)), torch.randint(3, 17, (3, 5))
    src_BS[1, 4:] = src_BS[2, 1:] = 0
    return src_BS, tgt_BT


def gru(cell: nn.GRU | nn.GRUCell, suffix: str, x: Tensor, h: Tensor) -> Tensor:
    """Compute a step of Cho's unit as its formula has it (PyTorch's place for the reset gate)."""
    w, u, b, c = (
        getattr(cell, f"{name}_{side}{suffix}")
        for name in ("weight", "bias")
        for side in ["ih", "hh"]
    )
    (xr, xz, xn), (hr, hz, hn) = (w @ x + b).chunk(3), (u @ h + c).chunk(3)
    update = torch.sigmoid(xz + hz)
    return (1 - update) * torch.tanh(xn + torch.sigmoid(xr + hr) * hn) + update * h


def encoded(encoder: Any, ids: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ANN401 (as above)
    """All states and the two last ones of one sentence, word by word."""
    words, half = encoder.embedding.weight[ids], encoder.gru.hidden_size
    runs = []
    for suffix, order in (("_l0", words), ("_l0_reverse", words.flip(0))):
        states = [torch.zeros(half, dtype=torch.float64)]
        for word in order:
            states.append(gru(encoder.gru, suffix, word, states[-1]))
        runs.append(torch.stack(states[1:]))
    return torch.cat([runs[0], runs[1].flip(0)], dim=-1), torch.cat([run[-1] for run in runs])


@pytest.mark.parametrize("kind", RECURRENT)
def test_they_compute_the_formulas_of_the_page(page: SimpleNamespace, kind: str) -> None:
    """Token by token, each sentence alone and without padding: states, scores, weights, logits."""
    model, (src_BS, tgt_BT) = model_of(page, kind), batch()
    logits_BTV = model(src_BS, tgt_BT)
    for row, (src, tgt) in enumerate(zip(src_BS, tgt_BT, strict=True)):
        memory, s = encoded(model.encoder, src[src > 0])
        for place, y in enumerate(model.embedding.weight[tgt]):
            if kind == "OneVector":
                read = s = gru(model.gru, "_l0", y, s)
            else:
                scores = [
                    model.v.weight[0] @ torch.tanh(model.w.weight @ s + model.u.weight @ h)
                    for h in memory
                ]
                total = sum(score.exp() for score in scores)
                context = sum(
                    score.exp() / total * h for score, h in zip(scores, memory, strict=True)
                )
                s = gru(model.gru, "", torch.cat([y, context]), s)
                read = torch.cat([s, context])
            expected = model.out.weight @ read + model.out.bias
            torch.testing.assert_close(logits_BTV[row, place], expected, rtol=0, atol=1e-12)


def test_one_vector_is_all_that_its_decoder_has(page: SimpleNamespace) -> None:
    """As wide for any sentence. The state of attention grows with it, and padding weighs 0."""
    src_BS, _ = batch()
    (vector_BD,) = model_of(page, "OneVector").start(src_BS, 1).parts
    assert vector_BD.shape == (3, 6)
    model = model_of(page, "Bahdanau")
    state = model.start(src_BS, 1)
    assert state.parts[1].shape == (3, 7, 6)
    weights_BS = model.attend(state)
    torch.testing.assert_close(weights_BS.sum(dim=1), torch.ones(3, dtype=torch.float64))
    assert torch.equal(weights_BS == 0, src_BS == 0)


@pytest.mark.parametrize("kind", RECURRENT)
def test_a_search_may_reorder_them(page: SimpleNamespace, kind: str) -> None:
    """A beam's best has the probability that the whole model gives it, so states went along."""
    model, (src_BS, _) = model_of(page, kind), batch()
    limits = Limits(bos_id=1, eos_id=2, max_B=torch.full((3,), 6))
    for row, [best, *_] in enumerate(search(model, src_BS, Beam(beam_size=4), limits=limits)):
        said = torch.tensor([[1, *best.ids, 2]])
        log_probs_TV = model(src_BS[row : row + 1], said[:, :-1]).log_softmax(dim=-1)[0]
        each = log_probs_TV.gather(1, said[0, 1:, None])[:, 0]
        expected = each[: len(best.token_log_probs)].tolist()
        assert list(best.token_log_probs) == pytest.approx(expected, abs=1e-5)


WHEN = st.dates(date(1910, 1, 1), date(1999, 12, 31))


@given(st.lists(WHEN, min_size=1, max_size=8))
def test_a_translation_is_the_same_dates(names: dict[str, Any], days: list[date]) -> None:
    """The Chinese reads back as the dates; each date has one English, of known words."""
    src, tgt = names["make_pair"](days)
    said = "".join(tgt).split("、")
    assert [date(*map(int, text[:-1].replace("月", "年").split("年"))) for text in said] == days
    assert src.count(",") == len(days) - 1
    src_BS, tgt_BT, next_BT = names["make_batch"]([(src, tgt)])
    assert [names["SRC"][number] for number in src_BS[0]] == [*src, "<eos>"]
    assert [names["TGT"][number] for number in next_BT[0]] == [*tgt, "<eos>"]
    assert torch.equal(tgt_BT[:, 1:], next_BT[:, :-1])


def test_no_test_date_was_seen(page: SimpleNamespace) -> None:
    """Of all days each is for training or for the test, by tenths; no two are written alike."""
    days = [date.fromordinal(number) for number in range(page.BEGIN, page.END + 1)]
    assert len({page.english(day) for day in days}) == len(days) == 32_872
    seen, kept = (set(page.draw(4000, random.Random(1), test=test)) for test in (False, True))
    assert not any(day.toordinal() % 10 == 0 for day in seen)
    assert all(day.toordinal() % 10 == 0 for day in kept)
    assert {min(seen | kept), max(seen | kept)} <= set(days)


def test_the_whole_page_runs(names: dict[str, Any]) -> None:
    """It prints what the page shows; a date counts if all of it is right, and at its place."""
    own = dict(names)
    changes = {
        "^STEPS = .+$": "STEPS = dict.fromkeys(models, 10)",
        "lists: int = 100": "lists: int = 2",
        "^LENGTHS = .+$": "LENGTHS = (8,)",
    }
    code = shortened("".join(part.code for part in PARTS[TRAINING:]), changes)
    with torch.random.fork_rng(devices=[]):
        said = run(code, "00b-one-vector", own)
    words = [re.sub(r"[\d.,]+", "", line).split() for line in said.splitlines()]
    shown = "".join(part.said for part in PARTS[TRAINING:])
    assert words[:3] == [re.sub(r"[\d.,]+", "", x).split() for x in shown.splitlines()[:3]]
    assert len(words) == shown.count("\n")

    def right(_: object, pairs: list[tuple[list[str], list[str]]]) -> list[str]:
        """Translate without fault, and go on."""
        return ["".join(tgt) + "、" for _, tgt in pairs]

    def late(_: object, pairs: list[tuple[list[str], list[str]]]) -> list[str]:
        """Translate without fault, behind a word too many."""
        return ["1年、" + "".join(tgt) for _, tgt in pairs]

    for way, share in ((right, 1.0), (late, 0.0)):
        own["translate"] = way
        assert own["right_by_place"](None, 3) == [share] * 3
