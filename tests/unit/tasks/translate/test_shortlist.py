"""Learning a shortlist, and its file in a model folder."""

from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from tests.unit.tasks.complete import translating
from tests.unit.tasks.tiny import make_tokenizer, random_lines, save_translator

import dragoman
from dragoman.data.lexical import count_links
from dragoman.decode.shortlist import Shortlist
from dragoman.errors import InputError
from dragoman.tasks.translate.shortlist import FILE, learn_shortlist, load_shortlist, save_shortlist

TOKENIZER = make_tokenizer()
BOTH = (TOKENIZER, TOKENIZER)
TOKENS = list(range(TOKENIZER.first_piece, TOKENIZER.vocab_size))[:24]


def pairs_of(mapping: dict[int, int], count: int = 200) -> list[tuple[list[int], list[int]]]:
    """Return random sources whose tokens are mapped to targets in reverse order."""
    rng = np.random.default_rng(0)
    sources = [rng.choice(list(mapping), 6).tolist() for _ in range(count)]
    return [(source, [mapping[token] for token in reversed(source)]) for source in sources]


def test_tables_equal_the_formula_written_out() -> None:
    """They equal loops over pairs, positions and tokens."""
    pairs = [([1, 2], [1, 0, 1]), ([2], [3]), ([1, 1, 3], [0, 2]), ([], [1])]
    links = {(s, t) for src, tgt in pairs for s in src for t in tgt}
    prob = dict.fromkeys(links, 1.0)
    for _ in range(5):
        count = dict.fromkeys(links, 0.0)
        for src, tgt in pairs:
            for t in tgt:
                total = sum(prob[s, t] for s in src)
                for s in src:
                    count[s, t] += prob[s, t] / total
        prob = {
            (s, t): count[s, t] / sum(value for (other, _), value in count.items() if other == s)
            for s, t in links
        }
    found = count_links(pairs, 10, 10)
    values = zip(found.keys_K.tolist(), found.probs_K, strict=True)
    assert {divmod(key, 10): value for key, value in values} == (pytest.approx(prob))


def test_it_finds_what_each_token_becomes() -> None:
    """Every token occurs next to five others."""
    mapping = dict(zip(TOKENS[:12], TOKENS[12:], strict=True))
    learnt = learn_shortlist(pairs_of(mapping), 1, BOTH)
    for token, becomes in mapping.items():
        own = learnt.ids_X[learnt.starts_V[token] : learnt.starts_V[token + 1]].tolist()
        assert set(own) == {token, becomes}  # itself, since names are copied


def test_every_list_has_what_is_frequent_and_no_special() -> None:
    """Tokens of a prefix are included too."""
    pairs = pairs_of({TOKENS[0]: TOKENS[12]})
    pairs = [(source, [*target, TOKENIZER.eos_id]) for source, target in pairs]
    learnt = learn_shortlist(pairs, 3, BOTH)
    assert learnt.always_A.tolist() == [TOKENS[12]]
    assert learnt.of([TOKENS[1]]).tolist() == sorted([TOKENS[1], TOKENS[12]])
    assert learnt.of([], [TOKENS[5]]).tolist() == sorted([TOKENS[5], TOKENS[12]])


def test_a_folder_keeps_it(tmp_path: Path) -> None:
    """It is learned, saved and used by a translator that was loaded before."""
    folder = save_translator(tmp_path / "model")
    translator = dragoman.load(folder)
    lines = random_lines(5)
    with pytest.raises(InputError, match=r"has no shortlist; learn one .* dragoman shortlist"):
        translator.translate(lines, options=translating(shortlist=True))
    ids = TOKENIZER.encode_batch(lines)
    learnt = learn_shortlist(list(zip(ids, reversed(ids), strict=True)), 5, BOTH)
    save_shortlist(learnt, folder, BOTH)
    assert (folder / FILE).stat().st_mode == (folder / "config.json").stat().st_mode
    read = load_shortlist(folder, BOTH)
    for array in Shortlist.__dataclass_fields__:
        assert np.array_equal(getattr(read, array), getattr(learnt, array))
    options = translating(beam_size=2, shortlist=True, retry=False, split_sentences=False)
    for line, found in zip(lines, translator.translate(lines, options=options), strict=True):
        allowed = TOKENIZER.tokens(learnt.of(TOKENIZER.encode(line)))
        assert set(found.tokens) <= set(allowed)


def test_a_file_of_another_model_or_damaged_is_rejected(tmp_path: Path) -> None:
    """Each is refused in one sentence."""
    folder = save_translator(tmp_path / "model")
    other = make_tokenizer(300)
    ids = list(chain(TOKENIZER.encode_batch(random_lines(3))))
    save_shortlist(learn_shortlist(list(zip(ids, ids, strict=True)), 5, BOTH), folder, BOTH)
    with pytest.raises(InputError, match="learnt with other tokenizers"):
        load_shortlist(folder, (other, other))
    (folder / FILE).write_bytes((folder / FILE).read_bytes()[:100])
    with pytest.raises(InputError, match=r"is damaged .* learn the shortlist again"):
        load_shortlist(folder, BOTH)


@pytest.mark.parametrize(
    ("array", "value"),
    [("ids_X", 10**6), ("ids_X", -1), ("always_A", 10**6), ("starts_V", 10**6), ("starts_V", -1)],
)
def test_a_file_with_numbers_out_of_range_is_rejected(
    array: str, value: int, tmp_path: Path
) -> None:
    """Tokens beyond the vocabulary and offsets beyond the tokens are refused."""
    folder = save_translator(tmp_path / "model")
    ids = TOKENIZER.encode_batch(random_lines(3))
    learnt = learn_shortlist(list(zip(ids, ids, strict=True)), 5, BOTH)
    wrong = getattr(learnt, array).copy()
    wrong[1] = value
    for changed in (wrong, wrong[None]):
        save_shortlist(replace(learnt, **{array: changed}), folder, BOTH)
        with pytest.raises(InputError, match=r"is damaged .* learn the shortlist again"):
            load_shortlist(folder, BOTH)
