// The Transformer in pure functions (skeleton).

/** What the page opens with. */
export const START = { tokens: ["the", "cat", "sat"], d_model: 8 };
