// The error function, which a GELU needs and JavaScript lacks.

/**
 * The error function to the last digits of a double: e^(−z²)·2/√π · Σ 2ⁿ·z^(2n+1) / (1·3·…·(2n+1)), whose terms all have
 * one sign, so that nothing cancels. Not the tanh formula that stands for it in some GELUs.
 */
export function erf(z) {
  if (Math.abs(z) > 6) return Math.sign(z); // 1 − erf(6) is 2·10⁻¹⁷
  let term = z;
  let sum = z;
  for (let odd = 3; Math.abs(term) > 1e-17 * Math.abs(sum); odd += 2) sum += term *= (2 * z * z) / odd;
  return ((2 / Math.sqrt(Math.PI)) * sum) / Math.exp(z * z);
}
