"""Glossaries and kept text in translation, which even random weights obey."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.processors import needs_independent_translations
from tests.unit.tasks.tiny import make_tokenizer, random_lines
from tests.unit.tasks.translate.conftest import Write

from dragoman import Glossary
from dragoman.decode import constrained
from dragoman.decoding import Decoding
from dragoman.errors import InputError
from dragoman.tasks.results import TermUse
from dragoman.tasks.translate.ids import Source
from dragoman.tasks.translate.terms import changed, check_kept, edges_of
from dragoman.tasks.translate.translator import Translator
from dragoman.text.glossary import is_boundary

TERMS = Glossary({"cat": "tree", "dog": "big house", "学习": "sees"})
TEXT = "the cat sees a dog"


def test_terms_are_applied_and_reported(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each result has the required target at any cost; text without terms is unaffected."""
    monkeypatch.setattr(constrained, "MARGIN", math.inf)
    monkeypatch.setattr(constrained, "MARGIN_ELSEWHERE", math.inf)
    monkeypatch.setattr(constrained, "WORTH", 1000.0)
    found = translator.translate(TEXT, glossary=TERMS, options=Decoding(max_length_factor=2.0))
    cat, dog = found.terms
    assert cat == TermUse(source="cat", target="tree", outcome="applied")
    assert (dog.source, dog.target) == ("dog", "big house")
    assert "big house" in found.text
    assert dog.outcome == "applied"  # and not within a longer word
    assert "terms_missed" not in found.flags
    assert found.to_dict()["terms"][0] == {"source": "cat", "target": "tree", "outcome": "applied"}
    plain = translator.translate("the tree", glossary=TERMS)
    assert plain == translator.translate("the tree")
    assert plain.terms == ()
    mapping = {term.source: term.target for term in TERMS}
    assert translator.translate(TEXT, glossary=mapping).terms == found.terms
    assert [each.terms for each in translator.stream([TEXT], glossary=mapping)] == [found.terms]
    with pytest.raises(TypeError, match=r"The glossary is 'terms.tsv'; give Glossary.read\(path\)"):
        translator.translate(TEXT, glossary="terms.tsv")  # type: ignore[call-overload] # a path


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (" the cat ", "a tree"),
        ("The cat.", "A tree."),
        ("(THE CAT):", "(A TREE):"),
        ("学习", "sees"),
        ("Strauß", "Strauß"),
        ("Post", "eMail"),
        ("dog\u2019s end", "big houſe"),
    ],
)
def test_a_line_that_is_a_term_becomes_its_target(
    translator: Translator, line: str, text: str
) -> None:
    """It takes the capitals of the line, even letters that the model cannot write."""
    targets = {"the cat": "a tree", "学习": "sees", "Strauß": "", "dog's end": "big houſe"}
    targets |= {"post": "eMail"}
    found = translator.translate(line, glossary=targets)
    assert (found.text, found.flags) == (text, ())
    assert [term.outcome for term in found.terms] == ["applied"]
    assert translator.translate(line).text != text
    (streamed,) = translator.stream([line], glossary=targets)
    assert streamed == found


def test_a_term_in_text_that_is_copied_is_copied(translator: Translator) -> None:
    """This also holds if the copied text is the whole line."""
    found = translator.translate("[cat]", glossary={"cat": "tree"}, kept=[(0, 5)])
    assert "[cat]" in found.text
    assert "kept" not in found.flags


@pytest.mark.parametrize("line", ["the cat the cat", "the cat 2", "学习.", "a the cat"])
def test_a_line_with_more_than_a_term_is_translated(translator: Translator, line: str) -> None:
    """Punctuation of another script counts as more than the term."""
    found = translator.translate(line, glossary={"the cat": "a tree", "学习": "sees"})
    assert found.log_prob < 0  # so the model wrote it


@pytest.mark.parametrize(
    ("line", "text", "apart"),
    [
        ("the cat.", "A dog. Tree.", True),
        ("the cat", "A dog. A Tree", True),
        ("猫。", "A dog. A Tree.", True),
        ("the cat.", "A Tree. Dog.", False),
        ("the dog. the cat.", "A dog. A Tree.", False),
        ("the dog። the cat።", "A dog. A Tree.", False),
        ("a dog incl. cat", "Ein Hund inkl. Tree", False),
        ("a dog, such as a cat", "ein Hund, z. B. ein Tree.", False),
        ("the dog. the horse.", "A dog. A horse. Tree.", False),
    ],
)
def test_a_term_in_a_sentence_of_its_own_is_told(
    translator: Translator, line: str, text: str, *, apart: bool
) -> None:
    """The model may have appended it; sentences without terms are not flagged."""
    glossary = {"cat": "Tree", "猫": "Tree"}
    found = translator.remembering({line: text}).translate(line, glossary=glossary)
    assert ("terms_apart" in found.flags) == apart


def test_tokens_of_one_word_are_joined() -> None:
    """Tokens are joined if there is no word boundary between them; unused rows join none."""
    tokenizer = make_tokenizer()
    edges = edges_of(tokenizer, tokenizer.vocab_size + 3)
    assert len(edges.begins_V) == len(edges.ends_V) == tokenizer.vocab_size + 3
    assert not edges.begins_V[-3:].any()
    assert not edges.ends_V[-3:].any()
    seen = set()
    for line in [*random_lines(20), "dogs, (cats) 学习 see-saw 12 x学习y", TEXT]:
        ids = tokenizer.encode(line)
        for n in range(1, len(ids)):
            if not {*ids[n - 1 : n + 1]} & tokenizer.byte_ids:
                joined = edges.joined(ids[n - 1], ids[n])
                assert joined != is_boundary(tokenizer.decode(ids), len(tokenizer.decode(ids[:n])))
                seen.add(joined)
    assert seen == {False, True}


def test_a_term_that_cannot_be_written_is_missed(translator: Translator) -> None:
    """This happens if the translation would be too long."""
    one = Decoding(max_length_factor=0.0, max_length_constant=1)
    found = translator.translate(TEXT, glossary=TERMS, options=one)
    assert [term.outcome for term in found.terms].count("missed") >= 1
    assert "terms_missed" in found.flags


def test_a_source_with_terms_counts_as_its_rows(translator: Translator) -> None:
    """Greedy search takes two rows, a beam its usual number."""
    source = Source((5, 6, 7), terms=(constrained.Term(0, 1, ((8,),)),))
    for beam_size, rows in ((1, 2), (2, 2), (5, 5)):
        options = replace(translator.options, beam_size=beam_size)
        assert translator._ids.searched([source], options).costs == [3 * rows]


@needs_independent_translations
def test_lines_with_terms_do_not_depend_on_others(translator: Translator) -> None:
    """Results are equal to the bit, with or without terms, for any batch size and in streams."""
    lines = [*random_lines(6), TEXT, "the cat"]
    options = Decoding(beam_size=4)
    together = translator.translate(lines, glossary=TERMS, options=options)
    assert together == [translator.translate(x, glossary=TERMS, options=options) for x in lines]
    assert together == [*translator.stream(lines, options, glossary=TERMS, window=7)]
    few = translator.translate(lines, glossary=TERMS, options=options, max_batch_tokens=60)
    assert together == few
    assert {len(found.terms) for found in together} > {0, 1}
    without = [n for n, found in enumerate(together) if not found.terms]
    plain = translator.translate([lines[n] for n in without], options=options)
    assert plain == [together[n] for n in without]


def test_kept_text_is_copied(translator: Translator) -> None:
    """It is copied exactly if the vocabulary has its pieces; otherwise it is flagged."""
    found = translator.translate(TEXT, kept=[(4, 12)])
    assert "cat sees" in found.text
    assert "kept" not in found.flags
    many = translator.translate([TEXT, "a tree"], kept=[[(4, 12)], []])
    assert many == [found, translator.translate("a tree")]
    assert many == [*translator.stream([TEXT, "a tree"], kept=iter([[(4, 12)], []]))]
    assert check_kept([TEXT], [[(3, 7), (7, 8)]]) == [[(4, 7)]], "white space is none of it"
    one = Decoding(max_length_factor=0.0, max_length_constant=1, retry=False)
    assert "kept" in translator.translate(TEXT, kept=[(4, 12)], options=one).flags


@pytest.mark.parametrize(
    ("line", "span", "translation", "is_kept"),
    [
        ("dog 1", (4, 5), "Hund 12", False),
        ("dog 1", (4, 5), "Hund 12, 1", True),
        ("dog 1 1", (4, 5), "Hund (1)", True),
        ("the ab", (4, 6), "abc cab", False),
        ("the ab!", (4, 7), "das „ab!“", True),
        ("the ab's", (4, 6), "abs ab’s", True),
        ("the abs", (4, 6), "die cabs", True),
    ],
)
def test_a_part_of_another_word_or_number_is_no_copy(
    line: str, span: tuple[int, int], translation: str, *, is_kept: bool
) -> None:
    """It is a copy if it is within another one in the line, too."""
    assert changed(line, [span], translation) == ([] if is_kept else [span])


@pytest.mark.parametrize(
    "text", ["the {name} cat", "see https://a.b/c?d=1 big", "1,234 dogs of %s"]
)
def test_what_is_missing_is_forced_or_put_back(translator: Translator, text: str) -> None:
    """Random weights copy nothing by themselves."""
    plain = translator.translate(text, options=Decoding(retry=False))
    found = translator.translate(text)
    kinds = {"placeholders", "urls", "numbers"}
    assert {*plain.flags} & kinds
    assert not {*found.flags} & kinds
    assert "retried" in found.flags


@pytest.mark.parametrize(
    ("text", "copied"),
    [
        ("the cat 😀 sees", "😀"),
        ("👩🏽\u200d🚀 sees a dog", "👩🏽\u200d🚀"),
        ("a cat named Кошка sees", "Кошка"),
        ("the 日本語 tree", "日本語"),
        ("a cat สวัสดีครับ sees", "สวัสดีครับ"),
        ("the नमस्ते tree", "नमस्ते"),
    ],
)
def test_words_in_bytes_are_put_back(translator: Translator, text: str, copied: str) -> None:
    """Unknown words are removed, and the rest is translated as it would be without them."""
    found = translator.translate(text)
    assert [found.text[c:d] for *_, c, d in found.copied] == [copied]
    rest = translator.translate(" ".join(text.replace(copied, "").split()))
    assert found.tokens == rest.tokens
    assert not {"symbols", "unknown_characters"} & {*found.flags}


def test_what_sets_the_direction_of_a_line_is_around_its_translation(
    translator: Translator,
) -> None:
    """Direction marks enclose the translation as they did the line."""
    inner = translator.translate("the cat sees. a dog runs.")
    found = translator.translate("\u2067\u202bthe cat sees. a dog runs.\u202c\u2069")
    assert found.text == f"\u2067\u202b{inner.text}\u202c\u2069"
    assert (found.tokens, found.flags) == (inner.tokens, inner.flags)


def test_words_beside_each_other_are_copied_each(translator: Translator) -> None:
    """So tags around one of them do not enclose the others."""
    for text, first in (("a cat Кошка 😀 日本", ["Кошка", "😀"]), ("Кошка 😀!", ["Кошка", "😀!"])):
        places = translator.translate(text).copied
        assert [text[a:b] for a, b, *_ in places][:2] == first


def test_what_is_not_put_back(translator: Translator) -> None:
    """Glossary terms and words beside a requested prefix are not.

    Neither is a word with a single letter in bytes, which the model may know by its others.
    """
    terms = Glossary({"Кошка": "cat", "😀": "dog"})
    found = translator.translate("the Кошка sees 😀", glossary=terms)
    assert found.copied == ()
    assert [term.target for term in found.terms] == ["cat", "dog"]
    assert "Кошка" not in translator.translate("Кошка", glossary=terms).text
    assert translator.translate("Кошка", prefix="the cat").text.startswith("the cat")
    assert translator.translate("the cät").copied == ()


@pytest.mark.parametrize("text", ["Кошка!", " («Кошка 日本») ", "😀 ...", "918273%"])
def test_a_line_without_a_word_to_read_stays(translator: Translator, text: str) -> None:
    """A model that reads only the punctuation around it would invent one."""
    found = translator.translate(text)
    assert found.text == text.strip()
    assert ("unknown_characters" in found.flags) == any(map(str.isalpha, text))


@pytest.mark.parametrize(
    ("texts", "best"),
    [
        (["number 22", "number 22 44", "number 44"], "number 44"),
        (["number 22", "number 22 44", "44 22"], "number 22"),
    ],
)
def test_a_wrong_number_does_not_stay_beside_the_right_one(
    translator: Translator, attempts: Callable[[Write], None], texts: list[str], best: str
) -> None:
    """The wrong number would hide the error."""
    found = iter(texts)
    attempts(lambda *_: next(found))
    assert translator.translate("the cat 44 sees").text == best


@pytest.mark.parametrize("around", ["{}", "the cat {} sees"])
def test_plural_forms_are_copied_and_flagged(translator: Translator, around: str) -> None:
    """Their syntax and text are flagged unless lost; a plain placeholder has no flag."""
    forms = "{n, plural, one {# dog} other {# dogs in {house}}}"
    found = translator.translate(around.format(forms))
    assert found.text == forms or around != "{}"
    assert ("untranslated_forms" in found.flags) == (forms in found.text)
    assert ("placeholders" in found.flags) != (forms in found.text)
    assert "untranslated_forms" not in translator.translate("the cat {n} sees").flags


def test_what_does_not_fit_is_refused(translator: Translator) -> None:
    """The error says what to do."""
    with pytest.raises(InputError, match=r"temperature is 1.0 with a glossary .* set it to 0"):
        translator.translate(TEXT, glossary=TERMS, options=Decoding(temperature=1.0))
    with pytest.raises(InputError, match="There are 1 lines and kept has 2; give one for each"):
        translator.translate([TEXT], kept=[[], []])
    for places in ([(4, 99)], [(0, 3), (2, 4)], [(3, 3)]):
        with pytest.raises(InputError, match="Line 1 has 18 characters, and"):
            translator.translate(TEXT, kept=places)
    wrongs: list[Any] = [(0, 3), [("a", "b")], [[(0, 3)]], [None], 5]
    for wrong in wrongs:
        with pytest.raises(InputError, match=r"Line 1 has .* in kept; give a list of \(start, end"):
            translator.translate(TEXT, kept=wrong)
    arrays: Any = np.array([[4, 7]])
    assert translator.translate(TEXT, kept=arrays) == translator.translate(TEXT, kept=[(4, 7)])


def test_a_line_in_capitals_stays_in_capitals(translator: Translator) -> None:
    """The model reads an ordinary sentence, and the output is in capitals; a word may be a name."""
    found = translator.translate("THE CAT SEES. A DOG RUNS.")
    small = translator.translate("The cat sees. A dog runs.")
    assert len(found.text) == len(small.text)
    assert found.text.lower() == small.text.lower()
    assert found.tokens == small.tokens
    assert not any(map(str.islower, found.text.replace("ß", "")))
    assert found.text_links == small.text_links
    assert translator.translate("DOG").text == "DOG"  # the model has not learned these letters


@pytest.mark.parametrize("copied", ["{dog}", "https://a.b/cat", "😀"])
def test_what_is_copied_is_in_no_capitals(translator: Translator, copied: str) -> None:
    """Copied text keeps its case and does not affect that of the line."""
    line = f"THE DOG RUNS {copied}"
    kept = [(13, len(line))]
    found = translator.translate(line, kept=kept)
    small = translator.translate(f"The dog runs {copied}", kept=kept)
    assert found.tokens == small.tokens
    assert found.text.count(copied) == small.text.count(copied)
    rest = found.text.replace(copied, "").replace("ß", "")
    assert rest.strip()
    assert not any(map(str.islower, rest))
    is_read = translator.translate(f"TREE {copied}", kept=[(5, 5 + len(copied))]).tokens
    expected = f"Tree {copied}" if copied == "{dog}" else f"TREE {copied}"
    assert is_read == translator.translate(expected, kept=[(5, 5 + len(copied))]).tokens
