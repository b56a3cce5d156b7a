"""The decoder-only Transformer: GPT, Llama, Mistral."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dragoman.models.config import DecoderOnlyConfig
from dragoman.nn import (
    NO_PAST,
    Cache,
    Decoder,
    Documents,
    Embedding,
    Linear,
    Past,
    PositionInfo,
    Positions,
    Rwkv,
    RwkvDecoder,
    deepnorm,
    soft_cap,
)


@dataclass(slots=True)
class GenerationState:
    """The state of decoding between tokens: `N` rows."""

    past: Cache
    """Keys and values of the tokens so far."""
    mask_NS: Tensor | None = None
    """True where a position is not padding; None without padding."""

    def select(self, rows_N: Tensor) -> None:
        """Replace row `n` by row `rows[n]`."""
        self.past.select(rows_N)
        if self.mask_NS is not None:
            self.mask_NS = self.mask_NS[rows_N]


class DecoderOnly(nn.Module):
    """`softmax(W_out decoder(ids))`: the probability of each next token given those before it.

    `forward` computes the logits after all prefixes at once (training, scoring); `start` and `step`
    compute them token by token with a cache (generation). Both run the same layers.
    """

    def __init__(self, config: DecoderOnlyConfig) -> None:
        super().__init__()
        self.pad_id = config.pad_id
        self.bos_id = config.bos_id
        self.embedding = Embedding(config, config.vocab_size)
        depth = deepnorm(config.num_layers) if config.norm_position == "deepnorm" else None
        patterns = config.attention_patterns
        self.decoder: Decoder | RwkvDecoder = (
            RwkvDecoder(config, config.num_layers)
            if Rwkv() in config.patterns
            else Decoder(config, config.num_layers, patterns, depth, cross_attention=False)
        )
        self.output = Linear(config.d_model, config.vocab_size, bias=config.output_bias)
        if config.tie_embeddings:
            self.output.weight = self.embedding.weight
        else:
            nn.init.normal_(self.output.weight, std=0.02)
        if self.output.bias is not None:
            nn.init.zeros_(self.output.bias)
        self.logit_scale = config.logit_scale
        self.logit_soft_cap = config.logit_soft_cap

    @property
    def changes_at(self) -> int | None:
        """The length beyond which the positions of a whole text are others (LongRoPE), if any."""
        rotation = self.decoder.rotation
        return None if rotation is None else rotation.changes_at

    def forward(
        self, ids_BL: Tensor, mask_BL: Tensor | None = None, documents: Documents | None = None
    ) -> Tensor:
        """Return the logits `(B, L, V)` of the token after each prefix.

        `mask` is False at padding in front of a row, which is not counted as positions;
        `documents` are those packed into each row. Raises ValueError for such padding with a
        pattern that depends on absolute positions (`fixed`, Longformer), which padding would shift.
        """
        return self.project(self.hidden(ids_BL, mask_BL, documents))

    def hidden(
        self, ids_BL: Tensor, mask_BL: Tensor | None = None, documents: Documents | None = None
    ) -> Tensor:
        """Return the last hidden states `(B, L, D)`, before the output layer."""
        positions: Positions = range(ids_BL.shape[1])
        if documents is not None:
            positions = documents.positions(ids_BL.device)
        elif mask_BL is not None:
            self._check_front(mask_BL)
            positions = _places(mask_BL)
        x_BLD = self.embedding.embed(ids_BL, positions)
        info = self.decoder.position_info(x_BLD, positions, documents)
        return self._decode(x_BLD, NO_PAST, info, mask_BL)

    def project(self, hidden_BLD: Tensor) -> Tensor:
        """Map hidden states to logits over the vocabulary."""
        return soft_cap(self.output(hidden_BLD), self.logit_soft_cap)

    def start(self, prompt_BS: Tensor, beam_size: int) -> GenerationState:
        """Read all but the last token of each prompt, for `beam_size` rows each.

        Shorter prompts are padded in front; elsewhere the padding id is a token, such as the end of
        a turn in many chat models. The first `step` takes each prompt's last token. Raises
        ValueError for padding with a pattern that depends on absolute positions (`fixed`,
        Longformer).
        """
        ids_NS = prompt_BS.repeat_interleave(beam_size, dim=0)
        mask_NS = (ids_NS != self.pad_id).cummax(dim=1).values
        padded = not bool(mask_NS.all())
        if padded:
            self._check_front(mask_NS)
        state = GenerationState(self.decoder.make_cache(), mask_NS[:, :0] if padded else None)
        if ids_NS.shape[1] > 1:
            self._extend(ids_NS[:, :-1], state, mask_NS[:, :-1], ahead=1)
        return state

    def step(self, ids_N: Tensor, state: GenerationState) -> Tensor:
        """Feed the last token of each row and return the logits `(N, V)` of the next one."""
        return self.extend(ids_N[:, None], state)[:, -1]

    def extend(self, ids_NT: Tensor, state: GenerationState) -> Tensor:
        """Feed several tokens of each row and return the logits `(N, T, V)`."""
        return self.project(self._extend(ids_NT, state, torch.ones_like(ids_NT, dtype=torch.bool)))

    def _extend(
        self, ids_NT: Tensor, state: GenerationState, real_NT: Tensor, ahead: int = 0
    ) -> Tensor:
        offset = state.past.length
        positions: Positions = range(offset, offset + ids_NT.shape[1])
        if state.mask_NS is not None:
            state.mask_NS = torch.cat([state.mask_NS, real_NT], dim=1)
            positions = _places(state.mask_NS)[:, offset:]
        x_NTD = self.embedding.embed(ids_NT, positions)
        info = self.decoder.position_info(x_NTD, positions, ahead=ahead)
        return self._decode(x_NTD, state.past, info, state.mask_NS)

    def _check_front(self, mask_BL: Tensor) -> None:
        """Reject padding in front if a pattern would count it as the row's first positions."""
        if self.decoder.counts_places and not bool(mask_BL[:, 0].all()):
            raise ValueError(
                "a row is padded in front, and a pattern of the model counts places from the row's "
                "start: give prompts of one length"
            )

    def _decode(
        self, x_BLD: Tensor, past: Past, info: PositionInfo, mask_BS: Tensor | None
    ) -> Tensor:
        mask = None if mask_BS is None else mask_BS[:, None, None, :]
        hidden_BLD: Tensor = self.decoder(x_BLD, past, mask, info)
        return hidden_BLD if self.logit_scale == 1.0 else hidden_BLD * self.logit_scale


def _places(mask_BS: Tensor) -> Tensor:
    """Return the index of each token among its row's real tokens; 0 for padding in front."""
    return (mask_BS.long().cumsum(dim=1) - 1).clamp(min=0)
