// Seeded random numbers: the same seed gives the same numbers in every browser.

/** Uniform numbers in [0, 1) that depend only on the string. Two strings that differ give unrelated numbers. */
export function uniform(text) {
  let state = 0x811c9dc5;
  for (const letter of text) state = Math.imul(state ^ letter.codePointAt(0), 0x01000193);
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}

/** Normal numbers of mean 0 and variance 1 that depend only on the string (Box and Muller 1958). */
export function normal(text) {
  const draw = uniform(text);
  return () => Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
}
