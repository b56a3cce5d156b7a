"""Hugging Face's Marian class on the texts of a recipe: trained in a process of its own.

    python -m benchmarks.marian RECIPE OUT RATE MODE [KEY=VALUE ...]

The size, tokenizer, pairs, batches, minutes and schedule are those of the recipe, with RATE as the
peak of the rate; MODE is `eager` or `compiled`. The clock starts where that of `dragoman train`
does, before the tokenizer is trained and the texts are tokenised. There is no validation: the last
weights are the model, written with the tokenizer and `finished.json`.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.decoding import make_marian
from benchmarks.multi30k import translation_recipe
from dragoman.data.batches import Stream
from dragoman.data.corpus import CorpusTexts
from dragoman.data.padding import enclosed
from dragoman.data.prepare import encode_all, prepare
from dragoman.nn import autocast
from dragoman.tasks.translate.batches import PairBatch, PairBatches
from dragoman.tasks.translate.recipe import TranslateRecipe
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.train import train_tokenizer
from dragoman.train.config import TrainConfig
from dragoman.train.device import choose_device, choose_precision
from dragoman.train.optimizer import learning_rate, make_optimizer
from dragoman.train.progress import Progress

TOLD = 100
"""Steps between lines of the log; the loss is read then only, since reading waits for a GPU."""
ROWS = 64
"""Sentences that are translated at a time."""


def make_model(recipe: TranslateRecipe, tokenizer: Tokenizer) -> Any:  # noqa: ANN401 (their class)
    """The class with the sizes of a recipe's model."""
    sizes = replace(
        recipe.model,
        src_vocab_size=tokenizer.vocab_size,
        tgt_vocab_size=tokenizer.vocab_size,
        pad_id=tokenizer.pad_id,
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
    )
    return make_marian(sizes, forced_eos_token_id=tokenizer.eos_id)


def make_step(
    model: Any,  # noqa: ANN401 (their class)
    config: TrainConfig,
    precision: AbstractContextManager[object],
    scaler: torch.amp.GradScaler,
) -> Any:  # noqa: ANN401
    """The usual step on a batch at a rate: autocast, smoothed cross-entropy, clipping, Adam."""
    optimizer = make_optimizer(model, config)

    def step(batch: PairBatch, rate: float) -> torch.Tensor:
        for group in optimizer.param_groups:
            group["lr"] = rate
        with precision:
            logits = model(
                input_ids=batch.src_BS,
                attention_mask=(batch.src_BS != model.config.pad_token_id).long(),
                decoder_input_ids=batch.tgt_in_BT,
                use_cache=False,
            ).logits
            loss = F.cross_entropy(
                logits.flatten(0, 1),
                batch.tgt_out_BT.flatten(),
                ignore_index=model.config.pad_token_id,
                label_smoothing=config.label_smoothing,
            )
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm or float("inf"))
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        return loss.detach()

    return step


def train(recipe: TranslateRecipe, rate: float, out: Path, *, compiled: bool) -> dict[str, Any]:
    """Train the class for the minutes of the recipe, write its folder; return what it did."""
    started, config = monotonic(), replace(recipe.train, learning_rate=rate)
    (corpus,) = recipe.data.training
    tokenizer = train_tokenizer(CorpusTexts([corpus], ("src", "tgt")), recipe.tokenizer)
    pairs = prepare(corpus, tokenizer, tokenizer, recipe.data.cache_folder)
    device = choose_device(config.device)
    torch.backends.cuda.enable_cudnn_sdp(enabled=False)  # it plans anew for each shape
    precision = choose_precision(config.precision, device)
    torch.manual_seed(config.seed)
    model = make_model(recipe, tokenizer).to(device).train()
    parameters = sum(each.numel() for each in model.parameters() if each.requires_grad)
    if compiled:
        model.compile(dynamic=True)  # batches differ in shape
    scaler = torch.amp.GradScaler(device.type, enabled=precision == "fp16")
    step = make_step(model, config, autocast(precision, device), scaler)
    batches = Stream(PairBatches([pairs], replace(recipe.batch, subword_sampling=0.0)), seed=1)
    progress, losses = Progress(prepared=monotonic() - started), []
    progress.seconds = progress.prepared
    while progress.limit(config) is None:
        batch = next(batches).to(device)
        done = progress.done(config), recipe.model.d_model
        loss = step(batch, learning_rate(config, progress.next_step(config), *done))
        progress.step, progress.tokens = progress.step + 1, progress.tokens + batch.num_tokens
        if progress.step % TOLD == 0 or progress.step == 1:
            losses.append((progress.step, float(loss)))
            print(f"step {progress.step:,}: loss {losses[-1][1]:.3f}", flush=True)
        progress.seconds = monotonic() - started
    if progress.step == 0:
        raise SystemExit("The minutes were over before the first step; give more.")
    last = float(loss)  # waits for what a GPU has still to do
    seconds = monotonic() - started
    model.save_pretrained(out)
    tokenizer.save(out / "tokenizer.json")
    return {
        "steps": progress.step,
        "tokens": progress.tokens,
        "seconds": seconds,
        "prepared": progress.prepared,
        "precision": precision,
        "parameters": parameters,
        "losses": [*losses, (progress.step, last)],
    }


@torch.inference_mode()
def translate(folder: Path, lines: Sequence[str], beam: int, penalty: float) -> list[str]:
    """Translate lines by its `generate`, in float32; scores are divided by `length ** penalty`."""
    from transformers import MarianMTModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    device = choose_device("auto")
    model = MarianMTModel.from_pretrained(folder).to(device).eval()
    sources, found = encode_all(lines, tokenizer), [""] * len(lines)
    order = sources.lengths.argsort(kind="stable")
    for rows in (order[at : at + ROWS] for at in range(0, len(order), ROWS)):
        src_BS = enclosed(sources.take(rows), tokenizer.pad_id, (), (tokenizer.eos_id,)).to(device)
        written_BT = model.generate(
            input_ids=src_BS,
            attention_mask=(src_BS != tokenizer.pad_id).long(),
            num_beams=beam,
            length_penalty=penalty,
            max_new_tokens=2 * src_BS.shape[1] + 20,
            bad_words_ids=[[tokenizer.pad_id]],
        )
        for row, ids in zip(rows.tolist(), written_BT[:, 1:].tolist(), strict=True):
            found[row] = tokenizer.decode(_before(ids, tokenizer.eos_id))
    return found


def _before(ids: Sequence[int], end: int) -> Iterator[int]:
    """The ids before the first that ends a text."""
    return iter(ids[: ids.index(end)] if end in ids else ids)


def main() -> None:
    """Train, and write what was done."""
    name, folder, rate, mode, *settings = sys.argv[1:]
    out = Path(folder)
    out.mkdir(parents=True)
    import transformers  # noqa: F401 -- imports do not count, nor do ours

    done = train(translation_recipe(name, settings), float(rate), out, compiled=mode == "compiled")
    (out / "finished.json").write_text(json.dumps(done, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
