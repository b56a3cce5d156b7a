// Translation of files, and the terms that translations use.

/** Parse the typed terms, one per line: source = target. */
function termsOf(text) {
  const pairs = text.split("\n").map((line) => line.split("=").map((side) => side.trim()));
  return Object.fromEntries(pairs.filter(([source, target]) => source && target));
}

/** The file input and its label; calls `translating` with the chosen file. */
function fileField(translating) {
  const input = el("input", { type: "file", id: "file", class: "unseen" });
  input.addEventListener("change", () => {
    if (input.files.length) translating(input.files[0]);
    input.value = "";
  });
  return [input, el("label", { for: "file", class: "quiet" }, t("file"))];
}

/** Translate a file and download the result. Throws Refused. */
async function translateFile(file, fields) {
  const form = new FormData();
  form.append("file", file);
  for (const [name, value] of Object.entries(fields)) if (value) form.append(name, value);
  const content = await (await send("v1/documents", { method: "POST", body: form })).blob();
  const link = el("a", { href: URL.createObjectURL(content), download: file.name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), PATIENCE);
}

/** The field for terms; calls `typed` after each change. */
function termsField(typed) {
  const field = el("textarea", { id: "terms", class: "field", rows: 3, dir: "auto", spellcheck: "false",
    "aria-label": t("terms"), placeholder: t("terms.hint") });
  field.value = state.terms;
  field.addEventListener("input", () => {
    state.terms = field.value;
    typed();
  });
  return el("details", { class: "terms", open: Boolean(state.terms) || null },
    el("summary", {}, t("terms")), field);
}
