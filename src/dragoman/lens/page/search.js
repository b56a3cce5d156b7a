// Step by step: each token as it was chosen, and what else there was to choose; or each gap of a text.

/** Parts of a logit that are named, those with the greatest shares. */
const PARTS = 6;

/** Whose words the section takes: a masked language model fills gaps and takes no steps. */
function course() {
  return data.kind === "encoder-only" ? "gaps" : "steps";
}

/** The steps that can be visited: those of the output, and those that the beam took beyond it. */
function moments() {
  const depth = data.beam ? depthOf(data.beam) : 0;
  return Array.from({ length: Math.max(depth, data.steps.length) }, (_, n) => data.steps[n] || null);
}

function stepsSection() {
  const all = moments();
  const panel = el("div", { class: "alternatives" });
  const counter = el("p", { class: "counter", role: "status", "aria-live": "polite" });
  const chips = all.map((moment, n) => chip(moment, n, () => go(n)));
  const strip = el("div", { class: "tokens strip", role: "group", "aria-label": t(`${course()}.title`),
    dir: directionOf(all.flatMap((moment) => (moment ? [moment.token] : []))),
    lang: languageOf(data.tgt ? "tgt" : "src") }, ...chips);
  const before = stepButton("before", "←", () => go(state.step - 1));
  const after = stepButton("after", "→", () => go(state.step + 1));
  const tree = data.beam ? beamTree((n) => go(n)) : null;
  const first = all.findIndex((moment) => !moment || !moment.given);
  if (state.step === null) state.step = Math.max(0, first);
  const take = roving(strip, [chips], [0, state.step]);

  function go(n) {
    state.step = Math.min(all.length - 1, Math.max(0, n));
    const moment = all[state.step];
    chips.forEach((button, place) =>
      button.setAttribute("aria-current", place === state.step ? "step" : "false"));
    take(chips[state.step]);
    before.disabled = state.step === 0;
    after.disabled = state.step === all.length - 1;
    counter.textContent = counted(moment);
    panel.replaceChildren(...alternatives(moment));
    if (tree) tree.go(state.step + 1);
  }
  go(state.step);
  return section(course(),
    el("div", { class: "stepper" }, before, counter, after), strip, panel, tree && tree.element);
}

/** What the step that is shown does. */
function counted(moment) {
  const values = { n: state.step + 1, all: data.steps.length, token: moment && named(moment.token) };
  if (!moment) return t("steps.beyond", values);
  if (course() === "gaps" || moment.given) return t(moment.given ? "steps.read" : "gaps.counter", values);
  return t(values.n === values.all && SPECIAL.test(values.token) ? "steps.last" : "steps.counter", values);
}

function stepButton(name, mark, onclick) {
  return el("button", { type: "button", class: name, "aria-label": t(`${course()}.${name}`), onclick }, mark);
}

/** A token of the output, with a bar for how probable it was. */
function chip(moment, n, choose) {
  if (!moment) {
    return el("button", { type: "button", class: "token chip", "aria-label": t("steps.beyond",
      { n: n + 1, all: data.steps.length }), onclick: choose, onfocus: choose }, el("bdi", {}, "…"));
  }
  const prob = Math.exp(moment.log_prob);
  const bar = el("span", { class: "bar", "aria-hidden": "true" });
  bar.style.setProperty("--share", prob.toFixed(3));
  return el("button", { type: "button", class: moment.given ? "token chip given" : "token chip",
    "aria-label": t("share", { token: named(moment.token), share: percent(prob) }),
    onclick: choose, onfocus: choose }, shown(moment.token), bar);
}

/** The most probable tokens of a step as bars, the one that stands there in the accent's colour. */
function alternatives(moment) {
  if (!moment) return [el("p", { class: "note" }, t("steps.none"))];
  const prob = Math.exp(moment.log_prob);
  const rows = moment.alternatives.map(({ token, prob: share, logit }) =>
    ({ token, share, logit, here: token === moment.token }));
  if (!rows.some(({ here }) => here)) rows.push({ token: moment.token, share: prob, here: true });
  return [
    bars(rows, t(`${course()}.alternatives`, { n: state.step + 1 })),
    el("p", { class: "note" }, t(moment.given ? "steps.given" : `${course()}.facts`, {
      share: percent(prob), log: number(moment.log_prob), entropy: number(moment.entropy) })),
    ...(data.logits?.length ? [el("div", { class: "maps" }, shareTable(), lensTable(moment))] : []),
  ];
}

/** The parts of the model that add most to the logit, or take most from it, and all the others. */
function shareTable() {
  const shares = data.logits.map((part) => ({ part, share: part.shares[state.step] }))
    .sort((one, other) => Math.abs(other.share) - Math.abs(one.share));
  const sum = (some) => number(some.reduce((total, { share }) => total + share, 0));
  const others = shares.slice(PARTS);
  return smallTable(t("shares.title"), t("shares.lead"), [
    ...shares.slice(0, PARTS).map(({ part, share }) => [t(`part.${part.name}`, part), number(share)]),
    [t("part.others", { count: others.length }), sum(others)], [t("part.sum"), sum(shares)]]);
}

/** What would be written after each layer of the decoder. */
function lensTable(moment) {
  return smallTable(t("lens.title"), t("lens.lead"), moment.lens.map(({ token, prob }, layer) =>
    [t("layer.n", { n: layer }), shown(token), percent(prob)]));
}

function smallTable(title, lead, rows) {
  return el("div", { class: "map" }, el("h3", {}, title), el("p", { class: "note" }, lead),
    el("table", { class: "plain" }, el("tbody", {}, ...rows.map(([name, ...cells]) =>
      el("tr", {}, el("th", { scope: "row" }, name), ...cells.map((cell) => el("td", {}, cell)))))));
}

/** Shares as bars: a list whose items say their numbers in text, and the logit where it is known. */
function bars(rows, label) {
  return el("ol", { class: "bars", "aria-label": label }, ...rows.map(
    ({ token, name = shown(token), share, text = [percent(share)], logit, here }) => {
      const bar = el("span", { class: "bar", "aria-hidden": "true" });
      bar.style.setProperty("--share", share.toFixed(4));
      return el("li", { class: here ? "here" : null }, el("span", { class: "name", dir: "auto" },
        name, here ? el("span", { class: "unseen" }, ` ${t("steps.here")}`) : null),
      logit === undefined ? null : el("span", { class: "logit" }, number(logit)),
      bar, el("span", { class: "share" }, ...text));
    }));
}
