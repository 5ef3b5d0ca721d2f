/**
 * Scalar Gaussian functions, accurate in the tails, where the saddle point of a strongly imbalanced problem lives.
 * The twin of rbal/_support/gauss.py.
 * @module
 */

const SQRT2 = Math.SQRT2;
const INV_SQRT_2PI = 1 / Math.sqrt(2 * Math.PI);
const LOG_INV_SQRT_2PI = Math.log(INV_SQRT_2PI);

/** A Gaussian has mass 2e-17 beyond. */
export const Z_MAX = 8.5;

/** Gauss–Legendre nodes and weights on [0, 1]: twelve integrate a Gaussian over two deviations to rounding. */
export const GL_NODES = Float64Array.of(
  0.009219682876640375,
  0.04794137181476257,
  0.11504866290284765,
  0.2063410228566913,
  0.3160842505009099,
  0.43738329574426554,
  0.5626167042557345,
  0.6839157494990901,
  0.7936589771433087,
  0.8849513370971523,
  0.9520586281852375,
  0.9907803171233597,
);
export const GL_WEIGHTS = Float64Array.of(
  0.023587668193255914,
  0.05346966299765921,
  0.08003916427167311,
  0.10158371336153296,
  0.1167462682691774,
  0.12457352290670139,
  0.12457352290670139,
  0.1167462682691774,
  0.10158371336153296,
  0.08003916427167311,
  0.05346966299765921,
  0.023587668193255914,
);

// Chebyshev coefficients of (1 + 2x) exp(x²) erfc(x) in s = (x - 3)/(x + 3), which maps [0, ∞) to [-1, 1): analytic
// there, so that 26 terms reach rounding. Computed from a 40-digit erfc at 60 Chebyshev nodes.
const ERFCX = Float64Array.of(
  1.17756257419656,
  0.005353904539615676,
  -0.09377550342284209,
  0.05436652555744322,
  -0.018976596707845208,
  0.004453426061462712,
  -0.0006335531710553147,
  1.7661719523171593e-5,
  1.2841532864056671e-5,
  -2.0072285659059913e-6,
  -1.807522790414837e-7,
  7.549828343825093e-8,
  1.885668523838603e-9,
  -2.699519049798364e-9,
  -1.460079119939105e-11,
  1.0361607445969489e-10,
  1.475715976623473e-12,
  -4.277340064396911e-12,
  -2.07922492859799e-13,
  1.8134502003176963e-13,
  1.973425574544739e-14,
  -7.287943737592673e-15,
  -1.5169878690228116e-15,
  2.3514112258781403e-16,
  1.0006111691821667e-16,
  -2.0572528169538546e-18,
);

/** exp(x²) erfc(x) for x ≥ 0. */
export function erfcx(x) {
  if (x === Infinity) return 0;
  const s2 = (2 * (x - 3)) / (x + 3);
  let b1 = 0;
  let b2 = 0;
  for (let k = ERFCX.length - 1; k > 0; k--) {
    const b0 = s2 * b1 - b2 + ERFCX[k];
    b2 = b1;
    b1 = b0;
  }
  return (0.5 * s2 * b1 - b2 + ERFCX[0]) / (1 + 2 * x);
}

/** exp(-x²), with the square split so that its rounding does not grow with x. */
function expMinusSquare(x) {
  const head = Math.round(x * 16) / 16; // its square is exact
  return Math.exp(-head * head) * Math.exp((head - x) * (head + x));
}

/** Complementary error function, to a few units in the last place at any x. */
export function erfc(x) {
  if (x < 0) return 2 - erfc(-x);
  if (x > 27) return 0;
  return expMinusSquare(x) * erfcx(x);
}

/** Standard normal density. */
export const pdf = (t) => INV_SQRT_2PI * Math.exp(-0.5 * t * t);

/** Standard normal distribution function Φ. */
export const cdf = (t) => 0.5 * erfc(-t / SQRT2);

/** log Φ(t), also where Φ underflows. */
export function logCdf(t) {
  if (t >= -1) return Math.log1p(-cdf(-t));
  return -0.5 * t * t + Math.log(0.5 * erfcx(-t / SQRT2));
}

/** Φ(t2) - Φ(t1) for t1 ≤ t2, taken in the tail where no digits are lost. */
export const interval = (t1, t2) => (t1 > 0 ? cdf(-t1) - cdf(-t2) : cdf(t2) - cdf(t1));

/** h(t) - t, where h = φ/H is the inverse Mills ratio and H = 1 - Φ: no digits are lost as t → ∞. */
export function millsExcess(t) {
  if (t < 3) return pdf(t) / cdf(-t) - t;
  let excess = 0; // Laplace's continued fraction, deep enough for rounding
  for (let k = 10 + Math.floor(140 / t); k > 0; k--) excess = k / (t + excess);
  return excess;
}

// Laurent coefficients of h - t at infinity: 1/t - 2/t³ + 10/t⁵ - …
const EXCESS = Float64Array.of(1, -2, 10, -74, 706, -8162, 110410, -1708394);

/**
 * h and its first three derivatives at t.
 * @param {number} t
 * @param {Float64Array} out
 * @param {number} at where to write the four numbers
 */
export function millsDerivatives(t, out, at) {
  const excess = millsExcess(t);
  const h = t < 3 ? pdf(t) / cdf(-t) : t + excess;
  const h1 = h * excess;
  let h2 = 0;
  let h3 = 0;
  if (t < 20) {
    h2 = h1 * excess + h * (h1 - 1);
    h3 = h2 * (h + excess) + 2 * h1 * (h1 - 1);
  } else {
    // differences of nearly equal numbers here: differentiate the series instead
    for (let k = EXCESS.length - 1; k >= 0; k--) {
      const factor = EXCESS[k] * (2 * k + 1) * (2 * k + 2);
      h2 = h2 / (t * t) + factor;
      h3 = h3 / (t * t) - factor * (2 * k + 3);
    }
    h2 /= t ** 3;
    h3 /= t ** 4;
  }
  out[at] = h;
  out[at + 1] = h1;
  out[at + 2] = h2;
  out[at + 3] = h3;
}

/** log H(t), for any t. */
export function logSf(t) {
  if (t < 3) return Math.log(cdf(-t));
  return -0.5 * t * t + LOG_INV_SQRT_2PI - Math.log(t + millsExcess(t));
}
