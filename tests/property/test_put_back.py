"""Laws of restoring tags: for any tags in any text, and any links."""

import re
from collections import Counter
from collections.abc import Iterator
from string import ascii_lowercase
from time import thread_time
from unicodedata import category

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.text.marked import Marked, Tag, merged, paired
from dragoman.text.putback import Link, put_back

Case = tuple[Marked, str, list[Link]]
words = st.sampled_from(
    ["red ", "a", " ", "the house", ", ", "3.14", "你好", "don't ", "ไทย", "é\u0301x ", "!", "\n"]
)
CODE = Tag("<code>", "open", kept=True)
names = st.sampled_from("abc")
items = st.one_of(
    words.map(lambda word: (" ", word)),
    names.map(lambda name: (name, Tag(f"<{name}>", "open"))),
    names.map(lambda name: (name, Tag(f"</{name}>", "close"))),
    st.sampled_from(["", " "]).map(lambda shown: ("br", Tag("<br>", shown=shown))),
)
trees = st.lists(items, max_size=40).map(paired)
translations = st.lists(words, max_size=20).map("".join)


@st.composite
def links(draw: st.DrawFn, source: str, text: str) -> list[Link]:
    """Draw links, some of them outside the texts."""
    spans = [
        st.tuples(st.integers(0, most), st.integers(0, most)).map(sorted)
        for most in (len(source) + 2, len(text) + 2)
    ]
    return [(*a, *b) for a, b in draw(st.lists(st.tuples(*spans), max_size=20))]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a source, its translation and links."""
    source, text = draw(trees), draw(translations)
    return source, text, draw(links(source.text, text))


def raws(marked: Marked) -> list[tuple[str, str]]:
    """Return the source form and the kind of each tag."""
    return [(tag.raw, tag.kind) for tag in marked.tags]


@given(cases())
@settings(max_examples=150)
def test_no_tag_is_lost_or_doubled_and_the_text_stays(case: Case) -> None:
    """The same tags, nested (or `Marked` raises), pairs as they were, around the same text; none
    cuts a word, or what is whole, whatever is linked to a part of it.
    """
    source, text, given_links = case
    for whole in ([], [match.span() for match in re.finditer(r"\S+", text)]):
        made = put_back(source, text, given_links, whole)
        assert Counter(raws(made)) == Counter(raws(source))
        assert made.text == text
        assert Counter(pairs(made)) == Counter(pairs(source))
        assert merged(made.pieces) == made
        for place in places(made) if text != source.text else ():
            assert not re.fullmatch("[a-z'é]{2}", text[place - 1 : place + 1])
            assert not any(start < place < end for start, end in whole)


SIGNS = "ក ្ ា ញុំ ត្រូវ น้ำ เ ดื่ ๅ ကျွ န် ္တ ະ ◌ x\u0308 \u200c 👩\u200d👧 👍🏽 🇩🇪 が か\u3099 \ua9e5 ."
parts = st.sampled_from([*SIGNS.split(), " "])


@given(trees, st.lists(parts, max_size=20).map(lambda some: f".{''.join(some)}."), st.data())
@settings(max_examples=150)
def test_no_letter_is_cut(source: Marked, text: str, data: st.DataObject) -> None:
    """Nor a copy taken for one that is a part of a letter, in scripts whose vowels are signs."""
    copied = Marked((*code(data.draw(st.sampled_from("កញတនดນ👩👍か"))), *source.pieces))
    for each in (source, copied):
        made = put_back(each, text, data.draw(links(each.text, text)))
        assert Counter(raws(made)) == Counter(raws(each))
        for place in places(made):
            before, char = made.text[place - 1], made.text[place]
            if not before.isspace():
                assert category(char)[0] != "M"
                assert char not in "\u200c\u200dำะๅ\U0001f3fd"
            assert before not in "\u200d\u1039\u17d2เ"
            assert before + char != "🇩🇪"


def pairs(marked: Marked) -> Iterator[tuple[str, str, int]]:
    """Yield each open tag with its close tag and depth."""
    opened = list[str]()
    for tag in marked.tags:
        if tag.kind == "open":
            opened.append(tag.raw)
        elif tag.kind == "close":
            yield opened.pop(), tag.raw, len(opened)


def places(marked: Marked) -> Iterator[int]:
    """Yield the positions of the tags in the text, except at its edges."""
    place = 0
    for piece in marked.pieces:
        if isinstance(piece, Tag) and 0 < place < len(marked.text):
            yield place
        place += len(piece if isinstance(piece, str) else piece.shown)


Tree = str | Tag | list["Tree"]
leaves = st.one_of(st.text(ascii_lowercase, min_size=1, max_size=3), st.just(Tag("<br>")))
forests = st.lists(
    st.recursive(leaves, lambda inner: st.lists(inner, min_size=1, max_size=4), max_leaves=12)
)


def tidy(forest: list[Tree]) -> Iterator[str | Tag]:
    """Yield words separated by spaces, element tags at words, void tags after them."""
    for number, tree in enumerate(forest):
        if number and tree != Tag("<br>"):
            yield " "
        if isinstance(tree, list):
            yield Tag("<b>", "open")
            yield from tidy(["w", *tree])
            yield Tag("</b>", "close")
        else:
            yield tree


@given(forests)
@settings(max_examples=200)
def test_where_the_words_stay_the_tags_do(forest: list[Tree]) -> None:
    """With each word linked to itself, and a word more at the end, each tag is where it was."""
    source = merged([*tidy(["w", *forest, "w"])])
    spans = [match.span() for match in re.finditer(r"\w+", source.text)]
    made = put_back(source, source.text + " x", [(*span, *span) for span in spans])
    assert made == merged([*source.pieces, " x"])
    assert put_back(source, source.text, []) is source


@given(st.permutations("abcdefgh"), st.sets(st.sampled_from("abcdefgh")))
def test_tags_go_with_their_words(order: list[str], bold: set[str]) -> None:
    """Wherever a word of an element of its own goes."""
    words = [Marked((Tag(f"<{w}>", "open"), w, Tag(f"</{w}>", "close"))) for w in "abcdefgh"]
    pieces = [words["abcdefgh".index(w)].pieces if w in bold else (w,) for w in "abcdefgh"]
    source = merged(piece for each in pieces for piece in (*each, " "))
    links = [
        (2 * "abcdefgh".index(w), 2 * "abcdefgh".index(w) + 1, 3 * n, 3 * n + 2)
        for n, w in enumerate(order)
    ]
    made = put_back(source, " ".join(w.upper() * 2 for w in order), links)
    expected = " ".join(
        f"<{w}>{w.upper() * 2}</{w}>" if w in bold else w.upper() * 2 for w in order
    )
    assert made.written() == expected


@given(cases())
def test_what_is_copied_is_that_of_the_source(case: Case) -> None:
    """Elements that are kept have their own text, whatever the model has written."""
    source, text, given_links = case
    source = merged(
        Tag(p.raw, p.kind, kept=p.kind == "open" and p.raw == "<c>", shown=p.shown)
        if isinstance(p, Tag)
        else p
        for p in source.pieces
    )
    made = put_back(source, text, given_links)
    assert Counter(raws(made)) == Counter(raws(source))
    assert Counter(kept(made)) == Counter(kept(source))


@given(st.data(), st.lists(st.sampled_from(["k", "w"]), min_size=1, max_size=8))
def test_a_copy_is_what_its_element_goes_around(data: st.DataObject, kinds: list[str]) -> None:
    """With any links nothing is doubled, and no other word is lost."""
    codes = [f"k{n}" for n, kind in enumerate(kinds) if kind == "k"]
    spaced = [(code(f"k{n}") if kind == "k" else (f"w{n}",)) for n, kind in enumerate(kinds)]
    source = merged(piece for pieces in spaced for piece in (*pieces, " "))
    text = data.draw(copies_among_words(codes))
    made = put_back(source, text, data.draw(links(source.text, text)))
    assert made.text == text
    assert Counter(kept(made)) == Counter(codes)


@given(st.data(), forests)
def test_copies_inside_other_elements_are_there_once(
    data: st.DataObject, forest: list[Tree]
) -> None:
    """Where the links of the element around them lead elsewhere, they go with it."""
    pieces = [*tidy(["w", *forest])]
    codes = [f"k{n}" for n, piece in enumerate(pieces) if piece == "w"]
    inner = (code(f"k{n}") if piece == "w" else (piece,) for n, piece in enumerate(pieces))
    source = merged(piece for each in inner for piece in each)
    text = data.draw(copies_among_words(codes))
    made = put_back(source, text, data.draw(links(source.text, text)))
    assert Counter(re.findall(r"\S+", made.text)) == Counter(text.split())
    assert Counter(kept(made)) == Counter(codes)


def test_a_copy_outside_the_element_around_its_own_goes_with_a_space() -> None:
    """The punctuation after the copy follows the word before it."""
    source = merged(["See ", Tag("<a>", "open"), "a dog ", *code("x"), Tag("</a>", "close")])
    spans = [(0, 3, 0, 5), (4, 5, 6, 9), (6, 9, 10, 14)]
    made = put_back(source, "Siehe ein Hund und das da x.", spans)
    assert made.written() == "Siehe <a>ein Hund <code>x</code></a> und das da."


def code(text: str) -> tuple[str | Tag, ...]:
    """Return a copied element."""
    return CODE, text, Tag("</code>", "close")


@st.composite
def copies_among_words(draw: st.DrawFn, codes: list[str]) -> str:
    """Draw a translation with these copies, in any order, and other words."""
    others = draw(st.lists(st.sampled_from(["rot", "auf", ",", "3.14", "你"]), max_size=8))
    return " ".join(draw(st.permutations([*codes, *others])))


def test_a_word_that_touches_a_copy_and_is_linked_to_it_is_a_part_of_it() -> None:
    """A linked word is the model's text for the copy; signs and letters without spaces are not."""
    source = Marked((*code("#"), " dogs here"))
    for text, expected in {
        "#4 Hunde": "<code>#</code> Hunde",
        "#Ein Hund": "<code>#</code> Hund",
        "Der #, Hund": "Der <code>#</code>, Hund",
        "#你好": "<code>#</code>你好",
    }.items():
        spans = [match.span() for match in re.finditer(r"\w+|\S", text.rpartition(" ")[0] or text)]
        assert put_back(source, text, [(0, 1, *span) for span in spans]).written() == expected


def kept(marked: Marked) -> list[str]:
    """Return the copied texts."""
    return [marked.text[start:end] for start, end in marked.kept]


def test_a_word_is_copied_to_where_it_stands() -> None:
    """If the model has copied it, its tags go around the copy, even without a link."""
    element = code("ls")
    source = Marked(("Call ", *element, " now, also: ", *element, "!"))
    made = put_back(source, "Also jetzt ls aufrufen, ls!", [])
    assert made.written() == "Also jetzt <code>ls</code> aufrufen, <code>ls</code>!"
    assert source.kept == ((5, 7), (19, 21))
    made = put_back(source, "Jetzt aufrufen!", [(8, 11, 0, 5), (0, 4, 6, 14), (21, 22, 14, 15)])
    assert made.written().count("<code>ls</code>") == 2


def test_a_break_takes_the_place_of_any_space() -> None:
    """This includes a no-break space, which the model may write before a number."""
    source = Marked(("my dog", Tag("<tab/>", shown=" "), "1"))
    made = put_back(source, "mein Hund\xa01", [(0, 2, 0, 4), (3, 6, 5, 9), (7, 8, 10, 11)])
    assert made.written() == "mein Hund<tab/>1"


def test_a_sign_beside_equal_signs_that_are_copied() -> None:
    """It is not mistaken for one of them."""
    source = Marked(("next$", Tag("<m>", "open", kept=True), "$$", Tag("</m>", "close")))
    made = put_back(source, "DANN$$$", [(0, 4, 0, 4), (4, 5, 4, 5), (5, 7, 5, 7)])
    assert made.written() == "DANN$<m>$$</m>"


def test_the_time_is_linear() -> None:
    """Four times the text takes at most ten times as long, with as many tags as words."""

    def taken(count: int) -> float:
        element = Tag("<b>", "open"), "word", Tag("</b>", "close"), Tag("<br>"), " other "
        source = merged(element * count)
        spans = [match.span() for match in re.finditer(r"\w+", source.text)]
        text, links = " ".join(["wort"] * len(spans)), []
        for n, span in enumerate(spans):
            at = len(spans) - n - 1 if n % 3 else n
            links.append((*span, 5 * at, 5 * at + 4))
        start = thread_time()
        put_back(source, text, links)
        return thread_time() - start

    assert min(taken(4000) for _ in range(2)) < 10 * min(taken(1000) for _ in range(3))
