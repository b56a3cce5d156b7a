// Where tokens and words stand in a text.

/** Maximum number of characters between two tokens that belong to neither. */
const GAP = 8;

/** The position of each token in a text as [start, end), or null if it does not occur. */
function placesOf(tokens, text) {
  let from = 0;
  let missed = 0;
  return tokens.map((token) => {
    const [start, end] = BYTE.test(token) ? byteAt(token, text, from) : pieceAt(token, text, from);
    if (start < 0 || start - from > GAP + missed) {
      missed += token.length;
      return null;
    }
    [from, missed] = [end, 0];
    return [start, end];
  });
}

function pieceAt(token, text, from) {
  const piece = token.replace(SPACE, "");
  const start = piece ? text.indexOf(piece, from) : -1;
  return [start, start + piece.length];
}

/** The position of the character that a UTF-8 byte begins; empty for a continuation byte. */
function byteAt(token, text, from) {
  const continues = (parseInt(token.match(BYTE)[1], 16) & 0xc0) === 0x80;
  const space = text.slice(from).match(/^\s*/)[0].length;
  const start = continues ? from : from + space;
  const size = continues ? 0 : String.fromCodePoint(text.codePointAt(start) || 0).length;
  return [start, start + size];
}

/** All pieces of a text as {text, start, end, word}, where `word` tells whether it is a word. */
function wordsOf(text, language) {
  if (!Intl.Segmenter) {
    return [...text.matchAll(/\s+|\S+/g)].map(({ 0: part, index }) =>
      ({ text: part, start: index, end: index + part.length, word: /\S/.test(part) }));
  }
  const parts = new Intl.Segmenter(language || undefined, { granularity: "word" }).segment(text);
  return [...parts].map(({ segment, index, isWordLike }) =>
    ({ text: segment, start: index, end: index + segment.length, word: isWordLike }));
}

function overlaps([start, end], part) {
  return start < part.end && part.start < end;
}

/** The source words to which a word of the translation is aligned. */
function comesFrom(word, line, translation, language) {
  const written = placesOf(translation.tokens, translation.text);
  const read = placesOf(translation.src_tokens, line);
  const from = translation.alignment
    .filter(([s, t]) => read[s] && written[t] && overlaps(written[t], word))
    .map(([s]) => read[s]);
  return wordsOf(line, language).filter((part) => part.word && from.some((place) => overlaps(place, part)));
}
