/**
 * The saddle-point equations and Newton's method on them. The twin of rbal/saddle/_equations.py and _newton.py;
 * rbal/saddle/__init__.py explains the method. Notation as in the paper.
 * @module
 */
import { GL_NODES, GL_WEIGHTS, logSf } from "./gauss.js";
import { HINGE, expectations, pull } from "./losses.js";

/**
 * What to solve: the sphere where some loss is left (UNSAT), the sphere under hard constraints (SAT), the surface
 * between the two (EDGE), or a fixed ridge k̂ (an SVM).
 */
export const UNSAT = 0;
export const SAT = 1;
export const EDGE = 2;
export const RIDGE = 3;

/** A Newton step this short, relative to its scale, leads to a point that is right to rounding. */
const QUADRATIC = 1e-9;

/** The state y of the iteration. On the edge the second entry is the margin, elsewhere log x (log w in SAT). */
export const LOG_Q = 0;
export const LOG_X = 1;
export const R = 2;
export const B = 3;
export const ZETA = 4;

/**
 * @typedef {object} Spectrum everything divided by L, so that each 1/L Σᵢ is a plain sum
 * @property {Float64Array} lam distinct eigenvalues of the covariance, ascending
 * @property {Float64Array} g how many directions
 * @property {Float64Array} s squared shift along them
 * @property {number} gNull directions that neither vary nor separate: absent from the arrays
 * @property {number} shift smallest eigenvalue, 0 with gNull: k̂ > -x̂·shift
 *
 * @typedef {object} Problem pairs are (positive class, negative class)
 * @property {number} mode
 * @property {number} loss
 * @property {number[]} kappa
 * @property {number[]} alpha
 * @property {number[]} weight
 * @property {number[]} width covariance of each class in units of that of the spectrum
 * @property {number} norm ‖J‖²/L on the sphere
 * @property {number} ridge k̂ of an SVM
 * @property {boolean} fitBias
 */

const value = new Float64Array(4); // norm, q, x, r
const jac = new Float64Array(16); // their derivatives in (ζ, x̂, q̂, r̂), by rows

/** (norm, q, x, r) from the hats and their derivatives, with A = ζ + x̂(λ - shift). */
function weightSide(mode, spectrum, shift, zeta, xHat, qHat, rHat) {
  const { lam, g, s, gNull } = spectrum;
  let n2 = 0,
    n3 = 0,
    n3d = 0,
    q2 = 0,
    q3 = 0,
    q3d = 0,
    gl1 = 0,
    gl2 = 0,
    gl2d = 0,
    gll2 = 0;
  let s1 = 0,
    s2 = 0,
    s2d = 0,
    sl2 = 0,
    g1 = 0,
    g2 = 0,
    g2d = 0;
  const rHat2 = rHat * rHat;
  for (let i = 0; i < lam.length; i++) {
    const v = lam[i];
    const d = v - shift;
    const a = 1 / (zeta + xHat * d);
    const gl = g[i] * v;
    const a2 = a * a;
    const force = (qHat * gl + rHat2 * s[i]) * a2;
    n2 += force;
    n3 += force * a;
    n3d += force * a * d;
    q2 += force * v;
    q3 += force * v * a;
    q3d += force * v * a * d;
    gl1 += gl * a;
    gl2 += gl * a2;
    gl2d += gl * a2 * d;
    gll2 += gl * v * a2;
    s1 += s[i] * a;
    s2 += s[i] * a2;
    s2d += s[i] * a2 * d;
    sl2 += s[i] * v * a2;
    g1 += g[i] * a;
    g2 += g[i] * a2;
    g2d += g[i] * a2 * d;
  }
  value[0] = n2;
  value[1] = q2;
  value[2] = gl1;
  value[3] = rHat * s1;
  jac[0] = -2 * n3;
  jac[1] = -2 * n3d;
  jac[2] = gl2;
  jac[3] = 2 * rHat * s2;
  jac[4] = -2 * q3;
  jac[5] = -2 * q3d;
  jac[6] = gll2;
  jac[7] = 2 * rHat * sl2;
  jac[8] = -gl2;
  jac[9] = -gl2d;
  jac[10] = 0;
  jac[11] = 0;
  jac[12] = -rHat * s2;
  jac[13] = -rHat * s2d;
  jac[14] = 0;
  jac[15] = s1;
  if (mode === SAT) {
    // the entropy of the weights, 1/L tr A⁻¹, shares the norm with the pull of the data
    value[0] += g1 + gNull / zeta;
    jac[0] -= g2 + gNull / (zeta * zeta);
    jac[1] -= g2d;
  }
}

const norm = new Float64Array(2);

/** The norm alone and its derivative in ζ: the first row of weightSide, for the inner root search. */
function normAndSlope(mode, spectrum, zeta, xHat, qHat, rHat2) {
  const { lam, g, s, gNull, shift } = spectrum;
  let n2 = 0,
    n3 = 0,
    g1 = 0,
    g2 = 0;
  for (let i = 0; i < lam.length; i++) {
    const a = 1 / (zeta + xHat * (lam[i] - shift));
    const force = (qHat * g[i] * lam[i] + rHat2 * s[i]) * a * a;
    n2 += force;
    n3 += force * a;
    g1 += g[i] * a;
    g2 += g[i] * a * a;
  }
  norm[0] = mode === SAT ? n2 + g1 + gNull / zeta : n2;
  norm[1] = mode === SAT ? -2 * n3 - g2 - gNull / (zeta * zeta) : -2 * n3;
}

const total = (a, b) => {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += b ? a[i] * b[i] : a[i];
  return sum;
};

/**
 * ζ with ‖J‖²/L = norm: the norm falls monotonically in ζ, and its inverse square root is nearly linear. With
 * directions that neither vary nor separate, weight put there costs nothing: ζ = 0 where the rest falls short.
 */
function solveNorm(mode, spectrum, wanted, xHat, qHat, rHat, guess) {
  const rHat2 = rHat * rHat;
  if (mode !== SAT && spectrum.gNull > 0 && spectrum.lam[0] > 0) {
    normAndSlope(mode, spectrum, 0, xHat, qHat, rHat2);
    if (norm[0] <= wanted) return 0;
  }
  const push = qHat * total(spectrum.g, spectrum.lam) + rHat2 * total(spectrum.s);
  const entropy = mode === SAT ? total(spectrum.g) + spectrum.gNull : 0;
  let lo = 0;
  let hi = (entropy + Math.sqrt(entropy * entropy + 4 * wanted * push)) / (2 * wanted);
  let zeta = guess > 0 && guess < hi ? guess : hi;
  for (let n = 0; n < 200; n++) {
    normAndSlope(mode, spectrum, zeta, xHat, qHat, rHat2);
    if (norm[0] > wanted) lo = zeta;
    else hi = zeta;
    let next = zeta + ((2 * norm[0]) / norm[1]) * (1 - Math.sqrt(norm[0] / wanted));
    if (Math.abs(next - zeta) <= QUADRATIC * zeta) return next;
    if (!(lo < next && next < hi)) next = lo > 0 ? 0.5 * (lo + hi) : 0.1 * hi;
    if (hi - lo <= 4e-16 * hi) return next;
    zeta = next;
  }
  return zeta;
}

const e = new Float64Array(12);

/**
 * Rows of hats: (x̂, q̂, r̂, bias gap), then their derivatives in q, x, r, b and κ. A class whose covariance is w times that
 * of the spectrum has w q and w x for q and x, and its part of x̂ and q̂ counts w times.
 */
export function dataSide(problem, kappaShift, q, x, r, b, hats) {
  hats.fill(0);
  for (let k = 0; k < 2; k++) {
    const y = 1 - 2 * k;
    const a = problem.alpha[k];
    const w = problem.width[k];
    const mu = 0.5 * r - y * b;
    expectations(problem.loss, problem.kappa[k] + kappaShift, problem.weight[k], w * x, mu, w * q, e);
    if (problem.mode === EDGE && w !== 1)
      for (let j = 0; j < 12; j++) e[j] /= j % 3 === 1 ? w * w : w; // only x f stays finite, and x is w there
    addRow(hats, 0, 0, a, y, w);
    addRow(hats, 4, 6, w * a, y, w);
    addRow(hats, 8, 9, w * a, y, w); // not used on the edge
    addRow(hats, 12, 3, 0.5 * a, y, w); // ∂r = ∂μ/2
    addRow(hats, 16, 3, -y * a, y, w); // ∂b = -y ∂μ
    addRow(hats, 20, 3, -a, y, w); // ∂κ = -∂μ: the expectations depend on κ - μ
  }
}

function addRow(hats, row, j, scale, y, w) {
  hats[row] += scale * w * e[j + 2];
  hats[row + 1] += scale * w * e[j + 1];
  hats[row + 2] += 0.5 * scale * e[j];
  hats[row + 3] += y * scale * e[j];
}

const up = new Float64Array(2);
const down = new Float64Array(2);
const gapOf = { gap: 0, slope: 0, size: 0 };

/** α₊E₊[f] - α₋E₋[f], its slope in b (never negative), and the size of the two forces. */
function biasGap(problem, kappaShift, q, x, r, b) {
  const { loss, kappa, weight, alpha, width, mode } = problem;
  pull(loss, kappa[0] + kappaShift, weight[0], width[0] * x, 0.5 * r - b, width[0] * q, up);
  pull(loss, kappa[1] + kappaShift, weight[1], width[1] * x, 0.5 * r + b, width[1] * q, down);
  const sizeUp = mode === EDGE ? alpha[0] / width[0] : alpha[0];
  const sizeDown = mode === EDGE ? alpha[1] / width[1] : alpha[1];
  const fUp = sizeUp * up[0];
  const fDown = sizeDown * down[0];
  gapOf.gap = fUp - fDown;
  gapOf.slope = sizeUp * up[1] + sizeDown * down[1];
  gapOf.size = Math.abs(fUp) + Math.abs(fDown);
}

/** Bias with α₊E₊[f] = α₋E₋[f]: the gap rises monotonically in b. */
function solveBias(problem, kappaShift, q, x, r, guess) {
  const { loss, weight, alpha, kappa, width } = problem;
  const rootQ = Math.sqrt(q * Math.max(width[0], width[1]));
  let b = guess;
  let lo = -Infinity;
  let hi = Infinity;
  let step = rootQ;
  const pullUp = alpha[0] * weight[0];
  const pullDown = alpha[1] * weight[1];
  if (loss === HINGE && Math.abs(pullUp - pullDown) <= 4e-16 * pullUp) {
    // Balanced forces that saturate (nearly every sample below its margin) fix b only through the rest.
    const even = 0.5 * (weight[0] - weight[1]) * width[0] * x + 0.5 * (kappa[1] - kappa[0]);
    const middle = width[0] === width[1] ? even : guess;
    biasGap(problem, kappaShift, q, x, r, middle);
    if (gapOf.slope * step < 1e-7 * gapOf.size && 2 * pullUp - gapOf.size < 1e-7 * gapOf.size)
      return saturatedBias(problem, q, x, r, middle);
  }
  for (let n = 0; n < 400; n++) {
    biasGap(problem, kappaShift, q, x, r, b);
    if (Math.abs(gapOf.gap) <= 4e-16 * gapOf.size) return b;
    if (gapOf.gap > 0) hi = b;
    else lo = b;
    let next = gapOf.slope > 0 ? b - gapOf.gap / gapOf.slope : NaN;
    if (Math.abs(next - b) <= QUADRATIC * rootQ) return next;
    if (!(lo < next && next < hi && Math.abs(next - b) <= 4 * step)) {
      if (hi === Infinity) next = b + step;
      else if (lo === -Infinity) next = b - step;
      else next = 0.5 * (lo + hi);
      step *= 2;
    }
    if (hi - lo <= 5e-16 * (Math.abs(b) + rootQ)) return next;
    b = next;
  }
  return b;
}

/** log ∫ H(t) dt from t1 to t2: how far E[f] of a hinge is from saturation, without underflow. */
function logDeficit(t1, t2) {
  const end = Math.min(t2, t1 + 40 / Math.max(t1, 1)); // H falls like exp(-t²/2): nothing is left beyond
  const top = logSf(t1);
  const width = (end - t1) / 4;
  let sum = 0;
  for (let panel = 0; panel < 4; panel++)
    for (let k = 0; k < 12; k++)
      sum += width * GL_WEIGHTS[k] * Math.exp(logSf(t1 + width * (panel + GL_NODES[k])) - top);
  return top + Math.log(sum);
}

/**
 * Bias of a hinge when α₊c₊ = α₋c₋ and nearly every sample lies below its margin. Then α₊E₊[f] = α₋E₋[f] holds to
 * rounding over a whole interval of b. What decides is the few samples above: compare the logarithms of E[c - f].
 */
function saturatedBias(problem, q, x, r, start) {
  const { kappa, weight, alpha, width } = problem;
  const s = [0, 1].map((k) => Math.sqrt(width[k] * q));
  const band = [0, 1].map((k) => (weight[k] * width[k] * x) / s[k]);
  const offset = Math.log(alpha[1] / alpha[0]) + 0.5 * Math.log(width[0] / width[1]); // E[c - f] has a factor s/x
  let b = start;
  let lo = -Infinity;
  let hi = Infinity;
  for (let n = 0; n < 200; n++) {
    const above = (kappa[0] - 0.5 * r + b) / s[0];
    const below = (kappa[1] - 0.5 * r - b) / s[1];
    const gap = offset + logDeficit(below - band[1], below) - logDeficit(above - band[0], above);
    if (gap > 0) hi = b;
    else lo = b;
    const slope = (Math.abs(above - band[0]) + 0.5) / s[0] + (Math.abs(below - band[1]) + 0.5) / s[1];
    const next = b - gap / slope;
    if (Math.abs(next - b) <= 1e-15 * (Math.abs(b) + s[0] + s[1])) return next;
    b = lo < next && next < hi ? next : 0.5 * (lo + hi);
  }
  return b;
}

const hats = new Float64Array(24);
const m = new Float64Array(9);

/**
 * Residual of the fixed point at y and the Newton step from there; false where it leaves the domain.
 *
 * The unknowns are log q, log x (κ on the edge) and r. The bias and ζ follow them by their monotone equations and
 * enter the Jacobian through the implicit function theorem.
 */
function evaluate(problem, spectrum, y, res, step) {
  const { mode, fitBias } = problem;
  const q = Math.exp(y[LOG_Q]);
  const r = y[R];
  const x = mode === EDGE ? 1 : Math.exp(y[LOG_X]);
  const kappaShift = mode === EDGE ? y[LOG_X] : 0;
  y[B] = fitBias ? solveBias(problem, kappaShift, q, x, r, y[B]) : 0;
  dataSide(problem, kappaShift, q, x, r, y[B], hats);
  let shift = spectrum.shift;
  if (mode === RIDGE) {
    y[ZETA] = problem.ridge;
    shift = 0;
  } else {
    y[ZETA] = solveNorm(mode, spectrum, problem.norm, hats[0], hats[1], hats[2], y[ZETA]);
  }
  weightSide(mode, spectrum, shift, y[ZETA], hats[0], hats[1], hats[2]);
  if (!(value[1] > 0 && value[2] > 0 && Number.isFinite(value[1] + value[2] + value[3]))) return false;
  const rootQ = Math.sqrt(q);
  res[0] = Math.log(value[1] / q);
  res[1] = Math.log(value[2] / x);
  res[2] = (value[3] - r) / rootQ;
  for (let j = 0; j < 3; j++) {
    const onEdge = j === 1 && mode === EDGE;
    const row = onEdge ? 20 : 4 * (j + 1);
    const scale = onEdge || j === 2 ? 1 : j === 0 ? q : x;
    const db = fitBias && hats[19] > 0 ? -hats[row + 3] / hats[19] : 0;
    const dxHat = scale * (hats[row] + hats[16] * db);
    const dqHat = scale * (hats[row + 1] + hats[17] * db);
    const drHat = scale * (hats[row + 2] + hats[18] * db);
    const dz = mode !== RIDGE && y[ZETA] > 0 ? -(jac[1] * dxHat + jac[2] * dqHat + jac[3] * drHat) / jac[0] : 0;
    m[j] = (jac[4] * dz + jac[5] * dxHat + jac[6] * dqHat + jac[7] * drHat) / value[1];
    m[3 + j] = (jac[8] * dz + jac[9] * dxHat) / value[2];
    m[6 + j] = (jac[12] * dz + jac[13] * dxHat + jac[15] * drHat) / rootQ;
  }
  m[0] -= 1;
  if (mode !== EDGE) m[4] -= 1;
  m[6] -= 0.5 * res[2];
  m[8] -= 1 / rootQ;
  solve3(res, step);
  return true;
}

/** step = -m⁻¹ res by Cramer's rule, or the plain residual where m is singular. */
function solve3(res, step) {
  const c00 = m[4] * m[8] - m[5] * m[7];
  const c01 = m[5] * m[6] - m[3] * m[8];
  const c02 = m[3] * m[7] - m[4] * m[6];
  const det = m[0] * c00 + m[1] * c01 + m[2] * c02;
  if (det === 0 || !Number.isFinite(det)) {
    step.set(res);
    return;
  }
  const c10 = m[2] * m[7] - m[1] * m[8];
  const c11 = m[0] * m[8] - m[2] * m[6];
  const c12 = m[1] * m[6] - m[0] * m[7];
  const c20 = m[1] * m[5] - m[2] * m[4];
  const c21 = m[2] * m[3] - m[0] * m[5];
  const c22 = m[0] * m[4] - m[1] * m[3];
  step[0] = -(res[0] * c00 + res[1] * c10 + res[2] * c20) / det;
  step[1] = -(res[0] * c01 + res[1] * c11 + res[2] * c21) / det;
  step[2] = -(res[0] * c02 + res[1] * c12 + res[2] * c22) / det;
}

const sizeOf = (res) => Math.max(Math.abs(res[0]), Math.abs(res[1]), Math.abs(res[2]));

/** What {@link newton} found: residual and iterations. Infinity means that the path left the domain. */
export const found = { residual: Infinity, iterations: 0 };

function end(residual, iterations) {
  found.residual = residual;
  found.iterations += iterations;
  return residual;
}

/**
 * Newton with a line search from y; where it does not descend, a few steps of the damped fixed point.
 *
 * y is start and result. Returns the residual; infinity also where x grew beyond xLimit·√q, the mark of the SAT phase.
 */
export function newton(problem, spectrum, tol, maxIter, xLimit, y) {
  let res = new Float64Array(3);
  let step = new Float64Array(3);
  let resNew = new Float64Array(3);
  let stepNew = new Float64Array(3);
  const next = y.slice();
  if (!evaluate(problem, spectrum, y, res, step)) return end(Infinity, 0);
  let size = sizeOf(res);
  let plain = 0;
  for (let n = 1; n <= maxIter; n++) {
    if (size <= tol) return end(size, n);
    const rootQ = Math.exp(0.5 * y[LOG_Q]);
    const unit1 = problem.mode === EDGE ? rootQ + Math.abs(y[LOG_X]) : 1.5;
    const cap = Math.max(
      Math.abs(step[0]) / 2,
      Math.abs(step[1]) / (2 * unit1),
      Math.abs(step[2]) / (2 * rootQ + Math.abs(y[R])),
    );
    let t = 1 / Math.max(1, cap);
    let sizeNew = Infinity;
    if (plain === 0) {
      for (let k = 0; k < 6; k++) {
        for (let j = 0; j < 3; j++) next[j] = y[j] + t * step[j];
        next[B] = y[B];
        next[ZETA] = y[ZETA];
        if (evaluate(problem, spectrum, next, resNew, stepNew)) {
          sizeNew = sizeOf(resNew);
          if (sizeNew < (1 - 0.1 * t) * size || sizeNew <= tol) break;
        }
        sizeNew = Infinity;
        t *= 0.4;
      }
    }
    if (sizeNew === Infinity) {
      plain = plain === 0 ? 4 : plain - 1;
      for (let j = 0; j < 3; j++) {
        const unit = j === 2 || (j === 1 && problem.mode === EDGE) ? rootQ : 1;
        next[j] = y[j] + unit * Math.min(Math.max(0.7 * res[j], -1), 1);
      }
      next[B] = y[B];
      next[ZETA] = y[ZETA];
      if (!evaluate(problem, spectrum, next, resNew, stepNew)) return end(Infinity, n);
      sizeNew = sizeOf(resNew);
    }
    y.set(next);
    [res, resNew] = [resNew, res];
    [step, stepNew] = [stepNew, step];
    size = sizeNew;
    if (Math.abs(y[LOG_Q]) > 300 || (problem.mode !== EDGE && y[LOG_X] - 0.5 * y[LOG_Q] > Math.log(xLimit)))
      return end(Infinity, n);
  }
  return end(size, maxIter);
}
