/**
 * Under, over, or both: a metric against the mixing, with the best one marked.
 * @module
 */
import { METRICS, Metrics } from "../metrics.js";
import { fixed, show } from "../plot.js";
import { solve, sweep } from "../solver.js";
import { balanced, bestMixing, multiplicity } from "../strategies.js";
import {
  dataChoice,
  heightOf,
  kappaSlider,
  linspace,
  momentsOf,
  satBands,
  sizeSlider,
  stretchSlider,
  valuesOf,
} from "./shared.js";

const N = 200;

/** @type {import("../explorer.js").Definition} */
export default {
  name: "mixing",
  title: "Under, over, or both?",
  intro:
    "Balance is restored by dropping examples of the majority, by repeating those of the minority, or by some of " +
    "both. The star is the best mixture; along the shaded part it hardly matters. Make the minority smaller and " +
    "see the star leave the right end.",
  controls: (moments) => [
    dataChoice(moments),
    sizeSlider("alpha_pos", "positives per feature", "α⁺"),
    sizeSlider("alpha_neg", "negatives per feature", "α⁻"),
    kappaSlider(),
    stretchSlider(),
    {
      key: "metric",
      kind: "choice",
      label: "Metric",
      options: Object.entries(METRICS).map(([k, m]) => [k, `${m.name}, ${m.title}`]),
    },
    { key: "tolerance", kind: "range", label: "as good as the best, to within", min: 0.0005, max: 0.02, log: true },
    {
      key: "probe",
      kind: "range",
      label: "read off at mixing",
      symbol: "μ",
      min: 0,
      max: 1,
      step: 0.01,
      unit: "%",
    },
  ],
  plots: [{ name: "curve", height: heightOf(300, 170) }],

  compute(state, data) {
    const moments = momentsOf(data, state);
    const { alpha_pos: pos, alpha_neg: neg } = state;
    const rest = { kappa: state.kappa };
    const phi = pos / (pos + neg); // the test set is composed as the data are
    const { of, sign } = METRICS[state.metric];
    const score = (m) => of(m, phi);
    const best = bestMixing(moments, pos, neg, rest, (m) => sign * score(m), state.tolerance);
    const mixing = linspace(0, 1, N);
    const at = (mu) => balanced(pos, neg, multiplicity(pos, neg, mu), rest);
    const solutions = sweep(moments, mixing.map(at));
    const asIs = solve(moments, { alphaPos: pos, alphaNeg: neg, ...rest });
    const probe = solve(moments, at(state.probe));
    return {
      mixing,
      solutions,
      phi,
      probe,
      values: valuesOf(solutions, (s) => score(Metrics.of(s))),
      moved: valuesOf(solutions, (s) => score(Metrics.of(s).centred)),
      best: { ...best, value: sign * best.value },
      asIs: score(Metrics.of(asIs)),
      asIsMoved: score(Metrics.of(asIs).centred),
      atProbe: score(Metrics.of(probe)),
    };
  },

  draw({ mixing, solutions, values, moved, best, asIs, asIsMoved, atProbe }, state, change) {
    const seen = [...values, ...moved, asIs, asIsMoved].filter(Number.isFinite);
    const [low, high] = [Math.min(...seen), Math.max(...seen)];
    const pad = Math.max(0.08 * (high - low), 0.004);
    const percent = (v) => `${Math.round(100 * v)}`;
    const name = METRICS[state.metric].name;
    return [
      {
        summary: `${name} against the mixing of under- and oversampling. Best: ${fixed(best.value)} at ${percent(best.mixing)} per cent; the data as they are: ${fixed(asIs)}.`,
        x: { min: 0, max: 1, label: "mixing μ in %: from under- to oversampling", short: "μ", format: percent },
        y: { min: Math.max(low - pad, -1), max: Math.min(high + pad, 1), label: METRICS[state.metric].title },
        bands: [
          { from: best.low, to: best.high, color: "green", opacity: 0.16, name: "as good as the best" },
          ...satBands(mixing, solutions),
        ],
        rules: [{ x: state.probe, dash: "3 3" }],
        lines: [
          { name: "data as they are", x: [0, 1], y: [asIs, asIs], color: "blue", width: 2 },
          {
            name: "as they are, threshold moved",
            x: [0, 1],
            y: [asIsMoved, asIsMoved],
            color: "blue",
            width: 1.5,
            dash: "1.5 4",
          },
          { name: "mixed, threshold moved", x: mixing, y: moved, color: "vermillion", width: 1.5, dash: "1.5 4" },
          { name: "balance restored", x: mixing, y: values, color: "vermillion", width: 2.6 },
        ],
        points: [
          { x: state.probe, y: atProbe, color: "vermillion" },
          { x: best.mixing, y: best.value, color: "green", shape: "star", name: "best" },
        ],
        pick: (x) => change({ probe: Math.round(x * 100) / 100 }),
      },
    ];
  },

  readout({ best, asIs, asIsMoved, values, atProbe, probe }, state) {
    return [
      ["best mixing", `${fixed(100 * best.mixing, 1)} %`, "green"],
      ["copies c", show(best.c, 3)],
      [`${METRICS[state.metric].name} there`, fixed(best.value, 4)],
      ["as good", `${fixed(100 * best.low, 1)} to ${fixed(100 * best.high, 1)} %`],
      ["undersampling", fixed(values[0], 4)],
      ["oversampling", fixed(values.at(-1), 4)],
      ["as they are", fixed(asIs, 4), "blue"],
      ["threshold moved", fixed(asIsMoved, 4)],
      [`at ${Math.round(100 * state.probe)} %`, fixed(atProbe, 4), "vermillion"],
      ["phase", probe.phase],
    ];
  },

  table({ mixing, solutions, values, moved }, { metric }) {
    return {
      header: ["mixing", metric, `${metric}_moved_threshold`, "q", "r", "b", "phase"],
      rows: mixing.map((m, k) => [
        m,
        values[k],
        moved[k],
        solutions[k].variance,
        solutions[k].r,
        solutions[k].b,
        solutions[k].phase,
      ]),
    };
  },
};
