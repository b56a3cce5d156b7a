"""The Translator: one line out for each line in, whatever the lines and their neighbours."""

from dataclasses import asdict, replace
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.processors import needs_independent_translations
from tests.unit.tasks.complete import translating
from tests.unit.tasks.tiny import (
    DECODING,
    make_config,
    make_model,
    make_tokenizer,
    make_translator,
    random_lines,
)

from dragoman.decoding import Decoding
from dragoman.engine.products import can_pack
from dragoman.errors import InputError
from dragoman.nn import Arithmetic, Learned
from dragoman.tasks.lines import is_blank
from dragoman.tasks.translate.line import Line
from dragoman.tasks.translate.translator import Translator
from dragoman.text.glossary import Glossary
from dragoman.text.sentences import sentences_of
from dragoman.text.spans import Span

BLANK_LINES = ["", "   ", "\t", "\u3000", "\x00"]
ODD_LINES = [*BLANK_LINES, "😀", "👩\u200d👩\u200d👧 é", "a\u2028b", "the cat\r"]

SAMPLES: dict[str, Any] = {"beam_size": 1, "temperature": 1.0, "n_best": 3, "seed": 4}
GROUPS: dict[str, Any] = {"beam_size": 6, "beam_groups": 3, "diversity": 2.0, "n_best": 3}
ALONE, SEVERAL = make_translator(), make_translator(several=True)
FAILING = make_translator(seed=2)
WAYS: dict[str, tuple[Translator, dict[str, Any]]] = {
    "greedy": (ALONE, {"beam_size": 1}),
    "several languages": (SEVERAL, {"beam_size": 5, "n_best": 2}),
    "samples by risk": (ALONE, SAMPLES | {"temperature": 0.5, "mbr": 6}),
    "groups of an ensemble by risk": (ALONE.ensemble(FAILING), GROUPS | {"mbr": 6}),
    "retries": (FAILING, {"beam_size": 2, "n_best": 2}),
}


@needs_independent_translations
@pytest.mark.parametrize("way", WAYS)
def test_no_line_depends_on_its_neighbours(way: str) -> None:
    """Texts and scores of the n best are equal to the bit, alone or in any order and batch size."""
    translator, chosen = WAYS[way]
    options = replace(translator.options, **chosen)
    lines = [*dict.fromkeys(random_lines(6)), "the", "the cat"]
    expected = translator.translate(lines, options=options)
    assert len({one.text for one in expected}) > 3
    retried = [one for one in expected if "retried" in one.flags]
    assert retried or way != "retries"
    assert [translator.translate(line, options=options) for line in lines] == expected
    for budget in (60, 700):
        order = Random(budget).sample(range(len(lines)), len(lines))
        batches = replace(options, max_batch_tokens=budget)
        found = translator.translate([lines[n] for n in order], options=batches)
        assert found == [expected[n] for n in order]


OF_EITHER_KIND = pytest.mark.parametrize(
    "translator", [False, True], indirect=True, ids=["one pair", "several languages"]
)


@needs_independent_translations
@OF_EITHER_KIND
def test_odd_lines_stay_lines(translator: Translator) -> None:
    """Blank lines are empty without the model; all others give one line each, in order."""
    lines = [*random_lines(3), *ODD_LINES, *random_lines(3, seed=1)]
    found = translator.translate(lines)
    for line, translation in zip(lines, found, strict=True):
        assert ("empty" in translation.flags) == is_blank(line)
        assert len(translation.text.splitlines()) <= 1
        if is_blank(line):
            assert (translation.text, translation.score, translation.alignments) == ("", 0.0, ())


def test_space_around_a_line_means_nothing(translator: Translator) -> None:
    """A carriage return at the end of a line is ignored too."""
    spaced, plain = translator.translate("  the cat \r\n"), translator.translate("the cat")
    assert replace(spaced, sentences=plain.sentences) == plain
    assert spaced.sentences == ((2, 9, 0, len(plain.text)),)


@needs_independent_translations
@pytest.mark.parametrize(
    ("sign", "kept", "written"),
    [("(2) ", [], "(2) "), ("2. ", [(0, 3)], "2. "), ("十、", [], "10. ")],
)
def test_the_number_of_an_item_is_not_read(
    translator: Translator, sign: str, kept: list[Span], written: str
) -> None:
    """It is copied in front of the translation, unless a term contains it or there is a prefix."""
    plain, line = translator.translate("the cat sees"), f"{sign}the cat sees"
    found = translator.translate(line, kept=kept)
    assert (found.text, found.tokens) == (written + plain.text, plain.tokens)
    assert found.copied == ((0, len(sign.strip()), 0, len(written.strip())),)
    term = Line(line, [], glossary=Glossary({sign + "the": "dog"}))
    assert term.sign == Line(line, [], kept=kept, prefix=(1,)).sign == []


def test_a_long_line_is_translated_in_chunks(translator: Translator) -> None:
    """Each chunk is translated as if alone, nothing is lost, and the line is flagged."""
    sentences = ["the cat sees a dog.", "the tree runs!", "the dog sees the house."]
    longest = max(len(translator.src_tokenizer.encode(sentence)) for sentence in sentences)
    options = replace(translator.options, max_src_tokens=longest)
    whole = translator.translate(" ".join(sentences), options=options)
    assert "split" in whole.flags
    chunks = [translator.translate(s, options=options) for s in sentences]
    assert whole.tokens == tuple(token for chunk in chunks for token in chunk.tokens)
    assert whole.log_prob == pytest.approx(sum(chunk.log_prob for chunk in chunks), abs=1e-5)
    assert len(whole.alignments) == len(sentences)
    assert "split" not in chunks[0].flags


def test_equal_chunks_are_searched_once() -> None:
    """A line that repeats itself costs no more than one of its chunks."""
    translator, searched = make_translator(), list[int]()
    options = replace(translator.options, max_src_tokens=3, retry=False)
    translator.scheduler.observe = lambda report: searched.append(len(report.costs))
    once = translator.translate("the cat sees", options=options)
    often = translator.translate(" ".join(["the cat sees"] * 5), options=options)
    assert often.tokens == once.tokens * 5
    assert searched == [1, 1]


SENTENCES = ["the cat sees.", "A dog runs!", "我吗？"]
SPLITTING = make_translator(replace(DECODING, split_sentences=True))


@needs_independent_translations
@given(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4), st.sampled_from(["", " "]))
@settings(max_examples=20, deadline=None)
def test_sentences_are_translated_one_by_one(sentences: list[str], space: str) -> None:
    """Each as if it stood alone, as many out as in, each where it is said to stand."""
    line = f" {space}".join(f"{one[:1].upper()}{one[1:]}" for one in sentences)
    whole = SPLITTING.translate(line)
    alone = [SPLITTING.translate(line[a:b]) for a, b, _, _ in whole.sentences]
    assert len(alone) == len(sentences)
    assert [whole.text[a:b] for _, _, a, b in whole.sentences] == [one.text for one in alone]
    assert whole.tokens == tuple(token for one in alone for token in one.tokens)
    assert ("no_output" in whole.flags) == any(not one.text for one in alone)
    assert "several_sentences" not in whole.flags


def test_a_line_that_lost_sentences_is_flagged(translator: Translator) -> None:
    """Only unsplit lines are flagged, and only translations with fewer sentences."""
    options = replace(translator.options, split_sentences=False, n_best=2)
    several, one = translator.translate(
        ["the cat. A dog runs", "the cat. a dog runs"], options=options
    )
    for translation in (several, *several.alternatives):
        lost = len(sentences_of(translation.text)) < 2
        assert ("several_sentences" in translation.flags) == lost
    assert "several_sentences" in several.flags
    assert "several_sentences" not in one.flags


def with_places(count: int) -> Translator:
    """Return a translator whose model has this number of learned positions."""
    tokenizer = make_tokenizer()
    config = replace(make_config(tokenizer), positions=Learned(max_length=count))
    return Translator(make_model(config), tokenizer, tokenizer)  # instead of 2 n + 20 tokens


def test_no_line_is_too_long_for_learned_positions() -> None:
    """With 12 positions, long lines are read in chunks, and writing stops at the 12th.

    Other lines in the batch are unaffected. A single position is only enough for the end, which is
    reported instead of cutting to nothing.
    """
    places = 12
    translator = with_places(places)
    words = ["the", "cat", "sees"]
    for beam_size in (1, 3):
        short, long = translator.translate(["a dog", " ".join(words * 20)], beam_size=beam_size)
        assert "split" in long.flags
        assert "split" not in short.flags
        assert len(short.tokens) <= places
    endless = replace(translator.options, beam_size=1, min_length=100)
    cut = translator.translate("a dog", options=endless)
    assert len(cut.tokens) == places
    assert "max_length" in cut.flags
    with pytest.raises(InputError, match="learned positions for 1 only"):
        with_places(1).translate("a dog")


@pytest.mark.parametrize(("precision", "close"), [("fp32", 1e-6), ("bf16", 0.1), ("int8", 0.05)])
def test_scores_are_those_of_translating(precision: Arithmetic, close: float) -> None:
    """Forced decoding gives the same sum and token scores as the search.

    The tolerance is relative to the sum: rounding of sums in fp32, of factors in bf16, and of int8.
    """
    if not can_pack(precision):
        pytest.skip(f"no {precision} on this processor")
    translator = make_translator(precision=precision)
    lines, tokenizer = random_lines(60), translator.src_tokenizer
    vocabulary = {tokenizer.tokens([index])[0]: index for index in range(tokenizer.vocab_size)}
    ended = {
        line: found
        for line, found in zip(lines, translator.translate(lines), strict=True)
        if "max_length" not in found.flags
    }
    assert len(ended) > 9
    pairs = [
        (tokenizer.encode(line), [vocabulary[token] for token in found.tokens])
        for line, found in ended.items()
    ]
    for found, scored in zip(ended.values(), translator.score_ids(pairs), strict=True):
        near = -close * found.log_prob
        assert scored.log_prob == pytest.approx(found.log_prob, abs=near)
        assert scored.score == pytest.approx(found.score, abs=near)
        assert scored.token_log_probs == pytest.approx(found.token_log_probs, abs=near)
        assert scored.tokens == (*found.tokens, "</s>")


@OF_EITHER_KIND
def test_pairs_are_scored_in_order_and_by_themselves(translator: Translator) -> None:
    """Neighbours have no effect, empty texts have a score, and too long ones are an error."""
    lines = random_lines(9)
    pairs = [*zip(lines, reversed(lines), strict=True), ("", ""), ("the cat", "")]
    together = translator.score(pairs)
    for pair, scored in zip(pairs, together, strict=True):
        (alone,) = translator.score([pair])
        assert alone.tokens == scored.tokens
        assert alone.token_log_probs == pytest.approx(scored.token_log_probs, abs=1e-5)
        assert scored.log_prob < 0
    assert translator.score([]) == []
    with pytest.raises(InputError, match=r"begins with 'the cat the.*' and 'a' has \d+ tokens"):
        translator.score([("a", "a"), ("the cat " * 10_000, "a")])


def test_the_folders_defaults_hold_until_a_call_says_otherwise() -> None:
    """Keyword arguments override options, which override the folder's."""
    translator = make_translator(Decoding(beam_size=2, max_src_tokens=9))
    assert asdict(translator.options) == asdict(translating(beam_size=2, max_src_tokens=9))
    line = "the cat sees a dog"
    assert translator.translate(line) == translator.translate(line, options=translator.options)
    assert len(translator.translate(line, n_best=2).alternatives) == 1
    with pytest.raises(InputError, match="n_best is 3 with beam_size 2"):
        translator.translate(line, n_best=3)


def test_a_tokenizer_that_is_larger_than_the_model_is_refused() -> None:
    """Its pieces would have no embedding; the error names the side."""
    small, large = make_tokenizer(300), make_tokenizer(320)
    model = make_model(make_config(small))
    for side, tokenizers in (("target", (small, large)), ("source", (large, small))):
        with pytest.raises(InputError, match=f"The {side} tokenizer has .*; they do not belong"):
            Translator(model, *tokenizers)


def test_ids_without_a_piece_are_never_written() -> None:
    """A vocabulary that was padded to a round number has unused rows."""
    tokenizer = make_tokenizer()
    config = replace(make_config(tokenizer), tgt_vocab_size=tokenizer.vocab_size + 8)
    model = make_model(config)
    with torch.no_grad():
        model.output.bias[tokenizer.vocab_size :] = 50.0
        model.output.bias[[tokenizer.pad_id, tokenizer.bos_id, tokenizer.unk_id]] = 50.0
    found = Translator(model, tokenizer, tokenizer).translate("the cat", n_best=5)
    tokens = {t for one in (found, *found.alternatives) for t in one.tokens}
    assert tokens
    assert not tokens & {"<pad>", "<s>", "<unk>"}
    assert not any(token.startswith("<no piece") for token in tokens)
