/**
 * Classes of unequal width: the covariance of the positives is w times that of the negatives, and the best threshold
 * leaves the midpoint of the class means.
 * @module
 */
import { WidthMetrics } from "../metrics.js";
import { fixed, show } from "../plot.js";
import { solve, sweep } from "../solver.js";
import {
  dataChoice,
  geomspace,
  heightOf,
  kappaSlider,
  linspace,
  momentsOf,
  satBands,
  sizeSlider,
  stretchSlider,
  valuesOf,
} from "./shared.js";

const WIDTHS = geomspace(0.1, 10, 81);
const point = (state, width) => ({
  alphaPos: state.alpha_pos,
  alphaNeg: state.alpha_neg,
  kappa: state.kappa,
  widthPos: width,
});

/** What is drawn in both plots: where a threshold lies, and its balanced accuracy. */
const THRESHOLDS = [
  {
    key: "trained",
    name: "threshold as trained",
    short: "as trained",
    color: "purple",
    width: 1.6,
    dash: "7 3",
    at: () => 0,
  },
  {
    key: "midway",
    name: "midway between the means",
    short: "midway",
    color: "text",
    width: 1.6,
    dash: "2 3",
    at: (m) => m.midway(),
  },
  {
    key: "best",
    name: "best threshold",
    short: "best",
    color: "green",
    width: 2.6,
    at: (m) => m.bestThreshold(),
  },
];
const baAt = (m, { key, at }) => (key === "best" ? m.bestBa() : m.ba(at(m)));

// Curves over all widths, for the last setting: they do not depend on the width at hand.
let kept = { key: "" };

/** Solutions over the widths, their balanced accuracies, and how far the best threshold is from midway. */
function overWidths(moments, state) {
  const key = [state.data, state.stretch, state.alpha_pos, state.alpha_neg, state.kappa].join(" ");
  if (kept.key === key) return kept;
  const points = WIDTHS.map((w) => point(state, w));
  const solutions = sweep(moments, points);
  const metrics = solutions.map((s, k) => WidthMetrics.of(s, points[k]));
  const curves = {};
  for (const t of THRESHOLDS) curves[t.key] = valuesOf(solutions, (_, k) => baAt(metrics[k], t));
  const moved = valuesOf(solutions, (_, k) => metrics[k].bestThreshold() - metrics[k].midway());
  kept = { key, solutions, curves, moved };
  return kept;
}

/** @type {import("../explorer.js").Definition} */
export default {
  name: "widths",
  title: "The wider class",
  intro:
    "The covariance of the positives is w times that of the negatives. Then the best threshold does not lie midway between " +
    "the mean scores of the classes: where they overlap much, it moves towards the wider class, and where they are far " +
    "apart, towards the narrower one. Training on as many positives as negatives does not end there either.",
  controls: (moments) => [
    dataChoice(moments),
    { key: "width", kind: "range", label: "width of the positives", symbol: "w", min: 0.1, max: 10, log: true },
    sizeSlider("alpha_pos", "positives per feature", "α⁺"),
    sizeSlider("alpha_neg", "negatives per feature", "α⁻"),
    kappaSlider(),
    stretchSlider(),
  ],
  plots: [
    { name: "bells", height: heightOf(190, 150) },
    { name: "curves", height: heightOf(190, 150) },
  ],

  compute(state, data) {
    const moments = momentsOf(data, state);
    const here = point(state, state.width);
    const solution = solve(moments, here);
    const m = WidthMetrics.of(solution, here);
    const { solutions, curves, moved } = overWidths(moments, state);
    const reach = 0.5 * Math.abs(m.r) + 3.4 * Math.sqrt(Math.max(m.qPos, m.qNeg));
    const span = Math.max(reach, Math.abs(m.b) * 1.08, 1e-6); // the threshold as trained is in view
    const delta = linspace(-m.b - span, -m.b + span, 241);
    return {
      m,
      widths: WIDTHS,
      solution,
      solutions,
      curves,
      moved,
      delta,
      pos: delta.map((d) => m.density(d, 1)),
      neg: delta.map((d) => m.density(d, -1)),
      thresholds: Object.fromEntries(THRESHOLDS.map(({ key, at }) => [key, at(m)])),
      ba: Object.fromEntries(THRESHOLDS.map((t) => [t.key, baAt(m, t)])),
      auc: m.auc(),
    };
  },

  draw({ solutions, curves, delta, pos, neg, thresholds, ba }, state, change) {
    const top = 1.08 * Math.max(...pos, ...neg);
    const seen = Object.values(curves).flatMap((c) => c.filter(Number.isFinite));
    const low = Math.min(...seen);
    return [
      {
        summary: `Densities of the scores of both classes. Balanced accuracy is ${fixed(ba.trained)} at the threshold as trained, ${fixed(ba.midway)} midway between the means and ${fixed(ba.best)} at the best threshold.`,
        x: { min: delta[0], max: delta.at(-1), label: "score Δ", short: "Δ" },
        y: { min: 0, max: Number.isFinite(top) ? top : 1, label: "density of each class", ticks: [] },
        areas: [
          { x: delta, y: neg, color: "blue", opacity: 0.12 },
          { x: delta, y: pos, color: "vermillion", opacity: 0.12 },
        ],
        lines: [
          { name: "negatives", x: delta, y: neg, color: "blue" },
          { name: "positives", x: delta, y: pos, color: "vermillion" },
          ...THRESHOLDS.map(({ key, name, color, width, dash }) => ({
            name,
            x: [thresholds[key], thresholds[key]],
            y: Number.isFinite(thresholds[key]) ? [0, top] : [NaN, NaN],
            color,
            width,
            dash,
          })),
        ],
      },
      {
        summary: `Balanced accuracy at three thresholds against the width of the positives, from 0.1 to 10.`,
        x: { min: WIDTHS[0], max: WIDTHS.at(-1), log: true, label: "width w of the positives", short: "w" },
        y: {
          min: Math.floor(low * 20) / 20,
          max: Math.min(1, Math.ceil((Math.max(...seen) + 0.005) * 20) / 20),
          label: "balanced accuracy",
        },
        bands: satBands(WIDTHS, solutions),
        rules: [{ x: state.width, dash: "3 3" }, { x: 1, color: "grid" }],
        lines: THRESHOLDS.map(({ key, short, color, width, dash }) => ({
          name: short,
          x: WIDTHS,
          y: curves[key],
          color,
          width,
          dash,
        })),
        points: THRESHOLDS.map(({ key, color }) => ({ x: state.width, y: ba[key], color })),
        pick: (x) => change({ width: Number(Math.min(Math.max(x, 0.1), 10).toPrecision(3)) }),
      },
    ];
  },

  readout({ m, solution, thresholds, ba, auc }) {
    const off = thresholds.best - thresholds.midway;
    return [
      ["BA as trained", fixed(ba.trained, 4), "purple"],
      ["BA midway", fixed(ba.midway, 4), "text"],
      ["BA at its best", fixed(ba.best, 4), "green"],
      ["gain over midway", fixed(ba.best - ba.midway, 4)],
      ["best, from midway", fixed(off, 4)],
      ["in units of r/2", show(off / (0.5 * m.r), 3)],
      ["spread, pos.", fixed(Math.sqrt(m.qPos), 4), "vermillion"],
      ["spread, neg.", fixed(Math.sqrt(m.qNeg), 4), "blue"],
      ["r", fixed(m.r, 4)],
      ["b", fixed(m.b, 4)],
      ["AUC", fixed(auc, 4)],
      ["phase", solution.phase],
    ];
  },

  table({ solutions, curves, moved }) {
    return {
      header: ["width", "ba", "ba_midway", "ba_best", "best_from_midway", "q_pos", "q_neg", "r", "b", "phase"],
      rows: WIDTHS.map((w, k) => {
        const { variance, r, b, phase } = solutions[k];
        const values = THRESHOLDS.map(({ key }) => curves[key][k]);
        return [w, ...values, moved[k], w * variance, variance, r, b, phase];
      }),
    };
  },
};
