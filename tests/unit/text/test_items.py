"""Numbers of items, and what only looks like one."""

import pytest

from dragoman.text.items import in_digits, in_lists, numbered, sign_of


@pytest.mark.parametrize(
    ("sign", "text", "written"),
    [
        ("1) ", "A man", "1) "),
        ("(3) ", "A man", "(3) "),
        ("a) ", "Tee", "a) "),
        ("（一）", "我喜欢茶", "(1) "),
        ("（a）", "我喜欢茶", "(a) "),
        ("一、", "一个人", "1. "),
        ("二十一、", "我喜欢茶", "21. "),
        ("十、", "我喜欢茶", "10. "),
        ("１．", "我喜欢茶", "1. "),
        ("2、", "我喜欢茶", "2. "),
        ("①", "我喜欢茶", "①"),
        ("(1)", "我喜欢茶", "(1)"),
        ("1.", "苹果", "1."),
        ("1. ", "“你好”，他说", "1. "),
        ("1. ", "มา", "1. "),
        *(
            ("", text, "")
            for text in (
                *("3. Liga ist schwer.", "1. FC Köln", "3. Oktober", "1. Nº", "1. A man"),
                *("1)", "1. ", "8) 20", "3.14", "1.5亿", "１．５倍", "1、2年级", "(1)H NMR"),
                *("一、二年级的学生", "三、四个人", "一、两个人", "一、二、三，走！", "（笑）好"),
                *("(1) and (2) are", "（一）和（二）", "(1)(2)都对", "(S)he went", "2024"),
            )
        ),
    ],
)
def test_the_number_of_an_item_is_told(sign: str, text: str, written: str) -> None:
    """From ordinals, dates, decimals, alternatives, and from a number alone."""
    assert sign_of(f" {sign}{text}" if sign else text) == ((1, 1 + len(sign)) if sign else None)
    assert in_digits(sign) == written


def test_numbers_that_go_on_are_of_a_list() -> None:
    """Lists in others too; but no dates, nor the first, second and third of something."""
    texts = ["1. Tee", "1. Rot", "2. Blau", "2. Brot", "8. Juni", "9. Platz", "3. Salz"]
    texts += ["1. Quartal: ein", "2. Quartal: aus", "1. Mai", "2. Liga", "1. A man", "2. A dog"]
    found = [(n, item) for n, text in enumerate(texts) if (item := numbered(text))]
    assert sorted(in_lists(found)) == [(n, (0, 3)) for n in (0, 1, 2, 3, 6, 11, 12)]
