// What the model did with a line, as the page of `dragoman inspect` shows it.

let looking = null;

/** A section that is drawn when it is opened, and again for each translation while it is open. */
function insideSection() {
  const panel = el("div", { id: "inside-panel" });
  return el("details", { id: "inside", ontoggle: () => {
    const { open } = document.getElementById("inside");
    if (open === state.inside) return;
    state.inside = open;
    look();
  } }, el("summary", {}, el("h2", {}, t("inside.title"))),
  el("p", { class: "lead" }, t("inside.lead")), panel);
}

/** Inspect the selected line if the section is open. */
async function look() {
  looking?.abort();
  const { result } = state;
  const line = result && state.inside ? result.lines[state.line] : "";
  if (!line) return drawInside();
  const { signal } = looking = new AbortController();
  const panel = document.getElementById("inside-panel");
  panel.setAttribute("aria-busy", "true");
  try {
    const { inspection } = await ask("v1/inspect", { text: line, ...result.chosen }, signal);
    data = { ...inspection, one: 1 };
    state.step = stepOf(state.word);
    state.view = { name: viewNames()[0] || null, layer: "mean", head: "mean" };
    drawInside();
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof Refused)) throw error;
    data = null;
    panel.replaceChildren(el("p", { class: "note aside" }, sentenceOf(error)));
  }
  panel.removeAttribute("aria-busy");
}

/** Draw the inspection, if there is one. */
function drawInside() {
  const panel = document.getElementById("inside-panel");
  if (!state.inside || !state.result) data = null;
  if (!data) return panel.replaceChildren();
  panel.replaceChildren(
    ...data.notes.map((note) => el("p", { class: "note aside" }, note[state.language])),
    sentenceSection(), stepsSection(), headsSection());
  paintAll();
}

/** The step that produced a word of the selected line, or null. */
function stepOf(word) {
  const { text } = state.result.translations[state.line];
  if (!word || data?.tgt.text !== text) return null;
  const step = placesOf(data.tgt.tokens, text).findIndex((place) => place && overlaps(place, word));
  return step < 0 ? null : step;
}

/** Show the candidates at the step of the selected word, if its line is inspected. */
function showStep() {
  const step = stepOf(state.word);
  if (step === null) return;
  state.step = step;
  drawInside();
}

/** Open the section at that step. */
async function openStep() {
  state.inside = document.getElementById("inside").open = true;
  await look();
  const step = document.querySelector("#steps [aria-current=step]");
  (step || document.querySelector("#inside summary")).focus(); // a large model is not inspected
}
