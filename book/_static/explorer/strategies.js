/**
 * Ways to restore balance, and the window in which a margin pays, on the theory. The twin of rbal/strategies and of
 * the measurement in the chapter on the trade-off.
 * @module
 */
import { Metrics } from "./metrics.js";
import { solve, sweep, walker } from "./solver.js";

const GOLDEN = 0.5 * (Math.sqrt(5) - 1);
const GRID = 33;
const STEPS = 18;

/** Largest multiplicity of the minority: then nothing of the majority is dropped. */
export const largest = (pos, neg) => Math.max(pos, neg) / Math.min(pos, neg);

/** Multiplicity c of the minority at a mixing from 0 (undersampling) to 1 (oversampling). */
export const multiplicity = (pos, neg, mixing) => 1 + mixing * (largest(pos, neg) - 1);

/** The balanced protocol: the minority c times, and as many of the majority. */
export const balanced = (pos, neg, c, rest) =>
  pos <= neg
    ? { ...rest, alphaPos: pos, alphaNeg: c * pos, weightPos: c }
    : { ...rest, alphaPos: c * neg, alphaNeg: neg, weightNeg: c };

/**
 * Mixing at which a score of the classifier is best: a grid in log c finds the highest point, golden section its place.
 *
 * @param {object} moments
 * @param {number} pos α⁺ as given
 * @param {number} neg α⁻ as given
 * @param {object} rest margin, model and ridge
 * @param {(m: Metrics) => number} score to be maximised
 * @param {number} tolerance mixings from low to high are worse than the best by at most this
 */
export function bestMixing(moments, pos, neg, rest, score, tolerance) {
  const top = largest(pos, neg);
  const c = (t) => (t === 1 ? top : top ** t);
  const valued = (solution) => {
    const value = solution.converged ? score(Metrics.of(solution)) : NaN;
    return Number.isNaN(value) ? -Infinity : value;
  };
  const height = (t) => valued(solve(moments, balanced(pos, neg, c(t), rest)));
  const grid = Array.from({ length: GRID }, (_, k) => k / (GRID - 1));
  const heights = sweep(
    moments,
    grid.map((t) => balanced(pos, neg, c(t), rest)),
  ).map(valued);
  const k = heights.indexOf(Math.max(...heights));
  let t = golden(height, grid[Math.max(k - 1, 0)], grid[Math.min(k + 1, GRID - 1)]);
  let value = height(t);
  if (heights[k] >= value) [t, value] = [grid[k], heights[k]]; // an end of the range stays what it is
  const mixing = (place) => (top > 1 ? (c(place) - 1) / (top - 1) : place);
  const [low, high] = [-1, 1].map((side) => mixing(reach(height, grid, heights, t, value - tolerance, side)));
  return { mixing: mixing(t), c: c(t), value, low, high, edge: t === 0 ? "under" : t === 1 ? "over" : "inside" };
}

function golden(height, from, to) {
  let [a, b] = [from, to];
  let [left, right] = [b - GOLDEN * (b - a), a + GOLDEN * (b - a)];
  let [atLeft, atRight] = [height(left), height(right)];
  for (let n = 0; n < STEPS; n++) {
    if (atLeft >= atRight) {
      [b, right, atRight] = [right, left, atLeft];
      left = b - GOLDEN * (b - a);
      atLeft = height(left);
    } else {
      [a, left, atLeft] = [left, right, atRight];
      right = a + GOLDEN * (b - a);
      atRight = height(right);
    }
  }
  return 0.5 * (a + b);
}

/** Farthest place on one side of t up to which no grid point is below `enough`. */
function reach(height, grid, heights, t, enough, side) {
  const order = side > 0 ? grid.map((_, k) => k) : grid.map((_, k) => grid.length - 1 - k);
  const k = order.find((i) => side * (grid[i] - t) > 0 && heights[i] < enough);
  if (k === undefined) return side > 0 ? 1 : 0;
  let bad = grid[k];
  let good = side * Math.max(side * (bad - side / (GRID - 1)), side * t);
  for (let n = 0; n < STEPS; n++) {
    const middle = 0.5 * (good + bad);
    if (height(middle) >= enough) good = middle;
    else bad = middle;
  }
  return good;
}

const NEAR = -23; // of log |log(α⁻/α⁺)|: a ratio of 1 + 1e-10, about as close to balance as the solver can tell
const FAR = 2; // a ratio of 1600

/** No window narrower than this is resolved: its width is then 0, and what is shown is this bound. */
export const NARROWEST = 1e-10;

/**
 * The window in which BA is more than half as far above ½ as it is at balance, in shares ρ⁻ of negatives, for a fixed
 * number of positives. Its edges are sought in the logarithm of |log(α⁻/α⁺)|, so that a narrow one is as exact as a
 * wide one, down to NARROWEST.
 *
 * @returns {{low: number, high: number, width: number, peak: number, resolved: boolean}}
 */
export function tradeoffWindow(moments, alphaPos, rest, tolerance = 1e-5) {
  const next = walker(moments);
  const ba = (alphaNeg) => Metrics.of(next({ ...rest, alphaPos, alphaNeg })).ba();
  const peak = ba(alphaPos);
  // distance of each edge from ½, which the shares themselves would lose to rounding
  const [below, above] = [-1, 1].map((side) => {
    const gain = (m) => ba(alphaPos * Math.exp(side * Math.exp(m))) - 0.5 - 0.5 * (peak - 0.5);
    const m = fallsThrough(gain, NEAR, FAR, 0.5 * (peak - 0.5), tolerance);
    return m === NEAR ? 0 : 0.5 * Math.tanh(0.5 * Math.exp(m));
  });
  const resolved = below > 0 && above > 0;
  const width = resolved ? below + above : 0;
  return { low: 0.5 - below, high: 0.5 + above, width, peak, resolved };
}

/** Where a falling function passes 0, by secants kept in a bracket (Illinois); an end if it does so beyond it. */
function fallsThrough(f, near, far, atNear, tolerance) {
  let [a, fa, b, fb] = [near, atNear, far, f(far)];
  if (!(fb < 0)) return far;
  for (let n = 0; n < 60 && b - a > tolerance; n++) {
    const slow = n > 1 && n % 3 === 2; // now and then halve, lest one end stay for long
    const m = slow
      ? 0.5 * (a + b)
      : Math.min(Math.max(a + ((b - a) * fa) / (fa - fb), a + 0.1 * tolerance), b - 0.1 * tolerance);
    const fm = f(m);
    if (fm > 0) {
      [a, fa] = [m, fm];
      fb *= 0.5;
    } else {
      [b, fb] = [m, fm];
      fa *= 0.5;
    }
  }
  return a === near && !(f(near) > 0) ? near : 0.5 * (a + b); // atNear is what it would be at balance
}
