"""How the model of a folder is used unless a call says otherwise."""

from collections.abc import Callable

import pytest

from dragoman.decoding import Decoding
from dragoman.errors import InputError
from dragoman.folder.format import GenerationDefaults, ReadingDefaults


@pytest.mark.parametrize(
    ("defaults", "name", "least"),
    [
        (Decoding, "beam_size", 1),
        (Decoding, "length_penalty", 0),
        (Decoding, "max_length_factor", 0),
        (Decoding, "max_length_constant", 1),
        (Decoding, "max_src_tokens", 1),
        (GenerationDefaults, "max_tokens", 1),
        (GenerationDefaults, "temperature", 0),
        (GenerationDefaults, "context", 2),
        (ReadingDefaults, "max_tokens", 1),
    ],
)
def test_defaults_that_no_call_could_use_are_refused(
    defaults: Callable[..., object], name: str, least: int
) -> None:
    """Before a model is trained that would then not load; the least value is taken."""
    assert getattr(defaults(**{name: least}), name) == least
    for value in (least - 1, float("nan")):
        with pytest.raises(InputError, match=f"{name} is {value}; it must be at least {least}"):
            defaults(**{name: value})
    with pytest.raises(InputError, match=rf"{name} is {1 << 63}; it must be less than 2\^63"):
        defaults(**{name: 1 << 63})


def test_a_count_is_a_whole_number() -> None:
    """Else PyTorch would find out, deep inside."""
    with pytest.raises(InputError, match=r"beam_size is 2\.5; it must be a whole number"):
        Decoding(beam_size=2.5)  # type: ignore[arg-type]
    assert GenerationDefaults(temperature=0.5).temperature == 0.5
