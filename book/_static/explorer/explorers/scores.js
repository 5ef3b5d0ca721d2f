/**
 * The scores of the two classes, a threshold, and what moves with it: confusion matrix, ROC and precision–recall.
 * @module
 */
import { METRICS, Metrics } from "../metrics.js";
import { fixed } from "../plot.js";
import { solve } from "../solver.js";
import { dataChoice, heightOf, kappaSlider, linspace, momentsOf, sizeSlider, stretchSlider } from "./shared.js";

const byHand = (s) => s.source === "hand";
const trained = (s) => s.source === "trained";

/** @type {import("../explorer.js").Definition} */
export default {
  name: "scores",
  title: "Two bells and a threshold",
  intro:
    "The score of a new example is Gaussian, with one mean for each class. Everything a metric can know is how " +
    "these two bells lie about the threshold. Move it, and all panels move together.",
  controls: (moments) => [
    {
      key: "source",
      kind: "choice",
      label: "Scores",
      options: [
        ["trained", "of a trained perceptron"],
        ["hand", "set q, r and b by hand"],
      ],
    },
    dataChoice(moments, trained),
    sizeSlider("alpha_pos", "positives per feature", "α⁺", trained),
    sizeSlider("alpha_neg", "negatives per feature", "α⁻", trained),
    kappaSlider(trained),
    stretchSlider(trained),
    { key: "q", kind: "range", label: "variance", symbol: "q", min: 0.05, max: 10, log: true, when: byHand },
    {
      key: "r",
      kind: "range",
      label: "distance of the means",
      symbol: "r",
      min: 0,
      max: 6,
      step: 0.05,
      when: byHand,
    },
    {
      key: "b",
      kind: "range",
      label: "bias",
      symbol: "b",
      min: -4,
      max: 4,
      step: 0.05,
      when: byHand,
    },
    {
      key: "threshold",
      kind: "range",
      label: "threshold",
      symbol: "γ",
      min: -6,
      max: 6,
      step: 0.05,
    },
    {
      key: "phi",
      kind: "range",
      label: "positives in the test set",
      symbol: "φ⁺",
      min: 0.01,
      max: 0.99,
      step: 0.01,
    },
  ],
  plots: [
    { name: "bells", height: heightOf(210, 170) },
    { name: "roc", height: (w) => Math.min(w, 300) - 62 },
    { name: "prc", height: (w) => Math.min(w, 300) - 62 },
  ],

  compute(state, data) {
    let solution = null;
    let m = new Metrics(state.q, state.r, state.b);
    if (state.source === "trained") {
      solution = solve(momentsOf(data, state), {
        alphaPos: state.alpha_pos,
        alphaNeg: state.alpha_neg,
        kappa: state.kappa,
      });
      m = Metrics.of(solution);
    }
    const s = Math.sqrt(m.q);
    const reach = Math.max(0.5 * m.r + 3.6 * s, Math.abs(state.threshold + m.b) + 0.4 * s, 1e-6);
    const delta = linspace(-m.b - reach, -m.b + reach, 241);
    const gammas = m.thresholds(201);
    return {
      solution,
      m,
      delta,
      pos: delta.map((d) => state.phi * m.density(d, 1)),
      neg: delta.map((d) => (1 - state.phi) * m.density(d, -1)),
      roc: { x: gammas.map((g) => m.fpr(g)), y: gammas.map((g) => m.tpr(g)) },
      prc: { x: gammas.map((g) => m.tpr(g)), y: gammas.map((g) => m.ppv(state.phi, g)) },
      rates: {
        tpr: m.tpr(state.threshold),
        fpr: m.fpr(state.threshold),
        tnr: m.tnr(state.threshold),
        fnr: m.fnr(state.threshold),
        ba: m.ba(state.threshold),
        acc: m.acc(state.phi, state.threshold),
        ppv: m.ppv(state.phi, state.threshold),
        f1: m.f1(state.phi, state.threshold),
        mcc: m.mcc(state.phi, state.threshold),
        auc: m.auc(),
        auprc: m.auprc(state.phi),
      },
    };
  },

  draw({ m, delta, pos, neg, roc, prc, rates }, state, change) {
    const gamma = state.threshold;
    const wrong = (values, side) => {
      const keep = delta.map((d) => side * (d - gamma) > 0);
      return { x: delta.filter((_, k) => keep[k]), y: values.filter((_, k) => keep[k]) };
    };
    const share = { min: 0, max: 1, ticks: [0, 0.5, 1] };
    const pick = (x) => change({ threshold: Math.min(Math.max(Math.round(x * 20) / 20, -6), 6) });
    const errors = [
      { ...wrong(pos, -1), color: "vermillion" },
      { ...wrong(neg, 1), color: "blue" },
    ].filter((a) => a.x.length > 1);
    return [
      {
        summary: `Densities of the scores of both classes and the threshold at ${gamma}: true positive rate ${fixed(rates.tpr)}, false positive rate ${fixed(rates.fpr)}.`,
        x: { min: delta[0], max: delta.at(-1), label: "score Δ", short: "Δ" },
        y: {
          min: 0,
          max: 1.12 * Math.max(...pos, ...neg),
          label: "density, weighted by class; shaded: errors",
          ticks: [],
        },
        areas: errors,
        rules: [
          { x: gamma, color: "text", width: 2, label: "γ" },
          { x: -m.b, dash: "3 3" },
        ],
        lines: [
          { name: "negatives", x: delta, y: neg, color: "blue" },
          { name: "positives", x: delta, y: pos, color: "vermillion" },
        ],
        pick,
      },
      {
        summary: `ROC curve, area ${fixed(rates.auc)}.`,
        x: { ...share, label: "FPR" },
        y: { ...share, label: `TPR, area ${fixed(rates.auc)}` },
        rules: [],
        lines: [
          { x: [0, 1], y: [0, 1], color: "grid", width: 1 },
          { x: roc.x, y: roc.y, color: "purple" },
        ],
        points: [{ x: rates.fpr, y: rates.tpr, color: "purple", shape: "ring" }],
        hover: (x, y) => ({
          title: "ROC",
          rows: [
            ["FPR", fixed(x)],
            ["TPR", fixed(y)],
          ],
        }),
      },
      {
        summary: `Precision against recall, area ${fixed(rates.auprc)}.`,
        x: { ...share, label: "recall" },
        y: { ...share, label: `precision, area ${fixed(rates.auprc)}` },
        rules: [{ y: state.phi, color: "grid" }],
        lines: [{ x: prc.x, y: prc.y, color: "orange" }],
        points: [{ x: rates.tpr, y: rates.ppv, color: "orange", shape: "ring" }],
        hover: (x, y) => ({
          title: "precision–recall",
          rows: [
            ["recall", fixed(x)],
            ["precision", fixed(y)],
          ],
        }),
      },
    ];
  },

  matrix({ rates }, { phi }) {
    const cell = (share, rate, right) => ({ text: fixed(100 * share * rate, 1), right });
    return {
      caption: "Of 100 test examples",
      columns: ["answered +", "answered −"],
      rows: [
        ["positive", cell(phi, rates.tpr, true), cell(phi, rates.fnr, false)],
        ["negative", cell(1 - phi, rates.fpr, false), cell(1 - phi, rates.tnr, true)],
      ],
    };
  },

  readout({ m, rates, solution }, { threshold }) {
    return [
      ...["ba", "acc", "ppv", "tpr", "f1", "mcc"].map((k) => [METRICS[k].name, fixed(rates[k], 4)]),
      ["best γ for BA", fixed(m.bestThreshold(), 3)],
      ["q", fixed(m.q, 4)],
      ["r", fixed(m.r, 4)],
      ["b", fixed(m.b, 4)],
      ...(solution ? [["phase", solution.phase]] : []),
    ].map((row) => (row[0] === "best γ for BA" && threshold === m.bestThreshold() ? [...row, "green"] : row));
  },

  table({ delta, pos, neg, m }, { phi }) {
    return {
      header: ["delta", "density_pos", "density_neg", "tpr", "fpr", "ba", "ppv"],
      rows: delta.map((d, k) => [d, pos[k] / phi, neg[k] / (1 - phi), m.tpr(d), m.fpr(d), m.ba(d), m.ppv(phi, d)]),
    };
  },
};
