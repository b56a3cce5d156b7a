"""Fill in the middle: rearranged texts, and prompts for a middle."""

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.data.streams import assert_resumes, epoch_of
from tests.unit.tasks.generate.test_batches import BOS, EOS, PAD, assert_consistent, made
from tests.unit.tasks.tiny_generator import DEFAULTS, make_generator

from dragoman.data.batches import Stream
from dragoman.data.dataset import Ragged
from dragoman.errors import InputError
from dragoman.tasks.generate.batches import PackConfig, PackedBatches
from dragoman.tasks.generate.middle import SENTINELS, Middle
from dragoman.text.train import TokenizerConfig, train_tokenizer

CODE = "def f(x):\n    if x:\n        return x\n\n    return None\n"
MIDDLE = Middle(train_tokenizer(50 * [CODE], TokenizerConfig(vocab_size=320, specials=SENTINELS)))


def rows_of(texts: Ragged) -> list[list[int]]:
    """Return each sequence as a list."""
    return [texts[number].tolist() for number in range(len(texts))]


def restored(ids: list[int]) -> list[int]:
    """Return the original of a rearranged text; other texts are unchanged."""
    if ids[0] != MIDDLE.prefix_id:
        return ids
    suffix, middle = ids.index(MIDDLE.suffix_id), ids.index(MIDDLE.middle_id)
    assert ids[-1] == EOS
    assert suffix > 1  # the prefix is not empty
    assert middle > suffix + 1  # neither is the suffix
    return ids[1:suffix] + ids[middle + 1 : -1] + ids[suffix + 1 : middle]


@given(
    texts=st.lists(st.lists(st.integers(10, 99), max_size=30), max_size=8),
    length=st.integers(1, 12),
    share=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 99),
)
def test_put_back_in_order_it_is_the_text(
    texts: list[list[int]], length: int, share: float, seed: int
) -> None:
    """Nothing is lost, nothing added but the marks, and no part is longer than a row."""
    texts = [[BOS, *text, EOS] for text in texts]
    rng = np.random.default_rng(seed)
    parts = rows_of(MIDDLE.rearranged(Ragged.of(texts), length, share, rng))
    assert list(chain(*map(restored, parts))) == list(chain(*texts))
    marked = [part for part in parts if part[0] == MIDDLE.prefix_id]
    assert all(len(part) <= length + 4 * (part in marked) for part in parts)
    if share != 0.5:
        assert len(marked) == share * sum(len(restored(part)) > 1 for part in parts)


def test_every_cut_is_drawn() -> None:
    """Any middle is possible, even an empty one, except the first and the last token."""
    text = [BOS, 10, 11, EOS]
    parts = MIDDLE.rearranged(Ragged.of(500 * [text]), 9, 1.0, np.random.default_rng(1))
    found = {tuple(ids[ids.index(MIDDLE.middle_id) + 1 : -1]) for ids in rows_of(parts)}
    assert found == {(), (10,), (11,), (10, 11)}


def test_batches_of_rearranged_documents() -> None:
    """An epoch has every document, rows have the usual capacity, and a run can be resumed."""
    dataset = made()
    config = PackConfig(length=16, rows=4, packing="documents", fill_in_middle=0.5)
    source = PackedBatches(dataset, config, None, MIDDLE)
    rows = []
    for batch in epoch_of(Stream(source, seed=1)):
        assert_consistent(batch)
        assert batch.document_lengths is not None
        assert max(batch.document_lengths[:-1], default=0) <= 16
        ends = np.cumsum(batch.document_lengths)
        for start, end in zip(ends - batch.document_lengths, ends, strict=True):
            inputs = batch.inputs_BL[0, start:end].tolist()
            if inputs[0] != PAD:
                rows.append([*inputs, int(batch.targets_BL[0, end - 1])])
    assert any(row[0] == MIDDLE.prefix_id for row in rows)
    assert all(
        row[0] == MIDDLE.prefix_id and row[-1] == EOS for row in rows if MIDDLE.middle_id in row
    )
    assert any(10 <= row[0] < MIDDLE.prefix_id for row in rows)
    seen = {id_ for row in rows for id_ in row}
    assert set(dataset.texts.ids.tolist()) <= seen
    assert_resumes(source, 3, replace(source, config=replace(config, fill_in_middle=0.4)))


def test_the_tokenizer_keeps_indentation() -> None:
    """Line feed plus indentation is one piece; cutting at the end of a line does not change ids."""
    tokenizer = train_tokenizer(50 * [CODE], TokenizerConfig(vocab_size=320))
    ids = tokenizer.encode(CODE)
    assert tokenizer.decode(ids) == CODE
    assert {"\n       ", "\n\n   "} <= set(tokenizer.tokens(ids))
    for place in (i for i, char in enumerate(CODE) if char == "\n" and CODE[i - 1] != "\n"):
        prefix, rest = CODE[:place], CODE[place:]
        assert tokenizer.encode(prefix) + tokenizer.encode_rest([rest])[0] == ids


def test_filling_is_going_on_behind_the_marks() -> None:
    """The prompt has both texts; the result is its greedy continuation, and limits are checked."""
    config = TokenizerConfig(vocab_size=320, specials=SENTINELS)
    tokenizer = train_tokenizer(50 * [CODE], config)
    generator = make_generator(replace(DEFAULTS, temperature=0.0), tokenizer=tokenizer)
    found = generator.fill("def f(x):", "\n    return None\n")
    special = tokenizer.special_id
    ids = [
        special("<prefix>"),
        *(tokenizer.bos_id, *tokenizer.encode("def f(x):")),
        *(special("<suffix>"), *tokenizer.encode_rest(["\n    return None\n"])[0]),
        special("<middle>"),
    ]
    written: list[int] = []
    log_probs: list[float] = []
    while len(written) < DEFAULTS.max_tokens and tokenizer.eos_id not in written:
        logits_V = generator.model(torch.tensor([ids + written]))[0, -1].detach()
        logits_V[list(generator.never)] = -torch.inf
        written.append(int(logits_V.argmax()))
        log_probs.append(float(logits_V.log_softmax(0).max()))
    assert [*found.ids, tokenizer.eos_id][: len(written)] == written
    assert found.token_log_probs == pytest.approx(log_probs, abs=1e-4)
    assert found.prompt == "def f(x):"
    assert not set(found.ids) & {special(name) for name in SENTINELS}
    with pytest.raises(InputError, match=r"tokens, and the model sees 8 at once"):
        generator.fill("def f(x):", "\n    return None\n", replace(generator.options, context=8))
    with pytest.raises(InputError, match="no special token <prefix>"):
        make_generator().fill("a", "b")
