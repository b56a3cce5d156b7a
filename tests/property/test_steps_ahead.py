"""Steps that compiled code takes together equal steps taken one by one, bit for bit."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.test_compiled_search import strategies
from tests.unit.models.family import DECODER
from tests.unit.models.small import (
    BOS,
    EOS,
    PAD,
    VARIANTS,
    make_model,
    random_ids,
    random_sentences,
    stir,
)

from dragoman.decode import (
    Beam,
    Forbid,
    Greedy,
    Hypothesis,
    Limits,
    MinimumLength,
    Strategy,
    search,
)
from dragoman.decode.compiled import call_back
from dragoman.decode.processors import Processor
from dragoman.engine import FrozenDecoderOnly, FrozenEncoderDecoder, freeze
from dragoman.engine.products import can_pack
from dragoman.engine.store import BLOCK, BeamStore
from dragoman.errors import InputError
from dragoman.models import DecoderOnly
from dragoman.nn import Rotary
from dragoman.nn.cpu.native import Ahead
from dragoman.nn.position.rotary import DynamicScaling

MANY = st.lists(st.integers(1, BLOCK + 9), min_size=1, max_size=6)
FORBIDS = st.sampled_from([[], [Forbid((PAD, BOS))], [Forbid((PAD, -1)), Forbid((BOS, 9, 999))]])
pytestmark = pytest.mark.skipif(not can_pack("int8"), reason="no int8 here")


NARROW = replace(VARIANTS["two-vocabularies"], tgt_vocab_size=6, tie_embeddings="none")
"""Fewer tokens than a beam has slots, so that rows open and close in quiet steps too."""


def frozen(name: str) -> FrozenEncoderDecoder:
    """Return an int8 model with weights drawn so that sentences end at different lengths."""
    made = freeze(make_model(VARIANTS.get(name, NARROW)).float(), "int8")
    assert isinstance(made, FrozenEncoderDecoder)
    return made


def limits(*most: int) -> Limits:
    """Return limits with different ends."""
    return Limits(bos_id=BOS, eos_id=EOS, max_B=torch.tensor(most))


def found(
    model: FrozenEncoderDecoder,
    strategy: Strategy,
    most: list[int],
    processors: Sequence[Processor],
) -> tuple[list[list[Hypothesis]], int]:
    """Return what is found for some sentences, and the number of calls."""
    calls = 0

    def count(_: int) -> bool:
        nonlocal calls
        calls += 1
        return False

    src_BS = random_sentences(1, [3 + number for number in range(len(most))])
    asked = search(
        model, src_BS, strategy, processors=processors, limits=limits(*most), withdrawn=count
    )
    return asked, calls


@given(st.sampled_from([*VARIANTS, "narrow"]), strategies(), MANY, FORBIDS)
@settings(max_examples=50, deadline=None)
def test_the_same_is_found(
    name: str, strategy: Strategy, most: list[int], forbids: list[Forbid]
) -> None:
    """Tokens, log-probabilities and scores, whatever ends when, and beyond the first block."""
    model = frozen(name)
    together, _ = found(model, strategy, most, forbids)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FrozenEncoderDecoder, "ahead", lambda *_: None)
        alone, _ = found(model, strategy, most, forbids)
    assert together == alone


@pytest.mark.parametrize("width", [1, 4])
def test_quiet_steps_are_one_call(width: int) -> None:
    """This holds unless something other than `Forbid` reads their logits."""
    model, never = frozen("paper"), Forbid((PAD, BOS, EOS))
    _, calls = found(model, Beam(beam_size=width), [120], [never])
    assert calls < 12
    looks: list[Processor] = [never, MinimumLength(torch.tensor([2]), EOS)]
    assert found(model, Beam(beam_size=width), [30], looks)[1] == 29


def test_who_calls_back_waits_for_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence that is withdrawn while steps are taken takes no further step."""
    told = FrozenEncoderDecoder.ahead

    def interrupted(model: FrozenEncoderDecoder, state: BeamStore) -> Ahead | None:
        call_back()
        return told(model, state)

    monkeypatch.setattr(FrozenEncoderDecoder, "ahead", interrupted)
    assert found(frozen("paper"), Greedy(), [30], [Forbid((PAD, BOS, EOS))])[1] == 29


def test_a_broken_position_is_named() -> None:
    """NaN in the middle of such steps is reported."""
    model = make_model(VARIANTS["learned"]).float()
    with torch.no_grad():
        dict(model.named_parameters())["tgt_embedding.positions.weight"][7] = float("nan")
    broken = freeze(model, "int8")
    assert isinstance(broken, FrozenEncoderDecoder)
    with pytest.raises(InputError, match="NaN or infinite"):
        found(broken, Greedy(), [30], [Forbid((PAD, BOS, EOS))])


@pytest.mark.parametrize("width", [1, 3])
def test_a_base_that_grows_with_the_text_is_that_of_each_step(width: int) -> None:
    """Computing the angles of several positions at once would give all of them the last base."""
    scaling = DynamicScaling(factor=4.0, trained_length=8)
    config = replace(DECODER, positions=Rotary(scaling=scaling))
    torch.manual_seed(0)
    model = DecoderOnly(config).eval()
    stir(model)
    made, prompts_BS = freeze(model, "int8"), random_ids(1, 2, 5)
    bounds = replace(limits(30, 20), first_B=prompts_BS[:, -1])
    strategy, never = Beam(beam_size=width), [Forbid((PAD, BOS, EOS))]
    assert isinstance(made, FrozenDecoderOnly)
    together = search(made, prompts_BS, strategy, processors=never, limits=bounds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FrozenDecoderOnly, "ahead", lambda *_: None)
        assert search(made, prompts_BS, strategy, processors=never, limits=bounds) == together
