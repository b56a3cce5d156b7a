// What an encoder with a head says of the text, and which tokens had to do with it.

function predictionSection() {
  const { labels: found, tags } = data.prediction;
  return section(tags ? "tags" : "labels", tags ? tagged(tags) : bars(found.map(
    ({ label, prob }, n) => ({ token: label, share: prob, here: n === 0 })), t("labels.title")));
}

/** The tokens with their tags under them. */
function tagged(tags) {
  return el("ol", { class: "tokens annotated", dir: "auto", lang: languageOf("src") },
    ...data.src.tokens.map((token, n) => el("li", { class: "token" }, shown(token),
      el("span", { class: tags[n] && tags[n] !== "O" ? "tag entity" : "tag", dir: "ltr" },
        tags[n] || "\u00a0"))));
}

function attributionSection() {
  return section("mattered", ...data.attributions.map(({ method, scores }) => {
    const largest = Math.max(...scores.map(Math.abs), 1e-9);
    return el("div", { class: "map" }, el("h3", {}, t(`method.${method}`)),
      el("p", { class: "note" }, t(`method.${method}.is`)),
      el("ol", { class: "tokens annotated", dir: "auto", lang: languageOf("src") },
        ...data.src.tokens.map((token, n) => scored(token, scores[n], largest, method))));
  }), el("p", { class: "caution" }, t("mattered.caution")));
}

/** A token painted by its score; one that speaks against the label is framed and not painted. */
function scored(token, score, largest, method) {
  const item = el("li", { class: "token" }, shown(token), el("span", { class: "tag", dir: "ltr" },
    method === "rollout" ? percent(score) : number(score)));
  if (score >= 0) tint(item, score / largest);
  else {
    item.classList.add("against");
    item.style.setProperty("--w", shade(-score / largest).toFixed(3));
  }
  return item;
}
