"""Tokenizers of Hugging Face folders: ids and texts are those of `transformers`."""

import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.foreign_folders import FAMILIES, SENTENCES, fsmt, marian, noisy, set_keys

from dragoman.errors import InputError
from dragoman.folder.foreign.tokenizers import read_tokenizers
from dragoman.tasks.generate.prompts import TextStream
from dragoman.text.tokenizer import Tokenizer

transformers = pytest.importorskip("transformers", reason="the other side of the comparison")

pytestmark = pytest.mark.filterwarnings("ignore:Recommended")  # from a punctuation package

LINES = noisy(SENTENCES, int(os.environ.get("DRAGOMAN_LINES", "300")))
LINES += ["x\ufeff<mask>ing", "x \ufeff <mask>", "x\u3000<mask> y", "\u200b<mask>"]
BOTH = [(family, fast) for family in FAMILIES for fast in (True, False)]


def both(folder: Path, family: str, *, fast: bool = True) -> tuple[Tokenizer, Tokenizer, Any]:
    """Return both of our tokenizers of a family's folder, and theirs."""
    config = FAMILIES[family](folder, fast=fast)
    (folder / "config.json").write_text(json.dumps(config))
    return *read_tokenizers(folder, config), transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize(("family", "fast"), BOTH)
def test_ids_and_texts_are_theirs(tmp_path: Path, family: str, *, fast: bool) -> None:
    """For any line, ids, frame and decoded text are equal."""
    ours, _, theirs = both(tmp_path, family, fast=fast)
    frame, named = ours.frame(), {*ours.specials.values()} - {ours.unk_id}
    for line, ids in zip(LINES, ours.encode_batch(LINES), strict=True):
        wanted = theirs(line, split_special_tokens=True).input_ids
        plain = [ours.unk_id if id_ in named else id_ for id_ in wanted]
        for at in (*range(len(frame.before)), *range(-len(frame.after), 0)):
            plain[at] = wanted[at]  # in a unigram model, theirs recognizes the names nevertheless
        assert [*frame.before, *ids, *frame.after] == plain, line
        assert ours.decode(wanted) == theirs.decode(wanted, skip_special_tokens=True), line


@pytest.mark.parametrize("family", ["marian", "m2m100", "mbart50", "llama", "gpt2", "bert"])
def test_any_unicode_has_their_ids(tmp_path_factory: pytest.TempPathFactory, family: str) -> None:
    """This holds for any Unicode text, not only for real lines."""
    ours, _, theirs = both(tmp_path_factory.mktemp(family), family)
    frame = ours.frame()

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(text=st.text(max_size=40))
    def equal(text: str) -> None:
        wanted = theirs(text, split_special_tokens=True).input_ids
        assert [*frame.before, *ours.encode(text), *frame.after] == wanted

    equal()


@pytest.mark.parametrize(("family", "fast"), BOTH)
def test_pieces_stand_in_their_texts(tmp_path: Path, family: str, *, fast: bool) -> None:
    """There is one span per id, in order and trimmed; the spans of a plain line cover all of it."""
    ours, _, _ = both(tmp_path, family, fast=fast)
    for line in LINES:
        spans = ours.spans(line)
        assert len(spans) == len(ours.encode(line)), line
        found = [span for span in spans if span is not None]
        assert all(line[a:b].strip() == line[a:b] != "" for a, b in found), line
        assert sorted(found) == found, line
    for line in SENTENCES:
        covered = {n for a, b in filter(None, ours.spans(line)) for n in range(a, b)}
        assert covered >= {n for n, char in enumerate(line) if char.isalnum()}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_character_is_some_tokens(tmp_path: Path, family: str) -> None:
    """For any ids that a model writes, each decoded character is counted once."""
    ours, _, _ = both(tmp_path, family)
    draw = random.Random(3)
    for line in LINES[:100]:
        for ids in (ours.encode(line), draw.choices(range(ours.vocab_size), k=12)):
            lengths = ours.lengths(ids)
            assert len(lengths) == len(ids)
            assert min(lengths, default=0) >= 0
            assert sum(lengths) == len("".join(ours.decode(ids).split())), line


@pytest.mark.parametrize("apart", [False, True])
def test_target_side_of_marian_is_theirs(tmp_path: Path, *, apart: bool) -> None:
    """The target's model splits references, with a separate vocabulary if there are two."""
    config = marian(tmp_path, apart=apart)
    _, ours = read_tokenizers(tmp_path, config)
    theirs = transformers.MarianTokenizer.from_pretrained(tmp_path)
    for line in LINES[:500]:
        wanted = theirs(text_target=line, split_special_tokens=True).input_ids
        assert [*ours.encode(line), ours.eos_id] == wanted, line
        assert ours.decode(wanted) == theirs.decode(wanted, skip_special_tokens=True), line


def test_fsmt_has_a_vocabulary_for_each_language(tmp_path: Path) -> None:
    """Sources are encoded, and targets decoded, as theirs; they have no ids for references."""
    source, target = read_tokenizers(tmp_path, fsmt(tmp_path, apart=True))
    theirs = transformers.FSMTTokenizer.from_pretrained(tmp_path)
    assert source.vocab_size != target.vocab_size
    assert source.content_hash != target.content_hash
    with pytest.raises(InputError, match=r"sacremoses, which a tokenizer\.json cannot"):
        source.save(tmp_path / "tokenizer.json")
    for line in LINES:
        wanted = theirs(line, split_special_tokens=True).input_ids
        assert [*source.encode(line), source.eos_id] == wanted, line
        ids = target.encode(line)
        assert target.decode(ids) == theirs.decode(ids, skip_special_tokens=True), line


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: set_keys(f, "tokenizer_config.json", langs="en"), "has no langs, such as"),
        (lambda f: (f / "merges.txt").unlink(), r"has no merges\.txt; get the whole folder"),
        (lambda f: (f / "merges.txt").write_bytes(b"\xff"), r"merges\.txt is damaged"),
        (lambda f: set_keys(f, "vocab-tgt.json", a=-1), "does not give a number to each piece"),
    ],
)
def test_half_a_tokenizer_of_fsmt_is_refused(
    tmp_path: Path, change: Callable[[Path], object], message: str
) -> None:
    """The missing or damaged file is named."""
    config = fsmt(tmp_path)
    change(tmp_path)
    with pytest.raises(InputError, match=message):
        read_tokenizers(tmp_path, config)


def test_fsmt_asks_for_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not part of the base installation."""
    config = fsmt(tmp_path)
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(InputError, match=r"needs sacremoses; .* pip install '\.\[moses\]'"):
        read_tokenizers(tmp_path, config)


@pytest.mark.parametrize(
    ("family", "lang"),
    [("m2m100", "de"), ("mbart", "de_DE"), ("mbart50", "de_DE"), ("nllb", "deu_Latn")],
)
def test_frame_of_a_language_is_theirs(tmp_path: Path, family: str, lang: str) -> None:
    """The source language is where each family puts it; a missing one is refused."""
    ours, _, theirs = both(tmp_path, family)
    theirs.src_lang = lang
    frame = ours.frame(lang)
    assert [*frame.before, *ours.encode("Hund"), *frame.after] == theirs("Hund").input_ids
    assert ours.languages[lang] == theirs.convert_tokens_to_ids(
        theirs.tokenize("Hund") and (f"__{lang}__" if family == "m2m100" else lang)
    )
    with pytest.raises(InputError, match="did you mean"):
        ours.frame(lang + "x")


def test_marian_puts_the_target_language_first(tmp_path: Path) -> None:
    """`>>deu<<` before a text is one token, whether written in the text or requested."""
    ours, _, theirs = both(tmp_path, "marian")
    frame = ours.frame("deu")
    assert set(ours.languages) == {"deu", "fra"}
    wanted = theirs(">>deu<< Hund").input_ids
    assert [*frame.before, *ours.encode("Hund"), *frame.after] == wanted
    assert [*ours.encode(">>deu<< Hund"), ours.eos_id] == wanted


@pytest.mark.parametrize("family", ["marian", "m2m100"])
def test_the_rest_of_a_text_begins_with_no_space(tmp_path: Path, family: str) -> None:
    """SentencePiece's own library puts one before every text."""
    ours, *_ = both(tmp_path, family, fast=False)
    (first,), (rest,) = ours.encode_batch(["man"]), ours.encode_rest(["man"])
    assert ours.decode([*first, *first]) == "man man"
    assert ours.decode([*first, *rest]) == "manman"


def test_only_the_beginning_of_a_text_chooses_marians_language(tmp_path: Path) -> None:
    """A mark elsewhere, of another language or in a target is text, even with a set language."""
    ours, target, _ = both(tmp_path, "marian")
    codes = {*ours.languages.values()}
    for text in ("Hund >>deu<<", ">>eng<< Hund", "> >>fra<<", "a>>deu<<"):
        assert codes.isdisjoint(ours.encode(text)), text
    assert codes.isdisjoint(target.encode(">>deu<< Hund"))
    assert codes.isdisjoint(ours.without_marks().encode(">>deu<< Hund"))


@pytest.mark.parametrize("family", FAMILIES)
def test_no_text_has_special_tokens(tmp_path: Path, family: str) -> None:
    """Their names, whole, doubled, and in forms that a normalizer maps to them, are text."""
    ours, *_ = both(tmp_path, family)
    never = {*ours.specials.values()} - {ours.unk_id}
    wide = {ord(c): chr(ord(c) + 0xFEE0) for c in "<>/s[]_|"}
    for name in ours.specials:
        for text in (f"x {name} y", f"x{name}{name}", f"x{name}".translate(wide)):
            assert never.isdisjoint(ours.encode(text)), text


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen2"])
def test_a_stream_gives_the_whole_text(tmp_path: Path, family: str) -> None:
    """The streamed parts together are the text decoded at once."""
    ours, _, _ = both(tmp_path, family)
    for line in (*SENTENCES, "a 👩‍👩‍👧 b\n\n  c"):
        stream = TextStream(ours, (), begins_text=True)
        ids = ours.encode(line)
        assert "".join([*map(stream.push, ids), stream.finish()]) == ours.decode(ids)
        rest = ours.encode_rest([line])[0]
        assert ours.decode_rest(rest) == line
        assert ours.decode_rest(ours.encode_rest([" " + line])[0]) == " " + line


@pytest.mark.parametrize(
    ("family", "key", "value"),
    [
        ("bert", "do_lower_case", False),
        ("bert", "strip_accents", False),
        ("bert", "tokenize_chinese_chars", False),
        *((family, "add_prefix_space", True) for family in ("bart", "roberta")),
        *((family, "add_bos_token", True) for family in ("bert", "roberta", "fsmt", "t5", "nllb")),
        *((family, "add_eos_token", False) for family in ("bart", "xlm-roberta", "fsmt", "t5")),
    ],
)
@pytest.mark.parametrize("fast", [True, False])
def test_settings_overrule_a_tokenizer_json_as_theirs(
    tmp_path: Path, family: str, key: str, value: object, *, fast: bool
) -> None:
    """Their classes build some parts by the settings, and know no others; as older folders do."""
    both(tmp_path, family, fast=fast)
    set_keys(tmp_path, "tokenizer_config.json", **{key: value})
    config = json.loads((tmp_path / "config.json").read_bytes())
    ours, theirs = read_tokenizers(tmp_path, config)[0], transformers.AutoTokenizer
    frame, lines = ours.frame(), (*SENTENCES, "ÉCOLE 海man")
    found = [[*frame.before, *ids, *frame.after] for ids in ours.encode_batch(lines)]
    assert found == theirs.from_pretrained(tmp_path)([*lines]).input_ids


def test_bos_begins_a_text_of_settings_that_name_no_token(tmp_path: Path) -> None:
    """The usual names of bos and eos are also those of cls and sep, which Llama does not have."""
    both(tmp_path, "llama", fast=False)
    (tmp_path / "special_tokens_map.json").unlink(missing_ok=True)
    said = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(said))
    ours, _ = read_tokenizers(tmp_path, {"model_type": "llama"})
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert [*ours.frame().before, *ours.encode("A man")] == theirs("A man").input_ids
    assert ours.frame().before


@pytest.mark.parametrize("family", ["marian", "m2m100", "t5"])
@pytest.mark.parametrize("older", [False, True])
def test_a_token_that_only_settings_add_is_refused(
    tmp_path: Path, family: str, *, older: bool
) -> None:
    """Their class finds it in texts; the vocabulary has no place for it."""
    both(tmp_path, family, fast=False)
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<term>": 900} if older else {}))
    added = {} if older else {"900": {"content": "<term>", "special": False}}
    set_keys(tmp_path, "tokenizer_config.json", added_tokens_decoder=added)
    with pytest.raises(InputError, match="add '<term>' to its vocabulary, which is not supported"):
        read_tokenizers(tmp_path, json.loads((tmp_path / "config.json").read_bytes()))


def test_new_special_tokens_are_numbered_in_their_order(tmp_path: Path) -> None:
    """Tokens that settings name and the vocabulary lacks: first the roles, then the others."""
    config = FAMILIES["gpt2"](tmp_path)
    path = tmp_path / "tokenizer_config.json"
    names = ["<z>", "<a>", "<m>", "<a>b"]
    said = json.loads(path.read_bytes()) | {"pad_token": "<none>"}
    path.write_text(json.dumps(said | {"extra_special_tokens": names}))
    (tmp_path / "config.json").write_text(json.dumps(config))
    ours, _ = read_tokenizers(tmp_path, config)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for name in (*names, "<none>"):
        assert ours.special_id(name) == theirs.convert_tokens_to_ids(name), name
    assert len({ours.special_id(name) for name in names}) == len(names)


@pytest.mark.parametrize(("family", "begins"), [("qwen2", 7), ("gpt2", None), ("bert", None)])
def test_a_config_says_what_begins_texts_where_no_token_does(
    tmp_path: Path, family: str, begins: int | None
) -> None:
    """As for Qwen; a bos or cls token that the tokenizer names has priority."""
    config = FAMILIES[family](tmp_path)
    plain, said = (
        read_tokenizers(tmp_path, {**config, **more})[0] for more in ({}, {"bos_token_id": 7})
    )
    assert said.bos_id == (plain.bos_id if begins is None else begins)
    assert plain.bos_id != 7


@pytest.mark.parametrize("kind", ["t5", "mbart"])
def test_targets_are_named_by_pieces_of_t5(tmp_path: Path, kind: str) -> None:
    """MADLAD-400's codes have up to three parts; IndicBART's pieces have another place."""
    codes = {"de", "nan_Latn_TW", "ms_Arab_BN", "en_xx_simple"}
    config = FAMILIES["t5"](tmp_path, fast=True)
    pieces = [f"<2{code}>" for code in (*sorted(codes), "Latn", "translate", "")]
    set_keys(tmp_path, "tokenizer_config.json", extra_special_tokens=pieces)
    ours, _ = read_tokenizers(tmp_path, {**config, "model_type": kind})
    assert ours.lang_in_source == (kind == "t5")
    assert set(ours.languages) == (codes if kind == "t5" else set())
