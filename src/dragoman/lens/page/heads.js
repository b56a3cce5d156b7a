// The heads of every layer as small heat maps.

function headsSection() {
  const maps = data.attention.map(headGrid);
  return section("heads", scaleLegend(), el("div", { class: "maps" }, ...maps), kindLegend(),
    headTable());
}

/** The layer x head grid of one kind of attention; one stop of the Tab key, arrows inside. */
function headGrid(map) {
  const cells = map.layers.map((layer, l) => map.heads.map((head, h) => thumbnail(map, l, h)));
  const wide = data.attention.length === 1 && map.heads.length <= 6;
  const table = el("table", { class: wide ? "heads wide" : "heads", role: "grid", "aria-labelledby": `map-${map.name}` },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, el("span", { class: "unseen" }, t("layer"))),
      ...map.heads.map((head) => el("th", { scope: "col" }, t("head.n", { n: head }))))),
    el("tbody", {}, ...cells.map((row, l) => el("tr", {},
      el("th", { scope: "row" }, t("layer.n", { n: map.layers[l] })),
      ...row.map((button) => el("td", { role: "gridcell" }, button))))));
  roving(table, cells);
  return el("div", { class: "map" },
    el("h3", { id: `map-${map.name}` }, t(`map.${map.name}`)),
    el("p", { class: "note" }, t(`map.${map.name}.lead`)),
    el("div", { class: "scroll" }, table));
}

function thumbnail(map, l, h) {
  const summary = map.summaries[l][h];
  const canvas = el("canvas", { width: map.key_tokens.length, height: map.query_tokens.length,
    "aria-hidden": "true" });
  canvas.paint = () => paint(canvas, map.weights[l][h]);
  const ratio = map.query_tokens.length / map.key_tokens.length;
  canvas.style.aspectRatio = String(1 / Math.min(1.5, Math.max(0.6, ratio)));
  return el("button", { type: "button", class: "thumb", "aria-haspopup": "dialog",
    "aria-label": t("thumb", { map: t(`map.${map.name}`), layer: map.layers[l],
      head: map.heads[h], kind: t(`kind.${summary.kind}`), entropy: number(summary.entropy) }),
    onclick: () => openHead(map, l, h) },
  canvas, el("span", { class: "kind" }, t(`kind.${summary.kind}`)));
}

/** One pixel for each weight, between the colour of the ground and the accent. */
function paint(canvas, matrix) {
  const [ground, accent] = [colour("surface"), colour("accent")];
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(canvas.width, canvas.height);
  matrix.flat().forEach((weight, place) => {
    const share = shade(weight / data.one);
    for (let band = 0; band < 3; band++)
      image.data[4 * place + band] = ground[band] + share * (accent[band] - ground[band]);
    image.data[4 * place + 3] = 255;
  });
  pen.putImageData(image, 0, 0);
}

/** Paint all heat maps; again when the theme has changed. */
function paintAll() {
  for (const canvas of document.querySelectorAll("canvas")) canvas.paint();
}

/** What the colours mean, and the weights that they stand for. */
function scaleLegend() {
  return el("div", { class: "scale" }, el("span", {}, t("scale")),
    ...[0, 0.05, 0.25, 0.5, 0.75, 1].map((weight) => {
      const box = el("span", { class: "swatch" }, `${Math.round(weight * 100)}%`);
      tint(box, weight);
      return box;
    }));
}

/** The numbers behind the grid, for those who read rather than see. */
function headTable() {
  const names = ["attention", "layer", "head", "kind", "entropy", "previous", "diagonal", "separator"];
  const rows = data.attention.flatMap((map) => map.summaries.flatMap((heads, l) =>
    heads.map((summary, h) => [t(`map.${map.name}`), String(map.layers[l]),
      String(map.heads[h]), ...summaryCells(summary)])));
  return el("details", { class: "numbers" }, el("summary", {}, t("heads.table")),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": t("heads.table") },
      el("table", { class: "plain" },
        el("thead", {}, el("tr", {}, ...names.map((name) => el("th", { scope: "col" }, t(name))))),
        el("tbody", {}, ...rows.map((row) =>
          el("tr", {}, ...row.map((text) => el("td", {}, text))))))));
}

/** What became of the translation without each head, first without those that matter most for it. */
function offSection() {
  const rows = data.switched_off.toSorted((one, other) => one.change - other.change)
    .map((off) => [t("off.head", { map: t(`map.${off.name}`), layer: off.layer, head: off.head }),
      number(off.change), off.text === data.tgt.text ? t("off.same") : off.text]);
  return section("off", el("div", { class: "scroll" }, el("table", { class: "plain off" },
    el("thead", {}, el("tr", {}, ...["off.which", "off.change", "off.text"].map((name) =>
      el("th", { scope: "col" }, t(name))))),
    el("tbody", {}, ...rows.map(([head, change, text]) => el("tr", {}, el("th", { scope: "row" }, head),
      el("td", {}, change), el("td", { dir: "auto" }, text)))))));
}

function summaryCells(summary) {
  return [t(`kind.${summary.kind}`), number(summary.entropy), percent(summary.previous),
    percent(summary.diagonal), percent(summary.separator)];
}

const KINDS = ["previous-token", "diagonal", "separator", "broad", "mixed"];

/** What the words for heads mean. */
function kindLegend() {
  return el("details", { class: "kinds", open: true }, el("summary", {}, t("kinds")),
    el("dl", {}, ...KINDS.flatMap((kind) =>
      [el("dt", {}, t(`kind.${kind}`)), el("dd", {}, t(`kind.${kind}.is`))])));
}
