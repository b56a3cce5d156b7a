// What is around the content: the skip link, and the switches of colours and language.

const THEMES = ["auto", "light", "dark"];

/** Write the frame in the chosen language; `render` draws the page again when that changes. */
function drawFrame(render) {
  document.documentElement.lang = state.language === "zh" ? "zh-CN" : "en";
  document.querySelector(".skip").textContent = t("skip");
  document.querySelector(".switches").replaceChildren(
    choices("theme", t("theme"), THEMES.map((name) => [name, t(`theme.${name}`)]), state.theme, setTheme),
    choices("language", t("language"), [["en", "EN"], ["zh", "中文"]], state.language,
      (name) => setLanguage(name, render)));
}

function setTheme(name) {
  state.theme = name;
  document.documentElement.dataset.theme = name;
  paintAll();
}

function setLanguage(name, render) {
  state.language = name;
  document.querySelector("dialog").close();
  render();
  document.querySelector(`[name="language"][value="${name}"]`).focus();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paintAll);
