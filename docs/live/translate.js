// Around the model: the search for a translation, text to ids and back, and the file of weights.

const [BOS, EOS] = [2, 3];

// ----------------------------------------------------------------------------------- search (6)

/** lp(n) = ((5 + n) / 6)^alpha: sums of more log-probabilities are divided by more. */
function lengthPenalty(length, alpha) {
  return ((5 + length) / 6) ** alpha;
}

/** Numbers in [0, 1) that follow from the seed (mulberry32). */
function randomNumbers(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let z = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    z = (z + Math.imul(z ^ (z >>> 7), 61 | z)) ^ z;
    return ((z ^ (z >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The ids of the `count` largest, the largest first. */
function largest(values_V, count) {
  return values_V.map((_, id) => id).sort((a, b) => values_V[b] - values_V[a]).slice(0, count);
}

/** The first id at which the sum of the probabilities exceeds a number. */
function draw(probs_V, number) {
  let sum = 0;
  return Math.max(0, probs_V.findIndex((prob) => (sum += prob) > number));
}

/**
 * Beam search: at each step all continuations of the open prefixes are ranked by their sums of
 * log-probabilities, and the best get the free places. A complete one keeps its place and has a
 * score. A beam of one is greedy search; with `random` its token is drawn instead.
 * Gives every prefix as a node of a tree, with what became of it, and the way to the best one.
 */
function search(model, memory, { size, alpha, longest, pruned = 4, random = null }, switches) {
  const root = { id: 0, step: 0, rank: 0, token: BOS, ids: [BOS], log_prob: 0, parent: null };
  const nodes = [root];
  let [open, places, best] = [[root], size, null];
  for (let step = 1; open.length; step++) {
    for (const node of open) node.run = decode(model, node.ids, memory, switches);
    const ranked = open.flatMap((parent) => {
      const { probs_V } = parent.run;
      const ids = random ? [draw(probs_V, random())] : largest(probs_V, places + pruned);
      return ids.map((token) => ({ parent, token, step, ids: [...parent.ids, token],
        log_prob: parent.log_prob + Math.log(probs_V[token]) }));
    }).sort((a, b) => b.log_prob - a.log_prob).slice(0, places + pruned);
    for (const [rank, node] of ranked.entries())
      nodes.push(Object.assign(node, { id: nodes.length, rank, fate: "pruned" }));
    const kept = ranked.slice(0, places);
    for (const node of kept) node.fate = "open";
    const ended = kept.filter(({ token }) => token === EOS || step === longest);
    for (const node of ended) {
      node.fate = "finished";
      node.score = node.log_prob / lengthPenalty(step, alpha);
      if (!best || node.score > best.score) best = node;
    }
    places -= ended.length;
    open = kept.filter((node) => !ended.includes(node));
    const reachable = Math.max(...open.map((node) => node.log_prob)) / lengthPenalty(longest, alpha);
    if (best && reachable <= best.score) break; // no open prefix can still exceed the best
  }
  for (const node of open) node.fate = "beaten";
  const way = [];
  for (let node = best; node; node = node.parent) way.unshift(Object.assign(node, { fate: "chosen" }));
  return { nodes, way };
}

// ------------------------------------------------------------------------ text to ids, and back

const UNSPACED = "\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\u30FC";
const FULL_WIDTH = "\\u3001-\\u303F\\uFF01-\\uFF65";
const LETTER = `(?![${UNSPACED}])[\\p{L}\\p{M}]`;
const OTHER = `[^\\s\\p{L}\\p{M}\\p{N}${UNSPACED}${FULL_WIDTH}]`;
const WORDS = new RegExp(`[${UNSPACED}]+|(?<=\\p{L})['’](?:s|t|re|ve|m|ll|d)(?![\\p{L}\\p{M}\\p{N}])` +
  `| ?(?:${LETTER})+| ?(?![${UNSPACED}])\\p{N}|[${FULL_WIDTH}]+| ?${OTHER}+|\\s+(?!\\S)|\\s+`, "gu");

const utf8 = (text) => [...new TextEncoder().encode(text)];

/** Byte-pair encoding (Sennrich et al., 2016): a word's characters, merged in the order in which
 *  the pairs were learned; a character that is no piece is spelled in the bytes of UTF-8. */
function mergePairs(word, { ids, ranks }) {
  const bytes = (letter) => utf8(letter).map((byte) =>
    `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
  const pieces = [...word].flatMap((letter) => (ids.has(letter) ? [letter] : bytes(letter)));
  for (;;) {
    const order = pieces.slice(1).map((right, i) => ranks.get(`${pieces[i]}\n${right}`) ?? Infinity);
    const first = Math.min(...order);
    if (first === Infinity) return pieces;
    const at = order.indexOf(first);
    pieces.splice(at, 2, pieces[at] + pieces[at + 1]);
  }
}

/** The ids of a text's pieces. A word has the space before it, the first one too. */
function tokenize(text, tokenizer) {
  const spaced = new RegExp(`^[${UNSPACED}${FULL_WIDTH}]`, "u").test(text) || !text ? text : ` ${text}`;
  return (spaced.match(WORDS) ?? []).flatMap((word) => mergePairs(word, tokenizer))
    .map((piece) => tokenizer.ids.get(piece));
}

/** The text of ids, without what stands for no text and the space before the first word. */
function detokenize(tokens, { pieces }) {
  const bytes = tokens.filter((id) => id > EOS).flatMap((id) =>
    (/^<0x..>$/.test(pieces[id]) ? [parseInt(pieces[id].slice(3, 5), 16)] : utf8(pieces[id])));
  return new TextDecoder().decode(new Uint8Array(bytes)).replace(/^ /, "");
}

// ------------------------------------------------------------------------- weights, from the file

/** Numbers of a type such as Int8Array, from base64. */
function unpack(text, Type) {
  return new Type(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
}

/** The rows of a matrix in 8 bits, each times its scale. */
function rescaled(whole, scales) {
  const width = whole.length / scales.length;
  return Array.from(scales, (scale, row) =>
    Float32Array.from(whole.subarray(row * width, (row + 1) * width), (q) => q * scale));
}

/** The weights by name, `encoder.layers.0.ffn.up.weight` as model.encoder.layers[0].ffn.up.weight. */
function loadModel({ config, weights, tokenizer }) {
  const model = { config, encoder: { layers: [] }, decoder: { layers: [] } };
  for (const [name, { values, scales }] of Object.entries(weights)) {
    const path = name.split(".");
    const last = path.pop();
    const part = path.reduce((inside, key) => (inside[key] ??= {}), model);
    part[last] = scales ? rescaled(unpack(values, Int8Array), unpack(scales, Float32Array))
      : unpack(values, Float32Array);
  }
  model.embedding = model.src_embedding.weight; // one matrix for source, target and output
  const { vocab, merges } = tokenizer.model;
  const pieces = [];
  for (const [piece, id] of Object.entries(vocab)) pieces[id] = piece;
  const ranks = new Map(merges.map((pair, rank) => [pair.join("\n"), rank]));
  return Object.assign(model, { tokenizer: { ids: new Map(Object.entries(vocab)), pieces, ranks } });
}
