"""The alignment head: guided in training, chosen, stored in the folder, and used."""

import json
import math
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
from tests.unit.train.conftest import recipe as recipe  # noqa: PLC0414 -- a fixture
from tests.unit.train.made import TINY, make_batch
from tests.unit.train.made import make_model as make_tiny
from tests.unit.train.runs import change, exported, run, same

from dragoman.cli.inspect import inspect
from dragoman.data.batches import BatchConfig
from dragoman.data.dataset import Ragged
from dragoman.errors import InputError
from dragoman.folder.format import record_alignment
from dragoman.folder.opening import open_folder
from dragoman.models import EncoderDecoder
from dragoman.nn.patterns.recording import Recording
from dragoman.tasks.hiding import NoisyBatchConfig
from dragoman.tasks.translate.batches import PairBatch, PairBatches
from dragoman.tasks.translate.heads import choose_head, guided_head, link_loss
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.tasks.translate.translator import Translator
from dragoman.train.config import TrainConfig

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


def test_link_loss_by_hand() -> None:
    """The loss sums -log of the weights at the next step; tokens without a link are ignored."""
    rows = [[0.3, 0.7], [0.5, 0.5], [0.1, 0.9], [1.0, 0.0]]
    weights_BTS = torch.tensor([rows], requires_grad=True)
    links_BT = torch.tensor([[0, 1, -1, -1]])
    loss = link_loss(weights_BTS, links_BT)
    assert loss.item() == pytest.approx(-math.log(0.5) - math.log(0.9))
    loss.backward()
    assert weights_BTS.grad is not None
    assert weights_BTS.grad[0, ::3].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert link_loss(weights_BTS, torch.full((1, 4), -1)).item() == 0.0


@pytest.mark.parametrize(("layers", "guided"), [(1, 0), (2, 0), (3, 1)])
def test_a_head_of_the_last_layer_but_one_is_guided(layers: int, guided: int) -> None:
    """Its projections get gradients from the links; the patterns are restored afterwards."""
    model = make_tiny(replace(TINY, num_decoder_layers=layers))
    layers_of = model.decoder.each_layer()
    attentions = [each.cross_attn for each in layers_of if each.cross_attn is not None]
    patterns = [each.pattern for each in attentions]
    batch = make_batch([([5, 6, 7], [8, 9]), ([6], [9, 9])])
    with guided_head(model) as seen:
        model(batch.src_BS, batch.tgt_in_BT)
    (weights_B1TS,) = seen
    assert weights_B1TS.shape == (2, 1, *batch.tgt_out_BT.shape[1:], batch.src_BS.shape[1])
    link_loss(weights_B1TS[:, 0], torch.zeros_like(batch.tgt_out_BT)).backward()
    gradients = [each.q_proj.weight.grad for each in attentions]
    learning = [n for n, gradient in enumerate(gradients) if gradient is not None]
    assert learning == [*range(guided + 1)]
    gradient_XD = gradients[guided]
    assert gradient_XD is not None
    half = len(gradient_XD) // 2
    assert bool(gradient_XD[:half].any())
    assert not bool(gradient_XD[half:].any())
    assert [each.pattern for each in attentions] == patterns


def guided(recipe: TranslateRecipe) -> TranslateRecipe:
    """Return the recipe with guided alignment."""
    return replace(recipe, data=replace(recipe.data, guided_alignment=0.5))


def test_a_guided_run_learns_something_else(recipe: TranslateRecipe) -> None:
    """The links are cached, and the weights differ from those of an unguided run."""
    steered = replace(guided(recipe), out=recipe.out + "-guided")
    for each in (recipe, steered):
        run(change(each, max_steps=2), 10)
    assert [*Path(str(recipe.data.cache)).glob("*/links.ids")]
    assert not same(exported(recipe), exported(steered))


def test_what_would_lose_the_links_is_refused(recipe: TranslateRecipe) -> None:
    """Subword sampling moves tokens, checkpointing drops weights; each conflict is named."""
    recipe = guided(recipe)
    with pytest.raises(InputError, match=r"contradicts batch\.subword_sampling"):
        replace(recipe, batch=NoisyBatchConfig(subword_sampling=0.1))
    saving = TrainConfig(max_steps=1, activation_checkpointing=True)
    with pytest.raises(InputError, match=r"contradicts train\.activation_checkpointing"):
        replace(recipe, train=saving)
    with pytest.raises(InputError, match=r"contradicts train\.r_drop"):
        replace(recipe, train=TrainConfig(max_steps=1, r_drop=5.0))
