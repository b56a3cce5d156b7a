"""The Transformer in one file: English to Chinese, from text to text, on PyTorch alone.

    python docs/walk/00-one-file.py

The page 00-one-file.md explains it part by part; the parts are this file.
"""

import bz2
import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files

import torch
import torch.nn.functional as F
from torch import Tensor, nn

D_MODEL, NUM_HEADS, D_FF, NUM_LAYERS = 128, 4, 512, 2
DROPOUT, SMOOTHING = 0.1, 0.1
STEPS, BATCH, WARMUP = 1600, 64, 400
PAD, BOS, EOS, UNK = range(4)  # ids that stand for no text: padding, begin, end, unknown
if D_MODEL % NUM_HEADS:
    raise SystemExit(f"{NUM_HEADS} heads cannot share a width of {D_MODEL}: choose a divisor of it")
random.seed(1)
torch.manual_seed(1)


def words(text: str) -> list[str]:
    """Split English into words, numbers and punctuation marks, in lower case."""
    return re.findall(r"\w+|[^\w\s]", text.lower())


class Vocabulary:
    """The tokens of a language, each with a number, its id."""

    def __init__(self, texts: Iterable[Iterable[str]]) -> None:
        found = {token for text in texts for token in text}
        self.tokens = ["<pad>", "<bos>", "<eos>", "<unk>", *sorted(found)]
        self.ids = {token: number for number, token in enumerate(self.tokens)}

    def encode(self, text: Iterable[str]) -> list[int]:
        """Return the ids of the tokens, and of the end of the sentence."""
        return [*(self.ids.get(token, UNK) for token in text), EOS]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the ids."""
        return "".join(self.tokens[number] for number in ids if number > UNK)


corpus = bz2.decompress(files("dragoman.data").joinpath("demo.tsv.bz2").read_bytes()).decode()
train, _, test = ([line.split("\t") for line in part.split("\n")] for part in corpus.split("\n\n"))
english = Vocabulary(words(src) for src, _ in train)
chinese = Vocabulary(tgt for _, tgt in train)  # the tokens of a string are its characters
print(f"{len(train):,} pairs to learn from, {len(test)} others to translate")
print(f"{len(english.tokens):,} English tokens, {len(chinese.tokens)} Chinese ones")
print(train[3][0], english.encode(words(train[3][0])))
print(train[3][1], chinese.encode(train[3][1]))


def pad(rows: Sequence[list[int]]) -> Tensor:
    """Make a rectangle `(B, L)` of rows of ids; short rows are padded at the end."""
    length = max(map(len, rows))
    return torch.tensor([ids + [PAD] * (length - len(ids)) for ids in rows])


def make_batch(pairs: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor, Tensor]:
    """Return what the encoder reads, what the decoder reads, and what it has to predict."""
    src_BS = pad([english.encode(words(src)) for src, _ in pairs])
    tgt_BT = pad([[BOS, *chinese.encode(tgt)] for _, tgt in pairs])
    return src_BS, tgt_BT[:, :-1], tgt_BT[:, 1:]


src_BS, tgt_BT, next_BT = make_batch(train[3:6])
print("source", tuple(src_BS.shape), "target", tuple(tgt_BT.shape))
print("the decoder reads   ", tgt_BT[0].tolist())
print("and has to predict  ", next_BT[0].tolist())


def positions(length: int) -> Tensor:
    """Compute `PE(pos, 2i) = sin(pos / 10000^(2i/D))`, `PE(pos, 2i+1) = cos(same)`: `(L, D)`."""
    exponents = torch.arange(0, D_MODEL, 2, dtype=torch.float64) / D_MODEL
    angles = torch.arange(length)[:, None] / 10000.0**exponents
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class Embedding(nn.Module):
    """`dropout(E[ids] * sqrt(D) + PE)`."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, D_MODEL) * D_MODEL**-0.5)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, ids_BL: Tensor) -> Tensor:
        """Map ids `(B, L)` to vectors `(B, L, D)`."""
        x_BLD = F.embedding(ids_BL, self.weight) * math.sqrt(D_MODEL)
        return self.dropout(x_BLD + positions(ids_BL.shape[1]).to(x_BLD))


x_BSD = Embedding(len(english.tokens))(src_BS)
print("embedded source", tuple(x_BSD.shape))


def attend(q_BHTd: Tensor, k_BHSd: Tensor, v_BHSd: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Compute `softmax(q k^T / sqrt(d)) v` over the keys that the mask allows; and the weights."""
    scores_BHTS = q_BHTd @ k_BHSd.transpose(-2, -1) / math.sqrt(q_BHTd.shape[-1])
    scores_BHTS = scores_BHTS.masked_fill(~mask, torch.finfo(scores_BHTS.dtype).min)
    weights_BHTS = scores_BHTS.softmax(dim=-1)
    return weights_BHTS @ v_BHSd, weights_BHTS


def padding_mask(ids_BS: Tensor) -> Tensor:
    """Let every query see the tokens that are no padding: `(B, 1, 1, S)`."""
    return (ids_BS != PAD)[:, None, None, :]


def causal_mask(length: int) -> Tensor:
    """Let query `i` see the tokens `0 ... i`: `(T, T)`."""
    return torch.ones(length, length, dtype=torch.bool).tril()


vectors = x_BSD[:, None]  # one head for a moment: queries, keys and values are the vectors
_, weights = attend(vectors, vectors, vectors, padding_mask(src_BS))
print("weights", tuple(weights.shape), "each row sums to", round(weights[1, 0, 0].sum().item(), 4))
print("on padding", [round(weight, 4) for weight in weights[1, 0, 0][src_BS[1] == PAD].tolist()])
print(causal_mask(4).int())


class Attention(nn.Module):
    """`Concat(head_1 ... head_H) W_O`, `head_i = attend(x W_Q,i, y W_K,i, y W_V,i)`."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D_MODEL, D_MODEL) for _ in range(4))

    def forward(self, x_BTD: Tensor, y_BSD: Tensor, mask: Tensor) -> Tensor:
        """Let every position of `x` look at those of `y` that the mask allows: `(B, T, D)`."""
        projected = (self.q(x_BTD), self.k(y_BSD), self.v(y_BSD))
        q_BHTd, k_BHSd, v_BHSd = (
            z.unflatten(-1, (NUM_HEADS, D_MODEL // NUM_HEADS)).transpose(1, 2) for z in projected
        )
        out_BHTd, _ = attend(q_BHTd, k_BHSd, v_BHSd, mask)
        return self.out(out_BHTd.transpose(1, 2).flatten(2))


out_BSD = Attention()(x_BSD, x_BSD, padding_mask(src_BS))
print("attention of", NUM_HEADS, "heads", tuple(out_BSD.shape))


class FeedForward(nn.Sequential):
    """`max(0, x W_1 + b_1) W_2 + b_2`, for each position by itself."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(D_MODEL, D_FF), nn.ReLU(), nn.Linear(D_FF, D_MODEL))


class AddAndNorm(nn.Module):
    """`LayerNorm(x + dropout(f(x)))`: what each sublayer `f` is wrapped in."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(DROPOUT)
        self.norm = nn.LayerNorm(D_MODEL)

    def forward(self, x_BLD: Tensor, change_BLD: Tensor) -> Tensor:
        """Add `change`, which is `f(x)`, to `x`, and normalise."""
        return self.norm(x_BLD + self.dropout(change_BLD))


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network."""

    def __init__(self) -> None:
        super().__init__()
        self.self_attn, self.add_self_attn = Attention(), AddAndNorm()
        self.ffn, self.add_ffn = FeedForward(), AddAndNorm()

    def forward(self, x_BSD: Tensor, mask: Tensor) -> Tensor:
        """Map `(B, S, D)` to `(B, S, D)`."""
        x_BSD = self.add_self_attn(x_BSD, self.self_attn(x_BSD, x_BSD, mask))
        return self.add_ffn(x_BSD, self.ffn(x_BSD))


class DecoderLayer(nn.Module):
    """Self-attention, attention over the encoder's output, then the feed-forward network."""

    def __init__(self) -> None:
        super().__init__()
        self.self_attn, self.add_self_attn = Attention(), AddAndNorm()
        self.cross_attn, self.add_cross_attn = Attention(), AddAndNorm()
        self.ffn, self.add_ffn = FeedForward(), AddAndNorm()

    def forward(self, x_BTD: Tensor, own: Tensor, memory_BSD: Tensor, mask: Tensor) -> Tensor:
        """Map `(B, T, D)` to `(B, T, D)`; `own` is the mask of the target, `mask` the source's."""
        x_BTD = self.add_self_attn(x_BTD, self.self_attn(x_BTD, x_BTD, own))
        x_BTD = self.add_cross_attn(x_BTD, self.cross_attn(x_BTD, memory_BSD, mask))
        return self.add_ffn(x_BTD, self.ffn(x_BTD))


class Transformer(nn.Module):
    """Figure 1: from the ids of a source and of the beginning of its translation to logits."""

    def __init__(self, src_vocab_size: int, tgt_vocab_size: int) -> None:
        super().__init__()
        self.src_embedding = Embedding(src_vocab_size)
        self.tgt_embedding = Embedding(tgt_vocab_size)
        self.encoder = nn.ModuleList(EncoderLayer() for _ in range(NUM_LAYERS))
        self.decoder = nn.ModuleList(DecoderLayer() for _ in range(NUM_LAYERS))
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def encode(self, src_BS: Tensor) -> tuple[Tensor, Tensor]:
        """Return the memory `(B, S, D)` and the mask of its padding."""
        x_BSD, mask = self.src_embedding(src_BS), padding_mask(src_BS)
        for layer in self.encoder:
            x_BSD = layer(x_BSD, mask)
        return x_BSD, mask

    def decode(self, tgt_BT: Tensor, memory_BSD: Tensor, mask: Tensor) -> Tensor:
        """Return the logits `(B, T, V)` of the token after each prefix of the target."""
        x_BTD, own = self.tgt_embedding(tgt_BT), causal_mask(tgt_BT.shape[1])
        for layer in self.decoder:
            x_BTD = layer(x_BTD, own, memory_BSD, mask)
        return x_BTD @ self.tgt_embedding.weight.T

    def forward(self, src_BS: Tensor, tgt_BT: Tensor) -> Tensor:
        """Encode, then decode every position of the target at once (training)."""
        return self.decode(tgt_BT, *self.encode(src_BS))


model = Transformer(len(english.tokens), len(chinese.tokens))
logits_BTV = model(src_BS, tgt_BT)
print("memory", tuple(model.encode(src_BS)[0].shape), "logits", tuple(logits_BTV.shape))
print(f"{sum(weight.numel() for weight in model.parameters()):,} weights")


def loss_of(logits_BTV: Tensor, next_BT: Tensor) -> Tensor:
    """Return the mean cross-entropy over the tokens of the batch that are no padding."""
    logits, ids = logits_BTV.flatten(0, 1), next_BT.flatten()
    return F.cross_entropy(logits, ids, ignore_index=PAD, label_smoothing=SMOOTHING)


def rate(step: int) -> float:
    """Compute `D^-0.5 min(step^-0.5, step * warmup^-1.5)`."""
    return D_MODEL**-0.5 * min(step**-0.5, step * WARMUP**-1.5)


def batches() -> Iterable[list[list[str]]]:
    """Draw batches for ever, each of sentences of about one length: little is padding."""
    while True:
        pairs = sorted(train, key=lambda pair: (len(pair[1]), random.random()))
        parts = [pairs[first : first + BATCH] for first in range(0, len(pairs), BATCH)]
        yield from random.sample(parts, len(parts))


optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
total, count = 0.0, 0
for step, pairs in zip(range(1, STEPS + 1), batches(), strict=False):
    src_BS, tgt_BT, next_BT = make_batch(pairs)
    optimizer.param_groups[0]["lr"] = rate(step)
    loss = loss_of(model(src_BS, tgt_BT), next_BT)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    tokens = int((next_BT != PAD).sum())
    total, count = total + loss.item() * tokens, count + tokens
    if step % 200 == 0:
        print(f"step {step:>5,}: loss {total / count:.2f} per token")
        total, count = 0.0, 0


@torch.no_grad()
def translate(texts: Sequence[str], most: int = 30) -> list[str]:
    """Extend all translations by their most probable token until each has ended."""
    model.eval()
    memory_BSD, mask = model.encode(pad([english.encode(words(text)) for text in texts]))
    tgt_BT = torch.full((len(texts), 1), BOS)
    ended_B = torch.zeros(len(texts), dtype=torch.bool)
    while not ended_B.all() and tgt_BT.shape[1] <= most:
        logits_BV = model.decode(tgt_BT, memory_BSD, mask)[:, -1]
        next_B = logits_BV.argmax(dim=-1).masked_fill(ended_B, PAD)
        tgt_BT = torch.cat([tgt_BT, next_B[:, None]], dim=1)
        ended_B |= next_B == EOS
    return [chinese.decode(ids) for ids in tgt_BT.tolist()]


def bleu(outputs: Sequence[str], references: Sequence[str]) -> float:
    """Compute `100 min(1, e^(1 - r/c)) (p_1 p_2 p_3 p_4)^(1/4)` over all sentences together."""
    matched, given, length, wanted = [0] * 4, [0] * 4, 0, 0
    for pair in zip(outputs, references, strict=True):
        out, ref = (re.findall(r"[A-Za-z0-9]+|\S", text) for text in pair)
        length, wanted = length + len(out), wanted + len(ref)
        for n in range(4):
            grams, real = (
                Counter(tuple(x[i : i + n + 1]) for i in range(len(x) - n)) for x in (out, ref)
            )
            matched[n] += (grams & real).total()
            given[n] += grams.total()
    if not all(matched):
        return 0.0
    precision = math.prod(m / g for m, g in zip(matched, given, strict=True)) ** 0.25
    return 100 * min(1.0, math.exp(1 - wanted / length)) * precision


sources, references = zip(*test, strict=True)
outputs = translate(sources)
right = sum(out == ref for out, ref in zip(outputs, references, strict=True))
print(
    f"BLEU {bleu(outputs, references):.1f} on {len(test)} unseen sentences, {right} without fault"
)
for text in ("I like studying artificial intelligence.", *sources[:3]):
    print(text, "->", *translate([text]))
