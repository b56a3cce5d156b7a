"""Languages that py3langid does not know are checked by their script."""

import pytest

pytest.importorskip("py3langid", reason="the extra 'data' is not installed")

from dragoman.corpus.checking import check
from dragoman.corpus.config import CleaningConfig

OWN = "Ua hele aku ke kanaka i ke kahakai i kakahiaka"
FOREIGN = "Человек пошёл утром на берег моря"


@pytest.mark.parametrize(
    ("language", "own", "foreign"),
    [("haw", OWN, FOREIGN), ("hsb_Latn", OWN, FOREIGN), ("cu", FOREIGN, OWN), ("ckb", "ماڵ", "a")],
)
def test_the_script_of_an_unknown_language_is_checked(
    language: str, own: str, foreign: str
) -> None:
    """The expected script is that of most texts, unless the language code names one."""
    pairs = [(f"The old man washes car {n}.", f"{own} {n}.") for n in range(20)]
    pairs[7] = pairs[7][0], f"{foreign} 7."
    with pytest.warns(UserWarning, match=f"cannot identify {language}, so only the script"):
        found = check(lambda: pairs, CleaningConfig(skip=("ratio",)), ("en", language))
    assert [n for n, kept in enumerate(found.kept) if not kept] == [7]


def test_an_unknown_language_in_two_scripts_is_not_checked() -> None:
    """An unknown language in two scripts is reported as not checked."""
    words = OWN, FOREIGN, FOREIGN
    pairs = [(f"The old man washes car {n}.", f"{words[n % 3]} {n}.") for n in range(20)]
    with pytest.warns(UserWarning, match="since these texts are in several scripts, they are not"):
        assert check(lambda: pairs, CleaningConfig(), ("en", "cu")).kept.all()
    with pytest.warns(UserWarning, match="only the script"):
        found = check(lambda: pairs, CleaningConfig(), ("en", "cu-Cyrl"))
    assert found.kept.sum() == 13
