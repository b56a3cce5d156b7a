"""The tokenizer: training, its file, texts that look like its own tokens, and subword sampling."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.disk import Disk
from tests.processes import python

from dragoman.errors import DragomanError, InputError
from dragoman.text.tokenizer import BYTES, MASK, SPECIALS, SubwordSplits, Tokenizer
from dragoman.text.train import TokenizerConfig, choose_alphabet, train_tokenizer

TEXTS = [
    "The dog sees the small dog, and the dog's house is 12 km away.",
    "Der Hund sieht den kleinen Hund; der Hund schläft (im Haus).",
    "我喜欢学习人工智能。他也喜欢学习汉语。",
] * 5
MODELS = ["bpe", "unigram", "characters"]
models = pytest.mark.parametrize("model", MODELS)


@cache
def trained(model: str = "bpe", *specials: str, vocab_size: int = 400) -> Tokenizer:
    """A small tokenizer of three languages, perhaps with further special tokens."""
    config = TokenizerConfig(model=model, vocab_size=vocab_size, specials=specials)  # type: ignore[arg-type]
    return train_tokenizer(TEXTS, config)


@pytest.fixture(params=MODELS[:2])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    """A small tokenizer of each model in turn."""
    return trained(request.param)


def test_decoding_skips_special_tokens(tokenizer: Tokenizer) -> None:
    """bos, eos, padding and unknown are not text, wherever they stand."""
    ids = tokenizer.encode("the dog")
    assert tokenizer.decode([2, *ids[:1], 1, 0, *ids[1:], 3, 0, 0]) == "the dog"


def test_broken_bytes_become_replacement_characters(tokenizer: Tokenizer) -> None:
    """A model may write bytes that are no UTF-8; each is shown as U+FFFD."""
    assert tokenizer.decode([4 + 0xE6, 4 + 0x88]) == "\ufffd\ufffd"


def test_half_a_surrogate_pair_is_refused_in_a_sentence(tokenizer: Tokenizer) -> None:
    """Text that is not Unicode is the user's mistake, not a crash of the library."""
    for encode in (tokenizer.encode_batch, tokenizer.encode_rest):
        with pytest.raises(InputError, match="surrogate"):
            encode(["fine", "a\ud800b"])


def test_a_word_is_the_same_piece_first_and_later() -> None:
    """The first word of a sentence has the same ids as after a space."""
    tokenizer = trained()
    alone, later = tokenizer.encode("Hund"), tokenizer.encode("der Hund")
    assert later[-len(alone) :] == alone


def test_no_space_is_put_before_chinese() -> None:
    """A Chinese sentence has the same first pieces as inside a line without spaces."""
    assert trained().tokens(trained().encode("我喜欢"))[0].startswith("我")


def test_no_piece_crosses_punctuation_or_holds_two_digits(tokenizer: Tokenizer) -> None:
    """Letters, single digits and punctuation never share a piece, but for 's and its like."""
    pieces = tokenizer.tokens(range(260, tokenizer.vocab_size))
    for piece in (p.strip() for p in pieces):
        if piece[:1] in {"'", "’"}:
            continue
        kinds = {("letter" if c.isalpha() else "digit" if c.isdigit() else "mark") for c in piece}
        assert len(kinds) <= 1, piece
        assert "digit" not in kinds or len(piece) == 1, piece


def test_vocabulary_has_the_size_that_was_asked_for(tokenizer: Tokenizer) -> None:
    """vocab_size counts everything, and is met when the corpus is rich enough."""
    assert trained(vocab_size=320).vocab_size == 320
    assert tokenizer.vocab_size <= 400


@pytest.mark.parametrize("model", MODELS[:2])
def test_a_corpus_of_one_word_trains(model: str) -> None:
    """A corpus too small to fill the vocabulary gives a smaller one."""
    config = TokenizerConfig(model=model, vocab_size=8000)  # type: ignore[arg-type]
    tokenizer = train_tokenizer(["hi"], config)
    assert 260 < tokenizer.vocab_size < 300
    assert tokenizer.decode(tokenizer.encode("hi there")) == "hi there"


def test_training_on_nothing_is_refused() -> None:
    """No text, or only empty texts, is one sentence."""
    with pytest.raises(InputError, match="no text"):
        train_tokenizer(["", ""], TokenizerConfig())


@pytest.mark.parametrize("model", MODELS[:2])
def test_training_is_repeatable_in_another_process(model: str) -> None:
    """The same texts give the same file, whatever the order of hashing in the process."""
    code = (
        "import sys; from dragoman.text.train import *\n"
        f"config = TokenizerConfig(model={model!r}, vocab_size=400)\n"
        "print(train_tokenizer(sys.argv[1:], config).content_hash)"
    )
    assert python(code, *TEXTS).stdout.strip() == trained(model).content_hash


def test_texts_are_streamed_twice_and_not_kept() -> None:
    """An object with __iter__ is read once for the characters and once for the words."""

    class Stream:
        readings = 0

        def __iter__(self) -> Iterator[str]:
            self.readings += 1
            return iter(TEXTS)

    stream = Stream()
    tokenizer = train_tokenizer(stream, TokenizerConfig(vocab_size=400))
    assert stream.readings == 2
    assert tokenizer.content_hash == trained().content_hash
    assert train_tokenizer(iter(TEXTS), TokenizerConfig(vocab_size=400)).content_hash == (
        tokenizer.content_hash
    )


def test_max_texts_takes_texts_evenly_spaced() -> None:
    """Of six texts with a limit of two, the first and the fourth are learned from."""
    texts = ["aaaa aaaa", "bbbb bbbb", "bbbb bbbb", "cccc cccc", "bbbb bbbb", "bbbb bbbb"]
    tokenizer = train_tokenizer(texts, TokenizerConfig(vocab_size=400, max_texts=2))
    pieces = tokenizer.tokens(range(260, tokenizer.vocab_size))
    assert any("aa" in piece for piece in pieces)
    assert any("cc" in piece for piece in pieces)
    assert not any("bb" in piece for piece in pieces)


def test_alphabet_is_the_fewest_characters_that_cover_the_share() -> None:
    """The most frequent characters up to the coverage are taken, and the space always."""
    config = TokenizerConfig(vocab_size=400, character_coverage=0.9)
    assert choose_alphabet(Counter("a" * 90 + "b" * 9 + "c"), config) == [" ", "a"]
    assert choose_alphabet(Counter("a" * 89 + "b" * 10 + "c"), config) == [" ", "a", "b"]


def test_alphabet_takes_at_most_half_of_a_small_vocabulary() -> None:
    """Of 400 places 260 are taken; characters get 70 of the other 140."""
    chars = Counter(chr(0x4E00 + i) for i in range(500))
    assert len(choose_alphabet(chars, TokenizerConfig(vocab_size=400))) == 70


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"vocab_size": 100}, "at least 300"),
        ({"model": "wordpiece"}, "wordpiece"),
        ({"vocab_size": 300, "specials": ("<mask>",)}, "at least 301"),
        ({"specials": ("mask",)}, "mask must be"),
        ({"specials": ("<->",)}, "of the form"),
        ({"specials": ("<a b>",)}, "of the form"),
        ({"specials": ("<a>", "<a>")}, "different"),
        ({"specials": ("<s>",)}, "different"),
        ({"specials": ("<0x41>",)}, "different"),
    ],
)
def test_impossible_settings_are_refused(change: dict[str, object], words: str) -> None:
    """A setting that cannot work is named before any time is spent."""
    with pytest.raises(InputError, match=words):
        TokenizerConfig(**change)  # type: ignore[arg-type]


def test_saving_and_loading_changes_nothing(
    tokenizer: Tokenizer, tmp_path: Path, disk: Disk
) -> None:
    """The file holds everything, the same ids, the same hash; it is whole when it has its name."""
    tokenizer.save(tmp_path / "tokenizer.json")
    disk.assert_renamed("tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    assert loaded.content_hash == tokenizer.content_hash
    assert loaded.encode_batch(TEXTS) == tokenizer.encode_batch(TEXTS)


def test_files_that_are_no_tokenizer_are_refused(tmp_path: Path) -> None:
    """Missing, binary, not JSON, and a tokenizer without our special tokens: one sentence each."""
    path = tmp_path / "tokenizer.json"
    with pytest.raises(InputError, match="There is no file"):
        Tokenizer.load(path)
    trained().save(path)
    whole, prefix = path.read_bytes(), b'"continuing_subword_prefix": '
    for content, words in (
        (b"\xff\xfe", "not UTF-8"),
        (b"{", "not a readable"),
        (whole.replace(prefix + b"null", prefix + b'"abc"'), "not a readable"),  # it panics
        (whole.replace(b'"</s>"', b'"</S>"'), "</s>"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=words) as caught:
            Tokenizer.load(path)
        assert str(path) in str(caught.value)


def test_saving_where_one_cannot_is_an_error_in_words(tmp_path: Path) -> None:
    """A folder that is not there is named."""
    with pytest.raises(DragomanError, match="nowhere"):
        trained().save(tmp_path / "nowhere" / "tokenizer.json")


@models
def test_specials_come_between_bytes_and_pieces(model: str) -> None:
    """Those of all models take ids 0 to 3 and the bytes 4 to 259; the first piece comes after."""
    tokenizer = trained(model, MASK, "<|user|>")
    assert [tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id] == [0, 1, 2, 3]
    assert tokenizer.tokens(range(262)) == [*SPECIALS, *BYTES, MASK, "<|user|>"]
    assert (tokenizer.special_id(MASK), tokenizer.special_id("<|user|>")) == (260, 261)
    assert tokenizer.first_piece == 262
    again = Tokenizer.from_json(tokenizer._backend.to_str(), "again")
    assert again.specials == tokenizer.specials


@models
def test_specials_are_never_found_in_a_text_nor_written(model: str) -> None:
    """Text that looks like one is spelt out; decoding skips the token itself."""
    tokenizer = trained(model, MASK)
    ids = tokenizer.encode("the <mask> dog")
    assert 260 not in ids
    assert tokenizer.decode([*ids, 260, 3]) == "the <mask> dog"
    splits = tokenizer.splits()
    assert 260 not in {*splits.left.tolist(), *splits.right.tolist()}


@models
def test_without_specials_nothing_changes(model: str) -> None:
    """A tokenizer has the ids and the pieces that it had; asking for a token it lacks is said."""
    plain, masked = trained(model), trained(model, MASK, vocab_size=401)
    assert plain.first_piece == 260
    before, after = (each.tokens(range(each.vocab_size)) for each in (plain, masked))
    assert before == [each for each in after if each != MASK]
    with pytest.raises(InputError, match=r'no special token <mask>.*specials = \["<mask>"\]'):
        plain.special_id(MASK)


def test_pieces_may_be_characters() -> None:
    """Each character of the text is one piece and there are no others, up to the vocabulary."""
    tokenizer = trained("characters")
    pieces = tokenizer.tokens(range(260, tokenizer.vocab_size))
    assert sorted(pieces) == sorted(set("".join(TEXTS)))
    assert len(tokenizer.encode("\nsmall dog")) == len(" \nsmall dog")
    assert trained("characters", vocab_size=300).vocab_size == 300


# 4 = abcd = 2 3 or 1 0; 3 = cd = 1 0; 0, 1, 2 cannot be taken apart.
SPLITS = SubwordSplits.of([(4, 2, 3), (4, 1, 0), (3, 1, 0)], vocab_size=5)
IDS = np.array([4, 2, 3, 0], dtype=np.uint16)
OFFSETS = np.array([0, 1, 1, 4])


def rng(seed: int = 0) -> np.random.Generator:
    """A generator of its own for each call."""
    return np.random.default_rng(seed)


def test_probability_zero_changes_nothing() -> None:
    """With p = 0 the ids and offsets stay."""
    ids, offsets = SPLITS.sample(IDS, OFFSETS, probability=0.0, rng=rng())
    assert ids.tolist() == IDS.tolist()
    assert offsets.tolist() == OFFSETS.tolist()


def test_probability_one_takes_apart_all_that_can_be() -> None:
    """With p = 1 only pieces without a split are left, and empty texts stay empty."""
    ids, offsets = SPLITS.sample(IDS, OFFSETS, probability=1.0, rng=rng())
    assert set(ids.tolist()) <= {0, 1, 2}
    assert ids[offsets[2] :].tolist() == [2, 1, 0, 0]
    assert offsets[1] == offsets[2]


def test_every_way_to_split_a_piece_is_used() -> None:
    """A piece with two splits is taken apart in both ways."""
    many, ends = np.full(100, 4), np.array([0, 100])
    ids, _ = SPLITS.sample(many, ends, probability=1.0, rng=rng())
    assert 2 in ids
    assert (ids == 1).sum() == 100  # 2 1 0 and 1 0 both hold one
    assert len(ids) < 300


def test_the_share_of_split_pieces_is_the_probability() -> None:
    """Of many pieces that split once, a share p does, within five standard deviations."""
    count, p = 20_000, 0.3
    ids, _ = SPLITS.sample(np.full(count, 3), np.array([0, count]), probability=p, rng=rng())
    assert abs(len(ids) - count * (1 + p)) < 5 * (count * p * (1 - p)) ** 0.5


def test_a_seed_decides_the_sample_and_arguments_stay() -> None:
    """Equal generators give equal samples; the type of the ids and the input are kept."""
    many, ends = np.full(50, 4, dtype=np.uint16), np.array([0, 20, 50])
    one = SPLITS.sample(many, ends, probability=0.5, rng=rng(7))
    two = SPLITS.sample(many, ends, probability=0.5, rng=rng(7))
    assert one[0].tolist() == two[0].tolist()
    assert one[1].tolist() == two[1].tolist()
    assert one[0].dtype == np.uint16
    assert (many == 4).all()
    assert ends.tolist() == [0, 20, 50]
