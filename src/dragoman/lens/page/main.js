// The page: header, sections, footer; and all of it again when the language changes.

data = JSON.parse(document.getElementById("data").textContent);

function sections() {
  return [
    data.prediction ? predictionSection : null,
    data.attributions.length ? attributionSection : null,
    data.attention.length ? sentenceSection : null,
    data.steps.length || data.beam ? stepsSection : null,
    data.attention.length ? headsSection : null,
    data.switched_off.length ? offSection : null,
  ].filter(Boolean).map((make) => make());
}

/** The texts themselves are the title. */
function title() {
  const line = (sentence, side, tag) =>
    el(tag, { class: /\n|.{160}/s.test(sentence.text) ? "text long" : "text", dir: "auto", lang: languageOf(side) }, sentence.text);
  const pair = ["src", "tgt"].filter((side) => data.languages[side])
    .map((side) => languageName(data.languages[side]));
  return el("div", { class: "hero" },
    el("p", { class: "eyebrow" },
      [data.model, t(`model.${data.kind}`), pair.join(" → ")].filter(Boolean).join("  ·  ")),
    line(data.src, "src", "h1"), data.tgt ? line(data.tgt, "tgt", "p") : null,
    ...data.notes.map((note) => el("p", { class: "note aside" }, note[state.language])));
}

function render() {
  document.title = t("page.title", { text: data.src.text.slice(0, 60) });
  drawFrame(render);
  const parts = sections();
  document.querySelector("main").replaceChildren(title(), ...parts);
  const nav = document.querySelector("nav");
  nav.setAttribute("aria-label", t("nav"));
  nav.replaceChildren(...parts.map(({ id }) => el("a", { href: `#${id}` }, titleOf(id))));
  document.querySelector("footer").replaceChildren(
    el("p", {}, t("footer", { version: data.dragoman })));
  paintAll();
}

state.view.name = viewNames()[0] || null;
render();
