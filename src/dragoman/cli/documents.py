"""Documents of `dragoman translate`: recognizing, translating and reporting on them."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from dragoman.cli.options import with_options
from dragoman.cli.output import FLAGS, Destination, keep_all, telling_kept, to_json
from dragoman.cli.pipes import check_output, read_stdin, say, to_stdout
from dragoman.decoding import Decoding
from dragoman.documents.formats import FORMATS, LARGEST, REFUSED, format_of_name, read_document
from dragoman.errors import InputError
from dragoman.files.reading import read_file
from dragoman.files.resuming import ResumableFile
from dragoman.files.writing import names_device
from dragoman.languages import LangCodes
from dragoman.text.glossary import Glossary
from dragoman.wording import counted

if TYPE_CHECKING:
    from dragoman.documents.translate import DocumentReport
    from dragoman.tasks.translate.translator import Translator

SAID = 10
"""Number of remarks of each kind that are printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AsDocument:
    """How a file is read as a document."""

    format: str | None = None
    """Format of a document, if its file extension does not show it."""
    column: tuple[str, ...] = ()
    """Translate only this column of a table, by its name or number, or what is under this key of
    JSON or YAML; repeatable."""

    def known(self, file: str | None, *, plain: bool) -> str | None:
        """Return the format of the file, or of standard input; None if it is lines of text.

        A text file is lines unless its format is given, and so is standard input. Raises InputError
        for a kind of file that cannot be translated, and for document options without a document.
        """
        is_file = file is not None and os.path.isfile(file)  # noqa: PTH113 -- no long text raises
        if self.format is None and not self.column:
            known = format_of_name(file) if file and is_file and not plain else None
            return known if known != "text" else None
        if plain:
            raise InputError("--plain reads lines; leave out --format and --column.")
        if file is not None and not is_file:
            raise InputError(
                f"There is no file '{file}'; --format and --column are for a document: name its "
                "file, or pipe it."
            )
        return self.format or format_of_name(file or "") or "csv"

    def translate(
        self,
        file: str | None,
        to: Destination,
        *,
        command: Mapping[str, object],
        load: "Callable[[], tuple[Translator, Decoding]]",
        glossary: Glossary | None,
        languages: LangCodes,
    ) -> None:
        """Translate the document, or what remains of it after an interruption, and report.

        Without a file, it is read from standard input. `load` returns the model and its decoding
        options; `command` is what the results depend on.
        """
        from dragoman.documents.translate import Draft

        known, name = self.known(file, plain=False), file or "standard input"
        if to.to is None:
            plain = "" if self.format or self.column else ", or add --plain to read it line by line"
            raise InputError(
                f"{name} is a document ({known}); name its translation with --output{plain}."
            )
        as_json, output = bool(command["--json"]), to.output or Path("/dev/stdout")
        if as_json and to.output is None:
            raise InputError("--json prints the report where --output - prints; leave out one.")
        if to.resume and not to.overwrite and _is_there(output):
            say(f"{name} was translated before")
            return
        _reject_other_ending(Path(name), output, known)
        data = read_stdin(LARGEST + 1) if file is None else read_file(Path(file), LARGEST)
        read = partial(read_document, columns=self.column, languages=languages)
        content = read(data, file or f"{name}{output.suffix}", known)
        given = {"document": sha256(data).hexdigest(), "--column": [*self.column]}
        out = ResumableFile(output, {**command, **given, "--format": known})
        out.find(overwrite=to.overwrite, resume=to.resume)
        translator, decoding = load()
        draft = Draft(content, translator.memory)
        start, before = perf_counter(), out.kept()
        results = draft.stream(translator.aligning(), decoding, glossary=glossary, before=before)
        keep_all(out, results, draft.total)
        with telling_kept(out):
            out.finish([draft.written()])
        report, taken = draft.report(), perf_counter() - start
        if draft.total or report.remembered:
            count = f"{counted(report.translated, 'text')} of {report.segments:,}"
            recalled = f", {report.remembered:,} of them by the memory" if command["--tm"] else ""
            say(f"{count} translated in {taken:.1f} s{recalled}")
        else:
            say(f"{name} has no text to translate; {output} is a copy of it")
        if as_json:
            tell_as_json({"document": name, "output": str(output)} | report.to_dict())
        else:
            _tell(report)


def places_of(
    files: Sequence[str], folder: Path | None, model: Path, *, plain: bool
) -> dict[str, Path]:
    """Return where the translation of each document goes: in the folder, under its name.

    Raises InputError for missing files, files of the same name, a missing folder, and as
    `check_output` does.
    """
    if missing := next((file for file in files if not os.path.isfile(file)), None):  # noqa: PTH113
        raise InputError(
            f"There is no file '{missing}'; a text of several words needs quotation marks."
        )
    if folder is None:
        raise InputError(
            f"The translations of {len(files)} documents go into a folder; name it with --output."
        )
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give the folder of the translations as --output.")
    if plain:
        raise InputError("--plain reads the lines of one file; leave it out, or name one file.")
    sources = dict[Path, str]()
    for file in dict.fromkeys(files):
        place = folder / Path(file).name
        if other := sources.get(place):
            raise InputError(
                f"{other} and {file} would both be written to {place}; translate one of them by "
                "itself."
            )
        if folder.exists():  # no input is overwritten, not even through a link
            check_output(place, model, *map(Path, files if place.exists() else [file]))
        sources[place] = file
    return {file: place for place, file in sources.items()}


def each_document(
    places: Mapping[str, Path],
    translate: Callable[[str, Destination], None],
    load: Callable[[], object],
    to: Destination,
    *,
    as_json: bool,
) -> None:
    """Translate documents into a folder, which is created; a failure does not stop the others.

    With --resume, existing translations stay, unless --overwrite replaces them. Raises InputError
    if they may not be replaced, before the model is loaded, and at the end if a document was left
    out.
    """
    there = {file for file, place in places.items() if _is_there(place)}
    if there and not (to.resume or to.overwrite):
        raise InputError(
            f"{places[min(there)]} exists already; add --overwrite to replace it, or --resume to "
            "translate what is not there yet."
        )
    load()  # an error of the model would affect every document
    folder = next(iter(places.values())).parent
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for number, (file, place) in enumerate(places.items(), 1):
        is_kept = to.resume and file in there and not to.overwrite
        say(f"{number}/{len(places)} {file}{' was translated before' if is_kept else ''}")
        try:
            if not is_kept:
                translate(file, replace(to, to=str(place)))
        except InputError as error:
            say(error.sentence)
            failed += 1
            if as_json:
                tell_as_json({"document": file, "output": None, "error": error.sentence})
    if failed:
        raise InputError(f"{failed} of {len(places)} documents were not translated: see above.")


def _is_there(place: Path) -> bool:
    return place.is_file() and not (
        names_device(place) or ResumableFile(place, {}).partial.exists()
    )


def _reject_other_ending(file: Path, output: Path, known: str | None) -> None:
    """Raise InputError for an output whose name says another format than the document's."""
    ending = output.suffix.lower().removeprefix(".")
    fitting = FORMATS[known].suffixes if known in FORMATS else (ending,)
    others = {*REFUSED, *(suffix for each in FORMATS.values() for suffix in each.suffixes)}
    if ending in others.difference(fitting) and ending != file.suffix.lower().removeprefix("."):
        raise InputError(
            f"{output} would be {known} as {file} is, whatever its name says; give it the ending "
            f"{file.suffix or '.' + fitting[0]}."
        )


with_document = with_options("document", AsDocument())
"""Decorator for a verb that takes these options as `document`."""


def tell_as_json(said: Mapping[str, object]) -> None:
    """Print everything about a document as JSON."""
    with to_stdout() as write:
        write(to_json(said))


def _tell(report: "DocumentReport") -> None:
    """Print what was not translated, and what should be checked by hand."""
    for sentence in report.left:
        say(f"left as it is: {sentence}")
    for kind, remarks in (("not translated", report.untranslated), ("look at", report.flagged)):
        for remark in remarks[:SAID]:
            why = ", ".join([*(FLAGS.get(each, each) for each in remark.what), *remark.missed])
            say(f"{kind}: {remark.where}, {remark.text!r}: {why}")
        if len(remarks) > SAID:
            say(f"{kind}: {len(remarks) - SAID:,} more, which --json prints")
