"""Writes the golden folders again: `python -m tests.golden.make NAME ...`, from the repository.

Run it for a folder of a new format only. Those that are here stay as they were written, so that a
later version is held to reading them; what they answer stands in `answers.json`.
"""

import io
import json
import sys
from pathlib import Path
from typing import Any

import torch
from tests.golden.test_golden import ANSWERS, LINES, MODELS, answers
from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer

from dragoman.convert.eight_bits import quantize
from dragoman.convert.published import take_over
from dragoman.decoding import Decoding
from dragoman.folder.format import FolderConfig, save_model
from dragoman.models import EncoderDecoder, EncoderDecoderConfig
from dragoman.text.train import TokenizerConfig, train_tokenizer

DECODING = Decoding(beam_size=3, max_length_factor=0.5, max_length_constant=6)


def ours(folder: Path, *, apart: bool) -> None:
    """A translator of dragoman, with one tokenizer or two."""
    src = train_tokenizer(LINES, TokenizerConfig(vocab_size=320))
    tgt = train_tokenizer(LINES[::-2], TokenizerConfig(vocab_size=310)) if apart else src
    config = EncoderDecoderConfig(
        src_vocab_size=src.vocab_size, tgt_vocab_size=tgt.vocab_size, tie_embeddings="none",
        output_bias=True, d_model=8, num_heads=2, d_ff=16, num_encoder_layers=1,
        num_decoder_layers=1,
    )  # fmt: skip
    model = EncoderDecoder(config)
    with torch.no_grad():
        model.output.weight *= 8.0
        model.output.bias[config.eos_id] += 2.0
        model.output.bias[4:260] -= 99.0  # bytes alone make no text
    said = FolderConfig(model=config, decoding=DECODING, src_lang="aa", tgt_lang="bb")
    save_model(folder, model, said, tokenizers=(src, tgt))


def theirs(folder: Path, kind: str, sizes: dict[str, Any], **generation: object) -> Any:  # noqa: ANN401
    """Write a model by its class, with weights of strong opinions."""
    import transformers

    cls = getattr(transformers, kind)
    model = cls(cls.config_class(**sizes)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                parameter.add_(0.25 * torch.randn_like(parameter))
            if "encoder_attn." in name:
                parameter.mul_(3)
    if generation:
        model.generation_config = transformers.GenerationConfig(**generation)
    model.save_pretrained(folder)
    return model


def marian(folder: Path) -> None:
    """OPUS-MT's files: two SentencePiece models and a vocabulary of both."""
    from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

    names = ["</s>", "<unk>"]
    for side, size in (("source", 60), ("target", 50)):
        model = io.BytesIO()
        SentencePieceTrainer.train(
            sentence_iterator=iter(LINES * 20), model_writer=model, vocab_size=size,
            normalization_rule_name="identity", hard_vocab_limit=False, minloglevel=2,
        )  # fmt: skip
        (folder / f"{side}.spm").write_bytes(model.getvalue())
        found = SentencePieceProcessor(model_proto=model.getvalue())
        names += [found.id_to_piece(id_) for id_ in range(3, found.get_piece_size())]
    names = [*dict.fromkeys(names), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({name: id_ for id_, name in enumerate(names)}))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "MarianTokenizer"}')
    last = len(names) - 1
    sizes: dict[str, Any] = {}
    for stack in ("encoder", "decoder"):
        sizes |= {f"{stack}_layers": 1, f"{stack}_attention_heads": 2, f"{stack}_ffn_dim": 16}
    ids = {"pad_token_id": last, "decoder_start_token_id": last, "eos_token_id": 0}
    sizes |= {"d_model": 16, "vocab_size": len(names), "max_position_embeddings": 64}
    theirs(
        folder, "MarianMTModel", sizes | ids | {"scale_embedding": True},
        **ids, num_beams=3, max_length=12, bad_words_ids=[[last]],
    )  # fmt: skip


def llama(folder: Path) -> None:
    """A decoder with the byte-level pieces of Llama 3 in a tokenizer.json."""
    learnt = ByteLevelBPETokenizer()
    learnt.train_from_iterator(LINES * 20, 300, special_tokens=["<s>", "</s>"], show_progress=False)
    learnt.save(str(folder / "tokenizer.json"))
    names = {"bos_token": "<s>", "eos_token": "</s>", "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))
    theirs(folder, "LlamaForCausalLM", {
        "vocab_size": learnt.get_vocab_size(), "hidden_size": 8, "intermediate_size": 16,
        "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
        "max_position_embeddings": 64, "bos_token_id": 0, "eos_token_id": 1,
    }, bos_token_id=0, eos_token_id=1, max_new_tokens=6)  # fmt: skip


def bert(folder: Path) -> None:
    """A classifier with WordPiece's vocabulary."""
    learnt = BertWordPieceTokenizer()
    learnt.train_from_iterator(LINES * 20, 80, show_progress=False)
    learnt.save_model(str(folder))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    theirs(folder, "BertForSequenceClassification", {
        "vocab_size": learnt.get_vocab_size(), "hidden_size": 16, "intermediate_size": 16,
        "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 64,
        "id2label": {0: "mup", 1: "lor", 2: "tak"}, "label2id": {"mup": 0, "lor": 1, "tak": 2},
    })  # fmt: skip


def make(name: str) -> None:
    """Write one folder."""
    folder = MODELS / name
    torch.manual_seed(0)
    match name:
        case "ours-8-bits":
            quantize(MODELS / "ours", folder)
        case "marian-converted":
            take_over(MODELS / "marian", folder)
        case _:
            folder.mkdir(parents=True)
            parts = {
                "ours": lambda: ours(folder, apart=False),
                "ours-apart": lambda: ours(folder, apart=True),
                "marian": lambda: marian(folder),
                "llama": lambda: llama(folder),
                "bert": lambda: bert(folder),
            }
            parts[name]()
    known = json.loads(ANSWERS.read_text(encoding="utf-8")) if ANSWERS.exists() else {}
    text = json.dumps(known | {name: answers(folder)}, indent=1, ensure_ascii=False)
    ANSWERS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    for each in sys.argv[1:]:
        make(each)
