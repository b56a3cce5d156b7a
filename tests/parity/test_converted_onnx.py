"""ONNX folders, run by onnxruntime in batches and by the program next to the graphs."""

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.convert.saving import LABELS, OWN, SIZE, TOKENIZER, save
from tests.unit.models.small import distance
from tests.unit.tasks.complete import translating
from tests.unit.tasks.tiny import DECODING, make_config, random_lines
from torch import Tensor

from dragoman.convert.targets import convert
from dragoman.folder.format import GenerationDefaults, ReadingDefaults
from dragoman.models import DecoderOnly, EncoderDecoder, EncoderOnly, EncoderOnlyConfig
from dragoman.models.heads import ClassificationHead
from dragoman.nn import Causal, Llama3Scaling, RelativeBias, Rotary, SlidingWindow
from dragoman.tasks.classify.classifier import Classifier
from dragoman.tasks.generate.generator import Generator
from dragoman.tasks.translate.translator import Translator

onnxruntime = pytest.importorskip("onnxruntime", reason="the extra `onnx` is not installed")
onnx = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
pytest.importorskip("onnxscript", reason="the extra `onnx` is not installed")

PAPER = replace(make_config(TOKENIZER), num_kv_heads=2, norm_position="pre", logit_scale=0.5)
ROPE = Rotary(scaling=Llama3Scaling(trained_length=16), local_base=50.0)
LLAMA = replace(OWN, positions=ROPE, num_kv_heads=2, norm="rms", gated=True, num_layers=2)
LLAMA = replace(LLAMA, patterns=(Causal(), SlidingWindow(size=3)))
READER = EncoderOnlyConfig(
    **{**SIZE, "num_layers": 1},
    positions=RelativeBias(num_buckets=8, max_distance=12),
    patterns=(SlidingWindow(size=3, causal=False),),
    num_token_types=2,
    embedding_norm=True,
    head=ClassificationHead(labels=LABELS, pooler=True),
)
LINES = [*random_lines(3, seed=5, longest=8), "</s> <pad>", "😀 我喜欢  a"]


def open_graph(folder: Path, name: str = "model") -> Any:  # noqa: ANN401 (their class)
    """Open a graph, with the opset that the page names and its weights in a separate file."""
    path = folder / f"{name}.onnx"
    (opset,) = onnx.load(path, load_external_data=False).opset_import
    assert f"opset {opset.version}:" in (folder / "README.md").read_text()
    assert path.with_name(f"{name}.onnx.data").stat().st_size > 10_000
    return onnxruntime.InferenceSession(path)


def run(session: Any, given: Mapping[str, Tensor]) -> dict[str, Tensor]:  # noqa: ANN401
    """Return all outputs by name."""
    names = [output.name for output in session.get_outputs()]
    found = session.run(names, {name: tensor.numpy() for name, tensor in given.items()})
    return dict(zip(names, map(torch.from_numpy, found), strict=True))


def no_past(session: Any, rows: int) -> dict[str, Tensor]:  # noqa: ANN401
    """Return keys and values of no tokens."""
    return {
        put.name: torch.zeros(rows, put.shape[1], 0, put.shape[3])
        for put in session.get_inputs()
        if put.name.startswith("past_")
    }


def own_program(folder: Path, lines: Sequence[str], *codes: str) -> str:
    """Return what run.py writes for lines; check that the page's example runs without PyTorch."""
    command, given = [sys.executable, "run.py", *codes], "\n".join(lines).encode()
    done = subprocess.run(command, cwd=folder, input=given, capture_output=True, check=True)
    page = (folder / "README.md").read_text()
    example = "".join(re.findall(r"^    ((?:from|print).*\n)", page, re.MULTILINE))
    example += "import sys\nassert not {'torch', 'dragoman'} & set(sys.modules)\n"
    assert "Model(" in example
    subprocess.run([sys.executable, "-c", example], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode()


def test_a_translator_runs_by_steps(tmp_path: Path) -> None:
    """A padded batch agrees, with targets fed one, three and one at a time; so do translations."""
    model = save(tmp_path / "model", PAPER, decoding=DECODING)
    assert isinstance(model, EncoderDecoder)
    assert convert(tmp_path / "model", tmp_path / "out", "onnx", LINES).worst < 1e-5
    src_BS = torch.randint(4, 300, (3, 6))
    src_BS[1, 2:] = PAPER.pad_id
    tgt_BT = torch.randint(4, 300, (3, 5))
    memory = run(open_graph(tmp_path / "out", "encoder"), {"ids": src_BS})
    decoder = open_graph(tmp_path / "out", "decoder")
    past, seen = no_past(decoder, 3), 0
    with torch.inference_mode():
        expected_BTV = model(src_BS, tgt_BT)
    for count in (1, 3, 1):
        step = run(decoder, {"ids": tgt_BT[:, seen : seen + count], **memory, **past})
        past = {name: step[name.removeprefix("past_")] for name in past}
        seen += count
        assert distance(step["logits"], expected_BTV[:, seen - 1]) < 1e-5
    options = translating(**replace(DECODING, beam_size=1, retry=False).given())
    translator = Translator.load(tmp_path / "model", device="cpu")
    ours = [f"{each.text}\n" for each in translator.translate(LINES, options=options)]
    assert own_program(tmp_path / "out", LINES) == "".join(ours)


def test_a_decoder_runs_by_steps(tmp_path: Path) -> None:
    """Prompts padded in front at once, then a token each, agree; so do continuations."""
    defaults = GenerationDefaults(temperature=0.0, max_tokens=5, opening="\n")
    model = save(tmp_path / "model", LLAMA, generation=defaults)
    assert isinstance(model, DecoderOnly)
    assert convert(tmp_path / "model", tmp_path / "out", "onnx", LINES).worst < 1e-5
    ids_BL, mask_BL = torch.randint(4, 300, (3, 7)), torch.ones(3, 7, dtype=torch.bool)
    ids_BL[1, :4], mask_BL[1, :4] = LLAMA.pad_id, False
    session = open_graph(tmp_path / "out")
    first = {"ids": ids_BL[:, :6], "mask": mask_BL[:, :6], **no_past(session, 3)}
    found = run(session, first)
    past = {name: found[name.removeprefix("past_")] for name in no_past(session, 3)}
    again = run(session, {"ids": ids_BL[:, 6:], "mask": mask_BL, **past})
    with torch.inference_mode():
        expected_BLV = model(ids_BL, mask_BL)
    assert distance(found["logits"], expected_BLV[:, 5]) < 1e-5
    assert distance(again["logits"], expected_BLV[:, 6]) < 1e-5
    generator = Generator.load(tmp_path / "model", device="cpu")
    whole = [[*generator.encode(each.prompt), *each.ids] for each in generator.generate(LINES)]
    texts = [TOKENIZER.decode_rest(ids).removeprefix("\n") for ids in whole]
    assert own_program(tmp_path / "out", LINES) == "".join(f"{text}\n" for text in texts)


def test_an_encoder_runs_in_batches(tmp_path: Path) -> None:
    """Padding is left out of the mean; labels come with their names."""
    model = save(tmp_path / "model", READER, reading=ReadingDefaults())
    assert isinstance(model, EncoderOnly)
    assert convert(tmp_path / "model", tmp_path / "out", "onnx", LINES).worst < 1e-5
    ids_BL = torch.randint(4, 300, (3, 7))
    ids_BL[1, 2:] = READER.pad_id
    found = run(open_graph(tmp_path / "out"), {"ids": ids_BL})["logits"]
    with torch.inference_mode():
        assert distance(found, model(ids_BL)) < 1e-5
    ours = Classifier.load(tmp_path / "model", device="cpu").classify(LINES)
    assert own_program(tmp_path / "out", LINES) == "".join(f"{each.label}\n" for each in ours)
