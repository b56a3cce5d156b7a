"""`dragoman translate`: lines of text, or a document, to their translations."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.documents import AsDocument, each_document, places_of, with_document
from dragoman.cli.loading import (
    Loading,
    check_input,
    decoding_options,
    flags_of,
    sampled_or_wide,
    with_loading,
)
from dragoman.cli.options import DOCUMENTS, MODEL, OUTPUT, SEARCH, with_options
from dragoman.cli.output import (
    Destination,
    FilesOrText,
    ModelFolder,
    PlainLines,
    content_hash,
    digest_of,
    each_line,
    names_of_flags,
    to_json,
    with_destination,
    with_languages,
)
from dragoman.cli.pipes import check_output, lines_from
from dragoman.data.memory import load_memory
from dragoman.decoding import TRANSLATING, Decoding
from dragoman.errors import InputError
from dragoman.languages import LangCodes, LanguagePair
from dragoman.ranges import UNSET
from dragoman.text.glossary import Glossary

if TYPE_CHECKING:
    from dragoman.tasks.results import Translation
    from dragoman.tasks.translate.translator import Translator


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslateOptions:
    """Further inputs of a translation, and how it is printed."""

    prefixes: Path | None = field(default=None, metadata={"panel": SEARCH})
    """File with the prefix of each translation, line by line; an empty line sets none."""
    glossary: Path | None = field(default=None, metadata={"panel": DOCUMENTS})
    """Glossary file: a source term, a tab and its translation per line; or TBX."""
    memory: Path | None = field(default=None, metadata={"flag": "--tm", "panel": DOCUMENTS})
    """Translation memory (TMX, XLIFF, PO, CSV, TSV) whose exact matches are used."""
    ensemble: tuple[Path, ...] = field(default=(), metadata={"metavar": "MODEL", "panel": MODEL})
    """Another model to decode with, averaging the probabilities; repeatable."""
    as_published: bool = field(default=False, metadata={"panel": SEARCH})
    """Return what the publisher's class generates: --no-split --no-retry."""
    as_json: bool = field(default=False, metadata={"flag": "--json", "panel": OUTPUT})
    """Print a JSON object per line: scores, tokens, alignment, flags."""

    def read_glossary(
        self, decoding: Decoding, languages: Callable[[], LangCodes]
    ) -> Glossary | None:
        """Read the glossary, if any. Raises InputError for a way to apply terms without one."""
        if self.glossary is not None:
            return Glossary.read(self.glossary, languages())
        if "terms" in decoding.given():
            raise InputError(
                "--terms applies a glossary; give --glossary too, or leave out --terms."
            )
        return None


with_ensemble = with_options("asked", TranslateOptions(), only=("ensemble",))
"""For a verb that translates for another purpose: only the other models."""


@decoding_options(TRANSLATING)
@with_languages
@with_options("asked", TranslateOptions())
@with_loading
@with_document
@with_destination
def translate(  # noqa: PLR0913 -- the options of the verb
    model: ModelFolder,
    files: FilesOrText = None,
    *,
    decoding: Decoding,
    pair: LanguagePair,
    asked: TranslateOptions,
    loading: Loading,
    plain: PlainLines = False,
    document: AsDocument,
    to: Destination,
) -> None:
    """Translate lines of text, or documents. Prints one line per input line, in the same order.

    A document (HTML, docx, subtitles, ...) is written to --output; only its text changes. For
    several documents, --output is a folder, and they keep their names.

    dragoman translate runs/en-zh < lines.en > lines.zh

    dragoman translate runs/en-zh page.html --output page.zh.html

    dragoman translate runs/en-zh manual/*.docx --output manual.zh
    """
    n_best, as_json = decoding.given().get("n_best", 1), asked.as_json
    languages = cache(partial(languages_of, model, pair.languages))
    terms = asked.read_glossary(decoding, languages)
    command = command_of(decoding, asked.ensemble, pair.languages, loading) | {
        "--n-best": n_best,
        "--prefixes": content_hash(asked.prefixes),
        "--glossary": None if terms is None else terms.content_hash,
        "--tm": content_hash(asked.memory),
        "--json": as_json,
        "--as-published": asked.as_published or None,
    }
    load = cache(partial(load_translator, model, loading, decoding, pair.languages, asked))
    file, several = files[0] if files else None, len(files or ()) > 1
    if several or document.known(file, plain=plain) is not None:
        if n_best > 1 or asked.prefixes:
            raise InputError("A document has one translation; leave out --n-best and --prefixes.")
        translate = partial(
            document.translate,
            command=command | {"model": digest_of(model)},
            load=load,
            glossary=terms,
            languages=languages(),
        )
        if files and (several or to.is_folder):
            places = places_of(files, to.output, model, plain=plain)
            each_document(places, translate, load, to, as_json=as_json)
        else:
            check_output(to.output, model, None if file is None else Path(file))
            translate(file, to)
        return
    check_input(file, model, "translate")
    starts = _is_next if n_best > 1 and not as_json else None
    begun = nullcontext() if asked.prefixes is None else lines_from(asked.prefixes)
    check_output(to.output, model, asked.prefixes)
    lines = each_line(model, file, command, to=to, starts=starts, plain=plain)
    with lines as given, begun as beginnings:
        translator, options = load()
        translator = translator.aligning() if as_json else translator
        results = translator.stream(
            given.rest,
            options,
            prefixes=None if beginnings is None else given.skip(beginnings),
            glossary=terms,
            window=given.window,
        )
        numbers = count(given.before + 1)
        show = partial(_shown, numbers=numbers, n_best=n_best, as_json=as_json)
        given.write(results, show, names_of_flags)


def command_of(
    decoding: Decoding, ensemble: Sequence[Path], languages: LangCodes, loading: Loading
) -> dict[str, object]:
    """Return what translations depend on besides the model and the texts, by option."""
    return flags_of(TRANSLATING, replace(decoding, max_batch_tokens=UNSET)) | {
        "--ensemble": [digest_of(other) for other in ensemble] or None,
        "--src-lang": languages[0],
        "--tgt-lang": languages[1],
        "--compute": None if loading.compute == "float32" else loading.compute,
    }


def load_translator(
    model: Path,
    loading: Loading,
    decoding: Decoding,
    languages: LangCodes,
    asked: TranslateOptions,
) -> tuple["Translator", Decoding]:
    """Return the model, or an ensemble, with its translation memory; and the decoding options."""
    loading.check(model)
    from dragoman.tasks.translate.translator import Translator

    load = partial(
        Translator.load,
        device=loading.device,
        precision=loading.precision,
        as_published=asked.as_published,
    )
    first, *others = map(load, (model, *asked.ensemble))
    translator = first.ensemble(*others).between(*languages)
    if asked.memory is not None:
        known = load_memory(asked.memory, languages_of(model, languages))
        translator = translator.remembering(known)
    return translator, sampled_or_wide(decoding, translator.options)


def languages_of(model: Path, asked: LangCodes = (None, None)) -> LangCodes:
    """Return the languages that were asked for, or that the model was trained for."""
    from dragoman.folder.opening import open_folder

    try:
        config = open_folder(model).config
    except InputError:  # loading reports what is wrong
        return asked
    return asked[0] or config.src_lang, asked[1] or config.tgt_lang


def _shown(result: "Translation", numbers: Iterator[int], n_best: int, *, as_json: bool) -> str:
    """Return what is printed for one translation; as JSON also its source tokens and alignment."""
    if as_json:
        return to_json(result.to_dict() | result.linked())
    if n_best == 1:
        return result.text
    number, best = next(numbers), (result, *result.alternatives)
    return "\n".join(f"{number}\t{one.score:.6f}\t{one.text}" for one in best)


def _is_next(before: bytes, line: bytes) -> bool:
    """Return whether a line of n-best output has another number than the one before."""
    return before.split(b"\t")[0] != line.split(b"\t")[0]
