// The heads of every layer as small heat maps.

function headsSection() {
  const maps = data.attention.map((map) => headGrid(map, headButton));
  return section("heads", scaleLegend(), el("div", { class: "maps" }, ...maps), kindLegend(),
    headTable());
}

/** A head as a button that opens it. */
function headButton(map, l, h) {
  const { kind, entropy } = map.summaries[l][h];
  return [thumbnail(map.weights[l][h], data.one, { "aria-haspopup": "dialog",
    "aria-label": t("thumb", { map: t(`map.${map.name}`), layer: map.layers[l], head: map.heads[h],
      kind: t(`kind.${kind}`), entropy: number(entropy) }),
    onclick: () => openHead(map, l, h) }, el("span", { class: "kind" }, t(`kind.${kind}`)))];
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
    .map((off) => [t("head.name", { map: t(`map.${off.name}`), layer: off.layer, head: off.head }),
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
