"""Multi-head attention (paper, section 3.2.2)."""

from torch import Tensor, nn

from dragoman.nn.cache import KeyValue
from dragoman.nn.dropout import Dropout
from dragoman.nn.init import init_linear
from dragoman.nn.mask import check_mask
from dragoman.nn.patterns import Full, Pattern, reference_attention
from dragoman.nn.products import Linear


class MultiHeadAttention(nn.Module):
    """`Concat(head_1 ... head_H) W_O`, `head_i = softmax(Q_i K_i^T / sqrt(d) + mask) V_i`.

    Making keys and values and attending to them are two calls, so that one module serves three
    uses and a cache without a flag::

        kv = attn.project_kv(source_BSD)       # keys and values of any sequence
        out_BTD = attn(query_BTD, kv, mask)    # does not know where kv came from

    `Q_i = x W_Q,i` and so on are one product for all heads: `q_proj` holds `W_Q`, `kv_proj` holds
    `W_K` above `W_V`, `out_proj` holds `W_O`. With `num_kv_heads` below `num_heads`, groups of
    query heads share a key-value head (grouped-query attention, Ainslie et al., 2023; one head:
    multi-query, Shazeer, 2019). `head_dim` is `D / H` unless given.
    """

    def __init__(  # noqa: PLR0913 (the choices of the paper and its heirs, each one a word)
        self,
        d_model: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        pattern: Pattern | None = None,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads or num_heads
        if head_dim is None and d_model % num_heads:
            raise ValueError(f"d_model {d_model} is not a multiple of num_heads {num_heads}")
        if num_heads % self.num_kv_heads:
            raise ValueError(f"num_heads {num_heads} is no multiple of num_kv_heads {num_kv_heads}")
        self.head_dim = head_dim or d_model // num_heads
        self.q_proj = Linear(d_model, num_heads * self.head_dim, bias=bias)
        self.kv_proj = Linear(d_model, 2 * self.num_kv_heads * self.head_dim, bias=bias)
        self.out_proj = Linear(num_heads * self.head_dim, d_model, bias=bias)
        self.dropout = Dropout(dropout)
        self.pattern: Pattern = pattern or Full()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw each of `W_Q`, `W_K`, `W_V`, `W_O` anew, each with its own fan."""
        init_linear(self.q_proj)
        init_linear(self.kv_proj, parts=2)
        init_linear(self.out_proj)

    def project_kv(self, source_BSD: Tensor) -> KeyValue:
        """Make the keys and values of `(B, S, D)`, each `(B, K, S, d)`."""
        kv_BS2Kd = self.kv_proj(source_BSD).unflatten(-1, (2, self.num_kv_heads, self.head_dim))
        k_BSKd, v_BSKd = kv_BS2Kd.unbind(dim=2)
        return KeyValue(k_BSKd.transpose(1, 2), v_BSKd.transpose(1, 2))

    def forward(self, query_BTD: Tensor, kv: KeyValue, mask: Tensor | None = None) -> Tensor:
        """Attend from `(B, T, D)` to `kv` where the pattern and `mask` allow it: `(B, T, D)`."""
        q_BHTd, k_BHSd, v_BHSd = self._heads(query_BTD, kv, mask)
        out_BHTd = self.pattern.attend(q_BHTd, k_BHSd, v_BHSd, mask, self.dropout)
        out_BTD: Tensor = self.out_proj(out_BHTd.transpose(1, 2).flatten(2))
        return out_BTD

    def weights(self, query_BTD: Tensor, kv: KeyValue, mask: Tensor | None = None) -> Tensor:
        """Return the attention weights `(B, H, T, S)`, computed by the reference."""
        q_BHTd, k_BHSd, v_BHSd = self._heads(query_BTD, kv, mask)
        own = self.pattern.mask(q_BHTd.shape[2], k_BHSd.shape[2], q_BHTd.device)
        if own is not None:
            mask = own if mask is None else own & mask
        return reference_attention(q_BHTd, k_BHSd, v_BHSd, mask)[1]

    def _heads(
        self, query_BTD: Tensor, kv: KeyValue, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Split the query by head and repeat key-value heads that a group of queries shares."""
        q_BTHd = self.q_proj(query_BTD).unflatten(-1, (self.num_heads, self.head_dim))
        k_BHSd, v_BHSd = kv
        if self.num_kv_heads != self.num_heads:
            group = self.num_heads // self.num_kv_heads
            k_BHSd = k_BHSd.repeat_interleave(group, dim=1)
            v_BHSd = v_BHSd.repeat_interleave(group, dim=1)
        q_BHTd = q_BTHd.transpose(1, 2)
        if mask is not None:
            batch, heads, num_queries, _ = q_BHTd.shape
            check_mask(mask, (batch, heads, num_queries, k_BHSd.shape[2]))
        return q_BHTd, k_BHSd, v_BHSd
