"""Attention weights recorded during a search equal those of a second pass over the hypotheses."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.processors import needs_independent_translations
from tests.unit.tasks.tiny import DECODING, make_config, make_model, make_tokenizer, random_lines
from torch import Tensor

from dragoman.decode import (
    Attentive,
    Beam,
    Greedy,
    Head,
    Limits,
    Model,
    Prefixes,
    Sample,
    Strategy,
    search,
)
from dragoman.decode.beam import BeamFrontier
from dragoman.decoding import Decoding
from dragoman.engine import freeze
from dragoman.engine.products import can_pack
from dragoman.models import EncoderDecoderConfig
from dragoman.nn import Arithmetic, evaluation_view
from dragoman.tasks.held import Held
from dragoman.tasks.results import Translation
from dragoman.tasks.translate import ids
from dragoman.tasks.translate.ids import IdTranslator
from dragoman.tasks.translate.terms import edges_of
from dragoman.tasks.translate.translator import Translator
from dragoman.text.glossary import Glossary

TOKENIZER = make_tokenizer()
CONFIG = replace(make_config(TOKENIZER), num_decoder_layers=2, num_kv_heads=2)
needs_engine = pytest.mark.skipif(not can_pack("fp32"), reason="needs what is compiled")


def translating_by(head: Head, config: EncoderDecoderConfig = CONFIG, seed: int = 0) -> Translator:
    """Return a translator that aligns by this head."""
    model = make_model(config, seed)
    translator = Translator(model, TOKENIZER, TOKENIZER, decoding=DECODING)
    held = Held.of(model, "fp32")
    edges = partial(edges_of, TOKENIZER, TOKENIZER.vocab_size)
    translator._ids = IdTranslator(held, translator.specials, head=head, edges=edges)
    return translator


HEADS = [Head(), Head(0, 0), Head(1, 3), Head(0, None), Head(-2, 2), Head(0, 1, later=1)]
TRANSLATORS = {head: translating_by(head) for head in HEADS}
lines = st.integers(1, 7).flatmap(
    lambda count: st.integers(0, 999).map(lambda seed: random_lines(count, seed, longest=12))
)


def each_of(found: list[Translation]) -> Iterator[Translation]:
    """Yield each translation and its alternatives."""
    for each in found:
        yield each
        yield from each.alternatives


@needs_engine
@needs_independent_translations
@given(head=st.sampled_from([*TRANSLATORS]), lines=lines, beam_size=st.integers(1, 5))
@settings(max_examples=25, deadline=None)
def test_kept_weights_are_those_of_another_pass(
    head: Head, lines: list[str], beam_size: int
) -> None:
    """Near, with the same greatest; and texts and scores are the same bits with them and without.

    For every head, in a batch, through the reordering of beams, of all the n best.
    """
    translator = TRANSLATORS[head]
    expected = translator.translate(lines, beam_size=beam_size, n_best=beam_size)
    found = translator.aligning().translate(lines, beam_size=beam_size, n_best=beam_size)
    assert found == expected
    for one, other in zip(each_of(found), each_of(expected), strict=True):
        for kept, read in zip(one.alignments, other.alignments, strict=True):
            torch.testing.assert_close(kept.weights_TS, read.weights_TS, atol=2e-5, rtol=1e-4)
            two = read.weights_TS.topk(2, dim=1).values
            clear_T = two[:, 0] - two[:, 1] > 1e-4
            assert torch.equal(
                kept.weights_TS.argmax(1)[clear_T], read.weights_TS.argmax(1)[clear_T]
            )


@needs_engine
@needs_independent_translations
def test_kept_weights_do_not_depend_on_neighbours() -> None:
    """The weights are the same bits alone and in any batch."""
    translator = TRANSLATORS[Head(1, 3)].aligning()
    lines = random_lines(12, seed=5)
    together = translator.translate(lines, beam_size=3)
    for line, expected in zip(lines, together, strict=True):
        alone = translator.translate(line, beam_size=3)
        pairs = zip(alone.alignments, expected.alignments, strict=True)
        assert all(torch.equal(one.weights_TS, other.weights_TS) for one, other in pairs)


@needs_engine
def test_alignments_of_an_ensemble_are_those_of_its_first_model() -> None:
    """This holds whether the weights are recorded or computed by a second pass."""
    joined = translating_by(Head(1, 3)).ensemble(translating_by(Head(1, 3), seed=1))
    for line in random_lines(3, seed=8):
        (kept,), (read,) = (
            joined.aligning().translate(line).alignments,
            joined.translate(line).alignments,
        )
        torch.testing.assert_close(kept.weights_TS, read.weights_TS, atol=2e-5, rtol=1e-4)


def test_a_token_is_aligned_by_the_step_that_reads_it() -> None:
    """If the folder says so; eos, which no step reads, is aligned by the step that writes it."""
    line, later = "the cat sees a dog", TRANSLATORS[HEADS[-1]]
    layer, head, _ = HEADS[-1]
    written_TS = translating_by(Head(layer, head)).translate(line).alignment().weights_TS
    read_TS = later.translate(line).alignment().weights_TS
    torch.testing.assert_close(read_TS, torch.cat([written_TS[1:], written_TS[-1:]]))


def test_terms_begin_where_the_mean_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a head that aligns by later steps, terms use the mean, whose weights align nothing."""
    watched = list[Head]()

    def attentive(model: Model[Any], head: Head) -> Attentive[Any]:
        watched.append(head)
        return Attentive(model, head)

    monkeypatch.setattr(ids, "Attentive", attentive)
    line, terms = "the cat sees a dog", Glossary({"cat": "a dog"})
    for head, mean in ((HEADS[-1], Head()), (HEADS[2], HEADS[2])):
        translator = TRANSLATORS[head].aligning()
        assert translator.translate(line, glossary=terms).terms[0].outcome == "applied"
        assert {*watched} == {mean}
        watched.clear()
        translator.translate(line)
        assert {*watched} == {head}
        watched.clear()

    def end(logits_MV: Tensor, written: Prefixes) -> Tensor:
        logits_MV[:, TOKENIZER.eos_id] += 100.0 * (written.ids_NL.shape[1] > 4)
        return logits_MV

    read_TS = torch.eye(2)
    monkeypatch.setattr(IdTranslator, "attention", lambda *_: read_TS)
    options = Decoding(processors=(end,), retry=False)
    found = TRANSLATORS[HEADS[-1]].translate(line, glossary=terms, options=options)
    assert found.alignments[0].weights_TS is read_TS


SOURCES = torch.tensor([[5, 6, 7, 8, 9, 10, 3], [11, 12, 3, 0, 0, 0, 0], [13, 14, 15, 16, 3, 0, 0]])
LIMITS = Limits(bos_id=2, eos_id=3, max_B=torch.tensor([9, 12, 7]))


@needs_engine
@pytest.mark.parametrize("arithmetic", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("strategy", [Greedy(), Beam(beam_size=4, n_best=4), Sample(seed=1)])
def test_rows_are_distributions_over_the_source(arithmetic: Arithmetic, strategy: Strategy) -> None:
    """Each token, eos too, has a distribution; nothing after the end of a source is attended to."""
    if not can_pack(arithmetic):
        pytest.skip("the processor lacks units for it")
    model: Model[Any] = freeze(evaluation_view(make_model(CONFIG)), arithmetic)
    model = Attentive(model, Head(0, 1))
    for source_S, n_best in zip(
        SOURCES, search(model, SOURCES, strategy, limits=LIMITS), strict=True
    ):
        for each in n_best:
            assert each.attention_LS is not None
            assert len(each.attention_LS) == len(each.token_log_probs)
            length = int((source_S != 0).sum())
            ones_L = torch.ones(len(each.attention_LS))
            torch.testing.assert_close(each.attention_LS[:, :length].sum(1), ones_L)
            assert not each.attention_LS[:, length:].any()


class LookingBeam(Beam):
    """A beam whose frontier looks at attention."""

    def begin(self, max_B: Tensor, eos_id: int) -> "LookingFrontier":
        """Return a frontier that looks."""
        return LookingFrontier(self, max_B, eos_id)


class LookingFrontier(BeamFrontier):
    """A frontier that keeps the weights it was shown."""

    def look(self, weights_MS: Tensor) -> None:
        """Keep the weights of the step."""
        self.weights_MS = weights_MS

    def advance(self, log_probs_MV: Tensor):  # type: ignore[no-untyped-def]  # noqa: ANN201
        """Advance by as many rows as were shown."""
        assert len(self.weights_MS) == len(log_probs_MV)
        return super().advance(log_probs_MV)


@needs_engine
def test_a_frontier_that_looks_is_shown_the_rows_of_each_step() -> None:
    """It sees them before it chooses, row by row; a model without attention shows it nothing."""
    frozen: Model[Any] = freeze(evaluation_view(make_model(CONFIG)), "fp32")
    strategy = LookingBeam(beam_size=3)
    plain = search(frozen, SOURCES, Beam(beam_size=3), limits=LIMITS)
    assert search(Attentive(frozen, Head()), SOURCES, strategy, limits=LIMITS) == plain
    with pytest.raises(AttributeError):
        search(frozen, SOURCES, strategy, limits=LIMITS)


def test_a_model_that_tells_nothing_is_read_once_more() -> None:
    """A model that decodes by itself, for example, still has alignments."""
    model = make_model(CONFIG)
    held = Held(evaluation_view(model), evaluation_view(model), lambda: evaluation_view(model))
    translator = Translator(model, TOKENIZER, TOKENIZER, decoding=DECODING)
    translator._ids = IdTranslator(held, translator.specials)
    line = "the cat sees a dog"
    (found,) = translator.aligning().translate(line).alignments
    (expected,) = translator.translate(line).alignments
    assert torch.equal(found.weights_TS, expected.weights_TS)
