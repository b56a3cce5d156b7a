"""Page 0 of the walk, the Transformer in one file: it is the package's, which is PyTorch's."""

import ast
import math
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from tests.docs.pages import ROOT
from tests.docs.walk import Experiment, differences, experiments
from torch import Tensor, nn

from dragoman.data.made import demo_corpus
from dragoman.decode import Greedy, Limits, search
from dragoman.models import EncoderDecoder, EncoderDecoderConfig
from dragoman.train.config import TrainConfig
from dragoman.train.objective import reference_loss
from dragoman.train.optimizer import learning_rate

FILE = ROOT / "docs" / "walk" / "00-one-file.py"
*PARTS, WITHOUT = experiments(FILE.with_suffix(".md"))
DRAWING, SVG = ROOT / "docs" / "images" / "one-sentence.svg", "{http://www.w3.org/2000/svg}"
TRAINING = next(index for index, part in enumerate(PARTS) if part.seconds)
D, H, F, PAD, BOS, EOS = 128, 4, 512, 0, 1, 2

NAMES = (
    ("encoder.", "encoder.layers."),
    ("decoder.", "decoder.layers."),
    ("add_self_attn.", "self_attn_residual."),
    ("add_cross_attn.", "cross_attn_residual."),
    ("add_ffn.", "ffn_residual."),
    ("ffn.0.", "ffn.up."),
    ("ffn.2.", "ffn.down."),
    (".q.", ".q_proj."),
    (".out.", ".out_proj."),
)
"""From the page's names of weights to the package's."""


def run(parts: Sequence[Experiment], names: dict[str, Any]) -> list[str]:
    """Run parts one after another with the same names, and return what each prints."""
    dice = random.getstate()
    with torch.random.fork_rng(devices=[]):
        heard = [part.run(names) for part in parts]
    random.setstate(dice)
    return heard


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the file defines, without its training; each part prints what the page says."""
    names: dict[str, Any] = {"__name__": "page"}
    for part, heard in zip(PARTS[:TRAINING], run(PARTS[:TRAINING], names), strict=True):
        assert differences(part.said, heard, part.tolerance) == []
    run([part for part in PARTS[TRAINING + 1 :] if not part.said], names)
    defined = PARTS[TRAINING].code.partition("\noptimizer =")[0]
    exec(compile(defined, FILE.name, "exec"), names)  # noqa: S102 (the page is ours)
    return names


@pytest.fixture
def page(names: dict[str, Any]) -> Iterator[SimpleNamespace]:
    """The names as attributes; the model has large random weights, all of them, in float64."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        sizes = (len(names["english"].tokens), len(names["chinese"].tokens))
        model = names["Transformer"](*sizes).double().eval()
        for name, weight in model.named_parameters():
            nn.init.normal_(weight, mean=float("norm.weight" in name), std=0.1)
        names["model"] = model
        yield SimpleNamespace(**names)


def batch() -> tuple[Tensor, Tensor]:
    """Sources and targets of several lengths, padded at the end."""
    src_BS, tgt_BT = torch.randint(4, 600, (3, 7)), torch.randint(4, 600, (3, 9))
    src_BS[1, 4:] = src_BS[2, 1:] = tgt_BT[0, 5:] = PAD
    return src_BS, tgt_BT


def renamed(weights: dict[str, Tensor], pairs: Sequence[tuple[str, str]]) -> dict[str, Tensor]:
    """The weights under the names that another model has for them."""
    made = {}
    for name, weight in weights.items():
        for old, new in pairs:
            name = name.replace(old, new)  # noqa: PLW2901 (all of them, one after another)
        made[name] = weight
    return made


def join(weights: dict[str, Tensor], parts: str, whole: str) -> None:
    """Put projections that another model has as one, `.q.` and so on, above each other."""
    for name in [name for name in weights if f".{parts[0]}." in name]:
        rows = [weights.pop(name.replace(f".{parts[0]}.", f".{part}.")) for part in parts]
        weights[name.replace(f".{parts[0]}.", whole)] = torch.cat(rows)


def to_package(page: SimpleNamespace) -> EncoderDecoder:
    """The package's model with the page's weights."""
    weights = renamed(page.model.state_dict(), NAMES)
    join(weights, "kv", ".kv_proj.")
    config = EncoderDecoderConfig(
        d_model=D,
        num_heads=H,
        d_ff=F,
        num_encoder_layers=page.NUM_LAYERS,
        num_decoder_layers=page.NUM_LAYERS,
        src_vocab_size=len(page.english.tokens),
        tgt_vocab_size=len(page.chinese.tokens),
        tie_embeddings="target-output",
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
    )
    model = EncoderDecoder(config).double().eval()
    model.load_state_dict(weights | {"output.weight": weights["tgt_embedding.weight"]})
    return model


def test_it_is_short_and_needs_pytorch_alone() -> None:
    """About 300 lines, 200 of them code, on the standard library and PyTorch."""
    text = FILE.read_text(encoding="utf-8")
    tree = ast.parse(text)
    told = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    lines = [line for number, line in enumerate(text.splitlines(), 1) if number not in told]
    assert sum(bool(line.strip()) for line in lines) <= 210
    assert len(lines) + len(told) <= 320
    modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [
        n.name for node in ast.walk(tree) if isinstance(node, ast.Import) for n in node.names
    ]
    rooms = {str(module).partition(".")[0] for module in modules}
    assert rooms - set(sys.stdlib_module_names) == {"torch"}


def test_heads_that_do_not_divide_the_width_are_named() -> None:
    """One sentence before anything is built."""
    code = PARTS[0].code.replace("128, 4, 512, 2", "128, 3, 512, 2")
    with pytest.raises(SystemExit, match="3 heads cannot share a width of 128: choose a divisor"):
        run([replace(PARTS[0], code=code)], {})


def test_the_drawing_of_a_sentence_has_its_ids_and_shapes(page: SimpleNamespace) -> None:
    """Of the first pair that the page prints, with the page's model."""
    src_BS, tgt_BT, next_BT = page.make_batch(page.train[3:4])
    texts = [text.text for text in ET.parse(DRAWING).getroot().iter(f"{SVG}text")]  # noqa: S314
    rows = ((src_BS, page.english), (tgt_BT, page.chinese), (next_BT, page.chinese))
    for row_BL, vocabulary in rows:
        for number in row_BL[0].tolist():
            assert texts[texts.index(str(number)) - 1] == vocabulary.tokens[number]
    memory_BSD, mask = page.model.encode(src_BS)
    logits_BTV = page.model.decode(tgt_BT, memory_BSD, mask)
    drawn = " ".join(filter(None, texts))
    size = page.D_MODEL
    for shape in (src_BS.shape, memory_BSD.shape, tgt_BT.shape, logits_BTV.shape):
        assert str(tuple(shape)) in drawn
    S, T = src_BS.shape[1], tgt_BT.shape[1]
    for shape in ((1, T, size), (1, H, S, S), (1, H, T, T), (1, H, T, S)):
        assert str(shape) in drawn


def test_it_reads_the_sentences_of_the_package(page: SimpleNamespace) -> None:
    """Those to learn from and those to test with; each is found again in its ids."""
    corpus = demo_corpus()
    assert [tuple(pair) for pair in page.train] == corpus.train
    assert [tuple(pair) for pair in page.test] == corpus.test
    for _, tgt in corpus.test:
        assert page.chinese.decode(page.chinese.encode(tgt)) == tgt


def test_it_is_the_model_of_the_package(page: SimpleNamespace) -> None:
    """The same logits and the same gradient from the same weights."""
    src_BS, tgt_BT = batch()
    theirs = to_package(page)
    own_BTV, logits_BTV = page.model(src_BS, tgt_BT), theirs(src_BS, tgt_BT)
    torch.testing.assert_close(own_BTV, logits_BTV, rtol=0, atol=1e-6)
    own_BTV.logsumexp(-1).sum().backward()
    logits_BTV.logsumexp(-1).sum().backward()
    own, reference = page.model.src_embedding.weight.grad, theirs.src_embedding.weight.grad
    assert own is not None
    assert reference is not None
    torch.testing.assert_close(own[1:], reference[1:], rtol=0, atol=1e-6)  # padding never moves


def test_it_learns_by_the_loss_and_the_rate_of_the_package(page: SimpleNamespace) -> None:
    """Label smoothing, a mean over the tokens that are no padding, and the paper's rate."""
    logits_BTV, next_BT = torch.randn(3, 9, 600), batch()[1].clamp(max=599)
    real = next_BT != PAD
    wanted = reference_loss(logits_BTV[real], next_BT[real], 0.1, "mean")
    torch.testing.assert_close(page.loss_of(logits_BTV, next_BT), wanted)
    config = TrainConfig(
        schedule="noam", learning_rate=1.0, warmup_steps=page.WARMUP, max_steps=9000
    )
    for step in (1, page.WARMUP - 1, page.WARMUP, 9000):
        assert math.isclose(page.rate(step), learning_rate(config, step, 0.5, D), rel_tol=1e-9)


def test_a_batch_is_read_one_step_behind_what_is_predicted(page: SimpleNamespace) -> None:
    """The decoder reads bos and what it said; every pair is in one batch of an epoch."""
    drawn = page.batches()
    epoch = [next(drawn) for _ in range(-(-len(page.train) // page.BATCH))]
    assert sorted(pair for pairs in epoch for pair in pairs) == sorted(page.train)
    src_BS, tgt_BT, next_BT = page.make_batch(epoch[0])
    assert torch.equal(tgt_BT[:, 1:], next_BT[:, :-1])
    assert (tgt_BT[:, 0] == BOS).all()
    for row, (src, tgt) in enumerate(epoch[0]):
        assert page.chinese.decode(next_BT[row].tolist()) == tgt
        ids = [number for number in src_BS[row].tolist() if number != PAD]
        assert [page.english.tokens[number] for number in ids] == [*page.words(src), "<eos>"]


def test_it_translates_as_the_package_does(page: SimpleNamespace) -> None:
    """Greedy search finds the same tokens, sentences of several lengths together."""
    with torch.no_grad():
        page.model.tgt_embedding.weight.mul_(0.03)[EOS] *= 4  # so that some end early
    texts = [src for src, _ in page.test[:12]]
    limits = Limits(bos_id=BOS, eos_id=EOS, max_B=torch.full((12,), 30))
    src_BS = page.pad([page.english.encode(page.words(text)) for text in texts])
    found = search(to_package(page), src_BS, Greedy(), limits=limits)
    assert page.translate(texts) == [page.chinese.decode(best.ids) for [best] in found]
    assert len({len(best.ids) for [best] in found}) > 2


TEXTS = st.text(alphabet="我你他学习 T恤在8291。，？", max_size=12)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
@example([("", "我")])
@example([("我学习。", "我学习。")])
def test_its_bleu_is_that_of_sacrebleu(names: dict[str, Any], pairs: list[tuple[str, str]]) -> None:
    """Without smoothing, which a corpus does not need, on texts like those of the corpus."""
    outputs, references = (list(texts) for texts in zip(*pairs, strict=True))
    score = BLEU(tokenize="zh", smooth_method="none").corpus_score(outputs, [references]).score
    assert math.isclose(names["bleu"](outputs, references), score, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("model", ["complete", "without positions"])
def test_without_positions_mirrored_sentences_are_one_bag(model: str) -> None:
    """The page's experiment, with one step of training: the memories are the same rows."""
    own: dict[str, Any] = {"__name__": "experiment"}
    code = WITHOUT.code.partition("\nprint(")[0].replace("400, 32, 400", "1, 32, 400")
    code = code.replace("lines[:200]", "lines[:2]")
    code += f"\nmade = run(1, *CHANGES[{model!r}])\n"
    run([replace(WITHOUT, code=code, alone=False)], own)
    made = SimpleNamespace(**own["made"])
    ids = [made.english.encode(made.words(text)) for text in own["examples"]]
    one_LD, other_LD = made.model.eval().encode(made.pad(ids))[0]
    is_one = torch.allclose(one_LD.mean(0), other_LD.mean(0), atol=1e-5)
    assert is_one == (model == "without positions")


def test_the_whole_file_runs() -> None:
    """A few steps of training make the loss fall; the end prints BLEU and translations."""
    own: dict[str, Any] = {"__name__": "page"}
    run(PARTS[:TRAINING], own)
    own |= {"STEPS": 20, "BATCH": 32, "WARMUP": 60, "test": own["test"][:8]}
    _, *heard = run(PARTS[TRAINING:], own)
    assert own["loss"] < 0.95 * math.log(len(own["chinese"].tokens))
    assert heard[-1].startswith("BLEU ")
    assert heard[-1].count(" -> ") == 4
