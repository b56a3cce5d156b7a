"""The origin of a logit: the logit lens, and the share of each head in a logit.

The logit lens is the output of the model if it ended after a decoder layer (nostalgebraist, 2020):
the final norm and the output layer are applied to the residual stream as if it were the last. After
the last layer this is the model's own distribution over all tokens.

The vector that the output layer reads is the sum of what embedding, heads, feed-forward networks
and biases have added to the residual stream, so the logit is the sum of their contributions (direct
logit attribution; Elhage et al., 2021). A norm at `y` is linear if its scale is fixed to that of
the whole residual: with `sigma(y)` = sqrt(var(y) + epsilon) in LayerNorm,

    norm(y) = gamma * (y - mean(y)) / sigma(y) + beta,    y = c_1 + c_2 + ...
            = sum_i  gamma * (c_i - mean(c_i)) / sigma(y)  +  beta,

since centring is linear; RMSNorm has no mean and no beta, and `sigma(y)` = sqrt(mean(y^2) +
epsilon). The share of a part is the part carried through every norm after it, times the token's row
of the output layer. In a pre-norm stack, this is the final norm. In a post-norm one, and with
DeepNorm, sublayers end in `norm(alpha x + f(x))`, and it is the norms of the part's own sublayer
and all later ones.

Instead of carrying each part forward, the row is carried back. `g` starts as `s W_out[v]`, and

    at a norm       biases += beta . g;   h = gamma * g / sigma(y);   g = h - mean(h)  (RMS: g = h)
    at a sublayer   share of head i = g . (z_i W_O,i);   biases += g . b_O
                    share of the feed-forward network = g . f(x), including its biases
    past it         g as before the sublayer's second norm, if it has one; alpha g, in post-norm
    at the start    share of the embedding = g . x_0, including positions and its own norm

where `z_i` is the output of head i and `s` the config's `logit_scale`. The shares sum to the logit
before a soft cap. What a part contributes to later layers counts in their shares.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from dragoman.lens.inspection import LogitPart, PartName
from dragoman.models import DecoderOnly, EncoderDecoder
from dragoman.nn import LayerNorm, MultiHeadAttention, RMSNorm, evaluation_view, inference
from dragoman.nn.layers import Layer, Residual

Writer = EncoderDecoder | DecoderOnly
Flow = dict[nn.Module, tuple[Tensor, Tensor]]
"""The input and the output of each module at the requested positions, in float64."""
TOKENS_AT_ONCE = 64
"""Number of tokens whose distributions over the vocabulary are in memory at once."""


def explain_logits(
    model: Writer, inputs: Sequence[Sequence[int]], ids: Sequence[int]
) -> tuple[list[tuple[Tensor, Tensor]], tuple[LogitPart, ...]]:
    """Return the logit lens and the shares in the logits of the T tokens `ids`.

    `inputs` are what the model reads: source and target, or one text; token t is written after
    position t of the last of them. The lens is, after each decoder layer, the highest probability
    `(T)` and the token `(T)` that has it. The shares start with those of the last layers.
    """
    view = evaluation_view(model)
    layers = view.decoder.each_layer()
    flow: Flow = {}

    def keep(module: nn.Module, read: tuple[Tensor, ...], made: Tensor) -> None:
        flow[module] = read[0][0, : len(ids)].double(), made[0, : len(ids)].double()

    watched: list[nn.Module] = [view.decoder.final_norm, *layers]
    for layer in layers:
        for _, sublayer, residual in _sublayers(layer):
            watched += [residual.norm, residual.out_norm, getattr(sublayer, "out_proj", sublayer)]
    for module in watched:
        module.register_forward_hook(keep)
    with inference(view) as device:
        read = (torch.tensor([each], device=device) for each in inputs)
        view.hidden(*read)  # type: ignore[arg-type] # two texts or one, as the model needs
        lens = [_best(model, flow[layer][1]) for layer in layers]
        return lens, tuple(_shares(view, flow, torch.tensor(ids, device=device)))


def _sublayers(layer: Layer) -> Iterator[tuple[PartName, nn.Module, Residual]]:
    """Yield the sublayers from first to last, with their residuals."""
    yield "decoder", layer.self_attn, layer.self_attn_residual
    if layer.cross_attn is not None and layer.cross_attn_residual is not None:
        yield "cross", layer.cross_attn, layer.cross_attn_residual
    yield "feed-forward", layer.ffn, layer.ffn_residual


def _best(model: Writer, x_TD: Tensor) -> tuple[Tensor, Tensor]:
    found = [early_probs(model, part).max(-1) for part in x_TD.split(TOKENS_AT_ONCE)]
    probs, tokens = zip(*found, strict=True)
    return torch.cat(probs), torch.cat(tokens)


def early_probs(model: Writer, x_TD: Tensor) -> Tensor:
    """Return the output probabilities if this were the last residual stream: `(T, V)`."""
    hidden_TD = model.decoder.final_norm(x_TD.to(model.output.weight.dtype))
    return model.project(hidden_TD * model.logit_scale).softmax(-1)


class Carried:
    """The output layer's rows of T tokens, carried back through a decoder."""

    def __init__(self, output: nn.Linear, ids_T: Tensor, scale: float) -> None:
        self.g_TD = output.weight[ids_T].double() * scale
        self.biases_T = self.g_TD.new_zeros(len(ids_T))
        """The shares of the biases passed so far."""
        if output.bias is not None:
            self.biases_T += output.bias[ids_T]

    def pass_bias(self, bias_D: Tensor | None) -> None:
        """Add the share of a bias, if there is one."""
        if bias_D is not None:
            self.biases_T += self.g_TD @ bias_D.double()

    def pass_norm(self, norm: nn.Module, y_TD: Tensor) -> None:
        """Carry the rows back through a norm that read `y`."""
        if isinstance(norm, RMSNorm):
            scale_T1 = (y_TD.square().mean(-1, keepdim=True) + norm.eps).rsqrt()
            self.g_TD = self.g_TD * norm.weight * scale_T1
        elif isinstance(norm, LayerNorm):
            self.pass_bias(norm.bias)
            scale_T1 = (y_TD.var(-1, keepdim=True, correction=0) + norm.eps).rsqrt()
            h_TD = self.g_TD * norm.weight * scale_T1
            self.g_TD = h_TD - h_TD.mean(-1, keepdim=True)


def _shares(model: Writer, flow: Flow, ids_T: Tensor) -> Iterator[LogitPart]:
    rows = Carried(model.output, ids_T, model.logit_scale)
    final, layers = model.decoder.final_norm, model.decoder.each_layer()
    rows.pass_norm(final, flow[final][0])
    for layer in reversed(layers):
        for name, sublayer, residual in reversed([*_sublayers(layer)]):
            if not residual.pre:
                rows.pass_norm(residual.norm, flow[residual.norm][0])
            past_TD = residual.alpha * rows.g_TD
            if residual.pre:
                rows.pass_norm(residual.out_norm, flow[residual.out_norm][0])
            if isinstance(sublayer, MultiHeadAttention):
                out = sublayer.out_proj
                rows.pass_bias(out.bias)
                each_TZ = rows.g_TD @ out.weight.double() * flow[out][0]
                shares_TH = each_TZ.unflatten(-1, (sublayer.num_heads, -1)).sum(-1)
                for head, shares in enumerate(shares_TH.T.tolist()):
                    yield LogitPart(name=name, layer=layer.index, head=head, shares=tuple(shares))
            else:
                shares = (rows.g_TD * flow[sublayer][1]).sum(-1).tolist()
                yield LogitPart(name=name, layer=layer.index, shares=tuple(shares))
            rows.g_TD = past_TD
    shares = (rows.g_TD * flow[layers[0]][0]).sum(-1).tolist()
    yield LogitPart(name="embedding", shares=tuple(shares))
    yield LogitPart(name="biases", shares=tuple(rows.biases_T.tolist()))
