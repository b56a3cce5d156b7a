// What an encoder with a head says of the text, and which tokens had to do with it.

function predictionSection() {
  const { labels: found, tags } = data.prediction;
  return section(tags ? "tags" : "labels", tags ? tagged(tags) : bars(found.map(
    ({ label, prob }, n) => ({ token: label, share: prob, here: n === 0 })), t("labels.title")));
}

/** The tokens with their tags under them. */
function tagged(tags) {
  return el("ol", { class: "tokens annotated", dir: directionOf(data.src.tokens), lang: languageOf("src") },
    ...data.src.tokens.map((token, n) => el("li", { class: "token" }, shown(token),
      el("span", { class: tags[n] && tags[n] !== "O" ? "tag entity" : "tag", dir: "ltr" },
        tags[n] || "\u00a0"))));
}

function attributionSection() {
  return section("mattered", ...data.attributions.map(({ method, scores }) => {
    return el("div", { class: "map" }, el("h3", {}, t(`method.${method}`)),
      el("p", { class: "note" }, t(`method.${method}.is`)),
      el("ol", { class: "tokens annotated", dir: directionOf(data.src.tokens), lang: languageOf("src") },
        ...data.src.tokens.map((token, n) => (method === "rollout" ? shared : signed)(token, scores[n], scores))));
  }), el("p", { class: "caution" }, t("mattered.caution")));
}

function scored(token, text) {
  return el("li", { class: "token" }, shown(token), el("span", { class: "tag", dir: "ltr" }, text));
}

/** A token painted by how far its share is above an even one: equal shares stay white. */
function shared(token, score, scores) {
  const item = scored(token, percent(score));
  const above = (share) => share * scores.length - 1;
  tint(item, above(score) / Math.max(1, ...scores.map(above)));
  return item;
}

/** A token painted by its score; one that speaks against the label is framed and not painted. */
function signed(token, score, scores) {
  const largest = Math.max(...scores.map(Math.abs), 1e-9);
  const digits = Math.min(6, Math.max(2, 1 + Math.ceil(-Math.log10(largest))));
  const item = scored(token, number(score, digits));
  if (score >= 0) tint(item, score / largest);
  else {
    item.classList.add("against");
    item.style.setProperty("--w", shade(-score / largest).toFixed(3));
  }
  return item;
}
