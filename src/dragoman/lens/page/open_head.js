// One head, large: a table of weights that is painted as a heat map.

/** Open a head in the dialog; the arrows beside its name lead to its neighbours. */
function openHead(map, l, h) {
  const dialog = document.querySelector("dialog");
  const show = (layer, head, focus) => {
    dialog.replaceChildren(...headParts(map, layer, head, dialog, show));
    dialog.querySelector(focus)?.focus();
  };
  show(l, h, "h2");
  dialog.onclose = () => dialog.replaceChildren();
  dialog.onclick = (event) => { if (event.target === dialog) dialog.close(); };
  dialog.showModal();
  dialog.querySelector("h2").focus();
}

function headParts(map, l, h, dialog, show) {
  const summary = map.summaries[l][h];
  const { line, say } = readout(t("head.hint"));
  const count = map.heads.length;
  const place = l * count + h;
  const step = (by, words, mark) => {
    const next = place + by;
    const there = next >= 0 && next < map.layers.length * count;
    const name = by < 0 ? "before" : "after";
    return el("button", { type: "button", class: name, "aria-label": words, disabled: !there,
      onclick: () => show(Math.floor(next / count), next % count,
        `.${name}:not(:disabled), h2`) }, mark);
  };
  const facts = ["entropy", "previous", "diagonal", "separator"];
  const values = summaryCells(summary).slice(1);
  return [
    el("div", { class: "dialog-bar" },
      el("h2", { id: "head-title", tabindex: "-1" }, t("head.title", { map: t(`map.${map.name}`),
        layer: map.layers[l], head: map.heads[h] })),
      step(-1, t("head.before"), "←"), step(1, t("head.after"), "→"),
      el("button", { type: "button", class: "close", "aria-label": t("close"),
        onclick: () => dialog.close() }, "×")),
    el("p", { class: "lead" }, el("strong", {}, t(`kind.${summary.kind}`)), t("colon"),
      t(`kind.${summary.kind}.is`)),
    el("dl", { class: "facts" }, ...facts.map((name, n) =>
      el("div", {}, el("dt", {}, t(name)), el("dd", {}, values[n])))),
    el("p", { class: "axes" }, t(`axes.${rowsOf(map.name)}`)),
    line,
    el("div", { class: "scroll" }, heatTable(map, map.weights[l][h], say)),
    el("p", {}, el("button", { type: "button", class: "plain-button", onclick: () => {
      dialog.close();
      showOnSentence({ name: map.name, layer: l, head: h });
      document.querySelector(".stage [tabindex='0']").focus({ preventScroll: true });
    } }, t("head.on.sentence"))),
  ];
}

/** Rows are queries, columns keys; hovering or going there with the arrows tells the weight. */
function heatTable(map, matrix, say) {
  const longest = Math.max(map.key_tokens.length, map.query_tokens.length);
  const size = Math.max(13, Math.min(44, Math.floor(700 / longest)));
  const columns = map.key_tokens.map((token) =>
    el("th", { scope: "col", lang: languageOf(map.keys) }, shown(token)));
  const rows = map.query_tokens.map((token) =>
    el("th", { scope: "row", lang: languageOf(map.queries) }, shown(token)));
  const cells = matrix.map((weights, q) => weights.map((whole, k) => {
    const weight = whole / data.one;
    const said = t("share", { token: named(map.key_tokens[k]), share: percent(weight) });
    const cell = el("td", { role: "gridcell",
      "aria-label": t("looks.at", { token: named(map.query_tokens[q]), list: said }) });
    if (size >= 30 && weight >= 0.005) cell.append(String(Math.round(weight * 100)));
    tint(cell, weight);
    cell.place = [q, k];
    return cell;
  }));
  const table = el("table", { class: "heat", role: "grid", "aria-label": t("head.table") },
    el("thead", {}, el("tr", {}, el("td", {}), ...columns)),
    el("tbody", {}, ...cells.map((row, q) => el("tr", {}, rows[q], ...row))));
  table.style.setProperty("--cell", `${size}px`);
  const point = (event) => {
    const cell = event.target.closest("td");
    for (const header of table.querySelectorAll("th.here")) header.classList.remove("here");
    if (!cell || !cell.place) return say("");
    const [q, k] = cell.place;
    columns[k].classList.add("here");
    rows[q].classList.add("here");
    say(cell.getAttribute("aria-label"));
  };
  table.addEventListener("pointerover", point);
  table.addEventListener("focusin", point);
  roving(table, cells);
  return table;
}
