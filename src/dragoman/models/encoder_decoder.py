"""The complete encoder-decoder Transformer."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from dragoman.models.config import EncoderDecoderConfig
from dragoman.nn import (
    NO_PAST,
    Cache,
    Decoder,
    Embedding,
    Encoder,
    KeyValue,
    Linear,
    Memory,
    Past,
    deepnorm_pair,
    padding_mask,
    soft_cap,
)


@dataclass(slots=True)
class DecodingState:
    """The state of decoding between tokens: `N = B * W` rows for `B` sentences."""

    past: Cache
    """Keys and values of the tokens decoded so far, `N` rows."""
    memory: list[Memory]
    """Keys, values and mask of the source for each decoder layer, `B` rows."""
    beam_size: int
    """`W`: adjacent rows that share a sentence."""

    def select(self, rows_N: Tensor) -> None:
        """Replace row `n` by row `rows[n]`; each group of `W` must stay within one sentence."""
        self.past.select(rows_N)
        sentences_B = rows_N[:: self.beam_size] // self.beam_size
        mask = self.memory[0].mask
        if mask is not None and len(sentences_B) != len(mask):
            kept = mask[sentences_B]
            self.memory = [
                Memory(KeyValue(k[sentences_B], v[sentences_B]), kept) for (k, v), _ in self.memory
            ]


class EncoderDecoder(nn.Module):
    """`softmax(W_out decoder(tgt, encoder(src)))`, the model of the paper (section 3).

    `forward` computes the logits of all target positions at once (training, scoring); `start` and
    `step` compute them token by token with a cache (decoding). Both run the same layers.
    """

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.pad_id = config.pad_id
        self.src_embedding = Embedding(config, config.src_vocab_size)
        self.tgt_embedding = Embedding(config, config.tgt_vocab_size)
        layers = (config.num_encoder_layers, config.num_decoder_layers)
        deep = config.norm_position == "deepnorm"
        encoder_depth, decoder_depth = deepnorm_pair(*layers) if deep else (None, None)
        self.encoder = Encoder(config, layers[0], config.encoder_patterns, encoder_depth)
        self.decoder = Decoder(config, layers[1], config.decoder_patterns, decoder_depth)
        self.output = Linear(config.d_model, config.tgt_vocab_size, bias=config.output_bias)
        if config.tie_embeddings in ("all", "source-target"):
            self.tgt_embedding.weight = self.src_embedding.weight
        if config.tie_embeddings in ("all", "target-output"):
            self.output.weight = self.tgt_embedding.weight
        else:
            nn.init.xavier_uniform_(self.output.weight)
        if self.output.bias is not None:
            nn.init.zeros_(self.output.bias)
        self.logit_scale = config.logit_scale
        self.logit_soft_cap = config.logit_soft_cap

    def forward(self, src_BS: Tensor, tgt_BT: Tensor) -> Tensor:
        """Return the logits `(B, T, V)` of the token after each prefix of the target."""
        return self.project(self.hidden(src_BS, tgt_BT))

    def hidden(self, src_BS: Tensor, tgt_BT: Tensor) -> Tensor:
        """Return the decoder's last hidden states `(B, T, D)`, before the output layer."""
        return self._decode(tgt_BT, NO_PAST, self._remember(src_BS))

    def project(self, hidden_BTD: Tensor) -> Tensor:
        """Map hidden states to logits over the target vocabulary."""
        return soft_cap(self.output(hidden_BTD), self.logit_soft_cap)

    def encode(self, src_BS: Tensor) -> tuple[Tensor, Tensor]:
        """Return the memory `(B, S, D)` and the mask `(B, 1, 1, S)` of its real positions."""
        mask_B11S = padding_mask(src_BS, self.pad_id)
        x_BSD = self.src_embedding.embed(src_BS, range(src_BS.shape[1]))
        memory_BSD: Tensor = self.encoder(x_BSD, mask_B11S)
        return memory_BSD, mask_B11S

    def start(self, src_BS: Tensor, beam_size: int) -> DecodingState:
        """Encode the sources and return a state of `beam_size` rows each, ready for bos."""
        return DecodingState(self.decoder.make_cache(), self._remember(src_BS), beam_size)

    def step(self, ids_N: Tensor, state: DecodingState) -> Tensor:
        """Feed the last token of each row and return the logits `(N, V)` of the next one."""
        return self.extend(ids_N[:, None], state)[:, -1]

    def extend(self, ids_NT: Tensor, state: DecodingState) -> Tensor:
        """Feed several tokens of each row (a forced prefix) and return the logits `(N, T, V)`."""
        return self.project(self._decode(ids_NT, state.past, state.memory))

    def _remember(self, src_BS: Tensor) -> list[Memory]:
        """Encode the sources and compute the keys and values of cross-attention once."""
        memory_BSD, mask_B11S = self.encode(src_BS)
        return [Memory(kv, mask_B11S) for kv in self.decoder.project_memory(memory_BSD)]

    def _decode(self, tgt_NT: Tensor, past: Past, memory: Sequence[Memory]) -> Tensor:
        positions = range(past.length, past.length + tgt_NT.shape[1])
        x_NTD = self.tgt_embedding.embed(tgt_NT, positions)
        hidden_NTD: Tensor = self.decoder(x_NTD, past, memory=memory)
        return hidden_NTD if self.logit_scale == 1.0 else hidden_NTD * self.logit_scale
