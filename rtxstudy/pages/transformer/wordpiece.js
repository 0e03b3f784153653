// A sentence as WordPiece tokens, as in BERT (Devlin et al. 2019).

const PUNCTUATION = /[\p{P}$+<=>^`|~]/u; // Unicode's punctuation, and the ASCII signs that BERT counts as such
const IDEOGRAPH = /[㐀-䶿一-鿿豈-﫿\u{20000}-\u{2a6df}\u{2a700}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/u;
const LONGEST = 100; // letters of a word; a longer one is unknown

const numbers = new WeakMap(); // vocabulary → its words' numbers

function index(words) {
  if (!numbers.has(words)) numbers.set(words, new Map(words.map((word, number) => [word, number])));
  return numbers.get(words);
}

/** The pieces of a sentence between [CLS] and [SEP]. With `lowercase`, the sentence also loses its accents. */
export function pieces(sentence, words, lowercase) {
  const known = index(words);
  const found = [];
  for (const word of split(sentence, lowercase)) found.push(...cut(word, known));
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

/** The longest pieces in the vocabulary, from the left; [UNK] if they do not reach the end of the word. */
function cut(word, known) {
  const letters = [...word];
  if (letters.length > LONGEST) return ["[UNK]"];
  const parts = [];
  for (let start = 0; start < letters.length;) {
    let end = letters.length;
    const piece = () => (start ? "##" : "") + letters.slice(start, end).join("");
    while (end > start && !known.has(piece())) end -= 1;
    if (end === start) return ["[UNK]"];
    parts.push(piece());
    start = end;
  }
  return parts;
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
