"""Tokenizers for folders without a `tokenizer.json`, built from their other files.

Each family has its own rules around the pieces of a SentencePiece model, the same as in Hugging
Face's converters.
"""

from collections.abc import Iterable

from tokenizers import Regex, decoders, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend
from tokenizers.models import BPE, Unigram, WordPiece

from dragoman.errors import InputError
from dragoman.files.reading import LARGEST_JSON, read_file
from dragoman.folder.tokenizers.files import LANGUAGE, Pieces, Scores, TokenizerFolder, read_vocab
from dragoman.folder.tokenizers.vocabularies import LARGEST
from dragoman.text.limits import parse

WORD_PIECES, BYTE_PAIRS = ("bert", "distilbert", "mpnet"), ("bart", "roberta")
"""Kinds of tokenizers whose settings overrule the normalizer, or the space before a text."""
FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")
"""The first ids of mBART and NLLB, instead of SentencePiece's first three."""


def from_pieces(folder: TokenizerFolder, name: str) -> Backend:
    """Build a tokenizer from a SentencePiece model by the rules of its family."""
    if folder.rules.build is None:
        raise InputError(
            f"{folder.path / name} belongs to a tokenizer of the kind {folder.kind or 'unknown'}, "
            "which is not read without a tokenizer.json; write one with transformers."
        )
    pieces = Pieces.read(folder.path / name)
    backend = folder.rules.build(folder, pieces)
    backend.add_tokens(pieces.added)
    if folder.rules.mask is not None:
        backend.add_special_tokens([folder.rules.mask])
    if frame := folder.rules.frame:
        names = [name for name in ("<s>", "</s>") if name in frame.split()]
        backend.post_processor = processors.TemplateProcessing(
            single=frame, special_tokens=[(name, backend.token_to_id(name)) for name in names]
        )
    return backend


def from_words(folder: TokenizerFolder) -> Backend:
    """Build a WordPiece tokenizer from `vocab.txt`, one piece per line (BERT, DistilBERT)."""
    lines = read_file(folder.path / "vocab.txt", LARGEST).decode().removesuffix("\n").split("\n")
    vocab = {line.rstrip("\r"): id_ for id_, line in enumerate(lines)}
    backend = Backend(WordPiece(vocab, unk_token=folder.name_of("unk", vocab) or "[UNK]"))
    backend.normalizer = _bert_normalizer(folder)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix="##")
    cls, sep = (folder.name_of(role, vocab) or role for role in ("cls", "sep"))
    backend.post_processor = processors.BertProcessing((sep, vocab[sep]), (cls, vocab[cls]))
    return backend


def _bert_normalizer(folder: TokenizerFolder) -> normalizers.BertNormalizer:
    accents = folder.settings.get("strip_accents")
    return normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=folder.flag("tokenize_chinese_chars", default=True),
        strip_accents=accents if isinstance(accents, bool) else None,
        lowercase=folder.flag("do_lower_case", default=True),
    )


def from_json(folder: TokenizerFolder) -> Backend:
    """Read a `tokenizer.json`, with the settings that these classes prefer to what is in it."""
    backend = parse(read_file(folder.path / "tokenizer.json", LARGEST_JSON))
    found = backend.normalizer, backend.pre_tokenizer
    if folder.kind in WORD_PIECES and isinstance(found[0], normalizers.BertNormalizer):
        backend.normalizer = _bert_normalizer(folder)
    if folder.kind in BYTE_PAIRS and isinstance(found[1], pre_tokenizers.ByteLevel):
        found[1].add_prefix_space = folder.flag("add_prefix_space", default=False)
        backend.pre_tokenizer = found[1]
    return backend


def from_merges(folder: TokenizerFolder) -> Backend:
    """Build byte-level BPE from `vocab.json` and `merges.txt` (GPT-2, BART, RoBERTa, Qwen)."""
    vocab = read_vocab(folder.path / "vocab.json")
    lines = read_file(folder.path / "merges.txt", LARGEST).decode().split("\n")
    parts = (line.split() for line in lines if line and not line.startswith("#version"))
    merges = [(first, second) for first, second in parts]
    backend = Backend(BPE(vocab, merges, continuing_subword_prefix="", end_of_word_suffix=""))
    words, space = folder.rules.words, folder.flag("add_prefix_space", default=False)
    by_bytes = pre_tokenizers.ByteLevel(add_prefix_space=space, use_regex=words is None)
    backend.pre_tokenizer = by_bytes
    backend.decoder = decoders.ByteLevel()
    if words is not None:
        split = pre_tokenizers.Split(Regex(words), "isolated")
        backend.normalizer = normalizers.NFC()
        backend.pre_tokenizer = pre_tokenizers.Sequence([split, by_bytes])
    elif folder.rules.framed:
        cls, sep = (folder.name_of(role, vocab) or role for role in ("cls", "sep"))
        backend.post_processor = processors.RobertaProcessing((sep, vocab[sep]), (cls, vocab[cls]))
    return backend


def fairseq(pieces: Pieces) -> Scores:
    """Return the pieces in fairseq's numbering."""
    return [*((name, 0.0) for name in FAIRSEQ), *pieces.scores[3:]]


def languages_of(folder: TokenizerFolder, pieces: Pieces) -> list[str]:
    """Return the languages of mBART in the order of its settings."""
    found = [token for token in folder.extra_tokens if LANGUAGE.fullmatch(token)]
    if not found:
        raise InputError(f"{pieces.path} needs the list of languages of a special_tokens_map.json.")
    return found


def by_scores(scores: Scores, *, unk: int) -> Backend:
    """Build a unigram model from pieces and their scores."""
    return Backend(Unigram(scores, unk, byte_fallback=False))


def by_merges(names: Iterable[str], *, unk: str | None = None) -> Backend:
    """Build a BPE model from pieces; earlier pieces are merged first.

    Characters in none of them are spelt in bytes if there is no unknown token.
    """
    vocab = {name: id_ for id_, name in enumerate(names)}
    cuts = (
        (id_, cut, len(name) - cut, name[:cut], name[cut:])
        for name, id_ in vocab.items()
        for cut in range(1, len(name))
        if name[:cut] in vocab and name[cut:] in vocab
    )
    order = sorted(cuts, key=lambda c: (c[0], c[1], c[2], vocab[c[3]], vocab[c[4]]))
    merges = [(first, second) for *_, first, second in order]
    return Backend(BPE(vocab, merges, unk_token=unk, fuse_unk=True, byte_fallback=unk is None))


def cut_at_words(backend: Backend, charsmap: bytes = b"") -> Backend:
    """Split at any white space, and mark the beginning of each word (T5, mBART)."""
    if charsmap:
        backend.normalizer = normalizers.Precompiled(charsmap)
    marks = pre_tokenizers.Metaspace("▁", "always", split=True)
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), marks])
    backend.decoder = decoders.Metaspace("▁", "always", split=True)
    return backend


def cut_at_spaces(backend: Backend, charsmap: bytes, *, always: bool) -> Backend:
    """Split at runs of spaces (mBART-50; NLLB if it has a map)."""
    steps = [normalizers.Precompiled(charsmap)] if charsmap else []
    if steps or always:
        one_space = normalizers.Replace(Regex(" {2,}"), " ")
        backend.normalizer = normalizers.Sequence([*steps, one_space])
    backend.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always", split=True)
    backend.decoder = decoders.Metaspace("▁", "always", split=True)
    return backend
