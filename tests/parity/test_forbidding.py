"""Forbidden words with any tokenizer: rows that can write little else never contain one."""

from pathlib import Path

import pytest
import torch
from tests.foreign_folders import FAMILIES, SENTENCES

from dragoman.decode import Prefixes
from dragoman.folder.foreign.tokenizers import read_tokenizers
from dragoman.nn.cpu.ranking import IMPOSSIBLE
from dragoman.tasks.forbidding import ForbidWords
from dragoman.text.judging import exact
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.train import TokenizerConfig, train_tokenizer

WORDS = ("man", "läuft", "海", "red hat", "a")
ROWS, STEPS = 200, 14


def tokenizer_of(name: str, folder: Path) -> Tokenizer:
    """Return one of our tokenizers, or that of a folder of this family."""
    if name in {"bpe", "unigram"}:
        config = TokenizerConfig(vocab_size=600, model=name)  # type: ignore[arg-type]
        return train_tokenizer([*SENTENCES] * 20, config)
    return read_tokenizers(folder, FAMILIES[name](folder))[1]


def walked(tokenizer: Tokenizer, forbid: ForbidWords | None, seed: int) -> list[list[int]]:
    """Draw rows of tokens that occur in the words or are a part of one of their characters."""
    word = tokenizer.encode_rest(["x"])[0]
    before = len(tokenizer.decode_rest(word))
    line = " " + " ".join(WORDS) + ". "
    texts = [tokenizer.decode_rest([*word, id_])[before:] for id_ in range(tokenizer.vocab_size)]
    parts = {*tokenizer.encode_rest(["äö海"])[0], *tokenizer.encode_rest(["ü"])[0]}
    useful = [id_ for id_, text in enumerate(texts) if (text and text in line) or id_ in parts]
    draw = torch.Generator().manual_seed(seed)
    ids_NL, sentence_N = torch.zeros(ROWS, 0, dtype=torch.long), torch.arange(ROWS)
    for _ in range(STEPS):
        logits_NV = torch.full((ROWS, tokenizer.vocab_size), IMPOSSIBLE)
        logits_NV[:, useful] = 0.0
        if forbid is not None:
            logits_NV = forbid(logits_NV, Prefixes(ids_NL, sentence_N))
        drawn_N1 = torch.multinomial(logits_NV.softmax(1), 1, generator=draw)
        ids_NL = torch.cat([ids_NL, drawn_N1], dim=1)
    rows: list[list[int]] = ids_NL.tolist()
    return rows


def having(tokenizer: Tokenizer, rows: list[list[int]]) -> dict[str, int]:
    """Count the rows that have each word as a whole word."""
    texts = [tokenizer.decode_rest(ids) for ids in rows]
    return {word: sum(any(True for _ in exact(text, word)) for text in texts) for word in WORDS}


@pytest.mark.parametrize("name", ["bpe", "unigram", "gpt2", "marian", "llama", "bert", "nllb"])
def test_no_text_has_a_forbidden_word(name: str, tmp_path: Path) -> None:
    """This holds however it is split, even into letters and bytes; otherwise many rows have one."""
    tokenizer = tokenizer_of(name, tmp_path)
    words = [word for word in WORDS if tokenizer.unk_id not in tokenizer.encode_rest([word])[0]]
    plain = having(tokenizer, walked(tokenizer, None, seed=1))
    assert all(plain[word] for word in ("man", "a"))
    forbid = ForbidWords(tokenizer, words)
    rows = walked(tokenizer, forbid, seed=2)
    assert not any(having(tokenizer, rows)[word] for word in words)
    assert len({*map(tuple, rows)}) > ROWS / 2


def test_other_words_are_written(tmp_path: Path) -> None:
    """Longer words and other letter case are allowed; each row depends on its own text only."""
    tokenizer = tokenizer_of("bpe", tmp_path)
    forbid = ForbidWords(tokenizer, ["man", "läuft"])

    def allowed(rows: list[list[int]]) -> torch.Tensor:
        ids_NL = torch.tensor(rows, dtype=torch.long)
        logits_NV = torch.zeros(len(rows), tokenizer.vocab_size)
        return forbid(logits_NV, Prefixes(ids_NL, torch.arange(len(rows)))) == 0.0

    for text in ("A Man läufst", "starring hats am ma Arman, saftig lau"):
        ids = tokenizer.encode(text)
        assert all(allowed([ids[:place]])[0, id_] for place, id_ in enumerate(ids))
    (n,) = tokenizer.encode_rest(["n"])[0]
    letters = [
        [id_ for letter in word for id_ in tokenizer.encode_rest([letter])[0]]
        for word in (" ma", "oma", " Ma")
    ]
    both = allowed(letters)
    assert both[:, n].tolist() == [False, True, True]
    assert torch.equal(both, torch.cat([allowed([row]) for row in letters]))
