// The error function: GELU needs it, and JavaScript does not have it.

/**
 * The error function in double precision: e^(−z²)·2/√π · Σ 2ⁿ·z^(2n+1) / (1·3·…·(2n+1)). All terms have the same sign,
 * so nothing cancels. Some GELUs approximate it by a tanh; this one does not.
 */
export function erf(z) {
  if (Math.abs(z) > 6) return Math.sign(z); // 1 − erf(6) is 2·10⁻¹⁷
  let term = z;
  let sum = z;
  for (let odd = 3; Math.abs(term) > 1e-17 * Math.abs(sum); odd += 2) sum += term *= (2 * z * z) / odd;
  return ((2 / Math.sqrt(Math.PI)) * sum) / Math.exp(z * z);
}
