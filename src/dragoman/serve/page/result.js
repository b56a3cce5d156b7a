// A translation, line by line: its words, their origin, its score, flags and alternatives.

/** Flags that do not put a translation in doubt. */
const HARMLESS = ["empty", "retried", "split"];

/** A line of the translation; calls `pick` with the selected word, or null. */
function lineOf(translation, n, single, pick) {
  const words = wordsOf(translation.text, state.result.tgt).map((part) =>
    (part.word && translation.alignment ? wordButton(part, n, pick) : part.text));
  const buttons = words.filter((word) => typeof word !== "string");
  const text = el("p", { class: "words", role: "group", dir: "auto", lang: state.result.tgt,
    "aria-label": t("words") }, ...words);
  roving(text, [buttons]);
  return el("div", { class: "line" }, text, facts(translation), alternativesOf(translation, single));
}

function wordButton(part, n, pick) {
  const button = el("span", { role: "button", class: "word", "aria-pressed": "false",
    onclick: () => pick(button.getAttribute("aria-pressed") === "true" ? null : { button, part, n }),
    onkeydown: (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      button.click();
    } }, part.text);
  return button;
}

/** The score and the flags of a translation, or null without any. */
function facts({ score, flags }) {
  const notes = flags.filter((flag) => flag !== "empty");
  if (score === undefined && !notes.length) return null;
  return el("ul", { class: "facts-line" },
    score === undefined || flags.includes("empty") ? null
      : el("li", {}, el("span", { title: t("score.is") }, t("score", { score: number(score) }))),
    ...notes.map((flag) => el("li", { class: HARMLESS.includes(flag) ? "flag" : "flag doubtful" },
      t(`flag.${flag}`))));
}

function alternativesOf({ alternatives = [] }, single) {
  if (!alternatives.length) return null;
  return el("details", { class: "others", open: single },
    el("summary", {}, t("alternatives")),
    el("ol", {}, ...alternatives.map(({ text, score }) => el("li", {},
      el("bdi", { lang: state.result.tgt }, text), el("span", { class: "score" }, number(score))))));
}

/** The source text with some places highlighted; it lies behind the text field. */
function marked(text, places) {
  const parts = [];
  let from = 0;
  for (const { start, end } of places) {
    parts.push(text.slice(from, start), el("mark", {}, text.slice(start, end)));
    from = end;
  }
  return [...parts, text.slice(from), "\n"];
}
