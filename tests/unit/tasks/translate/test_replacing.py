"""Terms that are inserted into a finished translation."""

from itertools import accumulate, pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dragoman import Glossary
from dragoman.decode import Prefixes
from dragoman.decoding import Decoding
from dragoman.errors import InputError
from dragoman.tasks.results import Alignment, Translation
from dragoman.tasks.translate.ids import IdTranslator
from dragoman.tasks.translate.replacing import replaced
from dragoman.tasks.translate.translator import Translator
from dragoman.text.glossary import GlossaryTerm
from dragoman.text.judging import judge
from dragoman.text.spans import trimmed_spans


def aligned(line: str, text: str, reads: str) -> Translation:
    """Return a translation of pieces separated by "|"; `reads` has each one's source piece.

    "-" stands for no source piece.
    """
    sides = [each.split("|") for each in (line, text)]
    ends = [[*accumulate(map(len, pieces), initial=0)] for pieces in sides]
    wholes = ["".join(pieces) for pieces in sides]
    src, tgt = (trimmed_spans(w, pairwise(e)) for w, e in zip(wholes, ends, strict=True))
    weights_TS = torch.full((len(tgt) + 1, len(src) + 1), 0.01)
    for row, place in zip(weights_TS, [*reads, "-"], strict=True):
        row[-1 if place == "-" else int(place)] = 0.9
    part = Alignment(
        src_tokens=(*sides[0], "</s>"),
        tgt_tokens=(*sides[1], "</s>"),
        weights_TS=weights_TS,
        src_spans=(*src, None),
        tgt_spans=(*tgt, None),
    )
    sentences = ((0, len(wholes[0]), 0, len(wholes[1])),)
    return Translation(text=wholes[1], sentences=sentences).aligned_by(lambda: (part,))


RED = Glossary([GlossaryTerm("red", "blau", ("blaue", "blauer", "blaues"))])


@pytest.mark.parametrize(
    ("line", "text", "reads", "terms", "expected"),
    [
        ("a| red| hat|.", "ein| roter| Hut|.", "0123", {"hat": "Helm"}, "ein roter Helm."),
        ("a| red| hat", "ein| roter| H|ut", "0122", {"hat": "Helm"}, "ein roter Helm"),
        ("red| hats", "Rote| Hüte", "01", {"red": "blaue"}, "Blaue Hüte"),
        ("1|.| red| hats", "1|.| „|Rote| Hüte", "01-23", {"red": "blaue"}, "1. „Blaue Hüte"),
        ("a| hat", "ein| T|-|Hut", "0---", {"hat": "Helm"}, "ein Helm T-Hut"),
        ("a| hat", "ein| T|-|Hut", "0111", {"hat": "Helm"}, "ein Helm"),
        ("a| hat", "ein| alter| Hut", "011", {"hat": "Helm"}, "ein Helm"),
        ("a| hat", "ein| alter|,| Hut", "01-1", {"hat": "Helm"}, "ein Helm, Hut"),
        ("hat| on", "auf", "1", {"hat": "Helm"}, "Helm auf"),
        ("a| man", "l|'|homme", "0--", {"man": "chien"}, "l'homme chien"),
        ("a| HAT", "ein| HUT", "01", {"hat": "Helm"}, "ein HELM"),
        ("an| Apple", "ein| Apfel", "01", {"Apple": ""}, "ein Apple"),
        ("a| hat| cat", "红|帽|子|上", "0113", {"hat": "头盔"}, "红头盔上"),
        ("帽|子", "a| hat", "00", {"帽子": "helmet"}, "helmet"),
        ("hat| hat", "Hut| Hut", "01", {"hat": "Helm"}, "Helm Helm"),
        ("hat| cat", "Hutkatze", "0", {"hat": "Helm", "cat": "Katze"}, "Helm Katze"),
        ("a| hat", "ein| Helm", "00", {"hat": "Helm"}, "ein Helm"),
        ("a| hat", "ein| Helme", "01", {"hat": "Helm"}, "ein Helme"),
        ("a| hat", "Helme| Hut", "01", {"hat": "Helm"}, "Helme Helm"),
        ("a| hat", "{x}", "1", {"hat": "Helm"}, "{x}"),
        ("a| red| hat", "ein| roter| Hut", "012", RED, "ein blauer Hut"),
        ("a| red| hat", "ein| rotes| Hut", "012", RED, "ein blaues Hut"),
        ("a| red| hat", "ein| rot| Hut", "012", RED, "ein blau Hut"),
    ],
)
def test_a_term_takes_the_place_of_what_the_model_wrote(
    line: str, text: str, reads: str, terms: Glossary | dict[str, str], expected: str
) -> None:
    """It replaces all adjacent words from its source, in the matching form, or is added.

    Existing terms, other forms of them that come from their source, and placeholders stay.
    """
    glossary = terms if isinstance(terms, Glossary) else Glossary(terms)
    found = glossary.find(line.replace("|", ""))
    assert replaced(aligned(line, text, reads), found).text == expected
    assert replaced(Translation(text=""), found).text == ""


def test_the_beginning_that_was_given_and_what_is_kept_stay() -> None:
    """A prefix is never replaced, whatever the alignment; the term comes after it."""
    terms = Glossary({"hat": "Helm"}).find("a hat")
    found = aligned("a| hat", "ein| Hut| da", "011")
    assert replaced(found, terms, begun=len("ein Hut")).text == "ein Hut Helm"
    found = aligned("a| hat", "ein| Hut", "01")
    assert replaced(found, terms, kept=["Hut"]).text == "ein Helm Hut"
    found = aligned("a| hat", "Helme| Hut", "01")
    assert replaced(found, terms, begun=len("Helme")) is found


def test_places_are_moved_with_the_text() -> None:
    """Sentences, copies and alignments move; the term itself counts as copied."""
    found = aligned("a| hat| is| on| it|.", "Ein| Hut| sitzt| da|.", "01235")
    moved = replaced(found, Glossary({"hat": "Feuerwehrhelm"}).find("a hat is on it."))
    assert moved.text == "Ein Feuerwehrhelm sitzt da."
    assert moved.sentences == ((0, 15, 0, len(moved.text)),)
    assert moved.copied == ((2, 5, 4, 17),)
    (part,) = moved.alignments
    words = [moved.text[slice(*span)] for span in part.tgt_spans if span is not None]
    assert words == ["Ein", "Feuerwehrhelm", "sitzt", "da", "."]
    assert (2, 5, 4, 17) in moved.text_links


@given(st.data())
def test_every_term_is_there_and_the_rest_as_it_was(data: st.DataObject) -> None:
    """Whatever the alignment says: words are only replaced or added, and places are in order."""
    letters = st.text("abc", min_size=1, max_size=3)
    line = data.draw(st.lists(letters, min_size=1, max_size=6))
    text = data.draw(st.lists(st.text("xyz,", min_size=1, max_size=3), min_size=1, max_size=6))
    reads = data.draw(st.text("-" + "012345"[: len(line)], min_size=len(text), max_size=len(text)))
    terms = {word: f"T{word}" for word in data.draw(st.sets(st.sampled_from(line)))}
    found = Glossary(terms).find(" ".join(line))
    before = aligned("| ".join(line), "| ".join(text), reads)
    after = replaced(before, found)
    if any(any(map(str.isalpha, word)) for word in text):
        assert judge(found, after.text) == ["applied"] * len(found)
    old = before.text.replace(",", " ").split()
    rest = [word for word in after.text.replace(",", " ").split() if not word.startswith("T")]
    kept = iter(old)
    assert all(word in kept for word in rest)
    assert len(rest) <= len(old) <= len(rest) + len(old) * bool(found)
    (sentence,) = after.sentences
    assert sentence[2:] == (0, len(after.text))
    for start, end, first, last in after.copied:
        assert after.text[first:last] == "T" + " ".join(line)[start:end]


def test_the_search_is_that_without_terms(translator: Translator) -> None:
    """So it can be combined with sampling; a line without terms is unchanged."""
    terms, line = {"cat": "tree"}, "the cat sees a dog"
    options = Decoding(terms="replace")
    plain = translator.translate(line)
    found = translator.translate(line, glossary=terms, options=options)
    assert [term.outcome for term in found.terms] == ["applied"]
    assert (found.score, found.tokens) == (plain.score, plain.tokens)
    assert translator.translate("the dog", glossary=terms, options=options) == (
        translator.translate("the dog")
    )
    sampling = Decoding(terms="replace", temperature=1.0, seed=3, n_best=3)
    sampled = translator.translate(line, glossary=terms, options=sampling)
    every = (sampled, *sampled.alternatives)
    assert [each.terms[0].outcome for each in every] == ["applied"] * 3


def test_the_alignment_is_that_of_the_search(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The finished translation is not read again, which would take time."""

    def read_again(*_: object) -> None:
        pytest.fail("the translation was read again")

    def end(logits_MV: Tensor, written: Prefixes) -> Tensor:
        logits_MV[:, translator.specials.eos_id] += 100.0 * (written.ids_NL.shape[1] > 4)
        return logits_MV

    monkeypatch.setattr(IdTranslator, "attention", read_again)
    options = Decoding(terms="replace", retry=False, processors=(end,))
    found = translator.translate("the cat sees a dog", glossary={"cat": "tree"}, options=options)
    assert found.terms[0].outcome == "applied"


def test_text_that_is_kept_is_searched_for_in_any_case(translator: Translator) -> None:
    """It cannot be combined with sampling."""
    line, terms_of = "the [cat] sees a dog", {"cat": "tree", "dog": "house"}
    plain = translator.translate(line, kept=[(4, 9)])
    options = Decoding(terms="replace")
    kept = translator.translate(line, kept=[(4, 9)], glossary=terms_of, options=options)
    assert kept.tokens == plain.tokens
    assert [term.outcome for term in kept.terms] == ["missed", "applied"]
    with pytest.raises(InputError, match="or with text to keep"):
        translator.translate(
            line, kept=[(4, 9)], options=Decoding(terms="replace", temperature=1.0)
        )
