"""The Generator: texts are independent of their batch, and options work as documented."""

from dataclasses import replace

import pytest
import torch
from tests.processors import needs_independent_rows
from tests.unit.models.family import DECODERS, make_decoder
from tests.unit.tasks.tiny import random_lines
from tests.unit.tasks.tiny_generator import DEFAULTS, PROMPTS, make_generator, with_positions

from dragoman.decoding import Decoding
from dragoman.nn import ALiBi, Learned
from dragoman.tasks.generate.generator import Generator


@pytest.fixture(scope="module")
def generator() -> Generator:
    """One generator for all tests, since generating does not modify it."""
    return make_generator()


def changed(generator: Generator, **options: object) -> Decoding:
    """Return the generator's options with changes."""
    return replace(generator.options, **options)  # type: ignore[arg-type]


@torch.no_grad()
def test_padding_is_in_front_alone() -> None:
    """Within a prompt the pad id is an ordinary token, such as an end of turn."""
    model = make_decoder(DECODERS["llama"]).eval()
    prompt_BS = torch.tensor([[7, model.pad_id, 5, 6]])
    padded_BS = torch.cat([prompt_BS.new_full((1, 2), model.pad_id), prompt_BS], dim=1)
    expected = model(prompt_BS)[:, -1]
    for ids_BS in (prompt_BS, padded_BS):
        found = model.step(ids_BS[:, -1], model.start(ids_BS, 1))
        torch.testing.assert_close(found, expected)


@needs_independent_rows
@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0.0}, {"temperature": 0.0, "beam_size": 3}, {"context": 8}]
)
def test_no_text_depends_on_its_neighbours(generator: Generator, options: dict[str, float]) -> None:
    """Batch size and neighbours change neither the text nor the scores, to the bit."""
    prompts = [*PROMPTS, *random_lines(5, longest=3)]
    expected = generator.generate(prompts, options=changed(generator, **options))
    assert len({one.text for one in expected}) > 6
    for budget in (1, 60):
        chosen = changed(generator, **options, max_batch_tokens=budget)
        assert generator.generate(prompts, options=chosen) == expected
    company = ["a dog" if n % 2 else p for n, p in enumerate(prompts)]
    found = generator.generate(company, options=changed(generator, **options))
    assert found[::2] == expected[::2]


@pytest.mark.parametrize("opening", [None, "\n"])
@pytest.mark.parametrize(
    "options",
    [
        {"max_tokens": 40},
        {"stop": ("the", "我")},
        {"temperature": 0.0},
        {"temperature": 0.0, "beam_size": 3},
    ],
)
def test_a_stream_is_the_text(opening: str | None, options: dict[str, object]) -> None:
    """The pieces of a stream add up to the text, and are never empty."""
    generator = make_generator(replace(DEFAULTS, opening=opening))
    for prompt in PROMPTS:
        chosen = changed(generator, **options)
        pieces = list(generator.stream(prompt, chosen))
        assert "".join(pieces) == generator.generate(prompt, options=chosen).text
        assert all(pieces)


def test_a_stream_leaves_torch_as_it_was(generator: Generator) -> None:
    """Code that reads a stream can train a model between two pieces."""
    for piece in generator.stream("the cat"):
        assert piece
        assert not torch.is_inference_mode_enabled()
        assert torch.is_grad_enabled()


def test_scores_are_those_of_the_full_pass(generator: Generator) -> None:
    """Each token of a given text has its log-probability, without tokens that are never written."""
    pairs = [("the cat", " sees a dog"), ("", "the cat"), ("我", "喜欢"), ("a", "😀")]
    for (prompt, text), scored in zip(pairs, generator.score(pairs), strict=True):
        before = [generator.tokenizer.bos_id, *generator.tokenizer.encode(prompt)]
        encode = generator.tokenizer.encode_rest if prompt else generator.tokenizer.encode_batch
        [ids] = encode([text])
        with torch.inference_mode():
            logits_LV = generator.model(torch.tensor([before + ids]))[0, len(before) - 1 : -1]
            logits_LV[:, [0, 1, 2]] = float("-inf")
            wanted = logits_LV.log_softmax(dim=1).gather(1, torch.tensor(ids)[:, None])[:, 0]
        assert scored.token_log_probs == pytest.approx(wanted.tolist(), rel=1e-4, abs=1e-4)
        assert scored.log_prob == pytest.approx(float(wanted.sum()), rel=1e-4)
        assert scored.score == pytest.approx(scored.log_prob / ((5 + len(ids)) / 6), rel=1e-4)
        assert scored.tokens == tuple(generator.tokenizer.tokens(ids))


def test_a_stop_string_is_cut_off_exactly(generator: Generator) -> None:
    """The cut may be within a token or across tokens, and the reason is "stop"."""
    plain = generator.generate("the cat", max_tokens=60, seed=3)
    text = plain.text
    assert len(text) > 20
    for start, end in ((0, 1), (3, 4), (5, 12), (len(text) - 2, len(text))):
        stop = text[start:end]
        found = generator.generate("the cat", max_tokens=60, seed=3, stop=[stop, "never"])
        assert found.text == text[: text.index(stop)]
        assert found == generator.generate("the cat", max_tokens=60, seed=3, stop=stop)
        assert found.stopped == "stop"
        assert len(found.ids) <= len(plain.ids)
        assert len(found.tokens) == len(found.token_log_probs)
        assert found.log_prob == pytest.approx(sum(found.token_log_probs), rel=1e-4)
        assert found.score == pytest.approx(found.log_prob / ((5 + len(found.ids)) / 6), rel=1e-4)
    assert generator.generate("the cat", max_tokens=60, seed=3, stop=["never"]) == plain


def test_lengths_are_kept(generator: Generator) -> None:
    """Texts have at most the maximum number of tokens and at least the minimum."""
    for most in (1, 7):
        for found in generator.generate(PROMPTS, max_tokens=most):
            assert len(found.ids) <= most
            assert (found.stopped == "length") == (len(found.ids) == most)
    options = changed(generator, min_length=9)
    assert all(len(found.ids) >= 9 for found in generator.generate(PROMPTS, options=options))


def test_rules_against_repetition_reach_the_search(generator: Generator) -> None:
    """No token is repeated where repetition is forbidden, even from the prompt."""
    options = changed(generator, no_repeat_ngrams=1, max_tokens=30)
    for found in generator.generate(PROMPTS, options=options):
        prompt_ids = generator._codec.encode([found.prompt])[0]
        assert len(set(found.ids)) == len(found.ids)
        assert not set(found.ids) & set(prompt_ids)
    free = generator.generate(PROMPTS, temperature=0.0)
    options = changed(generator, temperature=0.0, repetition_penalty=5.0)
    assert generator.generate(PROMPTS, options=options) != free


def test_a_full_context_is_said(generator: Generator) -> None:
    """A truncated context is flagged; a sufficient one changes nothing."""
    prompt = " ".join(random_lines(3))
    options = changed(generator, temperature=0.0, max_tokens=40, min_length=40)
    free = generator.generate(prompt, options=options)
    assert free.flags == ()
    wide = generator.generate(prompt, options=replace(options, context=4000))
    assert wide == free
    narrow = generator.generate(prompt, options=replace(options, context=8))
    assert narrow.flags == ("context_cut",)
    assert len(narrow.ids) == 40


def test_learned_positions_bound_the_context() -> None:
    """Such a model still generates without limit, within the positions that it has."""
    generator = make_generator(config=with_positions(Learned(max_length=16)))
    assert generator.context == 16
    found = generator.generate("the cat " * 20, options=changed(generator, min_length=12))
    assert found.flags == ("context_cut",)
    assert make_generator(replace(DEFAULTS, context=9)).context == 9
    assert make_generator(config=with_positions(ALiBi())).context is None


def test_a_tokens_that_is_no_text_is_never_written(generator: Generator) -> None:
    """Special tokens and unused rows of the output matrix are never written."""
    tokenizer = generator.tokenizer
    config = replace(with_positions(ALiBi()), vocab_size=tokenizer.vocab_size + 50)
    wide = make_generator(config=config)
    for found in wide.generate(PROMPTS * 5):
        assert not {0, 1, 2} & set(found.ids)
        assert max(found.ids, default=0) < tokenizer.vocab_size
