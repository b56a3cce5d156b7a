// Numbers as colours: images of matrices, grids of heads, and tables that tell their numbers.

/** Numbers as an image, a pixel for each: the accent for what is above 0, blue below. `bound` gets the whole colour. */
function image(matrix, bound, label = null) {
  const canvas = el("canvas", { width: matrix[0].length, height: matrix.length,
    role: label && "img", "aria-label": label, "aria-hidden": !label && "true" });
  canvas.paint = () => {
    const [ground, above, below] = ["surface", "accent", "below"].map(colour);
    const pen = canvas.getContext("2d");
    const picture = pen.createImageData(canvas.width, canvas.height);
    matrix.forEach((row, y) => row.forEach((value, x) => {
      const [ink, share] = [value < 0 ? below : above, shade(Math.abs(value) / bound)];
      const mixed = ground.map((band, n) => band + share * (ink[n] - band));
      picture.data.set([...mixed, 255], 4 * (y * canvas.width + x));
    }));
    pen.putImageData(picture, 0, 0);
  };
  return canvas;
}

/** Paint all images; again when the theme has changed. */
function paintAll() {
  for (const canvas of document.querySelectorAll("canvas")) canvas.paint();
}

/** A button with the weights of a head as a small picture, and what stands under it. */
function thumbnail(weights, bound, attributes, ...under) {
  const canvas = image(weights, bound);
  const ratio = weights.length / weights[0].length;
  canvas.style.aspectRatio = String(1 / Math.min(1.5, Math.max(0.6, ratio)));
  return el("button", { type: "button", class: "thumb", ...attributes }, canvas, ...under);
}

/** The layer x head grid of one kind of attention; one stop of the Tab key, arrows inside. `cell` makes the
 *  elements of a head, the same number for each, which stand one under the other. */
function headGrid(map, cell) {
  const cells = map.layers.map((_, l) => map.heads.map((_, h) => cell(map, l, h)));
  const wide = data.attention.length === 1 && map.heads.length <= 6;
  const table = el("table", { class: wide ? "heads wide" : "heads", role: "grid", "aria-labelledby": `map-${map.name}` },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, el("span", { class: "unseen" }, t("layer"))),
      ...map.heads.map((head) => el("th", { scope: "col" }, t("head.n", { n: head }))))),
    el("tbody", {}, ...cells.map((row, l) => el("tr", {},
      el("th", { scope: "row" }, t("layer.n", { n: map.layers[l] })),
      ...row.map((parts) => el("td", { role: "gridcell" }, ...parts))))));
  roving(table, cells.flatMap((row) => row[0].map((_, n) => row.map((parts) => parts[n]))));
  return el("div", { class: "map" },
    el("h3", { id: `map-${map.name}` }, t(`map.${map.name}`)),
    el("p", { class: "note" }, t(`map.${map.name}.lead`)),
    el("div", { class: "scroll" }, table));
}

/** A matrix as a table with a row for each query and a column for each key, painted as an image is. `text` is
 *  what stands in a cell; `say` is told of the one that is pointed at, in the words of `said(q, k)`. */
function heatTable(label, queries, keys, matrix, { bound, text, said, say }) {
  const headers = (scope, { tokens, lang }) => tokens.map((token) => el("th", { scope, lang }, shown(token)));
  const [rows, columns] = [headers("row", queries), headers("col", keys)];
  const cells = matrix.map((numbers, q) => numbers.map((value, k) => {
    const cell = el("td", { role: "gridcell", "aria-label": said(q, k) }, text(value));
    tint(cell, Number.isFinite(value) ? Math.abs(value) / bound : 0);
    cell.classList.toggle("below", value < 0);
    cell.place = [q, k];
    return cell;
  }));
  const table = el("table", { class: "heat", role: "grid", "aria-label": label },
    el("thead", {}, el("tr", {}, el("td", {}), ...columns)),
    el("tbody", {}, ...cells.map((row, q) => el("tr", {}, rows[q], ...row))));
  const point = (event) => {
    const cell = event.target.closest("td");
    for (const header of table.querySelectorAll("th.here")) header.classList.remove("here");
    if (!cell || !cell.place) return say("");
    const [q, k] = cell.place;
    columns[k].classList.add("here");
    rows[q].classList.add("here");
    say(said(q, k));
  };
  table.addEventListener("pointerover", point);
  table.addEventListener("focusin", point);
  roving(table, cells);
  return table;
}
