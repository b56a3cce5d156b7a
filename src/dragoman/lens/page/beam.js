// The tree of beam search: a column for each step, a row for each rank.

const FATES = { chosen: "●", finished: "■", open: "○", pruned: "×", beaten: "◇" };
const COLUMN = 148;
const ROW = 40;

/** Pruned nodes of a step that the tree shows, the best ones; the table has all. */
const PRUNED = 4;

/** The steps of a tree, whose nodes stand step by step. */
function depthOf(tree) {
  return tree.nodes[tree.nodes.length - 1].step;
}

/** The nodes of each step, best first. */
function ranked() {
  return Array.from({ length: depthOf(data.beam) + 1 }, (_, step) => data.beam.nodes
    .filter((node) => node.step === step).sort((one, other) => one.rank - other.rank));
}

/** Of a step's nodes those that the tree shows. */
function drawn(column) {
  const pruned = column.filter((node) => node.state === "pruned").slice(PRUNED);
  return column.filter((node) => !pruned.includes(node));
}

/** The tree with its table; `go` shows another step everywhere on the page. */
function beamTree(go) {
  const { beam_size: size, length_penalty: penalty } = data.beam;
  const steps = ranked();
  const columns = steps.map(drawn);
  const nodes = columns.flat();
  const depth = columns.length - 1;
  const { line, say } = readout(t("beam.hint"));
  const buttons = new Map(nodes.map((node) => [node.id, nodeButton(node)]));
  const edges = new Map(nodes.filter((node) => node.parent !== null).map((node) =>
    [node.id, edge(columns, node)]));
  const band = el("div", { class: "band" });
  const tallest = Math.max(...columns.map((column) => column.length));
  const canvas = el("div", { class: "tree", role: "group", "aria-label": t("beam.tree"),
    "data-upright": "true" }, band,
  svg("svg", { "aria-hidden": "true", width: (depth + 1) * COLUMN, height: tallest * ROW },
    ...edges.values()), ...buttons.values());
  canvas.style.width = `${(depth + 1) * COLUMN}px`;
  canvas.style.height = `${tallest * ROW}px`;
  const scroll = el("div", { class: "scroll" }, canvas);
  const table = el("div", { class: "scroll tall", tabindex: 0, role: "region",
    "aria-label": t("beam.all") });
  let step = 1;

  columns.forEach((column, s) => column.forEach((node, row) => {
    const button = buttons.get(node.id);
    button.style.left = `${s * COLUMN}px`;
    button.style.top = `${row * ROW}px`;
    const tell = () => { mark(node); say(nodeSaid(node)); };
    button.addEventListener("focus", tell);
    button.addEventListener("pointerenter", tell);
  }));
  canvas.addEventListener("keydown", (event) => {
    const s = columns.findIndex((column) => column.some(({ id }) => buttons.get(id) === event.target));
    if (event.key === "ArrowRight" && s === step && step < depth) go(step);
  }, true);
  canvas.addEventListener("pointerleave", () => mark(null));
  const take = roving(canvas, columns.map((column) => column.map(({ id }) => buttons.get(id))));

  /** Show the way to a node. */
  function mark(node) {
    const way = new Set(node ? path(node).map(({ id }) => id) : []);
    for (const [id, line] of edges) line.classList.toggle("way", way.has(id));
    for (const [id, button] of buttons) button.classList.toggle("way", way.has(id));
  }

  function show(next) {
    step = Math.min(next, depth);
    band.style.left = `${step * COLUMN - 8}px`;
    for (const node of nodes) {
      buttons.get(node.id).classList.toggle("future", node.step > step);
      if (edges.has(node.id)) edges.get(node.id).classList.toggle("future", node.step > step);
    }
    take(buttons.get(columns[step][0].id)); // the tab key must not stop at a hidden node
    table.replaceChildren(stepTable(steps[step], step));
    table.scrollTo({ top: 0 });
    scroll.scrollTo({ left: (step + 1) * COLUMN - scroll.clientWidth / 2 });
  }

  return { go: show, element: el("div", { class: "beam" },
    el("h3", {}, t("beam.title")),
    el("p", { class: "note" }, t("beam.lead", { size, penalty: number(penalty, 1) })),
    fateLegend(), scroll, line, table) };
}

/** The nodes from the first token to this one. */
function path(node) {
  const way = [];
  for (let at = node; at.parent !== null; at = data.beam.nodes[at.parent]) way.unshift(at);
  return way;
}

function textOf(node) {
  return path(node).map(({ token }) => token).join("").replace(SPACE, "").replace(/[\u2581\u0120]/g, " ");
}

function nodeButton(node) {
  return el("button", { type: "button", class: `node ${node.state}`, "aria-label": t("beam.node", {
    token: node.parent === null ? t("beam.root") : named(node.token), step: node.step,
    rank: node.rank + 1, log: number(node.log_prob), state: t(`state.${node.state}`) }) },
  el("span", { class: "fate", "aria-hidden": "true" }, FATES[node.state]),
  node.parent === null ? el("span", { class: "special" }, t("beam.root")) : shown(node.token),
  el("span", { class: "log" }, node.parent === null ? "" : number(node.log_prob)));
}

function edge(columns, node) {
  const row = (id, step) => columns[step].findIndex((other) => other.id === id);
  const y1 = (row(node.parent, node.step - 1) + 0.5) * ROW - 4;
  const y2 = (row(node.id, node.step) + 0.5) * ROW - 4;
  const x1 = node.step * COLUMN - 22;
  const x2 = node.step * COLUMN;
  return svg("path", { class: node.state,
    d: `M${x1} ${y1}C${x1 + 14} ${y1} ${x2 - 14} ${y2} ${x2} ${y2}` });
}

function why(node) {
  return state.language === "zh" ? node.why_zh : node.why;
}

function nodeSaid(node) {
  if (node.parent === null) return why(node);
  return t("beam.said", { text: textOf(node), log: number(node.log_prob),
    score: node.score === null ? "" : t("beam.score", { score: number(node.score) }),
    why: why(node) });
}

/** What became of the prefixes, in words and marks: no meaning is in a colour alone. */
function fateLegend() {
  return el("ul", { class: "fates" }, ...Object.entries(FATES).map(([name, sign]) =>
    el("li", {}, el("span", { class: `fate ${name}`, "aria-hidden": "true" }, sign),
      ` ${t(`state.${name}`)}`)));
}

function stepTable(column, step) {
  const heads = ["beam.text", "beam.log", "beam.final", "beam.state", "beam.why"];
  return el("table", { class: "plain candidates" },
    el("caption", {}, t("beam.table", { n: step, count: column.length })),
    el("thead", {}, el("tr", {}, ...heads.map((name) => el("th", { scope: "col" }, t(name))))),
    el("tbody", {}, ...column.map((node) => el("tr", { class: node.state },
      el("td", { dir: "auto", lang: languageOf("tgt") }, textOf(node)),
      el("td", { class: "number" }, number(node.log_prob)),
      el("td", { class: "number" }, node.score === null ? "–" : number(node.score)),
      el("td", {}, `${FATES[node.state]} ${t(`state.${node.state}`)}`),
      el("td", {}, why(node))))));
}
