"""A tokenizer of another library, run by `tokenizers`: a `tokenizer.json` or an equivalent."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

from dragoman.errors import InputError, nearest
from dragoman.folder.tokenizers.files import LANGUAGE, TARGET, USUAL, TokenizerFolder, refusing
from dragoman.text.limits import prepare
from dragoman.text.spans import Span, trimmed_spans
from dragoman.text.tokenizer import BYTES, MASK, Frame, SubwordSplits, Tokenizer

CLEANED = (" .", " ?", " !", " ,", " ' ", " n't", " 'm", " 's", " 've", " 're")
"""Strings from which `clean_up_tokenization_spaces` removes the spaces, in this order."""


class ForeignTokenizer(Tokenizer):
    """A tokenizer of another library; decoding may not restore the original text."""

    def __init__(self, backend: Backend, folder: TokenizerFolder, files: tuple[str, ...]) -> None:
        prepare(backend, str(folder.path / files[0]))
        self._backend, self.files = backend, files
        self.folder = folder
        """The files and settings that it was read from."""
        _add_named(backend, folder)
        backend.encode_special_tokens = True  # a text never contains special tokens
        self._begin(backend.get_vocab(with_added_tokens=True))

    def _begin(self, vocab: Mapping[str, int]) -> None:
        """Find the ids of the special tokens.

        Raises InputError for tokens that only the settings add: their class finds them in texts.
        bos is the token that a decoder begins with: the config's decoder_start_token_id if set,
        otherwise bos, cls or the config's bos_token_id (Qwen). If there is no padding token, eos is
        used; its value does not matter.
        """
        if unread := [name for name in self.folder.added if name not in vocab]:
            raise InputError(
                f"{self.folder.path}: the settings of the tokenizer add {unread[0]!r:.40} to its "
                "vocabulary, which is not supported without a tokenizer.json that has it; write "
                "one with transformers, or take the folder from before it was added."
            )
        self.vocab_size = max(vocab.values(), default=-1) + 1
        roles = {role: vocab.get(self.folder.name_of(role, vocab) or "") for role in USUAL}
        self._roles = {role: id_ for role, id_ in roles.items() if id_ is not None}
        start, first = map(self.folder.config.get, ("decoder_start_token_id", "bos_token_id"))
        self.eos_id = self._first("eos", "sep", "bos")
        self.bos_id = start if isinstance(start, int) else self._first("bos", "cls", "eos")
        if start is None and isinstance(first, int) and first in vocab.values():
            self.bos_id = self._roles.get("bos", self._roles.get("cls", first))
        self.pad_id = self._first("pad", "eos", "bos")
        self.unk_id = self._first("unk", "pad", "eos")
        self.languages = {
            next(filter(None, match.groups())): id_
            for token, id_ in self.specials.items()
            if (match := LANGUAGE.fullmatch(token))
        }
        if self.folder.config.get("model_type") in ("t5", "mt5"):  # IndicBART's stand elsewhere
            found = ((TARGET.fullmatch(token), id_) for token, id_ in vocab.items())
            targets = {match[1]: id_ for match, id_ in found if match}
            if targets:
                self.languages, self.lang_in_source = targets, True

    def _first(self, *roles: str) -> int:
        found = next((self._roles[role] for role in roles if role in self._roles), None)
        if found is None:
            raise InputError(
                f"{self.folder.path} names no {roles[0]} token; its tokenizer_config.json must "
                f"have {roles[0]}_token."
            )
        return found

    @cached_property
    def specials(self) -> dict[str, int]:
        """The ids of all special tokens by name; the mask's also under our name."""
        added = self._backend.get_added_tokens_decoder()
        found = {token.content: id_ for id_, token in added.items() if token.special}
        return found | ({MASK: self._roles["mask"]} if "mask" in self._roles else {})

    @property
    def unwritten(self) -> frozenset[int]:
        """The ids of special tokens that have no role and name no language."""
        used = {*self._roles.values(), *self.languages.values(), self.bos_id}
        return frozenset({*self.specials.values()} - used)

    def _encoded(self, backend: Backend, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of texts; the name of a special token in a text is text.

        A unigram model also has these names in its vocabulary and always finds them in a text;
        there, such a name becomes the unknown token.
        """
        return [self._as_text(ids) for ids in super()._encoded(backend, texts)]

    def encode_with_specials(
        self, text: str, places: Mapping[int, int], *, rest: bool = False
    ) -> list[int]:
        """Return the ids of a text with special tokens at `places`; `rest` if it continues another.

        `places` maps the start of each special token's name to its end. Elsewhere, their names are
        text. If there are none elsewhere, the ids are those of Hugging Face without a frame;
        otherwise the text is cut around these names, which are encoded as text.
        """
        backend = self._finding_specials_in_rest if rest else self._finding_specials
        (encoding,) = self._encodings(backend.encode_batch, [text])
        found = zip(encoding.ids, encoding.offsets, strict=True)
        forged = [span for id_, span in found if self._is_forged(id_, text, span, places)]
        if not forged:
            return [*encoding.ids]
        if any(start == end for start, end in forged):  # nowhere to cut
            return self.encode_rest([text])[0]
        ids, place = list[int](), 0
        for start, end in [*forged, (len(text), len(text))]:
            if place < start:
                moved = {first - place: last - place for first, last in places.items()}
                ids += self.encode_with_specials(text[place:start], moved, rest=rest or place > 0)
            ids += self.encode_rest([text[start:end]])[0]
            place = end
        return ids

    def _is_forged(
        self, id_: int, text: str, span: tuple[int, int], places: Mapping[int, int]
    ) -> bool:
        """Whether an id is a special token without one of its `places` in `span`.

        A span may be longer than the name, since some tokens take adjacent white space. The unknown
        token may represent a character.
        """
        start, end = span
        unknown = id_ == self.unk_id and not any(name in text[start:end] for name in self.specials)
        if unknown or (id_ != self.unk_id and id_ not in self._never_text):
            return False
        names = (
            text[at : places[at]] for at in range(start, end) if places.get(at, end + 1) <= end
        )
        return all(self.specials.get(name) != id_ for name in names)

    @cached_property
    def _finding_specials(self) -> Backend:
        """The backend, but recognizing special tokens in a text."""
        return _finding(self._backend)

    @cached_property
    def _finding_specials_in_rest(self) -> Backend:
        """The same for texts that continue other text."""
        return _finding(self._without_first_space)

    def _as_text(self, ids: list[int]) -> list[int]:
        if self._never_text.isdisjoint(ids):
            return ids
        return [self.unk_id if id_ in self._never_text else id_ for id_ in ids]

    @cached_property
    def _never_text(self) -> frozenset[int]:
        """The ids that no text contains; the unknown token may represent a character."""
        return frozenset(self.specials.values()) - {self.unk_id}

    @property
    def first_piece(self) -> int:
        """The smallest id that is not special; special ids may follow it."""
        special = set(self.specials.values())
        return next(id_ for id_ in range(self.vocab_size + 1) if id_ not in special)

    def special_id(self, token: str) -> int:
        """Return the id of a special token. Raises InputError if there is none of that name."""
        if token not in self.specials:
            raise InputError(f"The tokenizer of {self.folder.path} has no special token {token}.")
        return self.specials[token]

    @cached_property
    def _frame(self) -> Frame:
        """The ids that the settings or the post-processor put around a text."""
        settings, eos, rules = self.folder.settings, (self.eos_id,), self.folder.rules
        framed = settings.get("cls_token") or settings.get("sep_token")
        own = framed or rules.frame or rules.lang  # by classes without these settings
        if not own and ("add_bos_token" in settings or "add_eos_token" in settings):
            bos = self.folder.flag("add_bos_token", default=False) and "bos" in self._roles
            ends = self.folder.flag("add_eos_token", default=False)
            return Frame((self._roles["bos"],) if bos else (), eos if ends else ())
        found = self._backend.encode("a", add_special_tokens=True)
        mask, ids = found.special_tokens_mask, found.ids
        first = next((at for at, special in enumerate(mask) if not special), len(ids))
        last = next((at for at in range(len(ids), first, -1) if not mask[at - 1]), first)
        before, after = tuple(ids[:first]), tuple(ids[last:])
        named = [id_ for id_ in before + after if id_ in self.languages.values()]
        if self.languages and rules.lang is not None:
            lang = self.languages.get(str(settings.get("src_lang") or rules.lang))
            code = tuple(named[:1]) if lang is None else (lang,)
            ends_with = self.folder.flag("legacy_behaviour", default=rules.lang_last)
            return Frame((), eos + code) if ends_with else Frame(code, eos)
        return Frame(before, after)

    def frame(self, lang: str | None = None) -> Frame:
        """Return the ids around a source text in `lang`; see `Tokenizer.frame`."""
        if lang is None:
            return self._frame
        id_, known = self.language_id(lang), set(self.languages.values())
        if self.lang_in_source:
            before = (id_,) if id_ in self._never_text else tuple(self.encode(f"<2{lang}>"))
            return Frame(before + self._frame.before, self._frame.after)
        parts = (
            tuple(id_ if each in known else each for each in part)
            for part in (self._frame.before, self._frame.after)
        )
        return Frame(*parts)

    def language_id(self, lang: str) -> int:
        """Return the id of a language. Raises InputError, with the nearest name, if unknown."""
        if lang in self.languages:
            return self.languages[lang]
        if not self.languages:
            raise InputError(
                f"The model has no language {lang}: it has no languages; leave it out."
            )
        near = nearest(lang, self.languages)
        hint = f"did you mean {near}?" if near else f"it has {', '.join(sorted(self.languages))}."
        raise InputError(f"The model has no language {lang}; {hint}")

    def encode_words(
        self, texts: Sequence[str], words: Sequence[Sequence[tuple[int, int]]]
    ) -> list[tuple[list[int], list[int | None]]]:
        """Return the ids of each whole text, and the index in them of each word's first piece.

        This is the piece with the word's first character, which may begin in the previous word, or
        otherwise the first within the word. See `Tokenizer.encode_words`.
        """
        encodings = self._encodings(self._backend.encode_batch, texts)
        return [
            (self._as_text(encoding.ids), list(_first_pieces(encoding.offsets, places)))
            for encoding, places in zip(encodings, words, strict=True)
        ]

    def spans(self, text: str) -> list[Span | None]:
        """Return the span in `text` of each piece of `encode(text)`, by the library's offsets."""
        (encoding,) = self._encodings(self._backend.encode_batch, [text])
        return trimmed_spans(text, encoding.offsets)

    def decode(self, ids: Iterable[int]) -> str:
        """Decode `ids` as Hugging Face does; special tokens are skipped."""
        return self._cleaned(self._text(self._backend, ids))

    def decode_rest(self, ids: Iterable[int]) -> str:
        """Decode `ids` that continue others: a leading space is kept."""
        return self._text(self._without_first_space, ids)

    def _text(self, backend: Backend, ids: Iterable[int]) -> str:
        known = [id_ for id_ in map(int, ids) if 0 <= id_ < self.vocab_size]
        text: str = backend.decode(known, skip_special_tokens=True)
        return text

    def _cleaned(self, text: str) -> str:
        """Remove spaces before punctuation, if the settings ask for it."""
        for before in self.cleaned:
            text = text.replace(before, before.strip())
        return text

    @cached_property
    def reads_leading_space(self) -> bool:
        """Whether a space before a text is part of it, as with the bytes of BART and RoBERTa."""
        return self.encode(" a") != self.encode("a")

    @cached_property
    def cleaned(self) -> tuple[str, ...]:
        """Strings that lose their spaces in decoded texts."""
        wanted = self.folder.flag("clean_up_tokenization_spaces", default=False)
        return CLEANED if wanted and type(self._backend.model).__name__ != "BPE" else ()

    def is_byte(self, id_: int) -> bool:
        """Whether a token may be only part of a character, to be decoded with its neighbours."""
        return self.tokens([id_])[0] in _BYTES or "\ufffd" in self.decode_rest([id_])

    @cached_property
    def _without_first_space(self) -> Backend:
        """The backend, but without adding or removing a space before the first word."""
        state = _without_prefix(json.loads(self._backend.to_str()))
        with refusing(self.folder.path / self.files[0]):
            backend = Backend.from_str(json.dumps(state))
        backend.encode_special_tokens = self._backend.encode_special_tokens
        return backend

    def splits(self) -> SubwordSplits:
        """Raise InputError: subword sampling requires one of our own vocabularies."""
        raise InputError(
            "batch.subword_sampling is for tokenizers that dragoman trained; leave it out."
        )


_BYTES = frozenset(BYTES)


def _finding(backend: Backend) -> Backend:
    """Return a copy that recognizes special tokens in a text."""
    copy = Backend.from_str(backend.to_str())
    copy.encode_special_tokens = False
    return copy


def _first_pieces(
    pieces: Sequence[tuple[int, int]], words: Iterable[tuple[int, int]]
) -> Iterator[int | None]:
    """Yield the index of the first of the ordered pieces that overlaps each word; None if none.

    An empty piece at its start also counts: a space that the offsets leave out.
    """
    at = 0
    for start, end in words:
        while at < len(pieces) and pieces[at][1] <= start and pieces[at][0] < start:
            at += 1
        yield at if at < len(pieces) and pieces[at][0] < end else None


def _add_named(backend: Backend, folder: TokenizerFolder) -> None:
    """Add special tokens that only the settings name, so that they have ids."""
    vocab = backend.get_vocab(with_added_tokens=True)
    named = (folder.name_of(role, vocab) for role in USUAL)
    names = [name for name in (*named, *folder.extra_tokens) if name]
    known = {token.content for token in backend.get_added_tokens_decoder().values()}
    fresh = [name for name in dict.fromkeys(names) if name not in known]
    backend.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in fresh])


def _without_prefix(state: Any) -> Any:  # noqa: ANN401 -- a tree of JSON
    """Return a tokenizer's state without the steps that add or remove a space before a text."""
    if isinstance(state, list):
        kept = (each for each in state if not (isinstance(each, dict) and _is_prefix(each)))
        return [_without_prefix(each) for each in kept]
    if not isinstance(state, dict):
        return state
    if _is_prefix(state):
        return None
    changed = {"prepend_scheme": "never", "add_prefix_space": False}
    return {
        key: changed[key]
        if key in changed and state.get("type") in ("Metaspace", "ByteLevel")
        else value
        if key in ("vocab", "merges")
        else _without_prefix(value)
        for key, value in state.items()
    }


def _is_prefix(step: Mapping[str, Any]) -> bool:
    """Whether a step puts a mark before a text, or removes one leading space."""
    return step.get("type") == "Prepend" or (
        step.get("type") == "Strip" and step.get("content") == " " and step.get("start") == 1
    )
