// Requests to the page's own server, and the messages for their errors.

/** The API key, kept in memory only. */
let key = "";

/** A failed request: its status (0 if no server responded) and the server's error. */
class Refused extends Error {
  constructor(status, error = null, seconds = null) {
    super(error ? `${error.what} ${error.do}` : String(status));
    Object.assign(this, { status, error, seconds });
  }

  /** Whether the same request may succeed a little later. */
  get passes() {
    return [0, 429, 502].includes(this.status) || this.seconds !== null;
  }
}

/** Get the JSON at a path, or post a body to it. Throws Refused, or an AbortError from `signal`. */
async function ask(path, body = null, signal = null) {
  const request = body
    ? { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) } : {};
  const response = await send(path, { ...request, signal });
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0);
  }
}

/** Send a request. Throws Refused, or an AbortError. */
async function send(path, request) {
  const headers = { ...request.headers, ...(key ? { authorization: `Bearer ${key}` } : {}) };
  let response, content;
  try {
    response = await fetch(path, { ...request, headers, cache: "no-store" });
    if (response.ok) return response;
    content = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(response && !response.ok ? response.status : 0);
  }
  const seconds = response.headers.get("retry-after");
  throw new Refused(response.status, content.error, seconds === null ? null : Number(seconds));
}

const SENTENCES = { 0: "gone", 413: "large", 429: "busy", 502: "gone", 503: "unavailable", 504: "late" };

/** Messages of the server for which the page has its own words; the group is the limit. */
const KNOWN = {
  bytes: /more than ([\d,]+) bytes/,
  characters: / characters\. .* at most ([\d,]+)/,
  lines: / texts\. .* at most ([\d,]+)/,
  pdf: / is a PDF/,
  format: / does not tell the format/,
  pair: /^No model translates| seems to be in /,
};

/** An error as a sentence in the page's language; other messages are shown as the server sent them. */
function sentenceOf({ status, message, passes, seconds }) {
  for (const [name, words] of Object.entries(KNOWN)) {
    const found = message.match(words);
    if (found) return t(`error.${name}`, { limit: found[1] });
  }
  if (status === 401) return t(key ? "error.key" : "error.no-key");
  if (status === 503 && !passes) return t("error.refused", { message });
  if (status in SENTENCES) return t(`error.${SENTENCES[status]}`, { seconds: seconds || 1 });
  return t("error.refused", { message });
}
