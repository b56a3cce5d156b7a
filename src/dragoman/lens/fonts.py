"""A font for each label of a picture, chosen by the characters in it.

Matplotlib's own font has no Chinese glyphs, and naming a font that is not installed only prints
warnings. So every label gets the first font file that has all its characters:

1. matplotlib's own font;
2. a font of the machine that is made for Chinese, Japanese or Korean;
3. Noto Sans SC (SIL Open Font Licence), which the package `zhplot` carries and
   the extra `plot` brings; only its file is used, the package is not imported,
   because importing it changes matplotlib's global settings;
4. any other font of the machine; of matplotlib's own none, as its "Last Resort" font draws a
   frame for every character and others hold signs of formulas at the places of letters.

If none has them, a character is shown by its code point: U+6211 for 我.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from matplotlib import get_data_path
from matplotlib.font_manager import FontProperties, fontManager
from matplotlib.ft2font import FT2Font

_MADE_FOR_CJK = (
    "noto sans cjk",
    "noto sans sc",
    "source han sans",
    "pingfang",
    "hiragino sans gb",
    "microsoft yahei",
    "wenquanyi",
    "simhei",
    "heiti",
    "droid sans fallback",
    "noto serif cjk",
    "songti",
    "simsun",
    "malgun gothic",
    "yu gothic",
)


def label(text: str) -> tuple[str, FontProperties]:
    """The text as it can be drawn, and the font to draw it with."""
    shown = "".join(
        char if char.isprintable() else "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}" for char in text
    )
    wanted = frozenset(map(ord, shown))
    for path in _candidates():
        if wanted <= _glyphs(path):
            return shown, FontProperties(fname=path)
    own = next(_candidates())
    known = _glyphs(own)
    spelt = "".join(char if ord(char) in known else f"U+{ord(char):04X}" for char in shown)
    return spelt, FontProperties(fname=own)


def _candidates() -> Iterator[str]:
    """Paths of font files in the order of the list above; each source is looked at when needed."""
    yield fontManager.findfont("DejaVu Sans")
    made_for_cjk, others = _installed()
    yield from made_for_cjk
    yield from _carried()
    yield from others


@cache
def _installed() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Upright fonts of the machine: those made for Chinese, best first, and the others."""
    regular = [
        (font.name.lower(), font.fname)
        for font in fontManager.ttflist
        if font.style == "normal"
        and font.weight in (400, "normal", "regular")
        and not font.fname.startswith(get_data_path())
    ]
    ranked = sorted(
        (rank, name, path)
        for name, path in regular
        for rank, prefix in enumerate(_MADE_FOR_CJK)
        if name.startswith(prefix)
    )
    made_for_cjk = tuple(dict.fromkeys(path for _, _, path in ranked))
    others = sorted({path for _, path in regular} - set(made_for_cjk))
    return made_for_cjk, tuple(others)


@cache
def _carried() -> tuple[str, ...]:
    """Font files in the package `zhplot`, if it is installed."""
    spec = find_spec("zhplot")
    folders = spec.submodule_search_locations if spec else None
    return tuple(
        str(path) for folder in folders or () for path in sorted(Path(folder).rglob("*.ttf"))
    )


@cache
def _glyphs(path: str) -> frozenset[int]:
    """The code points that a font file can draw; none if it cannot be read or scaled."""
    try:
        font = FT2Font(path)
    except (OSError, RuntimeError):
        return frozenset()
    return frozenset(font.get_charmap()) if font.scalable else frozenset()
