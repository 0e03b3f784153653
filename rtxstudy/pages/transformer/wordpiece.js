// A sentence as WordPiece tokens, as in BERT (Devlin et al. 2019).

const PUNCTUATION = /[\p{P}$+<=>^`|~]/u; // Unicode's punctuation, and the ASCII signs that BERT counts as such
const IDEOGRAPH = /[㐀-䶿一-鿿豈-﫿\u{20000}-\u{2a6df}\u{2a700}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/u;
const PART = new RegExp(`\\s+|${PUNCTUATION.source}|${IDEOGRAPH.source}|[^\\s]`, "gu"); // white space, a sign, or a letter
const LONGEST = 100; // letters of a word; a longer one is unknown

const numbers = new WeakMap(); // vocabulary → its words' numbers

function index(words) {
  if (!numbers.has(words)) numbers.set(words, new Map(words.map((word, number) => [word, number])));
  return numbers.get(words);
}

/**
 * The pieces of a sentence between [CLS] and [SEP]. A word that the vocabulary has no pieces for stays whole, so that it
 * can be shown; numbersOf() gives it the number of [UNK]. With `lowercase`, the sentence also loses its accents.
 */
export function pieces(sentence, words, lowercase) {
  const known = index(words);
  const found = [];
  for (const word of split(sentence, lowercase)) found.push(...(cut(word, known) ?? [word]));
  return ["[CLS]", ...found, "[SEP]"];
}

/** The words and punctuation signs of a sentence, without control characters. */
function split(sentence, lowercase) {
  let text = sentence.replace(/[\u0000\ufffd]|(?![\t\n\r])\p{C}/gu, "").replace(/\s/gu, " ");
  if (lowercase)
    text = text
      .normalize("NFD")
      .replace(/\p{Mn}/gu, "")
      .toLowerCase();
  const apart = [...text].map((sign) => (PUNCTUATION.test(sign) || IDEOGRAPH.test(sign) ? ` ${sign} ` : sign));
  return apart.join("").split(" ").filter(Boolean);
}

/** The longest pieces in the vocabulary, from the left; null if they do not reach the end of the word. */
function cut(word, known) {
  const letters = [...word];
  if (letters.length > LONGEST) return null;
  const parts = [];
  for (let start = 0; start < letters.length;) {
    let end = letters.length;
    const piece = () => (start ? "##" : "") + letters.slice(start, end).join("");
    while (end > start && !known.has(piece())) end -= 1;
    if (end === start) return null;
    parts.push(piece());
    start = end;
  }
  return parts;
}

/**
 * A sentence as it was typed, in parts: words, signs and the white space between them. `unknown` marks a word for which the
 * vocabulary has no pieces. @returns {{text: string, unknown: boolean}[]}
 */
export function marked(sentence, words, lowercase) {
  const known = index(words);
  const parts = [];
  let open = false; // whether the last part is a word to which letters can be added
  for (const [text] of sentence.matchAll(PART)) {
    const letter = !/\s/u.test(text) && !PUNCTUATION.test(text) && !IDEOGRAPH.test(text);
    if (letter && open) parts[parts.length - 1] += text;
    else parts.push(text);
    open = letter;
  }
  return parts.map((text) => ({ text, unknown: split(text, lowercase).some((word) => !cut(word, known)) }));
}

/** The tokens that are not in a vocabulary, each once. [UNK] stands for such a token. */
export function unknownOf(tokens, words) {
  const known = index(words);
  return [...new Set(tokens.filter((token) => token === "[UNK]" || !known.has(token)))];
}

/** The numbers of tokens in a vocabulary; an unknown token has the number of [UNK]. */
export function numbersOf(tokens, words) {
  const known = index(words);
  return tokens.map((token) => known.get(token) ?? known.get("[UNK]"));
}

/** The sentence of these tokens, as far as they still hold it. */
export function sentenceOf(tokens) {
  return tokens
    .filter((token) => token !== "[CLS]" && token !== "[SEP]")
    .join(" ")
    .replaceAll(" ##", "")
    .replace(/ ([.,!?;])/g, "$1");
}
