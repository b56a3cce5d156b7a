// The models of the server, and the languages between which they translate.

const locales = new Map();

/** The language and the script of a code. */
function localeOf(code) {
  if (!locales.has(code)) {
    const plain = code.replace(/[<>]/g, "").replace(/_/g, "-").replace(/-XX$/, "");
    let found = { language: plain };
    try {
      const { language, script } = new Intl.Locale(plain);
      found = { language, script };
    } catch { /* a code of no standard */ }
    locales.set(code, found);
  }
  return locales.get(code);
}

/** A code of a language in its standard form, or as it is: zho_Hans is zh-Hans, de_DE is de. The
    script stays in it where the models have the language in several. */
function tag(code) {
  const { language, script } = localeOf(code);
  const others = script && translators().flatMap((model) => [...sourcesOf(model), ...targetsOf(model)]).map(localeOf)
    .some((other) => other.language === language && other.script && other.script !== script);
  return script && (language === "zh" || others) ? `${language}-${script}` : language;
}

function base(code) {
  return localeOf(code).language;
}

/** The translators that can be used. */
function translators() {
  return (state.models || []).filter((model) => model.task === "translate" && model.state !== "failed")
    .filter((model) => !state.model || model.id === state.model);
}

/** The languages that a model reads; none where it does not say, which may be any. */
function sourcesOf(model) {
  return model.languages.length ? model.languages : [model.src_lang].filter(Boolean);
}

/** The languages that it writes; "" where it does not say. */
function targetsOf(model) {
  return model.languages.length ? model.languages : [model.tgt_lang || ""];
}

/** Codes once for each language, by its name in the language of the page. */
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

/** What can be written from a source language, or from any. */
function allTargets(source) {
  const readers = translators().filter((model) => !source || !sourcesOf(model).length
    || sourcesOf(model).some((code) => base(code) === base(source)));
  const all = listed(readers.flatMap(targetsOf));
  const others = all.filter(([code]) => !source || base(code) !== base(source));
  return others.length ? others : all;
}

/** The target for a source: the chosen one where it can be had, else one of the reader's language. */
function targetFor(source) {
  const codes = allTargets(source).map(([code]) => code);
  if (codes.includes(state.tgt)) return state.tgt;
  return codes.find((code) => base(code) === state.language) ?? codes[0] ?? "";
}
