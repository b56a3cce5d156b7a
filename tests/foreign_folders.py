"""Tokenizer folders in the published format, trained on a few texts, written by `transformers`.

Each function of `FAMILIES` writes the folder of one family and returns the `config.json` next to
it. `fast=False` leaves `tokenizer.json` out, as in older folders.
"""

import io
import json
import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer, Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.trainers import BpeTrainer

from dragoman.folder.tokenizers.pieces import CODES

SENTENCES = (
    "A man in an orange hat starring at something.",
    "The committee's report (2021) wasn't read by 1,234 people, was it?",
    "Ein Boston Terrier läuft über saftig-grünes Gras vor einem weißen Zaun.",
    "Un garçon sourit devant un mur de pierre, à l'extérieur d'une maison.",
    "Мальчик в синей рубашке бежит по берегу моря, а девочка смеётся.",
    "Η γυναίκα διαβάζει ένα βιβλίο κάτω από το δέντρο.",
    "رجل يرتدي قبعة حمراء يقف بجانب البحر وينظر إلى السماء.",
    "एक आदमी लाल टोपी पहने हुए समुद्र के किनारे खड़ा है।",
    "一个戴着红帽子的男人站在海边，看着天空。我喜欢学习人工智能。",
    "赤い帽子をかぶった男の人が海のそばに立っています。コンピューター",
    "빨간 모자를 쓴 남자가 바닷가에 서서 하늘을 보고 있다.",
    "ผู้ชายสวมหมวกสีแดงยืนอยู่ริมทะเล",
)
"""Texts in eight scripts, for tests without other data."""

NOISE = (
    "  ", " ", "\t", "\u00a0", "\u3000", "\u200b", "\u200d", "\ufeff", "\x00", "\x07", "\x1b[0m",
    "\r", "👩‍👩‍👧", "🇩🇪", "😀", "e\u0301", "ﬁ", "①", "Ｆｕｌｌ", "<b>", "</i>", "&amp;", "&lt;",
    "<s>", "</s>", "<unk>", "<pad>", "<mask>", "[MASK]", "[CLS]", "[UNK]", "<|endoftext|>",
    ">>deu<<", "__en__", "eng_Latn", "en_XX", "▁", "Ġ", "##ing", "<0x0A>", "<extra_id_0>",
    "http://a.b/c?d=1#e", "'s", " n't", " .", "…", "—", "\U0001f468\U0001f3fd", "\ufffd",
)  # fmt: skip
"""What real lines contain between words: markup, emoji, control characters, odd spacing."""


SPECIAL = (
    "<s>", "</s>", "<unk>", "<pad>", "<mask>", "[MASK]", "[CLS]", "[UNK]", "<|endoftext|>",
    ">>deu<<", "__en__", "eng_Latn", "en_XX", "<extra_id_0>",
)  # fmt: skip
"""Names of special tokens, which transformers recognizes in texts and dragoman does not."""


def without_special(lines: Sequence[str]) -> list[str]:
    """Return the lines that transformers encodes as dragoman does by default."""
    return [line for line in lines if not any(name in line for name in SPECIAL)]


def noisy(lines: Sequence[str], number: int, seed: int = 0) -> list[str]:
    """Take lines in turn, two of three with noise somewhere in them."""
    draw = random.Random(seed)
    return [_disturbed(lines[at % len(lines)], draw, at % 3) for at in range(number)]


def _disturbed(line: str, draw: random.Random, times: int) -> str:
    for _ in range(times):
        place = draw.randrange(len(line) + 1)
        line = line[:place] + draw.choice(NOISE) + line[place:]
    return line


def set_keys(folder: Path, file: str = "config.json", **keys: object) -> None:
    """Set keys in a JSON file."""
    said = json.loads((folder / file).read_bytes())
    (folder / file).write_text(json.dumps(said | keys))


NAMES = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
}
"""The special tokens of fairseq models."""


@cache
def spm(kind: str, size: int = 600, *, fallback: bool = False, t5: bool = False) -> bytes:
    """Train a SentencePiece model, `unigram` or `bpe`."""
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    ids: Any = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1} if t5 else {}
    SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 20),
        model_writer=model,
        model_type=kind,
        vocab_size=size,
        hard_vocab_limit=False,
        byte_fallback=fallback,
        minloglevel=2,
        **ids,
    )
    return model.getvalue()


def _pieces(model: bytes) -> list[str]:
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(id_) for id_ in range(processor.get_piece_size())]


def _saved(folder: Path, name: str, **settings: object) -> None:
    """Save the folder again with the class of `transformers` that reads its files."""
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from a package that changes punctuation
        tokenizer = getattr(transformers, name).from_pretrained(folder, **settings)
    tokenizer.save_pretrained(folder)


def _without_json(folder: Path, keep: Sequence[str], *, fast: bool) -> None:
    """Remove the files that only newer folders have."""
    for path in () if fast else folder.iterdir():
        if path.name not in (*keep, "tokenizer_config.json", "special_tokens_map.json"):
            path.unlink()


def marian(folder: Path, *, fast: bool = True, apart: bool = False) -> dict[str, Any]:  # noqa: ARG001
    """Write two models, a shared vocabulary in another order, and two languages."""
    models = {"source.spm": spm("unigram"), "target.spm": spm("unigram", 500)}
    for name, model in models.items():
        (folder / name).write_bytes(model)
    sides = [_pieces(model) for model in models.values()]
    named = {"vocab.json": sides[0]} | {"target_vocab.json": sides[1]}
    for name, pieces in (named if apart else {"vocab.json": sides[0] + sides[1]}).items():
        rest = sorted({*pieces} - {"<s>", "</s>", "<unk>"})[:-5]  # some pieces have no id
        names = ["</s>", "<unk>", *rest, *([] if apart else [">>deu<<", ">>fra<<"]), "<pad>"]
        (folder / name).write_text(json.dumps({p: i for i, p in enumerate(names)}))
    settings = {"separate_vocabs": True} if apart else {}
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "MarianTokenizer", **settings})
    )
    _saved(folder, "MarianTokenizer")
    return {"model_type": "marian", "decoder_start_token_id": 0}


def m2m100(folder: Path, *, fast: bool = True) -> dict[str, Any]:  # noqa: ARG001
    """Write one model, with fairseq's ids."""
    (folder / "sentencepiece.bpe.model").write_bytes(spm("bpe"))
    names = ["<s>", "<pad>", "</s>", "<unk>", *_pieces(spm("bpe"))[3:]]
    (folder / "vocab.json").write_text(json.dumps({piece: id_ for id_, piece in enumerate(names)}))
    langs = {"additional_special_tokens": [f"__{code}__" for code in CODES["m2m100"].split()]}
    (folder / "special_tokens_map.json").write_text(json.dumps(langs))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "M2M100Tokenizer", "src_lang": None} | NAMES)
    )
    return {"model_type": "m2m_100", "decoder_start_token_id": 2}


def _by_model(cls: str, file: str, kind: str, model_type: str) -> Callable[..., dict[str, Any]]:
    def make(folder: Path, *, fast: bool = True) -> dict[str, Any]:
        is_llama = cls == "LlamaTokenizer"
        (folder / file).write_bytes(spm(kind, fallback=is_llama, size=900, t5=cls == "T5Tokenizer"))
        bos = {"add_bos_token": True} if is_llama else {}
        langs = {"extra_special_tokens": ["deu_Latn", "eng_Latn", "zho_Hans"]}
        _saved(folder, cls, **bos, **(langs if cls == "NllbTokenizer" else {}))
        _without_json(folder, [file], fast=fast)
        return {"model_type": model_type}

    return make


def _byte_level(cls: str, model_type: str) -> Callable[..., dict[str, Any]]:
    def make(folder: Path, *, fast: bool = True) -> dict[str, Any]:
        specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>"]
        learnt = ByteLevelBPETokenizer()
        learnt.train_from_iterator(SENTENCES * 20, 700, special_tokens=specials)
        learnt.save_model(str(folder))
        _saved(folder, cls)
        if not (folder / "merges.txt").exists():
            learnt.save_model(str(folder))
        _without_json(folder, ["vocab.json", "merges.txt"], fast=fast)
        return {"model_type": model_type}

    return make


def bert(folder: Path, *, fast: bool = True) -> dict[str, Any]:
    """Write a lower-case WordPiece model."""
    learnt = BertWordPieceTokenizer()
    learnt.train_from_iterator(iter(SENTENCES * 20), 900)
    learnt.save_model(str(folder))
    _saved(folder, "BertTokenizer")
    if not (folder / "vocab.txt").exists():
        learnt.save_model(str(folder))
    _without_json(folder, ["vocab.txt"], fast=fast)
    return {"model_type": "bert"}


def gemma(folder: Path, *, fast: bool = True) -> dict[str, Any]:  # noqa: ARG001 -- only fast
    """Write a BPE model with bytes for unknown characters, and without a mark before a text."""
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    names = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<start_of_turn>", "<end_of_turn>"]
    learnt = Tokenizer(BPE(unk_token="<unk>"))  # noqa: S106
    pieces = [*names, *(f"<0x{byte:02X}>" for byte in range(256))]
    lines = [line.replace(" ", "▁") for line in SENTENCES * 20]
    learnt.train_from_iterator(lines, BpeTrainer(vocab_size=900, special_tokens=pieces))
    model = json.loads(learnt.to_str())["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    made = transformers.GemmaTokenizer(vocab=model["vocab"], merges=merges)
    made.add_special_tokens({"additional_special_tokens": names[-2:]})
    made.save_pretrained(folder)
    return {"model_type": "gemma3_text"}


def fsmt(folder: Path, *, fast: bool = True, apart: bool = False) -> dict[str, Any]:  # noqa: ARG001
    """Write byte-pair encoding of Moses' words, with and without an id of each piece."""
    moses = pytest.importorskip("sacremoses", reason="needs sacremoses")
    cut = moses.MosesTokenizer("en").tokenize
    lines = [cut(line, aggressive_dash_splits=True, return_str=True) for line in SENTENCES * 20]
    learnt = Tokenizer(BPE(end_of_word_suffix="</w>"))
    learnt.pre_tokenizer = WhitespaceSplit()
    learnt.train_from_iterator(lines, BpeTrainer(vocab_size=700, end_of_word_suffix="</w>"))
    model = json.loads(learnt.to_str())["model"]
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *sorted(model["vocab"])[::-1], "madeupword0000"]
    for name, step in {"src": 9, "tgt": 7 if apart else 9}.items():
        kept = [piece for n, piece in enumerate(pieces) if n < 4 or n % step]
        numbered = {piece: id_ for id_, piece in enumerate(kept)}
        (folder / f"vocab-{name}.json").write_text(json.dumps(numbered))
    merges = "".join(f"{a} {b} {n}\n" for n, (a, b) in enumerate(model["merges"]))
    (folder / "merges.txt").write_text(f"#version: 0.2\n{merges}")
    langs = {"langs": ["en", "de" if apart else "en"]}
    said = {"tokenizer_class": "FSMTTokenizer", "do_lower_case": apart, **langs, **NAMES}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    return {"model_type": "fsmt", "decoder_start_token_id": 2, **langs}


FAMILIES: Mapping[str, Callable[..., dict[str, Any]]] = {
    "marian": marian,
    "m2m100": m2m100,
    "fsmt": fsmt,
    "t5": _by_model("T5Tokenizer", "spiece.model", "unigram", model_type="t5"),
    "mbart": _by_model("MBartTokenizer", "sentencepiece.bpe.model", "unigram", model_type="mbart"),
    "mbart50": _by_model(
        "MBart50Tokenizer", "sentencepiece.bpe.model", "unigram", model_type="mbart"
    ),
    "nllb": _by_model("NllbTokenizer", "sentencepiece.bpe.model", "bpe", model_type="m2m_100"),
    "llama": _by_model("LlamaTokenizer", "tokenizer.model", "bpe", model_type="llama"),
    "xlm-roberta": _by_model(
        "XLMRobertaTokenizer", "sentencepiece.bpe.model", "unigram", model_type="xlm-roberta"
    ),
    "camembert": _by_model(
        "CamembertTokenizer", "sentencepiece.bpe.model", "unigram", model_type="camembert"
    ),
    "gpt2": _byte_level("GPT2Tokenizer", "gpt2"),
    "bart": _byte_level("BartTokenizer", "bart"),
    "roberta": _byte_level("RobertaTokenizer", "roberta"),
    "qwen2": _byte_level("Qwen2Tokenizer", "qwen2"),
    "gemma": gemma,
    "bert": bert,
}
