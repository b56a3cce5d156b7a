"""Splitting texts into words, predicting tags and spans, and training for it."""

from dataclasses import replace
from math import prod
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.tasks.readers import READING, TAG, TAGS, TOKENIZER, make_model, make_tagger
from tests.unit.tasks.tiny import random_lines
from tests.unit.train.encoder_recipes import tag_recipe
from tests.unit.train.made import make_job, trained

from dragoman.data.tagged import find_spans, join_words, read_tagged
from dragoman.errors import InputError
from dragoman.evaluate import tag_scores
from dragoman.folder.format import Words
from dragoman.folder.opening import open_folder
from dragoman.tasks.tag.tagger import GAPS, Tagger, split_words
from dragoman.tasks.tag.task import TagRecipe
from dragoman.train.start import start_from

LINES = [*random_lines(12, seed=4, longest=6), "", "   ", "😀", *random_lines(3, 5, longest=40)]
KINDS = st.sampled_from(["spaced", "characters"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Anna lives in Basel.", ["Anna", "lives", "in", "Basel", "."]),
        ("U.S. shares (up 3.5%)", ["U.S.", "shares", "(", "up", "3.5", "%", ")"]),
        ("twenty-one, don't", ["twenty-one", ",", "don't"]),
        ("清华大学MBA", ["清", "华", "大", "学", "MBA"]),
        ("", []),
        (" \t ", []),
    ],
)
def test_words_that_are_spaced(text: str, words: list[str]) -> None:
    """White space and punctuation separate words; each Chinese character is a word."""
    assert [place.text for place in split_words(text, "spaced")] == words


@given(st.text(), KINDS)
def test_places_are_where_the_words_are(text: str, kind: Words) -> None:
    """Each is a stretch of the text, in order, and what no word has is white space."""
    end = 0
    for place in split_words(text, kind):
        assert text[place.start : place.end] == place.text
        assert not text[end : place.start].strip()
        end = place.end
    assert not text[end:].strip()


@given(st.lists(st.text(st.characters(categories=["L", "P"]), min_size=1)), KINDS)
def test_joined_words_are_where_they_are(words: list[str], kind: Words) -> None:
    """In the text that joining gives, each word stands at its place."""
    text, places = join_words(words, GAPS[kind])
    assert [text[start:end] for start, end in places] == words
    assert len(text) == sum(map(len, words)) + max(0, len(words) - 1) * (kind == "spaced")


def test_a_tag_may_have_no_probability_at_all() -> None:
    """A span of tags whose probabilities round to 0 has the score 0."""
    model = make_model(TAG)
    output = model.head.get_submodule("output")
    assert isinstance(output, torch.nn.Linear)
    with torch.no_grad():  # no tag with probability can begin a span
        output.weight.zero_()
        output.bias.copy_(torch.tensor([-2000.0, -1000.0, 1000.0, -2000.0, 1000.0]))
    (result,) = Tagger(model, TOKENIZER, TAGS, READING).tag_words([["the"]])
    assert [(word.tag, word.probability) for word in result.words] == [("B-X", 0.0)]
    assert [span.score for span in result.spans] == [0.0]


def test_spans_are_what_the_tags_form() -> None:
    """Spans have positions in the text and among words, and their mean probability."""
    results = [result for result in make_tagger().tag(LINES) if result.spans]
    assert results
    for result in results:
        found, malformed = find_spans([word.tag for word in result.words])
        assert malformed == 0 or "split" in result.flags
        assert [(span.label, span.words) for span in result.spans] == [
            (span.type, (span.start, span.stop)) for span in found
        ]
        for span in result.spans:
            own = result.words[slice(*span.words)]
            assert span.text == result.text[span.start : span.end]
            assert (span.start, span.end) == (own[0].start, own[-1].end)
            assert span.score ** len(own) == pytest.approx(prod(word.probability for word in own))


def test_words_that_are_given_stay_as_they_are() -> None:
    """Given words are not split further, and the text joins them with spaces."""
    tagger = make_tagger()
    words = [["U.S.-based", "a,b"], ["我喜欢"]]
    results = tagger.tag_words(words)
    assert [[word.text for word in result.words] for result in results] == words
    assert [result.text for result in results] == ["U.S.-based a,b", "我喜欢"]
    assert list(tagger.stream_words(iter(words))) == results
    with pytest.raises(InputError, match="Sentence 2 has an empty word"):
        tagger.tag_words([["a"], ["b", " "]])


def test_every_character_is_a_word_where_the_model_learnt_it_so() -> None:
    """Given words are joined without spaces."""
    tagger = make_tagger(replace(READING, words="characters"))
    assert [word.text for word in tagger.tag("3 岁 MBA").words] == list("3岁MBA")
    (joined,) = tagger.tag_words([["我", "学"]])
    assert joined.text == "我学"


def test_a_long_text_is_read_in_parts() -> None:
    """It is split between words, each part is read as a text, and every word has a tag."""
    tagger = make_tagger()
    words = ["cat"] * 50
    (result,) = tagger.tag_words([words])
    assert result.flags == ("split",)
    assert [word.text for word in result.words] == words
    fits = READING.max_tokens // len(TOKENIZER.encode("cat"))
    (first,) = tagger.tag_words([words[:fits]])
    assert first.flags == ()
    assert [word.tag for word in result.words[:fits]] == [word.tag for word in first.words]


def test_a_word_that_is_too_long_is_cut() -> None:
    """The word is tagged by its first pieces, and its neighbours are unaffected."""
    (result,) = make_tagger().tag_words([["cat", "x" * 100, "dog"]])
    assert [word.text for word in result.words] == ["cat", "x" * 100, "dog"]
    assert result.flags == ("max_length", "split")
    letters = "xqzkvjwy" * 20
    read = TOKENIZER.encode(letters)[: READING.max_tokens]
    cut = next(w for n in range(99) if TOKENIZER.encode(w := letters[:n]) == read)
    model = make_model(TAG)
    model.words = None  # the features are those of the whole word
    alone, whole = Tagger(model, TOKENIZER, TAGS, READING).tag_words([[letters], [cut]])
    assert (alone.flags, whole.flags) == (("max_length",), ())
    (found,), (expected,) = alone.words, whole.words
    assert (found.tag, found.probability) == (expected.tag, expected.probability)


@pytest.fixture
def recipe(tmp_path: Path) -> TagRecipe:
    """A recipe that tags names."""
    return tag_recipe(tmp_path)


def test_use_reads_what_training_read(recipe: TagRecipe) -> None:
    """A tagger reads pieces and word features as validation does, and gives the same tags.

    Masking a piece masks the features of its word.
    """
    data = replace(recipe.data, valid=recipe.data.train)
    recipe = replace(recipe, data=data, model=replace(recipe.model, word_features=40))
    job = make_job(recipe)[0]
    assert job.model.words is not None
    with torch.no_grad():
        job.model.words.weight.mul_(5.0)
    tagger = Tagger(job.model, job.tokenizer, job.held.labels, job.config.reading)
    words = [each.words for each in read_tagged(data.training, data.layout)]
    found = [[word.tag for word in result.words] for result in tagger.tag_words(words)]
    right = job.held.by_sentence(job.held.tags)
    assert job.measure().scores == tag_scores(right, found).figures
    batch, blind = job.validation[0], list[torch.Tensor]()
    job.model.words.register_forward_hook(lambda _, given, __: blind.append(given[0]))
    noisy = replace(job, recipe=replace(recipe, batch=replace(recipe.batch, token_dropout=0.5)))
    noisy.loss(batch)
    assert batch.words_BLF is not None
    kept = (blind[0] == batch.words_BLF).all(-1)
    first = batch.tags_BL >= 0
    assert 0.2 < kept[first].float().mean() < 0.8
    assert not blind[0][~kept].any()


def test_a_tagger_without_looks_gets_them(recipe: TagRecipe) -> None:
    """Word features are added even to a model with the same head; an existing table is kept."""
    trained(recipe)
    other = replace(recipe, out=f"{recipe.out}-2", model=replace(recipe.model, word_features=40))
    begun = start_from(other, open_folder(recipe.out))
    assert begun.model.word_features == 40
    _, said = trained(begun)
    assert "words.weight (zeros)" in said
    wider = replace(other, model=replace(other.model, word_features=90))
    assert start_from(wider, open_folder(begun.out)).model.word_features == 40


def test_characters_are_known_by_their_length(recipe: TagRecipe, tmp_path: Path) -> None:
    """If every word in training is one character, the folder says so."""
    path = tmp_path / "characters.conll"
    path.write_text("张 B-PER\n三 E-PER\n来 O\n\n" * 20, encoding="utf-8")
    job = make_job(replace(recipe, data=replace(recipe.data, train=str(path))))[0]
    assert job.config.reading is not None
    assert job.config.reading.words == "characters"


def test_tags_that_form_no_spans_need_another_metric(recipe: TagRecipe, tmp_path: Path) -> None:
    """Part-of-speech tags have an accuracy but no F1."""
    path = tmp_path / "speech.conll"
    path.write_text("the DET\ncat NOUN\nruns VERB\n\n" * 20, encoding="utf-8")
    plain = replace(recipe, data=replace(recipe.data, train=str(path)))
    with pytest.raises(InputError, match=r'set train.metric = "accuracy"'):
        make_job(plain)
    job = make_job(replace(plain, train=replace(plain.train, metric="accuracy")))[0]
    assert set(job.measure().scores) == {"accuracy"}
