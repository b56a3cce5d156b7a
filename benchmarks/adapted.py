"""Adapt a pretrained translator: Multi30k by transformers, then dialogue by `dragoman train`.

    python -m benchmarks adapted --out runs/adapted --minutes 5 --steps 120

First a Marian-shaped model (3+3 layers, d_model 256, a SentencePiece vocabulary of 4,000) learns
English to German from Multi30k, by `MarianMTModel` and its own loss: the folder that a publisher
would hand out. Then `dragoman train --from` adapts it to the dialogues of MSCTD in several ways,
and both development sets are translated before and after. One thread; needs transformers and
sentencepiece, and the data at $DRAGOMAN_DATA.
"""

import argparse
import io
import json
import lzma
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.multi30k import run

PIECES = 4_000
TOKENS = 3_000
"""Of a batch, source and target together, with padding."""
PEAK = 1e-3
LINES = 1_000
"""Of each development set."""
OTHER = ("msctd-de-en/train.en.xz", "msctd-de-en/train.de.xz")
MIXED = '[{src="multi30k/train.en.xz", tgt="multi30k/train.de.xz"}]'
WAYS: dict[str, Sequence[str]] = {
    "all weights": (),
    "all weights, Multi30k mixed in": (f"data.corpora={MIXED}",),
    "LoRA, rank 16": ("start.lora.rank=16",),
}
"""What is added to the command of each."""
TESTS = {
    "MSCTD": ("msctd-de-en/dev.en", "msctd-de-en/dev.de"),
    "Multi30k": ("multi30k/val.en", "multi30k/val.de"),
}


def lines(path: Path) -> list[str]:
    """The lines of a file, compressed or not."""
    data = path.read_bytes()
    return (lzma.decompress(data) if path.suffix == ".xz" else data).decode().splitlines()


def learn_pieces(texts: list[str], folder: Path) -> Any:  # noqa: ANN401 (their class)
    """Learn one SentencePiece model for both languages; write the files of a Marian tokenizer."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        vocab_size=PIECES,
        num_threads=1,
        minloglevel=2,
    )
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [processor.id_to_piece(number) for number in range(3, PIECES)]
    vocabulary = {name: at for at, name in enumerate(["</s>", "<unk>", *pieces, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), "utf-8")
    settings = {"tokenizer_class": "MarianTokenizer", "model_max_length": 512}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    from transformers import MarianTokenizer

    MarianTokenizer.from_pretrained(folder).save_pretrained(folder)
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


def publish(folder: Path, data: Path, minutes: float) -> None:
    """Train a Marian-shaped model on Multi30k by transformers and write its folder."""
    from transformers import MarianConfig, MarianMTModel

    folder.mkdir(parents=True)
    src, tgt = (lines(data / f"multi30k/train.{lang}.xz") for lang in ("en", "de"))
    processor, vocabulary = learn_pieces(src + tgt, folder)
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
    started, tokens = time.monotonic(), 0
    for step, batch in enumerate(batches(pairs), start=1):
        done = (time.monotonic() - started) / 60 / minutes
        if done >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = PEAK * min(step / 300, 1 - done)
        src_BS, tgt_BT = (padded([pair[side] for pair in batch], pad) for side in (0, 1))
        before = torch.full((len(batch), 1), pad)
        logits = model(
            input_ids=src_BS,
            attention_mask=src_BS != pad,
            decoder_input_ids=torch.cat([before, tgt_BT[:, :-1]], 1),
        ).logits
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), tgt_BT.flatten(), ignore_index=pad, label_smoothing=0.1
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        tokens += src_BS.numel() + tgt_BT.numel()
        if step % 100 == 0:
            print(f"step {step}: {loss.item():.2f}, {tokens:,} tokens", file=sys.stderr, flush=True)
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


def main(arguments: Sequence[str]) -> None:
    """Publish, adapt and score; print one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks adapted", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/adapted"))
    parser.add_argument("--minutes", type=float, default=5.0, help="of training on Multi30k")
    parser.add_argument("--steps", type=int, default=120, help="of each adaptation")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    data, base = Path(os.environ["DRAGOMAN_DATA"]), given.out / "published"
    if not (base / "model.safetensors").exists():
        publish(base, data, given.minutes)
    figures: dict[str, Any] = {"as published": bleu(base, data, given.out)}
    print(json.dumps(figures), file=sys.stderr, flush=True)
    src, tgt = (str(data / name) for name in OTHER)
    for number, (way, settings) in enumerate(WAYS.items()):
        out = given.out / f"way-{number}"
        texts = ("--from", str(base), "--src", src, "--tgt", tgt, "--out", str(out))
        steps = (
            f"train.max_steps={given.steps}",
            f"train.validate_every={given.steps}",
            "train.warmup_steps=20",
            "train.validate_limit=100",
        )
        program = [sys.executable, "-m", "dragoman", "train", *texts, *steps, *settings]
        subprocess.run(program, check=True)
        figures[way] = bleu(out, data, given.out)
        print(json.dumps(figures), file=sys.stderr, flush=True)
    print(json.dumps(figures, indent=2))
