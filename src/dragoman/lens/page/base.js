// Words, elements and arrow keys: what every part of the page uses.

/** The inspection that is shown. */
let data = null;
const labels = JSON.parse(document.getElementById("labels").textContent);

/** What the reader has chosen. */
const state = {
  language: navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en",
  theme: "auto",
  view: { name: null, layer: "mean", head: "mean" },
  step: null,
};

/** The words for `key` in the chosen language, with `{name}` replaced by `values.name`. */
function t(key, values = {}) {
  return labels[state.language][key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** An element. Attributes beginning with "on" are listeners; children are nodes or text, never HTML. */
function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for a part of a drawing. */
function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** The heading of a section; that of the heads says whether all are there. */
function titleOf(id) {
  const part = data.attention.some((map) =>
    map.layers.length * map.heads.length < map.num_layers * map.num_heads);
  return t(id === "heads" && part ? "heads.some" : `${id}.title`);
}

/** A section with its heading and a sentence on what it shows. */
function section(id, ...children) {
  return el("section", { id, "aria-labelledby": `${id}-title` },
    el("h2", { id: `${id}-title` }, titleOf(id)),
    el("p", { class: "lead" }, t(`${id}.lead`)),
    ...children);
}

/** A line that says what the pointer or the focus is on, in sight as long as that is so; screen
 *  readers read it out. */
function readout(hint) {
  const line = el("p", { class: "readout", role: "status", "aria-live": "polite" }, hint);
  const say = (text) => {
    line.textContent = text || hint;
    line.classList.toggle("said", Boolean(text));
  };
  return { line, say };
}

/** Choices of which one holds, side by side: radio buttons, so that arrows go between them. */
function choices(name, legend, options, chosen, choose) {
  return el("fieldset", { class: "choices" }, el("legend", { class: "unseen" }, legend),
    ...options.map(([value, text]) => el("label", {},
      el("input", { type: "radio", name, value, checked: value === chosen,
        onchange: () => choose(value) }),
      el("span", { lang: labels[value] ? { en: "en", zh: "zh-CN" }[value] : null }, text))));
}

/** A choice from a list. */
function picker(text, options, chosen, choose) {
  const list = el("select", { onchange: () => choose(list.value) },
    ...options.map(([value, words]) =>
      el("option", { value, selected: String(value) === String(chosen) }, words)));
  return el("label", { class: "picker" }, el("span", {}, text), list);
}

// ------------------------------------------------------------------------------- tokens, numbers

/** A space that begins a piece, as itself or as the families of other libraries write it. */
const SPACE = /^[ \u2581\u0120]+/;
const SPECIAL = /^(<[^<>\s]+>|\[[A-Z]+\])$/;

const BYTE = /^<0x([0-9A-F]{2})>$/;

/** A token in running text: without the space that it begins with; a byte that is a letter as such. */
function named(token) {
  const byte = BYTE.test(token) ? String.fromCharCode(parseInt(token.match(BYTE)[1], 16)) : "";
  const text = /[\n\t -~]/.test(byte) ? byte : token;
  return text.replace(SPACE, "").replace(/\n/g, "↵").replace(/\t/g, "⇥") || "␣";
}

/** A token to look at: its space is a small mark, and what is no text is set apart. */
function shown(token) {
  const space = SPACE.test(token) && token.replace(SPACE, "") !== "";
  return el("bdi", { class: SPECIAL.test(named(token)) ? "special" : null },
    space ? el("span", { class: "space", "aria-hidden": "true" }, "·") : null, named(token));
}

/** The code of a side's language as it may stand in a `lang` attribute, or null. */
function languageOf(side) {
  const code = (data.languages[side] || "").replace(/_/g, "-");
  return /^[a-z]{2,3}(-[a-z0-9]{2,8})*$/i.test(code) ? code : null;
}

/** Which way tokens run, by their first letter that is one; `dir="auto"` does not look into them. */
function directionOf(tokens) {
  const letter = tokens.filter((token) => !SPECIAL.test(token)).join("").match(/\p{L}/u);
  return letter && /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/.test(letter[0]) ? "rtl" : "ltr";
}

/** The name of a language in the language of the page, or its code. */
function languageName(code) {
  try {
    return new Intl.DisplayNames([state.language], { type: "language" }).of(code);
  } catch {
    return code;
  }
}

function percent(share) {
  const digits = share > 0 && share < 0.0995 ? 1 : 0;
  return share > 0 && share < 0.001 ? "<0.1%" : `${(100 * share).toFixed(digits)}%`;
}

/** A number with a proper minus sign, which a zero has not. */
function number(value, digits = 2) {
  return value.toFixed(digits).replace(/^-(?=[0.]+$)/, "").replace("-", "\u2212");
}

// --------------------------------------------------------------------------------------- colours

/** How much of the accent's colour a weight gets: small weights can be told from none. */
function shade(weight) {
  return Math.pow(Math.min(1, Math.max(0, weight)), 0.65);
}

/** Paint an element by a weight. Black or white, its text has a contrast of at least 4.5 to 1: the
 *  dark theme's ground is too light for white from "half" on, the light one's dark enough at "strong". */
function tint(element, weight) {
  element.style.setProperty("--w", shade(weight).toFixed(3));
  element.classList.toggle("tinted", weight > 0.004);
  element.classList.toggle("half", shade(weight) > 0.589);
  element.classList.toggle("strong", shade(weight) > 0.848);
}

/** The numbers red, green and blue of a colour of the style sheet, as the theme has it now. */
function colour(name) {
  const probe = document.body.appendChild(el("span", { class: `probe-${name}` }));
  const numbers = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  probe.remove();
  return numbers;
}

// ----------------------------------------------------------------------------------- arrow keys

const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/**
 * Make many elements one stop of the Tab key, with the arrows, Home and End to go between them.
 * `rows` is a list of lists of elements, as they stand on the screen.
 */
function roving(container, rows, [row, column] = [0, 0]) {
  const places = new Map();
  rows.forEach((items, r) => items.forEach((item, c) => {
    places.set(item, [r, c]);
    item.tabIndex = r === row && c === column ? 0 : -1;
  }));
  let current = rows[row] && rows[row][column];
  const take = (item) => {
    if (!item) return;
    current.tabIndex = -1;
    item.tabIndex = 0;
    current = item;
  };
  container.addEventListener("focusin", (event) => {
    if (places.has(event.target)) take(event.target);
  });
  container.addEventListener("keydown", (event) => {
    if (!places.has(event.target) || event.ctrlKey || event.altKey || event.metaKey) return;
    const [r, c] = places.get(event.target);
    const next = neighbour(rows, r, c, event);
    if (!next) return;
    event.preventDefault();
    take(next);
    next.focus();
  });
  return take;
}

function neighbour(rows, r, c, event) {
  if (event.key === "Home") return rows[r][0];
  if (event.key === "End") return rows[r][rows[r].length - 1];
  if (!(event.key in ARROWS)) return null;
  let [down, right] = ARROWS[event.key];
  const upright = event.currentTarget.dataset.upright === "true";
  if (upright) [down, right] = [right, down];
  else if (getComputedStyle(event.target.parentElement).direction === "rtl") right = -right;
  const items = rows[Math.min(rows.length - 1, Math.max(0, r + down))];
  return items[Math.min(items.length - 1, Math.max(0, c + right))];
}
