// The page: what the reader types and switches, and what the model computes from it.

const model = loadModel(MODEL);
const { num_heads: HEADS, num_encoder_layers: ENCODER, num_decoder_layers: DECODER } = model.config;
/** The kinds of attention, in the form in which `dragoman inspect` shows them. */
const MAPS = Object.entries({ encoder: ENCODER, decoder: DECODER, cross: DECODER }).map(([name, layers]) =>
  ({ name, layers: [...Array(layers).keys()], heads: [...Array(HEADS).keys()] }));
const [BEAM_SIZE, LENGTH_PENALTY] = [4, 1];
const EXAMPLES = ["I like studying artificial intelligence.",
  "You bought a piece of chocolate yesterday afternoon.",
  "The teacher criticized the nurse yesterday.", "The nurse criticized the teacher yesterday.",
  "Her brother bought two red umbrellas at the market yesterday."];

/** The model as it was trained. */
const asTrained = () =>
  ({ scale: true, causal: true, positions: true, temperature: 1, off: [] });

Object.assign(state, { text: EXAMPLES[0], search: "beam", seed: 1, switches: asTrained(),
  head: { stack: "cross", layer: 1, head: 0 } });
if (location.pathname.includes("/zh/")) state.language = "zh";

/** What was computed last: the encoder's run, the decoder's, and the tokens of both. */
let shownRun = null;

// -------------------------------------------------------------------------------- the computation

/** Translate ids, and keep all that was computed. */
function translate(src_S, switches) {
  const encoder = encode(model, src_S, switches);
  const options = { size: state.search === "beam" ? BEAM_SIZE : 1, alpha: LENGTH_PENALTY,
    longest: src_S.length + 15, random: state.search === "sample" ? randomNumbers(state.seed) : null };
  const found = search(model, encoder.memory, options, switches);
  return { encoder, ...found, text: detokenize(found.way.at(-1).ids, model.tokenizer) };
}

/** A search in the form in which `dragoman inspect` shows it. */
function inspected({ nodes, way }) {
  const { pieces } = model.tokenizer;
  const steps = way.slice(1).map(({ token, parent: { run: { probs_V, logits_V } } }) => ({
    token: pieces[token], log_prob: Math.log(probs_V[token]),
    entropy: -probs_V.reduce((sum, prob) => sum + (prob && prob * Math.log(prob)), 0),
    alternatives: [...new Set([...largest(probs_V, 6), token])].map((id) =>
      ({ token: pieces[id], prob: probs_V[id], logit: logits_V[id] })) }));
  const tree = nodes.map((node) => {
    const why = node === way.at(-1) ? "why.best" : `why.${node.fate}`;
    return { ...node, parent: node.parent && node.parent.id, token: pieces[node.token],
      score: node.score ?? null, state: node.fate, why: labels.en[why], why_zh: labels.zh[why] };
  });
  const beam = { beam_size: BEAM_SIZE, length_penalty: LENGTH_PENALTY, nodes: tree };
  return { kind: "encoder-decoder", attention: MAPS, languages: { src: "en", tgt: "zh" }, tgt: true, steps,
    beam: state.search === "beam" ? beam : null };
}

/** Compute everything again and show it. */
function update() {
  const src_S = [...tokenize(state.text, model.tokenizer), EOS];
  const touched = JSON.stringify(state.switches) !== JSON.stringify(asTrained());
  const found = translate(src_S, state.switches);
  const plain = touched ? translate(src_S, asTrained()) : found;
  data = inspected(found);
  state.step = null;
  const pieces = (ids) => ids.map((id) => model.tokenizer.pieces[id]);
  const { run, ids: tgt_T } = found.way.at(-2);
  shownRun = { encoder: found.encoder, decoder: run, src_S, tgt_T, src: pieces(src_S), tgt: pieces(tgt_T) };
  document.querySelector(".result").replaceChildren(
    el("p", { class: "text", lang: "zh-CN" }, found.text || "∅"),
    el("p", { class: "note" }, touched
      ? t(plain.text === found.text ? "result.same" : "result.plain", { text: plain.text })
      : t("result.trained")));
  const focused = document.activeElement.name;
  document.querySelector(".views").replaceChildren(
    tokensView(), embeddingView(), headsView(), headView(), streamView(), stepsSection());
  if (focused) document.querySelector(`.views [name="${focused}"]`)?.focus({ preventScroll: true });
  paintAll();
}

// ------------------------------------------------------------------------------------ the switches

function switchOf(name) {
  const onchange = ({ target }) => { state.switches[name] = target.checked; update(); };
  return el("label", { class: "switch" },
    el("input", { type: "checkbox", name, checked: state.switches[name], onchange }),
    el("span", {}, t(`switch.${name}`)), el("small", {}, t(`switch.${name}.is`)));
}

function temperatureSwitch() {
  const { temperature: value } = state.switches;
  const shownValue = el("output", {}, number(value, 1));
  const oninput = ({ target }) => {
    state.switches.temperature = Number(target.value);
    shownValue.textContent = number(state.switches.temperature, 1);
    update();
  };
  return el("label", { class: "switch range" }, el("span", {}, t("temperature"), " ", shownValue),
    el("input", { type: "range", min: 0.1, max: 3, step: 0.1, value, oninput }),
    el("small", {}, t("temperature.is")));
}

function lab() {
  const searches = ["greedy", "beam", "sample"].map((name) => [name, t(`search.${name}`)]);
  const again = el("button", { type: "button", class: "plain-button",
    hidden: state.search !== "sample", onclick: () => { state.seed += 1; update(); } }, t("again"));
  const choose = (name) => {
    state.search = name;
    again.hidden = name !== "sample";
    update();
  };
  const reset = () => {
    state.switches = asTrained();
    render();
    document.querySelector(".reset").focus();
  };
  return el("aside", { class: "lab", "aria-label": t("switches") }, el("h2", {}, t("switches")),
    el("div", { class: "controls" }, choices("search", t("search"), searches, state.search, choose), again),
    temperatureSwitch(), ...["scale", "causal", "positions"].map(switchOf),
    el("button", { type: "button", class: "plain-button reset", onclick: reset }, t("reset")));
}

// --------------------------------------------------------------------------------------- the views

/** The largest absolute value, which gets the whole colour; a masked score is none, and zeros get no colour. */
const largestOf = (matrix) => Math.max(...matrix.flat().filter(Number.isFinite).map(Math.abs)) || 1;

/** A matrix with its tokens beside the rows. */
function matrixOf(name, { tokens, lang }, matrix) {
  const shape = `${matrix.length} × ${matrix[0].length}`;
  return el("figure", { class: "matrix" }, el("figcaption", {}, t(name), el("small", {}, shape)),
    el("div", {}, el("ol", { lang }, ...tokens.map((token) => el("li", {}, shown(token)))),
      image(matrix, largestOf(matrix), `${t(name)}, ${shape}`)));
}

function tokensView() {
  const row = (name, ids, tokens, lang) => el("div", {}, el("h3", {}, t(name)),
    el("ol", { class: "tokens pieces", lang }, ...tokens.map((token, place) =>
      el("li", { class: "token" }, shown(token), el("small", {}, String(ids[place]))))));
  const { src_S, tgt_T, src, tgt } = shownRun;
  return section("pieces", row("pieces.src", src_S, src, "en"), row("pieces.tgt", tgt_T, tgt, "zh-CN"));
}

function embeddingView() {
  const { encoder: { embedding }, src: tokens } = shownRun;
  return section("embedding", el("div", { class: "matrices wide" },
    ...["tokens", "positions", "sum"].map((part) =>
      matrixOf(`embedding.${part}`, { tokens, lang: "en" }, embedding[part]))));
}

const nameOf = (head) => t("head.name", { ...head, map: t(`map.${head.stack}`) });

/** What a head computed. */
const computed = ({ stack, layer, head }) =>
  shownRun[stack === "encoder" ? "encoder" : "decoder"].attention[`${stack}.${layer}`][head];

function headsView() {
  const choose = (head) => () => {
    state.head = head;
    document.getElementById("head").replaceWith(headView());
    paintAll();
    for (const button of document.querySelectorAll(".thumb"))
      button.setAttribute("aria-pressed", button.getAttribute("aria-label") === nameOf(head));
  };
  const headAndSwitch = ({ name: stack }, layer, head) => {
    const { weights_TS, off } = computed({ stack, layer, head });
    const [name, label] = [`${stack}.${layer}.${head}`, nameOf({ stack, layer, head })];
    const onchange = ({ target }) => {
      const others = state.switches.off.filter((each) => each !== name);
      state.switches.off = target.checked ? others : [...others, name];
      update();
    };
    return [
      thumbnail(weights_TS, 1, { class: off ? "thumb off" : "thumb", "aria-label": label,
        "aria-pressed": label === nameOf(state.head), onclick: choose({ stack, layer, head }) }),
      el("input", { type: "checkbox", name, checked: !off, "aria-label": t("heads.on", { head: label }), onchange }),
    ];
  };
  return section("heads", el("div", { class: "maps" }, ...data.attention.map((map) => headGrid(map, headAndSwitch))));
}

function headView() {
  const { stack } = state.head;
  const { q_Td, k_Sd, v_Sd, scores_TS, weights_TS } = computed(state.head);
  const side = (name) => ({ tokens: shownRun[name], lang: { src: "en", tgt: "zh-CN" }[name] });
  const [queries, keys] = [side(stack === "encoder" ? "src" : "tgt"), side(stack === "decoder" ? "tgt" : "src")];
  const { line, say } = readout(t("head.hint"));
  const signed = (value) => (Number.isFinite(value) ? number(value, 1) : "−∞");
  const said = (q, k) => t("head.said", { query: named(queries.tokens[q]), key: named(keys.tokens[k]),
    product: number(dot(q_Td[q], k_Sd[k])), score: signed(scores_TS[q][k]), share: percent(weights_TS[q][k]) });
  const table = (name, matrix, bound, text) => el("div", {}, el("h3", {}, t(name)), el("div", { class: "scroll" },
    heatTable(t(name), queries, keys, matrix, { bound, text, said, say })));
  return el("section", { id: "head", "aria-labelledby": "head-title" },
    el("h2", { id: "head-title" }, nameOf(state.head)), el("p", { class: "lead" }, t("head.lead")),
    el("div", { class: "matrices" }, matrixOf("head.q", queries, q_Td), matrixOf("head.k", keys, k_Sd),
      matrixOf("head.v", keys, v_Sd)),
    table(state.switches.scale ? "head.scores" : "head.unscaled", scores_TS, largestOf(scores_TS), signed),
    table("head.weights", weights_TS, 1, (weight) => (weight < 0.005 ? "" : weight.toFixed(2))), line);
}

/** The mean norm over all tokens, before and behind each sublayer. */
function streamView() {
  const mean = (x_LD) => x_LD.map(norm).reduce((a, b) => a + b) / x_LD.length;
  const all = ["encoder", "decoder"].map((stack) => shownRun[stack].stream.map((part) =>
    ({ ...part, size: mean(part.x_LD), added: part.change_LD && mean(part.change_LD) })));
  const most = Math.max(...all.flat().map(({ size }) => size));
  const list = (parts, stack) => el("div", {}, el("h3", {}, t(`map.${stack}`)), bars(parts.map(({ name, size, added }) => {
    const [, layer, sublayer = "embedding"] = name.split(".");
    return { name: t(`stream.${sublayer}`, { layer }), share: size / most,
      text: [number(size, 1), el("small", {}, added ? ` +${number(added, 1)}` : "")] };
  }), t(`map.${stack}`)));
  return section("stream", el("div", { class: "streams" }, list(all[0], "encoder"), list(all[1], "decoder")));
}

// ---------------------------------------------------------------------------------------- the page

function ask() {
  let waiting = 0;
  const field = el("input", { id: "text", class: "field", type: "text", value: state.text, lang: "en", maxlength: 120,
    spellcheck: "false", autocomplete: "off", oninput: () => {
      state.text = field.value;
      clearTimeout(waiting);
      waiting = setTimeout(update, 150);
    } });
  const take = (text) => { field.value = state.text = text; update(); };
  return el("div", { class: "hero" }, el("h1", {}, t("title")), el("p", { class: "lead" }, t("lead")),
    el("div", { class: "ask" }, el("label", { for: "text" }, t("ask")), field,
      picker(t("examples"), EXAMPLES.map((text) => [text, text]), state.text, take)));
}

function render() {
  document.title = t("title");
  drawFrame(render);
  document.querySelector("main").replaceChildren(ask(), el("div", { class: "result", role: "status" }),
    el("div", { class: "bench" }, lab(), el("div", { class: "views" })));
  document.querySelector("footer").replaceChildren(el("p", {}, t("footer")));
  update();
}

render();
