// What the model did with a line, as the page of `dragoman inspect` shows it.

let looking = null;

/** A part that is drawn when it is opened, and again for each translation while it stays open. */
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

/** Ask what the model did with the line that is looked at, if somebody looks. */
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

/** Draw what was found, if anything. */
function drawInside() {
  const panel = document.getElementById("inside-panel");
  if (!state.inside || !state.result) data = null;
  if (!data) return panel.replaceChildren();
  panel.replaceChildren(
    ...data.notes.map((note) => el("p", { class: "note aside" }, note[state.language])),
    sentenceSection(), stepsSection(), headsSection());
  paintAll();
}

/** The step that wrote a word of the line that is looked at, or null. */
function stepOf(word) {
  const { text } = state.result.translations[state.line];
  if (!word || data?.tgt.text !== text) return null;
  const step = placesOf(data.tgt.tokens, text).findIndex((place) => place && overlaps(place, word));
  return step < 0 ? null : step;
}

/** Show what else was considered where the chosen word was written, if the line is looked at. */
function showStep() {
  const step = stepOf(state.word);
  if (step === null) return;
  state.step = step;
  drawInside();
}

/** Open the part at that step. */
async function openStep() {
  state.inside = document.getElementById("inside").open = true;
  await look();
  const step = document.querySelector("#steps [aria-current=step]");
  (step || document.querySelector("#inside summary")).focus(); // a large model is not inspected
}
