"""One trainer in a process of its own: it takes the steps that it is told, and is timed.

    python -m benchmarks.train_engines ENGINE MODE SIZE THREADS TOKENS

Each line in is a JSON object `{"batches": n}`: take the next n steps (forward, loss, backward,
clipping, Adam) on the batches, which are the same for all engines. Each line out is one,
`{"tokens", "seconds", "loss"}`. The first line out is `{"start": seconds}`; after the end of the
input comes `{"peak": bytes}`. MODE is a precision, or `bf16+compiled`: the model of a peer through
`torch.compile`. Batches have up to TOKENS tokens. Where there is a GPU all train there, and the
peak is that of its memory.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.processes import peak_memory, serve

PAIRS = 29_000
"""As many as Multi30k has, so that batches have as little padding (3 %)."""
NUM_BATCHES = 45
SMOOTHING = 0.1
DROPOUT = 0.1
"""Wherever `torch.nn.Transformer` has it: of attention weights and inside the feed-forward too."""

Step = Callable[[Any], float]
"""Takes a step on a batch of pairs; returns the loss."""


def batches(vocab_size: int, max_tokens: int) -> list[Any]:
    """Batches as a run plans them, of random ids with the lengths of image captions.

    Of Multi30k in 8,000 pieces: 14.3 and 14.8 tokens on average, deviations of 4.8 and 5.5, which
    are correlated by 0.87.
    """
    from dragoman.data.batches import BatchConfig
    from dragoman.data.dataset import Finding, PairDataset, Ragged, SpecialIds
    from dragoman.tasks.translate.batches import PairBatches

    rng = np.random.default_rng(1)
    src = np.clip(rng.gamma(9.1, 1.58, PAIRS), 3, 50)
    tgt = np.clip(src + rng.normal(0.5, 2.7, PAIRS), 3, 50)
    sides = [
        Ragged.of([rng.integers(4, vocab_size, length).tolist() for length in lengths.astype(int)])
        for lengths in (src, tgt)
    ]
    dataset = PairDataset(
        name="captions",
        src=sides[0],
        tgt=sides[1],
        special=SpecialIds(pad_id=0, bos_id=2, eos_id=3),
        identical=Finding.of([]),
        content_hash="",
    )
    epoch = PairBatches([dataset], BatchConfig(max_tokens=max_tokens)).draw(rng)
    return [*islice(epoch, NUM_BATCHES)]


def dragoman(size: str, mode: str) -> Step:
    """Ours: the stepper of a training run."""
    from benchmarks.decode_peers import SIZES
    from dragoman.models import EncoderDecoder
    from dragoman.nn import autocast
    from dragoman.nn.cpu.products import training_products
    from dragoman.train.config import TrainConfig
    from dragoman.train.device import choose_device
    from dragoman.train.objective import summed_loss
    from dragoman.train.optimizer import make_optimizer
    from dragoman.train.step import Stepper

    device = choose_device("auto")
    config = replace(SIZES[size], attention_dropout=DROPOUT, ffn_dropout=DROPOUT)
    model, settings = EncoderDecoder(config).to(device), TrainConfig(max_steps=1)
    stepper: Any = Stepper(
        model=model,
        optimizer=make_optimizer(model, settings),
        precision=partial(autocast, mode, device),
        loss=lambda b: summed_loss(model, b.src_BS, b.tgt_in_BT, b.tgt_out_BT, SMOOTHING),
        clip_norm=1.0,
    )

    def step(batch: Any) -> float:  # noqa: ANN401 -- a batch of pairs
        with training_products(mode, device):
            return float(stepper([batch], 1e-4).loss)

    return step


def torch_transformer(size: str, mode: str) -> Step:
    """`torch.nn.Transformer` with the usual step."""
    from benchmarks.decode_peers import SIZES
    from benchmarks.training import PeerModel

    model = PeerModel(SIZES[size])

    def logits(batch: Any) -> Any:  # noqa: ANN401 -- a batch of pairs
        return model(batch.src_BS, batch.tgt_in_BT, batch.src_BS == 0)

    return _usual(model, logits, mode)


def huggingface(size: str, mode: str) -> Step:
    """Marian of transformers with the usual step."""
    from benchmarks.decode_peers import SIZES
    from benchmarks.decoding import make_marian

    config = replace(SIZES[size], attention_dropout=DROPOUT, ffn_dropout=DROPOUT)
    model = make_marian(config)

    def logits(batch: Any) -> Any:  # noqa: ANN401 -- a batch of pairs
        mask = (batch.src_BS != 0).long()
        return model(
            input_ids=batch.src_BS,
            attention_mask=mask,
            decoder_input_ids=batch.tgt_in_BT,
            use_cache=False,
        ).logits

    return _usual(model, logits, mode)


def joeynmt(size: str, mode: str) -> Step:
    """The model and the loss of JoeyNMT, as its own trainer calls them."""
    import torch
    from joeynmt.model import build_model
    from joeynmt.vocabulary import Vocabulary

    from benchmarks.decode_peers import SIZES

    ours = SIZES[size]
    side = {
        "type": "transformer",
        "num_heads": ours.num_heads,
        "embeddings": {"embedding_dim": ours.d_model, "scale": True, "dropout": DROPOUT},
        "hidden_size": ours.d_model,
        "ff_size": ours.d_ff,
        "dropout": DROPOUT,
        "layer_norm": "post",
    }
    config = {
        "encoder": side | {"num_layers": ours.num_encoder_layers},
        "decoder": side | {"num_layers": ours.num_decoder_layers},
        "tied_embeddings": True,
        "tied_softmax": True,
    }
    special = SimpleNamespace(sep_token=None, lang_tags=[])
    for name, token, id_ in (  # padding is 0 in our batches, where it wants the unknown token
        *(("pad", "<pad>", 0), ("unk", "<pad>", 0)),
        *(("bos", "<s>", 1), ("eos", "</s>", 2)),
    ):
        setattr(special, f"{name}_token", token)
        setattr(special, f"{name}_id", id_)
    words = [f"piece{id_}" for id_ in range(3, ours.src_vocab_size)]
    vocabulary = Vocabulary(words, special)
    model = build_model(config, src_vocab=vocabulary, trg_vocab=vocabulary)
    model.loss_function = "crossentropy", SMOOTHING
    optimizer, context = _prepared(model, mode)

    def step(batch: Any) -> float:  # noqa: ANN401 -- a batch of pairs
        mask_BT = (batch.tgt_out_BT != 0).unsqueeze(1)
        with context():
            loss, *_ = model(
                return_type="loss",
                src=batch.src_BS,
                trg_input=batch.tgt_in_BT,
                trg=batch.tgt_out_BT,
                src_mask=(batch.src_BS != 0).unsqueeze(1),
                src_length=(batch.src_BS != 0).sum(1),
                trg_mask=(batch.tgt_in_BT != 0).unsqueeze(1),
            )
        loss = loss / int(mask_BT.sum())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    return step


def _usual(model: Any, logits: Callable[[Any], Any], mode: str) -> Step:  # noqa: ANN401
    """The usual step: cross-entropy over what is no padding, clipping, fused Adam."""
    import torch
    import torch.nn.functional as F

    optimizer, context = _prepared(model, mode)

    def step(batch: Any) -> float:  # noqa: ANN401 -- a batch of pairs
        with context():
            found = logits(batch)
            loss = F.cross_entropy(
                found.flatten(0, 1),
                batch.tgt_out_BT.flatten(),
                ignore_index=0,
                label_smoothing=SMOOTHING,
            )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    return step


def _prepared(model: Any, mode: str) -> tuple[Any, Callable[[], Any]]:  # noqa: ANN401
    """A peer's model ready to learn: the optimizer, and what makes the context of a step."""
    from dragoman.nn import autocast
    from dragoman.train.config import TrainConfig
    from dragoman.train.device import choose_device
    from dragoman.train.optimizer import make_optimizer

    device = choose_device("auto")
    model.to(device)
    precision, _, compiled = mode.partition("+")
    optimizer = make_optimizer(model, TrainConfig(max_steps=1))
    model.train()
    if compiled:
        model.compile(dynamic=True)  # batches differ in shape
    return optimizer, partial(autocast, precision, device)


ENGINES = {
    "dragoman": dragoman,
    "torch": torch_transformer,
    "huggingface": huggingface,
    "joeynmt": joeynmt,
}


def main() -> None:
    """Answer until the input ends."""
    engine, mode, size, threads, max_tokens = sys.argv[1:]
    begun = perf_counter()
    if engine == "dragoman":
        from dragoman import prepare_process

        prepare_process()
    import torch

    from benchmarks.decode_peers import SIZES
    from dragoman.train.device import choose_device

    torch.set_num_threads(int(threads))
    torch.backends.cuda.enable_cudnn_sdp(enabled=False)  # it plans anew for each shape
    torch.manual_seed(1)
    step = ENGINES[engine](size, mode)
    device = choose_device("auto")
    endless: Iterator[Any] = cycle(batches(SIZES[size].src_vocab_size, int(max_tokens)))

    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        tokens, loss, start = 0, 0.0, perf_counter()
        for _ in range(asked["batches"]):
            batch = next(endless)
            loss = step(batch.to(device))
            tokens += batch.num_tokens
        return {"tokens": tokens, "seconds": perf_counter() - start, "loss": loss}

    def peak() -> int:
        return peak_memory() if device.type == "cpu" else torch.cuda.max_memory_allocated()

    serve({"start": perf_counter() - begun}, answer, peak)


if __name__ == "__main__":
    main()
