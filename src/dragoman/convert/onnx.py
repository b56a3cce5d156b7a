"""A model as ONNX graphs, which onnxruntime and others run without PyTorch.

The folder contains the graphs (see `graphs`), their tokenizers, a `config.json` with ids and
limits, and `run.py`: a short program that decodes with onnxruntime alone, and is also used to
verify the folder. Only this file and `run_onnx` import the packages of the extra `onnx`.
"""

import json
import logging
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman.convert.graphs import Graph, graphs
from dragoman.convert.limits import check_dense, check_installed, num_positions
from dragoman.convert.probe import (
    Answer,
    Answers,
    labels_of,
    our_side,
    starts_with_language,
    two_languages,
)
from dragoman.folder.format import GENERATION, names_of
from dragoman.folder.opening import ModelFolder
from dragoman.folder.tokenizers.pieces import PieceTokenizer
from dragoman.models import DecoderOnlyConfig, EncoderDecoderConfig
from dragoman.tasks.translate.translator import Translator
from dragoman.text.tokenizer import Frame

OPSET = 20
"""The version of the ONNX operator set."""
PROGRAM = "run.py"
EXAMPLE = {"batch": 2, "length": 3, "past": 5, "seen": 8, "source": 7}
"""Sizes of the tensors for tracing a graph; the result does not depend on them."""


class Onnx:
    """The target "onnx"."""

    name = f"ONNX (opset {OPSET})"

    def check(self, folder: ModelFolder) -> None:
        """Raise InputError for an unsupported model, or if the packages are missing."""
        check_dense(folder.config.model, self.name)
        for package in ("onnx", "onnxscript", "onnxruntime"):
            check_installed(package, extra="onnx")

    def write(self, folder: ModelFolder, out: Path) -> None:
        """Write the graphs with weights, config.json, the tokenizers, run.py and README.md."""
        from dragoman.convert import run_onnx

        opening = (folder.config.generation or GENERATION).opening
        length = num_positions(folder.config.translating)
        found = graphs(folder.model, length)
        for name, graph in found.items():
            _export(graph, out / f"{name}.onnx")
        config = {**_config(folder), "graphs": list(found), "opset": OPSET}
        text = json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False)
        (out / "config.json").write_text(text + "\n", encoding="utf-8")
        for name, tokenizer in names_of(folder.tokenizers).items():
            tokenizer.save(out / name, rest=opening is not None)
        shutil.copyfile(run_onnx.__file__, out / PROGRAM)
        (out / "README.md").write_text(_page(folder, found), encoding="utf-8")

    def open(self, folder: ModelFolder, out: Path) -> Answers:
        """Load the folder with its own program."""
        from dragoman.convert.run_onnx import Model

        model = Model(out, *two_languages(folder))

        def answer(text: str, limit: int) -> Answer:
            found = model.answer(text, limit)
            rows_TV = torch.from_numpy(np.stack(found.logits))
            return Answer(text=found.text, ids=tuple(found.ids), logits_TV=rows_TV)

        return answer


@contextmanager
def _silence() -> Iterator[None]:
    """Hide the messages of PyTorch's exporter."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _export(graph: Graph, path: Path) -> None:
    """Trace a graph, and write it with its weights next to it."""
    examples = [
        torch.ones(
            [EXAMPLE[size] if isinstance(size, str) else size for size in port.shape],
            dtype=port.dtype,
        )
        for port in graph.inputs
    ]
    sizes = [
        {axis: size for axis, size in enumerate(port.shape) if isinstance(size, str)}
        for port in graph.inputs
    ]
    with _silence(), torch.no_grad():
        torch.onnx.export(
            graph.module.eval(),
            graph.as_arguments(examples),
            path,
            input_names=[port.name for port in graph.inputs],
            output_names=list(graph.outputs),
            dynamic_shapes=graph.as_arguments(sizes),
            opset_version=OPSET,
            dynamo=True,
            external_data=True,
            verbose=False,
        )


def _config(folder: ModelFolder) -> dict[str, Any]:
    """Return the config that `run.py` reads."""
    config, published = folder.config.model, folder.config.published
    decoding, generation = folder.config.translating, folder.config.generation or GENERATION
    src, tgt = folder.src_tokenizer, folder.tgt_tokenizer
    frame, start, begin = Frame((src.bos_id,), (src.eos_id,)), list[int](), tuple[int, ...]()
    if isinstance(config, EncoderDecoderConfig):
        specials = Translator.of(folder).specials
        frame, begin = specials.src_frame, specials.begin
        start = [] if starts_with_language(folder) else [specials.bos_id]
    elif isinstance(config, DecoderOnlyConfig):
        before = frame.before if published is None else src.frame().before
        frame = Frame(before if generation.opening is None else (), ())
    side, names = our_side(folder), [*names_of(folder.tokenizers)]
    return {
        "kind": config.kind,
        "before": frame.before,
        "after": frame.after,
        "start": start,
        "begin": begin,
        "ends": side.ends,
        "pad_id": config.pad_id,
        "unk_id": src.unk_id,
        "languages": dict(src.languages) if two_languages(folder) else {},
        "opening": generation.opening or "",
        "never": sorted(side.never),
        "specials": sorted(tgt.specials.values()) if published is None else [],
        "cleaned": tgt.cleaned,
        "labels": list(labels_of(folder)),
        "tokenizers": [names[0], names[-1]],
        "max_tokens": folder.config.generating.max_tokens,
        "max_length_factor": decoding.max_length_factor,
        "max_length_constant": decoding.max_length_constant,
    }


PAGE = """# {title} in ONNX

Written by `dragoman convert --to onnx` in opset {opset}: {files}, in float32, each with its weights
in the file `.data` beside it. Batches and lengths are free.

    pip install onnxruntime numpy {package}
    python {program}{languages} < lines.txt

`{program}` decodes greedily, one line at a time, with these packages alone, and has no penalty
for repetitions. From Python:

    from run import Model

    print(Model("."{arguments}).answer("A sentence.").text)

`config.json` has what a program of your own needs: the ids before and after a text and those that
a translation starts with, the ids that are never written (set their logits to minus infinity),
languages, labels and limits.

| graph | takes | gives |
| --- | --- | --- |
{rows}
"""


def _page(folder: ModelFolder, found: Mapping[str, Graph]) -> str:
    """Return a short README.md."""
    codes = two_languages(folder)
    rows = [
        f"| {name}.onnx | {_names([p.name for p in graph.inputs])} | {_names(graph.outputs)} |"
        for name, graph in found.items()
    ]
    return PAGE.format(
        title=folder.path.name,
        opset=OPSET,
        files=" and ".join(f"`{name}.onnx`" for name in found),
        program=PROGRAM,
        package="sentencepiece"
        if isinstance(folder.src_tokenizer, PieceTokenizer)
        else "tokenizers",
        languages="".join(f" {code}" for code in codes),
        arguments="".join(f', "{code}"' for code in codes),
        rows="\n".join(rows),
    )


def _names(names: Sequence[str]) -> str:
    """List the names of tensors; those that each layer has, once."""
    layers = dict.fromkeys(f"`{name.replace('.0', '.N')}`" for name in names if ".0" in name)
    return ", ".join([*(f"`{name}`" for name in names if "." not in name), *layers])
