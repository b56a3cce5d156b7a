"""The encoder-decoder Transformer, assembled."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from dragoman.models.config import EncoderDecoderConfig
from dragoman.nn import (
    Cache,
    Decoder,
    Dropout,
    Encoder,
    KeyValue,
    Linear,
    NoPast,
    Past,
    SinusoidalPositions,
    TokenEmbedding,
    padding_mask,
)


@dataclass(slots=True)
class DecodingState:
    """What decoding carries from token to token: `N = B * W` rows over `B` sentences."""

    past: Cache
    """Keys and values of the tokens decoded so far, `N` rows."""
    memory_kv: list[KeyValue]
    """Keys and values of the source for each decoder layer, `B` rows."""
    memory_mask_B11S: Tensor
    """True where the source is no padding."""
    beam_size: int
    """`W`: adjacent rows that share a sentence."""

    def select(self, rows_N: Tensor) -> None:
        """Let row `n` become what row `rows[n]` was; each group of `W` stays in one sentence."""
        self.past.select(rows_N)
        sentences_B = rows_N[:: self.beam_size] // self.beam_size
        if len(sentences_B) != self.memory_mask_B11S.shape[0]:
            self.memory_mask_B11S = self.memory_mask_B11S[sentences_B]
            self.memory_kv = [KeyValue(k[sentences_B], v[sentences_B]) for k, v in self.memory_kv]


class EncoderDecoder(nn.Module):
    """`softmax(W_out decoder(tgt, encoder(src)))`, the model of the paper (section 3).

    `forward` gives the logits of every target position at once (training, scoring); `start` and
    `step` give them token by token with a cache (decoding). Both run the same layers.
    """

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.pad_id = config.pad_id
        self.src_embedding = _make_embedding(config, config.src_vocab_size)
        self.tgt_embedding = _make_embedding(config, config.tgt_vocab_size)
        self.positions = SinusoidalPositions(config.d_model)
        self.dropout = Dropout(config.dropout)
        final_norm = config.has_final_norm
        self.encoder = Encoder(config.layer, config.num_encoder_layers, final_norm=final_norm)
        self.decoder = Decoder(config.layer, config.num_decoder_layers, final_norm=final_norm)
        self.output = Linear(config.d_model, config.tgt_vocab_size, bias=config.output_bias)
        if config.tie_embeddings in ("all", "source-target"):
            self.tgt_embedding.weight = self.src_embedding.weight
        if config.tie_embeddings in ("all", "target-output"):
            self.output.weight = self.tgt_embedding.weight
        else:
            nn.init.xavier_uniform_(self.output.weight)
        if self.output.bias is not None:
            nn.init.zeros_(self.output.bias)

    def forward(self, src_BS: Tensor, tgt_BT: Tensor) -> Tensor:
        """Return the logits `(B, T, V)` of the token after each prefix of the target."""
        return self.project(self.hidden(src_BS, tgt_BT))

    def hidden(self, src_BS: Tensor, tgt_BT: Tensor) -> Tensor:
        """Return the decoder's last hidden states `(B, T, D)`, before the output layer."""
        memory_BSD, mask_B11S = self.encode(src_BS)
        memory_kv = self.decoder.project_memory(memory_BSD)
        return self._decode(tgt_BT, NoPast(), memory_kv, mask_B11S)

    def project(self, hidden_BTD: Tensor) -> Tensor:
        """Turn hidden states into logits over the target vocabulary."""
        logits_BTV: Tensor = self.output(hidden_BTD)
        return logits_BTV

    def encode(self, src_BS: Tensor) -> tuple[Tensor, Tensor]:
        """Return the memory `(B, S, D)` and the mask `(B, 1, 1, S)` of its real positions."""
        mask_B11S = padding_mask(src_BS, self.pad_id)
        x_BSD = self.dropout(self.positions(self.src_embedding(src_BS)))
        memory_BSD: Tensor = self.encoder(x_BSD, mask_B11S)
        return memory_BSD, mask_B11S

    def start(self, src_BS: Tensor, beam_size: int) -> DecodingState:
        """Encode the sources and return the state in which `beam_size` rows each await bos."""
        memory_BSD, mask_B11S = self.encode(src_BS)
        memory_kv = self.decoder.project_memory(memory_BSD)
        return DecodingState(self.decoder.make_cache(), memory_kv, mask_B11S, beam_size)

    def step(self, ids_N: Tensor, state: DecodingState) -> Tensor:
        """Feed each row its last token and return the logits `(N, V)` of the next one."""
        return self.extend(ids_N[:, None], state)[:, -1]

    def extend(self, ids_NT: Tensor, state: DecodingState) -> Tensor:
        """Feed each row several tokens (a forced prefix) and return the logits `(N, T, V)`."""
        hidden_NTD = self._decode(ids_NT, state.past, state.memory_kv, state.memory_mask_B11S)
        return self.project(hidden_NTD)

    def _decode(
        self, tgt_NT: Tensor, past: Past, memory_kv: Sequence[KeyValue], memory_mask: Tensor
    ) -> Tensor:
        x_NTD = self.dropout(self.positions(self.tgt_embedding(tgt_NT), past.length))
        hidden_NTD: Tensor = self.decoder(x_NTD, past, memory_kv, memory_mask)
        return hidden_NTD


def _make_embedding(config: EncoderDecoderConfig, vocab_size: int) -> TokenEmbedding:
    return TokenEmbedding(
        vocab_size, config.d_model, pad_id=config.pad_id, scale=config.scale_embedding
    )
