"""HTML: sentences with their inline tags, and attributes that are read.

    text, encode = decode(b"<p>One <b>word</b>.</p>", "page.html")
    read(text, encode, "page.html")

A block contains one or more sentences. Scripts, styles, `<pre>` and drawings are left alone;
`<code>` and the like, `translate="no"` and `class="notranslate"` are copied. XHTML is read as XML.
"""

import re
from dataclasses import replace

from dragoman.documents import markup
from dragoman.documents.characters import Encode, decoded
from dragoman.documents.document import Document, in_language
from dragoman.documents.markup import Page, Rules
from dragoman.documents.paragraphs import decode_xml
from dragoman.languages import LangCodes


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


INLINE = _names(
    "a abbr acronym audio b bdi bdo big br canvas cite code data del dfn em embed font i iframe "
    "img input ins kbd label map mark math meter nobr noscript object output picture progress q "
    "rb rp rt rtc ruby s samp script small source span strike strong style sub sup svg template "
    "textarea time track tt u var video wbr"
)
_RAW = _names("iframe noembed noframes plaintext script style textarea title xmp")
_ROWS = _names("tr tbody tfoot thead")
_CELLS, _TERMS, _OPTIONS = _names("td th") | _ROWS, _names("dd dt"), _names("option optgroup")
_AFTER_P = (
    "address article aside blockquote details dialog div dl fieldset figcaption figure footer form "
    "h1 h2 h3 h4 h5 h6 header hgroup hr li main menu nav ol p pre search section table ul"
)
RULES = Rules(
    scanner=markup.HTML,
    block=lambda name: name not in INLINE,
    copied=_names("code kbd samp tt var"),
    opaque={
        **dict.fromkeys(_RAW - {"title"}, "a page or a text of its own"),
        **dict.fromkeys(("script", "style"), ""),
        **dict.fromkeys(("audio", "object", "video"), "media, which another program shows"),
        **dict.fromkeys(("canvas", "svg"), "a drawing, whose texts have their places"),
        "math": "a formula",
        **dict.fromkeys(("rt", "rtc"), "what is read above or beside a word"),
        "rp": "",
        "pre": "text whose spaces and line ends count, such as code",
        "template": "a form that a script fills in",
    },
    raw=_RAW,
    breaks=_names("br"),
    empty=_names("area base br col embed hr img input link meta param source track wbr"),
    attributes=_names(
        "abbr alt aria-description aria-label aria-placeholder aria-roledescription aria-valuetext "
        "label placeholder summary title"
    ),
    ended_by={
        "li": _names("li"),
        **dict.fromkeys(_TERMS, _TERMS),
        **dict.fromkeys(("td", "th"), _CELLS),
        **dict.fromkeys(_ROWS, _ROWS),
        "option": _OPTIONS,
        **dict.fromkeys(("rt", "rp"), _names("rb rp rt rtc")),
        "rtc": _names("rb rtc"),
        "p": _names(_AFTER_P) | _TERMS | _CELLS,
    },
)
XHTML_RULES = replace(RULES, scanner=markup.XHTML, ended_by={}, raw=RULES.raw - {"title"})
_CHARSET = re.compile(rb"<meta[^>]{1,200}?charset\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)


_BY_OFFICE = re.compile(r"(?i)<meta\s(?=[^<>]*\bgenerator\b)[^<>]*\b(?:Microsoft|\w*Office)\b")
"""Word and LibreOffice declare the languages of the spelling checker, which are often wrong."""
_ROOT = re.compile(rb"(?is)<!--(?:(?!<!--).)*?-->|(<html(?=[\s/>])[^<>]*>)")


def decode(data: bytes, name: str) -> tuple[str, Encode]:
    """Decode a page by the encoding that it declares, as `decoded` does."""
    declared = _CHARSET.search(data[:4096])
    return decoded(data, name, declared[1].decode() if declared else "", has_references=True)


def read(text: str, encode: Encode, name: str, languages: LangCodes = (None, None)) -> Document:
    """Read the text of a page; broken markup is not an error.

    If its text changes, its `lang` changes from the first of the `languages` to the second.
    """
    rules = RULES if _BY_OFFICE.search(text) else replace(RULES, language=languages[0])
    return in_language(Page(text, rules, name).document(encode), _ROOT, languages)


def read_xhtml(data: bytes, name: str, place: str, languages: LangCodes) -> Document:
    """Read the text of an XHTML page; `place` begins each location.

    Raises InputError if it is not in the encoding that it declares.
    """
    text, encode = decode_xml(data, name)
    rules = replace(XHTML_RULES, language=languages[0])
    return in_language(Page(text, rules, name, place).document(encode), _ROOT, languages)
