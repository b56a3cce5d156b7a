"""The alignment head: chosen, stored in the folder, and used."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.unit.data.streams import pairs_of
from tests.unit.tasks.tiny import (
    make_config,
    make_model,
    make_tokenizer,
    random_lines,
    save_translator,
)

from dragoman.cli.inspect import inspect
from dragoman.data.batches import BatchConfig
from dragoman.data.dataset import Ragged
from dragoman.errors import InputError
from dragoman.folder.format import record_alignment
from dragoman.folder.opening import open_folder
from dragoman.models import EncoderDecoder
from dragoman.nn.patterns.recording import Recording
from dragoman.tasks.translate.batches import PairBatch, PairBatches
from dragoman.tasks.translate.heads import choose_head
from dragoman.tasks.translate.translator import Translator

TOKENIZER = make_tokenizer()
CONFIG = replace(make_config(TOKENIZER), num_decoder_layers=2)


def batches(links: Ragged | None = None) -> list[PairBatch]:
    """Return batches of some pairs."""
    sides = (TOKENIZER.encode_batch(random_lines(20, seed)) for seed in (1, 2))
    pairs = pairs_of(*sides, links=links)
    return [*PairBatches([pairs], BatchConfig(max_tokens=300)).fixed()]


def attended_to(model: EncoderDecoder, layer: int, head: int, later: int = 0) -> list[PairBatch]:
    """Return the batches linked to where a head attends most, at the next step if `later` is 1."""
    found = []
    attention = model.decoder.each_layer()[layer].cross_attn
    assert attention is not None
    pattern, seen = attention.pattern, list[torch.Tensor]()
    attention.pattern = Recording(of=pattern, see=seen.append)
    for batch in batches():
        with torch.inference_mode():
            model(batch.src_BS, batch.tgt_in_BT)
        links_BT = seen.pop()[:, head].argmax(2)
        found.append(replace(batch, links_BT=links_BT.roll(-later, 1)))
    attention.pattern = pattern
    return found


@pytest.mark.parametrize("head", [(0, 0), (0, 3), (1, 2), (0, 2, 1), (1, 1, 1)])
def test_the_head_is_chosen_that_attends_to_what_is_linked(head: tuple[int, ...]) -> None:
    """All layers are searched, at writing and reading steps; the model is unchanged."""
    model = make_model(CONFIG).eval()
    before = [each.cross_attn.pattern for each in model.decoder.each_layer() if each.cross_attn]
    with torch.inference_mode():
        assert choose_head(model, attended_to(model, *head)) == head
    assert before == [e.cross_attn.pattern for e in model.decoder.each_layer() if e.cross_attn]


def test_nothing_is_chosen_where_nothing_is_linked() -> None:
    """Without a choice, the mean over the heads of the last layer aligns."""
    model = make_model(CONFIG).eval()
    assert choose_head(model, batches()) is None
    none = [replace(b, links_BT=torch.full_like(b.tgt_in_BT, -1)) for b in batches()]
    assert choose_head(model, none) is None


def test_links_stand_beside_the_tokens_of_a_batch() -> None:
    """Links match the tokens in any order of the batch; eos and padding have none."""
    tgt = Ragged.of(TOKENIZER.encode_batch(random_lines(20, 2)))
    places = Ragged(tgt.ids % 7, tgt.offsets)
    for batch in batches(places):
        assert batch.links_BT is not None
        text = batch.tgt_out_BT >= TOKENIZER.first_piece
        assert torch.equal(batch.links_BT[text], batch.tgt_out_BT[text] % 7)
        assert bool((batch.links_BT[~text] == -1).all())


def test_a_folder_says_which_head_aligns(tmp_path: Path) -> None:
    """A translator of the folder uses the head and is otherwise unchanged; it can be removed."""
    folder = save_translator(tmp_path / "model", CONFIG)
    before = (folder / "config.json").read_text()
    assert "alignment" not in before
    record_alignment(folder, (1, 2))
    assert open_folder(folder).config.alignment == (1, 2)
    found = Translator.of(open_folder(folder)).translate("the cat sees a dog")
    plain = Translator.of(open_folder(save_translator(tmp_path / "plain", CONFIG))).translate(
        "the cat sees a dog"
    )
    assert found == plain
    own, mean = found.alignment().weights_TS, plain.alignment().weights_TS
    assert not torch.allclose(own, mean)
    record_alignment(folder, None)
    assert (folder / "config.json").read_text() == before


@pytest.mark.parametrize("head", [[2, 0], [0, 4], [-1, 0], [0, 0, 2], [0]])
def test_a_head_that_does_not_exist_is_refused(tmp_path: Path, head: list[int]) -> None:
    """The error has the sizes of the decoder."""
    folder = save_translator(tmp_path / "model", CONFIG)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "alignment": head}))
    with pytest.raises(InputError, match="2 layers of 4 heads"):
        open_folder(folder)


def test_inspect_chooses_by_pairs_of_texts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints the chosen head; translations are unchanged."""
    folder = save_translator(tmp_path / "model")
    for name, seed in (("a.en", 1), ("a.zh", 2)):
        (tmp_path / name).write_text("\n".join(random_lines(30, seed)) + "\n", encoding="utf-8")
    inspect(model=folder, choose_alignment=(tmp_path / "a.en", tmp_path / "a.zh"))
    said = capsys.readouterr()
    config = open_folder(folder).config
    wanted = "No head" if config.alignment is None else f"Head {config.alignment[1]}"
    assert wanted in said.out + said.err
