"""Sampled translations, and translations with a given beginning."""

from dataclasses import replace

import pytest
from tests.unit.tasks.tiny import DECODING, make_translator, random_lines

from dragoman.decoding import Decoding
from dragoman.errors import InputError
from dragoman.tasks.translate.ids import Source
from dragoman.tasks.translate.translator import Translator

BEGINNING = "the dog"


def test_samples_come_best_first_and_one_is_the_first(translator: Translator) -> None:
    """There are as many as requested, and the first draw is among them."""
    options = replace(translator.options, beam_size=1, temperature=1.5, retry=False)
    one = translator.translate("the cat sees", options=options)
    best = translator.translate("the cat sees", options=replace(options, n_best=6))
    every = [best, *best.alternatives]
    assert [each.score for each in every] == sorted((e.score for e in every), reverse=True)
    assert len(every) == 6
    assert one.tokens in [each.tokens for each in every]


@pytest.mark.parametrize(("beam_size", "groups"), [(1, 1), (4, 1), (4, 2)])
def test_a_translation_begins_as_it_is_told(
    translator: Translator, beam_size: int, groups: int
) -> None:
    """The prefix's pieces come first with probability 1; an empty prefix has no effect."""
    lines = random_lines(6)
    prefixes = [BEGINNING if n % 2 else "" for n in range(6)]
    options = Decoding(beam_size=beam_size, beam_groups=groups)
    found = translator.translate(lines, prefix=prefixes, options=options)
    free = translator.translate(lines, options=options)
    ids = translator.tgt_tokenizer.encode(BEGINNING)
    for n, translation in enumerate(found):
        if n % 2:
            assert list(translation.tokens[: len(ids)]) == translator.tgt_tokenizer.tokens(ids)
            assert translation.token_log_probs[: len(ids)] == (0.0,) * len(ids)
            assert translation.text.startswith(BEGINNING)
        else:
            assert translation.text == free[n].text


def test_what_was_found_is_found_again_from_its_beginning(translator: Translator) -> None:
    """Greedy search with a prefix of its own result gives the same result."""
    options = replace(translator.options, beam_size=1, retry=False)
    source = Source(translator.src_tokenizer.encode("the cat sees a dog"))
    ids = translator._ids
    with ids.model.inference():
        free = ids.search([source], options)[0][0]
    assert len(free.ids) > 1
    for length in range(1, len(free.ids)):
        begun = replace(source, prefix=free.ids[:length])
        with ids.model.inference():
            found = ids.search([begun], options)[0][0]
        assert found.ids == free.ids
        assert found.log_prob == pytest.approx(sum(free.token_log_probs[length:]), abs=1e-4)


def test_a_prefix_is_its_first_sentence_s() -> None:
    """If a line is split, the other sentences are translated freely."""
    translator = make_translator(replace(DECODING, split_sentences=True))
    line = "The cat sees. A dog runs!"
    found, free = translator.translate(line, prefix=BEGINNING), translator.translate(line)
    assert found.text.startswith(BEGINNING)
    (_, _, a, b), (_, _, c, d) = found.sentences[1], free.sentences[1]
    assert found.text[a:b] == free.text[c:d]


def test_a_prefix_longer_than_the_limit_is_kept(translator: Translator) -> None:
    """The translation is as long as its prefix requires."""
    options = replace(
        translator.options, max_length_factor=0.0, max_length_constant=1, beam_size=1, retry=False
    )
    found = translator.translate("the", prefix=BEGINNING, options=options)
    assert found.text.startswith(BEGINNING)
    assert len(found.tokens) == len(translator.tgt_tokenizer.encode(BEGINNING)) + 1


@pytest.mark.parametrize(("count", "word"), [(1, "fewer"), (3, "more")])
def test_there_is_a_prefix_for_each_line(translator: Translator, count: int, word: str) -> None:
    """A missing one is reported in one sentence, at once or at the end of a stream."""
    prefixes, message = [""] * count, f"There are {word} prefixes than lines"
    with pytest.raises(InputError, match=message):
        translator.translate(["the", "a"], prefix=prefixes)
    with pytest.raises(InputError, match=message):
        list(translator.stream(["the", "a"], prefixes=prefixes))
