// The page: the text field, the translation, and what happens when either changes.

/** Milliseconds between the last key and the translation. */
const PAUSE = 300;
/** Milliseconds between two checks whether an unreachable server is back. */
const PATIENCE = 1000;

Object.assign(state, {
  text: "",
  models: null,
  model: "",
  src: "",
  tgt: "",
  detected: null,
  result: null,
  line: 0,
  word: null,
  problem: null,
  locked: false,
  inside: false,
  terms: "",
});

const part = (id) => document.getElementById(id);

let running = null;
let timer = null;

// ------------------------------------------------------------------------------------ translating

/** Abort the current translation, and start a new one after a pause. */
function changed(pause = 0) {
  running?.abort();
  clearTimeout(timer);
  timer = setTimeout(update, pause);
}

/** Fetch the models if necessary, then translate. The next change aborts this. */
async function update() {
  running?.abort();
  const { signal } = running = new AbortController();
  busy(true);
  try {
    if (!state.models) await findModels(signal);
    if (state.text.trim()) await translate(signal);
    else Object.assign(state, { result: null, detected: null });
    state.problem = null;
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof Refused)) throw error;
    fail(error, signal);
  }
  busy(false);
  drawProblem();
  drawLanguages();
  drawResult();
  part("said").textContent = state.result ? wholeText(state.result) : "";
  look();
}

async function findModels(signal) {
  state.models = (await ask("v1/models", null, signal)).data;
  drawLanguages();
}

async function translate(signal) {
  const lines = state.text.split(/\r?\n/);
  state.detected = state.src || allSources().length < 2 ? null : await detect(signal);
  const src = state.src || state.detected?.language || null;
  const tgt = targetFor(src);
  const chosen = { model: state.model || null, src_lang: src, tgt_lang: tgt || null };
  const { model, translations } = await ask("v1/translate",
    { text: lines, ...chosen, n_best: 3, alignment: true, glossary: termsOf(state.terms) }, signal);
  Object.assign(state, { line: Math.max(0, lines.findIndex((line) => line.trim())),
    result: { lines, translations, src, tgt: tgt && tag(tgt), chosen: { ...chosen, model } } });
}

async function detect(signal) {
  const text = state.text.slice(0, 2000);
  return (await ask("v1/detect", { text }, signal)).detections[0];
}

/** Translate a file between the selected languages. */
async function fileChosen(file) {
  const say = (name) => { part("said").textContent = part("by").textContent = t(name, { name: file.name }); };
  const glossary = Object.entries(termsOf(state.terms)).map((pair) => pair.join("\t")).join("\n");
  say("file.busy");
  try {
    await translateFile(file,
      { model: state.model, src_lang: state.src, tgt_lang: targetFor(state.src || null), glossary });
    state.problem = null;
    say("file.done");
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.status === 401) state.locked = true;
    if (error.passes) setTimeout(fileChosen, 1000 * (error.seconds || 1), file);
    state.problem = error;
    part("by").textContent = "";
  }
  drawProblem();
}

/** Show an error, and try again if that may help. */
function fail(error, signal) {
  state.problem = error;
  state.result = null;
  if (error.status === 401) [state.locked, state.models] = [true, null];
  if (!error.passes) return;
  if (error.status === 429) timer = setTimeout(update, 1000 * (error.seconds || 1));
  else timer = setTimeout(awaitServer, PATIENCE, signal);
}

/** Translate again once the server is ready; its models may have changed. */
async function awaitServer(signal) {
  try {
    await ask("health/ready", null, signal);
  } catch {
    if (!signal.aborted) timer = setTimeout(awaitServer, PATIENCE, signal);
    return;
  }
  state.models = null;
  update();
}

// ---------------------------------------------------------------------------------------- drawing

function render() {
  document.title = t("title");
  drawFrame(render);
  part("main").replaceChildren(
    el("h1", { class: "unseen" }, t("title")),
    el("div", { id: "lock" }), el("p", { id: "problem", role: "alert" }),
    el("div", { class: "panes" }, sourcePane(), targetPane()),
    insideSection());
  const version = document.querySelector("[name=generator]").content;
  document.querySelector("footer").replaceChildren(el("p", {}, t("served", { version })));
  part("inside").open = state.inside;
  drawProblem();
  drawLanguages();
  drawResult();
  drawInside();
}

function sourcePane() {
  const field = el("textarea", { id: "source", "aria-label": t("source"), placeholder: t("source.hint"),
    rows: 1, dir: "auto", spellcheck: "false", autofocus: true });
  field.value = state.text;
  const typed = () => {
    state.text = field.value;
    pick(null);
    changed(PAUSE);
  };
  field.addEventListener("input", (event) => { if (!event.isComposing) typed(); });
  field.addEventListener("compositionend", typed);
  return el("section", { class: "pane", "aria-label": t("source") },
    el("div", { class: "pane-bar", id: "from" }),
    el("div", { class: "writing" }, el("div", { id: "mirror", "aria-hidden": "true", dir: "auto" }), field),
    termsField(() => changed(PAUSE)),
    el("div", { class: "pane-foot" }, el("span", { id: "count" }), ...fileField(fileChosen),
      el("button", { type: "button", class: "quiet", id: "clear", onclick: () => write("") }, t("clear"))));
}

function targetPane() {
  const { line, say } = readout("");
  line.id = "origin";
  sayOrigin = say;
  return el("section", { class: "pane", "aria-label": t("translation") },
    el("div", { class: "pane-bar", id: "to" }),
    el("div", { id: "translation" }),
    el("div", { class: "origin" }, line, el("button",
      { type: "button", class: "quiet", id: "others", hidden: true, onclick: openStep }, t("others"))),
    el("div", { class: "pane-foot" }, el("span", { id: "by" }),
      el("button", { type: "button", class: "quiet", id: "copy", onclick: copy }, t("copy"))));
}

let sayOrigin = () => {};

/** Put a text into the field as if it had been typed. */
function write(text) {
  part("source").value = state.text = text;
  part("source").focus();
  pick(null);
  changed();
}

async function copy() {
  await navigator.clipboard.writeText(wholeText(state.result));
  part("said").textContent = t("copied");
}

function wholeText(result) {
  return result.translations.map(({ text }) => text).join("\n");
}

function drawSource(places = []) {
  part("mirror").replaceChildren(...marked(state.text, places));
  part("count").textContent = state.text ? t("characters", { count: [...state.text].length }) : "";
  part("clear").hidden = !state.text;
}

/** Draw the menus of languages and, if there are several, of models. */
function drawLanguages() {
  const source = state.src || state.detected?.language || null;
  const sources = allSources();
  const shown = state.detected?.language ? t("detected", { language: nameOf(state.detected.language) }) : t("detect");
  const guesses = state.detected && !state.detected.language ? state.detected.candidates : [];
  const choose = (name) => (value) => {
    state[name] = value;
    if (!allSources().some(([code]) => code === state.src)) state.src = "";
    drawLanguages();
    changed();
  };
  const names = (state.models || []).filter(({ task, state: now }) => task === "translate" && now !== "failed")
    .map(({ id }) => id);
  const targets = allTargets(source).map(([code, name]) => [code, name || t("language.unknown")]);
  refill(part("from"),
    sources.length > 1 ? picker(t("from"), [["", shown], ...sources], state.src, choose("src")) : null,
    sources.length === 1 ? el("span", {}, el("span", { class: "picker" }, t("from")), " ", sources[0][1]) : null,
    guesses.length ? el("span", { class: "guesses" }, t("unsure"), ...guesses.map(({ language }) =>
      el("button", { type: "button", class: "quiet", onclick: () => choose("src")(language) }, nameOf(language)))) : null);
  refill(part("to"),
    targets.length > 1 ? picker(t("to"), targets, targetFor(source), choose("tgt"))
      : el("span", {}, el("span", { class: "picker" }, t("to")), " ", targets[0]?.[1] || ""),
    names.length > 1 ? picker(t("model"), [["", t("model.any")], ...names.map((name) => [name, name])],
      state.model, choose("model")) : null,
    swapButton(source, targetFor(source)));
}

/** Replace the children of an element; the focus stays on the same menu or button. */
function refill(place, ...children) {
  const focused = [...place.querySelectorAll("select, button")].indexOf(document.activeElement);
  place.replaceChildren(...children.filter(Boolean));
  if (focused >= 0) (place.querySelectorAll("select, button")[focused] || part("source")).focus();
}

/** A button that translates the translation back, or null if no model can. */
function swapButton(source, target) {
  const back = source && target && allTargets(target).some(([code]) => code && base(code) === base(source))
    && allSources().some(([code]) => base(code) === base(target));
  if (!back) return null;
  return el("button", { type: "button", class: "quiet swap", "aria-label": t("swap"), title: t("swap"),
    onclick: () => {
      const text = state.result ? wholeText(state.result) : state.text;
      const sources = allSources().map(([code]) => code).filter((code) => base(code) === base(target));
      [state.src, state.tgt] = [sources.find((code) => code === tag(target)) ?? sources[0], tag(source)];
      write(text);
    } }, "⇄");
}

function drawProblem() {
  const { problem, models } = state;
  const lacking = models && !translators().length ? t("error.no-model") : "";
  const sentence = problem ? sentenceOf(problem) : lacking;
  if (part("problem").textContent !== sentence) part("problem").textContent = sentence;
  if (state.locked && !part("key")) part("lock").replaceChildren(keyField());
}

function keyField() {
  const field = el("input", { id: "key", class: "field", type: "password", autocomplete: "off", value: key });
  return el("form", { class: "lock", onsubmit: (event) => {
    event.preventDefault();
    key = field.value.trim();
    changed();
  } }, el("label", { for: "key" }, t("key")), field,
  el("button", { type: "submit", class: "plain-button" }, t("key.use")),
  el("span", { class: "note" }, t("key.note")));
}

function drawResult() {
  const { result } = state;
  const place = part("translation");
  pick(null);
  const single = !result || result.lines.filter((line) => line.trim()).length === 1;
  place.replaceChildren(...(result ? result.translations.map((one, n) => lineOf(one, n, single, pick)) : []));
  part("by").textContent = result && state.models.length > 1 ? result.chosen.model : "";
  part("copy").hidden = !result || !navigator.clipboard;
}

/** Show which source words the selected word comes from; null deselects it. */
function pick(chosen) {
  for (const button of document.querySelectorAll(".word[aria-pressed=true]"))
    button.setAttribute("aria-pressed", "false");
  part("others").hidden = !chosen;
  state.word = chosen && chosen.part;
  if (!chosen) {
    drawSource();
    return sayOrigin("");
  }
  const { button, part: word, n } = chosen;
  const { lines, translations, src } = state.result;
  const origins = comesFrom(word, lines[n], translations[n], src && tag(src));
  const before = lines.slice(0, n).reduce((sum, line) => sum + line.length + 1, 0);
  button.setAttribute("aria-pressed", "true");
  if (lines.join("\n") === state.text) drawSource(origins.map(({ start, end }) => ({ start: before + start, end: before + end })));
  const list = origins.map(({ text }) => t("quoted", { text })).join(t("comma"));
  sayOrigin(t(list ? "comes.from" : "comes.from.nothing", { word: word.text, list }));
  if (state.line === n) return showStep();
  state.line = n;
  look();
}

/** Mark the translation as busy; the old one stays until the new one arrives. */
function busy(whether) {
  part("translation").setAttribute("aria-busy", String(whether));
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.querySelector("dialog[open]")) pick(null);
});
render();
changed();
