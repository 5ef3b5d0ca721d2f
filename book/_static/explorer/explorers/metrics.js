/**
 * Every metric against the share of positives in the training set.
 * @module
 */
import { METRICS, Metrics } from "../metrics.js";
import { fixed } from "../plot.js";
import { solve, sweep } from "../solver.js";
import { dataChoice, heightOf, kappaSlider, linspace, momentsOf, satBands, stretchSlider, valuesOf } from "./shared.js";

const COLORS = {
  ba: "vermillion",
  acc: "blue",
  auc: "purple",
  auprc: "orange",
  f1: "green",
  mcc: "sky",
  tpr: "text",
  tnr: "text",
  ppv: "muted",
};
const DASHES = { tnr: "6 3", tpr: "2 3", ppv: "8 3 2 3" };
const N = 200;

const trained = ({ alpha, kappa, model, lam }, rho) => {
  const svm = model === "svm";
  return {
    alphaPos: alpha * rho,
    alphaNeg: alpha * (1 - rho),
    kappa: svm ? 1 : kappa,
    model,
    lam: svm ? lam : undefined,
  };
};
const composition = ({ same, phi }, rho) => (same ? rho : phi);

/** @type {import("../explorer.js").Definition} */
export default {
  name: "metrics",
  title: "What each metric sees",
  intro:
    "One classifier, trained on sets with a growing share of positives, and the marks it gets. Turn up the " +
    "margin, or fix the composition of the test set, and see which metrics change.",
  controls: (moments) => [
    dataChoice(moments),
    {
      key: "model",
      kind: "choice",
      label: "Classifier",
      options: [
        ["perceptron", "spherical perceptron"],
        ["svm", "soft-margin SVM"],
      ],
    },
    kappaSlider((s) => s.model === "perceptron"),
    {
      key: "lam",
      kind: "range",
      label: "ridge",
      symbol: "λ̃",
      min: 1e-3,
      max: 10,
      log: true,
      when: (s) => s.model === "svm",
    },
    { key: "alpha", kind: "range", label: "examples per feature", symbol: "α⁺ + α⁻", min: 0.1, max: 100, log: true },
    stretchSlider(),
    { key: "same", kind: "flag", label: "test set composed as the training set" },
    {
      key: "phi",
      kind: "range",
      label: "positives in the test set",
      symbol: "φ⁺",
      min: 0.01,
      max: 0.99,
      step: 0.01,
      when: (s) => !s.same,
    },
    { key: "shown", kind: "flags", label: "Metrics", options: Object.entries(METRICS).map(([k, m]) => [k, m.name]) },
    {
      key: "probe",
      kind: "range",
      label: "read off at",
      symbol: "ρ⁺",
      min: 0.02,
      max: 0.98,
      step: 0.01,
    },
  ],
  plots: [{ name: "curves", height: heightOf(300, 190) }],

  compute(state, data) {
    const moments = momentsOf(data, state);
    const rho = linspace(0.02, 0.98, N);
    const solutions = sweep(
      moments,
      rho.map((r) => trained(state, r)),
    );
    const curves = {};
    for (const key of state.shown)
      curves[key] = valuesOf(solutions, (s, k) => METRICS[key].of(Metrics.of(s), composition(state, rho[k])));
    const probe = solve(moments, trained(state, state.probe));
    const m = Metrics.of(probe);
    const at = Object.fromEntries(
      Object.keys(METRICS).map((k) => [k, METRICS[k].of(m, composition(state, state.probe))]),
    );
    return { rho, solutions, curves, probe, at };
  },

  draw({ rho, solutions, curves, at }, state, change) {
    const low = Math.min(0, ...Object.values(curves).flatMap((c) => c.filter(Number.isFinite)));
    return [
      {
        summary: `Metrics against the share of positives in the training set. At ${state.probe}: ${state.shown.map((k) => `${METRICS[k].name} ${fixed(at[k])}`).join(", ")}.`,
        x: { min: 0, max: 1, label: "share of positives in the training set, ρ⁺", short: "ρ⁺" },
        y: { min: low < 0 ? Math.floor(low * 10) / 10 : 0, max: 1, label: "metric on test data" },
        bands: satBands(rho, solutions),
        rules: [
          { x: state.probe, dash: "3 3" },
          { x: 0.5, color: "grid" },
        ],
        lines: state.shown.map((k) => ({
          name: METRICS[k].name,
          x: rho,
          y: curves[k],
          color: COLORS[k],
          dash: DASHES[k],
        })),
        points: state.shown.map((k) => ({ x: state.probe, y: at[k], color: COLORS[k] })),
        pick: (x) => change({ probe: Math.min(Math.max(Math.round(x * 100) / 100, 0.02), 0.98) }),
      },
    ];
  },

  readout({ probe, at }, state) {
    const rows = state.shown.map((k) => [`${METRICS[k].name}`, fixed(at[k], 4), COLORS[k]]);
    return [
      ["at ρ⁺", fixed(state.probe, 2)],
      ...rows,
      ["q", fixed(probe.variance, 4)],
      ["r", fixed(probe.r, 4)],
      ["b", fixed(probe.b, 4)],
      ["phase", probe.phase],
    ];
  },

  table({ rho, solutions, curves }, { shown }) {
    return {
      header: ["rho_pos", ...shown, "q", "r", "b", "phase"],
      rows: rho.map((r, k) => {
        const s = solutions[k];
        return [r, ...shown.map((key) => curves[key][k]), s.variance, s.r, s.b, s.phase];
      }),
    };
  },
};
