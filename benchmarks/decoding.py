"""Tokens per second of decoding: a model folder against Hugging Face's MarianMT class of its size.

Both read the same random sources and must write exactly as many tokens as they have, so that
neither gains by stopping early; the peer's weights are random. The peer runs in fp32, with a cache.
Ours runs as `Translator` does, by the engine: no row depends on the others.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.paired import Figures, environment, paired, show
from dragoman.decode import Beam, Forbid, Greedy, Limits, search
from dragoman.decode.shortlist import BOS, EOS, Lists, Shortlist, Shortlisted
from dragoman.folder.opening import open_folder
from dragoman.models import DecoderOnly, DecoderOnlyConfig, EncoderDecoder, EncoderDecoderConfig
from dragoman.nn import Arithmetic
from dragoman.nn.cpu.products import computing
from dragoman.tasks.held import Held

SIZE = EncoderDecoderConfig(
    src_vocab_size=8000,
    tgt_vocab_size=8000,
    d_model=256,
    num_heads=4,
    d_ff=1024,
    num_encoder_layers=6,
    num_decoder_layers=2,
)
"""What is measured when no folder is given, with random weights."""
ALWAYS, EACH = 100, 50
"""Tokens that every list has, and draws for each source token: a list of 32 source tokens then has
about 900 of 32,000 tokens. Those learnt from Multi30k have 310 of 5,000 for 13."""


Decode = Callable[[Tensor, int], list[list[int]]]
"""Writes so many tokens from each source, or on from each prompt; returns their ids."""


def our_decoder(
    held: Held[Any],
    config: EncoderDecoderConfig | DecoderOnlyConfig,
    precision: Arithmetic,
    beam_size: int,
    shortlisted: bool = False,  # noqa: FBT001, FBT002 -- as the mode of an engine says
) -> Decode:
    """Decodes by the engine and the search; by lists of tokens drawn for each sentence if asked.

    `held` is frozen in this precision.
    """
    strategy = Greedy() if beam_size == 1 else Beam(beam_size=beam_size)
    goes_on = isinstance(held.shape, DecoderOnly)
    free = goes_on or config.pad_id == config.bos_id  # where padding begins, peers may write it
    never = (config.eos_id,) if free else (config.pad_id, config.bos_id, config.eos_id)
    forbid = Forbid(never)
    shortlist = drawn_shortlist(len(held.shape.output.weight)) if shortlisted else None

    def decode(src_BS: Tensor, length: int) -> list[list[int]]:
        max_B = torch.full(src_BS.shape[:1], length, device=src_BS.device)
        first_B = src_BS[:, -1] if goes_on else None
        limits = Limits(bos_id=config.bos_id, eos_id=config.eos_id, max_B=max_B, first_B=first_B)
        processors = [forbid]
        with computing(src_BS.device, precision):
            decoder = held.frozen
            if shortlist is not None:
                found_V = [shortlist.of(row) for row in src_BS.tolist()]
                lists = [ids_V[~np.isin(ids_V, never)] for ids_V in found_V]
                decoder = Shortlisted(
                    decoder, Lists(lists, bos_id=config.bos_id, eos_id=config.eos_id)
                )
                limits = replace(limits, bos_id=BOS, eos_id=EOS)
                processors = [Forbid((EOS,))]
            found = search(decoder, src_BS, strategy, processors=processors, limits=limits)
        return [list(best.ids) for best, *_ in found]

    return decode


def drawn_shortlist(vocab_size: int) -> Shortlist:
    """What a source may become: some tokens always, `EACH` for each token, by Zipf's law."""
    drawn_VE = np.random.default_rng(0).random((vocab_size, EACH))
    ids_X = (vocab_size**drawn_VE).astype(np.int64).flatten()  # rank r: about 1 / r
    starts_V = np.arange(0, len(ids_X) + 1, EACH)
    return Shortlist(starts_V=starts_V, ids_X=ids_X, always_A=np.arange(ALWAYS))


def make_marian(sizes: EncoderDecoderConfig, **more: object) -> Any:  # noqa: ANN401 -- untyped library
    """A MarianMTModel of the same size, which is post-norm, with sinusoids and one embedding."""
    from transformers import MarianConfig, MarianMTModel

    config = MarianConfig(
        vocab_size=sizes.tgt_vocab_size,
        d_model=sizes.d_model,
        encoder_layers=sizes.num_encoder_layers,
        decoder_layers=sizes.num_decoder_layers,
        encoder_attention_heads=sizes.num_heads,
        decoder_attention_heads=sizes.num_heads,
        encoder_ffn_dim=sizes.d_ff,
        decoder_ffn_dim=sizes.d_ff,
        activation_function=sizes.activation,
        dropout=sizes.dropout,
        attention_dropout=sizes.attention_dropout,
        activation_dropout=sizes.ffn_dropout,
        scale_embedding=True,
        pad_token_id=sizes.pad_id,
        bos_token_id=sizes.bos_id,
        eos_token_id=sizes.eos_id,
        decoder_start_token_id=sizes.bos_id,
        **more,
    )
    return MarianMTModel(config)


def make_peer(config: EncoderDecoderConfig, device: torch.device) -> Any:  # noqa: ANN401 -- untyped library
    """Marian to decode with, or None without transformers."""
    try:
        return make_marian(config, forced_eos_token_id=None).to(device).eval()
    except ImportError:
        return None


def peer_decoder(peer: Any, beam_size: int) -> Decode:  # noqa: ANN401 -- untyped library
    """The same by the peer's `generate`."""

    def decode(src_BS: Tensor, length: int) -> list[list[int]]:
        before = 1 if peer.config.is_encoder_decoder else src_BS.shape[1]
        with torch.inference_mode():
            ids = peer.generate(
                input_ids=src_BS,
                attention_mask=torch.ones_like(src_BS),
                num_beams=beam_size,
                min_new_tokens=length,
                max_new_tokens=length,
                do_sample=False,
            )
        assert ids.shape[1] == before + length
        found: list[list[int]] = ids[:, before:].tolist()
        return found

    return decode


def _count(decode: Decode, src_BS: Tensor) -> int:
    return sum(map(len, decode(src_BS, src_BS.shape[1])))


def main(arguments: Sequence[str]) -> dict[str, Figures]:
    """Measure each batch size with each beam size, print the ratios and return the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks decoding", description=__doc__)
    parser.add_argument("model", nargs="?", type=Path, help="a model folder")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--beam", type=int, nargs="+", default=[1, 5])
    parser.add_argument(
        "--precision", choices=("fp32", "bf16", "int8"), default="fp32", help="of ours"
    )
    parser.add_argument("--length", type=int, default=32, help="tokens of source and of output")
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args(arguments)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if chosen.model is None:
        model, config = EncoderDecoder(SIZE).eval(), SIZE
    else:
        opened = open_folder(chosen.model)
        model, folder = opened.model, opened.config
        config = folder.model
    model.to(device)
    peer = make_peer(config, device)
    if peer is None:
        print("decoding: skipped, there is no peer: pip install transformers")
        return {}
    generator = torch.Generator().manual_seed(1)
    cases = {}
    for batch in chosen.batch:
        size = (batch, chosen.length)
        ids_BS = torch.randint(4, config.src_vocab_size, size, generator=generator).to(device)
        for beam in chosen.beam:
            held: Held[Any] = Held.of(model, chosen.precision)
            ours = our_decoder(held, config, chosen.precision, beam)
            theirs = peer_decoder(peer, beam)
            sides = (partial(_count, decode, ids_BS) for decode in (ours, theirs))
            found = paired(*sides, chosen.rounds)
            cases[f"{batch}x{beam}"] = found
            show(f"decoding {chosen.precision}, {batch} x beam {beam}", found)
    options = vars(chosen) | {"model": chosen.model and chosen.model.name}
    machine = environment(["transformers"])
    name = "decoding" if chosen.precision == "fp32" else f"decoding-{chosen.precision}"
    return {name: {"options": options, "environment": machine, "cases": cases}}
