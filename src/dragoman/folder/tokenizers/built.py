"""Tokenizers for folders without a `tokenizer.json`, built from their other files.

A SentencePiece model file is a message of Protocol Buffers, of which little is needed: its pieces
with their scores, and the map of characters that its normalizer was given. Each family has its
own rules for what surrounds the pieces (Hugging Face's converters have the same).
"""

import struct
from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken, Regex, decoders, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend
from tokenizers.models import BPE, Unigram, WordPiece

from dragoman.errors import InputError
from dragoman.files.pieces import LARGEST, fields
from dragoman.files.reading import read_file
from dragoman.folder.tokenizers.files import LANGUAGE, TokenizerFolder, read_vocab

Scores = list[tuple[str, float]]

LONGEST_PIECE = 512
"""Most characters of a piece, each of whose parts is looked up: the longest published ones are 128
spaces."""
MOST_EXTRA = 10_000
"""Most sentinels of T5, which published models have 100 to 300 of."""

FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")
"""The first ids of mBART and NLLB, in place of the three of SentencePiece."""

QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""What Qwen takes for a word."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """What is read of a SentencePiece model."""

    scores: Scores
    """Each piece and its score."""
    added: list[AddedToken]
    """Pieces that are looked for in texts as they are: control and user-defined ones."""
    charsmap: bytes
    """The normalizer's map of characters; empty for none."""

    @classmethod
    def read(cls, path: Path) -> "Pieces":
        """Read a model file; whatever a damaged one raises is the caller's."""
        scores: Scores = []
        added: list[AddedToken] = []
        charsmap = b""
        for field, value in fields(read_file(path, LARGEST)):
            if field == 1:
                inner = dict(fields(value))
                piece, kind = inner[1].decode(), inner.get(3, b"\1")[0]
                if len(piece) > LONGEST_PIECE:
                    raise InputError(f"{path} has a piece of {len(piece):,} characters.")
                scores.append((piece, struct.unpack("<f", inner.get(2, bytes(4)))[0]))
                if kind in (CONTROL, USER_DEFINED):
                    added.append(AddedToken(piece, normalized=False, special=kind == CONTROL))
            elif field == 3:
                charsmap = dict(fields(value)).get(2, b"")
        if len(scores) < len(FAIRSEQ):
            raise InputError(f"{path} holds no pieces; download it again.")
        return cls(scores, added, charsmap)


CONTROL, USER_DEFINED = 3, 4


def from_pieces(folder: TokenizerFolder, name: str) -> Backend:
    """Build a tokenizer from a SentencePiece model, by the rules of the model's family."""
    pieces = Pieces.read(folder.path / name)
    match folder.family:
        case "t5" | "mt5" | "umt5":
            backend = _t5(folder, pieces)
        case "mbart":
            backend = _unigram([*_fairseq(pieces), *_languages(folder, name), "<mask>"], pieces, 3)
            _by_words(backend)
        case "mbart50":
            backend = _unigram([*_fairseq(pieces), *_languages(folder, name), "<mask>"], pieces, 3)
            _by_spaces(backend, pieces, always=True)
        case "nllb" | "m2m100":
            backend = _bpe(list(dict.fromkeys(_fairseq(pieces))), unk="<unk>", bytes_=False)
            _by_spaces(backend, pieces, always=False)
        case "llama" | "mistral":
            backend = _llama(folder, pieces)
        case kind:
            raise InputError(
                f"{folder.path / name} belongs to a tokenizer of the kind {kind or 'unknown'}, "
                "which is not read without a tokenizer.json; write one with transformers."
            )
    backend.add_tokens(pieces.added)
    if folder.family in ("mbart", "mbart50", "nllb", "m2m100"):  # it takes the space before it:
        normalized = "mbart" not in folder.family  # the text's own, or that of the normalizer
        backend.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=normalized)])
    return backend


def from_words(folder: TokenizerFolder) -> Backend:
    """The WordPiece tokenizer of a `vocab.txt`, one piece a line (BERT, DistilBERT)."""
    lines = read_file(folder.path / "vocab.txt", LARGEST).decode().removesuffix("\n").split("\n")
    vocab = {line.rstrip("\r"): id_ for id_, line in enumerate(lines)}
    backend = Backend(WordPiece(vocab, unk_token=folder.name_of("unk", vocab) or "[UNK]"))
    accents = folder.settings.get("strip_accents")
    backend.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=folder.flag("tokenize_chinese_chars", default=True),
        strip_accents=accents if isinstance(accents, bool) else None,
        lowercase=folder.flag("do_lower_case", default=True),
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix="##")
    cls, sep = (folder.name_of(role, vocab) or role for role in ("cls", "sep"))
    backend.post_processor = processors.BertProcessing((sep, vocab[sep]), (cls, vocab[cls]))
    return backend


def from_merges(folder: TokenizerFolder) -> Backend:
    """The byte-level BPE of `vocab.json` and `merges.txt` (GPT-2, BART, RoBERTa, Qwen)."""
    vocab = read_vocab(folder.path / "vocab.json")
    lines = read_file(folder.path / "merges.txt", LARGEST).decode().split("\n")
    parts = (line.split() for line in lines if line and not line.startswith("#version"))
    merges = [(first, second) for first, second in parts]
    backend = Backend(BPE(vocab, merges, continuing_subword_prefix="", end_of_word_suffix=""))
    family, space = folder.family, folder.flag("add_prefix_space", default=False)
    by_bytes = pre_tokenizers.ByteLevel(add_prefix_space=space, use_regex="qwen" not in family)
    backend.pre_tokenizer = by_bytes
    backend.decoder = decoders.ByteLevel()
    if "qwen" in family:
        words = pre_tokenizers.Split(Regex(QWEN), "isolated")
        backend.normalizer = normalizers.NFC()
        backend.pre_tokenizer = pre_tokenizers.Sequence([words, by_bytes])
    elif "gpt2" not in family:
        cls, sep = (folder.name_of(role, vocab) or role for role in ("cls", "sep"))
        backend.post_processor = processors.RobertaProcessing((sep, vocab[sep]), (cls, vocab[cls]))
    return backend


def _fairseq(pieces: Pieces) -> list[str]:
    return [*FAIRSEQ, *(piece for piece, _ in pieces.scores[3:])]


def _languages(folder: TokenizerFolder, name: str) -> list[str]:
    """The languages of mBART in their order, which its settings list."""
    found = [token for token in folder.extra_tokens if LANGUAGE.fullmatch(token)]
    if not found:
        raise InputError(
            f"{folder.path / name} needs the list of languages of a special_tokens_map.json."
        )
    return found


def _unigram(names: list[str], pieces: Pieces, unk: int) -> Backend:
    """Pieces by their scores; a name without a piece of the model has the score 0."""
    scores = dict(pieces.scores[3:])
    return Backend(
        Unigram([(name, scores.get(name, 0.0)) for name in names], unk, byte_fallback=False)
    )


def _bpe(names: list[str], *, unk: str | None, bytes_: bool) -> Backend:
    """Pieces by the merges that make them: the earlier a piece, the earlier its merge."""
    vocab = {name: id_ for id_, name in enumerate(names)}
    cuts = (
        (id_, cut, len(name) - cut, name[:cut], name[cut:])
        for name, id_ in vocab.items()
        for cut in range(1, len(name))
        if name[:cut] in vocab and name[cut:] in vocab
    )
    order = sorted(cuts, key=lambda c: (c[0], c[1], c[2], vocab[c[3]], vocab[c[4]]))
    merges = [(first, second) for *_, first, second in order]
    return Backend(BPE(vocab, merges, unk_token=unk, fuse_unk=True, byte_fallback=bytes_))


def _t5(folder: TokenizerFolder, pieces: Pieces) -> Backend:
    number = folder.settings.get("extra_ids", 100)
    if type(number) is not int or not 0 <= number <= MOST_EXTRA:
        raise InputError(
            f"{folder.path / 'tokenizer_config.json'}: extra_ids is {number!r:.40}; it must be an "
            f"integer from 0 to {MOST_EXTRA:,}."
        )
    extra = [f"<extra_id_{at}>" for at in range(number - 1, -1, -1)]
    scores = [*pieces.scores, *((name, 0.0) for name in extra)]
    backend = Backend(Unigram(scores, 2, byte_fallback=False))
    if pieces.charsmap:
        backend.normalizer = normalizers.Precompiled(pieces.charsmap)
    _by_words(backend)
    backend.add_special_tokens(extra)
    backend.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", [piece for piece, _ in scores].index("</s>"))]
    )
    return backend


def _llama(folder: TokenizerFolder, pieces: Pieces) -> Backend:
    backend = _bpe([piece for piece, _ in pieces.scores], unk=None, bytes_=True)
    space = folder.flag("add_prefix_space", default=True)
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    # Hugging Face puts the mark before the first word alone, as the model file does
    scheme = (
        ("first" if not folder.flag("legacy", default=False) else "always") if space else "never"
    )
    backend.pre_tokenizer = pre_tokenizers.Metaspace("▁", scheme, split=False)
    strip = [decoders.Strip(" ", 1, 0)] if space else []
    backend.decoder = decoders.Sequence([*steps, *strip])
    return backend


def _by_words(backend: Backend) -> None:
    """Cut at white space of every kind, and mark each word's beginning (T5, mBART)."""
    marks = pre_tokenizers.Metaspace("▁", "always", split=True)
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), marks])
    backend.decoder = decoders.Metaspace("▁", "always", split=True)


def _by_spaces(backend: Backend, pieces: Pieces, *, always: bool) -> None:
    """Cut at spaces, of which several are one (mBART-50; NLLB where it has a map)."""
    steps = [normalizers.Replace(Regex(" {2,}"), " ")]
    if pieces.charsmap:
        backend.normalizer = normalizers.Sequence(
            [normalizers.Precompiled(pieces.charsmap), *steps]
        )
    elif always:
        backend.normalizer = normalizers.Sequence(steps)
    backend.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always", split=True)
    backend.decoder = decoders.Metaspace("▁", "always", split=True)
