/**
 * Order parameters of the trained classifier, for one point or many, and where its phases meet. The twin of
 * rbal/saddle/_solve.py and rbal/phases.py for the hinge loss.
 * @module
 */
import { COLLAPSED, major, solveEdge, solvePhase, solveVanishing, withMode } from "./attempts.js";
import { cdf } from "./gauss.js";
import { EDGE, LOG_Q, LOG_X, R, B, RIDGE, SAT, UNSAT, ZETA, dataSide, found } from "./kernels.js";
import { HINGE, INEQUALITY, meanLoss } from "./losses.js";

export const PHASES = ["UNSAT", "SAT", "COLLAPSED"];

/**
 * Moments as the solver takes them, from the JSON that tools/make_explorer_data.py writes.
 *
 * @param {{L: number, Q: number, lam: number[], g: number[], s: number[], g_null: number}} data
 * @param {number} [stretch] factor on the shift δ between the class means
 * @returns {{L: number, Q: number, spectrum: import("./kernels.js").Spectrum}}
 */
export function makeMoments(data, stretch = 1) {
  const spectrum = {
    lam: Float64Array.from(data.lam),
    g: Float64Array.from(data.g),
    s: Float64Array.from(data.s, (v) => v * stretch * stretch),
    gNull: data.g_null,
    shift: data.g_null > 0 ? 0 : data.lam[0],
  };
  return { L: data.L, Q: data.Q, spectrum };
}

const NOTHING = Object.freeze({
  q: NaN,
  r: NaN,
  b: NaN,
  x: NaN,
  kHat: NaN,
  xHat: NaN,
  qHat: NaN,
  rHat: NaN,
  trainLoss: NaN,
  trainError: NaN,
});

/** Order parameters, hats, training loss and error of a solution. */
function report(problem, spectrum, phase, y) {
  const { alpha, weight, width } = problem;
  const weighted = [alpha[0] * weight[0], alpha[1] * weight[1]];
  const all = weighted[0] + weighted[1];
  if (phase === COLLAPSED) {
    const side = major(problem);
    const lost = (side > 0 ? weighted[1] : weighted[0]) / all;
    return {
      ...NOTHING,
      q: 0,
      r: 0,
      b: -side * problem.kappa[0],
      x: 0,
      kHat: problem.ridge,
      trainLoss: 2 * problem.kappa[0] * lost,
      trainError: problem.kappa[0] > 0 ? lost : 0,
    };
  }
  const q = Math.exp(y[LOG_Q]);
  const x = Math.exp(y[LOG_X]);
  const r = y[R];
  const b = y[B];
  const hats = new Float64Array(24);
  const p = phase === SAT ? withMode(problem, SAT, INEQUALITY, problem.kappa, 0) : problem;
  dataSide(p, 0, q, x, r, b, hats);
  const kHat = problem.mode === RIDGE ? y[ZETA] : y[ZETA] - hats[0] * spectrum.shift;
  let trainLoss = 0;
  let trainError = 0;
  if (phase === UNSAT) {
    for (let k = 0; k < 2; k++) {
      const mu = 0.5 * r - (1 - 2 * k) * b;
      const [xk, qk] = [width[k] * x, width[k] * q];
      trainLoss += (alpha[k] * meanLoss(problem.kappa[k], weight[k], xk, mu, qk)) / all;
      // u < 0 exactly where u0 < -x f(u = 0)
      const edge = problem.kappa[k] >= 0 ? -xk * weight[k] : 0;
      trainError += (weighted[k] * cdf((edge - mu) / Math.sqrt(qk))) / all;
    }
  }
  return { q, r, b, x, kHat, xHat: hats[0], qHat: hats[1], rHat: hats[2], trainLoss, trainError };
}

/**
 * @typedef {object} Point one problem to solve
 * @property {number} alphaPos class sizes over L
 * @property {number} alphaNeg
 * @property {number} [kappa] margin, 1 by default
 * @property {"perceptron"|"svm"} [model]
 * @property {number} [lam] ridge of the SVM
 * @property {number} [weightPos] factors on the loss of each class: class weights, or multiplicities of oversampling
 * @property {number} [weightNeg]
 * @property {number} [widthPos] covariance of each class in units of that of the moments, 1 by default
 * @property {number} [widthNeg]
 * @property {boolean} [fitBias]
 *
 * @typedef {object} Solution
 * @property {number} q variance of the score within a class (in SAT, overlap of two typical solutions); where classes
 *   differ in width it is that of a class of width 1, and so are x and the variance
 * @property {number} r distance between the class means of the score
 * @property {number} b bias
 * @property {number} x susceptibility; the spread w of the solutions in SAT
 * @property {number} variance variance of a test score: q, and q + w in SAT
 * @property {"UNSAT"|"SAT"|"COLLAPSED"} phase
 * @property {boolean} converged where it is false every number is NaN
 */

/**
 * A function that solves one {@link Point} after another, each from the one before.
 *
 * @param {ReturnType<typeof makeMoments>} moments
 * @param {number} [tol] residual at which to stop
 * @param {boolean} [even] whether the points lie evenly on a line, so that a start may be extrapolated
 * @returns {(point: Point) => Solution}
 */
export function walker(moments, tol = 1e-10, even = false) {
  const y = new Float64Array(5);
  const last = new Float64Array(5);
  let [warm, before] = [-1, -1];
  return (point) => {
    const { alphaPos, alphaNeg, kappa = 1, model = "perceptron", lam = 0 } = point;
    const { weightPos = 1, weightNeg = 1, widthPos = 1, widthNeg = 1, fitBias = true } = point;
    const problem = {
      mode: model === "svm" ? RIDGE : UNSAT,
      loss: HINGE,
      kappa: [kappa, kappa],
      alpha: [alphaPos, alphaNeg],
      weight: [weightPos, weightNeg],
      width: [widthPos, widthNeg],
      norm: moments.Q,
      ridge: lam,
      fitBias,
    };
    found.iterations = 0;
    const start = y.slice();
    if (even && warm >= 0 && warm === before) for (let j = 0; j < 5; j++) y[j] += y[j] - last[j];
    last.set(start);
    const { residual, phase } = solvePhase(problem, moments.spectrum, tol, y, warm);
    const converged = residual <= tol;
    before = warm;
    warm = converged && phase !== COLLAPSED ? phase : -1;
    const numbers = converged ? report(problem, moments.spectrum, phase, y) : NOTHING;
    const variance = phase === SAT ? numbers.q + numbers.x : numbers.q;
    return { ...numbers, variance, phase: PHASES[phase], converged, residual, iterations: found.iterations };
  };
}

/** Solutions along a line of points. */
export const sweep = (moments, points, tol = 1e-10) => points.map(walker(moments, tol, true));

/** One point, from scratch. */
export const solve = (moments, point, tol = 1e-10) => walker(moments, tol)(point);

/**
 * Largest margin at which training sets of given sizes are separable, each from its neighbour.
 *
 * @param {ReturnType<typeof makeMoments>} moments
 * @param {[number, number][]} sizes pairs (α⁺, α⁻)
 * @returns {number[]} NaN where it did not converge
 */
export function criticalMargins(moments, sizes, tol = 1e-12) {
  const { Q } = moments;
  // Weights that no sample sees leave every score at 0: no margin is lost to them, and none is won.
  const unseen = moments.spectrum.gNull > 0 && moments.spectrum.lam[0] > 0;
  const spectrum = unseen ? { ...moments.spectrum, gNull: 0, shift: moments.spectrum.lam[0] } : moments.spectrum;
  const y = new Float64Array(5);
  let warm = false;
  return sizes.map((alpha) => {
    const rest = { weight: [1, 1], width: [1, 1], norm: Q, ridge: 0, fitBias: true };
    const problem = { mode: EDGE, loss: HINGE, kappa: [0, 0], alpha, ...rest };
    warm = solveEdge(problem, spectrum, tol, y, warm) <= tol;
    if (unseen) return warm ? Math.max(y[LOG_X], 0) : NaN;
    if (spectrum.lam[0] > 0) return warm ? y[LOG_X] : NaN;
    const alone = 0.5 * Math.sqrt(Q * spectrum.s[0]); // a direction without noise separates any amount of data
    return warm && y[LOG_X] > alone ? y[LOG_X] : alone;
  });
}

/**
 * Multiplier k̂ of the vanishing weights of a hinge SVM: where it is not positive the machine collapses, under any ridge.
 *
 * @param {ReturnType<typeof makeMoments>} moments
 * @param {[number, number][]} sizes pairs (α⁺, α⁻)
 * @returns {number[]} NaN where it did not converge
 */
export function vanishingMultipliers(moments, sizes, tol = 1e-10) {
  const y = new Float64Array(5);
  let warm = false;
  return sizes.map((alpha) => {
    const rest = { weight: [1, 1], width: [1, 1], norm: moments.Q, ridge: 0, fitBias: true };
    const problem = { alpha, kappa: [1, 1], ...rest };
    const { residual, kHat } = solveVanishing(problem, moments.spectrum, tol, y, warm);
    warm = residual <= tol && alpha[0] !== alpha[1];
    return residual <= tol ? kHat : NaN;
  });
}
