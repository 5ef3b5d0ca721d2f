/**
 * Controls and helpers that several explorers share.
 * @module
 */
import { makeMoments } from "../solver.js";

/** @returns {import("../controls.js").Control} */
export const dataChoice = (moments, when) => ({
  key: "data",
  kind: "choice",
  label: "Data",
  options: Object.entries(moments).map(([k, v]) => [k, v.name]),
  when,
});

export const kappaSlider = (when) => ({
  key: "kappa",
  kind: "range",
  label: "margin",
  symbol: "κ",
  min: 0.05,
  max: 20,
  log: true,
  when,
});

export const stretchSlider = (when) => ({
  key: "stretch",
  kind: "range",
  label: "shift between the classes",
  symbol: "δ",
  min: 0.1,
  max: 4,
  log: true,
  when,
  unit: "×",
});

export const sizeSlider = (key, label, symbol, when) => ({
  key,
  kind: "range",
  label,
  symbol,
  min: 0.05,
  max: 50,
  log: true,
  when,
});

const kept = new Map();

/** Moments of a data set, its shift stretched; the last few are kept. */
export function momentsOf(moments, { data, stretch }) {
  const key = `${data} ${stretch}`;
  if (!kept.has(key)) {
    if (kept.size > 20) kept.clear();
    kept.set(key, makeMoments(moments[data], stretch));
  }
  return kept.get(key);
}

/** Margins that the book draws, each with its colour in every figure, as rbal_book.plotting.margin_color has it. */
const MARGIN_COLORS = [
  [0.3, "orange"],
  [0.5, "sky"],
  [1, "blue"],
  [1.5, "green"],
  [2, "purple"],
  [4, "vermillion"],
];

/** Colour of a margin: that of the nearest, in ratio, of those that the book draws. */
export function marginColor(kappa) {
  if (kappa <= 0) return "text";
  const off = MARGIN_COLORS.map(([known]) => Math.abs(Math.log(kappa / known)));
  return MARGIN_COLORS[off.indexOf(Math.min(...off))][1];
}

/** Height of a plot: less on a phone, where the knobs below it are to stay in view. */
export const heightOf = (wide, narrow) => (width) => (width < 420 ? narrow : wide);

/** n numbers from a to b, both included. */
export const linspace = (a, b, n) => Array.from({ length: n }, (_, k) => a + ((b - a) * k) / (n - 1));
export const geomspace = (a, b, n) => linspace(Math.log(a), Math.log(b), n).map(Math.exp);

/** A phase in words. */
export const PHASE_NAMES = {
  UNSAT: "UNSAT: some training loss is left",
  SAT: "SAT: the training set is separable",
  COLLAPSED: "collapsed: weights without use",
};

/** Stretches of a sweep where the data are separable, as bands. */
export function satBands(x, solutions) {
  const bands = [];
  for (let k = 0; k < x.length; k++) {
    if (solutions[k].phase !== "SAT") continue;
    if (k && solutions[k - 1].phase === "SAT") bands.at(-1).to = x[k];
    else
      bands.push({ from: x[k], to: x[k], color: "muted", opacity: 0.12, name: "separable", quiet: bands.length > 0 });
  }
  return bands;
}

/** Values of a sweep, NaN where a solution is missing. */
export const valuesOf = (solutions, f) => solutions.map((s, k) => (s.converged ? f(s, k) : NaN));
