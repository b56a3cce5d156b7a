// Requests to the server that the page comes from, and their errors in words.

/** The API key, which only the memory of this page holds. */
let key = "";

/** A request without an answer: its status (0 where no server answered) and what the server says. */
class Refused extends Error {
  constructor(status, error = null, seconds = null) {
    super(error ? `${error.what} ${error.do}` : String(status));
    Object.assign(this, { status, error, seconds });
  }

  /** Whether the same request may be answered a little later. */
  get passes() {
    return [0, 429, 502].includes(this.status) || this.seconds !== null;
  }
}

/** The JSON at a path; with a body it is posted. Throws Refused, or an AbortError of `signal`. */
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

/** The response to a request. Throws Refused, or an AbortError. */
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

/** What the server says in words of its own, as the page says it, and the limit that it names. */
const KNOWN = {
  bytes: /more than ([\d,]+) bytes/,
  characters: / characters\. .* at most ([\d,]+)/,
  lines: / texts\. .* at most ([\d,]+)/,
  pdf: / is a PDF/,
  format: / does not tell the format/,
  pair: /^No model translates| seems to be in /,
};

/** What is wrong, in one sentence of the page's language; what only the server knows, in its words. */
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
