"""Adapt a pretrained translator: Multi30k by transformers, then dialogue by `dragoman train`.

    DRAGOMAN_DATA=... python -m benchmarks adapted

First a Marian-shaped model (3+3 layers, d_model 256, a SentencePiece vocabulary of 4,000) learns
English to German from Multi30k by `MarianMTModel`: the folder that a publisher would hand out. Then
`dragoman train --from` adapts it to the dialogues of MSCTD in several ways, and both development
sets are translated before and after. Both lengths are given in steps, so that the machine does not
decide the figures. Needs transformers and sentencepiece.
"""

import argparse
import io
import json
import lzma
import os
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.multi30k import run
from benchmarks.paired import Figures, environment

TOKENS = 3_000
"""Of a batch, source and target together, with padding."""
PEAK, WARMUP = 1e-3, 400
LINES = 1_000
"""Of each development set."""
OTHER = ("msctd-de-en/train.en.xz", "msctd-de-en/train.de.xz")
MIXED = '[{src="multi30k/train.en.xz", tgt="multi30k/train.de.xz"}]'
WAYS: dict[str, Sequence[str]] = {
    "all": (),
    "mixed": (f"data.corpora={MIXED}",),
    "lora": ("start.lora.rank=16",),
}
"""All weights, all weights with Multi30k mixed in, and adapters: what is added to the command."""
TESTS = {
    "MSCTD": ("msctd-de-en/dev.en", "msctd-de-en/dev.de"),
    "Multi30k": ("multi30k/val.en", "multi30k/val.de"),
}


def lines(path: Path) -> list[str]:
    """The lines of a file, compressed or not."""
    data = path.read_bytes()
    return (lzma.decompress(data) if path.suffix == ".xz" else data).decode().splitlines()


def learn_pieces(texts: list[str], folder: Path, size: int) -> Any:  # noqa: ANN401 (their class)
    """Learn one SentencePiece model for both languages; write the files of a Marian tokenizer."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        vocab_size=size,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [processor.id_to_piece(number) for number in range(3, processor.get_piece_size())]
    vocabulary = {name: at for at, name in enumerate(["</s>", "<unk>", *pieces, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), "utf-8")
    settings = {"tokenizer_class": "MarianTokenizer", "model_max_length": 512}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    return processor, vocabulary


def batches(
    pairs: list[tuple[list[int], list[int]]],
) -> Iterator[list[tuple[list[int], list[int]]]]:
    """Batches of pairs of similar length, pass after pass, in another order each time."""
    draw = random.Random(1)
    while True:
        ordered = sorted(pairs, key=lambda pair: len(pair[0]) + len(pair[1]) + draw.random())
        size = [max(len(s), len(t)) for s, t in ordered]
        cut, start = [], 0
        for at in range(1, len(ordered) + 1):
            if at == len(ordered) or 2 * size[at] * (at - start + 1) > TOKENS:
                cut.append(ordered[start:at])
                start = at
        draw.shuffle(cut)
        yield from cut


def padded(rows: list[list[int]], filler: int) -> torch.Tensor:
    """Rows of ids as one tensor."""
    longest = max(map(len, rows))
    return torch.tensor([row + [filler] * (longest - len(row)) for row in rows])


def publish(folder: Path, data: Path, updates: int, pieces: int) -> None:
    """Train a Marian-shaped model on Multi30k by transformers and write its folder."""
    from transformers import MarianConfig, MarianMTModel

    folder.mkdir(parents=True)
    src, tgt = (lines(data / f"multi30k/train.{lang}.xz") for lang in ("en", "de"))
    processor, vocabulary = learn_pieces(src + tgt, folder, pieces)
    pad, unk = vocabulary["<pad>"], vocabulary["<unk>"]

    def ids(text: str) -> list[int]:
        pieces = processor.encode(text, out_type=str)
        return [*(vocabulary.get(piece, unk) for piece in pieces), vocabulary["</s>"]]

    pairs = [(ids(s), ids(t)) for s, t in zip(src, tgt, strict=True)]
    torch.manual_seed(1)
    sizes = {f"{side}_layers": 3 for side in ("encoder", "decoder")}
    sizes |= {f"{side}_attention_heads": 4 for side in ("encoder", "decoder")}
    sizes |= {f"{side}_ffn_dim": 1024 for side in ("encoder", "decoder")}
    config = MarianConfig(
        vocab_size=len(vocabulary), d_model=256, max_position_embeddings=512, **sizes,
        scale_embedding=True, activation_function="swish", pad_token_id=pad, eos_token_id=0,
        bos_token_id=0, decoder_start_token_id=pad, forced_eos_token_id=0, num_beams=4,
    )  # fmt: skip
    model = MarianMTModel(config).train()
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    for step, batch in zip(range(1, updates + 1), batches(pairs), strict=False):
        for group in optimizer.param_groups:
            group["lr"] = PEAK * min(step / WARMUP, 1 - step / (updates + 1))
        src_BS, tgt_BT = (padded([pair[side] for pair in batch], pad) for side in (0, 1))
        before = torch.full((len(batch), 1), pad)
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(
                input_ids=src_BS,
                attention_mask=src_BS != pad,
                decoder_input_ids=torch.cat([before, tgt_BT[:, :-1]], 1),
            ).logits
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1).float(), tgt_BT.flatten(), ignore_index=pad, label_smoothing=0.1
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 100 == 0:
            print(f"step {step}: {loss.item():.2f}", file=sys.stderr, flush=True)
    model.generation_config.bad_words_ids = [[pad]]
    model.eval().save_pretrained(folder)


def bleu(model: Path, data: Path, out: Path) -> dict[str, float]:
    """BLEU of greedy translations of the beginning of both development sets."""
    scores = {}
    for name, sides in TESTS.items():
        files = [out / Path(side).name for side in sides]
        for file, side in zip(files, sides, strict=True):
            file.write_text("\n".join(lines(data / side)[:LINES]) + "\n", "utf-8")
        given = ("--src", str(files[0]), "--ref", str(files[1]))
        said = run(["dragoman", "evaluate", str(model), *given, "--beam-size", "1", "--json"])
        scores[name] = round(json.loads(said)["bleu"], 1)
    return scores


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Publish, adapt and score."""
    parser = argparse.ArgumentParser(prog="benchmarks adapted", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/adapted"), metavar="FOLDER")
    parser.add_argument("--updates", type=int, default=2_400, help="of training on Multi30k")
    parser.add_argument("--pieces", type=int, default=4_000)
    parser.add_argument("--steps", type=int, default=300, help="of each adaptation")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    given = parser.parse_args(arguments)
    data, base = Path(os.environ["DRAGOMAN_DATA"]), given.out / "published"
    if not (base / "model.safetensors").exists():
        publish(base, data, given.updates, given.pieces)
    figures: Figures = {"as published": bleu(base, data, given.out)}
    src, tgt = (str(data / name) for name in OTHER)
    for way in given.ways:
        out = given.out / way
        texts = ("--from", str(base), "--src", src, "--tgt", tgt, "--out", str(out))
        steps = (
            f"train.max_steps={given.steps}",
            f"train.validate_every={given.steps}",
            "train.warmup_steps=20",
            "train.validate_limit=100",
        )
        run(["dragoman", "train", *texts, *steps, *WAYS[way]])
        figures[way] = bleu(out, data, given.out)
    options = {name: str(value) for name, value in vars(given).items() if name != "out"}
    machine = environment(["transformers", "sentencepiece"])
    return {"adapted": figures | {"options": options, "environment": machine}}
