// The Transformer of "Attention Is All You Need" (Vaswani et al., 2017), from ids to logits.
//
// A vector is a list of numbers and a matrix a list of its rows. Names end in their axes as in the
// Python code: S source, T target, L any length, D the model's width, H heads, d the width of a
// head, F the width inside the feed-forward network, V vocabulary.
//
// `run` goes through all functions: `run.switches` holds what the reader has switched, and
// `run.attention` and `run.stream` receive what was computed on the way.

// ----------------------------------------------------------------------------- vectors, matrices

function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

function addVectors(a, b) {
  return a.map((value, i) => value + b[i]);
}

function norm(a) {
  return Math.sqrt(dot(a, a));
}

/** y = W x + b for every row x. */
function linear(x_LD, { weight, bias }) {
  return x_LD.map((x) => weight.map((row, o) => dot(row, x) + bias[o]));
}

/** The columns of each of `count` equal parts of a matrix. */
function split(x_LD, count) {
  const width = x_LD[0].length / count;
  return Array.from({ length: count }, (_, part) =>
    x_LD.map((x) => x.slice(part * width, (part + 1) * width)));
}

/** exp(z) / sum(exp(z)); the largest is subtracted first, so that no exp overflows. */
function softmax(z) {
  const largest = Math.max(...z);
  const exps = z.map((value) => Math.exp(value - largest));
  const sum = exps.reduce((a, b) => a + b);
  return exps.map((value) => value / sum);
}

/** (x - mean) / sqrt(variance + eps) * weight + bias, for every row. */
function layerNorm(x_LD, { weight, bias }, eps = 1e-5) {
  return x_LD.map((x) => {
    const mean = x.reduce((a, b) => a + b) / x.length;
    const centred = x.map((value) => value - mean);
    const root = Math.sqrt(dot(centred, centred) / x.length + eps);
    return centred.map((value, i) => (value / root) * weight[i] + bias[i]);
  });
}

// ------------------------------------------------------------------------ embeddings (3.4, 3.5)

/** PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(the same). */
function positionalEncoding(pos, D) {
  return Array.from({ length: D }, (_, column) => {
    const angle = pos / 10000 ** ((column - (column % 2)) / D);
    return column % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

/** E[id] * sqrt(D) + PE(pos): the tokens, their positions, and the sums, each `(L, D)`. */
function embed(model, ids_L, run) {
  const D = model.embedding[0].length;
  const tokens = ids_L.map((id) => Array.from(model.embedding[id], (value) => value * Math.sqrt(D)));
  const positions = ids_L.map((_, pos) =>
    (run.switches.positions ? positionalEncoding(pos, D) : new Array(D).fill(0)));
  return { tokens, positions, sum: tokens.map((token, pos) => addVectors(token, positions[pos])) };
}

// ------------------------------------------------------------------------------ attention (3.2)

/** softmax(Q K^T / sqrt(d)) V for one head; `mask(i, j)` says whether query i may see key j. */
function scaledDotProductAttention(q_Td, k_Sd, v_Sd, mask, run) {
  const scale = run.switches.scale ? 1 / Math.sqrt(q_Td[0].length) : 1;
  const scores_TS = q_Td.map((q, i) =>
    k_Sd.map((k, j) => (mask(i, j) ? dot(q, k) * scale : -Infinity)));
  const weights_TS = scores_TS.map(softmax);
  const out_Td = weights_TS.map((weights) =>
    v_Sd[0].map((_, column) => weights.reduce((sum, w, j) => sum + w * v_Sd[j][column], 0)));
  return { scores_TS, weights_TS, out_Td };
}

/** The keys and values of all heads: what attention looks at. */
function projectKeysAndValues(x_SD, { kv_proj }, H) {
  const [k_SD, v_SD] = split(linear(x_SD, kv_proj), 2);
  return { k_HSd: split(k_SD, H), v_HSd: split(v_SD, H) };
}

/** Concat(head_1 ... head_H) W_O; `name` is the layer's, such as "encoder.0". */
function multiHeadAttention(x_TD, { k_HSd, v_HSd }, { q_proj, out_proj }, mask, name, run) {
  const heads = split(linear(x_TD, q_proj), k_HSd.length).map((q_Td, h) => {
    const [k_Sd, v_Sd] = [k_HSd[h], v_HSd[h]];
    const head = scaledDotProductAttention(q_Td, k_Sd, v_Sd, mask, run);
    const off = run.switches.off.includes(`${name}.${h}`);
    if (off) head.out_Td = head.out_Td.map((out) => out.map(() => 0));
    return { q_Td, k_Sd, v_Sd, off, ...head };
  });
  run.attention[name] = heads;
  return linear(x_TD.map((_, t) => heads.flatMap((head) => head.out_Td[t])), out_proj);
}

const everything = () => true;
const causal = (i, j) => j <= i;

// ---------------------------------------------------------------------------- layers (3.1, 3.3)

/** max(0, x W_1 + b_1) W_2 + b_2 */
function feedForward(x_LD, { up, down }) {
  const hidden_LF = linear(x_LD, up).map((row) => row.map((value) => Math.max(0, value)));
  return linear(hidden_LF, down);
}

/** x + f(norm(x)), the norm before the sublayer; the paper has it behind: norm(x + f(x)). */
function residual(x_LD, normWeights, sublayer, name, run) {
  const change_LD = sublayer(layerNorm(x_LD, normWeights));
  const out_LD = x_LD.map((x, l) => addVectors(x, change_LD[l]));
  run.stream.push({ name, x_LD: out_LD, change_LD });
  return out_LD;
}

/** Self-attention, cross-attention where there is a memory (the decoder), and feed-forward. */
function transformerLayer(layer, x_LD, mask, memory, place, stack, run) {
  const H = run.numHeads;
  const own = `${stack}.${place}`;
  const selfAttention = (x) =>
    multiHeadAttention(x, projectKeysAndValues(x, layer.self_attn, H), layer.self_attn, mask, own, run);
  x_LD = residual(x_LD, layer.self_attn_residual.norm, selfAttention, `${own}.attention`, run);
  if (memory) {
    const crossAttention = (x) =>
      multiHeadAttention(x, memory, layer.cross_attn, everything, `cross.${place}`, run);
    x_LD = residual(x_LD, layer.cross_attn_residual.norm, crossAttention, `${own}.cross`, run);
  }
  return residual(x_LD, layer.ffn_residual.norm, (x) => feedForward(x, layer.ffn), `${own}.ffn`, run);
}

/** What a pass starts with. */
function newRun(model, switches) {
  return { switches, numHeads: model.config.num_heads, attention: {}, stream: [] };
}

/** The encoder: ids of the source to the keys and values that each decoder layer looks at. */
function encode(model, src_S, switches) {
  const run = newRun(model, switches);
  run.embedding = embed(model, src_S, run);
  let x_SD = run.embedding.sum;
  run.stream.push({ name: "embedding", x_LD: x_SD });
  model.encoder.layers.forEach((layer, place) => {
    x_SD = transformerLayer(layer, x_SD, everything, null, place, "encoder", run);
  });
  const memory_SD = layerNorm(x_SD, model.encoder.final_norm);
  run.memory = model.decoder.layers.map((layer) =>
    projectKeysAndValues(memory_SD, layer.cross_attn, run.numHeads));
  return run;
}

/** The decoder: what was written so far to the logits `(V)` of the next token. */
function decode(model, tgt_T, memory, switches) {
  const run = newRun(model, switches);
  const mask = switches.causal ? causal : everything;
  run.embedding = embed(model, tgt_T, run);
  let x_TD = run.embedding.sum;
  run.stream.push({ name: "embedding", x_LD: x_TD });
  model.decoder.layers.forEach((layer, place) => {
    x_TD = transformerLayer(layer, x_TD, mask, memory[place], place, "decoder", run);
  });
  const [last_D] = layerNorm(x_TD.slice(-1), model.decoder.final_norm);
  run.logits_V = Array.from(model.embedding, (row) => dot(row, last_D)); // the output matrix is E
  run.probs_V = softmax(run.logits_V.map((logit) => logit / switches.temperature));
  return run;
}
