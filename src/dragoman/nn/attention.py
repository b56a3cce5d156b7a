"""Multi-head attention (paper, section 3.2.2).

MultiHead(x, y) = Concat(head_1 ... head_H) W_O,  head_i = Attention(x W_Q,i, y W_K,i, y W_V,i)
"""

from torch import Tensor, nn

from dragoman.nn.cache import KeyValue
from dragoman.nn.cpu.elementwise import Dropout
from dragoman.nn.cpu.products import Linear
from dragoman.nn.dot_product import Scoring, check_mask
from dragoman.nn.init import init_linear
from dragoman.nn.patterns.pattern import Full, Pattern
from dragoman.nn.position.scheme import NO_POSITIONS, PositionInfo
from dragoman.nn.qk_norm import QkNorm, make_qk_norm
from dragoman.nn.sizes import head_width


class MultiHeadAttention(nn.Module):
    """`Concat(head_1 ... head_H) W_O`, `head_i = softmax(Q_i K_i^T / sqrt(d) + mask) V_i`.

    Projecting keys and values and attending to them are two calls, so one module serves three
    uses, and a cache, without a flag:

        kv = attn.project_kv(source_BSD)       # keys and values of any sequence
        out_BTD = attn(query_BTD, kv, mask)    # does not know where kv came from

    `Q_i = x W_Q,i` and so on are one product for all heads: `q_proj` is `W_Q`, `kv_proj` is
    `W_K` above `W_V`, `out_proj` is `W_O`. With `num_kv_heads` below `num_heads`, groups of
    query heads share a key-value head (grouped-query attention, Ainslie et al., 2023; one head:
    multi-query, Shazeer, 2019). `head_dim` is `D / H` by default.

    `qk_norm` normalises queries and keys by RMSNorm, of each head (Qwen3) or of all (OLMo 2);
    `scale` replaces `1 / sqrt(d)` (1 in T5); `soft_cap` bounds the scores. Positions are passed as
    a `PositionInfo`: rotary angles rotate queries and keys, a bias is added to the scores.
    """

    def __init__(  # noqa: PLR0913 (the options of the paper and of later models)
        self,
        d_model: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        bias: bool = True,
        qkv_bias: bool | None = None,
        qk_norm: QkNorm = False,
        norm_eps: float = 1e-6,
        scale: float | None = None,
        soft_cap: float | None = None,
        dropout: float = 0.0,
        pattern: Pattern | None = None,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.head_dim = d = head_width(d_model, num_heads, num_kv_heads, head_dim)
        self.scale = d**-0.5 if scale is None else scale
        self.soft_cap = soft_cap
        qkv_bias = bias if qkv_bias is None else qkv_bias
        self.q_proj = Linear(d_model, num_heads * d, bias=qkv_bias)
        self.kv_proj = Linear(d_model, 2 * self.num_kv_heads * d, bias=qkv_bias)
        self.out_proj = Linear(num_heads * d, d_model, bias=bias)
        self.q_norm = make_qk_norm(qk_norm, num_heads, d, eps=norm_eps)
        self.k_norm = make_qk_norm(qk_norm, self.num_kv_heads, d, eps=norm_eps)
        self.dropout = Dropout(dropout)
        self.pattern: Pattern = pattern or Full()
        init_linear(self.q_proj)
        init_linear(self.kv_proj, parts=2)
        init_linear(self.out_proj)

    def project_q(self, query_BTD: Tensor, info: PositionInfo = NO_POSITIONS) -> Tensor:
        """Return the rotated queries of every head, `(B, H, T, d)`."""
        q_BTHd = self.q_proj(query_BTD).unflatten(-1, (self.num_heads, self.head_dim))
        return info.place(q_BTHd, self.q_norm, local=self.pattern.is_local)

    def project_kv(self, source_BSD: Tensor, info: PositionInfo = NO_POSITIONS) -> KeyValue:
        """Return the rotated keys and the values of `(B, S, D)`, each `(B, K, S, d)`."""
        kv_BS2Kd = self.kv_proj(source_BSD).unflatten(-1, (2, self.num_kv_heads, self.head_dim))
        k_BSKd, v_BSKd = kv_BS2Kd.unbind(dim=2)
        k_BKSd = info.place(k_BSKd, self.k_norm, local=self.pattern.is_local)
        return KeyValue(k_BKSd, v_BSKd.transpose(1, 2))

    def forward(
        self,
        query_BTD: Tensor,
        kv: KeyValue,
        mask: Tensor | None = None,
        info: PositionInfo = NO_POSITIONS,
    ) -> Tensor:
        """Attend from `(B, T, D)` to `kv` where the pattern and `mask` allow it: `(B, T, D)`."""
        q_BHTd = self.project_q(query_BTD, info)
        mask, scoring = self._fit(mask, q_BHTd, kv), self._scoring(info)
        out_BHTd = info.confine(self.pattern).attend(q_BHTd, kv, mask, scoring)
        out_BTD: Tensor = self.out_proj(out_BHTd.transpose(1, 2).flatten(2))
        return out_BTD

    def weights(
        self,
        query_BTD: Tensor,
        kv: KeyValue,
        mask: Tensor | None = None,
        info: PositionInfo = NO_POSITIONS,
    ) -> Tensor:
        """Return the attention weights `(B, H, T, S)`, computed by the reference formula."""
        q_BHTd = self.project_q(query_BTD, info)
        mask, scoring = self._fit(mask, q_BHTd, kv), self._scoring(info)
        return info.confine(self.pattern).weights(q_BHTd, kv, mask, scoring)

    def _scoring(self, info: PositionInfo) -> Scoring:
        return Scoring(
            scale=self.scale, soft_cap=self.soft_cap, bias=info.bias, dropout=self.dropout
        )

    def _fit(self, mask: Tensor | None, q_BHTd: Tensor, kv: KeyValue) -> Tensor | None:
        """Check `kv` and the mask; cut the mask to the keys that the cache still holds."""
        if not isinstance(kv, KeyValue):
            raise TypeError(
                f"kv is a {type(kv).__name__}; make a KeyValue of it: attn(x, attn.project_kv(x))"
            )
        if mask is None:
            return None
        num_keys = kv.k_BKSd.shape[2]
        if self.pattern.forgets:
            mask = mask[..., -num_keys:]
        check_mask(mask, (*q_BHTd.shape[:3], num_keys))
        return mask.expand(*mask.shape[:-1], num_keys)
