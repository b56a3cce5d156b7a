// The server's models and their languages.

const locales = new Map();

/** The language and the script of a code. */
function localeOf(code) {
  if (!locales.has(code)) {
    const plain = code.replace(/[<>]/g, "").replace(/_/g, "-").replace(/-XX$/, "");
    let found = { language: plain };
    try {
      const { language, script } = new Intl.Locale(plain);
      found = { language, script };
    } catch { /* not a standard code */ }
    locales.set(code, found);
  }
  return locales.get(code);
}

/** The standard form of a language code: zh-Hans for zho_Hans, de for de_DE. The script stays if the
 *  models have the language in several; an unknown code stays as it is. */
function tag(code) {
  const { language, script } = localeOf(code);
  const others = script && translators().flatMap((model) => [...sourcesOf(model), ...targetsOf(model)]).map(localeOf)
    .some((other) => other.language === language && other.script && other.script !== script);
  return script && (language === "zh" || others) ? `${language}-${script}` : language;
}

function base(code) {
  return localeOf(code).language;
}

/** The usable translators; if a model is selected, only that one. */
function translators() {
  return (state.models || []).filter((model) => model.task === "translate" && model.state !== "failed")
    .filter((model) => !state.model || model.id === state.model);
}

/** The source languages of a model; none if it does not declare them and may read any. */
function sourcesOf(model) {
  return model.languages.length ? model.languages : [model.src_lang].filter(Boolean);
}

/** The target languages of a model; "" if it does not declare them. */
function targetsOf(model) {
  return model.languages.length ? model.languages : [model.tgt_lang || ""];
}

/** [code, name] of each language, sorted by name. */
function listed(codes) {
  const named = new Map(codes.map((code) => [code && tag(code), code && nameOf(code)]));
  return [...named].sort(([, one], [, other]) => one.localeCompare(other, state.language));
}

function nameOf(code) {
  return languageName(tag(code));
}

function allSources() {
  return listed(translators().flatMap(sourcesOf));
}

/** The target languages for a source language, or for all. */
function allTargets(source) {
  const readers = translators().filter((model) => !source || !sourcesOf(model).length
    || sourcesOf(model).some((code) => base(code) === base(source)));
  const all = listed(readers.flatMap(targetsOf));
  const others = all.filter(([code]) => !source || base(code) !== base(source));
  return others.length ? others : all;
}

/** The target for a source: the selected one if available, else the page's language, else the first. */
function targetFor(source) {
  const codes = allTargets(source).map(([code]) => code);
  if (codes.includes(state.tgt)) return state.tgt;
  return codes.find((code) => base(code) === state.language) ?? codes[0] ?? "";
}
