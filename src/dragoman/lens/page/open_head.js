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
    el("div", { class: "scroll" }, weightTable(map, map.weights[l][h], say)),
    el("p", {}, el("button", { type: "button", class: "plain-button", onclick: () => {
      dialog.close();
      showOnSentence({ name: map.name, layer: l, head: h });
      document.querySelector(".stage [tabindex='0']").focus({ preventScroll: true });
    } }, t("head.on.sentence"))),
  ];
}

/** The weights of a head, as large as fits, with numbers where a cell has room for one. */
function weightTable(map, matrix, say) {
  const longest = Math.max(map.key_tokens.length, map.query_tokens.length);
  const size = Math.max(13, Math.min(44, Math.floor(700 / longest)));
  const table = heatTable(t("head.table"), { tokens: map.query_tokens, lang: languageOf(map.queries) },
    { tokens: map.key_tokens, lang: languageOf(map.keys) }, matrix, { bound: data.one, say,
      text: (whole) => (size >= 30 && whole >= 0.005 * data.one ? String(Math.round((100 * whole) / data.one)) : ""),
      said: (q, k) => t("looks.at", { token: named(map.query_tokens[q]), list:
        t("share", { token: named(map.key_tokens[k]), share: percent(matrix[q][k] / data.one) }) }) });
  table.style.setProperty("--cell", `${size}px`);
  return table;
}
