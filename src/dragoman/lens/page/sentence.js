// Who looks at whom, on the sentence: two rows of tokens and lines between them.

/** The attention map of a name: "encoder", "decoder" or "cross". */
function mapNamed(name) {
  return data.attention.find((map) => map.name === name);
}

/** The weights of the chosen layer and head, or their mean, as rows of shares. */
function chosenWeights(map, { layer, head }) {
  const layers = layer === "mean" ? map.weights : [map.weights[layer]];
  const matrices = layers.flatMap((heads) => (head === "mean" ? heads : [heads[head]]));
  return map.query_tokens.map((_, q) => map.key_tokens.map((_, k) =>
    matrices.reduce((sum, matrix) => sum + matrix[q][k], 0) / matrices.length / data.one));
}

/** What the chosen view shows: two rows of tokens, weights, and the lines drawn when nothing is pointed at. */
function seen(view) {
  if (view.name === "alignment") {
    return { queries: data.tgt.tokens, keys: data.src.tokens, weights: data.alignment.weights,
      links: data.alignment.links, queryLang: languageOf("tgt"), keyLang: languageOf("src") };
  }
  const map = mapNamed(view.name);
  const weights = chosenWeights(map, view);
  const links = weights.flatMap((row, q) => row.map((weight, k) => [q, k, weight])
    .sort((one, other) => other[2] - one[2]).slice(0, 3).filter(([, , weight]) => weight >= 0.02));
  return { queries: map.query_tokens, keys: map.key_tokens, weights, links,
    queryLang: languageOf(map.queries), keyLang: languageOf(map.keys) };
}

/** Whose words name the two rows: a decoder without an encoder looks at the text as an encoder does. */
function rowsOf(name) {
  return name === "decoder" && data.kind === "decoder-only" ? "encoder" : name;
}

function viewNames() {
  return [...(data.alignment ? ["alignment"] : []), ...data.attention.map((map) => map.name)];
}

function sentenceSection() {
  const place = el("div", { class: "sentence" });
  const draw = () => {
    const focused = document.activeElement && place.contains(document.activeElement)
      ? document.activeElement.name || document.activeElement.dataset.name : null;
    place.replaceChildren(viewControls(draw), ...stage(seen(state.view), state.view));
    if (focused) place.querySelector(`[name="${focused}"]:checked, [data-name="${focused}"]`)?.focus();
  };
  draw();
  showOnSentence = (view) => {
    Object.assign(state.view, view);
    draw();
    document.getElementById("sentence").scrollIntoView({ block: "start" });
  };
  return section("sentence", place);
}

/** Show a head on the sentence; set when the sentence is drawn. */
let showOnSentence = () => {};

function viewControls(draw) {
  const { view } = state;
  const set = (change) => { Object.assign(view, change); draw(); };
  const names = viewNames();
  const controls = el("div", { class: "controls" });
  if (names.length > 1) {
    controls.append(choices("view", t("view"), names.map((name) => [name, t(`map.${name}`)]),
      view.name, (name) => set({ name, layer: "mean", head: "mean" })));
  }
  if (view.name === "alignment") return controls;
  const map = mapNamed(view.name);
  const options = (numbers, all) =>
    [["mean", t(numbers.length === all ? "mean" : "mean.part")],
      ...numbers.map((n, place) => [place, String(n)])];
  const value = (text) => (text === "mean" ? text : Number(text));
  const layer = picker(t("layer"), options(map.layers, map.num_layers), view.layer,
    (text) => set({ layer: value(text) }));
  const head = picker(t("head"), options(map.heads, map.num_heads), view.head,
    (text) => set({ head: value(text) }));
  layer.lastChild.dataset.name = "layer";
  head.lastChild.dataset.name = "head";
  controls.append(layer, head);
  if (view.layer !== "mean" && view.head !== "mean") {
    controls.append(el("span", { class: "kind" },
      t(`kind.${map.summaries[view.layer][view.head].kind}`)));
  }
  return controls;
}

/** The two rows with their lines, and the line that says what is pointed at. */
function stage(picture, view) {
  const { line, say } = readout(t("sentence.hint"));
  const lines = svg("svg", { class: "lines", "aria-hidden": "true" });
  const keys = tokenRow(picture.keys, "keys", t(`${rowsOf(view.name)}.keys`), picture.keyLang);
  const queries = tokenRow(picture.queries, "queries", t(`${rowsOf(view.name)}.queries`),
    picture.queryLang);
  const box = el("div", { class: "stage" }, lines, keys.row, queries.row);

  const point = (side, index) => {
    const from = side === "queries" ? queries : keys;
    const to = side === "queries" ? keys : queries;
    const weightOf = (other) => (side === "queries"
      ? picture.weights[index][other] : picture.weights[other][index]);
    clear();
    box.classList.add("pointed");
    from.items[index].classList.add("active");
    to.items.forEach((item, other) => {
      tint(item, weightOf(other));
      item.lastChild.textContent = weightOf(other) >= 0.005 ? percent(weightOf(other)) : "";
    });
    const links = to.items.map((_, other) => (side === "queries"
      ? [index, other, weightOf(other)] : [other, index, weightOf(other)]));
    drawLines(links.filter(([, , weight]) => weight >= 0.01), 1);
    say(sentenceSaid(picture, side, index, weightOf));
  };
  const clear = () => {
    box.classList.remove("pointed");
    for (const item of [...keys.items, ...queries.items]) {
      item.classList.remove("active");
      tint(item, 0);
      item.lastChild.textContent = "";
    }
  };
  const rest = () => { clear(); drawLines(picture.links, 0.55); say(""); };

  function drawLines(links, strength) {
    const frame = box.getBoundingClientRect();
    const layout = box.dataset.layout;
    if (layout === "wrapped" && strength < 1) return lines.replaceChildren();
    lines.replaceChildren(...links.map(([q, k, weight]) => svg("path", {
      d: curve(keys.items[k], queries.items[q], frame, layout),
      "stroke-opacity": (strength * (0.15 + 0.85 * shade(weight))).toFixed(3),
      "stroke-width": (0.75 + 3.25 * weight).toFixed(2),
    })));
  }

  for (const [side, { items }] of [["keys", keys], ["queries", queries]]) {
    items.forEach((item, index) => {
      item.addEventListener("pointerenter", () => point(side, index));
      item.addEventListener("focus", () => point(side, index));
      item.addEventListener("blur", rest);
    });
  }
  box.addEventListener("pointerleave", () => {
    const item = document.activeElement;
    if (box.contains(item)) item.dispatchEvent(new Event("focus"));
    else rest();
  });
  roving(box, [keys.items, queries.items], [1, 0]);
  let width = 0;
  new ResizeObserver(() => {
    if (box.clientWidth === width) return;
    width = box.clientWidth;
    arrange(box, [keys.row, queries.row], Math.max(keys.items.length, queries.items.length));
    rest();
  }).observe(box);
  return [box, line];
}

function tokenRow(tokens, side, label, language) {
  const items = tokens.map((token) =>
    el("button", { type: "button", class: "token" }, shown(token), el("span", { class: "value" })));
  const row = el("div", { class: `row ${side}`, role: "group", "aria-label": label },
    el("span", { class: "row-label", "aria-hidden": "true" }, label),
    el("div", { class: "tokens", dir: directionOf(tokens), lang: language }, ...items));
  return { row, items };
}

/** Rows where both fit on one line each, large if they may, else columns, else rows that wrap. */
function arrange(box, rows, longest) {
  box.dataset.layout = "rows";
  const fits = ["large", "small"].some((size) => {
    box.dataset.size = size;
    return rows.every((row) => row.lastChild.scrollWidth <= row.lastChild.clientWidth + 1);
  });
  if (!fits) box.dataset.layout = longest <= 40 ? "columns" : "wrapped";
  box.dataset.upright = String(box.dataset.layout === "columns");
}

/** A line from a key to a query, in the coordinates of the stage. */
function curve(key, query, frame, layout) {
  const a = key.firstChild.getBoundingClientRect();
  const b = query.firstChild.getBoundingClientRect();
  if (layout === "columns") {
    const [x1, x2] = [key.getBoundingClientRect().right, query.getBoundingClientRect().left]
      .map((x) => x - frame.left);
    const [y1, y2] = [a, b].map((r) => (r.top + r.bottom) / 2 - frame.top);
    const half = (x1 + x2) / 2;
    return `M${x1} ${y1}C${half} ${y1} ${half} ${y2} ${x2} ${y2}`;
  }
  const [x1, x2] = [a, b].map((r) => (r.left + r.right) / 2 - frame.left);
  const y1 = key.getBoundingClientRect().bottom - frame.top;
  const y2 = query.getBoundingClientRect().top - frame.top;
  const half = (y1 + y2) / 2;
  return `M${x1} ${y1}C${x1} ${half} ${x2} ${half} ${x2} ${y2}`;
}

/** What is pointed at, in words: the strongest four. */
function sentenceSaid(picture, side, index, weightOf) {
  const [own, others] = side === "queries"
    ? [picture.queries, picture.keys] : [picture.keys, picture.queries];
  const strongest = others.map((token, place) => [token, weightOf(place)])
    .filter(([, weight]) => weight >= 0.01)
    .sort((one, other) => other[1] - one[1]).slice(0, 4)
    .map(([token, weight]) => t("share", { token: named(token), share: percent(weight) }));
  return t(side === "queries" ? "looks.at" : "looked.at.by",
    { token: named(own[index]), list: strongest.join(t("comma")) || t("nothing") });
}
