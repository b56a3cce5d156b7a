"""Speakers in subtitles: the words of each are a separate text, without the name."""

import pytest
from tests.word_translator import WordTranslator, translated

from dragoman.documents.subtitles import _Layout
from dragoman.text.marked import Marked, Tag


def cues(*texts: str) -> str:
    """Subtitles in which these follow one another."""
    times = (f"00:00:0{n},000 --> 00:00:0{n + 1},000\n{text}\n" for n, text in enumerate(texts))
    return "\n".join(times)


@pytest.mark.parametrize(
    ("texts", "lines", "copied"),
    [
        (["ANN: we go", "on and", "BOB: a boy is"], ["we go on and", "a boy is"], "ANN BOB"),
        (["WOMAN 2: I see\nDR. O'HARA: it is"], ["I see", "it is"], "WOMAN DR. O'HARA"),
        (["{\\an8}<i>ANN:</i> we go", "- BOB: a boy"], ["we go", "a boy"], "ANN BOB"),
        (["<b>ANN</b>:\nwe go\non", "MÜLLER：so"], ["we go on", "so"], "ANN MÜLLER"),
        ([">> ANN: we go\n>> I am", ">>> on", "&gt;&gt; so"], ["we go", "I am", "on", "so"], "ANN"),
        (["we go", "ANN:\non", "-\nI am"], ["we go", "on", "I am"], "ANN"),
        (["we go", "WARNING: KEEP OUT", "of it"], ["we go", "WARNING: KEEP OUT", "of it"], ""),
        (["we said: go", "He: on", "12: so"], ["we said: go He: on 12: so"], ""),
        (["THE NEXT\nDAY", "a man is", "in the USA", "NASA", "is big"],
         ["THE NEXT DAY", "a man is in the USA NASA is big"], ""),
        (["I said", "NO MORE", "of it.", "A BIG DAY", "at two"],
         ["I said NO MORE of it.", "A BIG DAY", "at two"], ""),
        (["it is", "THE NEXT DAY", "A man"], ["it is", "THE NEXT DAY", "A man"], ""),
        (["it is", "ON THE DAY", "OF IT", "Ann is"], ["it is ON THE DAY OF IT", "Ann is"], ""),
        (["I am for", "THE FBI.", "A man"], ["I am for THE FBI.", "A man"], ""),
        (["NASA", "is big", "NASA", "Ann is"], ["NASA is big NASA Ann is"], ""),
        (["we go", "TO IT NOW"], ["we go TO IT NOW"], ""),
        (["we go።", "on"], ["we go።", "on"], ""),
        (["It was 10:30", "PM: so"], ["It was 10:30 PM: so"], ""),
        (["It is", "- A: so"], ["It is", "so"], "A"),
        (["It is", "A: so\nB: on.", "Q: so?", "A: on"], ["It is A: so B: on.", "so?", "on"], "Q A"),
        (["a <3 b > c <i>d</i>"], ["a <3 b > c d"], ""),
        (["We think\n{\\an8}[DOOR opens]\n<i>♪ A song ♪</i>\nof a", "house (big)",
          "- (sighs)\n[all\nlaugh]"],
         ["We think", "DOOR opens", "A song", "of a house (big)", "sighs", "[all laugh]"], "♪ ♪"),
        *(
            ([f"we go\n{sound}", f"on {sound} so"], ["we go", "音乐", f"on {sound} so"], sound)
            for sound in ("（音乐）", "【音乐】", "［音乐］", "(音乐)", "[音乐]")
        ),
    ],
)  # fmt: skip
def test_what_another_one_says_is_another_text(
    texts: list[str], lines: list[str], copied: str
) -> None:
    """Behind a name in capitals with a colon, or in the other case than a caption in capitals.

    So is a sound in brackets, which stay, but not one that is a part of a sentence.
    """
    source = cues(*texts)
    made, seen, _ = translated(source, "a.srt")
    assert seen == lines
    assert made.upper() == source.upper()
    assert all(name in made for name in copied.split())
    lower = translated(source.replace("\\an8", "\\AN8"), "a.srt", WordTranslator(str.lower))[0]
    assert all(name in lower for name in copied.split())


@pytest.mark.parametrize(
    ("texts", "lines"),
    [
        (["<v Ann>we go</v>", "<v Bob>a boy</v>"], ["we go", "a boy"]),
        (["<v.loud Ann>we go</v> <v Bob>a boy</v>\nis", "<v Bob>big"], ["we go", "a boy is big"]),
        (["a <00:01.500>b", "c <00:00:02.500>d"], ["a b", "c d"]),  # times stay in their cue
    ],
)
def test_another_voice_is_another_text(texts: list[str], lines: list[str]) -> None:
    """Also inside a line; the same one goes on."""
    source = "WEBVTT\n\n" + cues(*texts).replace(",", ".")
    made, seen, _ = translated(source, "a.vtt")
    assert seen == lines
    assert made.upper() == source.upper()


def test_what_is_above_a_word_is_not_read() -> None:
    """It says how the word is read, and stays with it."""
    text = "a <ruby>Dog<rt>dawg</rt> on<rt.x>an</ruby> it"
    source = "WEBVTT\n\n" + cues(text).replace(",", ".")
    made, seen, _ = translated(source, "a.vtt", WordTranslator(str.swapcase))
    assert seen == ["a Dog on it"]
    assert made == source.replace(text, "A <ruby>dOG<rt>dawg</rt> ON<rt.x>an</ruby> IT")


@pytest.mark.parametrize(
    ("before", "after", "written"),
    [
        ("老师批评护士", "。", "老师批评\n\n护士。"),
        ("Ann sees Bob", ".", "Ann sees\n\nBob."),
        ("他说：“是", "。”然后走了", "他说：“是。”\n\n然后走了"),
        ("（茶", "）和书", "（茶）\n\n和书"),
        ("I like tea", ", and books", "I like tea,\n\nand books"),
        ("it costs", " .5 of it", "it costs\n\n.5 of it"),
        ("我喜欢茶", "“是”的书", "我喜欢茶\n\n“是”的书"),
        ("我喜欢茶", "……", "我喜欢茶\n\n……"),
    ],
)
def test_no_cue_begins_with_a_closing_mark(before: str, after: str, written: str) -> None:
    """It stays with the word before; if that leaves no word, the cues share the sentence."""
    marks = False, after == "……"
    layout = _Layout(("\n\n",), (9.0, 9.0), (1, 1), "\n", escapes=False, marks=marks)
    assert layout.write(Marked((before, Tag("\n\n"), after))) == written


@pytest.mark.parametrize(
    ("lines", "written"),
    [
        ("她昨天买了伞，|然后回家。", "她昨天买了伞，|然后回家。"),
        ("她说：“是。”|她又说《书》", "她说：“是。”|她又说《书》"),
        ("역사를 우리|가방 안에", "역사를|우리가방 안에"),
        (
            "我一二三四五六七八九零《|十一二三四五六七八九》",
            "我一二三四五六七八九零|《十一二三四五六七八九》",
        ),
    ],
)
def test_no_line_ends_inside_a_word_of_chinese(lines: str, written: str) -> None:
    """But behind a mark, unless a line would be too long; no more lines than needed."""
    layout = _Layout((), (9.0,), (2,), "|", escapes=False, marks=(False,))
    assert layout.write(Marked((lines.replace("|", ""),))) == written


def test_no_mark_is_moved_out_of_its_element() -> None:
    """What an element encloses stays in it; a mark behind one goes with it."""
    layout = _Layout(("\n\n",), (9.0, 9.0), (1, 1), "\n", escapes=False, marks=(False, False))
    first, last, between = Tag("<i>", "open"), Tag("</i>", "close"), Tag("\n\n")
    inside = Marked(("茶", between, first, "，而书", last))
    assert layout.write(inside) == "茶\n\n<i>，而书</i>"
    behind = Marked((first, "茶", last, between, "，而书"))
    assert layout.write(behind) == "<i>茶</i>，\n\n而书"


def test_a_cue_may_begin_with_a_line_of_blanks() -> None:
    """As the captions that YouTube makes do; one of blanks alone has no text, and ends there."""
    times = "00:00:0{0}.160 --> 00:00:0{0}.389 align:start\n"
    first, second, third = (times.format(n) for n in (1, 2, 3))
    source = f"WEBVTT\n\n{first} \na<00:00:01.200><c> man</c>\n\n{second} \n2\n{third}sits\n \n\n"
    made, lines, report = translated(source, "a.vtt")
    assert lines == ["a man", "sits"]
    assert made.replace(" <c>", "<c> ").upper() == source.upper()
    assert "> MAN</c>" in made.replace(" <c>", "<c> ")
    assert not report.left


def test_a_line_break_of_ass_is_a_space_between_words() -> None:
    """In SubRip, too, where players show it so; a path is no such break."""
    cue = "1\n00:00:01,000 --> 00:00:04,000\n{}\n".format
    made, lines, _ = translated(cue(r"{\an8}One two:\Nthree in C:\New."), "a.srt")
    assert lines == [r"One two: three in C:\New."]
    assert made == cue(r"{\an8}ONE TWO:\NTHREE IN C:\NEW.")
